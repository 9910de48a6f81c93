//! Answers as sentences and tables. Every text that came from elsewhere is bounded and escaped (S-20).

use comfy_table::Table;
use comfy_table::presets::NOTHING;
use tenure_protocol::foresight::{Foreseen, in_words};
use tenure_protocol::id::Millis;
use tenure_protocol::outcome::{Origin, ResourceOutcome};
use tenure_protocol::refusal::Refusal;
use tenure_protocol::report::Summary;
use tenure_protocol::rescue::{EnrolledAs, LinkStatus, OwnedLine, StatusIs};
use tenure_protocol::text::shown;

use super::look::Stands;

pub(super) fn enrolled(enrolled: &EnrolledAs) -> String {
    let how = if enrolled.already { "was enrolled with this token already" } else { "is enrolled" };
    let mut text = format!("this machine {how}: node {}, {}\n", enrolled.node, enrolled.mode);
    for line in &enrolled.briefing {
        let mark = if line.failed { "fails" } else { "holds" };
        text.push_str(&format!("  {mark}  {}: {}\n", shown(&line.subject, 60), shown(&line.text, 500)));
    }
    if enrolled.briefing.iter().any(|line| line.failed) {
        text.push_str("nothing is assigned to it until what fails is put right\n");
    }
    text
}

/// The most resources that are named one by one; the rest is counted.
const MOST_NAMED: usize = 20;

pub(super) fn stands(stands: &Stands, runs: bool) -> String {
    let mut text = status(&stands.status, runs);
    if stands.not_as_declared.is_empty() {
        return text;
    }
    text.push_str("\nnot as declared\n");
    for line in stands.not_as_declared.iter().take(MOST_NAMED) {
        let why = line.reason.as_deref().or(line.code.as_deref()).unwrap_or("no reason is known");
        let passes = if line.count == 1 { "1 pass".to_owned() } else { format!("{} passes", line.count) };
        let (key, outcome, since) = (shown(&line.key, 300), line.outcome, moment(line.since));
        text.push_str(&format!("  {key}  {outcome} since {since}, in {passes}: {}\n", shown(why, 500)));
    }
    let more = stands.not_as_declared.len().saturating_sub(MOST_NAMED);
    if more > 0 {
        text.push_str(&format!("  … and {more} more; `--json` names them\n"));
    }
    text.trim_end().to_owned()
}

pub(super) fn status(status: &StatusIs, runs: bool) -> String {
    let mut table = plain();
    let mut row = |name: &str, value: String| {
        table.add_row([name.to_owned(), value]);
    };
    row("machine", status.machine_state.to_string());
    if let Some(identity) = &status.identity {
        row("node", format!("{} ({}, generation {})", identity.node, identity.mode, identity.generation));
        let at = shown(&identity.addresses.join(", "), 300);
        row("control plane", format!("{} at {at}", identity.control_plane_id));
    }
    row("link", if runs { link(&status.link) } else { "no host runs here".to_owned() });
    row("revision", status.revision.map_or_else(|| "none".to_owned(), |revision| revision.to_string()));
    row("last pass", status.last.as_ref().map_or_else(|| "none".to_owned(), last));
    if let Some(read) = status.read_whole {
        row("content read", format!("at {}", moment(read)));
    }
    if let Some(refused) = status.last.as_ref().and_then(|last| last.refused.as_ref()) {
        let Refusal { code, happened, remedy, .. } = refused;
        row("refused", format!("{} ({})\n{}", shown(happened, 500), shown(code, 64), shown(remedy, 500)));
    }
    row("owned", status.owned.to_string());
    row("events waiting", status.spooled.to_string());
    if let Some(credential) = &status.credential {
        let Refusal { code, happened, remedy, .. } = credential;
        let text = format!("{} ({})\n{}", shown(happened, 500), shown(code, 64), shown(remedy, 500));
        row("credential", text);
    }
    if let Some(note) = &status.store_note {
        row("store", shown(note, 500));
    }
    let version = shown(&status.version, 80);
    row("version", if status.sandbox { format!("{version} (sandbox)") } else { version });
    lines(&table)
}

fn link(link: &LinkStatus) -> String {
    match link {
        LinkStatus::None => "none".to_owned(),
        LinkStatus::Up { since, address, note } => {
            let note = note.as_ref().map(|note| format!("; {}", shown(note, 200))).unwrap_or_default();
            format!("up since {} to {}{note}", moment(*since), shown(address, 200))
        }
        LinkStatus::Down { since, reason: None } => format!("down since {}", moment(*since)),
        LinkStatus::Down { since, reason: Some(reason) } => format!(
            "down since {}: {} ({})\n{}\n{}",
            moment(*since),
            shown(&reason.happened, 500),
            shown(&reason.code, 64),
            shown(&reason.means, 500),
            shown(&reason.remedy, 500)
        ),
    }
}

fn last(summary: &Summary) -> String {
    format!("{}, at {}: {}", summary.trigger.as_str(), moment(summary.started), summary.counts.in_words())
}

pub(super) fn summary(summary: &Summary) -> String {
    let revision = summary.revision.map(|revision| format!("revision {revision}: ")).unwrap_or_default();
    format!("{revision}{} ({} ms)\n", summary.counts.in_words(), summary.took_ms)
}

pub(super) fn owned(owned: &[OwnedLine]) -> String {
    if owned.is_empty() {
        return "nothing on this machine is ours".to_owned();
    }
    let mut table = plain();
    table.set_header(["KEY", "MODULE", "ORIGIN", "RECORDED"]);
    for line in owned {
        let origin = match line.origin {
            Origin::Created => "created",
            Origin::Changed => "changed",
            Origin::AlreadyThere => "already there",
        };
        table.add_row([
            shown(&line.key, 300),
            shown(&line.module, 63),
            origin.to_owned(),
            moment(line.recorded_at),
        ]);
    }
    lines(&table)
}

pub(super) fn held(held: &[ResourceOutcome]) -> String {
    if held.is_empty() {
        return "nothing that was found here is kept from what is declared".to_owned();
    }
    let mut table = plain();
    table.set_header(["KEY", "MODULE", "SINCE", "WHY"]);
    for line in held {
        let why = line.reason.as_deref().map_or_else(String::new, |reason| shown(reason, 300));
        table.add_row([shown(&line.key, 300), shown(&line.module, 63), moment(line.since), why]);
    }
    lines(&table)
}

pub(super) fn plan(foreseen: &Foreseen) -> String {
    let lines = &foreseen.lines;
    if lines.is_empty() {
        return "nothing is declared".to_owned();
    }
    let mut text = String::new();
    for line in lines {
        let (head, below) = line.in_words();
        text.push_str(&format!("{head}\n"));
        below.iter().for_each(|line| text.push_str(&format!("{MARGIN}{line}\n")));
    }
    text.push_str(&format!("{}; nothing was changed", in_words(lines)));
    if let Some(Refusal { code, happened, remedy, .. }) = &foreseen.refused {
        let (happened, code, remedy) = (shown(happened, 500), shown(code, 64), shown(remedy, 500));
        text.push_str(&format!("\nrefused whole, so that none of it is done: {happened} ({code})\n{remedy}"));
    }
    text
}

const MARGIN: &str = "      ";

/// The table without the spaces around its lines.
fn lines(table: &Table) -> String {
    let text = table.to_string();
    let lines = text.lines().map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end());
    lines.collect::<Vec<_>>().join("\n")
}

fn plain() -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table
}

fn moment(at: Millis) -> String {
    jiff::Timestamp::from_millisecond(at.0 / 1000 * 1000)
        .map_or_else(|_| at.0.to_string(), |at| at.to_string())
}

#[cfg(test)]
mod tests;
