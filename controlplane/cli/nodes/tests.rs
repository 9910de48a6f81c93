use tenure_protocol::id::{NodeId, RevisionNumber};
use tenure_protocol::machine::{Mode, NodeState};
use tenure_protocol::operator::NodesPage;

use super::*;
use crate::caller::tests::{answered_by, asked, ok};
use crate::screen::tests::kept;

const NOW: Millis = Millis(1_700_000_000_000);

pub(crate) fn line(node: &str) -> NodeLine {
    NodeLine {
        node: NodeId::new(node).unwrap(),
        state: NodeState::Ready,
        machine_state: Some(MachineState::Enrolled),
        mode: Mode::Adopted,
        last_contact: Some(Millis(NOW.0 - 12_000)),
        revision: Revisions { declared: Some(RevisionNumber(4)), applied: Some(RevisionNumber(4)) },
        version: Some("0.1.0".to_owned()),
        assignable: true,
        held: 0,
        failed: 0,
        outstanding: 0,
        behind: vec![],
    }
}

fn fleet() -> Vec<NodeLine> {
    vec![
        line("edge-1"),
        NodeLine {
            revision: Revisions { declared: Some(RevisionNumber(4)), applied: Some(RevisionNumber(3)) },
            held: 2,
            failed: 1,
            outstanding: 3,
            ..line("edge-2")
        },
        NodeLine {
            state: NodeState::Lost,
            machine_state: Some(MachineState::Disconnected),
            last_contact: Some(Millis(NOW.0 - 21 * 86_400_000)),
            behind: vec!["engine".to_owned()],
            ..line("laptop")
        },
        NodeLine {
            state: NodeState::Enrolling,
            machine_state: None,
            mode: Mode::Converged,
            last_contact: None,
            revision: Revisions::default(),
            version: None,
            assignable: false,
            ..line("new")
        },
    ]
}

async fn shown_as(nodes: Vec<NodeLine>, json: bool, width: Option<u16>) -> (String, String) {
    let control = answered_by(move |_| ok::<Nodes>(NodesPage { nodes: nodes.clone(), more: false }));
    let (mut screen, out, err) = kept(json, width);
    run(&control, &mut screen, NOW).await.unwrap();
    (out.text(), err.text())
}

// rule: H-22
// rule: X-2
#[tokio::test]
async fn the_fleet_is_a_line_a_node_with_its_last_contact_in_plain_words() {
    let (out, _) = shown_as(fleet(), false, None).await;
    assert_eq!(
        out,
        "\
NODE    STATE      MODE       LAST CONTACT  REVISION  VERSION  NOTES
edge-1  ready      adopted    12 s ago      4         0.1.0
edge-2  ready      adopted    12 s ago      4, has 3  0.1.0    1 failed, 3 outstanding, 2 held
laptop  lost       adopted    21 days ago   4         0.1.0    says it is disconnected, 1 component behind: engine
new     enrolling  converged  never         —         —
"
    );
}

#[tokio::test]
async fn on_a_terminal_of_eighty_columns_no_line_is_longer() {
    let (out, _) = shown_as(fleet(), false, Some(80)).await;
    for line in out.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[tokio::test]
async fn for_programs_the_fleet_is_the_list_of_the_contract() {
    let (out, _) = shown_as(vec![line("edge-1")], true, None).await;
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        value,
        json!([{
            "node": "edge-1", "state": "ready", "machine_state": "enrolled", "mode": "adopted",
            "last_contact": NOW.0 - 12_000, "revision": { "declared": 4, "applied": 4 }, "version": "0.1.0",
            "assignable": true, "held": 0, "failed": 0, "outstanding": 0, "behind": [],
        }])
    );
}

#[tokio::test]
async fn an_empty_fleet_says_how_to_begin_and_is_an_empty_list_for_programs() {
    let (out, err) = shown_as(vec![], false, None).await;
    assert_eq!((out.as_str(), err.contains("tenure invite NAME")), ("", true));
    assert_eq!(shown_as(vec![], true, None).await.0, "[]\n");
}

#[tokio::test]
async fn every_page_is_asked_for() {
    let control = answered_by(|request| {
        let after = asked::<Nodes>(request).unwrap().after;
        let (nodes, more) = match after.as_ref().map(NodeId::as_str) {
            None => (vec![line("a"), line("b")], true),
            Some("b") => (vec![line("c")], false),
            Some(other) => panic!("{other}"),
        };
        ok::<Nodes>(NodesPage { nodes, more })
    });
    let names: Vec<String> = all(&control).await.unwrap().iter().map(|line| line.node.to_string()).collect();
    assert_eq!(names, ["a", "b", "c"]);
}

// rule: S-20
#[tokio::test]
async fn what_a_node_says_of_itself_cannot_leave_its_cell() {
    let hostile = NodeLine {
        version: Some("1\n\u{1b}[2Jforged".to_owned()),
        behind: vec!["x\u{202e}y".to_owned()],
        ..line("edge-1")
    };
    let (out, _) = shown_as(vec![hostile], false, None).await;
    assert_eq!(out.lines().count(), 2);
    assert!(out.contains("1\\n\\u{1b}[2Jforged") && out.contains("x\\u{202e}y"), "{out}");
}

// rule: S-20
#[tokio::test]
async fn whatever_a_node_says_of_itself_no_column_moves_the_cursor() {
    let page = NodesPage { nodes: fleet(), more: false };
    let nodes = crate::caller::tests::hostile_answer::<Nodes>(&page).nodes;
    crate::caller::tests::assert_harmless(&shown_as(nodes, false, None).await.0);
}
