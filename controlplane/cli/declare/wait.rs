//! Waiting for the nodes of a plan: until each has applied or failed its revision, or the time is up.

use std::time::Duration;

use tenure_protocol::operator::{Plan, RolloutLine, Standing};
use tokio::time::{Instant, sleep_until};

use crate::caller::Caller;
use crate::ending::Trouble;
use crate::rollout;
use crate::screen::Screen;
use crate::words::counted;

/// How often the control plane is asked.
const EVERY: Duration = Duration::from_millis(500);

/// Polls until every node of `plan` is settled or `within` is over; the last state either way.
pub(crate) async fn until_settled(
    control: &Caller,
    plan: &Plan,
    within: Duration,
    screen: &Screen,
) -> Result<Vec<RolloutLine>, Trouble> {
    let end = Instant::now() + within;
    let bar = screen.bar("applying", plan.nodes.iter().map(|node| node.resources).sum());
    loop {
        let lines = of(rollout::all(control).await?, plan);
        bar.set_position(lines.iter().map(|line| line.reported.min(line.resources)).sum());
        // A node that was retired meanwhile has no line, and nobody waits for it any more.
        let settled = lines.iter().filter(|line| line.standing != Standing::Outstanding).count();
        let nodes = counted(lines.len().try_into().unwrap_or(u64::MAX), "node");
        bar.set_prefix(format!("resources, {settled} of {nodes}"));
        let now = Instant::now();
        if settled >= lines.len() || now >= end {
            bar.finish_and_clear();
            return Ok(lines);
        }
        sleep_until(end.min(now + EVERY)).await;
    }
}

/// The lines of the nodes of `plan`. One that was retired meanwhile has none.
pub(crate) fn of(lines: Vec<RolloutLine>, plan: &Plan) -> Vec<RolloutLine> {
    let mut lines = lines;
    lines.retain(|line| plan.nodes.iter().any(|node| node.node == line.node));
    for line in &mut lines {
        let declared_here = plan.nodes.iter().find(|node| node.node == line.node).map(|node| node.to);
        // What stands for an older revision says nothing of this one.
        if declared_here.is_some_and(|to| line.declared < to) {
            line.standing = Standing::Outstanding;
        }
    }
    lines
}
