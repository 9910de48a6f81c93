//! What each node of a plan would make of it, asked of the node itself: every resource as change, keep, or cannot know.
//! Of a node that is not there it cannot be known, and that is said.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use indicatif::ProgressBar;
use serde_json::{Value, json};
use tenure_protocol::foresight::{
    ForeseeOf, Foreseen, ForeseenLine, ForeseenPage, MOST_AT_ONCE, Verdict, in_words,
};
use tenure_protocol::id::NodeId;
use tenure_protocol::operator::{NodePlan, Plan};
use tenure_protocol::refusal::Refusal;
use tenure_protocol::resource::Content;
use tenure_protocol::text::shown;
use tenure_protocol::wire::codec;
use tokio::task::JoinSet;
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
/// How many bytes of lines are held of nodes that answered before one that is told before them: while more are, nobody
/// else is asked. So much is no trouble for a machine that operates a fleet, and ordinary answers never come to it. Those
/// that are being asked by then may still bring theirs.
const MOST_HELD: usize = 64 * 1024 * 1024;
/// The longest sentence of a refusal.
const LINE: usize = 1000;

/// What one node says, or why nobody knows.
pub(super) type Said = (NodeId, Result<Foreseen, Refusal>);

/// What one node said, and how many bytes of lines that is.
struct Heard {
    said: Result<Foreseen, Refusal>,
    bytes: usize,
}

impl From<Refusal> for Heard {
    fn from(refusal: Refusal) -> Self {
        Self { said: Err(refusal), bytes: 0 }
    }
}

/// How long all nodes together are asked, and how much of what they said may wait to be told.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    within: Duration,
    held: usize,
}

pub(super) const BOUNDS: Bounds = Bounds { within: WITHIN, held: MOST_HELD };

/// Asks every node of the plan, [`MOST_AT_ONCE`] at the same time; after a while nobody more is asked. Each is handed to
/// `told` as soon as those before it in the plan were: the order is always the same, and one that is slow holds up what
/// is told of those after it, but not that they are asked, until too much is held of them. Ends early where `told` wants
/// no more.
pub(super) async fn each(
    control: &Arc<Caller>,
    plan: &Plan,
    Bounds { within, held }: Bounds,
    bar: &ProgressBar,
    mut told: impl FnMut(Said) -> Result<ControlFlow<()>, Trouble>,
) -> Result<(), Trouble> {
    let deadline = Instant::now() + within;
    let mut turns = plan.nodes.iter().enumerate();
    let mut asking = JoinSet::new();
    let (mut said, mut bytes): (BTreeMap<usize, Heard>, usize) = (BTreeMap::new(), 0);
    for (next, NodePlan { node, .. }) in plan.nodes.iter().enumerate() {
        bar.set_prefix(format!("(waiting for {node})"));
        let one = loop {
            if let Some(heard) = said.remove(&next) {
                bytes = bytes.saturating_sub(heard.bytes);
                break heard.said;
            }
            // Turns come in the order of the plan: where something is held, the one it waits for is being asked.
            while bytes <= held
                && asking.len() < MOST_AT_ONCE
                && let Some((turn, plan)) = turns.next()
            {
                let (control, node, question) = (Arc::clone(control), plan.node.clone(), question(plan));
                let within = Within { within, deadline };
                asking.spawn(async move { (turn, ask(&control, &node, question, within).await) });
            }
            match asking.join_next().await {
                Some(Ok((turn, heard))) => {
                    let heard = heard?;
                    bytes = bytes.saturating_add(heard.bytes);
                    said.insert(turn, heard);
                }
                Some(Err(broken)) => return Err(Trouble::ours("asking the nodes broke off", &broken)),
                // Each has a turn, and has said something by then.
                None => return Ok(()),
            }
            bar.inc(1);
        };
        if told((node.clone(), one))?.is_break() {
            return Ok(());
        }
    }
    Ok(())
}

/// What a node is asked about, or why it is not asked.
fn question(plan: &NodePlan) -> Result<Content, Refusal> {
    match (&plan.declaration, &plan.cannot_know) {
        (_, Some(why)) => Err(why.clone().from_outside()),
        (None, None) => Err(not_told()),
        (Some(declaration), None) => Ok(*declaration),
    }
}

/// How long all are asked, and until when that is.
#[derive(Clone, Copy)]
struct Within {
    within: Duration,
    deadline: Instant,
}

async fn ask(
    control: &Caller,
    node: &NodeId,
    question: Result<Content, Refusal>,
    Within { within, deadline }: Within,
) -> Result<Heard, Trouble> {
    match question {
        Err(why) => Ok(why.into()),
        Ok(_) if Instant::now() >= deadline => Ok(not_asked(within).into()),
        Ok(declaration) => one(control, node, declaration, deadline).await,
    }
}

/// Page by page, until the node has no more, or has said more than it can have to say, or the time is over. What is our
/// own trouble ends the command; what is the node's is what is known of it.
async fn one(
    control: &Caller,
    node: &NodeId,
    declaration: Content,
    deadline: Instant,
) -> Result<Heard, Trouble> {
    let (mut lines, mut bytes): (Vec<ForeseenLine>, usize) = (Vec::new(), 0);
    loop {
        let from = u64::try_from(lines.len()).unwrap_or(u64::MAX);
        let asked = ForeseeOf { node: node.clone(), declaration, from };
        let page = match timeout_at(deadline, control.ask_of(node, &asked)).await {
            Ok(Ok(page)) => page,
            Ok(Err(Trouble { exit: Exit::Refused, refusal })) => return Ok(refusal.from_outside().into()),
            Ok(Err(trouble)) => return Err(trouble),
            Err(_) => return Ok(not_through().into()),
        };
        let ForeseenPage { at, refused, lines: fresh, more } = page;
        bytes += fresh.iter().map(|line| codec::encode(line).len()).sum::<usize>();
        let says_nothing = fresh.is_empty();
        lines.extend(fresh);
        if lines.len() > MOST || bytes > MOST_BYTES || more && says_nothing {
            return Ok(endless().into());
        }
        if !more {
            let refused = refused.map(Refusal::from_outside);
            return Ok(Heard { said: Ok(Foreseen { at, refused, lines }), bytes });
        }
    }
}

/// Prints what each node says, as it comes; for programs all of it is gathered into one value.
pub(super) async fn tell(
    control: &Arc<Caller>,
    plan: &Plan,
    screen: &mut Screen,
) -> Result<Vec<Value>, Trouble> {
    let bar = screen.bar("asking the nodes", u64::try_from(plan.nodes.len()).unwrap_or(u64::MAX));
    let mut all = Vec::new();
    let told = |said: Said| {
        if screen.is_json() {
            all.push(json(&said));
        } else {
            bar.suspend(|| print(&said, screen))?;
        }
        Ok(if screen.is_closed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    };
    each(control, plan, BOUNDS, &bar, told).await?;
    bar.finish_and_clear();
    Ok(all)
}

/// What one node says, for programs.
fn json((node, said): &Said) -> Value {
    match said {
        Ok(Foreseen { at, refused, lines }) => {
            json!({ "node": node, "at": at, "refused": refused, "lines": lines })
        }
        Err(refusal) => json!({ "node": node, "cannot_know": refusal }),
    }
}

fn print((node, said): &Said, screen: &mut Screen) -> Result<(), Trouble> {
    match said {
        Ok(foreseen) => print_one(node, foreseen, screen),
        Err(refusal) => {
            let Refusal { code, happened, .. } = refusal;
            let why = format!("{} ({})", shown(happened, LINE), shown(code, 64));
            screen.print(&format!("\non {node}: cannot know: {why}\n"))
        }
    }
}

fn print_one(node: &NodeId, foreseen: &Foreseen, screen: &mut Screen) -> Result<(), Trouble> {
    screen.print(&format!("\non {node}, as it is now: {}\n", in_words(&foreseen.lines)))?;
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

fn text(line: &ForeseenLine, screen: &Screen) -> String {
    let (head, below) = line.in_words();
    let tone = match line.verdict {
        Verdict::Change => Some(Tone::Changed),
        Verdict::Keep | Verdict::CannotKnow => None,
    };
    let mut text = format!("  {}\n", screen.paint(tone, &head));
    for line in below {
        text.push_str(&format!("      {}\n", screen.paint(Tone::of_a_diff(&line), &line)));
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
