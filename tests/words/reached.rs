//! Every code can be reached by an input: the list beside this file names, for each, a test that says so.
//!
//! A test reaches a code when the code stands in it as a word, or in a table or helper of its file that it uses,
//! and it looks at codes or refusals at all. `tests/run bless` writes the list anew; a code without a test has to get
//! one, or to go.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use quote::ToTokens as _;
use syn::visit::{self, Visit};
use tenure_tests::tree;

use crate::said::{self, sources};

const LIST: &str = "tests/words/reached.txt";
const HEAD: &str =
    "# Each code, and the tests that reach it. Written by `tests/run bless` out of the tests.\n";

/// What a test that looks at refusals names.
const LOOKS: [&str; 13] = [
    "code",
    "codes",
    "is",
    "refusal",
    "refused",
    "reason",
    "golden",
    "verdict",
    "trouble",
    "briefing",
    "ended",
    "outcome",
    "is_down_with",
];

/// A function or table of a file with tests.
struct Part {
    name: String,
    test: bool,
    quoted: BTreeSet<String>,
    names: BTreeSet<String>,
}

#[derive(Default)]
struct Parts {
    found: Vec<Part>,
    in_tests: bool,
}

impl Parts {
    fn add(&mut self, name: &syn::Ident, attributes: &[syn::Attribute], tokens: proc_macro2::TokenStream) {
        let test =
            attributes.iter().any(|of| of.path().segments.last().is_some_and(|last| last.ident == "test"));
        if test || self.in_tests {
            let (quoted, names) = said::words_of(tokens);
            self.found.push(Part { name: name.to_string(), test, quoted, names });
        }
    }
}

impl<'ast> Visit<'ast> for Parts {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let before = self.in_tests;
        self.in_tests |= item.ident == "tests";
        visit::visit_item_mod(self, item);
        self.in_tests = before;
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add(&item.sig.ident, &item.attrs, item.to_token_stream());
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(&item.sig.ident, &item.attrs, item.to_token_stream());
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.add(&item.ident, &item.attrs, item.to_token_stream());
    }
}

/// The tests of a file that name a code, by code.
fn reached_in(file: &Path, codes: &BTreeSet<String>, into: &mut BTreeMap<String, BTreeSet<String>>) {
    let parsed = syn::parse_file(&std::fs::read_to_string(file).unwrap()).unwrap();
    let mut parts = Parts { found: Vec::new(), in_tests: sources::is_test(file) };
    parts.visit_file(&parsed);
    let place = file.strip_prefix(tree::root()).unwrap().display().to_string();
    for test in parts.found.iter().filter(|part| part.test) {
        let (mut quoted, mut names) = (test.quoted.clone(), test.names.clone());
        loop {
            let before = names.len();
            for part in
                parts.found.iter().filter(|part| !part.test && names.contains(&part.name)).collect::<Vec<_>>()
            {
                quoted.extend(part.quoted.iter().cloned());
                names.extend(part.names.iter().cloned());
            }
            if names.len() == before {
                break;
            }
        }
        if LOOKS.iter().any(|word| names.contains(*word)) {
            for code in codes.iter().filter(|code| quoted.iter().any(|text| says(text, code))) {
                into.entry(code.clone()).or_default().insert(format!("{place}: {}", test.name));
            }
        }
    }
}

/// Whether a text is this code, or has it as a word that no prose has.
fn says(text: &str, code: &str) -> bool {
    let in_a_word = |char: char| char.is_ascii_alphanumeric() || char == '_';
    text == code || code.contains('_') && text.split(|char| !in_a_word(char)).any(|word| word == code)
}

fn reached() -> BTreeMap<String, BTreeSet<String>> {
    let codes = said::codes();
    let mut reached = BTreeMap::new();
    for file in tree::sources(&["actors", "protocol", "host", "controlplane", "tests"]) {
        // This target reads words; it reaches none.
        if !file.starts_with(tree::root().join("tests/words")) {
            reached_in(&file, &codes, &mut reached);
        }
    }
    reached
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
