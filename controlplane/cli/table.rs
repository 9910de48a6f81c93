//! Tables without borders, for people.

use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};

/// What a terminal that does not say how wide it is has.
const USUAL: u16 = 80;

/// The fewest columns the last cell of a row is squeezed into for the sake of the others.
const LAST: u16 = 16;
/// Between two columns.
const GAP: u16 = 2;

/// Rows under a header, each line without blanks at its end. Where `width` is too little, the last cells wrap: what
/// stands before them is names, to be copied. Only where those leave no room, all wrap.
pub(crate) fn table(header: &[&str], rows: Vec<Vec<String>>, width: Option<u16>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    match width {
        Some(width) => table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width),
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    if !header.is_empty() {
        table.set_header(header.to_vec());
    }
    table.add_rows(rows);
    let widths = table.column_max_content_widths();
    let before_last: u16 = widths.iter().rev().skip(1).map(|width| width.saturating_add(GAP)).sum();
    let last = table.column_count().saturating_sub(1);
    let keep = width.is_some_and(|width| before_last.saturating_add(LAST) <= width);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, GAP));
        if keep && index < last {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    let mut text = table.trim_fmt();
    text.push('\n');
    text
}

pub(crate) fn width_of_the_terminal() -> u16 {
    Table::new().width().unwrap_or(USUAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Vec<String>> {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        vec![
            row(["file:/srv/web/html/index.html", "web", "the disk is full and nobody can write there"]),
            row(["b", "base", ""]),
        ]
    }

    #[test]
    fn a_table_has_no_borders_and_no_blanks_at_the_end_of_a_line() {
        assert_eq!(
            table(&["KEY", "MODULE", "WHY"], rows(), None),
            "\
KEY                            MODULE  WHY
file:/srv/web/html/index.html  web     the disk is full and nobody can write there
b                              base
"
        );
    }

    #[test]
    fn where_there_is_little_room_the_last_cell_wraps_and_names_stay_whole() {
        assert_eq!(
            table(&["KEY", "MODULE", "WHY"], rows(), Some(64)),
            "\
KEY                            MODULE  WHY
file:/srv/web/html/index.html  web     the disk is full and
                                       nobody can write there
b                              base
"
        );
    }

    #[test]
    fn where_names_leave_no_room_no_line_is_longer_than_the_terminal_all_the_same() {
        for line in table(&["KEY", "MODULE", "WHY"], rows(), Some(40)).lines() {
            assert!(line.chars().count() <= 40, "{line}");
        }
    }
}
