use std::collections::BTreeSet;
use std::path::Path;

use super::*;
use crate::screen::tests::kept;

fn printed(json: bool) -> String {
    let (mut screen, out, _) = kept(json, None);
    assert_eq!(run(&mut screen).unwrap(), Exit::Done);
    out.text()
}

#[test]
fn what_it_prints_is_the_golden_text() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/api.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, printed(false)).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        golden == printed(false),
        "the messages changed: `tests/run bless` writes tests/golden/api.txt anew (twice, where a type changed: the \
         shapes are built in)"
    );
}

#[test]
fn every_kind_is_printed_with_its_address_its_door_and_both_its_shapes() {
    let text = printed(false);
    for kind in KINDS {
        assert!(text.contains(&format!("\n  {}  comes in {}", kind.name, kind.doors[0].in_words())));
        assert!(text.contains(&format!("\n{} — an address of the {}\n", kind.to, side(kind))));
    }
    let shapes = shapes().unwrap();
    for of in KINDS.iter().flat_map(|kind| [kind.asks, kind.answers]).filter_map(name) {
        assert!(shapes.get(&of).is_some(), "no shape of {of}: run `tests/run bless`");
    }
}

#[test]
fn every_type_a_shape_names_is_a_shape_or_a_plain_one() {
    let plain = BTreeSet::from(["text", "bool", "bytes", "u16", "u32", "u64", "i64", "list", "tuple"]);
    let shapes = shapes().unwrap();
    let mut open = vec![&shapes];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(of)) = fields.get("type") {
                    assert!(plain.contains(of.as_str()) || shapes.get(of).is_some(), "no shape of {of}");
                }
                open.extend(fields.values());
            }
            Value::Array(values) => open.extend(values),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

#[test]
fn as_json_it_is_one_object_with_kinds_documents_and_shapes() {
    let value: Value = serde_json::from_str(&printed(true)).unwrap();
    assert_eq!(value["kinds"].as_array().unwrap().len(), KINDS.len());
    let invite = value["kinds"].as_array().unwrap().iter().find(|kind| kind["kind"] == "invite").unwrap();
    assert_eq!((&invite["to"], &invite["asks"]), (&json!("fleet"), &json!("operator.Invite")));
    assert_eq!(value["shapes"]["operator.Invite"]["fields"][0]["name"], "node");
    assert_eq!(value["documents"], json!(DOCUMENTS));
}
