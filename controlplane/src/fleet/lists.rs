//! What operators see of nodes: put together from the store and from memory. Intent and report stand side by side and
//! are never written from each other; last contact has no threshold (H-22).

use serde::Serialize;
use tenure_protocol::machine::{MachineState, NodeState};
use tenure_protocol::operator::{NodeDetail, NodeLine, PAGE, ReportLine, Revisions, RolloutLine, Standing};
use tenure_protocol::report::Counts;
use tenure_protocol::wire::codec;

use crate::briefing::not_assignable;
use crate::presence::Seen;
use crate::store::{Contact, DeclaredRecord, NodeSummary, ReportRecord};

/// One more than a page, by which is seen whether there are more.
pub const ONE_MORE: u32 = PAGE + 1;

/// The most bytes of a page's lines, encoded: half of what a frame may have.
const MOST_BYTES: usize = 128 * 1024;

/// A page of at most [`PAGE`], and whether there is more behind it.
pub fn page<T>(mut lines: Vec<T>) -> (Vec<T>, bool) {
    let most = usize::try_from(PAGE).unwrap_or(usize::MAX);
    let more = lines.len() > most;
    lines.truncate(most);
    (lines, more)
}

/// Lines as far as they fit an answer, at least one of them; and whether some did not.
pub fn fitting<T: Serialize>(mut lines: Vec<T>) -> (Vec<T>, bool) {
    let mut bytes = 0_usize;
    let fits = lines.iter().take_while(|line| {
        bytes = bytes.saturating_add(codec::encode(*line).len());
        bytes <= MOST_BYTES
    });
    let most = fits.count().max(1);
    let more = lines.len() > most;
    lines.truncate(most);
    (lines, more)
}

/// A node in a line.
pub fn line(summary: &NodeSummary, seen: &Seen) -> NodeLine {
    let record = &summary.record;
    let contact = newest(summary, seen);
    let counts = summary.report.as_ref().map(|report| report.summary.counts).unwrap_or_default();
    NodeLine {
        node: record.node.clone(),
        state: record.state,
        machine_state: machine_state(record.state, seen),
        mode: record.mode,
        last_contact: contact.map(|contact| contact.received_at),
        revision: Revisions {
            declared: summary.declared.map(|declared| declared.revision.number),
            applied: summary.report.as_ref().and_then(|report| report.applied).map(|applied| applied.number),
        },
        version: contact
            .and_then(|contact| contact.version.clone())
            .or_else(|| record.last_session.as_ref().map(|session| session.software.clone())),
        assignable: is_assignable(summary),
        held: counts.held,
        failed: counts.failed.saturating_add(counts.refused),
        outstanding: counts.outstanding.saturating_add(counts.unknown),
        behind: Vec::new(),
    }
}

/// What memory heard, or what an earlier run of ours did.
fn newest<'a>(summary: &'a NodeSummary, seen: &'a Seen) -> Option<&'a Contact> {
    seen.contact.as_ref().or(summary.contact.as_ref())
}

/// What the machine must be to itself, as far as we can tell: with an open session it is enrolled; one that enrolled
/// and has none is disconnected to itself as well.
fn machine_state(state: NodeState, seen: &Seen) -> Option<MachineState> {
    match (state, &seen.session) {
        (_, Some(_)) => Some(MachineState::Enrolled),
        (NodeState::Ready | NodeState::Lost, None) => Some(MachineState::Disconnected),
        (NodeState::Enrolling | NodeState::Retired, None) => None,
    }
}

fn is_assignable(summary: &NodeSummary) -> bool {
    match summary.record.state {
        NodeState::Ready | NodeState::Lost => summary.record.briefing.is_assignable(),
        NodeState::Enrolling | NodeState::Retired => false,
    }
}

/// Everything of one node.
pub fn detail(summary: &NodeSummary, seen: &Seen) -> NodeDetail {
    let record = &summary.record;
    NodeDetail {
        line: line(summary, seen),
        rental: record.rental.clone(),
        generation: record.generation,
        fencing_token: record.fencing,
        enrolled_at: record.enrolled_at,
        invited_until: summary.invited_until.filter(|_| record.state != NodeState::Retired),
        lease_expires: seen.lease_expires,
        session: seen.session.clone(),
        profile: record.profile.clone(),
        briefing: record.briefing.lines().to_vec(),
        disk: newest(summary, seen).map(|contact| contact.disk).unwrap_or_default(),
        report: summary.report.as_ref().map(report_line),
        declared_resources: summary.declared.map_or(0, |declared| declared.resources),
    }
}

fn report_line(report: &ReportRecord) -> ReportLine {
    let summary = &report.summary;
    ReportLine {
        revision: summary.revision,
        trigger: summary.trigger,
        observed_at: summary.started,
        received_at: report.received_at,
        took_ms: summary.took_ms,
        counts: summary.counts,
        refused: summary.refused.clone(),
    }
}

/// How far a node is with its newest revision; none: nothing is declared for it, or it is retired.
pub fn rollout(summary: &NodeSummary, seen: &Seen) -> Option<RolloutLine> {
    let declared = summary.declared.filter(|_| summary.record.state != NodeState::Retired)?;
    let under = summary.report.as_ref().filter(|report| report.summary.revision == Some(declared.revision));
    let counts = under.map(|report| report.summary.counts).unwrap_or_default();
    let (standing, reason) = standing(summary, &declared, under, seen);
    let whole = under.is_some_and(|report| is_told(report, &declared));
    let reported = match under {
        Some(_) if whole => declared.resources,
        Some(report) => report.received.min(declared.resources),
        None => 0,
    };
    Some(RolloutLine {
        node: summary.record.node.clone(),
        declared: declared.revision.number,
        standing,
        resources: declared.resources,
        reported,
        counts,
        reason,
    })
}

/// Whether a whole pass of this declaration was reported. While the report of a later one comes in, its counts say how
/// the node stands; nobody who saw it applied sees it outstanding again because of that.
fn is_told(report: &ReportRecord, declared: &DeclaredRecord) -> bool {
    report.whole || report.applied == Some(declared.revision)
}

fn standing(
    summary: &NodeSummary,
    declared: &DeclaredRecord,
    under: Option<&ReportRecord>,
    seen: &Seen,
) -> (Standing, String) {
    if let Some(report) = under.filter(|report| is_told(report, declared)) {
        return judged(&report.summary.counts);
    }
    let last = summary.report.as_ref().map(|report| &report.summary);
    // What was refused says something of that revision only. A host that does not say which is taken for one that
    // means the newest, and may still admit it.
    let refused = last
        .filter(|last| last.refused_revision.is_none_or(|refused| refused == declared.revision))
        .and_then(|last| last.refused.as_ref());
    if let Some(refused) = refused.filter(|_| last.is_some_and(|last| last.refused_revision.is_some())) {
        return (Standing::Failed, format!("the host did not admit it: {}", refused.happened));
    }
    if let Some(line) = not_assignable(&summary.record) {
        return (Standing::Outstanding, format!("it is not assignable: {}: {}", line.subject, line.text));
    }
    let reason = match (refused, &seen.session, summary.record.state) {
        (Some(refused), _, _) => format!("the host did not admit it: {}", refused.happened),
        (None, _, NodeState::Enrolling) => "no machine has enrolled yet".to_owned(),
        (None, Some(_), _) if under.is_some() => "its report is under way".to_owned(),
        (None, Some(_), _) => format!("revision {} has not been reported yet", declared.revision),
        (None, None, _) => "it is not connected".to_owned(),
    };
    (Standing::Outstanding, reason)
}

fn judged(counts: &Counts) -> (Standing, String) {
    let standing = match (
        counts.failed.saturating_add(counts.refused),
        counts.outstanding.saturating_add(counts.unknown),
    ) {
        (0, 0) => Standing::Applied,
        (0, _) => Standing::Outstanding,
        (_, _) => Standing::Failed,
    };
    (standing, counts.in_words())
}
