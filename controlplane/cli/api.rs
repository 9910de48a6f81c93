//! `tenure api`: every message there is, by address, with its doors and the shape of its body. Kinds, addresses and
//! doors come from the protocol's one table; shapes from a list that is read out of the protocol's own types by a
//! test, which also compares it with the golden frames. It asks no control plane.

use serde_json::{Value, json};
use tenure_protocol::kind::{Door, KINDS, Kind};

use crate::ending::{Exit, Trouble};
use crate::screen::Screen;

mod text;

/// The shape of every type that a message is made of; written by `tests/run bless`.
const SHAPES: &str = include_str!("api/shapes.json");

/// Bodies that are no messages of their own: content in JSON that messages name by digest.
const DOCUMENTS: [&str; 2] = ["operator.Folder", "operator.Plan"];

pub(crate) fn run(screen: &mut Screen) -> Result<Exit, Trouble> {
    let shapes = shapes()?;
    if screen.is_json() {
        screen.print_json(&whole(&shapes))?;
    } else {
        screen.print(&text::whole(&shapes))?;
    }
    Ok(Exit::Done)
}

fn shapes() -> Result<Value, Trouble> {
    serde_json::from_str(SHAPES)
        .map_err(|error| Trouble::ours("the shapes that are built in cannot be read", &error))
}

/// Everything, for programs.
fn whole(shapes: &Value) -> Value {
    let kinds: Vec<Value> = KINDS
        .iter()
        .map(|kind| {
            json!({
                "kind": kind.name,
                "at": side(kind),
                "to": kind.to,
                "doors": kind.doors.iter().map(|door| door.in_words()).collect::<Vec<_>>(),
                "asks": name(kind.asks),
                "answers": name(kind.answers),
            })
        })
        .collect();
    json!({ "kinds": kinds, "documents": DOCUMENTS, "shapes": shapes })
}

/// The name of a type as it is shown; none for an answer that only says it was done.
fn name(of: &str) -> Option<String> {
    (of != "()").then(|| of.replace("::", "."))
}

/// Which daemon performs a kind.
fn side(kind: &Kind) -> &'static str {
    let down = |door: &Door| match door {
        Door::LinkDown | Door::HostSocket => true,
        Door::Greeting | Door::Enrolling | Door::LinkUp | Door::Withdrawn | Door::Api(_) => false,
    };
    if kind.doors.iter().any(down) { "host" } else { "control plane" }
}

#[cfg(test)]
mod tests;
