//! `tenure node NODE`: everything known of one node, and how each of its resources is.

use serde_json::{Value, json};
use tenure_protocol::enrolment::BriefingLine;
use tenure_protocol::id::{Millis, NodeId};
use tenure_protocol::operator::{NodeDetail, ReportLine, Resources};
use tenure_protocol::outcome::ResourceOutcome;
use tenure_protocol::profile::{Disk, Profile};
use tenure_protocol::text::shown;

use crate::caller::Caller;
use crate::command;
use crate::ending::{Exit, Trouble};
use crate::nodes::notes;
use crate::screen::Screen;
use crate::words::{NONE, ago, bytes, counted, until};

pub(crate) async fn run(
    order: &command::Node,
    control: &Caller,
    screen: &mut Screen,
    now: Millis,
) -> Result<Exit, Trouble> {
    let node = &order.node;
    let detail = control.ask_of(node, &tenure_protocol::operator::Node { node: node.clone() }).await?;
    let resources = resources(control, node).await?;
    if screen.is_json() {
        screen.print_json(&whole(&detail, &resources))?;
        return Ok(Exit::Done);
    }
    let facts = screen.table(&[], facts(&detail, now));
    screen.print(&facts)?;
    if !detail.briefing.is_empty() {
        let lines = screen.table(&[], detail.briefing.iter().map(briefing).collect());
        screen.print(&format!("\nbriefing\n{lines}"))?;
    }
    if !resources.is_empty() {
        let rows = resources.iter().map(|resource| row(resource, now)).collect();
        let table = screen.table(&["RESOURCE", "MODULE", "OUTCOME", "SINCE", "REASON"], rows);
        screen.print(&format!("\n{table}"))?;
    }
    Ok(Exit::Done)
}

async fn resources(control: &Caller, node: &NodeId) -> Result<Vec<ResourceOutcome>, Trouble> {
    let mut all: Vec<ResourceOutcome> = Vec::new();
    loop {
        let after = all.last().map(|resource| resource.key.clone());
        let page = control.ask_of(node, &Resources { node: node.clone(), after }).await?;
        let more = page.more && !page.resources.is_empty();
        all.extend(page.resources);
        if !more {
            return Ok(all);
        }
    }
}

/// The line of `nodes --json` and what is known beyond it, as one object.
fn whole(detail: &NodeDetail, resources: &[ResourceOutcome]) -> Value {
    let mut whole = json!(detail);
    if let Value::Object(fields) = &mut whole {
        if let Some(Value::Object(line)) = fields.remove("line") {
            fields.extend(line);
        }
        fields.insert("resources".to_owned(), resources.iter().map(one).collect());
        // No component can be put on a machine yet; the field is there so that nobody has to ask whether it is.
        fields.insert("components".to_owned(), json!([]));
    }
    whole
}

/// A resource with every field, also those that have nothing to say.
fn one(resource: &ResourceOutcome) -> Value {
    let mut one = json!(resource);
    if let Value::Object(fields) = &mut one {
        for field in ["code", "reason"] {
            fields.entry(field).or_insert(Value::Null);
        }
    }
    one
}

fn facts(detail: &NodeDetail, now: Millis) -> Vec<Vec<String>> {
    let line = &detail.line;
    let none = || NONE.to_owned();
    let number = |number: Option<tenure_protocol::id::RevisionNumber>| {
        number.map_or_else(|| "none".to_owned(), |number| number.to_string())
    };
    let mut facts = vec![
        ("node", format!("{}, {}, {}", line.node, line.state, line.mode)),
        ("last contact", line.last_contact.map_or_else(|| "never".to_owned(), |then| ago(then, now))),
        (
            "revision",
            format!("{} declared, {} applied", number(line.revision.declared), number(line.revision.applied)),
        ),
        ("resources", resources_in_words(detail)),
    ];
    let notes = notes(line);
    if !notes.is_empty() {
        facts.push(("notes", notes.join(", ")));
    }
    facts.extend([
        ("version", line.version.as_deref().map_or_else(none, |version| shown(version, 80))),
        ("machine", detail.profile.as_ref().map_or_else(none, machine)),
        ("disk", disk(detail.disk)),
        ("last report", detail.report.as_ref().map_or_else(none, |report| self::report(report, now))),
        ("assignable", if line.assignable { "yes" } else { "no" }.to_owned()),
        ("lease", detail.lease_expires.map_or_else(none, |ends| format!("ends {}", until(ends, now)))),
        ("session", session(detail, now)),
        ("enrolled", enrolled(detail, now)),
        (
            "standing",
            format!(
                "generation {}, fencing token {}, rented as {}",
                detail.generation, detail.fencing_token, detail.rental
            ),
        ),
    ]);
    if let Some(refused) = detail.report.as_ref().and_then(|report| report.refused.as_ref()) {
        facts.push((
            "refused",
            format!(
                "{} ({}); {}",
                shown(&refused.happened, 400),
                shown(&refused.code, 64),
                shown(&refused.remedy, 400)
            ),
        ));
    }
    facts.into_iter().map(|(name, fact)| vec![name.to_owned(), fact]).collect()
}

fn resources_in_words(detail: &NodeDetail) -> String {
    let declared = counted(detail.declared_resources, "resource");
    match &detail.report {
        Some(report) => format!("{declared} declared; {}", report.counts.in_words()),
        None => format!("{declared} declared; nothing reported"),
    }
}

fn machine(profile: &Profile) -> String {
    let mut parts = vec![
        shown(&profile.hostname, 64),
        shown(&profile.os, 64),
        format!("linux {}", shown(&profile.kernel, 64)),
        shown(&profile.architecture, 32),
        counted(profile.cpus.into(), "cpu"),
        bytes(profile.memory),
    ];
    if profile.sandbox {
        parts.push("sandbox".to_owned());
    }
    parts.retain(|part| !part.is_empty());
    parts.join(", ")
}

fn disk(disk: Disk) -> String {
    match disk {
        Disk::NeverReported => "never reported".to_owned(),
        Disk::Unmeasurable => "the node looked and could not tell".to_owned(),
        Disk::Measured { free, size } => format!("{} free of {}", bytes(free), bytes(size)),
    }
}

fn report(report: &ReportLine, now: Millis) -> String {
    format!("{}, by {}, took {} ms", ago(report.received_at, now), report.trigger.as_str(), report.took_ms)
}

fn session(detail: &NodeDetail, now: Millis) -> String {
    detail.session.as_ref().map_or_else(
        || "none open".to_owned(),
        |session| format!("from {}, opened {}", shown(&session.address, 80), ago(session.since, now)),
    )
}

fn enrolled(detail: &NodeDetail, now: Millis) -> String {
    let enrolled = detail.enrolled_at.map_or_else(|| "not yet".to_owned(), |then| ago(then, now));
    match detail.invited_until {
        Some(until_then) => format!("{enrolled}; its token ends {}", until(until_then, now)),
        None => enrolled,
    }
}

fn briefing(line: &BriefingLine) -> Vec<String> {
    let verdict = if line.failed { "failed" } else { "ok" };
    vec![format!("  {verdict}"), shown(&line.subject, 64), shown(&line.text, 500)]
}

fn row(resource: &ResourceOutcome, now: Millis) -> Vec<String> {
    let reason = resource.reason.as_deref().or(resource.code.as_deref()).unwrap_or_default();
    vec![
        shown(&resource.key, 300),
        shown(&resource.module, 63),
        resource.outcome.to_string(),
        since(resource, now),
        shown(reason, 500),
    ]
}

/// What is not as declared says too how often that was found.
fn since(resource: &ResourceOutcome, now: Millis) -> String {
    let since = ago(resource.since, now);
    match resource.count {
        count if count > 1 && !resource.outcome.is_as_declared() => format!("{since}, {count} passes"),
        _ => since,
    }
}

#[cfg(test)]
mod tests;
