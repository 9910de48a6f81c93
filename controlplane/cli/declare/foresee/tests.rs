use tenure_protocol::foresight::{ForeseenPage, PackageMove, What};
use tenure_protocol::id::{Digest, Millis, RevisionNumber};

use super::*;
use crate::caller::tests::{Answer, answered_by, answered_or_not_by, asked, assert_harmless, hostile, ok};
use crate::screen::tests::kept;

fn node(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

fn plan_for(names: &[&str]) -> Plan {
    let one = |name: &str| NodePlan {
        node: node(name),
        from: None,
        to: RevisionNumber(1),
        resources: 1,
        declaration: Some(Content { sha256: Digest::of(name.as_bytes()), size: 1 }),
        cannot_know: None,
        refused: None,
        changes: Vec::new(),
        unlisted: 0,
    };
    Plan { nodes: names.iter().map(|name| one(name)).collect(), not_in_folder: Vec::new() }
}

/// What each of the plan says, in the order it is told.
async fn all(control: Caller, plan: &Plan, within: Duration) -> Vec<Said> {
    all_of(control, plan, Bounds { within, ..BOUNDS }).await
}

async fn all_of(control: Caller, plan: &Plan, bounds: Bounds) -> Vec<Said> {
    let mut said = Vec::new();
    let told = |one| {
        said.push(one);
        Ok(ControlFlow::Continue(()))
    };
    each(&Arc::new(control), plan, bounds, &ProgressBar::hidden(), told).await.unwrap();
    said
}

/// The answer of a node that would do this much.
fn says(lines: Vec<ForeseenLine>) -> Answer {
    ok::<ForeseeOf>(ForeseenPage { at: Millis(7), refused: None, lines, more: false })
}

fn names(said: &[Said]) -> Vec<&str> {
    said.iter().map(|(node, _)| node.as_str()).collect()
}

fn plan() -> Plan {
    plan_for(&["edge-1", "edge-2"])
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
        says(Vec::new())
    });
    let mut plan = plan();
    plan.nodes[1].cannot_know = Some(Refusal::new("no_room_to_foresee", "it was not laid aside", "", ""));
    let said = all(control, &plan, WITHIN).await;
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
    let said = all(control, &plan(), WITHIN).await;
    let lines = &said[0].1.as_ref().unwrap().lines;
    let keys: Vec<&str> = lines.iter().map(|line| line.key.as_str()).collect();
    assert_eq!(keys, ["package:hello-0", "package:hello-1", "package:hello-2"]);
    said.iter().for_each(|said| print(said, &mut screen).unwrap());
    let text = out.text();
    assert!(text.starts_with(
        "\non edge-1, as it is now: 3 change, 0 keep, 0 cannot know\n  change          package:hello-0"
    ));
    assert!(
        text.contains("      the package transaction, simulated:\n        hello  none → 2.10-3\n"),
        "{text}"
    );
    assert!(text.ends_with(
        "\non edge-2: cannot know: node edge-2 is not connected, and was never heard (not_connected)\n"
    ));
    let known = json(&said[0]);
    assert_eq!((&known["node"], &known["lines"][0]["verdict"]), (&"edge-1".into(), &"change".into()));
    assert_eq!(json(&said[1])["cannot_know"]["code"], "not_connected");
}

#[tokio::test]
async fn a_node_whose_turn_did_not_come_is_said_not_to_have_been_asked() {
    let control = answered_by(|request| panic!("{} is asked too late", request.to));
    let said = all(control, &plan(), Duration::ZERO).await;
    assert_eq!(names(&said), ["edge-1", "edge-2"]);
    assert!(said.iter().all(|(_, said)| said.as_ref().unwrap_err().is("not_asked")), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_never_answers_holds_up_none_of_the_others_and_the_order_is_that_of_the_plan() {
    let control = answered_or_not_by(|request| {
        let ForeseeOf { node, .. } = asked::<ForeseeOf>(request).unwrap();
        let never = node.as_str() == "edge-2";
        (!never).then(|| (request.id, says(vec![line(1)]))).into_iter().collect()
    });
    let said = all(control, &plan_for(&["edge-1", "edge-2", "edge-3", "edge-4"]), WITHIN / 10).await;
    assert_eq!(names(&said), ["edge-1", "edge-2", "edge-3", "edge-4"]);
    let codes = said.iter().map(|(_, said)| said.as_ref().err().map(|why| why.code.as_str()));
    assert_eq!(codes.collect::<Vec<_>>(), [None, Some("foresight_unfinished"), None, None]);
}

#[tokio::test(start_paused = true)]
async fn as_many_nodes_as_may_are_asked_at_the_same_time_and_one_more_when_one_of_them_has_answered() {
    let names: Vec<String> = (0..3 * MOST_AT_ONCE).map(|number| format!("edge-{number:02}")).collect();
    let plan = plan_for(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let (mut open, mut seen, all_of_them) = (Vec::new(), 0, names.len());
    // The newest is answered first, and only when as many are open as may be: fewer at a time would wait for ever.
    let control = answered_or_not_by(move |request| {
        asked::<ForeseeOf>(request).unwrap();
        seen += 1;
        open.push(request.id);
        assert!(open.len() <= MOST_AT_ONCE);
        let answered = match (seen == all_of_them, open.len() == MOST_AT_ONCE) {
            (true, _) => std::mem::take(&mut open),
            (false, true) => open.split_off(MOST_AT_ONCE - 1),
            (false, false) => Vec::new(),
        };
        answered.into_iter().rev().map(|id| (id, says(Vec::new()))).collect()
    });
    let said = all(control, &plan, WITHIN).await;
    assert_eq!(self::names(&said), names);
    assert!(said.iter().all(|(_, said)| said.is_ok()), "{said:?}");
}

// rule: S-22
#[tokio::test(start_paused = true)]
async fn while_much_is_held_that_waits_to_be_told_nobody_else_is_asked() {
    let names: Vec<String> = (0..3 * MOST_AT_ONCE).map(|number| format!("edge-{number:02}")).collect();
    let plan = plan_for(&names.iter().map(String::as_str).collect::<Vec<_>>());
    // All that are asked answer at once, and the first never does.
    let control = answered_or_not_by(|request| {
        let ForeseeOf { node, .. } = asked::<ForeseeOf>(request).unwrap();
        let never = node.as_str() == "edge-00";
        (!never).then(|| (request.id, says(vec![line(1)]))).into_iter().collect()
    });
    let told = all_of(control, &plan, Bounds { within: WITHIN / 10, held: 0 }).await;
    assert_eq!(self::names(&told), names);
    let codes = told.iter().map(|(_, said)| said.as_ref().err().map(|why| why.code.as_str()));
    let mut wanted = vec![Some("not_asked"); names.len()];
    wanted[..MOST_AT_ONCE].fill(None);
    wanted[0] = Some("foresight_unfinished");
    assert_eq!(codes.collect::<Vec<_>>(), wanted);
}

#[tokio::test]
async fn what_a_node_says_is_told_as_soon_as_those_before_it_were_told() {
    let mut first = None;
    // edge-3 answers at once, and edge-1 only after it; edge-2 never does.
    let control =
        answered_or_not_by(move |request| match asked::<ForeseeOf>(request).unwrap().node.as_str() {
            "edge-1" => {
                first = Some(request.id);
                Vec::new()
            }
            "edge-3" => vec![(request.id, says(Vec::new())), (first.unwrap(), says(Vec::new()))],
            _ => Vec::new(),
        });
    let mut told = Vec::new();
    let stops = |(node, _): Said| {
        told.push(node.to_string());
        Ok(ControlFlow::Break(()))
    };
    let plan = plan_for(&["edge-1", "edge-2", "edge-3"]);
    each(&Arc::new(control), &plan, BOUNDS, &ProgressBar::hidden(), stops).await.unwrap();
    assert_eq!(told, ["edge-1"], "and where nobody reads on, nobody is waited for");
}

/// What came of asking edge-1 alone, which answers each question with this page.
async fn of_one(within: Duration, page: impl Fn(u64) -> ForeseenPage + Send + 'static) -> Value {
    let control = answered_by(move |request| {
        let ForeseeOf { from, .. } = asked::<ForeseeOf>(request).unwrap();
        ok::<ForeseeOf>(page(from))
    });
    json(&all(control, &plan_for(&["edge-1"]), within).await[0])
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
    print(&(node("edge-1"), Ok(foreseen)), &mut screen).unwrap();
    print(&(node("edge-2"), Err(away())), &mut screen).unwrap();
    assert_harmless(&out.text());
}
