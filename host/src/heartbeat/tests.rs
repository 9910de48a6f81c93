use tenure_actors::clock;
use tenure_actors::supervisor::{Limits, Supervisor};
use tenure_protocol::kind::Message as _;
use tenure_protocol::wire::exchange::exchange;
use tenure_protocol::wire::{Connection, Incoming, codec, frame};

use super::*;

async fn beating() -> (Supervisor, Heartbeat) {
    let heartbeat = Heartbeat::new();
    let child = heartbeat.child(clock::system(), PathBuf::from("/"));
    (Supervisor::start("test", Limits::default(), vec![child]).await.unwrap(), heartbeat)
}

/// A session over a pipe, whose other end counts beats and answers each with its number.
fn session() -> (Outgoing, watch::Receiver<i64>, tokio::task::JoinHandle<()>) {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let silence = Duration::from_secs(3_600);
    let (outgoing, _, near) = exchange(Connection::new(near, frame::MOST), silence);
    let (answers, mut incoming, far) = exchange(Connection::new(far, frame::MOST), silence);
    let (count, counted) = watch::channel(0);
    tokio::spawn(near.run());
    let other = tokio::spawn(async move {
        let answering = async {
            while let Some(Incoming::Request(request)) = incoming.recv().await {
                assert_eq!(
                    (request.kind.as_str(), request.to.as_str()),
                    (session::Heartbeat::KIND.name, "lease/n")
                );
                count.send_modify(|count| *count += 1);
                let now = Millis(*count.borrow());
                answers.answer(request.id, Ok(codec::encode(&session::Beaten { now }))).await.unwrap();
            }
        };
        tokio::select! { _ = far.run() => {}, () = answering => {} }
    });
    (outgoing, counted, other)
}

// rule: H-07
#[tokio::test(start_paused = true)]
async fn it_beats_at_once_and_then_at_its_own_interval_whatever_else_runs() {
    let (root, heartbeat) = beating().await;
    let (outgoing, mut counted, _other) = session();
    let began = tokio::time::Instant::now();
    heartbeat.begin(Beat { outgoing, to: "lease/n".to_owned(), every: Duration::from_secs(20) });
    counted.wait_for(|count| *count == 1).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(1));
    counted.wait_for(|count| *count == 4).await.unwrap();
    let taken = began.elapsed();
    assert!((Duration::from_secs(60)..Duration::from_secs(61)).contains(&taken), "{taken:?}");
    let mut told = heartbeat.control_time();
    told.wait_for(|now| *now == Some(Millis(4))).await.unwrap();
    root.stop().await;
}

#[tokio::test(start_paused = true)]
async fn it_falls_silent_when_the_session_has_ended_and_beats_again_on_the_next() {
    let (root, heartbeat) = beating().await;
    let (outgoing, mut counted, other) = session();
    heartbeat.begin(Beat {
        outgoing: outgoing.clone(),
        to: "lease/n".to_owned(),
        every: Duration::from_secs(20),
    });
    counted.wait_for(|count| *count == 1).await.unwrap();
    other.abort();
    outgoing.ended().await;
    let (outgoing, mut counted, _other) = session();
    heartbeat.begin(Beat { outgoing, to: "lease/n".to_owned(), every: Duration::from_secs(20) });
    counted.wait_for(|count| *count == 2).await.unwrap();
    root.stop().await;
}
