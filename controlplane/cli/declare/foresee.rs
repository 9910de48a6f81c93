//! What each node of a plan would make of it, asked of the node itself: every resource as change, keep, or cannot know.
//! Of a node that is not there it cannot be known, and that is said.

use std::time::Duration;

use serde_json::{Value, json};
use tenure_protocol::foresight::{ForeseeOf, Foreseen, ForeseenLine, ForeseenPage, Verdict};
use tenure_protocol::id::NodeId;
use tenure_protocol::operator::{NodePlan, Plan};
use tenure_protocol::refusal::Refusal;
use tenure_protocol::resource::Content;
use tenure_protocol::text::shown;
use tenure_protocol::wire::codec;
use tokio::time::{Instant, timeout_at};

use crate::caller::Caller;
use crate::ending::{Exit, Trouble};
use crate::screen::{Screen, Tone};

/// How long all nodes together are asked. Those whose turn does not come are said not to have been asked.
pub(super) const WITHIN: Duration = Duration::from_secs(10 * 60);
/// The most lines that are taken of one node: more than it can be declared.
const MOST: usize = 200_000;
/// The most bytes of lines that are taken of one node: far more than anybody reads.
const MOST_BYTES: usize = 64 * 1024 * 1024;
/// The longest line of detail.
const LINE: usize = 1000;

/// What one node says, or why nobody knows.
pub(super) type Said = (NodeId, Result<Foreseen, Refusal>);

/// Asks every node of the plan, one after the other; after `within` nobody more is asked.
pub(super) async fn all(
    control: &Caller,
    plan: &Plan,
    within: Duration,
    screen: &Screen,
) -> Result<Vec<Said>, Trouble> {
    let deadline = Instant::now() + within;
    let bar = screen.bar("asking the nodes", u64::try_from(plan.nodes.len()).unwrap_or(u64::MAX));
    let mut said = Vec::with_capacity(plan.nodes.len());
    for NodePlan { node, declaration, cannot_know, .. } in &plan.nodes {
        let one = match (declaration, cannot_know) {
            (_, Some(why)) => Err(why.clone().from_outside()),
            (None, None) => Err(not_told()),
            (Some(_), None) if Instant::now() >= deadline => Err(not_asked(within)),
            (Some(declaration), None) => one(control, node, *declaration, deadline).await?,
        };
        bar.inc(1);
        said.push((node.clone(), one));
    }
    bar.finish_and_clear();
    Ok(said)
}

/// Page by page, until the node has no more, or has said more than it can have to say, or the time is over. What is our
/// own trouble ends the command; what is the node's is what is known of it.
async fn one(
    control: &Caller,
    node: &NodeId,
    declaration: Content,
    deadline: Instant,
) -> Result<Result<Foreseen, Refusal>, Trouble> {
    let (mut lines, mut bytes): (Vec<ForeseenLine>, usize) = (Vec::new(), 0);
    loop {
        let from = u64::try_from(lines.len()).unwrap_or(u64::MAX);
        let asked = ForeseeOf { node: node.clone(), declaration, from };
        let page = match timeout_at(deadline, control.ask_of(node, &asked)).await {
            Ok(Ok(page)) => page,
            Ok(Err(Trouble { exit: Exit::Refused, refusal })) => return Ok(Err(refusal.from_outside())),
            Ok(Err(trouble)) => return Err(trouble),
            Err(_) => return Ok(Err(not_through())),
        };
        let ForeseenPage { at, refused, lines: fresh, more } = page;
        bytes += fresh.iter().map(|line| codec::encode(line).len()).sum::<usize>();
        let says_nothing = fresh.is_empty();
        lines.extend(fresh);
        if lines.len() > MOST || bytes > MOST_BYTES || more && says_nothing {
            return Ok(Err(endless()));
        }
        if !more {
            return Ok(Ok(Foreseen { at, refused: refused.map(Refusal::from_outside), lines }));
        }
    }
}

/// One object a node, for programs.
pub(super) fn json(said: &[Said]) -> Value {
    let one = |(node, said): &Said| match said {
        Ok(Foreseen { at, refused, lines }) => {
            json!({ "node": node, "at": at, "refused": refused, "lines": lines })
        }
        Err(refusal) => json!({ "node": node, "cannot_know": refusal }),
    };
    Value::Array(said.iter().map(one).collect())
}

pub(super) fn print(said: &[Said], screen: &mut Screen) -> Result<(), Trouble> {
    for (node, said) in said {
        match said {
            Err(refusal) => {
                let Refusal { code, happened, .. } = refusal;
                let why = format!("{} ({})", shown(happened, LINE), shown(code, 64));
                screen.print(&format!("on {node}: cannot know: {why}\n"))?;
            }
            Ok(foreseen) => print_one(node, foreseen, screen)?,
        }
    }
    Ok(())
}

fn print_one(node: &NodeId, foreseen: &Foreseen, screen: &mut Screen) -> Result<(), Trouble> {
    screen.print(&format!("on {node}, as it is now: {}\n", sum(&foreseen.lines)))?;
    if let Some(Refusal { code, happened, remedy, .. }) = &foreseen.refused {
        let (happened, code, remedy) = (shown(happened, LINE), shown(code, 64), shown(remedy, LINE));
        screen.print(&format!("  it would refuse all of it: {happened} ({code}); {remedy}\n"))?;
    }
    for line in &foreseen.lines {
        let text = text(line, screen);
        screen.print(&text)?;
    }
    Ok(())
}

fn sum(lines: &[ForeseenLine]) -> String {
    let count = |verdict| lines.iter().filter(|line| line.verdict == verdict).count();
    let all = [Verdict::Change, Verdict::Keep, Verdict::CannotKnow];
    all.map(|verdict| format!("{} {}", count(verdict), verdict.as_str())).join(", ")
}

fn text(line: &ForeseenLine, screen: &Screen) -> String {
    let tone = match line.verdict {
        Verdict::Change => Some(Tone::Changed),
        Verdict::Keep | Verdict::CannotKnow => None,
    };
    let word = match (line.verdict.as_str(), line.what.as_str()) {
        (verdict, what) if verdict == what => verdict.to_owned(),
        (verdict, what) => format!("{verdict}: {what}"),
    };
    let head = format!("  {word:<14}{}  ({})", shown(&line.key, LINE), shown(&line.module, 63));
    let head = tone.map_or_else(|| head.as_str().into(), |tone| screen.paint(tone, &head));
    let mut text = format!("{head}\n");
    for detail in &line.detail {
        let detail = detail.split('\t').map(|part| shown(part, LINE)).collect::<Vec<_>>().join("\t");
        let tone = match detail.as_bytes().first() {
            Some(b'+') => Some(Tone::Added),
            Some(b'-') => Some(Tone::Gone),
            _ => None,
        };
        let detail = tone.map_or_else(|| detail.as_str().into(), |tone| screen.paint(tone, &detail));
        text.push_str(&format!("      {detail}\n"));
    }
    for one in &line.packages {
        let version = |version: &Option<String>| {
            version.as_deref().map_or_else(|| "none".to_owned(), |version| shown(version, 100))
        };
        let (name, from, to) = (shown(&one.name, 100), version(&one.from), version(&one.to));
        text.push_str(&format!("      package {name}  {from} → {to}\n"));
    }
    text
}

fn not_told() -> Refusal {
    Refusal::new(
        "declaration_not_here",
        "the control plane named no declaration to ask the node about",
        "it is of an older version; what the node would make of it is not known",
        "compare `tenure --version` with `tenure nodes`, and use the command line of the same release",
    )
}

fn not_asked(within: Duration) -> Refusal {
    Refusal::new(
        "not_asked",
        format!("the nodes before it took all of the {} min that asking may take", within.as_secs() / 60),
        "it was not asked what it would make of the declaration; nothing was changed",
        "name fewer nodes in `fleet.toml` while you plan, and run `tenure declare DIR --plan` again",
    )
}

fn not_through() -> Refusal {
    Refusal::new(
        "foresight_unfinished",
        "the node was still saying what it would do when the time for all nodes was over",
        "the half of it that is known is not shown; nothing was changed",
        "name fewer nodes in `fleet.toml` while you plan, and run `tenure declare DIR --plan` again",
    )
}

fn endless() -> Refusal {
    Refusal::new(
        "foresight_endless",
        "the node says more than any declaration has to say, or says that there is more and names nothing",
        "it is not known what it would do; the node is of another version, or not what it says it is; nothing was changed",
        "look at the node itself with `tenure-host plan`, and compare its version with `tenure nodes`",
    )
}

#[cfg(test)]
mod tests;
