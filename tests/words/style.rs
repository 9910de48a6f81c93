//! The style of everything that is said: who reads it at three in the morning finds one cause, in plain words, and
//! something to type.

use std::collections::{BTreeMap, BTreeSet};

use quote::ToTokens as _;
use tenure_tests::tree;

use crate::said::{self, Said, sources};

/// Says of each line that `wrong` finds fault with what that is.
fn every(wrong: impl Fn(&Said) -> Option<String>) {
    let found: Vec<String> = said::all()
        .iter()
        .filter_map(|said| wrong(said).map(|why| format!("{} in {}: {why}", said.code, said.place)))
        .collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

fn texts(said: &Said) -> [&str; 3] {
    [&said.happened, &said.means, &said.remedy]
}

#[test]
fn what_happened_is_one_lower_case_clause_without_a_stop() {
    every(|said| {
        let first = said.happened.chars().next()?;
        let wrong = first.is_uppercase() || said.happened.ends_with('.') || said.happened.contains(". ");
        wrong.then(|| said.happened.clone())
    });
}

#[test]
fn every_refusal_says_what_happened_what_it_means_and_what_to_do() {
    every(|said| {
        let missing =
            said.happened.is_empty() || said.is_whole() && (said.means.is_empty() || said.remedy.is_empty());
        missing.then(|| format!("{said:?}"))
    });
}

#[test]
fn a_code_is_a_lower_snake_word() {
    every(|said| {
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        // A line of a briefing is named by what was judged.
        let briefing = said.place.ends_with("briefing.rs");
        (!briefing && !said.code.chars().all(good)).then(|| said.code.clone())
    });
}

#[test]
fn no_text_shows_a_value_as_programs_write_it() {
    const MARKS: [&str; 8] = [":?}", "Some(", "Err(", "None", "Os {", "\\\"", "{:#", "::<"];
    every(|said| {
        texts(said).into_iter().find(|text| MARKS.iter().any(|mark| text.contains(mark))).map(str::to_owned)
    });
}

#[test]
fn no_error_fills_in_a_value_as_programs_write_it() {
    for source in sources::all() {
        for error in &source.errors {
            let mut found = None;
            sources::tokens(error.to_token_stream(), &mut |token| {
                let text = token.to_string();
                if text.starts_with('"') && text.contains(":?}") {
                    found = Some(text);
                }
            });
            assert!(found.is_none(), "{}: {}", source.place, found.unwrap_or_default());
        }
    }
}

// rule: N-22
#[test]
fn nothing_that_is_filled_in_is_a_secret() {
    const SECRETS: [&str; 6] = ["reveal", "token.text", "secret", "mac", "bearer", "master"];
    every(|said| {
        let holes = |text: &str| -> Vec<String> {
            text.split('{')
                .skip(1)
                .filter_map(|rest| rest.split_once('}').map(|(hole, _)| hole.to_owned()))
                .collect()
        };
        texts(said).into_iter().flat_map(holes).find(|hole| SECRETS.iter().any(|word| hole.contains(word)))
    });
}

#[test]
fn texts_are_short_enough_to_be_read() {
    every(|said| {
        let long = [(&said.happened, 200), (&said.means, 180), (&said.remedy, 260)];
        long.iter().find(|(text, most)| length(text) > *most).map(|(text, _)| (*text).clone())
    });
}

/// How long a text is, what is filled in counted as a word.
fn length(text: &str) -> usize {
    const WORD: usize = 10;
    text.split('{').enumerate().fold(0, |sum, (at, part)| match (at, part.split_once('}')) {
        (0, _) | (_, None) => sum + part.chars().count(),
        (_, Some((_, rest))) => sum + WORD + rest.chars().count(),
    })
}

#[test]
fn texts_are_written_as_the_house_writes() {
    /// What stands on the left is said as on the right.
    const HOUSE: [(&str, &str); 13] = [
        ("failed to ", "what was not done: `cannot be …`"),
        ("unable to ", "cannot"),
        ("please", "say it"),
        ("enroll ", "enrol"),
        ("enrollment", "enrolment"),
        ("re-enrol", "enrol anew, or reinvite"),
        ("invalid", "what form it must have"),
        ("can not", "cannot"),
        ("an error", "what happened"),
        ("unexpected", "what came instead"),
        ("color", "colour"),
        (" — ", "a comma, a colon or a second clause"),
        ("  ", "one space"),
    ];
    every(|said| {
        let wrong = |text: &str| {
            HOUSE.iter().find(|(word, _)| text.contains(word)).map(|(word, instead)| (*word, *instead))
        };
        texts(said)
            .into_iter()
            .find_map(|text| wrong(text).map(|(word, instead)| format!("`{word}` in `{text}`: {instead}")))
    });
}

/// Codes that are said in more than one place, and the one thing each of them means everywhere.
const SHARED: &str = include_str!("shared.txt");

#[test]
fn one_code_means_one_thing_wherever_it_is_said() {
    let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for said in said::all() {
        places.entry(said.code.clone()).or_default().insert(said.place.clone());
    }
    let shared: BTreeSet<&str> = SHARED
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(": "))
        .map(|(code, _)| code)
        .collect();
    let several: BTreeSet<&str> =
        places.iter().filter(|(_, places)| places.len() > 1).map(|(code, _)| code.as_str()).collect();
    let new: Vec<&&str> = several.difference(&shared).collect();
    assert!(
        new.is_empty(),
        "said in several files: {new:?}; give each meaning its own code, or write the one meaning into tests/words/shared.txt"
    );
    let gone: Vec<&&str> = shared.difference(&several).collect();
    assert!(gone.is_empty(), "said in one file only: {gone:?}; take them out of tests/words/shared.txt");
}

#[test]
fn what_to_do_is_something_one_can_do() {
    let verbs: BTreeSet<&str> = include_str!("verbs.txt").split_whitespace().collect();
    every(|said| {
        if !said.is_whole() {
            return None;
        }
        let first = said.remedy.split([' ', ';', ',', ':']).next().unwrap_or_default();
        let acts = verbs.contains(first) || said.remedy.contains('`') || said.remedy.starts_with('{');
        (!acts).then(|| said.remedy.clone())
    });
}

/// The commands there are, with their flags, out of the golden help.
fn commands() -> BTreeMap<String, String> {
    let mut commands = BTreeMap::new();
    for program in ["tenure", "tenure-host", "tenure-control"] {
        let help =
            std::fs::read_to_string(tree::root().join(format!("tests/golden/help/{program}.txt"))).unwrap();
        for part in help.split("## ").skip(1) {
            let (name, text) = part.split_once('\n').unwrap();
            commands.insert(name.to_owned(), text.to_owned());
        }
    }
    commands
}

/// A command line of ours in a text, if it names what does not exist.
fn no_such_command(text: &str, commands: &BTreeMap<String, String>) -> Option<String> {
    text.split('`').skip(1).step_by(2).find_map(|typed| {
        let mut words = typed.split_whitespace();
        let program =
            words.next().filter(|word| ["tenure", "tenure-host", "tenure-control"].contains(word))?;
        let known = match words.clone().next() {
            Some(verb) if !verb.starts_with('-') => commands.get(&format!("{program} {verb}")),
            _ => commands.get(program),
        };
        let flags =
            words.filter(|word| word.starts_with("--")).map(|word| word.split('=').next().unwrap_or(word));
        let good = known.is_some_and(|help| {
            flags.clone().all(|flag| help.contains(flag) || commands[program].contains(flag))
        });
        (!good).then(|| typed.to_owned())
    })
}

// case: O-70
#[test]
fn every_command_that_is_named_exists_with_its_flags() {
    let commands = commands();
    every(|said| texts(said).into_iter().find_map(|text| no_such_command(text, &commands)));
    for wrong in ["`tenure frobnicate`", "`tenure declare DIR --nonsense`"] {
        assert!(no_such_command(wrong, &commands).is_some(), "{wrong}");
    }
}
