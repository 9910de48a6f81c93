use std::time::Duration;

use tenure_protocol::id::{Digest, ModuleName, NodeId, RevisionNumber};
use tenure_protocol::operator::{Change, ChangeKind, Declared, NodePlan, Rollout, RolloutPage};
use tenure_protocol::resource::Content;

use super::*;
use crate::caller::tests::{answered_by, asked, ok};
use crate::content::tests::Shelf;
use crate::rollout::tests::line;
use crate::screen::tests::kept;

fn node(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

fn change(key: &str, what: ChangeKind, detail: &[&str]) -> Change {
    Change {
        key: key.to_owned(),
        module: ModuleName::new("web").unwrap(),
        what,
        detail: detail.iter().map(|line| (*line).to_owned()).collect(),
    }
}

fn plan() -> Plan {
    Plan {
        nodes: vec![
            NodePlan {
                node: node("edge-1"),
                from: Some(RevisionNumber(3)),
                to: RevisionNumber(4),
                resources: 3,
                declaration: None,
                cannot_know: None,
                refused: None,
                changes: vec![
                    change("file:/etc/new.conf", ChangeKind::Add, &[]),
                    change(
                        "file:/etc/a.conf",
                        ChangeKind::Change,
                        &["mode 0644 → 0600", "@@ -1 +1 @@\n-port = 80\n+port = 81\u{1b}[2J"],
                    ),
                    change("file:/etc/old.conf", ChangeKind::Leave, &[]),
                ],
                unlisted: 0,
            },
            NodePlan {
                node: node("edge-2"),
                from: Some(RevisionNumber(4)),
                to: RevisionNumber(4),
                resources: 3,
                declaration: None,
                cannot_know: None,
                refused: None,
                changes: vec![],
                unlisted: 0,
            },
        ],
        not_in_folder: vec![node("laptop")],
    }
}

fn order(plan: bool, wait: Option<u64>) -> command::Declare {
    command::Declare { dir: "fleet".into(), plan, wait: wait.map(Duration::from_secs), allow_removals: None }
}

fn gathered() -> folder::Gathered {
    let listing = br#"{"files":[]}"#.to_vec();
    folder::Gathered { listing: Digest::of(&listing), contents: [(Digest::of(&listing), listing)].into() }
}

/// A control plane that declares this plan, and whose rollout is at each asking one step further.
fn control(plan: &Plan, rollout: Vec<Vec<RolloutLine>>) -> Caller {
    let changes = plan.nodes.iter().any(|node| node.from != Some(node.to));
    let document = serde_json::to_vec(plan).unwrap();
    let shelf = Shelf::with(&[&document]);
    let plan = Content { sha256: Digest::of(&document), size: document.len().try_into().unwrap() };
    let mut steps = rollout.into_iter().peekable();
    answered_by(move |request| {
        if let Some(answer) = shelf.answer(request) {
            return answer;
        }
        if let Some(declare) = asked::<Declare>(request) {
            assert!(shelf.get(declare.folder).is_some(), "the folder is uploaded before it is declared");
            return ok::<Declare>(Declared { written: changes && !declare.plan, plan });
        }
        asked::<Rollout>(request).unwrap();
        let step = steps.next().unwrap();
        if steps.peek().is_none() {
            steps = vec![step.clone(), step.clone()].into_iter().peekable();
            steps.next();
        }
        ok::<Rollout>(RolloutPage { nodes: step, more: false })
    })
}

async fn declared(
    order: command::Declare,
    plan: Plan,
    rollout: Vec<Vec<RolloutLine>>,
    json: bool,
) -> (Result<Exit, Trouble>, String, String) {
    let control = Arc::new(control(&plan, rollout));
    let (mut screen, out, err) = kept(json, None);
    let ended = declare(&order, &gathered(), &control, &mut screen).await;
    (ended, out.text(), err.text())
}

fn outstanding() -> Vec<RolloutLine> {
    vec![
        line("edge-1", Standing::Outstanding, 0),
        line("edge-2", Standing::Outstanding, 0),
        line("laptop", Standing::Failed, 1),
    ]
}

fn settled(second: Standing) -> Vec<RolloutLine> {
    vec![line("edge-1", Standing::Applied, 3), line("edge-2", second, 3), line("laptop", Standing::Failed, 1)]
}

// rule: H-21
#[tokio::test]
async fn a_declare_shows_what_changes_for_each_node_and_waits_for_none() {
    let (ended, out, err) = declared(order(false, None), plan(), vec![outstanding()], false).await;
    assert_eq!(ended.unwrap(), Exit::Done);
    assert_eq!(
        out,
        "\
edge-1  revision 3 → 4, 3 resources: 1 added, 1 changed, 1 leaving
  + file:/etc/new.conf  (web)
  ~ file:/etc/a.conf  (web)
      mode 0644 → 0600
      @@ -1 +1 @@
      -port = 80
      +port = 81\\u{1b}[2J
  - file:/etc/old.conf  (web)
edge-2  revision 4, 3 resources: nothing changes
not in this folder, and left as they are: laptop
declared for 2 nodes: 1 node got a new revision
now: 0 applied, 0 failed, 2 outstanding
"
    );
    assert_eq!(err, "nobody was waited for: `tenure rollout` shows how far each node is\n");
}

#[tokio::test]
async fn a_plan_shows_the_same_and_says_that_nothing_was_written() {
    let (ended, out, _) = declared(order(true, None), plan(), vec![], false).await;
    assert_eq!(ended.unwrap(), Exit::Done);
    let (plan, foreseen) = out.split_once("nothing was written\n").unwrap();
    assert!(plan.ends_with("plan for 2 nodes: 1 node would get a new revision; "), "{out}");
    // Each node is asked; one of which the plan names nothing to ask about is said not to be known.
    let lines: Vec<&str> = foreseen.lines().filter(|line| !line.is_empty()).collect();
    assert!(lines[0].starts_with("on edge-1: cannot know: ") && lines[1].starts_with("on edge-2: "), "{out}");
}

// rule: H-23
#[tokio::test]
async fn a_plan_that_would_be_refused_is_shown_whole_with_why_and_ends_as_refused() {
    let mut refused = plan();
    let why =
        Refusal::new("too_many_removals", "this revision removes 7 of 13", "means", "--allow-removals 7");
    refused.nodes[0].refused = Some(why.clone());
    let (ended, out, err) = declared(order(true, None), refused.clone(), vec![], false).await;
    assert_eq!(ended.unwrap(), Exit::Refused);
    assert!(
        out.contains("  - file:/etc/old.conf  (web)\n  declaring it would be refused: this revision"),
        "{out}"
    );
    assert!(out.contains("(too_many_removals); means; --allow-removals 7\n"), "{out}");
    assert!(
        out.contains("plan for 2 nodes: refused for 1 node, and so for all; nothing was written\n"),
        "{out}"
    );
    assert_eq!(err, Trouble::from(why.clone()).text(), "and why stands where every refusal does");
    let (ended, out, err) = declared(order(true, None), refused, vec![], true).await;
    assert_eq!((ended.unwrap(), err), (Exit::Refused, Trouble::from(why.clone()).text()));
    let whole: serde_json::Value = serde_json::from_str(&out).expect("one object and no more");
    assert_eq!((&whole["refusal"], &whole["written"]), (&json!(why), &json!(false)));
    assert!(whole["plan"]["nodes"].is_array() && whole["foreseen"].is_array(), "{whole}");
}

#[tokio::test]
async fn what_a_plan_has_no_room_to_list_is_counted() {
    let mut long = plan();
    long.nodes[0].unlisted = 1_000;
    let (_, out, _) = declared(order(true, None), long, vec![], false).await;
    assert!(out.starts_with("edge-1  revision 3 → 4, 3 resources: 1003 changes\n"), "{out}");
    assert!(out.contains("  … 1000 more changes, not listed: "), "{out}");
}

#[tokio::test]
async fn a_plan_that_declares_nothing_new_does_not_say_that_nothing_would_change_on_the_machines() {
    let mut same = plan();
    same.nodes.remove(0);
    let (_, out, _) = declared(order(true, None), same, vec![], false).await;
    assert!(
        out.contains("plan for 1 node: no node would get a new revision; nothing was written\n"),
        "{out}"
    );
}

// rule: H-21
#[tokio::test]
async fn for_programs_a_declare_is_the_plan_and_the_three_columns() {
    let (_, out, _) = declared(order(false, None), plan(), vec![outstanding()], true).await;
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(value["written"], true);
    assert_eq!(value["plan"]["nodes"][0]["changes"][0]["what"], "add");
    assert_eq!(value["rollout"]["outstanding"].as_array().unwrap().len(), 2);
    assert_eq!(value["rollout"]["failed"], json!([]), "a node the folder does not name is not its business");
    let (_, out, _) = declared(order(true, None), plan(), vec![], true).await;
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&value["written"], value.get("refusal")), (&json!(false), None));
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_as_soon_as_every_node_of_the_folder_has_applied_it() {
    let steps = vec![outstanding(), outstanding(), settled(Standing::Applied)];
    let begun = tokio::time::Instant::now();
    let (ended, out, _) = declared(order(false, Some(60)), plan(), steps, false).await;
    assert_eq!(ended.unwrap(), Exit::Done);
    assert_eq!(begun.elapsed(), Duration::from_secs(1));
    assert!(out.ends_with("2 applied, 0 failed, 0 outstanding\n"), "{out}");
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_node_that_failed_ends_with_its_own_exit_status() {
    let steps = vec![outstanding(), settled(Standing::Failed)];
    let (ended, ..) = declared(order(false, Some(60)), plan(), steps, false).await;
    assert_eq!(ended.unwrap(), Exit::Failed);
}

#[tokio::test(start_paused = true)]
async fn time_that_runs_out_is_outstanding_and_neither_failed_nor_done() {
    let begun = tokio::time::Instant::now();
    let (ended, out, _) =
        declared(order(false, Some(60)), plan(), vec![settled(Standing::Outstanding)], false).await;
    assert_eq!(ended.unwrap(), Exit::Outstanding);
    assert_eq!(begun.elapsed(), Duration::from_secs(60));
    assert!(out.ends_with("1 applied, 0 failed, 1 outstanding\n"), "{out}");
}

#[tokio::test(start_paused = true)]
async fn what_a_node_said_of_an_older_revision_settles_nothing() {
    let mut older = settled(Standing::Applied);
    older[0].declared = RevisionNumber(3);
    let (ended, ..) = declared(order(false, Some(5)), plan(), vec![older], false).await;
    assert_eq!(ended.unwrap(), Exit::Outstanding);
}

#[tokio::test(start_paused = true)]
async fn what_was_declared_before_and_changes_nothing_is_waited_for_all_the_same() {
    let same = Plan { nodes: plan().nodes.split_off(1), not_in_folder: vec![] };
    let (ended, out, err) =
        declared(order(false, Some(5)), same.clone(), vec![settled(Standing::Failed)], false).await;
    assert_eq!(ended.unwrap(), Exit::Failed);
    assert!(out.contains("declared for 1 node: nothing changed\n"), "{out}");
    assert_eq!(err, "`tenure node NAME` shows what failed on a node, and why\n");
    let (_, out, _) = declared(order(false, None), same, vec![settled(Standing::Applied)], true).await;
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&value["written"], &value["rollout"]["applied"][0]["node"]),
        (&json!(false), &json!("edge-2"))
    );
}

// case: O-68
#[tokio::test]
async fn a_folder_that_names_no_node_is_no_success() {
    let empty = Plan { nodes: vec![], not_in_folder: vec![node("laptop")] };
    let (ended, out, _) = declared(order(false, None), empty, vec![], false).await;
    let trouble = ended.unwrap_err();
    assert_eq!((trouble.exit.number(), trouble.refusal.code.as_str()), (6, "no_nodes"));
    assert_eq!(out, "");
}

// case: O-68
#[tokio::test]
async fn a_folder_that_the_catalogue_refuses_for_naming_no_node_ends_with_nothing_matched() {
    let shelf = Shelf::default();
    let control = answered_by(move |request| {
        shelf
            .answer(request)
            .unwrap_or_else(|| Err(Refusal::new("no_nodes", "fleet.toml:1:1: no node", "m", "d")))
    });
    let control = Arc::new(control);
    let (mut screen, _, _) = kept(false, None);
    let ended = declare(&order(false, None), &gathered(), &control, &mut screen).await;
    assert_eq!(ended.unwrap_err().exit, Exit::NothingMatched);
}

#[tokio::test]
async fn what_the_catalogue_refuses_is_passed_on_as_it_is() {
    let shelf = Shelf::default();
    let control = answered_by(move |request| {
        shelf.answer(request).unwrap_or_else(|| {
            Err(Refusal::new(
                "unknown_field",
                "modules/web/module.toml:7:1: unknown field `contnet`",
                "m",
                "d",
            ))
        })
    });
    let (mut screen, out, _) = kept(false, None);
    let control = Arc::new(control);
    let trouble = declare(&order(false, None), &gathered(), &control, &mut screen).await.unwrap_err();
    assert_eq!((trouble.exit.number(), trouble.refusal.code.as_str()), (3, "unknown_field"));
    assert_eq!(out.text(), "");
}
