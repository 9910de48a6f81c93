//! What a declaration changes, node by node, as a person reads it.

use tenure_protocol::operator::{Change, ChangeKind, NodePlan, Plan};
use tenure_protocol::refusal::Refusal;
use tenure_protocol::text::{shown, shown_line};

use crate::ending::Trouble;
use crate::screen::{Screen, Tone};
use crate::words::counted;

/// The longest line of a difference.
const LINE: usize = 1000;

/// Whether it is done or only shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Says {
    Changed,
    WouldChange,
}

pub(crate) fn print(plan: &Plan, says: Says, screen: &mut Screen) -> Result<(), Trouble> {
    for node in &plan.nodes {
        screen.print(&format!("{}\n", head(node)))?;
        for change in &node.changes {
            let text = text(change, screen);
            screen.print(&text)?;
        }
        if let Some(Refusal { code, happened, means, remedy }) = &node.refused {
            let [happened, means, remedy] = [happened, means, remedy].map(|sentence| shown(sentence, LINE));
            let code = shown(code, 64);
            screen.print(&format!(
                "  declaring it would be refused: {happened} ({code}); {means}; {remedy}\n"
            ))?;
        }
        if node.unlisted > 0 {
            let more = counted(node.unlisted, "more change");
            screen.print(&format!("  … {more}, not listed: the plan for all these nodes is too long\n"))?;
        }
    }
    if !plan.not_in_folder.is_empty() {
        let names: Vec<&str> = plan.not_in_folder.iter().map(|node| node.as_str()).collect();
        screen.print(&format!("not in this folder, and left as they are: {}\n", names.join(", ")))?;
    }
    let line = last_line(plan, says);
    screen.print(&format!("{line}\n"))
}

fn head(plan: &NodePlan) -> String {
    let NodePlan { node, from, to, resources, changes, unlisted, .. } = plan;
    let resources = counted(*resources, "resource");
    if *from == Some(*to) {
        return format!("{node}  revision {to}, {resources}: nothing changes");
    }
    let from = from.map_or_else(|| "none".to_owned(), |from| from.to_string());
    let changes = match *unlisted {
        0 => sum(changes),
        more => counted(more.saturating_add(changes.len().try_into().unwrap_or(u64::MAX)), "change"),
    };
    format!("{node}  revision {from} → {to}, {resources}: {changes}")
}

fn sum(changes: &[Change]) -> String {
    let kinds = [(ChangeKind::Add, "added"), (ChangeKind::Change, "changed"), (ChangeKind::Leave, "leaving")];
    let words: Vec<String> = kinds
        .into_iter()
        .map(|(kind, word)| (changes.iter().filter(|change| change.what == kind).count(), word))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    if words.is_empty() { "no resource changes".to_owned() } else { words.join(", ") }
}

fn text(change: &Change, screen: &Screen) -> String {
    let (sign, tone) = match change.what {
        ChangeKind::Add => ('+', Tone::Added),
        ChangeKind::Change => ('~', Tone::Changed),
        ChangeKind::Leave => ('-', Tone::Gone),
    };
    let head = format!("  {sign} {}  ({})", shown(&change.key, LINE), change.module);
    let mut text = format!("{}\n", screen.paint(Some(tone), &head));
    for line in change.detail.iter().flat_map(|detail| detail.lines()) {
        let line = shown_line(line, LINE);
        text.push_str(&format!("      {}\n", screen.paint(Tone::of_a_diff(&line), &line)));
    }
    text
}

fn last_line(plan: &Plan, says: Says) -> String {
    let count = |nodes: usize| counted(nodes.try_into().unwrap_or(u64::MAX), "node");
    let all = count(plan.nodes.len());
    let refused = plan.nodes.iter().filter(|node| node.refused.is_some()).count();
    let changed = plan.nodes.iter().filter(|node| node.from != Some(node.to)).count();
    match (says, changed) {
        (Says::WouldChange, _) if refused > 0 => {
            format!("plan for {all}: refused for {}, and so for all; nothing was written", count(refused))
        }
        (Says::WouldChange, 0) => {
            format!("plan for {all}: no node would get a new revision; nothing was written")
        }
        (Says::WouldChange, _) => {
            format!("plan for {all}: {} would get a new revision; nothing was written", count(changed))
        }
        (Says::Changed, 0) => format!("declared for {all}: nothing changed"),
        (Says::Changed, _) => format!("declared for {all}: {} got a new revision", count(changed)),
    }
}

#[cfg(test)]
mod tests {
    use tenure_protocol::id::{ModuleName, NodeId, RevisionNumber};

    use super::*;
    use crate::caller::tests::{assert_harmless, hostile};
    use crate::screen::tests::kept;

    // rule: S-20
    #[test]
    fn whatever_a_difference_holds_no_line_of_a_plan_moves_the_cursor() {
        let change = Change {
            key: "file:/etc/a".to_owned(),
            module: ModuleName::new("web").unwrap(),
            what: ChangeKind::Change,
            detail: vec!["mode 0644 → 0600".to_owned()],
        };
        let node = NodeId::new("edge-1").unwrap();
        let nodes = vec![NodePlan {
            node,
            from: None,
            to: RevisionNumber(1),
            resources: 1,
            declaration: None,
            cannot_know: None,
            refused: None,
            changes: vec![change],
            unlisted: 0,
        }];
        let plan = serde_json::to_value(Plan { nodes, not_in_folder: Vec::new() }).unwrap();
        let taken = |value: &serde_json::Value| serde_json::from_value::<Plan>(value.clone()).is_ok();
        let mut plan: Plan = serde_json::from_value(hostile(plan, taken)).unwrap();
        // A difference has lines of its own; what is in each of them is shown.
        let detail = &mut plan.nodes[0].changes[0].detail[0];
        *detail = detail.replace("\r\nready", "").chars().take(5000).collect();
        let (mut screen, out, _) = kept(false, None);
        print(&plan, Says::WouldChange, &mut screen).unwrap();
        assert_harmless(&out.text());
    }
}
