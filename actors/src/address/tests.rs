use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::{Address, AskError, Gone, Reply, answer};

struct Counter;

enum Msg {
    Add(u32),
    Total(Reply<u32>),
    TotalAfter(Duration, Reply<u32>),
    Forget(Reply<u32>),
}

impl Actor for Counter {
    type Msg = Msg;
    type State = u32;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Msg>, (): ()) -> Result<u32, ActorProcessingErr> {
        Ok(0)
    }

    async fn handle(&self, _: ActorRef<Msg>, msg: Msg, total: &mut u32) -> Result<(), ActorProcessingErr> {
        match msg {
            Msg::Add(more) => *total += more,
            Msg::Total(reply) => answer(reply, *total),
            Msg::TotalAfter(wait, reply) => {
                tokio::time::sleep(wait).await;
                *total += 1;
                answer(reply, *total);
            }
            Msg::Forget(reply) => drop(reply),
        }
        Ok(())
    }
}

const SECOND: Duration = Duration::from_secs(1);

async fn counter() -> (Address<Msg>, ActorRef<Msg>) {
    let (actor, _) = Actor::spawn(None, Counter, ()).await.unwrap();
    (Address::of(actor.clone()), actor)
}

#[tokio::test(start_paused = true)]
async fn a_question_gets_its_answer_after_what_was_told_before() {
    let (address, _) = counter().await;
    address.tell(Msg::Add(2)).unwrap();
    address.tell(Msg::Add(3)).unwrap();
    assert_eq!(address.ask(SECOND, Msg::Total).await, Ok(5));
}

#[tokio::test(start_paused = true)]
async fn a_vacant_address_refuses_at_once() {
    let address = Address::<Msg>::vacant();
    assert!(address.is_vacant());
    assert_eq!(address.tell(Msg::Add(1)), Err(Gone));
    assert_eq!(address.ask(SECOND, Msg::Total).await, Err(AskError::Gone));
}

#[tokio::test(start_paused = true)]
async fn an_actor_that_has_stopped_is_gone_though_its_address_was_not_emptied() {
    let (address, actor) = counter().await;
    actor.stop_and_wait(None, None).await.unwrap();
    assert!(address.is_vacant());
    assert_eq!(address.tell(Msg::Add(1)), Err(Gone));
}

#[tokio::test(start_paused = true)]
async fn a_message_whose_asker_timed_out_is_still_handled_and_its_answer_harmlessly_dropped() {
    let (address, _) = counter().await;
    let late = address.ask(SECOND, |reply| Msg::TotalAfter(3 * SECOND, reply)).await;
    assert_eq!(late, Err(AskError::TimedOut { within: SECOND }));
    assert_eq!(address.ask(5 * SECOND, Msg::Total).await, Ok(1), "handled later, and the actor lives");
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_is_dropped_is_told_to_the_asker() {
    let (address, _) = counter().await;
    assert_eq!(address.ask(SECOND, Msg::Forget).await, Err(AskError::Dropped));
}

#[tokio::test(start_paused = true)]
async fn clones_of_an_address_follow_whoever_fills_it() {
    let address = Address::vacant();
    let held_elsewhere = address.clone();
    let (actor, _) = Actor::spawn(None, Counter, ()).await.unwrap();
    address.fill(actor);
    assert!(!held_elsewhere.is_vacant());
    assert_eq!(held_elsewhere.ask(SECOND, Msg::Total).await, Ok(0));
    address.vacate();
    assert_eq!(held_elsewhere.tell(Msg::Add(1)), Err(Gone));
}
