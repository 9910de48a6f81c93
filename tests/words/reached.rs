//! Every code can be reached by an input: the list beside this file names, for each, the tests that show it.
//!
//! A test reaches a code when it expects it (compares it, or has it in a table or helper of its file) and neither it nor
//! what it uses of its file makes anything of it by hand: no refusal of this code, no error of any kind, no call of a
//! function that says this code whatever it is given. What is left gave something in and met the code. `tests/run bless` writes the
//! list anew; a code without a test has to get one, or to go.

mod fooled;
mod makers;
mod part;

use std::collections::{BTreeMap, BTreeSet};

use tenure_tests::tree;

use crate::said;
use makers::Makers;
use part::{Part, Text, parts};

const LIST: &str = "tests/words/reached.txt";
const HEAD: &str =
    "# Each code, and the tests that reach it. Written by `tests/run bless` out of the tests.\n";

/// The crates that have tests.
const CRATES: [&str; 5] = ["actors", "protocol", "host", "controlplane", "tests"];

/// A test, with everything of its file that it uses.
struct Whole<'a> {
    test: &'a Part,
    used: Vec<&'a Part>,
}

impl<'a> Whole<'a> {
    fn of(test: &'a Part, file: &'a [Part]) -> Self {
        let mut used = vec![test];
        let mut next = 0;
        while let Some(part) = used.get(next) {
            let more = file.iter().filter(|other| !other.test && part.names.contains(&other.name));
            let more: Vec<&Part> =
                more.filter(|other| !used.iter().any(|known| std::ptr::eq(*known, *other))).collect();
            used.extend(more);
            next += 1;
        }
        Self { test, used }
    }

    /// Whether it looks at refusals at all.
    fn looks(&self) -> bool {
        self.used.iter().any(|part| part.looks())
    }

    fn expects(&self, code: &str) -> bool {
        self.used.iter().any(|part| part.expected.iter().any(|text| says(text, code)))
    }

    fn makes(&self, code: &str, makers: &Makers, of_crate: &[&Part]) -> bool {
        let by_hand = |part: &&Part| part.made.iter().any(|text| says(text, code));
        let errors = |part: &&Part| part.types.iter().any(|of| makers.is_error(of));
        let called = |part: &&Part| part.called.iter().any(|name| makers.only_says(name, code));
        // A fake in another file of the crate that says this code by itself.
        let fake = |part: &&Part| {
            let says = |other: &&&Part| !other.test && other.made.contains(code);
            of_crate.iter().filter(says).any(|other| part.called.contains(&other.name))
        };
        self.used.iter().any(|part| by_hand(part) || errors(part) || called(part) || fake(part))
    }
}

/// Whether a text is this code, or has it as a word that no prose has.
fn says(text: &str, code: &str) -> bool {
    let in_a_word = |char: char| char.is_ascii_alphanumeric() || char == '_';
    text == code || code.contains('_') && text.split(|char| !in_a_word(char)).any(|word| word == code)
}

/// The tests that reach each code.
type Reached = BTreeMap<String, BTreeSet<String>>;

fn reached() -> Reached {
    let (codes, makers) = (said::codes(), Makers::read());
    let mut reached = Reached::new();
    for of in CRATES {
        // This target reads words; it reaches none.
        let own = tree::root().join("tests/words");
        let files = tree::sources(&[of]).into_iter().filter(|file| !file.starts_with(&own));
        reached_in(files.map(|file| Text::read(&file)).collect(), &codes, &makers, &mut reached);
    }
    reached
}

/// Those of one crate.
fn reached_in(files: Vec<Text>, codes: &BTreeSet<String>, makers: &Makers, into: &mut Reached) {
    let files = parts(files);
    let of_crate: Vec<&Part> = files.iter().flat_map(|(_, parts)| parts).collect();
    for (place, parts) in &files {
        let tests = parts.iter().filter(|part| part.test).map(|test| Whole::of(test, parts));
        for whole in tests.filter(Whole::looks) {
            let met = |code: &&String| whole.expects(code) && !whole.makes(code, makers, &of_crate);
            for code in codes.iter().filter(met) {
                let name = format!("{place}: {}", whole.test.name);
                into.entry(code.clone()).or_default().insert(name);
            }
        }
    }
}

#[test]
fn every_code_can_be_reached_and_the_list_names_the_tests_that_do() {
    let reached = reached();
    let holes: Vec<String> = said::codes().into_iter().filter(|code| !reached.contains_key(code)).collect();
    let mut text = HEAD.to_owned();
    for (code, tests) in &reached {
        text.push_str(&format!("\n{code}\n"));
        tests.iter().for_each(|test| text.push_str(&format!("    {test}\n")));
    }
    let path = tree::root().join(LIST);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert!(holes.is_empty(), "no test reaches {} codes: {holes:#?}", holes.len());
    let list = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(list == text, "{LIST} is behind the tests: run `tests/run bless`");
}
