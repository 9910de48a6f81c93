//! `tenure nodes`: the fleet, a line a node.

use serde_json::json;
use tenure_protocol::id::Millis;
use tenure_protocol::machine::MachineState;
use tenure_protocol::operator::{NodeLine, Nodes, Revisions};
use tenure_protocol::text::shown;

use crate::caller::Caller;
use crate::ending::{Exit, Trouble};
use crate::screen::Screen;
use crate::words::{NONE, ago, counted};

const HEADER: [&str; 7] = ["NODE", "STATE", "MODE", "LAST CONTACT", "REVISION", "VERSION", "NOTES"];

pub(crate) async fn run(control: &Caller, screen: &mut Screen, now: Millis) -> Result<Exit, Trouble> {
    let nodes = all(control).await?;
    if screen.is_json() {
        screen.print_json(&json!(nodes))?;
    } else if nodes.is_empty() {
        screen.say("no nodes yet: `tenure invite NAME` reserves one and prints the token for its machine");
    } else {
        let rows = nodes.iter().map(|node| row(node, now)).collect();
        let table = screen.table(&HEADER, rows);
        screen.print(&table)?;
    }
    Ok(Exit::Done)
}

async fn all(control: &Caller) -> Result<Vec<NodeLine>, Trouble> {
    let mut nodes: Vec<NodeLine> = Vec::new();
    loop {
        let after = nodes.last().map(|line| line.node.clone());
        let page = control.ask(&Nodes { after }).await?;
        let more = page.more && !page.nodes.is_empty();
        nodes.extend(page.nodes);
        if !more {
            return Ok(nodes);
        }
    }
}

fn row(line: &NodeLine, now: Millis) -> Vec<String> {
    vec![
        line.node.to_string(),
        line.state.to_string(),
        line.mode.to_string(),
        line.last_contact.map_or_else(|| "never".to_owned(), |then| ago(then, now)),
        revision(line.revision),
        line.version.as_deref().map_or_else(|| NONE.to_owned(), |version| shown(version, 40)),
        notes(line).join(", "),
    ]
}

/// Both sides in one cell while they agree, and each by name while they do not.
fn revision(revision: Revisions) -> String {
    match (revision.declared, revision.applied) {
        (None, None) => NONE.to_owned(),
        (Some(declared), Some(applied)) if declared == applied => declared.to_string(),
        (Some(declared), Some(applied)) => format!("{declared}, has {applied}"),
        (Some(declared), None) => format!("{declared}, has none"),
        (None, Some(applied)) => format!("none, has {applied}"),
    }
}

/// What is worth a word beyond the columns.
pub(crate) fn notes(line: &NodeLine) -> Vec<String> {
    let mut notes = Vec::new();
    for (count, what) in [(line.failed, "failed"), (line.outstanding, "outstanding"), (line.held, "held")] {
        if count > 0 {
            notes.push(format!("{count} {what}"));
        }
    }
    match line.machine_state {
        None | Some(MachineState::Enrolled) => {}
        Some(other) => notes.push(format!("says it is {other}")),
    }
    if !line.assignable && line.version.is_some() {
        notes.push("not assignable".to_owned());
    }
    if !line.behind.is_empty() {
        let names: Vec<String> = line.behind.iter().map(|name| shown(name, 40)).collect();
        notes.push(format!(
            "{} behind: {}",
            counted(line.behind.len().try_into().unwrap_or(u64::MAX), "component"),
            names.join(" ")
        ));
    }
    notes
}

#[cfg(test)]
pub(crate) mod tests;
