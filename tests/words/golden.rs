//! The list of everything that can be said is golden, and every line of it keeps the style of the house.

use std::collections::BTreeSet;

use tenure_tests::tree;

use crate::said::{self, Said};

const LIST: &str = "tests/golden/refusals.txt";
const HEAD: &str = "\
# Everything Tenure refuses, fails at or waits for, by code: what happened, what it means, what to do. In braces stands
# what is filled in. What has only one sentence is said of a resource, or is a line of a briefing. Written by
# `tests/run bless` out of the sources.
";

fn written(said: &BTreeSet<Said>) -> String {
    let mut text = HEAD.to_owned();
    let mut code = "";
    for one in said {
        if one.code != code {
            text.push_str(&format!("\n{}\n", one.code));
            code = &one.code;
        }
        text.push_str(&format!("    happened  {}\n", one.happened));
        if one.is_whole() {
            text.push_str(&format!("    means     {}\n    do        {}\n", one.means, one.remedy));
        }
        text.push_str(&format!("    in        {}\n", one.place));
    }
    text
}

#[test]
fn everything_that_can_be_said_is_in_the_golden_list() {
    let text = written(said::all());
    let path = tree::root().join(LIST);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(golden == text, "{LIST} is behind the sources: run `tests/run bless` and read what changed");
}
