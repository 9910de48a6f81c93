//! `tenure declare DIR`: the folder is read, uploaded by digest and declared whole or not at all. A deploy ends when
//! the declaration is written; its result says which nodes have applied it, failed it or are outstanding, and waits
//! for none unless asked (H-21).

pub(crate) mod folder;
mod foresee;
mod plan;
mod wait;

use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use tenure_protocol::operator::{Declare, Plan, RolloutLine, Standing};
use tenure_protocol::refusal::Refusal;

use crate::caller::Caller;
use crate::command;
use crate::content;
use crate::ending::{Exit, Trouble};
use crate::rollout;
use crate::screen::Screen;
use crate::socket;

pub(crate) async fn run(
    order: &command::Declare,
    named: Option<&Path>,
    screen: &mut Screen,
) -> Result<Exit, Trouble> {
    let gathered = folder::gather(&order.dir).map_err(|error| Trouble::refused(&error))?;
    let control = Arc::new(socket::control_plane(named).await?);
    declare(order, &gathered, &control, screen).await
}

async fn declare(
    order: &command::Declare,
    gathered: &folder::Gathered,
    control: &Arc<Caller>,
    screen: &mut Screen,
) -> Result<Exit, Trouble> {
    let bar = screen.bytes_bar("uploading", gathered.bytes());
    content::upload(control, &gathered.contents, &bar).await?;
    bar.finish_and_clear();
    let asked = Declare { folder: gathered.listing, plan: order.plan, allow_removals: order.allow_removals };
    let declared = control.ask(&asked).await.map_err(nothing_matched)?;
    let plan = fetch(control, declared.plan, screen).await?;
    if plan.nodes.is_empty() {
        return Err(no_nodes(&plan));
    }
    let changes = if order.plan { plan::Says::WouldChange } else { plan::Says::Changed };
    if !screen.is_json() {
        plan::print(&plan, changes, screen)?;
    }
    if order.plan {
        return foretold(&plan, control, screen).await;
    }
    // Also where nothing changed: what was declared before may still be on its way.
    let lines = match order.wait {
        Some(within) => wait::until_settled(control, &plan, within, screen).await?,
        None => wait::of(rollout::all(control).await?, &plan),
    };
    if screen.is_json() {
        let columns = rollout::columns(&lines);
        screen.print_json(&json!({ "written": declared.written, "plan": plan, "rollout": columns }))?;
    }
    let exit = if order.wait.is_some() { verdict(&lines) } else { Exit::Done };
    if !screen.is_json() {
        print(&lines, order.wait.is_some(), screen)?;
        screen.say(hint(exit, order.wait.is_some(), &lines));
    }
    Ok(exit)
}

/// What each node says of the plan, and how that ends: a plan that would be refused is told whole, and still ends as every
/// other refusal does. Nothing of it was written.
async fn foretold(plan: &Plan, control: &Arc<Caller>, screen: &mut Screen) -> Result<Exit, Trouble> {
    let foreseen = foresee::tell(control, plan, screen).await?;
    let refused = plan.nodes.iter().find_map(|node| node.refused.clone());
    if screen.is_json() {
        let mut whole = json!({ "written": false, "plan": plan, "foreseen": foreseen });
        if let Some(refusal) = &refused {
            whole["refusal"] = json!(refusal);
        }
        screen.print_json(&whole)?;
    }
    let Some(refusal) = refused else { return Ok(Exit::Done) };
    let trouble = Trouble::from(refusal);
    screen.explain(&trouble);
    Ok(trouble.exit)
}

async fn fetch(
    control: &Caller,
    document: tenure_protocol::resource::Content,
    screen: &Screen,
) -> Result<Plan, Trouble> {
    let bar = screen.bytes_bar("fetching the plan", document.size);
    let bytes = content::fetch(control, &[document], &bar).await?.into_values().next().unwrap_or_default();
    bar.finish_and_clear();
    serde_json::from_slice(&bytes)
        .map_err(|error| Trouble::ours("the plan that the control plane made cannot be read", &error))
}

fn print(lines: &[RolloutLine], waited: bool, screen: &mut Screen) -> Result<(), Trouble> {
    if waited {
        screen.print("\n")?;
        rollout::print(lines, screen)
    } else {
        screen.print(&format!("now: {}\n", rollout::in_words(lines)))
    }
}

/// What may be asked next.
fn hint(exit: Exit, waited: bool, lines: &[RolloutLine]) -> &'static str {
    if exit == Exit::Failed {
        "`tenure node NAME` shows what failed on a node, and why"
    } else if exit == Exit::Outstanding {
        "the time is up, and nothing was called off: `tenure rollout` shows when the rest has come"
    } else if !waited && lines.iter().any(|line| line.standing != Standing::Applied) {
        "nobody was waited for: `tenure rollout` shows how far each node is"
    } else {
        "every node of the folder has applied it"
    }
}

/// A node that failed is certain; one that is outstanding may still come.
fn verdict(lines: &[RolloutLine]) -> Exit {
    if lines.iter().any(|line| line.standing == Standing::Failed) {
        Exit::Failed
    } else if lines.iter().any(|line| line.standing == Standing::Outstanding) {
        Exit::Outstanding
    } else {
        Exit::Done
    }
}

/// A folder that names no node is refused as every other that cannot be declared, and is told apart by its status.
fn nothing_matched(trouble: Trouble) -> Trouble {
    match trouble.refusal.is("no_nodes") {
        true => Trouble { exit: Exit::NothingMatched, ..trouble },
        false => trouble,
    }
}

fn no_nodes(plan: &Plan) -> Trouble {
    let others = match plan.not_in_folder.len() {
        0 => "the control plane knows none either".to_owned(),
        count => format!("the {count} the control plane knows keep what they have"),
    };
    Trouble {
        exit: Exit::NothingMatched,
        refusal: Refusal::new(
            "no_nodes",
            "the folder names no node",
            format!("nothing was declared for anybody; {others}"),
            "give fleet.toml a section [node.\"NAME\"] for each node it is for",
        ),
    }
}

#[cfg(test)]
mod tests;
