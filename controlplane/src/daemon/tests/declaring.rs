use tenure_protocol::content::{Push, Pushed, Wanted};
use tenure_protocol::declaration::Declaration;
use tenure_protocol::id::{Digest, Millis, RevisionNumber};
use tenure_protocol::operator::{self, ChangeKind, Declare, Retire, Standing};
use tenure_protocol::outcome::{Outcome, ResourceOutcome};
use tenure_protocol::report::{self, Counts, Part, Summary, Trigger};
use tenure_protocol::session::{HeldDeclaration, Hello};
use tenure_protocol::wire::codec;

use super::scripted::{Open, SOON, Up, name, refusal, up};

pub(super) const FLEET: &str = "[node.\"edge-1\"]\nmodules = [\"base\"]\n";

pub(super) fn module(files: &[(&str, &str)]) -> String {
    let mut text = "[module]\nname = \"base\"\nversion = \"1\"\n".to_owned();
    for (path, content) in files {
        text.push_str(&format!("[[file]]\npath = \"{path}\"\ncontent = \"{content}\"\n"));
    }
    text
}

pub(super) fn folder(module: &str) -> Vec<(&str, &str)> {
    vec![("fleet.toml", FLEET), ("modules/base/module.toml", module)]
}

pub(super) fn outcome(key: &str, outcome: Outcome) -> ResourceOutcome {
    ResourceOutcome {
        key: key.to_owned(),
        module: "base".to_owned(),
        outcome,
        since: Millis(1),
        count: 1,
        code: None,
        reason: None,
    }
}

pub(super) fn part(push: &Push, pass: u64, all: &[ResourceOutcome], sent: &[ResourceOutcome]) -> Part {
    Part {
        summary: Summary {
            pass,
            trigger: Trigger::Declaration,
            revision: Some(push.revision),
            started: Millis(1),
            took_ms: 1,
            counts: Counts::of(all.iter().map(|outcome| outcome.outcome)),
            owned: u64::try_from(all.len()).unwrap(),
            digest: report::digest(all),
            refused: None,
            refused_revision: None,
        },
        full: false,
        part: 0,
        outcomes: sent.to_vec(),
        forgotten: vec![],
        last: true,
    }
}

pub(super) async fn pushed(up: &Up, open: &mut Open) -> Push {
    let (id, push) = open.request::<Push>().await;
    open.link.answer(id, Ok(codec::encode(&Pushed::Fetching))).await.unwrap();
    let _ = up;
    push
}

pub(super) async fn standing(up: &Up) -> operator::RolloutLine {
    up.ask("catalogue", &operator::Rollout { after: None }).await.unwrap().nodes.remove(0)
}

// rule: H-21
#[tokio::test]
async fn a_declaration_is_written_pushed_fetched_reported_and_listed_in_three_columns() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let mut open = host.session(&up).await;
    let text = module(&[("/etc/motd", "hello")]);
    let declared = up.declare(&folder(&text)).await.unwrap();
    assert!(declared.written);
    let line = standing(&up).await;
    assert_eq!((line.standing, line.reported, line.resources), (Standing::Outstanding, 0, 1));
    let push = pushed(&up, &mut open).await;
    assert_eq!((push.revision.number, push.resources), (RevisionNumber(1), 1));
    let bytes = open.fetch(push.sha256).await.unwrap();
    assert_eq!(Digest::of(&bytes), push.sha256);
    let declaration = Declaration::parse(&bytes).unwrap();
    assert_eq!(declaration.header.node, name("edge-1"));
    let content = declaration.contents()[0];
    assert_eq!(open.fetch(content.sha256).await.unwrap(), b"hello");
    let all = [outcome("file:/etc/motd", Outcome::Applied)];
    assert!(!open.ask(&part(&push, 1, &all, &all)).await.unwrap().resend);
    let line = standing(&up).await;
    assert_eq!((line.standing, line.reported), (Standing::Applied, 1));
    let detail = up.node("edge-1").await;
    assert_eq!(detail.line.revision.applied, Some(RevisionNumber(1)));
    let page =
        up.ask("reconcile/edge-1", &operator::Resources { node: name("edge-1"), after: None }).await.unwrap();
    assert_eq!(page.resources, all);
}

// rule: H-21
#[tokio::test]
async fn a_failed_resource_makes_the_node_failed_and_a_waiting_one_outstanding() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let mut open = host.session(&up).await;
    up.declare(&folder(&module(&[("/etc/motd", "hello")]))).await.unwrap();
    let push = pushed(&up, &mut open).await;
    for (pass, result, column) in [
        (1, Outcome::Failed, Standing::Failed),
        (2, Outcome::Outstanding, Standing::Outstanding),
        (3, Outcome::Held, Standing::Applied),
    ] {
        let all = [outcome("file:/etc/motd", result)];
        open.ask(&part(&push, pass, &all, &all)).await.unwrap();
        assert_eq!(standing(&up).await.standing, column);
    }
}

#[tokio::test]
async fn a_node_that_has_applied_its_declaration_is_not_outstanding_while_a_later_report_comes_in() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let mut open = host.session(&up).await;
    up.declare(&folder(&module(&[("/etc/a", "1"), ("/etc/b", "2")]))).await.unwrap();
    let push = pushed(&up, &mut open).await;
    let mut all = [outcome("file:/etc/a", Outcome::Applied), outcome("file:/etc/b", Outcome::Applied)];
    open.ask(&Part { last: false, ..part(&push, 1, &all, &all[..1]) }).await.unwrap();
    let line = standing(&up).await;
    assert_eq!((line.standing, line.reported), (Standing::Outstanding, 1), "the first report is awaited");
    open.ask(&Part { part: 1, ..part(&push, 1, &all, &all[1..]) }).await.unwrap();
    assert_eq!(standing(&up).await.standing, Standing::Applied);
    all[0].outcome = Outcome::Unchanged;
    open.ask(&Part { last: false, ..part(&push, 2, &all, &all[..1]) }).await.unwrap();
    let line = standing(&up).await;
    assert_eq!((line.standing, line.reported), (Standing::Applied, 2));
    all[1].outcome = Outcome::Failed;
    open.ask(&Part { last: false, ..part(&push, 3, &all, &all[1..]) }).await.unwrap();
    assert_eq!(standing(&up).await.standing, Standing::Failed, "what a later pass failed is seen at once");
}

#[tokio::test]
async fn a_report_that_does_not_add_up_is_asked_for_whole_and_an_older_one_changes_nothing() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let mut open = host.session(&up).await;
    up.declare(&folder(&module(&[("/etc/a", "1"), ("/etc/b", "2")]))).await.unwrap();
    let push = pushed(&up, &mut open).await;
    let all = [outcome("file:/etc/a", Outcome::Unchanged), outcome("file:/etc/b", Outcome::Failed)];
    assert!(open.ask(&part(&push, 5, &all, &all[1..])).await.unwrap().resend);
    assert_eq!(up.node("edge-1").await.line.revision.applied, None);
    let full = Part { full: true, ..part(&push, 5, &all, &all) };
    assert!(!open.ask(&full).await.unwrap().resend);
    assert_eq!(up.node("edge-1").await.line.failed, 1);
    let late = [outcome("file:/etc/a", Outcome::Unchanged)];
    open.ask(&part(&push, 4, &late, &late)).await.unwrap();
    assert_eq!(up.node("edge-1").await.line.failed, 1);
    // What a full report does not mention is gone; and a host with a new store counts its passes anew.
    let one = [outcome("file:/etc/a", Outcome::Unchanged)];
    open.ask(&Part { full: true, ..part(&push, 6, &one, &one) }).await.unwrap();
    assert_eq!(up.node("edge-1").await.line.failed, 0);
    host.store_id = tenure_protocol::id::StoreId::random();
    let open = host.session(&up).await;
    assert!(!open.ask(&part(&push, 1, &all, &all)).await.unwrap().resend);
    assert_eq!(up.node("edge-1").await.line.failed, 1);
}

// rule: S-08
#[tokio::test]
async fn a_session_gets_no_content_that_its_own_declaration_does_not_name() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let mut other = up.host("edge-2").await;
    let mut open = host.session(&up).await;
    let text = module(&[("/etc/motd", "for edge-1 only")]);
    up.declare(&folder(&text)).await.unwrap();
    let push = pushed(&up, &mut open).await;
    let stranger = other.session(&up).await;
    for sha256 in [push.sha256, Digest::of(b"for edge-1 only"), Digest::of(text.as_bytes())] {
        assert!(refusal(stranger.fetch(sha256).await).is("not_declared"));
    }
    assert!(refusal(open.fetch(Digest::of(text.as_bytes())).await).is("not_declared"));
    up.declare(&folder(&module(&[("/etc/motd", "another")]))).await.unwrap();
    assert!(refusal(open.fetch(Digest::of(b"for edge-1 only")).await).is("not_declared"));
}

// rule: X-6
#[tokio::test]
async fn what_was_declared_while_a_node_was_away_is_in_its_welcome_and_the_newest_only() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    for text in ["one", "two", "three"] {
        up.declare(&folder(&module(&[("/etc/motd", text)]))).await.unwrap();
    }
    let open = host.session(&up).await;
    let told = open.welcome.declared.unwrap();
    assert_eq!(told.revision.number, RevisionNumber(3));
    let held = HeldDeclaration { revision: told.revision, sha256: told.sha256 };
    let mut open = host.session_as(&up, |hello| Hello { held: Some(held), ..hello }).await.unwrap();
    up.declare(&folder(&module(&[("/etc/motd", "four")]))).await.unwrap();
    assert_eq!(pushed(&up, &mut open).await.revision.number, RevisionNumber(4));
}

// case: O-71
#[tokio::test]
async fn a_host_that_has_a_later_revision_is_asked_once_and_the_operator_is_told() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let mut open = host.session(&up).await;
    up.declare(&folder(&module(&[("/etc/motd", "one")]))).await.unwrap();
    let (id, push) = open.request::<Push>().await;
    let later = tenure_protocol::id::Revision { number: RevisionNumber(42), ..push.revision };
    open.link.answer(id, Ok(codec::encode(&Pushed::HaveLater(later)))).await.unwrap();
    let told = async {
        while !up.events("edge-1").await.iter().any(|(kind, text)| kind == "ahead" && text.contains("42")) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, told).await.unwrap();
}

#[tokio::test]
async fn the_same_folder_declares_no_new_revision() {
    let up = up().await;
    up.host("edge-1").await;
    let text = module(&[("/etc/motd", "hello")]);
    assert!(up.declare(&folder(&text)).await.unwrap().written);
    let again = up.declare(&folder(&text)).await.unwrap();
    assert!(!again.written);
    let plan = up.plan(&again).await;
    assert_eq!((plan.nodes[0].from, plan.nodes[0].to), (Some(RevisionNumber(1)), RevisionNumber(1)));
    assert_eq!(up.node("edge-1").await.line.revision.declared, Some(RevisionNumber(1)));
}

#[tokio::test]
async fn a_plan_says_every_change_and_writes_none() {
    let up = up().await;
    up.host("edge-1").await;
    up.invite("edge-2").await;
    let text = module(&[("/etc/motd", "hello")]);
    let planned = up.declare_with(&folder(&text), true, None).await.unwrap();
    assert!(!planned.written);
    let plan = up.plan(&planned).await;
    assert_eq!(plan.not_in_folder, vec![name("edge-2")]);
    assert!(matches!(&plan.nodes[0].changes[..], [change] if change.what == ChangeKind::Add));
    assert_eq!(up.node("edge-1").await.line.revision.declared, None);
}

// case: O-68
#[tokio::test]
async fn one_unknown_or_retired_name_and_nothing_is_declared_for_anybody() {
    let up = up().await;
    up.host("edge-1").await;
    let text = module(&[("/etc/motd", "hello")]);
    let fleet = format!("{FLEET}[node.\"edge-11\"]\nmodules = [\"base\"]\n");
    let files = [("fleet.toml", fleet.as_str()), ("modules/base/module.toml", text.as_str())];
    let refused = refusal(up.declare(&files).await);
    assert!(refused.happened.contains("edge-11") && refused.happened.contains("edge-1"), "{refused:?}");
    assert_eq!(up.node("edge-1").await.line.revision.declared, None);
    up.invite("edge-11").await;
    up.ask("fleet", &Retire { node: name("edge-11") }).await.unwrap();
    assert!(refusal(up.declare(&files).await).is("retired"));
    assert_eq!(up.node("edge-1").await.line.revision.declared, None);
    let unknown = refusal(up.ask("node/edge-7", &operator::Node { node: name("edge-7") }).await);
    assert!(unknown.is("unknown_node") && unknown.happened.contains("did you mean"), "{unknown:?}");
}

// rule: H-23
#[tokio::test]
async fn a_declaration_that_removes_too_much_needs_the_word_and_carries_it() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let mut open = host.session(&up).await;
    let four = module(&[("/etc/a", "1"), ("/etc/b", "2"), ("/etc/c", "3"), ("/etc/d", "4")]);
    up.declare(&folder(&four)).await.unwrap();
    pushed(&up, &mut open).await;
    let one = module(&[("/etc/a", "1")]);
    let refused = refusal(up.declare(&folder(&one)).await);
    assert!(refused.is("too_many_removals") && refused.remedy.contains("--allow-removals 3"), "{refused:?}");
    assert!(refused.happened.contains("node edge-1"), "{refused:?}");
    // A plan shows what it is about, and that it would be refused.
    let planned = up.declare_with(&folder(&one), true, None).await.unwrap();
    let plan = up.plan(&planned).await.nodes.remove(0);
    let why = plan.refused.unwrap();
    assert_eq!((why.code, why.happened, plan.changes.len()), (refused.code, refused.happened, 3));
    assert_eq!(why.remedy, "if this is meant, run `tenure declare DIR --allow-removals 3`");
    let planned = up.declare_with(&folder(&one), true, Some(3)).await.unwrap();
    assert_eq!(up.plan(&planned).await.nodes.remove(0).refused, None);
    up.declare_with(&folder(&one), false, Some(3)).await.unwrap();
    let push = pushed(&up, &mut open).await;
    let declaration = Declaration::parse(&open.fetch(push.sha256).await.unwrap()).unwrap();
    assert_eq!(declaration.header.allowed_removals, Some(3));
}

#[tokio::test]
async fn a_render_gives_the_bytes_the_next_declaration_would_have_and_declares_nothing() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let mut open = host.session(&up).await;
    let folder_id = up.folder_of(&folder(&module(&[("/etc/motd", "hello")]))).await;
    let rendered =
        up.ask("catalogue", &operator::Render { folder: folder_id, node: name("edge-1") }).await.unwrap();
    assert_eq!(up.node("edge-1").await.line.revision.declared, None);
    let wanted = vec![
        Wanted { sha256: rendered.declaration.sha256, offset: 0 },
        Wanted { sha256: Digest::of(b"hello"), offset: 0 },
    ];
    assert_eq!(up.ask("catalogue", &operator::Get { wanted }).await.unwrap().pieces.len(), 2);
    up.ask("catalogue", &Declare { folder: folder_id, plan: false, allow_removals: None }).await.unwrap();
    assert_eq!(pushed(&up, &mut open).await.sha256, rendered.declaration.sha256);
}

#[tokio::test]
async fn large_content_comes_in_pieces_in_order_and_only_whole_and_true_counts_as_there() {
    let up = up().await;
    let bytes = vec![b'x'; 300 * 1024];
    let sha256 = up.upload(&bytes).await;
    let missing = |sha256| tenure_protocol::content::Missing { sha256: vec![sha256] };
    assert!(up.ask("catalogue", &missing(sha256)).await.unwrap().sha256.is_empty());
    let mut got: Vec<u8> = Vec::new();
    while got.len() < bytes.len() {
        let wanted = vec![Wanted { sha256, offset: u64::try_from(got.len()).unwrap() }];
        let pieces = up.ask("catalogue", &operator::Get { wanted }).await.unwrap().pieces;
        pieces.iter().for_each(|piece| got.extend(&piece.bytes));
    }
    assert_eq!(got, bytes);
    let lie = tenure_protocol::content::Piece {
        sha256: Digest::of(b"a"),
        size: 1,
        offset: 0,
        bytes: b"b".to_vec(),
    };
    let put = |piece| tenure_protocol::content::Put { pieces: vec![piece] };
    assert!(refusal(up.ask("catalogue", &put(lie.clone())).await).is("wrong_digest"));
    let late = tenure_protocol::content::Piece { size: 9, offset: 4, ..lie };
    assert!(refusal(up.ask("catalogue", &put(late)).await).is("out_of_order"));
    assert_eq!(up.ask("catalogue", &missing(Digest::of(b"a"))).await.unwrap().sha256.len(), 1);
}

#[tokio::test]
async fn content_that_nothing_names_is_dropped_at_a_start_an_hour_later_and_the_rest_stays() {
    let up = up().await;
    up.host("edge-1").await;
    let text = module(&[("/etc/motd", "hello")]);
    up.declare(&folder(&text)).await.unwrap();
    up.clock.advance(std::time::Duration::from_secs(2 * 3600));
    let up = up.restart().await;
    let asked =
        tenure_protocol::content::Missing { sha256: vec![Digest::of(b"hello"), Digest::of(text.as_bytes())] };
    let missing = up.ask("catalogue", &asked).await.unwrap().sha256;
    assert_eq!(missing, vec![Digest::of(text.as_bytes())]);
    let declared = up.control.plane().store.declared(name("edge-1")).await.unwrap().unwrap();
    assert!(up.control.plane().store.content(declared.sha256).await.unwrap().is_some());
}

// rule: S-22
#[tokio::test]
async fn content_that_nothing_names_is_dropped_while_it_runs_too() {
    let up = up().await;
    let sha256 = up.upload(b"nobody's").await;
    let store = std::sync::Arc::clone(&up.control.plane().store);
    assert!(store.missing(vec![sha256]).await.unwrap().is_empty());
    up.clock.advance(std::time::Duration::from_secs(2 * 3600));
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(3601)).await;
    tokio::time::resume();
    let dropped = async {
        while store.missing(vec![sha256]).await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, dropped).await.unwrap();
}

// rule: H-23
#[tokio::test]
async fn a_larger_word_is_a_new_revision_for_a_node_that_refused_and_the_same_word_again_is_none() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let mut open = host.session(&up).await;
    let text = module(&[("/etc/motd", "hello")]);
    let files = folder(&text);
    up.declare(&files).await.unwrap();
    pushed(&up, &mut open).await;
    assert!(up.declare_with(&files, false, Some(3)).await.unwrap().written);
    let push = pushed(&up, &mut open).await;
    let declaration = Declaration::parse(&open.fetch(push.sha256).await.unwrap()).unwrap();
    assert_eq!(declaration.header.allowed_removals, Some(3));
    assert!(!up.declare_with(&files, false, Some(3)).await.unwrap().written);
    assert!(!up.declare(&files).await.unwrap().written);
    assert!(up.declare_with(&files, false, Some(4)).await.unwrap().written);
}

// rule: H-21
#[tokio::test]
async fn a_refused_revision_is_failed_while_it_is_the_newest_and_nothing_once_another_is_declared() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let mut open = host.session(&up).await;
    up.declare(&folder(&module(&[("/etc/motd", "one")]))).await.unwrap();
    let push = pushed(&up, &mut open).await;
    let mut refused = part(&push, 1, &[], &[]);
    refused.summary.revision = None;
    refused.summary.refused = Some(tenure_protocol::refusal::Refusal::new("older", "it is older", "m", "d"));
    open.ask(&refused).await.unwrap();
    assert_eq!(standing(&up).await.standing, Standing::Outstanding);
    refused.summary.refused_revision = Some(push.revision);
    refused.summary.pass = 2;
    open.ask(&refused).await.unwrap();
    let line = standing(&up).await;
    assert!(line.standing == Standing::Failed && line.reason.contains("it is older"), "{line:?}");
    up.declare(&folder(&module(&[("/etc/motd", "two")]))).await.unwrap();
    let line = standing(&up).await;
    assert!(line.standing == Standing::Outstanding && !line.reason.contains("it is older"), "{line:?}");
}
