use super::*;
use crate::id::Millis;
use crate::rescue;
use crate::session::{Beaten, Renew};
use crate::wire::frame::MOST;

const SOON: Duration = Duration::from_secs(5);
const SILENCE: Duration = Duration::from_secs(30);

type Side = (Outgoing, mpsc::Receiver<Incoming>, tokio::task::JoinHandle<WireError>);

fn pair() -> (Side, Side) {
    let (near, far) = tokio::io::duplex(4096);
    (side(near), side(far))
}

fn side(stream: tokio::io::DuplexStream) -> Side {
    let (outgoing, incoming, exchange) = exchange(Connection::new(stream, MOST), SILENCE);
    (outgoing, incoming, tokio::spawn(exchange.run()))
}

async fn request(incoming: &mut mpsc::Receiver<Incoming>) -> Request {
    match incoming.recv().await.unwrap() {
        Incoming::Request(request) => request,
        Incoming::Event(event) => panic!("{event:?}"),
    }
}

#[tokio::test]
async fn both_sides_ask_at_the_same_time_and_each_gets_its_own_answer() {
    let ((near, mut near_in, _a), (far, mut far_in, _b)) = pair();
    let serve = |outgoing: Outgoing, request: Request, now| async move {
        outgoing.answer(request.id, Ok(codec::encode(&Beaten { now }))).await.unwrap();
    };
    let beat = crate::session::Heartbeat {
        facts: crate::profile::Facts {
            observed_at: Millis(1),
            running_version: "1".into(),
            disk: crate::profile::Disk::NeverReported,
        },
    };
    let (one, other, (), ()) = tokio::join!(
        near.call("x", &beat, SOON),
        far.call("y", &beat, SOON),
        async { serve(far.clone(), request(&mut far_in).await, Millis(1)).await },
        async { serve(near.clone(), request(&mut near_in).await, Millis(2)).await },
    );
    assert_eq!((one.unwrap().now, other.unwrap().now), (Millis(1), Millis(2)));
}

#[tokio::test(start_paused = true)]
async fn a_call_nobody_answers_ends_at_its_deadline_and_a_late_answer_harms_nobody() {
    let ((near, _near_in, _a), (far, mut far_in, _b)) = pair();
    let call = near.call("x", &Renew {}, SOON).await;
    assert!(matches!(call, Err(CallError::TimedOut(SOON))));
    let late = request(&mut far_in).await;
    far.answer(late.id, Ok(vec![])).await.unwrap();
    far.answer(9999, Ok(vec![])).await.unwrap();
    let status = near.call("x", &rescue::Status {}, SOON);
    let (status, ()) = tokio::join!(status, async {
        let asked = request(&mut far_in).await;
        far.answer(asked.id, Err(Refusal::new("no", "h", "m", "d"))).await.unwrap();
    });
    assert!(matches!(status, Err(CallError::Refused(refusal)) if refusal.is("no")));
}

#[tokio::test]
async fn when_the_connection_ends_every_waiting_call_is_told() {
    let ((near, _near_in, _a), (far, mut far_in, far_run)) = pair();
    let (call, ()) = tokio::join!(near.call("x", &Renew {}, SOON), async {
        request(&mut far_in).await;
        far_run.abort();
        drop(far);
    });
    assert!(matches!(call, Err(CallError::Gone)), "{call:?}");
    near.ended().await;
    assert!(matches!(near.call("x", &Renew {}, SOON).await, Err(CallError::Gone)));
}

// case: O-54
#[tokio::test(start_paused = true)]
async fn a_side_that_says_nothing_for_the_stated_time_is_gone() {
    let (near, _silent) = tokio::io::duplex(4096);
    let (_outgoing, _incoming, exchange) = exchange(Connection::new(near, MOST), SILENCE);
    assert!(matches!(exchange.run().await, WireError::Silent(SILENCE)));
}

// rule: S-22
#[tokio::test]
async fn an_answer_or_question_too_long_for_a_frame_is_refused_by_name_and_the_connection_goes_on() {
    let ((near, _near_in, _a), (far, mut far_in, _b)) = pair();
    let (call, ()) = tokio::join!(near.call("x", &Renew {}, SOON), async {
        let asked = request(&mut far_in).await;
        far.answer(asked.id, Ok(vec![0; MOST])).await.unwrap();
    });
    assert!(matches!(&call, Err(CallError::Refused(refusal)) if refusal.is("answer_too_large")), "{call:?}");
    let (call, ()) = tokio::join!(near.call("x", &Renew {}, SOON), async {
        let asked = request(&mut far_in).await;
        let long = "x".repeat(MOST);
        far.answer(asked.id, Err(Refusal::new("no", long.clone(), long.clone(), long))).await.unwrap();
    });
    assert!(matches!(&call, Err(CallError::Refused(refusal)) if refusal.is("no")), "{call:?}");
    let call = near.call_raw("x", "report", vec![0; MOST], SOON).await;
    assert!(matches!(&call, Err(CallError::Refused(refusal)) if refusal.is("message_too_large")), "{call:?}");
    let (call, ()) = tokio::join!(near.call("x", &Renew {}, SOON), async {
        let asked = request(&mut far_in).await;
        far.answer(asked.id, Err(Refusal::new("fine", "h", "m", "d"))).await.unwrap();
    });
    assert!(matches!(&call, Err(CallError::Refused(refusal)) if refusal.is("fine")), "{call:?}");
}

#[tokio::test(start_paused = true)]
async fn a_patient_side_counts_no_silence_while_it_owes_an_answer_and_counts_it_again_afterwards() {
    let (near, far) = tokio::io::duplex(4096);
    let (near, _near_in, _a) = {
        let (outgoing, incoming, run) = exchange(Connection::new(near, MOST), SILENCE * 100);
        (outgoing, incoming, tokio::spawn(run.run()))
    };
    let (far, mut far_in, run) = exchange(Connection::new(far, MOST), SILENCE);
    let run = tokio::spawn(run.patient().run());
    let (call, ()) = tokio::join!(near.call("x", &Renew {}, SILENCE * 50), async {
        let asked = request(&mut far_in).await;
        tokio::time::sleep(SILENCE * 10).await;
        far.answer(asked.id, Err(Refusal::new("done", "h", "m", "d"))).await.unwrap();
    });
    assert!(matches!(&call, Err(CallError::Refused(refusal)) if refusal.is("done")), "{call:?}");
    assert!(matches!(run.await.unwrap(), WireError::Silent(SILENCE)));
}

// rule: S-22
#[tokio::test(start_paused = true)]
async fn answers_that_nobody_takes_lie_there_up_to_a_bound_and_whoever_takes_none_is_given_up() {
    let (near, _unread) = tokio::io::duplex(1024);
    let (outgoing, _incoming, exchange) = exchange(Connection::new(near, MOST), Duration::from_secs(600));
    let running = tokio::spawn(exchange.run());
    let large = MOST / 2;
    let mut queued = 0;
    let filling = async {
        for re in 0..QUEUE {
            outgoing.answer(u64::try_from(re).unwrap(), Ok(vec![0; large])).await.unwrap();
            queued += 1;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(1), filling).await.is_err(), "all of them were taken");
    assert!(queued * large <= MOST_QUEUED + MOST, "{queued} answers of {large} bytes lie there");
    assert!(matches!(running.await.unwrap(), WireError::Silent(_)));
    assert!(
        outgoing.answer(99, Ok(vec![0; large])).await.is_err(),
        "whoever waited for room hears that it ended"
    );
}
