use tenure_protocol::id::{NodeId, RevisionNumber};
use tenure_protocol::operator::RolloutPage;
use tenure_protocol::report::Counts;

use super::*;
use crate::caller::tests::{answered_by, ok};
use crate::screen::tests::kept;

pub(crate) fn line(node: &str, standing: Standing, reported: u64) -> RolloutLine {
    let counts = match standing {
        Standing::Failed => Counts { applied: reported - 1, failed: 1, ..Counts::default() },
        Standing::Applied | Standing::Outstanding => Counts { applied: reported, ..Counts::default() },
    };
    RolloutLine {
        node: NodeId::new(node).unwrap(),
        declared: RevisionNumber(4),
        standing,
        resources: 3,
        reported,
        counts,
        reason: match standing {
            Standing::Applied => counts.in_words(),
            Standing::Failed => "file:/etc/a.conf: the disk is full".to_owned(),
            Standing::Outstanding => "last heard 2 days ago".to_owned(),
        },
    }
}

fn fleet() -> Vec<RolloutLine> {
    vec![
        line("edge-1", Standing::Applied, 3),
        line("edge-2", Standing::Failed, 3),
        line("laptop", Standing::Outstanding, 0),
    ]
}

async fn shown_as(lines: Vec<RolloutLine>, json: bool) -> (String, String) {
    let control = answered_by(move |_| ok::<Rollout>(RolloutPage { nodes: lines.clone(), more: false }));
    let (mut screen, out, err) = kept(json, None);
    assert_eq!(run(&control, &mut screen).await.unwrap(), Exit::Done);
    (out.text(), err.text())
}

// rule: H-21
#[tokio::test]
async fn a_rollout_keeps_applied_failed_and_outstanding_apart() {
    let (out, _) = shown_as(fleet(), false).await;
    assert_eq!(
        out,
        "\
NODE    REVISION  STANDING     REPORTED  OUTCOMES             WHY
edge-1  4         applied      3 of 3    3 applied
edge-2  4         failed       3 of 3    2 applied, 1 failed  file:/etc/a.conf: the disk is full
laptop  4         outstanding  0 of 3                         last heard 2 days ago
1 applied, 1 failed, 1 outstanding
"
    );
}

// rule: H-21
#[tokio::test]
async fn for_programs_the_three_columns_are_three_lists_also_when_they_are_empty() {
    let value: Value = serde_json::from_str(&shown_as(fleet(), true).await.0).unwrap();
    for (column, node) in [("applied", "edge-1"), ("failed", "edge-2"), ("outstanding", "laptop")] {
        assert_eq!(value[column][0]["node"], node);
        assert_eq!(value[column].as_array().unwrap().len(), 1);
    }
    let (out, _) = shown_as(vec![], true).await;
    let empty: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(empty, json!({ "applied": [], "failed": [], "outstanding": [] }));
}

#[tokio::test]
async fn before_anything_is_declared_it_says_how_to_declare() {
    let (out, err) = shown_as(vec![], false).await;
    assert_eq!((out.as_str(), err.contains("tenure declare DIR")), ("", true));
}

// rule: S-20
#[tokio::test]
async fn whatever_a_reason_says_no_column_of_a_rollout_moves_the_cursor() {
    let page = RolloutPage { nodes: fleet(), more: false };
    let nodes = crate::caller::tests::hostile_answer::<Rollout>(&page).nodes;
    crate::caller::tests::assert_harmless(&shown_as(nodes, false).await.0);
}
