//! What the nodes of a plan would make of it, asked of them.

use tenure_protocol::content::Pushed;
use tenure_protocol::foresight::{Foresee, ForeseeOf, ForeseenLine, ForeseenPage, What};
use tenure_protocol::id::{Digest, Millis};
use tenure_protocol::resource::Content;
use tenure_protocol::wire::codec;
use tenure_protocol::wire::exchange::CallError;

use super::declaring::{folder, module};
use super::scripted::{Up, name, refusal, up};

fn page() -> ForeseenPage {
    let line = ForeseenLine {
        key: "file:/etc/motd".to_owned(),
        module: "base".to_owned(),
        verdict: What::Change.verdict(),
        what: What::Change,
        code: None,
        detail: vec!["it is missing".to_owned()],
        packages: Vec::new(),
    };
    ForeseenPage { at: Millis(7), refused: None, lines: vec![line], more: false }
}

/// What a plan for this text names for `edge-1`.
async fn planned(up: &Up, text: &str) -> Content {
    let declared = up.declare_with(&folder(text), true, None).await.unwrap();
    assert!(!declared.written);
    up.plan(&declared).await.nodes.remove(0).declaration.unwrap()
}

async fn foresee(up: &Up, node: &str, declaration: Content) -> Result<ForeseenPage, CallError> {
    up.ask(&format!("reconcile/{node}"), &ForeseeOf { node: name(node), declaration, from: 0 }).await
}

// rule: A-18
// rule: S-08
#[tokio::test]
async fn a_node_is_asked_what_it_would_make_of_a_plan_and_may_fetch_it_only_while_it_is_asked() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let mut open = host.session(&up).await;
    let text = module(&[("/etc/motd", "hello")]);
    let planned = planned(&up, &text).await;
    assert_eq!(refusal(open.fetch(planned.sha256).await).code, "not_declared");
    let answering = async {
        let (id, asked) = open.request::<Foresee>().await;
        assert_eq!(asked, Foresee { declaration: planned, from: 0 });
        let bytes = open.fetch(planned.sha256).await.unwrap();
        assert_eq!(Digest::of(&bytes), planned.sha256);
        assert_eq!(open.fetch(Digest::of(b"hello")).await.unwrap(), b"hello");
        assert_eq!(refusal(open.fetch(Digest::of(b"other")).await).code, "not_declared");
        open.link.answer(id, Ok(codec::encode(&page()))).await.unwrap();
    };
    let (said, ()) = tokio::join!(foresee(&up, "edge-1", planned), answering);
    assert_eq!(said.unwrap(), page());
    assert_eq!(refusal(open.fetch(planned.sha256).await).code, "not_declared");
    assert_eq!(up.node("edge-1").await.line.revision.declared, None, "a plan declares nothing");
    // What is declared already is asked about just so.
    let declared = up.declare(&folder(&text)).await.unwrap();
    assert_eq!(up.plan(&declared).await.nodes.remove(0).declaration, Some(planned));
    let push = super::declaring::pushed(&up, &mut open).await;
    assert_eq!((push.sha256, Pushed::Fetching), (planned.sha256, Pushed::Fetching));
}

// rule: S-19
#[tokio::test]
async fn sensitive_content_of_a_plan_is_not_given_out_before_it_is_declared() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let mut open = host.session(&up).await;
    let secret = "[[file]]\npath = \"/etc/key\"\nmode = \"0600\"\ncontent = \"hunter2\"\n";
    let planned = planned(&up, &format!("{}{secret}", module(&[]))).await;
    let answering = async {
        let (id, _) = open.request::<Foresee>().await;
        assert_eq!(refusal(open.fetch(Digest::of(b"hunter2")).await).code, "not_declared");
        open.link.answer(id, Ok(codec::encode(&page()))).await.unwrap();
    };
    let (said, ()) = tokio::join!(foresee(&up, "edge-1", planned), answering);
    assert_eq!(said.unwrap(), page());
}

#[tokio::test]
async fn who_is_not_there_or_asked_about_anothers_declaration_is_said_by_name() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let text = module(&[("/etc/motd", "hello")]);
    let first = planned(&up, &text).await;
    let away = refusal(foresee(&up, "edge-1", first).await);
    assert_eq!(away.code, "not_connected");
    assert!(away.happened.contains("was never heard"), "{}", away.happened);
    let open = host.session(&up).await;
    open.beat().await.unwrap();
    assert_eq!(refusal(foresee(&up, "edge-1", first).await).code, "declaration_not_here");
    let mut other = up.host("edge-2").await;
    let _other = other.session(&up).await;
    let planned = planned(&up, &text).await;
    assert_eq!(refusal(foresee(&up, "edge-2", planned).await).code, "declaration_not_for_node");
    assert_eq!(refusal(foresee(&up, "edge-9", planned).await).code, "unknown_node");
    drop(open);
    up.until("edge-1", |detail| detail.session.is_none()).await;
    let away = refusal(foresee(&up, "edge-1", planned).await);
    assert!(away.happened.contains("was last heard at 2026-01-01T00:00:00Z"), "{}", away.happened);
}

#[tokio::test]
async fn one_question_at_a_time_is_put_to_a_node_and_one_that_goes_over_it_did_not_answer() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let mut open = host.session(&up).await;
    let planned = planned(&up, &module(&[("/etc/motd", "hello")])).await;
    let node = super::super::super::fleet::find(up.control.plane(), &name("edge-1")).unwrap();
    let session = node.session().unwrap();
    let asked = Foresee { declaration: planned, from: 0 };
    let first = tokio::spawn(async move { session.foresee(asked, Default::default()).await });
    let (_, _) = open.request::<Foresee>().await;
    assert_eq!(refusal(foresee(&up, "edge-1", planned).await).code, "already_asked");
    first.abort();
    let _ = first.await;
    let going = async {
        let (_, _) = open.request::<Foresee>().await;
        drop(open);
    };
    let (said, ()) = tokio::join!(foresee(&up, "edge-1", planned), going);
    let said = refusal(said);
    assert_eq!(said.code, "node_did_not_answer");
    assert!(
        said.happened.ends_with("was asked, and the connection ended before the answer came"),
        "{said:?}"
    );
}

#[tokio::test]
async fn a_node_that_does_not_answer_holds_up_nothing_else_that_the_same_connection_asks() {
    let up = up().await;
    let (mut first, mut second) = (up.host("edge-1").await, up.host("edge-2").await);
    let (mut silent, mut open) = (first.session(&up).await, second.session(&up).await);
    let fleet = "[node.\"edge-1\"]\nmodules = [\"base\"]\n[node.\"edge-2\"]\nmodules = [\"base\"]\n";
    let text = module(&[("/etc/motd", "hello")]);
    let files = [("fleet.toml", fleet), ("modules/base/module.toml", text.as_str())];
    let declared = up.declare_with(&files, true, None).await.unwrap();
    let planned: Vec<Content> =
        up.plan(&declared).await.nodes.iter().map(|node| node.declaration.unwrap()).collect();
    let never = foresee(&up, "edge-1", planned[0]);
    let meanwhile = async {
        let (_, _) = silent.request::<Foresee>().await;
        let answering = async {
            let (id, _) = open.request::<Foresee>().await;
            open.link.answer(id, Ok(codec::encode(&page()))).await.unwrap();
        };
        let (said, ()) = tokio::join!(foresee(&up, "edge-2", planned[1]), answering);
        assert_eq!(said.unwrap(), page());
        assert_eq!(up.node_count().await, 2);
    };
    tokio::select! {
        said = never => panic!("nobody answered: {said:?}"),
        () = meanwhile => {}
    }
}

// rule: S-20
#[tokio::test]
async fn what_a_node_says_of_a_refusal_is_bounded_and_escaped() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let mut open = host.session(&up).await;
    let planned = planned(&up, &module(&[("/etc/motd", "hello")])).await;
    let answering = async {
        let (id, _) = open.request::<Foresee>().await;
        let odd = tenure_protocol::refusal::Refusal::new("odd", "a\u{1b}[2J".repeat(9_000), "", "");
        open.link.answer(id, Err(odd)).await.unwrap();
    };
    let (said, ()) = tokio::join!(foresee(&up, "edge-1", planned), answering);
    let said = refusal(said);
    assert!(said.happened.len() < 20_000 && !said.happened.contains('\u{1b}'));
}
