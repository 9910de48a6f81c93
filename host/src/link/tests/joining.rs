//! Joining, joining again, and being refused.

use super::*;

// rule: H-12
// rule: N-06
// rule: S-01
#[tokio::test]
async fn a_hosted_machine_joins_without_a_restart_and_opens_its_session_by_proof_of_its_key() {
    let (fake, machine) = (Fake::start().await, Machine::new());
    let daemon = machine.start().await;
    assert_eq!(daemon.link.view().await.unwrap().machine, MachineState::Hosted);
    let enrolled = daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    assert_eq!((enrolled.node.as_str(), enrolled.already, enrolled.briefing.len()), ("edge-1", false, 1));
    let Finding::Found(manifest) = look(&machine.ground().manifest()) else { panic!("no manifest") };
    assert_eq!((manifest.node.as_str(), manifest.control_plane_id), ("edge-1", Some(fake.id)));
    let view = linked(&daemon, is_up).await;
    assert_eq!(view.machine, MachineState::Enrolled);
    let hello = fake.when(|book| book.hellos.first().cloned()).await;
    assert_eq!((hello.session_counter.0, hello.session_token), (1, None), "no bearer secret opened it");
    fake.until(|book| book.joins.len() == 1 && book.beats.len() == 1).await;
    daemon.stop().await;
}

// rule: X-11
#[tokio::test]
async fn a_token_whose_answer_was_lost_is_given_again_with_the_same_key() {
    let (fake, machine) = (Fake::start().await, Machine::new());
    let daemon = machine.start().await;
    fake.change(|ways| ways.forget_to_answer = true);
    let refused = daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap_err();
    assert_eq!(refused.code, "redemption_unanswered");
    fake.change(|ways| ways.forget_to_answer = false);
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    let keys = fake.when(|book| (book.tokens.len() == 2).then(|| book.tokens.clone())).await;
    assert_eq!(keys[0], keys[1]);
    linked(&daemon, is_up).await;
    let again = daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    assert!(again.already && is_up(&daemon.link.view().await.unwrap()), "the session stays as it is");
    let keys = fake.when(|book| (book.tokens.len() == 3).then(|| book.tokens.clone())).await;
    assert_eq!(keys[2], keys[0]);
    daemon.stop().await;
}

// rule: X-1
// rule: X-10
#[tokio::test]
async fn a_refused_redemption_costs_the_standing_enrolment_nothing() {
    let (fake, machine) = (Fake::start().await, Machine::new());
    let daemon = machine.start().await;
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    linked(&daemon, is_up).await;
    fake.change(|ways| ways.refuse_join = Some(refusal("spent")));
    let refused = daemon.link.enrol(fake.token("edge-1", 2)).await.unwrap().unwrap_err();
    assert_eq!(refused, refusal("spent"), "the control plane's own words travel on");
    let keys = fake.when(|book| (book.tokens.len() == 2).then(|| book.tokens.clone())).await;
    assert_ne!(keys[0], keys[1], "another token, another key");
    assert!(is_up(&daemon.link.view().await.unwrap()), "the session was not touched");
    daemon.stop().await;
    let daemon = machine.start().await;
    linked(&daemon, is_up).await;
    daemon.stop().await;
}

// rule: X-5
#[tokio::test]
async fn a_reinvite_over_a_standing_enrolment_moves_the_session_to_the_new_key() {
    let (fake, machine) = (Fake::start().await, Machine::new());
    let daemon = machine.start().await;
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    fake.until(|book| book.hellos.len() == 1).await;
    daemon.link.enrol(fake.token("edge-1", 2)).await.unwrap().unwrap();
    fake.until(|book| book.hellos.len() == 2).await;
    linked(&daemon, is_up).await;
    daemon.stop().await;
}

// rule: I-03
// rule: I-04
#[tokio::test]
async fn a_machine_that_is_not_the_tokens_to_have_is_not_changed_by_one_byte_and_nobody_is_dialled() {
    let (fake, other, machine) = (Fake::start().await, Fake::start().await, Machine::new());
    let daemon = machine.start().await;
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    fake.until(|book| book.hellos.len() == 1).await;
    daemon.stop().await;
    fake.change(|ways| ways.refuse_hello = Some(refusal("busy")));
    let ground = machine.ground();
    let store = Store::open(&ground, false, tenure_actors::clock::system().now()).unwrap().store;
    let clock = tenure_actors::clock::system();
    let place =
        crate::enrol::Place { ground, store, clock, resolve: system_resolver(), writing: Arc::default() };
    let before = machine.files();
    let greetings = fake.book.borrow().greetings;
    for (token, code) in [
        (fake.token("edge-2", 1), "refuse_other_node"),
        (other.token("edge-1", 1), "refuse_foreign_control_plane"),
        (other.token("edge-2", 1), "refuse_foreign_control_plane"),
    ] {
        let refused = crate::enrol::enrol(&place, &token).await.unwrap_err();
        assert_eq!(tenure_protocol::refusal::Explain::code(&refused), code);
    }
    std::fs::write(machine.ground().manifest(), "{").unwrap();
    let refused = crate::enrol::enrol(&place, &fake.token("edge-1", 2)).await.unwrap_err();
    assert_eq!(tenure_protocol::refusal::Explain::code(&refused), "refuse_unreadable_manifest");
    let after = machine.files();
    let differing: Vec<_> =
        before.iter().filter(|file| !after.contains(file)).map(|(path, _)| path).collect();
    assert_eq!(differing, [&machine.ground().manifest()]);
    assert_eq!((fake.book.borrow().greetings, other.book.borrow().greetings), (greetings, 0));
}

// rule: X-10
// case: O-60
#[tokio::test]
async fn a_wrong_certificate_is_its_own_error_and_costs_nothing() {
    let (fake, stranger, machine) = (Fake::start().await, Fake::start().await, Machine::new());
    let daemon = machine.start().await;
    let misled = fake.token_at("edge-1", 1, vec![stranger.at.to_string()]);
    let refused = daemon.link.enrol(misled).await.unwrap().unwrap_err();
    assert_eq!(refused.code, "wrong_certificate");
    assert_eq!(stranger.book.borrow().greetings, 0, "the token was shown to nobody");
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    linked(&daemon, is_up).await;
    daemon.stop().await;
    let before = identity(&machine);
    let moved = StoredIdentity { addresses: vec![stranger.at.to_string()], ..before.clone() };
    keep(&machine, &moved);
    let daemon = machine.start().await;
    let view = linked(&daemon, |view| is_down_with(view, "wrong_certificate")).await;
    assert_eq!(view.machine, MachineState::Disconnected);
    daemon.stop().await;
    assert_eq!(identity(&machine), moved);
    assert!(machine.ground().node_key().exists() && machine.ground().manifest().exists());
}

/// Whoever listens there answers every connection with `text` and hangs up.
async fn answering(text: &'static [u8]) -> std::net::SocketAddr {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 512]).await;
            let _ = stream.write_all(text).await;
        }
    });
    at
}

const UNAUTHORISED: &[u8] = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";
const PROXYS_PAGE: &[u8] =
    b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Type: text/html\r\n\r\n<html>log in</html>";

/// What an attempt needs, with no daemon around it.
fn around(machine: &Machine, store: &Store, clock: tenure_actors::clock::SharedClock) -> Around {
    Around {
        ground: machine.ground(),
        store: store.clone(),
        clock,
        reconcile: Reconcile::new(),
        heartbeat: Heartbeat::new(),
        outbox: Outbox::default(),
        resolve: system_resolver(),
        writing: Arc::default(),
        counter: counter::Counter::default(),
        asked: Asked::default(),
        foreseeing: Foreseeing::default(),
    }
}

// rule: X-9
// case: O-57
#[tokio::test]
async fn a_retired_node_whose_last_words_broke_off_comes_again_in_minutes_and_after_them_within_the_hour() {
    let (fake, machine) = (Fake::start().await, Machine::new());
    let daemon = machine.start().await;
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    linked(&daemon, is_up).await;
    daemon.stop().await;
    let clock = tenure_actors::clock::system();
    let store = Store::open(&machine.ground(), false, clock.now()).unwrap().store;
    let event = tenure_protocol::event::NodeEvent {
        id: tenure_protocol::id::EventId::random(),
        at: Millis(1),
        kind: "applied".to_owned(),
        key: None,
        text: "the last thing it did".to_owned(),
    };
    store.spool(&[event]).unwrap();
    let around = around(&machine, &store, clock);
    for (hang_up, waits) in [(true, false), (false, true)] {
        fake.change(|ways| (ways.refuse_hello, ways.hang_up) = (Some(refusal("retired")), hang_up));
        let end = attempt::attempt(around.clone(), |_| panic!("a session opened")).await;
        assert_eq!(end.reason().code, "retired");
        assert_eq!(end.pause() == state::Pause::Rarely, waits, "{end:?}");
        assert_eq!(store.spooled_count().unwrap() == 0, waits);
    }
    drop(around);
    store.close();
}

// rule: X-10
#[tokio::test]
async fn whoever_is_not_the_pinned_control_plane_costs_a_host_not_one_byte() {
    let (fake, stranger, machine) = (Fake::start().await, Fake::start().await, Machine::new());
    fake.declare(declaration(&fake, 1, &[("/srv/a", b"a")]), 1, 1);
    let daemon = machine.start().await;
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    fake.until(|book| book.parts.iter().any(|part| part.summary.revision.is_some())).await;
    daemon.stop().await;
    let listeners = [
        ("a 401", answering(UNAUTHORISED).await),
        ("a proxy's page", answering(PROXYS_PAGE).await),
        ("garbage", answering(&[0xA5; 300]).await),
        ("nothing", answering(b"").await),
        ("a wrong certificate", stranger.at),
    ];
    for (what, at) in listeners {
        keep(&machine, &StoredIdentity { addresses: vec![at.to_string()], ..identity(&machine) });
        let clock = tenure_actors::clock::system();
        let store = Store::open(&machine.ground(), false, clock.now()).unwrap().store;
        let around = around(&machine, &store, clock);
        let before = machine.files();
        for _ in 0..3 {
            let end = attempt::attempt(around.clone(), |_| panic!("{what} opened a session")).await;
            assert!(matches!(end, state::Farewell::Unreached(_)), "{what}: {end:?}");
        }
        let after = machine.files();
        let differing: Vec<_> =
            before.iter().filter(|file| !after.contains(file)).map(|(path, _)| path).collect();
        assert_eq!((differing.len(), after.len()), (0, before.len()), "{what}: {differing:?}");
        drop(around);
        store.close();
    }
    // The real one is believed again, with everything as it was.
    keep(&machine, &StoredIdentity { addresses: vec![fake.at.to_string()], ..identity(&machine) });
    let daemon = machine.start().await;
    linked(&daemon, is_up).await;
    assert!(daemon.store().declaration().unwrap().is_some());
    daemon.stop().await;
}

// rule: H-11
#[tokio::test]
async fn a_machine_that_lost_its_store_is_still_who_it_was() {
    let (fake, machine) = (Fake::start().await, Machine::new());
    let daemon = machine.start().await;
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    linked(&daemon, is_up).await;
    daemon.stop().await;
    for name in ["store.db", "store.db-wal", "store.db-shm"] {
        let _ = std::fs::remove_file(machine.ground().state().join(name));
    }
    let daemon = machine.start().await;
    let hellos = fake.when(|book| (book.hellos.len() == 2).then(|| book.hellos.clone())).await;
    assert_ne!(hellos[0].store_id, hellos[1].store_id, "the loss is said, not hidden");
    assert_eq!(hellos[0].node, hellos[1].node);
    daemon.stop().await;
}

// rule: N-22
// case: O-62
#[tokio::test]
async fn the_token_is_nowhere_on_the_machine_afterwards() {
    let (fake, machine) = (Fake::start().await, Machine::new());
    let token = fake.token("edge-1", 1);
    let daemon = machine.start().await;
    daemon.link.enrol(token.clone()).await.unwrap().unwrap();
    linked(&daemon, is_up).await;
    daemon.stop().await;
    let secret = token.text().reveal().as_bytes()[20..60].to_vec();
    for (path, bytes) in machine.files() {
        assert!(!bytes.windows(secret.len()).any(|window| window == secret), "{}", path.display());
    }
}
