//! Declarations: what a host is told to be.

use serde_json::Value;
use tenure_host::reconcile::admit::{Held, Standing, admit};
use tenure_protocol::declaration::{Declaration, Entry, Header};
use tenure_protocol::id::{
    ControlPlaneId, Digest, Epoch, EpochId, Generation, NodeId, Revision, RevisionNumber,
};
use tenure_protocol::machine::Mode;
use tenure_protocol::refusal::Explain as _;
use tenure_protocol::resource::Resource;

use crate::folders;
use crate::{change, run};

const WORDS: &[&[u8]] = &[
    b"[[[[[[[[[[[[[[[[",
    b"{\"key\":",
    b"null",
    b"-1",
    b"18446744073709551616",
    b"1e999",
    b"\"\\u0000\"",
    b"\"\\ud800\"",
    b"\"key\":\"file:/a\",\"key\":\"file:/b\",",
    b"\"spec\":{}",
    b"\"needs\":[\"file:/a\"]",
    b"\"is_final\":true",
    b"],\"resources\":[",
];

pub(crate) fn header() -> Header {
    Header {
        control_plane_id: ControlPlaneId::from_bytes([1; 16]),
        node: NodeId::new("edge-1").unwrap(),
        generation: Generation(1),
        epoch: Epoch { number: 1, id: EpochId::from_bytes([2; 16]) },
        revision: RevisionNumber(3),
        mode: Mode::Converged,
        taken: Vec::new(),
        allowed_removals: None,
        is_final: false,
    }
}

fn good() -> Vec<u8> {
    let resources: Vec<Resource> = folders::rendered();
    Declaration::encode(&header(), &resources).unwrap()
}

/// Everything a host does with the bytes of a declaration before it does anything to its machine.
fn judged(bytes: &[u8]) {
    let declaration = match Declaration::parse(bytes) {
        Ok(declaration) => declaration,
        Err(error) => {
            assert!(!error.to_string().is_empty() && error.to_string().len() < 20_000, "{error}");
            assert!(!error.to_string().chars().any(char::is_control), "{error}");
            return;
        }
    };
    assert_eq!(Declaration::header_of(bytes).as_ref(), Ok(&declaration.header));
    assert_eq!(declaration.order().len(), declaration.entries.len());
    let known: Vec<Resource> = declaration.resources().cloned().collect();
    if known.len() == declaration.entries.len() {
        let written = Declaration::encode(&declaration.header, &known).unwrap();
        assert_eq!(
            Declaration::parse(&written).as_ref(),
            Ok(&declaration),
            "it is written as something else"
        );
    }
    for entry in &declaration.entries {
        if let Entry::Unsupported(unsupported) = entry {
            assert!(!unsupported.reason.chars().any(char::is_control), "{unsupported:?}");
            assert!(!unsupported.shown_key().chars().any(char::is_control), "{unsupported:?}");
        }
    }
    admitted(&declaration, bytes);
}

/// Whatever it says of itself, only a later one for this very node may replace what is held (S-11).
fn admitted(declaration: &Declaration, bytes: &[u8]) {
    let ours = header();
    let standing = Standing {
        control_plane_id: ours.control_plane_id,
        node: ours.node.clone(),
        generation: ours.generation,
        epoch: ours.epoch,
    };
    let held = Held {
        revision: Revision { epoch: ours.epoch, number: RevisionNumber(2) },
        sha256: Digest::of(b"held"),
    };
    let owned = ["file:/etc/site/a", "directory:/etc/site"];
    match admit(Some(&standing), Some(&held), declaration, Digest::of(bytes), owned.into_iter()) {
        Ok(_) => assert!(
            declaration.header.is_for_the_same(&ours) && declaration.header.revision > held.revision.number,
            "{:?}",
            declaration.header
        ),
        Err(refusal) => assert!(!refusal.refusal().code.is_empty() && !refusal.remedy().is_empty()),
    }
}

// rule: S-11
#[test]
fn a_declaration_whose_bytes_are_changed_is_read_or_refused_and_admitted_only_where_it_belongs() {
    let good = good();
    run::run(25_000, |random| judged(&change::bytes(random, &good, WORDS, &good)));
}

// rule: S-10
#[test]
fn a_declaration_whose_structure_is_changed_is_read_or_refused_and_admitted_only_where_it_belongs() {
    let good: Value = serde_json::from_slice(&good()).unwrap();
    run::run(15_000, |random| {
        let mut value = good.clone();
        for _ in 0..=random.below(3) {
            change::json(random, &mut value);
        }
        judged(&serde_json::to_vec(&value).unwrap());
    });
}
