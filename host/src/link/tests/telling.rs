//! What travels on a session: declarations down, reports and events up.

use super::*;

// rule: H-07
// rule: S-11
#[tokio::test]
async fn a_declaration_is_taken_from_the_welcome_and_from_a_push_and_never_asked_for() {
    let (fake, machine) = (Fake::start().await, Machine::new());
    let large = vec![7; 700_000];
    fake.declare(declaration(&fake, 1, &[("/srv/a", b"a"), ("/srv/large", &large)]), 1, 2);
    let daemon = machine.start().await;
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    fake.until(|book| book.parts.iter().any(|part| part.summary.revision.is_some_and(|r| r.number.0 == 1)))
        .await;
    let reader =
        daemon.store().reader(Digest::of(&large)).unwrap().expect("the large content is there whole");
    assert_eq!(reader.read_all().unwrap(), large);
    let push = fake.declare(declaration(&fake, 2, &[("/srv/a", b"b"), ("/srv/large", &large)]), 2, 2);
    assert_eq!(fake.push(&push).await, tenure_protocol::content::Pushed::Fetching);
    fake.until(|book| book.parts.iter().any(|part| part.summary.revision.is_some_and(|r| r.number.0 == 2)))
        .await;
    assert_eq!(fake.push(&push).await, tenure_protocol::content::Pushed::Have);
    let older = tenure_protocol::content::Push {
        revision: tenure_protocol::id::Revision { number: RevisionNumber(1), ..push.revision },
        ..push
    };
    assert!(
        matches!(fake.push(&older).await, tenure_protocol::content::Pushed::HaveLater(held) if held == push.revision)
    );
    daemon.stop().await;
}

#[tokio::test]
async fn a_declaration_that_is_refused_whole_leaves_the_last_good_one_and_is_reported() {
    let (fake, machine) = (Fake::start().await, Machine::new());
    fake.declare(declaration(&fake, 1, &[("/srv/a", b"a")]), 1, 1);
    let daemon = machine.start().await;
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    fake.until(|book| book.parts.iter().any(|part| part.summary.revision.is_some())).await;
    let push = fake.declare(b"{ not a declaration".to_vec(), 2, 1);
    fake.push(&push).await;
    let refused = fake.when(|book| book.parts.iter().find_map(|part| part.summary.refused.clone())).await;
    assert_eq!(refused.code, "declaration_unreadable");
    assert_eq!(daemon.store().declaration().unwrap().unwrap().revision.number.0, 1);
    daemon.stop().await;
}

#[tokio::test]
async fn a_control_plane_that_lacks_the_rest_is_told_everything_once() {
    let (fake, machine) = (Fake::start().await, Machine::new());
    let daemon = machine.start().await;
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    fake.until(|book| book.parts.iter().any(|part| part.full)).await;
    fake.change(|ways| ways.resend = true);
    let told = fake.book.borrow().parts.len();
    daemon.reconcile.ask(Duration::from_secs(20)).await.unwrap().unwrap();
    fake.until(|book| book.parts[told..].iter().any(|part| part.full && part.last)).await;
    daemon.stop().await;
}

// rule: N-11
#[tokio::test]
async fn spooled_events_are_told_when_the_link_is_there_and_kept_until_they_are_acknowledged() {
    let (fake, machine) = (Fake::start().await, Machine::new());
    let daemon = machine.start().await;
    let events: Vec<_> = (0..250)
        .map(|n| tenure_protocol::event::NodeEvent {
            id: tenure_protocol::id::EventId::random(),
            at: Millis(n),
            kind: "removed".to_owned(),
            key: None,
            text: "x".repeat(500),
        })
        .collect();
    daemon.store().spool(&events).unwrap();
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    let told = fake.when(|book| (book.events.len() >= 250).then(|| book.events.clone())).await;
    assert_eq!(told, events);
    daemon.stop().await;
}

// rule: H-07
// rule: H-08
#[tokio::test]
async fn with_no_link_after_a_restart_the_machine_is_held_in_the_last_declaration() {
    let (fake, machine) = (Fake::start().await, Machine::new());
    fake.declare(declaration(&fake, 1, &[("/srv/a", b"held")]), 1, 1);
    std::fs::create_dir(machine.folder.path().join("srv")).unwrap();
    let file = machine.folder.path().join("srv/a");
    let daemon = machine.start().await;
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    fake.until(|book| book.parts.iter().any(|part| part.summary.counts.applied == 1)).await;
    assert_eq!(std::fs::read(&file).unwrap(), b"held");
    daemon.stop().await;
    std::fs::write(&file, "drifted").unwrap();
    fake.change(|ways| ways.refuse_hello = Some(refusal("busy")));
    let daemon = machine.start().await;
    linked(&daemon, |view| is_down_with(view, "busy")).await;
    daemon.reconcile.ask(Duration::from_secs(20)).await.unwrap().unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), b"held");
    daemon.stop().await;
}

// rule: H-07
#[tokio::test]
async fn many_triggers_at_once_make_few_passes() {
    use tenure_protocol::report::Trigger;
    let (fake, machine) = (Fake::start().await, Machine::new());
    let daemon = machine.start().await;
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    linked(&daemon, is_up).await;
    let before = daemon.reconcile.ask(Duration::from_secs(20)).await.unwrap().unwrap().pass;
    for _ in 0..100 {
        for trigger in [Trigger::Timer, Trigger::Reconnect, Trigger::Declaration] {
            daemon.reconcile.wanted(trigger);
        }
    }
    let after = daemon.reconcile.ask(Duration::from_secs(20)).await.unwrap().unwrap().pass;
    assert!(after - before <= 3, "{} passes", after - before);
    daemon.stop().await;
}
