use std::future::pending;
use std::sync::mpsc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::{Panicked, blocking, work};

/// Passes on what it is told.
struct Ear;

type Heard = Result<u32, Panicked>;

impl Actor for Ear {
    type Msg = Heard;
    type State = UnboundedSender<Heard>;
    type Arguments = UnboundedSender<Heard>;

    async fn pre_start(
        &self,
        _: ActorRef<Heard>,
        out: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(out)
    }

    async fn handle(
        &self,
        _: ActorRef<Heard>,
        heard: Heard,
        out: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        out.send(heard)?;
        Ok(())
    }
}

async fn ear() -> (ActorRef<Heard>, UnboundedReceiver<Heard>) {
    let (sender, heard) = unbounded_channel();
    let (actor, _) = Actor::spawn(None, Ear, sender).await.unwrap();
    (actor, heard)
}

#[tokio::test(start_paused = true)]
async fn the_result_of_work_comes_back_as_a_message() {
    let (me, mut heard) = ear().await;
    let work = work(&me, async { 7 }, |result| result);
    assert_eq!(heard.recv().await, Some(Ok(7)));
    assert!(work.is_done());
}

#[tokio::test]
async fn blocking_work_comes_back_as_a_message() {
    let (me, mut heard) = ear().await;
    let _work = blocking(&me, || 8, |result| result);
    assert_eq!(heard.recv().await, Some(Ok(8)));
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_work_is_a_message_and_the_actor_lives() {
    let (me, mut heard) = ear().await;
    let _broken = work(&me, async { panic!("no {}", "luck") }, |result| result);
    assert_eq!(heard.recv().await, Some(Err(Panicked { said: "no luck".into() })));
    let _blocked = blocking(&me, || panic!("plain"), |result| result);
    assert_eq!(heard.recv().await, Some(Err(Panicked { said: "plain".into() })));
    me.send_message(Ok(1)).unwrap();
    assert_eq!(heard.recv().await, Some(Ok(1)));
}

#[tokio::test(start_paused = true)]
async fn work_whose_handle_is_dropped_is_cancelled_and_says_nothing() {
    let (me, mut heard) = ear().await;
    let (held, dropped) = tokio::sync::oneshot::channel::<()>();
    let endless = work(
        &me,
        async move {
            let _held = held;
            pending::<u32>().await
        },
        |result| result,
    );
    tokio::task::yield_now().await;
    assert!(!endless.is_done());
    drop(endless);
    assert!(dropped.await.is_err(), "what the work held was given back");
    me.send_message(Ok(2)).unwrap();
    assert_eq!(heard.recv().await, Some(Ok(2)), "nothing came before it");
}

#[tokio::test]
async fn blocking_work_that_began_runs_on_and_only_its_message_is_withheld() {
    let (me, _heard) = ear().await;
    let ((go, wait), (begun, began)) = (mpsc::channel::<()>(), tokio::sync::oneshot::channel());
    let (done, finished) = tokio::sync::oneshot::channel();
    let (made, message) = tokio::sync::oneshot::channel();
    let job = move || {
        begun.send(()).unwrap();
        wait.recv().unwrap();
        done.send(()).unwrap();
        3
    };
    let tell = move |result| {
        made.send(()).unwrap();
        result
    };
    let work = blocking(&me, job, tell);
    began.await.unwrap();
    drop(work);
    go.send(()).unwrap();
    finished.await.unwrap();
    assert!(message.await.is_err(), "the message was never made");
}

#[tokio::test(start_paused = true)]
async fn work_for_an_actor_that_has_stopped_ends_quietly() {
    let (me, mut heard) = ear().await;
    let work = work(
        &me,
        async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            5
        },
        |result| result,
    );
    me.stop_and_wait(None, None).await.unwrap();
    tokio::time::timeout(Duration::from_secs(60), async {
        while !work.is_done() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .unwrap();
    assert_eq!(heard.recv().await, None);
}
