//! What is asked on the session about a declaration that is only planned.

use tenure_protocol::foresight::{Foresee, ForeseenPage, What};
use tenure_protocol::wire::CallError;

use super::*;

/// A declaration that may be fetched and is not declared.
fn planned(fake: &Fake, bytes: Vec<u8>) -> Foresee {
    let declaration = Content { sha256: Digest::of(&bytes), size: u64::try_from(bytes.len()).unwrap() };
    fake.change(|ways| drop(ways.contents.insert(declaration.sha256, bytes)));
    Foresee { declaration, from: 0 }
}

/// The code of what was refused.
fn code(result: Result<ForeseenPage, CallError>) -> String {
    match result {
        Err(CallError::Refused(refusal)) => refusal.code,
        other => panic!("{other:?}"),
    }
}

// rule: A-18
#[tokio::test]
async fn a_planned_declaration_is_foreseen_with_its_diff_and_leaves_nothing_behind() {
    let (fake, machine) = (Fake::start().await, Machine::new());
    fake.declare(declaration(&fake, 1, &[("/srv/a", b"one\n"), ("/srv/b", b"b")]), 1, 2);
    std::fs::create_dir_all(machine.ground().at("/srv")).unwrap();
    let daemon = machine.start().await;
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    fake.until(|book| book.parts.iter().any(|part| part.summary.revision.is_some() && part.last)).await;
    let files = ["/srv/a", "/srv/b"].map(|path| std::fs::read(machine.ground().at(path)).unwrap());
    let held = daemon.store().declaration().unwrap().unwrap();
    let next = planned(&fake, declaration(&fake, 2, &[("/srv/a", b"two\n"), ("/srv/c", b"c\n")]));
    let page = fake.foresee(&next).await.unwrap();
    let said: Vec<_> = page.lines.iter().map(|line| (line.key.as_str(), line.what)).collect();
    let expected =
        [("file:/srv/a", What::Change), ("file:/srv/c", What::Change), ("file:/srv/b", What::Remove)];
    assert_eq!((said.as_slice(), page.more, page.refused), (expected.as_slice(), false, None));
    let detail = &page.lines[0].detail;
    assert!(detail.contains(&"-one".to_owned()) && detail.contains(&"+two".to_owned()), "{detail:?}");
    assert_eq!(files, ["/srv/a", "/srv/b"].map(|path| std::fs::read(machine.ground().at(path)).unwrap()));
    assert!(!machine.ground().at("/srv/c").exists());
    let store = daemon.store();
    assert_eq!(store.declaration().unwrap().unwrap().sha256, held.sha256);
    let fetched = Content { sha256: Digest::of(b"two\n"), size: 4 };
    assert_eq!(store.missing(&[fetched]).unwrap().len(), 1, "what was fetched for it is not in the store");
    daemon.stop().await;
}

// rule: H-23
#[tokio::test]
async fn what_the_machine_would_refuse_whole_is_said_beside_what_it_would_have_done() {
    let (fake, machine) = (Fake::start().await, Machine::new());
    std::fs::create_dir_all(machine.ground().at("/srv")).unwrap();
    fake.declare(declaration(&fake, 1, &[("/srv/a", b"a"), ("/srv/b", b"b"), ("/srv/c", b"c")]), 1, 3);
    let daemon = machine.start().await;
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    fake.until(|book| book.parts.iter().any(|part| part.summary.owned == 3)).await;
    let page = fake.foresee(&planned(&fake, declaration(&fake, 2, &[("/srv/a", b"a")]))).await.unwrap();
    assert_eq!(page.refused.map(|refusal| refusal.code).as_deref(), Some("too_many_removals"));
    assert_eq!(page.lines.iter().filter(|line| line.what == What::Remove).count(), 2);
    daemon.stop().await;
}

#[tokio::test]
async fn what_was_not_foreseen_last_and_what_is_no_declaration_are_refused_by_name_and_the_session_stays() {
    let (fake, machine) = (Fake::start().await, Machine::new());
    let daemon = machine.start().await;
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    linked(&daemon, is_up).await;
    let garbage = planned(&fake, b"{}".to_vec());
    assert_eq!(code(fake.foresee(&garbage).await), "declaration_unreadable");
    assert_eq!(code(fake.foresee(&Foresee { from: 5, ..garbage }).await), "foresight_forgotten");
    let never = Content { sha256: Digest::of(b"never"), size: 5 };
    let asked = Foresee { declaration: never, from: 0 };
    assert_eq!(code(fake.foresee(&asked).await), "declaration_not_fetched");
    let huge = Content { size: u64::MAX, ..never };
    let asked = Foresee { declaration: huge, from: 0 };
    assert_eq!(code(fake.foresee(&asked).await), "declaration_unreadable");
    linked(&daemon, is_up).await;
    daemon.stop().await;
}

#[tokio::test]
#[expect(clippy::await_holding_lock, reason = "it is what a pass does, on a thread of its own")]
async fn while_a_pass_is_at_work_nothing_is_foreseen_and_that_is_said() {
    let (fake, mut machine) = (Fake::start().await, Machine::new());
    machine.foreseeing.settles_within = Duration::from_millis(1);
    let daemon = machine.start().await;
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    linked(&daemon, is_up).await;
    let asked = planned(&fake, declaration(&fake, 1, &[("/srv/a", b"a")]));
    let pass = daemon.store().passing();
    let at_work = pass.lock().unwrap();
    assert_eq!(code(fake.foresee(&asked).await), "pass_running");
    drop(at_work);
    assert_eq!(fake.foresee(&asked).await.unwrap().lines.len(), 1);
    daemon.stop().await;
}

#[tokio::test]
async fn what_was_not_looked_at_in_time_cannot_be_known_and_that_is_said_of_each() {
    let (fake, mut machine) = (Fake::start().await, Machine::new());
    machine.foreseeing.looks_within = Duration::ZERO;
    machine.foreseeing.settles_within = Duration::from_secs(60);
    let daemon = machine.start().await;
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    linked(&daemon, is_up).await;
    let asked = planned(&fake, declaration(&fake, 1, &[("/srv/a", b"a"), ("/srv/b", b"b")]));
    let page = fake.foresee(&asked).await.unwrap();
    let said: Vec<_> = page.lines.iter().map(|line| (line.what, line.code.as_deref())).collect();
    assert_eq!(said, [(What::CannotKnow, Some("not_looked_at")); 2]);
    daemon.stop().await;
}

#[tokio::test]
#[expect(clippy::await_holding_lock, reason = "it is what a look does, on a thread of its own")]
async fn a_look_that_hangs_is_no_reason_to_begin_another_and_whoever_asks_is_told() {
    let (fake, mut machine) = (Fake::start().await, Machine::new());
    let hanging = Arc::clone(&machine.foreseeing.looking);
    let hangs = hanging.lock().unwrap();
    machine.foreseeing.settles_within = Duration::from_millis(1);
    let daemon = machine.start().await;
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    linked(&daemon, is_up).await;
    let asked = planned(&fake, declaration(&fake, 1, &[("/srv/a", b"a")]));
    assert_eq!(code(fake.foresee(&asked).await), "already_asked");
    daemon.stop().await;
    machine.foreseeing = Foreseeing {
        settles_within: Duration::from_secs(60),
        looks_within: Duration::ZERO,
        comes_back_within: Duration::from_millis(1),
        ..machine.foreseeing
    };
    let daemon = machine.start().await;
    linked(&daemon, is_up).await;
    assert_eq!(code(fake.foresee(&asked).await), "look_hangs");
    daemon.stop().await;
    drop(hangs);
    // The same lock, and times in which a look on a busy machine comes back.
    machine.foreseeing = Foreseeing { looking: Arc::clone(&hanging), ..Foreseeing::default() };
    let daemon = machine.start().await;
    linked(&daemon, is_up).await;
    assert_eq!(fake.foresee(&asked).await.unwrap().lines.len(), 1);
    daemon.stop().await;
}
