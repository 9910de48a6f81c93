use super::*;

fn agrees(table: &str, rules: Rules) {
    let rows: Vec<(&str, &str)> = table
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_once(' ').unwrap())
        .collect();
    assert!(rows.len() > 40);
    for (a, signs) in &rows {
        assert_eq!(signs.len(), rows.len());
        for ((b, _), sign) in rows.iter().zip(signs.chars()) {
            let said = match compare(a, b, rules) {
                Ordering::Less => '<',
                Ordering::Equal => '=',
                Ordering::Greater => '>',
            };
            assert_eq!(said, sign, "{a} beside {b}");
        }
    }
}

#[test]
fn versions_are_in_the_order_that_rpm_itself_says() {
    agrees(include_str!("rpm.txt"), Rules::Rpm);
}

#[test]
fn versions_are_in_the_order_that_pacman_itself_says() {
    agrees(include_str!("pacman.txt"), Rules::Pacman);
}
