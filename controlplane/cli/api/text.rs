//! The messages as people read them.

use std::collections::BTreeSet;

use serde_json::Value;
use tenure_protocol::kind::{KINDS, Kind};

use super::{DOCUMENTS, name, side};
use crate::table::table;

const HEAD: &str = "\
A frame is a 4-byte big-endian length and one MessagePack value with named fields. A question is
{to, id, kind, body}; its answer {re, ok} or {re, refusal}; what is told unasked {from, seq, kind, body}.
`body` and `ok` are bytes that hold a value of the shape named here. A field marked `?` may be left out;
`or nothing` is nil. Fields that are not known are ignored. What ends in `_ms` is milliseconds, a size is bytes.
A refusal has a stable `code`: match on that.
";

/// All of it.
pub(super) fn whole(shapes: &Value) -> String {
    let mut text = HEAD.to_owned();
    let mut shown = BTreeSet::new();
    for at in ["control plane", "host"] {
        for to in addresses(at) {
            text.push_str(&format!("\n{to} — an address of the {at}\n"));
            for kind in KINDS.iter().filter(|kind| side(kind) == at && kind.to == to) {
                text.push_str(&one(kind, shapes, &mut shown));
            }
        }
    }
    text.push_str("\ndocuments — content in JSON that messages name by digest\n");
    for document in DOCUMENTS {
        text.push_str(&format!("  {}", titled(document, shapes)));
        text.push_str(&body(document, shapes));
        shown.insert(document.to_owned());
    }
    text.push_str("\nshapes — what the fields above are made of\n");
    for shape in shapes.as_object().into_iter().flat_map(|shapes| shapes.keys()) {
        if !shown.contains(shape) {
            text.push_str(&format!("  {}", titled(shape, shapes)));
            text.push_str(&body(shape, shapes));
        }
    }
    text
}

/// The addresses of one side, in the order of the table.
fn addresses(at: &str) -> Vec<&'static str> {
    let mut addresses: Vec<&str> = Vec::new();
    for kind in KINDS.iter().filter(|kind| side(kind) == at) {
        if !addresses.contains(&kind.to) {
            addresses.push(kind.to);
        }
    }
    addresses
}

fn one(kind: &Kind, shapes: &Value, shown: &mut BTreeSet<String>) -> String {
    let doors: Vec<&str> = kind.doors.iter().map(|door| door.in_words()).collect();
    let mut text = format!("\n  {}  comes in {}\n", kind.name, doors.join(", or "));
    for (verb, of) in [("asks", name(kind.asks)), ("answers", name(kind.answers))] {
        match of {
            None => text.push_str(&format!("    {verb}  nothing but that it was done\n")),
            Some(of) if shown.contains(&of) => text.push_str(&format!("    {verb}  {of}, as above\n")),
            Some(of) => {
                text.push_str(&format!("    {verb}  {}", titled(&of, shapes)));
                text.push_str(&body(&of, shapes));
                shown.insert(of);
            }
        }
    }
    text
}

fn titled(name: &str, shapes: &Value) -> String {
    format!("{name}: {}\n", means(&shapes[name]))
}

/// The lines of a shape, indented; a shape without fields has none.
fn body(name: &str, shapes: &Value) -> String {
    let shape = &shapes[name];
    let rows = rows(shape);
    if rows.is_empty() {
        return match shape["shape"].as_str() {
            Some("fields") => "      no fields\n".to_owned(),
            _ => format!("      {}\n", form(shape)),
        };
    }
    indented(&table(&[], rows, None))
}

fn rows(shape: &Value) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = list(&shape["fields"]).iter().map(field).collect();
    for word in list(&shape["words"]) {
        let what = match word.get("type") {
            Some(_) => form(word),
            None => "word".to_owned(),
        };
        rows.push(vec![text(&word["word"]), what, means(word)]);
        for inner in list(&word["fields"]) {
            let mut row = field(inner);
            if let Some(name) = row.first_mut() {
                *name = format!("  {name}");
            }
            rows.push(row);
        }
    }
    rows
}

fn field(field: &Value) -> Vec<String> {
    let optional = if field["optional"] == Value::Bool(true) { "?" } else { "" };
    vec![format!("{}{optional}", text(&field["name"])), form(field), means(field)]
}

/// A type in words.
fn form(of: &Value) -> String {
    let mut form = match text(&of["type"]).as_str() {
        "list" => format!("list of {}", self::form(&of["of"])),
        "tuple" => {
            let parts: Vec<String> = list(&of["of"]).iter().map(self::form).collect();
            format!("[{}]", parts.join(", "))
        }
        plain => plain.to_owned(),
    };
    if let Some(most) = of["most"].as_u64() {
        form.push_str(&format!(", at most {most}"));
    }
    if let Some(length) = of["length"].as_u64() {
        form.push_str(&format!(", {length} of them"));
    }
    if of["nothing"] == Value::Bool(true) {
        form.push_str(" or nothing");
    }
    if let Some(rule) = of["rule"].as_str() {
        form.push_str(&format!(": {rule}"));
    }
    form
}

fn means(of: &Value) -> String {
    text(&of["means"])
}

fn text(of: &Value) -> String {
    of.as_str().unwrap_or_default().to_owned()
}

fn list(of: &Value) -> &[Value] {
    of.as_array().map_or(&[], Vec::as_slice)
}

fn indented(table: &str) -> String {
    table.lines().map(|line| format!("      {line}\n")).collect()
}
