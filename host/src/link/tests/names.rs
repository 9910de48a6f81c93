//! Names that come late, move, and lie (O-60).

use std::net::SocketAddr;

use tokio::sync::watch;

use super::*;

/// What a scripted resolver answers to every name.
#[derive(Clone, Copy)]
enum Answer {
    Never,
    NoSuchName,
    LeadsTo(SocketAddr),
}

/// A resolver, and the hand that changes what it says. A question that waits hears of the change.
fn scripted(first: Answer) -> (dial::Resolve, watch::Sender<Answer>) {
    let (says, hears) = watch::channel(first);
    let resolve: dial::Resolve = Arc::new(move |_| {
        let mut hears = hears.clone();
        Box::pin(async move {
            let answer =
                hears.wait_for(|answer| !matches!(answer, Answer::Never)).await.map(|answer| *answer);
            match answer {
                Ok(Answer::LeadsTo(at)) => Ok(vec![at]),
                Ok(Answer::Never | Answer::NoSuchName) | Err(_) => Err(std::io::Error::other("no such name")),
            }
        })
    });
    (resolve, says)
}

fn to(view: &LinkView, at: SocketAddr) -> bool {
    matches!(&view.link, LinkStatus::Up { address, .. } if address.contains(&at.to_string()))
}

/// Enrolled by a name, with one file declared and held, and stopped again.
async fn enrolled_by_name(machine: &Machine, fake: &Fake) {
    fake.declare(declaration(fake, 1, &[("/srv/a", b"held")]), 1, 1);
    std::fs::create_dir(machine.folder.path().join("srv")).unwrap();
    let daemon = machine.start().await;
    let token = fake.token_at("edge-1", 1, vec!["control.example:7443".to_owned()]);
    daemon.link.enrol(token).await.unwrap().unwrap();
    fake.until(|book| book.parts.iter().any(|part| part.summary.counts.applied == 1)).await;
    daemon.stop().await;
}

/// What is remembered of the name is gone, as on a machine whose first session never was.
fn forget_where(machine: &Machine) {
    let store = Store::open(&machine.ground(), false, tenure_actors::clock::system().now()).unwrap().store;
    store.set_note(LAST_GOOD, b"").unwrap();
    store.close();
}

// rule: H-07
// rule: H-08
// case: O-60
#[tokio::test]
async fn with_a_resolver_that_never_answers_the_machine_is_held_first_and_the_link_comes_when_the_name_does()
{
    let fake = Fake::start().await;
    let (resolve, says) = scripted(Answer::LeadsTo(fake.at));
    let machine = Machine { resolve, ..Machine::new() };
    enrolled_by_name(&machine, &fake).await;
    forget_where(&machine);
    let file = machine.folder.path().join("srv/a");
    std::fs::write(&file, "drifted").unwrap();
    says.send_replace(Answer::Never);
    let began = tokio::time::Instant::now();
    let daemon = machine.start().await;
    daemon.reconcile.ask(Duration::from_secs(20)).await.unwrap().unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), b"held");
    assert!(began.elapsed() < Duration::from_secs(4), "a start waited for a name: {:?}", began.elapsed());
    assert_eq!(fake.book.borrow().hellos.len(), 1);
    says.send_replace(Answer::LeadsTo(fake.at));
    linked(&daemon, is_up).await;
    daemon.stop().await;
}

// case: O-60
#[tokio::test]
async fn a_name_that_does_not_resolve_is_said_to_be_that_and_nothing_else() {
    let fake = Fake::start().await;
    let (resolve, says) = scripted(Answer::LeadsTo(fake.at));
    let machine = Machine { resolve, ..Machine::new() };
    enrolled_by_name(&machine, &fake).await;
    forget_where(&machine);
    says.send_replace(Answer::NoSuchName);
    let daemon = machine.start().await;
    linked(&daemon, |view| is_down_with(view, dial::NAMES_FAIL)).await;
    says.send_replace(Answer::LeadsTo(fake.at));
    let view = linked(&daemon, is_up).await;
    assert!(matches!(view.link, LinkStatus::Up { note: None, .. }), "{view:?}");
    daemon.stop().await;
}

// case: O-60
#[tokio::test]
async fn a_name_that_moved_while_the_session_was_open_is_followed_by_the_next_dial() {
    let fake = Fake::start().await;
    let (resolve, says) = scripted(Answer::LeadsTo(fake.at));
    let machine = Machine { resolve, ..Machine::new() };
    let daemon = machine.start().await;
    let token = fake.token_at("edge-1", 1, vec!["control.example:7443".to_owned()]);
    daemon.link.enrol(token).await.unwrap().unwrap();
    linked(&daemon, |view| to(view, fake.at)).await;
    let moved = fake.also().await;
    says.send_replace(Answer::LeadsTo(moved));
    assert!(to(&daemon.link.view().await.unwrap(), fake.at), "an open session is not ended over a name");
    fake.end(&Ended { reason: refusal("draining"), retry_after_ms: 0 }).await;
    linked(&daemon, |view| to(view, moved)).await;
    daemon.stop().await;
}

// rule: X-10
// case: O-60
#[tokio::test]
async fn a_name_that_lies_is_not_worked_around_by_what_is_remembered_and_is_called_a_wrong_certificate() {
    let (fake, stranger) = (Fake::start().await, Fake::start().await);
    let (resolve, says) = scripted(Answer::LeadsTo(fake.at));
    let machine = Machine { resolve, ..Machine::new() };
    enrolled_by_name(&machine, &fake).await;
    says.send_replace(Answer::LeadsTo(stranger.at));
    let daemon = machine.start().await;
    linked(&daemon, |view| is_down_with(view, "wrong_certificate")).await;
    assert_eq!(stranger.book.borrow().greetings, 0, "nothing was told to it");
    says.send_replace(Answer::LeadsTo(fake.at));
    linked(&daemon, is_up).await;
    daemon.stop().await;
}

// case: O-60
#[tokio::test]
async fn what_is_remembered_is_used_while_names_fail_and_forgotten_to_be_said_once_they_work() {
    let fake = Fake::start().await;
    let (resolve, says) = scripted(Answer::LeadsTo(fake.at));
    let machine = Machine { resolve, ..Machine::new() };
    enrolled_by_name(&machine, &fake).await;
    says.send_replace(Answer::NoSuchName);
    let daemon = machine.start().await;
    let noted = |view: &LinkView| match &view.link {
        LinkStatus::Up { note, .. } => note.clone(),
        LinkStatus::Down { .. } | LinkStatus::None => None,
    };
    let view = linked(&daemon, |view| noted(view).is_some()).await;
    assert!(noted(&view).unwrap().contains("DNS failing since"), "{view:?}");
    says.send_replace(Answer::LeadsTo(fake.at));
    fake.end(&Ended { reason: refusal("draining"), retry_after_ms: 0 }).await;
    linked(&daemon, |view| is_up(view) && noted(view).is_none()).await;
    daemon.stop().await;
}
