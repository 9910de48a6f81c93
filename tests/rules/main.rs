//! The project's own list of promises: which rule or case is held by which tests.
//!
//! `held.txt` beside this file is that list. A test says which promise it holds (`// rule: I-08`, `// case: O-64` above
//! it); the list says which promises the project claims. A claim without a test, and a test of something never
//! claimed, both fail here. `tests/run bless` writes the tests of each claim anew; claims are added by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use tenure_tests::tree;

type Held = BTreeMap<String, BTreeSet<String>>;

/// How many rules each letter has, and how many cases there are: a number beyond them is a typing mistake.
const KNOWN: [(&str, u32); 6] = [("I", 16), ("H", 25), ("A", 19), ("N", 24), ("S", 23), ("O", 73)];

fn exists(number: &str) -> bool {
    let Some((letter, digits)) = number.split_once('-') else { return false };
    let Ok(value) = digits.parse::<u32>() else { return false };
    match letter {
        "X" => (1..=11).contains(&value),
        _ => KNOWN.iter().any(|(known, most)| *known == letter && (1..=*most).contains(&value)),
    }
}

/// What the tests of the tree say they hold.
fn said() -> Held {
    let mut held = Held::new();
    for file in tree::sources(&["actors", "protocol", "host", "controlplane", "tests"]) {
        let text = std::fs::read_to_string(&file).unwrap();
        let (mut waiting, mut last): (Vec<String>, Option<&str>) = (Vec::new(), None);
        for line in text.lines().map(str::trim) {
            if let Some(number) = line.strip_prefix("// rule: ").or_else(|| line.strip_prefix("// case: ")) {
                waiting.extend(number.split([',', ' ']).filter(|part| !part.is_empty()).map(str::to_owned));
                continue;
            }
            // A mark stands above its test, or as the first line in it.
            last = function(line).or(last);
            let between = line.is_empty() || line.starts_with("//") || line.starts_with('#');
            if let (false, Some(name)) = (between, last) {
                for number in waiting.drain(..) {
                    held.entry(number).or_default().insert(format!("{}: {name}", place(&file)));
                }
            }
        }
        assert!(waiting.is_empty(), "{} names {waiting:?} above no test", file.display());
    }
    held
}

fn function(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub ").unwrap_or(line);
    let rest = rest.strip_prefix("async ").unwrap_or(rest);
    rest.strip_prefix("fn ")?.split(['(', '<']).next()
}

fn place(file: &Path) -> String {
    file.strip_prefix(tree::root()).unwrap_or(file).display().to_string()
}

/// What the list claims: a number at the start of a line, its tests below it.
fn claimed() -> Held {
    let mut held = Held::new();
    let mut current = String::new();
    for line in list().lines() {
        match line.strip_prefix("    ") {
            Some(test) => {
                held.entry(current.clone()).or_default().insert(test.to_owned());
            }
            None if line.is_empty() || line.starts_with('#') => {}
            None => {
                current = line.to_owned();
                assert!(held.insert(current.clone(), BTreeSet::new()).is_none(), "{current} stands twice");
            }
        }
    }
    held
}

fn list() -> String {
    std::fs::read_to_string(tree::root().join("tests/rules/held.txt")).unwrap()
}

fn written(held: &Held) -> String {
    let head: String =
        list().lines().take_while(|line| line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    let body: String = held
        .iter()
        .map(|(number, tests)| {
            let tests: String = tests.iter().map(|test| format!("    {test}\n")).collect();
            format!("{number}\n{tests}")
        })
        .collect();
    format!("{head}\n{body}")
}

#[test]
fn every_promise_that_is_claimed_is_held_by_a_test_and_the_list_names_it() {
    let (claimed, said) = (claimed(), said());
    let numbers = |held: &Held| held.keys().cloned().collect::<BTreeSet<_>>();
    let unheld: Vec<String> = numbers(&claimed).difference(&numbers(&said)).cloned().collect();
    assert!(unheld.is_empty(), "claimed and held by no test: {unheld:?}");
    let unclaimed: Vec<String> = numbers(&said).difference(&numbers(&claimed)).cloned().collect();
    assert!(
        unclaimed.is_empty(),
        "held by a test and not claimed; add the number to tests/rules/held.txt: {unclaimed:?}"
    );
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(tree::root().join("tests/rules/held.txt"), written(&said)).unwrap();
        return;
    }
    assert!(list() == written(&said), "tests/rules/held.txt is behind the tests: run `tests/run bless`");
}

#[test]
fn every_number_is_one_that_exists() {
    for number in claimed().keys().chain(said().keys()) {
        assert!(exists(number), "{number} is no rule and no case");
    }
}
