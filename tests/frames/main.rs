//! Golden frames: the bytes of every message, so that a change to the wire is seen where it is made.
//!
//! They freeze when a version is tagged. Until 0.1.0 they may change, with `tests/run bless` and a changelog line.

mod examples;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use examples::Example;
use tenure_protocol::kind::KINDS;
use tenure_tests::tree;

fn hex(bytes: &[u8]) -> String {
    bytes.chunks(32).fold(String::new(), |mut text, line| {
        line.iter().for_each(|byte| write!(text, "{byte:02x}").unwrap());
        text.push('\n');
        text
    })
}

#[test]
fn every_message_and_its_answer_have_the_bytes_they_had() {
    let folder = tree::root().join("tests/golden/frames");
    let bless = std::env::var_os("BLESS").is_some();
    let mut changed = Vec::new();
    for Example { name, bytes, .. } in examples::all() {
        let file = folder.join(format!("{name}.hex"));
        if bless {
            std::fs::write(&file, hex(&bytes)).unwrap();
        } else if std::fs::read_to_string(&file).ok() != Some(hex(&bytes)) {
            changed.push(name);
        }
    }
    assert!(
        changed.is_empty(),
        "the wire changed: {changed:?}; if that is meant, `tests/run bless` and a changelog line"
    );
}

#[test]
fn every_message_and_its_answer_are_read_as_what_was_written() {
    for Example { name, bytes, again } in examples::all() {
        assert_eq!(again(&bytes), Some(bytes), "{name}");
    }
}

#[test]
fn every_kind_has_an_example() {
    let examples: BTreeSet<String> = examples::all().into_iter().map(|example| example.name).collect();
    let without: Vec<&str> =
        KINDS.iter().map(|kind| kind.name).filter(|name| !examples.contains(*name)).collect();
    assert!(without.is_empty(), "no example of {without:?}");
}

#[test]
fn no_golden_frame_is_of_a_message_that_is_gone() {
    let examples: BTreeSet<String> =
        examples::all().into_iter().map(|example| format!("{}.hex", example.name)).collect();
    for entry in std::fs::read_dir(tree::root().join("tests/golden/frames")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(examples.contains(&name), "{name} has no example");
    }
}

// rule: S-03
#[test]
fn what_is_sent_before_anybody_is_known_fits_the_limit_of_a_greeting() {
    let most = tenure_protocol::wire::frame::MOST_GREETING;
    for Example { name, bytes, .. } in examples::all() {
        if name == "enrol.hello" || name == "session.hello" {
            assert!(bytes.len() + 200 < most, "{name} has {} bytes", bytes.len());
        }
    }
}

/// Documents that are content: their size is bounded before they are read.
const DOCUMENTS: [&str; 5] = ["files", "nodes: Vec<NodePlan>", "not_in_folder", "changes", "detail"];

// rule: S-22
#[test]
fn every_list_of_a_message_has_a_bound() {
    let modules =
        ["content", "enrolment", "event", "operator", "profile", "report", "rescue", "session", "token"];
    let mut seen = 0;
    for module in modules {
        let text = std::fs::read_to_string(tree::root().join(format!("protocol/src/{module}.rs"))).unwrap();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let is_field = |line: &str| line.ends_with(">,") && line.contains(": Vec<") && !line.contains('(');
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| is_field(line)) {
            seen += 1;
            let bounded =
                lines[at.saturating_sub(1)].contains("bounded::<") || lines[at - 1].contains("serde_bytes");
            let of_a_document = DOCUMENTS.iter().any(|document| line.contains(document));
            // What is minted is ours, and never read.
            let minted = *line == "pub bytes: Vec<u8>,";
            assert!(bounded || of_a_document || minted, "{module}: `{line}` has no bound");
        }
    }
    assert!(seen >= 25, "{seen} lists were found");
}
