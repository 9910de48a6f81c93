use tenure_protocol::foresight::{ForeseenPage, PackageMove, What};
use tenure_protocol::id::{Digest, Millis, RevisionNumber};

use super::*;
use crate::caller::tests::{answered_by, asked, assert_harmless, hostile, ok};
use crate::screen::tests::kept;

fn node(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

fn plan() -> Plan {
    let one = |name: &str| NodePlan {
        node: node(name),
        from: None,
        to: RevisionNumber(1),
        resources: 1,
        declaration: Some(Content { sha256: Digest::of(name.as_bytes()), size: 1 }),
        cannot_know: None,
        changes: Vec::new(),
    };
    Plan { nodes: vec![one("edge-1"), one("edge-2")], not_in_folder: Vec::new() }
}

fn line(number: u64) -> ForeseenLine {
    ForeseenLine {
        key: format!("package:hello-{number}"),
        module: "base".to_owned(),
        verdict: Verdict::Change,
        what: What::Change,
        code: None,
        detail: vec!["it would be installed at 2.10-3".to_owned()],
        packages: vec![PackageMove { name: "hello".to_owned(), from: None, to: Some("2.10-3".to_owned()) }],
    }
}

fn away() -> Refusal {
    Refusal::new("not_connected", "node edge-2 is not connected, and was never heard", "", "")
}

#[tokio::test]
async fn a_node_of_which_the_plan_says_why_nobody_can_know_is_not_asked_and_that_is_handed_on() {
    let control = answered_by(|request| {
        let ForeseeOf { node, .. } = asked::<ForeseeOf>(request).unwrap();
        assert_eq!(node.as_str(), "edge-1");
        ok::<ForeseeOf>(ForeseenPage { at: Millis(7), refused: None, lines: Vec::new(), more: false })
    });
    let mut plan = plan();
    plan.nodes[1].cannot_know = Some(Refusal::new("no_room_to_foresee", "it was not laid aside", "", ""));
    let (screen, ..) = kept(false, None);
    let said = all(&control, &plan, WITHIN, &screen).await.unwrap();
    assert!(said[0].1.is_ok());
    assert!(said[1].1.as_ref().unwrap_err().is("no_room_to_foresee"), "{said:?}");
}

// rule: A-18
#[tokio::test]
async fn each_node_says_page_by_page_what_it_would_do_and_of_one_that_is_away_it_is_said_that_nobody_knows() {
    let control = answered_by(|request| {
        let ForeseeOf { node, declaration, from } = asked::<ForeseeOf>(request).unwrap();
        assert_eq!(request.to, format!("reconcile/{node}"));
        assert_eq!(declaration.sha256, Digest::of(node.as_str().as_bytes()));
        if node.as_str() == "edge-2" {
            return Err(away());
        }
        let page = ForeseenPage { at: Millis(7), refused: None, lines: vec![line(from)], more: from < 2 };
        ok::<ForeseeOf>(page)
    });
    let (mut screen, out, _) = kept(false, None);
    let said = all(&control, &plan(), WITHIN, &screen).await.unwrap();
    let lines = &said[0].1.as_ref().unwrap().lines;
    let keys: Vec<&str> = lines.iter().map(|line| line.key.as_str()).collect();
    assert_eq!(keys, ["package:hello-0", "package:hello-1", "package:hello-2"]);
    print(&said, &mut screen).unwrap();
    let text = out.text();
    assert!(text.starts_with(
        "on edge-1, as it is now: 3 change, 0 keep, 0 cannot know\n  change        package:hello-0"
    ));
    assert!(text.contains("      package hello  none → 2.10-3\n"), "{text}");
    assert!(text.ends_with(
        "on edge-2: cannot know: node edge-2 is not connected, and was never heard (not_connected)\n"
    ));
    let json = json(&said);
    assert_eq!((&json[0]["node"], &json[0]["lines"][0]["verdict"]), (&"edge-1".into(), &"change".into()));
    assert_eq!(json[1]["cannot_know"]["code"], "not_connected");
}

#[tokio::test]
async fn a_node_whose_turn_did_not_come_is_said_not_to_have_been_asked() {
    let control = answered_by(|request| panic!("{} is asked too late", request.to));
    let (screen, ..) = kept(false, None);
    let said = json(&all(&control, &plan(), Duration::ZERO, &screen).await.unwrap());
    for (node, said) in ["edge-1", "edge-2"].iter().zip(said.as_array().unwrap()) {
        let code = &said["cannot_know"]["code"];
        assert_eq!(said["node"], *node);
        assert_eq!(code, "not_asked");
    }
}

/// What came of asking edge-1 alone, which answers each question with this page.
async fn of_one(within: Duration, page: impl Fn(u64) -> ForeseenPage + Send + 'static) -> Value {
    let control = answered_by(move |request| {
        let ForeseeOf { from, .. } = asked::<ForeseeOf>(request).unwrap();
        ok::<ForeseeOf>(page(from))
    });
    let (screen, ..) = kept(false, None);
    let mut plan = plan();
    plan.nodes.truncate(1);
    json(&all(&control, &plan, within, &screen).await.unwrap())[0].clone()
}

// rule: S-20
#[tokio::test]
async fn a_node_that_never_comes_to_an_end_is_left_and_nothing_of_it_is_taken_for_known() {
    let page = |lines: Vec<ForeseenLine>| ForeseenPage { at: Millis(7), refused: None, lines, more: true };
    let (short, wide) = (vec![line(0); 1000], vec![ForeseenLine { key: "k".repeat(1 << 17), ..line(0) }]);
    for lines in [short.clone(), wide, Vec::new()] {
        let said = of_one(WITHIN, move |_| page(lines.clone())).await;
        assert_eq!(said["cannot_know"]["code"], "foresight_endless");
        assert_eq!(said["lines"], Value::Null);
    }
    let one = vec![line(0)];
    let said = of_one(Duration::from_millis(50), move |_| page(one.clone())).await;
    assert_eq!(said["cannot_know"]["code"], "foresight_unfinished");
}

// rule: S-20
#[test]
fn whatever_a_node_foresees_no_line_of_it_moves_the_cursor() {
    let foreseen = Foreseen { at: Millis(1), refused: Some(away()), lines: vec![line(1)] };
    let taken = |value: &Value| serde_json::from_value::<Foreseen>(value.clone()).is_ok();
    let foreseen = hostile(serde_json::to_value(foreseen).unwrap(), taken);
    let foreseen = serde_json::from_value(foreseen).unwrap();
    let (mut screen, out, _) = kept(false, None);
    print(&[(node("edge-1"), Ok(foreseen)), (node("edge-2"), Err(away()))], &mut screen).unwrap();
    assert_harmless(&out.text());
}
