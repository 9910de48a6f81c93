//! The shapes of messages, read out of the protocol's own types: their fields, their serde attributes and their docs.
//! What is read is written into `controlplane/cli/api/shapes.json`, and held against the golden frames below.

mod read;
mod seen;

use std::collections::BTreeSet;

use serde_json::Value;
use tenure_protocol::kind::KINDS;
use tenure_protocol::wire::codec;
use tenure_tests::tree;

use crate::examples;
use seen::Seen;

const LIST: &str = "controlplane/cli/api/shapes.json";

/// What is told beside the bodies of messages: documents they name by digest, and what any answer may be instead.
const BESIDE: [&str; 3] = ["operator.Folder", "operator.Plan", "refusal.Refusal"];

fn of_the_sources() -> Value {
    let mut roots: Vec<String> = BESIDE.map(str::to_owned).to_vec();
    for of in KINDS.iter().flat_map(|kind| [kind.asks, kind.answers]).filter(|of| *of != "()") {
        roots.push(of.replace(' ', "").replace("::", "."));
    }
    read::Types::of_the_protocol().reached_from(&roots)
}

#[test]
fn the_shapes_that_are_built_in_are_those_of_the_protocols_types() {
    let text = format!("{:#}\n", of_the_sources());
    let path = tree::root().join(LIST);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert!(
        std::fs::read_to_string(&path).unwrap_or_default() == text,
        "{LIST} is behind the protocol's types: run `tests/run bless`"
    );
}

#[test]
fn every_golden_frame_has_exactly_the_shape_that_is_told_of_it() {
    let shapes = of_the_sources();
    for examples::Example { name, bytes, .. } in examples::all() {
        let of = match (name.strip_prefix("document."), name.strip_suffix(".answer")) {
            (Some(_), _) => continue,
            (None, Some(kind)) => kind_of(kind).answers,
            (None, None) => kind_of(&name).asks,
        };
        let seen: Seen = codec::decode(&bytes).unwrap();
        if of == "()" {
            assert_eq!(seen, Seen::Nil, "{name}");
            continue;
        }
        let of = of.replace(' ', "").replace("::", ".");
        seen.fits(&serde_json::json!({ "type": of }), &shapes).unwrap_or_else(|why| panic!("{name}: {why}"));
    }
}

fn kind_of(name: &str) -> &'static tenure_protocol::kind::Kind {
    KINDS.iter().find(|kind| kind.name == name).unwrap()
}

#[test]
fn every_shape_and_every_field_is_explained_in_words_without_marks_of_the_source() {
    let shapes = of_the_sources();
    for (name, shape) in shapes.as_object().unwrap() {
        let mut said: Vec<(String, &Value)> = vec![(name.clone(), &shape["means"])];
        for inner in ["fields", "words"] {
            for entry in shape[inner].as_array().into_iter().flatten() {
                let what = entry.get("name").or(entry.get("word")).unwrap();
                said.push((format!("{name}.{what}"), &entry["means"]));
            }
        }
        for (what, means) in said {
            let means = means.as_str().unwrap_or_default();
            assert!(!means.is_empty(), "{what} is not explained");
            assert!(!means.contains("[`") && !means.contains("::"), "{what}: {means}");
        }
    }
}

#[test]
fn a_frame_that_has_not_the_shape_is_seen() {
    let shapes = of_the_sources();
    let fits = |seen: Seen| seen.fits(&serde_json::json!({ "type": "operator.Retire" }), &shapes);
    let map = |name: &str, value: Seen| Seen::Map(vec![(name.to_owned(), value)]);
    assert_eq!(fits(map("node", Seen::Text("edge-1".into()))), Ok(()));
    for other in [
        map("node", Seen::Number(1)),
        map("nod", Seen::Text("edge-1".into())),
        Seen::Map(Vec::new()),
        Seen::Nil,
    ] {
        assert!(fits(other).is_err());
    }
    let names: BTreeSet<&String> = shapes.as_object().unwrap().keys().collect();
    assert!(names.len() > 60, "the types were not found");
}
