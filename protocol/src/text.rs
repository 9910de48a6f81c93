//! Text from elsewhere, made fit to be shown: bounded, with control and bidirectional characters escaped (S-20).

/// `text` as it may stand in a message or on a terminal: at most `most` characters, then `…`; control characters,
/// line breaks and characters that turn the reading direction are written as escapes.
pub fn shown(text: &str, most: usize) -> String {
    let mut out = String::with_capacity(text.len().min(most.saturating_mul(4)));
    for (count, char) in text.chars().enumerate() {
        if count == most {
            out.push('…');
            break;
        }
        push(&mut out, char);
    }
    out
}

/// The same of a line of a text: tabs stay, being ordinary in configuration, and one that is cut says how long it is, so
/// that two that begin alike are not taken for the same.
pub fn shown_line(line: &str, most: usize) -> String {
    let mut out = String::with_capacity(line.len().min(most.saturating_mul(4)));
    for (count, char) in line.chars().enumerate() {
        if count == most {
            out.push_str(&format!("… ({} characters)", line.chars().count()));
            break;
        }
        if char == '\t' { out.push(char) } else { push(&mut out, char) }
    }
    out
}

fn push(out: &mut String, char: char) {
    if char.is_control() || turns_direction(char) {
        out.extend(char.escape_default())
    } else {
        out.push(char)
    }
}

fn turns_direction(char: char) -> bool {
    matches!(char, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{061c}' | '\u{feff}')
}

/// One place in a text. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot<'t> {
    /// Which line.
    pub line: usize,
    /// Which character of it.
    pub column: usize,
    /// The line itself, as it is; show it with [`shown`].
    pub text: &'t str,
}

/// Where the byte at `at` stands; past the end counts as the end.
pub fn spot(text: &str, at: usize) -> Spot<'_> {
    let before = text.get(..text.floor_char_boundary(at)).unwrap_or(text);
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let rest = text.get(start..).unwrap_or_default();
    Spot {
        line: before.matches('\n').count() + 1,
        column: before.get(start..).unwrap_or_default().chars().count() + 1,
        text: rest.lines().next().unwrap_or_default(),
    }
}

/// The name among `known` that a person who typed `given` most likely meant; none when nothing is near.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(given, name), name))
        .filter(|(distance, name)| *distance <= (name.chars().count() / 3).clamp(1, 3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    // rule: S-20
    #[test]
    fn what_a_stranger_wrote_cannot_move_the_cursor_or_turn_the_line() {
        let hostile = "a\u{1b}[2J\n\u{202e}txt\u{2066}";
        let out = shown(hostile, 100);
        assert_eq!(out, "a\\u{1b}[2J\\n\\u{202e}txt\\u{2066}");
        assert_eq!(shown("abcdef", 3), "abc…");
    }

    // rule: S-20
    #[test]
    fn a_line_keeps_its_tabs_and_where_it_is_cut_says_how_long_it_is() {
        assert_eq!(shown_line("a\tb\u{1b}\r", 9), "a\tb\\u{1b}\\r");
        assert_eq!(shown_line("abcdef", 6), "abcdef");
        assert_eq!(shown_line("abc\tdef", 3), "abc… (7 characters)");
    }

    #[test]
    fn a_byte_is_found_by_line_and_character_with_the_line_itself() {
        let text = "one\r\ntwé three\n";
        assert_eq!(spot(text, text.find("three").unwrap()), Spot { line: 2, column: 5, text: "twé three" });
        assert_eq!(spot(text, 0), Spot { line: 1, column: 1, text: "one" });
        assert_eq!(spot(text, 999), Spot { line: 3, column: 1, text: "" });
        assert_eq!(spot("", 0), Spot { line: 1, column: 1, text: "" });
    }

    #[test]
    fn a_typing_mistake_finds_its_name_and_nonsense_finds_none() {
        assert_eq!(nearest("contnet", ["content", "mode", "owner"]), Some("content"));
        assert_eq!(nearest("zzz", ["content", "mode", "owner"]), None);
    }
}
