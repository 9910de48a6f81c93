//! `tenure rollout`: how far what is declared has come, in three columns that are never mixed: applied, failed,
//! outstanding (H-21). `declare` shows the same of the nodes it declared for.

use serde_json::{Value, json};
use tenure_protocol::operator::{Rollout, RolloutLine, Standing};
use tenure_protocol::text::shown;

use crate::caller::Caller;
use crate::ending::{Exit, Trouble};
use crate::screen::Screen;

const STANDINGS: [Standing; 3] = [Standing::Applied, Standing::Failed, Standing::Outstanding];

pub(crate) async fn run(control: &Caller, screen: &mut Screen) -> Result<Exit, Trouble> {
    let lines = all(control).await?;
    if screen.is_json() {
        screen.print_json(&columns(&lines))?;
    } else if lines.is_empty() {
        screen.say("nothing is declared yet: `tenure declare DIR` declares what a fleet folder says");
    } else {
        print(&lines, screen)?;
    }
    Ok(Exit::Done)
}

/// Every node that has a declaration.
pub(crate) async fn all(control: &Caller) -> Result<Vec<RolloutLine>, Trouble> {
    let mut lines: Vec<RolloutLine> = Vec::new();
    loop {
        let after = lines.last().map(|line| line.node.clone());
        let page = control.ask(&Rollout { after }).await?;
        let more = page.more && !page.nodes.is_empty();
        lines.extend(page.nodes);
        if !more {
            return Ok(lines);
        }
    }
}

/// The three columns, for programs.
pub(crate) fn columns(lines: &[RolloutLine]) -> Value {
    let of = |standing| lines.iter().filter(|line| line.standing == standing).collect::<Vec<_>>();
    json!({
        "applied": of(Standing::Applied),
        "failed": of(Standing::Failed),
        "outstanding": of(Standing::Outstanding),
    })
}

/// A line a node, and the sum.
pub(crate) fn print(lines: &[RolloutLine], screen: &mut Screen) -> Result<(), Trouble> {
    let table = screen.table(
        &["NODE", "REVISION", "STANDING", "REPORTED", "OUTCOMES", "WHY"],
        lines.iter().map(row).collect(),
    );
    screen.print(&format!("{table}{}\n", in_words(lines)))
}

/// `3 applied, 0 failed, 1 outstanding`: each of the three, also where it is none.
pub(crate) fn in_words(lines: &[RolloutLine]) -> String {
    let count = |standing| lines.iter().filter(|line| line.standing == standing).count();
    STANDINGS.map(|standing| format!("{} {}", count(standing), word(standing))).join(", ")
}

const fn word(standing: Standing) -> &'static str {
    match standing {
        Standing::Applied => "applied",
        Standing::Failed => "failed",
        Standing::Outstanding => "outstanding",
    }
}

fn row(line: &RolloutLine) -> Vec<String> {
    let outcomes = if line.reported == 0 { String::new() } else { line.counts.in_words() };
    // A reason that only says the counts again is none.
    let reason = if line.reason == outcomes { String::new() } else { shown(&line.reason, 300) };
    vec![
        line.node.to_string(),
        line.declared.to_string(),
        word(line.standing).to_owned(),
        format!("{} of {}", line.reported, line.resources),
        outcomes,
        reason,
    ]
}

#[cfg(test)]
pub(crate) mod tests;
