//! The session: opening, losing, being told to go, coming back.

use super::*;

// rule: X-1
// rule: H-08
#[tokio::test]
async fn a_restarted_host_comes_back_by_itself_with_the_next_session_number() {
    let (fake, machine) = (Fake::start().await, Machine::new());
    let daemon = machine.start().await;
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    linked(&daemon, is_up).await;
    daemon.stop().await;
    let daemon = machine.start().await;
    let (first, second) =
        fake.when(|book| Some((book.hellos.first()?.clone(), book.hellos.get(1)?.clone()))).await;
    assert!(second.session_counter > first.session_counter);
    assert_eq!(second.store_id, first.store_id);
    assert!(second.session_token.is_some(), "the last token is shown; the proof is what opens");
    daemon.stop().await;
}

// rule: X-9
// rule: X-10
#[tokio::test]
async fn a_retired_node_keeps_what_it_has_and_says_that_it_is_retired() {
    let (fake, machine) = (Fake::start().await, Machine::new());
    fake.declare(declaration(&fake, 1, &[("/srv/a", b"a")]), 1, 1);
    let daemon = machine.start().await;
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    fake.until(|book| book.parts.iter().any(|part| part.summary.revision.is_some())).await;
    fake.change(|ways| ways.refuse_hello = Some(refusal("retired")));
    fake.end(&Ended { reason: refusal("retired"), retry_after_ms: 0 }).await;
    linked(&daemon, |view| is_down_with(view, "retired")).await;
    assert!(daemon.store().declaration().unwrap().is_some());
    assert!(daemon.store().identity::<StoredIdentity>().unwrap().is_some());
    daemon.stop().await;
}

// rule: S-18
#[tokio::test]
async fn the_control_planes_time_is_kept_and_certificates_are_not_judged_before_it() {
    let (fake, machine) = (Fake::start().await, Machine::new());
    let daemon = machine.start().await;
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    linked(&daemon, is_up).await;
    let told = fake.ways.lock().unwrap().now;
    assert_eq!(daemon.store().control_time().unwrap(), Some(told));
    daemon.stop().await;
    assert_eq!(no_earlier(Some(told)), told);
    assert_eq!(no_earlier(Some(Millis(0))), built(), "nothing is older than the build");
    assert_eq!(no_earlier(None), built());
}

// case: O-54
#[tokio::test]
async fn a_control_plane_that_falls_silent_without_a_goodbye_is_noticed_and_dialled_again() {
    let (fake, machine) = (Fake::start().await, Machine::new());
    fake.change(|ways| {
        ways.silence_ms = 1_000;
        ways.deaf_after = Some(1);
    });
    let daemon = machine.start().await;
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    linked(&daemon, is_up).await;
    linked(&daemon, |view| is_down_with(view, "silent")).await;
    fake.change(|ways| ways.deaf_after = None);
    fake.until(|book| book.hellos.len() == 2).await;
    daemon.stop().await;
}

// case: O-55
#[tokio::test]
async fn a_session_on_which_not_one_beat_comes_back_is_called_buffering() {
    let (fake, machine) = (Fake::start().await, Machine::new());
    fake.change(|ways| {
        ways.silence_ms = 1_000;
        ways.deaf_after = Some(0);
    });
    let daemon = machine.start().await;
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    linked(&daemon, is_up).await;
    linked(&daemon, |view| is_down_with(view, "buffering")).await;
    fake.change(|ways| ways.deaf_after = None);
    linked(&daemon, is_up).await;
    daemon.stop().await;
}

// case: O-61
#[tokio::test]
async fn a_control_plane_that_says_busy_is_not_dialled_before_the_time_it_says() {
    let (fake, machine) = (Fake::start().await, Machine::new());
    fake.change(|ways| {
        ways.not_now = Some(Ended { reason: refusal("busy"), retry_after_ms: 600_000 });
    });
    let daemon = machine.start().await;
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    linked(&daemon, |view| is_down_with(view, "busy")).await;
    assert_eq!(fake.book.borrow().hellos.len(), 1);
    fake.change(|ways| {
        ways.not_now = Some(Ended { reason: refusal("busy"), retry_after_ms: 200 });
    });
    daemon.link.enrol(fake.token("edge-1", 2)).await.unwrap().unwrap();
    fake.until(|book| book.hellos.len() >= 2).await;
    fake.change(|ways| ways.not_now = None);
    linked(&daemon, is_up).await;
    daemon.stop().await;
}

// rule: X-9
// case: O-57
#[tokio::test]
async fn a_fenced_machine_tells_what_it_did_says_what_it_is_and_goes_on_holding() {
    let (fake, machine) = (Fake::start().await, Machine::new());
    fake.declare(declaration(&fake, 1, &[("/srv/a", b"held")]), 1, 1);
    std::fs::create_dir(machine.folder.path().join("srv")).unwrap();
    let file = machine.folder.path().join("srv/a");
    let daemon = machine.start().await;
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    fake.until(|book| book.parts.iter().any(|part| part.summary.counts.applied == 1)).await;
    daemon.stop().await;
    fake.change(|ways| ways.refuse_hello = Some(refusal("fenced")));
    std::fs::write(&file, "drifted").unwrap();
    let told = fake.book.borrow().events.len();
    let daemon = machine.start().await;
    daemon.reconcile.ask(Duration::from_secs(20)).await.unwrap().unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), b"held", "its last declaration is what it holds");
    daemon.stop().await;
    let hellos = fake.book.borrow().hellos.len();
    let daemon = machine.start().await;
    fake.until(|book| book.events[told..].iter().any(|event| event.kind == "drift_repaired")).await;
    let view = linked(&daemon, |view| is_down_with(view, "fenced")).await;
    assert_eq!(view.machine, MachineState::Disconnected);
    assert_eq!(daemon.store().spooled_count().unwrap(), 0, "what was taken is not told again");
    assert!(daemon.store().declaration().unwrap().is_some());
    assert_eq!(fake.book.borrow().hellos.len(), hellos + 1, "nobody knocks in a tight loop");
    daemon.stop().await;
}

// case: O-61
#[tokio::test]
async fn a_goodbye_with_a_time_is_kept_to() {
    let (fake, machine) = (Fake::start().await, Machine::new());
    let daemon = machine.start().await;
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    linked(&daemon, is_up).await;
    fake.end(&Ended { reason: refusal("draining"), retry_after_ms: 600_000 }).await;
    linked(&daemon, |view| is_down_with(view, "draining")).await;
    assert_eq!(fake.book.borrow().hellos.len(), 1);
    daemon.stop().await;
}

// case: O-60
#[tokio::test]
async fn a_remembered_address_is_used_when_names_fail_and_that_is_said() {
    let (fake, mut machine) = (Fake::start().await, Machine::new());
    let at = fake.at;
    machine.resolve = Arc::new(move |_| Box::pin(async move { Ok(vec![at]) }));
    let daemon = machine.start().await;
    let token = fake.token_at("edge-1", 1, vec!["control.example:7443".to_owned()]);
    daemon.link.enrol(token).await.unwrap().unwrap();
    let view = linked(&daemon, is_up).await;
    assert!(matches!(view.link, LinkStatus::Up { note: None, .. }));
    daemon.stop().await;
    machine.resolve = Arc::new(|_| Box::pin(async { Err(std::io::Error::other("no resolver")) }));
    let daemon = machine.start().await;
    let LinkStatus::Up { note: Some(note), .. } = linked(&daemon, is_up).await.link else {
        panic!("no note")
    };
    assert!(note.starts_with("reached by remembered address; DNS failing since 20"), "{note}");
    daemon.stop().await;
}

// rule: S-07
#[tokio::test]
async fn a_control_plane_that_states_an_impossible_epoch_gets_no_session() {
    let (fake, machine) = (Fake::start().await, Machine::new());
    fake.change(|ways| ways.epoch = Epoch { number: 1, id: EpochId::from_bytes([66; 16]) });
    let daemon = machine.start().await;
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    linked(&daemon, |view| is_down_with(view, "standing_refused")).await;
    assert_eq!(daemon.store().identity::<StoredIdentity>().unwrap().unwrap().epoch, fake::EPOCH);
    daemon.stop().await;
}

// rule: X-6
#[tokio::test]
async fn a_restored_control_plane_is_believed_in_the_session_that_states_it() {
    let (fake, machine) = (Fake::start().await, Machine::new());
    let restored = Epoch { number: 2, id: EpochId::from_bytes([2; 16]) };
    fake.change(|ways| ways.epoch = restored);
    let daemon = machine.start().await;
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    linked(&daemon, is_up).await;
    assert_eq!(daemon.store().identity::<StoredIdentity>().unwrap().unwrap().epoch, restored);
    daemon.stop().await;
}

// rule: N-06
#[tokio::test]
async fn a_session_token_is_renewed_ahead_on_the_open_session() {
    let (fake, machine) = (Fake::start().await, Machine::new());
    fake.change(|ways| ways.token_lives_ms = 3_000);
    let daemon = machine.start().await;
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    fake.until(|book| book.renewals == 1).await;
    assert_eq!(fake.book.borrow().hellos.len(), 1);
    daemon.stop().await;
}
