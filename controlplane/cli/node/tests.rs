use tenure_protocol::id::{FencingToken, Generation, Rental, RevisionNumber, SessionId};
use tenure_protocol::machine::NodeState;
use tenure_protocol::operator::{Node, ResourcesPage, Revisions, SessionLine};
use tenure_protocol::outcome::Outcome;
use tenure_protocol::report::{Counts, Trigger};

use super::*;
use crate::caller::tests::{answered_by, asked, ok};
use crate::nodes::tests::line;
use crate::screen::tests::kept;

const NOW: Millis = Millis(1_700_000_000_000);

fn detail() -> NodeDetail {
    NodeDetail {
        line: tenure_protocol::operator::NodeLine {
            revision: Revisions { declared: Some(RevisionNumber(4)), applied: Some(RevisionNumber(3)) },
            failed: 1,
            ..line("edge-1")
        },
        rental: Rental::new("own").unwrap(),
        generation: Generation(1),
        fencing_token: FencingToken(2),
        enrolled_at: Some(Millis(NOW.0 - 7_200_000)),
        invited_until: None,
        lease_expires: Some(Millis(NOW.0 + 40_000)),
        session: Some(SessionLine {
            session: SessionId::from_bytes([7; 16]),
            address: "127.0.0.1:5000".to_owned(),
            since: Millis(NOW.0 - 180_000),
        }),
        profile: Some(Profile {
            hostname: "edge".to_owned(),
            os: "debian 12".to_owned(),
            kernel: "6.1.0".to_owned(),
            architecture: "x86_64".to_owned(),
            cpus: 2,
            memory: 4 << 30,
            machine: "m".to_owned(),
            sandbox: false,
        }),
        briefing: vec![
            BriefingLine { subject: "protocol".to_owned(), failed: false, text: "both speak 1".to_owned() },
            BriefingLine { subject: "clock".to_owned(), failed: true, text: "it is 3 days ahead".to_owned() },
        ],
        disk: Disk::Measured { free: 12 << 30, size: 40 << 30 },
        report: Some(ReportLine {
            revision: None,
            trigger: Trigger::Timer,
            observed_at: NOW,
            received_at: Millis(NOW.0 - 5000),
            took_ms: 3,
            counts: Counts { unchanged: 3, failed: 1, ..Counts::default() },
            refused: None,
        }),
        declared_resources: 4,
    }
}

fn outcomes() -> Vec<ResourceOutcome> {
    let outcome = |key: &str, outcome, reason: Option<&str>| ResourceOutcome {
        key: key.to_owned(),
        module: "web".to_owned(),
        outcome,
        since: Millis(NOW.0 - 61_000),
        count: 3,
        code: reason.map(|_| "no_space".to_owned()),
        reason: reason.map(str::to_owned),
    };
    vec![
        outcome("file:/etc/a.conf", Outcome::Unchanged, None),
        outcome("file:/etc/b.conf", Outcome::Failed, Some("the disk is full")),
    ]
}

fn order() -> command::Node {
    command::Node { node: NodeId::new("edge-1").unwrap() }
}

async fn shown_as(detail: NodeDetail, outcomes: Vec<ResourceOutcome>, json: bool) -> String {
    let control = answered_by(move |request| match asked::<Node>(request) {
        Some(_) => ok::<Node>(detail.clone()),
        None => ok::<Resources>(ResourcesPage { resources: outcomes.clone(), more: false }),
    });
    let (mut screen, out, _) = kept(json, None);
    run(&order(), &control, &mut screen, NOW).await.unwrap();
    out.text()
}

#[tokio::test]
async fn a_node_is_shown_with_its_facts_its_briefing_and_each_resource() {
    let out = shown_as(detail(), outcomes(), false).await;
    assert_eq!(
        out,
        "\
node          edge-1, ready, adopted
last contact  12 s ago
revision      4 declared, 3 applied
resources     4 resources declared; 3 unchanged, 1 failed
notes         1 failed
version       0.1.0
machine       edge, debian 12, linux 6.1.0, x86_64, 2 cpus, 4 GiB
disk          12 GiB free of 40 GiB
last report   5 s ago, by timer, took 3 ms
assignable    yes
lease         ends in 40 s
session       from 127.0.0.1:5000, opened 3 min ago
enrolled      2 h ago
standing      generation 1, fencing token 2, rented as own

briefing
  ok      protocol  both speak 1
  failed  clock     it is 3 days ahead

RESOURCE          MODULE  OUTCOME    SINCE                REASON
file:/etc/a.conf  web     unchanged  1 min ago
file:/etc/b.conf  web     failed     1 min ago, 3 passes  the disk is full
"
    );
}

// rule: N-13
#[tokio::test]
async fn a_node_that_has_not_joined_shows_what_is_not_known_as_not_known() {
    let mut new = detail();
    new.line.state = NodeState::Enrolling;
    new.line.last_contact = None;
    new.line.revision = Revisions::default();
    new.line.failed = 0;
    new.enrolled_at = None;
    new.invited_until = Some(Millis(NOW.0 + 1_800_000));
    (new.lease_expires, new.session, new.profile, new.report) = (None, None, None, None);
    new.briefing.clear();
    new.disk = Disk::NeverReported;
    new.declared_resources = 0;
    let out = shown_as(new, vec![], false).await;
    for line in [
        "last contact  never",
        "revision      none declared, none applied",
        "resources     0 resources declared; nothing reported",
        "machine       —",
        "disk          never reported",
        "session       none open",
        "enrolled      not yet; its token ends in 30 min",
    ] {
        assert!(out.lines().any(|shown| shown == line), "{line}\n---\n{out}");
    }
}

#[tokio::test]
async fn for_programs_a_node_is_its_line_with_more_fields_beside_it() {
    let value: Value = serde_json::from_str(&shown_as(detail(), outcomes(), true).await).unwrap();
    assert_eq!(value["node"], "edge-1");
    assert_eq!(value["revision"], json!({ "declared": 4, "applied": 3 }));
    assert_eq!(value.get("line"), None);
    for field in ["briefing", "components", "lease_expires", "fencing_token", "generation", "session"] {
        assert!(value.get(field).is_some(), "{field}");
    }
    assert_eq!(
        value["resources"][0],
        json!({
            "key": "file:/etc/a.conf", "module": "web", "outcome": "unchanged", "since": NOW.0 - 61_000,
            "count": 3, "code": null, "reason": null,
        })
    );
}

// rule: S-20
#[tokio::test]
async fn what_a_node_reports_cannot_forge_a_line() {
    let mut hostile = outcomes();
    hostile[1].reason = Some("x\nfile:/etc/c.conf  web  applied".to_owned());
    hostile[1].key = "file:/etc/\u{1b}[31mred".to_owned();
    let out = shown_as(detail(), hostile, false).await;
    assert!(out.contains("x\\nfile:/etc/c.conf") && out.contains("\\u{1b}[31mred"), "{out}");
}

// case: O-68
#[tokio::test]
async fn an_unknown_node_is_refused_with_the_control_planes_own_words() {
    let control = answered_by(|_| {
        Err(tenure_protocol::refusal::Refusal::new("unknown_node", "no node edge-1", "m", "d"))
    });
    let (mut screen, out, _) = kept(false, None);
    let trouble = run(&order(), &control, &mut screen, NOW).await.unwrap_err();
    assert_eq!((trouble.exit.number(), trouble.refusal.code.as_str()), (3, "unknown_node"));
    assert_eq!(out.text(), "");
}

// rule: S-20
#[tokio::test]
async fn whatever_a_node_says_of_itself_no_line_of_it_moves_the_cursor() {
    let mut detail = detail();
    let refused = tenure_protocol::refusal::Refusal::new("code", "happened", "means", "do");
    detail.report.as_mut().unwrap().refused = Some(refused);
    detail.line.behind = vec!["engine".to_owned()];
    let detail = crate::caller::tests::hostile_answer::<Node>(&detail);
    let page = ResourcesPage { resources: outcomes(), more: false };
    let outcomes = crate::caller::tests::hostile_answer::<Resources>(&page).resources;
    crate::caller::tests::assert_harmless(&shown_as(detail, outcomes, false).await);
}
