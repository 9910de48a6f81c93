//! A host that breaks on its own side: what it stored was altered or changed under it, or a part of it has a fault.

use std::sync::OnceLock;

use tenure_actors::database::rusqlite::Connection;
use tenure_protocol::enrolment::Root;

use super::*;
use crate::link::dial::Resolve;
use crate::store::Store;

/// A name that leads to `fake`, once `meanwhile` was done.
fn leads_to(fake: &Fake, meanwhile: impl Fn() + Send + Sync + 'static) -> Resolve {
    let at = fake.at;
    Arc::new(move |_| {
        meanwhile();
        Box::pin(async move { Ok(vec![at]) })
    })
}

fn named(fake: &Fake, counter: u64) -> tenure_protocol::token::Presented {
    fake.token_at("edge-1", counter, vec!["control.test:7443".to_owned()])
}

fn identity(store: &Store) -> StoredIdentity {
    store.identity().unwrap().unwrap()
}

#[tokio::test]
async fn a_fault_while_a_name_is_resolved_is_said_to_whoever_enrols_and_the_host_goes_on() {
    let (fake, mut machine) = (Fake::start().await, Machine::new());
    let at = fake.at;
    machine.resolve = Arc::new(move |name| {
        assert!(!name.starts_with("control.test"), "a fault of ours over {name}");
        Box::pin(async move { Ok(vec![at]) })
    });
    let daemon = machine.start().await;
    let refused = daemon.link.enrol(named(&fake, 1)).await.unwrap().unwrap_err();
    assert!(refused.is("link_broke_off") && refused.happened.contains("a fault of ours"), "{refused:?}");
    assert!(refused.remedy.contains("journalctl -u tenure-host"), "{refused:?}");
    daemon.link.enrol(fake.token("edge-1", 2)).await.unwrap().unwrap();
    linked(&daemon, is_up).await;
    daemon.stop().await;
}

// rule: H-13
#[tokio::test]
async fn of_two_enrolments_at_once_the_second_is_refused_and_the_first_goes_on() {
    let (fake, mut machine) = (Fake::start().await, Machine::new());
    let (came, gate) = (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
    let (at, arrives, opens) = (fake.at, Arc::clone(&came), Arc::clone(&gate));
    machine.resolve = Arc::new(move |_| {
        let (arrives, opens) = (Arc::clone(&arrives), Arc::clone(&opens));
        Box::pin(async move {
            arrives.notify_one();
            opens.notified().await;
            Ok(vec![at])
        })
    });
    let daemon = machine.start().await;
    let first = {
        let (link, token) = (daemon.link.clone(), named(&fake, 1));
        tokio::spawn(async move { link.enrol(token).await })
    };
    came.notified().await;
    let refused = daemon.link.enrol(fake.token("edge-1", 2)).await.unwrap().unwrap_err();
    assert!(refused.is("enrolment_running") && refused.remedy.contains("wait for it to end"), "{refused:?}");
    gate.notify_one();
    assert_eq!(first.await.unwrap().unwrap().unwrap().node.as_str(), "edge-1");
    // Whoever dials for the session waits at the same gate.
    came.notified().await;
    gate.notify_one();
    linked(&daemon, is_up).await;
    daemon.stop().await;
}

// rule: X-1
#[tokio::test]
async fn a_session_of_an_enrolment_that_was_replaced_while_it_opened_does_not_open() {
    let (fake, mut machine) = (Fake::start().await, Machine::new());
    let store: Arc<OnceLock<Store>> = Arc::default();
    let other = Arc::clone(&store);
    machine.resolve = leads_to(&fake, move || {
        if let Some(store) = other.get() {
            let before = identity(store);
            let token = Digest::of(before.token.as_bytes());
            store.set_identity(&StoredIdentity { token, ..before }).unwrap();
        }
    });
    let daemon = machine.start().await;
    daemon.link.enrol(named(&fake, 1)).await.unwrap().unwrap();
    linked(&daemon, is_up).await;
    assert!(store.set(daemon.store().clone()).is_ok());
    fake.end(&Ended { reason: refusal("draining"), retry_after_ms: 0 }).await;
    linked(&daemon, |view| is_down_with(view, "enrolled_anew")).await;
    daemon.stop().await;
}

// rule: S-01
#[tokio::test]
async fn with_no_authority_that_can_be_read_nobody_is_dialled_and_the_way_back_is_named() {
    let (fake, machine) = (Fake::start().await, Machine::new());
    let daemon = machine.start().await;
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    linked(&daemon, is_up).await;
    let roots = vec![Root { number: 1, certificate: b"no certificate".to_vec() }];
    let before = identity(daemon.store());
    daemon.store().set_identity(&StoredIdentity { roots, ..before }).unwrap();
    fake.end(&Ended { reason: refusal("draining"), retry_after_ms: 0 }).await;
    linked(&daemon, |view| is_down_with(view, "no_trust")).await;
    let greetings = fake.when(|book| Some(book.greetings)).await;
    assert_eq!(greetings, 2, "one enrolment and one session");
    daemon.stop().await;
}

// rule: H-08
#[tokio::test]
async fn a_running_host_whose_identity_somebody_took_out_of_its_store_says_that_it_belongs_to_nobody() {
    let (fake, machine) = (Fake::start().await, Machine::new());
    let daemon = machine.start().await;
    daemon.link.enrol(fake.token("edge-1", 1)).await.unwrap().unwrap();
    linked(&daemon, is_up).await;
    let store = Connection::open(machine.ground().store()).unwrap();
    store.execute_batch("PRAGMA busy_timeout = 5000; DELETE FROM fact WHERE name = 'identity'").unwrap();
    fake.end(&Ended { reason: refusal("draining"), retry_after_ms: 0 }).await;
    linked(&daemon, |view| is_down_with(view, "not_enrolled")).await;
    daemon.stop().await;
}
