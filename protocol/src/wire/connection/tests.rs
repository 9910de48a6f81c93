use super::*;
use crate::envelope::{Answer, Frame};
use crate::wire::frame::MOST_GREETING;

fn frame(size: usize) -> Frame {
    Frame::Answer(Answer { re: 1, result: Ok(vec![0; size]) })
}

#[tokio::test]
async fn a_frame_that_is_sent_is_received() {
    let (near, far) = tokio::io::duplex(64);
    let (mut near, mut far) = (Connection::new(near, MOST), Connection::new(far, MOST));
    let big = frame(100_000);
    let (sent, received) = tokio::join!(near.send(&big), far.receive(PATIENCE));
    sent.unwrap();
    assert_eq!(received.unwrap(), big);
}

#[tokio::test(start_paused = true)]
async fn a_side_that_says_nothing_costs_the_deadline_and_no_more() {
    let (near, _far) = tokio::io::duplex(64);
    let mut near = Connection::new(near, MOST);
    assert!(matches!(near.receive(PATIENCE).await, Err(WireError::Silent(PATIENCE))));
}

#[tokio::test(start_paused = true)]
async fn a_side_that_sends_one_byte_at_a_time_does_not_move_the_deadline() {
    let (near, mut far) = tokio::io::duplex(64);
    let mut near = Connection::new(near, MOST);
    let drip = async {
        loop {
            let _ = far.write_all(&[0]).await;
            tokio::time::advance(Duration::from_secs(3)).await;
        }
    };
    tokio::select! {
        got = near.receive(PATIENCE) => assert!(matches!(got, Err(WireError::Silent(_) | WireError::Frame(_)))),
        () = drip => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_side_that_never_reads_is_given_up() {
    let (near, _far) = tokio::io::duplex(64);
    let mut near = Connection::new(near, MOST);
    assert!(matches!(near.send(&frame(1000)).await, Err(WireError::Silent(_))));
}

#[tokio::test]
async fn an_end_between_frames_is_a_goodbye_and_one_inside_a_frame_is_a_cut() {
    let (near, far) = tokio::io::duplex(64);
    drop(far);
    assert!(matches!(Connection::new(near, MOST).receive(PATIENCE).await, Err(WireError::Closed)));
    let (near, mut far) = tokio::io::duplex(64);
    far.write_all(&[0, 0, 0, 9, 1]).await.unwrap();
    drop(far);
    assert!(matches!(Connection::new(near, MOST).receive(PATIENCE).await, Err(WireError::Cut)));
}

#[tokio::test]
async fn the_limit_of_a_greeting_holds_until_it_is_lifted() {
    let (near, far) = tokio::io::duplex(1024 * 1024);
    let (mut near, mut far) = (Connection::new(near, MOST_GREETING), Connection::new(far, MOST));
    far.send(&frame(10)).await.unwrap();
    near.receive(PATIENCE).await.unwrap();
    near.set_most(MOST);
    far.send(&frame(MOST_GREETING + 1)).await.unwrap();
    near.receive(PATIENCE).await.unwrap();
    near.set_most(MOST_GREETING);
    far.send(&frame(MOST_GREETING + 1)).await.unwrap();
    assert!(matches!(near.receive(PATIENCE).await, Err(WireError::Frame(FrameError::TooLong { .. }))));
}
