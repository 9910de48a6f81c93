//! A small actor that can be told to go wrong in each way, and the facts that hold when it does.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::time::Instant;

use super::{Child, ChildState, Ended, Limits, Restart, StartError, Supervisor};
use crate::address::{Address, AskError, Gone, Reply, answer};

mod nested;
mod record;
mod stopping;

/// What happened, in order: `start a`, `stop a`.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    fn note(&self, what: &str, who: &str) {
        self.0.lock().unwrap().push(format!("{what} {who}"));
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    fn count(&self, line: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|noted| *noted == line).count()
    }
}

struct Probe;

struct Life {
    name: &'static str,
    diary: Diary,
    handled: u32,
}

enum Msg {
    Panic,
    Fail,
    End,
    Count(Reply<u32>),
    PanicInsteadOf(Reply<u32>),
    HangFor(Duration),
}

impl Actor for Probe {
    type Msg = Msg;
    type State = Life;
    type Arguments = (&'static str, Diary, Start);

    async fn pre_start(
        &self,
        _: ActorRef<Msg>,
        (name, diary, start): Self::Arguments,
    ) -> Result<Life, ActorProcessingErr> {
        match start {
            Start::Well => {}
            Start::Fails => return Err("not today".into()),
            Start::Panics => panic!("broke while starting"),
            Start::Hangs => std::future::pending().await,
        }
        diary.note("start", name);
        Ok(Life { name, diary, handled: 0 })
    }

    async fn handle(&self, me: ActorRef<Msg>, msg: Msg, life: &mut Life) -> Result<(), ActorProcessingErr> {
        life.handled += 1;
        match msg {
            Msg::Panic => panic!("broke"),
            Msg::Fail => return Err("failed".into()),
            Msg::End => me.stop(None),
            Msg::Count(reply) => answer(reply, life.handled),
            Msg::PanicInsteadOf(_reply) => panic!("broke while asked"),
            Msg::HangFor(wait) => tokio::time::sleep(wait).await,
        }
        Ok(())
    }

    async fn post_stop(&self, _: ActorRef<Msg>, life: &mut Life) -> Result<(), ActorProcessingErr> {
        life.diary.note("stop", life.name);
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Start {
    Well,
    Fails,
    Panics,
    Hangs,
}

const SECOND: Duration = Duration::from_secs(1);

fn probe(name: &'static str, address: &Address<Msg>, diary: &Diary) -> Child {
    starting(name, address, diary, |_| Start::Well)
}

/// A child whose n-th start (from 0) goes as `plan` says.
fn starting(
    name: &'static str,
    address: &Address<Msg>,
    diary: &Diary,
    plan: impl Fn(u32) -> Start + Send + 'static,
) -> Child {
    let (diary, mut tries) = (diary.clone(), 0);
    Child::new(name, address.clone(), move || {
        tries += 1;
        diary.note("try", name);
        (Probe, (name, diary.clone(), plan(tries - 1)))
    })
}

/// For other rooms' tests: a child that keeps its supervisor waiting.
pub(crate) fn never_starts(name: &'static str) -> Child {
    starting(name, &Address::vacant(), &Diary::default(), |_| Start::Hangs)
}

async fn root(children: Vec<Child>) -> Supervisor {
    Supervisor::start("root", Limits::default(), children).await.unwrap()
}

/// Wait for a condition; on the paused clock this costs no time of ours.
async fn until(condition: impl Fn() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(600 * SECOND, wait).await.expect("the condition came true in ten minutes");
}

async fn count(address: &Address<Msg>) -> Result<u32, AskError> {
    address.ask(SECOND, Msg::Count).await
}

#[tokio::test(start_paused = true)]
async fn a_message_that_crashes_its_actor_is_dropped_and_the_next_one_reaches_the_restarted_actor() {
    let (a, diary) = (Address::vacant(), Diary::default());
    let _root = root(vec![probe("a", &a, &diary)]).await;
    assert_eq!(count(&a).await, Ok(1));
    a.tell(Msg::Panic).unwrap();
    until(|| diary.count("start a") == 2).await;
    until(|| !a.is_vacant()).await;
    assert_eq!(count(&a).await, Ok(1), "a new life, which has not seen the message");
}

#[tokio::test(start_paused = true)]
async fn askers_of_an_actor_that_crashes_are_told_that_their_question_was_dropped() {
    let (a, diary) = (Address::vacant(), Diary::default());
    let _root = root(vec![probe("a", &a, &diary)]).await;
    let (asked, queued) = tokio::join!(a.ask(SECOND, Msg::PanicInsteadOf), a.ask(SECOND, Msg::Count));
    assert_eq!((asked, queued), (Err(AskError::Dropped), Err(AskError::Dropped)));
}

#[tokio::test(start_paused = true)]
async fn an_actor_between_two_lives_is_gone_and_not_a_hole_that_swallows_messages() {
    let (a, diary) = (Address::vacant(), Diary::default());
    let root = root(vec![probe("a", &a, &diary)]).await;
    a.tell(Msg::Fail).unwrap();
    until(|| a.is_vacant()).await;
    assert_eq!(a.tell(Msg::Fail), Err(Gone));
    assert_eq!(root.alive(SECOND).await.unwrap(), [("a".into(), ChildState::Waiting { failures: 1 })]);
    until(|| !a.is_vacant()).await;
    assert_eq!(root.alive(SECOND).await.unwrap(), [("a".into(), ChildState::Running)]);
}

#[tokio::test(start_paused = true)]
async fn children_start_in_order_and_each_after_the_one_before_is_up() {
    let (a, b, diary) = (Address::vacant(), Address::vacant(), Diary::default());
    let late = starting("a", &a, &diary, |tries| if tries < 2 { Start::Fails } else { Start::Well });
    let root = root(vec![late, probe("b", &b, &diary)]).await;
    assert_eq!(diary.take(), ["try a", "try a", "try a", "start a", "try b", "start b"]);
    assert!(!a.is_vacant() && !b.is_vacant());
    root.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_child_that_cannot_start_is_named_and_those_before_it_are_stopped() {
    let (a, b, c, diary) = (Address::vacant(), Address::vacant(), Address::vacant(), Diary::default());
    let children =
        vec![probe("a", &a, &diary), probe("b", &b, &diary), starting("c", &c, &diary, |_| Start::Panics)];
    let error = Supervisor::start("root", Limits::default(), children).await.unwrap_err();
    assert_eq!(error, StartError::Failed { child: "c".into(), why: "broke while starting".into() });
    assert_eq!(error.to_string(), "c could not be started: broke while starting");
    assert_eq!(diary.take().split_off(10), ["stop b", "stop a"], "after two good starts and six tries");
}

#[tokio::test(start_paused = true)]
async fn a_restart_that_fails_to_start_counts_as_a_failure_and_is_retried() {
    let (a, diary) = (Address::vacant(), Diary::default());
    let plan = |tries| match tries {
        0 => Start::Well,
        1 => Start::Fails,
        2 => Start::Panics,
        _ => Start::Well,
    };
    let _root = root(vec![starting("a", &a, &diary, plan)]).await;
    a.tell(Msg::Panic).unwrap();
    until(|| diary.count("start a") == 2).await;
    assert_eq!(diary.count("try a"), 4);
}

#[tokio::test(start_paused = true)]
async fn a_start_that_hangs_is_a_failed_start() {
    let (a, diary) = (Address::vacant(), Diary::default());
    let begun = Instant::now();
    let plan = |tries| if tries == 0 { Start::Hangs } else { Start::Well };
    let _root = root(vec![starting("a", &a, &diary, plan)]).await;
    assert_eq!(diary.count("start a"), 1);
    assert!(begun.elapsed() >= 30 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_make_that_panics_is_a_failed_start_and_not_the_end_of_the_supervisor() {
    let (a, diary) = (Address::vacant(), Diary::default());
    let root = root(Vec::new()).await;
    let broken = Child::new::<Probe>("a", a.clone(), || panic!("nothing to make it of"));
    let error = root.add(broken.restart(Restart::Never)).await.unwrap_err();
    assert_eq!(error, StartError::Failed { child: "a".into(), why: "nothing to make it of".into() });
    root.add(probe("a", &a, &diary)).await.unwrap();
    assert_eq!(count(&a).await, Ok(1));
}

#[tokio::test(start_paused = true)]
async fn past_the_limit_the_others_stop_in_reverse_and_the_end_says_who_and_why() {
    let (a, b, c, diary) = (Address::vacant(), Address::vacant(), Address::vacant(), Diary::default());
    let limits = Limits { restarts: 2, ..Limits::default() };
    let children = vec![probe("a", &a, &diary), probe("b", &b, &diary), probe("c", &c, &diary)];
    let root = Supervisor::start("root", limits, children).await.unwrap();
    for lives in 1..=3 {
        until(|| diary.count("start b") == lives && !b.is_vacant()).await;
        b.tell(Msg::Panic).unwrap();
    }
    assert_eq!(root.ended().await, Ended::GaveUp { child: "b".into(), why: "broke".into() });
    until(|| diary.count("stop a") == 1).await;
    let noted = diary.take();
    assert_eq!(noted[noted.len() - 2..], ["stop c", "stop a"]);
    assert_eq!(root.alive(SECOND).await, Err(AskError::Gone));
    assert_eq!(a.tell(Msg::End), Err(Gone));
    assert_eq!(root.ended().await, Ended::GaveUp { child: "b".into(), why: "broke".into() }, "asked again");
}

#[tokio::test(start_paused = true)]
async fn failures_outside_the_window_are_forgotten() {
    let (a, diary) = (Address::vacant(), Diary::default());
    let limits = Limits { restarts: 1, window: 60 * SECOND, ..Limits::default() };
    let _root = Supervisor::start("root", limits, vec![probe("a", &a, &diary)]).await.unwrap();
    for lives in 1..=5 {
        until(|| diary.count("start a") == lives && !a.is_vacant()).await;
        tokio::time::advance(61 * SECOND).await;
        a.tell(Msg::Fail).unwrap();
    }
    until(|| diary.count("start a") == 6).await;
}

#[tokio::test(start_paused = true)]
async fn the_wait_before_a_restart_grows_and_begins_again_after_a_stable_time() {
    let (a, diary) = (Address::vacant(), Diary::default());
    let limits = Limits { restarts: u32::MAX, stable_after: 100 * SECOND, ..Limits::default() };
    let _root = Supervisor::start("root", limits, vec![probe("a", &a, &diary)]).await.unwrap();
    let mut waits = Vec::new();
    for lives in 1..=5 {
        if lives == 5 {
            tokio::time::advance(101 * SECOND).await;
        }
        let failed = Instant::now();
        a.tell(Msg::Panic).unwrap();
        until(|| diary.count("start a") == lives + 1 && !a.is_vacant()).await;
        waits.push(failed.elapsed().as_millis());
    }
    let within = |wait: u128, about: u128| (about * 8 / 10..=about * 12 / 10 + 5).contains(&wait);
    let expected = [100, 200, 400, 800, 100];
    assert!(waits.iter().zip(expected).all(|(wait, about)| within(*wait, about)), "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn one_childs_crash_costs_the_others_nothing() {
    let (a, b, diary) = (Address::vacant(), Address::vacant(), Diary::default());
    let _root = root(vec![probe("a", &a, &diary), probe("b", &b, &diary)]).await;
    assert_eq!(count(&b).await, Ok(1));
    a.tell(Msg::Panic).unwrap();
    until(|| diary.count("start a") == 2).await;
    assert_eq!(count(&b).await, Ok(2), "the same life");
}

#[tokio::test(start_paused = true)]
async fn a_child_comes_back_as_its_restart_says_and_its_name_is_free_when_it_does_not() {
    let cases = [
        (Restart::Always, Msg::End, true),
        (Restart::Always, Msg::Fail, true),
        (Restart::OnFailure, Msg::End, false),
        (Restart::OnFailure, Msg::Fail, true),
        (Restart::Never, Msg::Fail, false),
        (Restart::Never, Msg::Panic, false),
    ];
    for (restart, msg, back) in cases {
        let (a, diary) = (Address::vacant(), Diary::default());
        let root = root(vec![probe("a", &a, &diary).restart(restart)]).await;
        a.tell(msg).unwrap();
        until(|| a.is_vacant()).await;
        tokio::time::sleep(10 * SECOND).await;
        assert_eq!(diary.count("start a"), if back { 2 } else { 1 }, "{restart:?}");
        let again = root.add(probe("a", &a, &diary)).await;
        assert_eq!(again.is_ok(), !back, "{restart:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn children_are_added_while_it_runs_and_a_name_is_taken_once() {
    let (a, b, diary) = (Address::vacant(), Address::vacant(), Diary::default());
    let root = root(vec![probe("a", &a, &diary)]).await;
    root.add(probe("b", &b, &diary)).await.unwrap();
    assert_eq!(count(&b).await, Ok(1));
    let twice = root.add(probe("b", &Address::vacant(), &diary)).await;
    assert_eq!(twice, Err(StartError::Taken { child: "b".into() }));
    assert_eq!(count(&b).await, Ok(2), "the first one lives on");
    let twice =
        Supervisor::start("root", Limits::default(), vec![probe("c", &a, &diary), probe("c", &b, &diary)]);
    assert_eq!(twice.await.unwrap_err(), StartError::Taken { child: "c".into() });
}

#[tokio::test(start_paused = true)]
async fn an_added_child_whose_first_start_fails_is_kept_and_tried_again() {
    let (a, diary) = (Address::vacant(), Diary::default());
    let root = root(Vec::new()).await;
    let late = starting("a", &a, &diary, |tries| if tries < 2 { Start::Fails } else { Start::Well });
    root.add(late).await.unwrap();
    assert_eq!(root.alive(SECOND).await.unwrap(), [("a".into(), ChildState::Waiting { failures: 1 })]);
    until(|| !a.is_vacant()).await;
    assert_eq!(diary.count("try a"), 3);
}
