use tenure_protocol::envelope::Event;
use tenure_protocol::session::{Beaten, Heartbeat, Renew, Renewed};
use tenure_protocol::wire::frame;
use tokio::io::{AsyncReadExt as _, DuplexStream, duplex};
use tokio::time::Instant;

use super::*;

fn line() -> (Connection<DuplexStream>, DuplexStream) {
    let (near, far) = duplex(64 * 1024);
    (Connection::new(near, frame::MOST), far)
}

// case: O-55
#[tokio::test(start_paused = true)]
async fn a_line_that_takes_everything_and_brings_nothing_is_named_within_the_greetings_deadline() {
    let (mut connection, mut far) = line();
    let began = Instant::now();
    let asked = async { ask(&mut connection, 1, &Renew {}).await.unwrap_err() };
    let swallowed = async {
        let mut bytes = Vec::new();
        far.read_to_end(&mut bytes).await
    };
    let error = tokio::select! { error = asked => error, _ = swallowed => panic!("the line ended") };
    assert_eq!(began.elapsed(), PATIENCE);
    let refusal = error.refusal();
    assert_eq!((error.code(), refusal.code.as_str()), (BUFFERING, BUFFERING));
    let expected = "the link opens but nothing arrives: something in between is buffering";
    assert!(refusal.happened.starts_with(expected), "{}", refusal.happened);
    assert!(refusal.remedy.contains("plain TCP"), "{}", refusal.remedy);
}

// case: O-55
#[tokio::test]
async fn a_line_that_is_closed_instead_of_answered_is_not_called_buffering() {
    let (mut connection, far) = line();
    drop(far);
    assert_eq!(ask(&mut connection, 1, &Renew {}).await.unwrap_err().code(), "no_answer");
}

// case: O-61
#[tokio::test]
async fn a_control_plane_that_is_busy_says_when_to_come_back() {
    let (mut connection, far) = line();
    let mut far = Connection::new(far, frame::MOST);
    let reason = Refusal::new("busy", "many nodes come at once", "come later", "wait");
    let body = codec::encode(&Ended { reason: reason.clone(), retry_after_ms: 7_000 });
    let kind = Ended::KIND.name.to_owned();
    far.send(&Frame::Event(Event { from: "session".to_owned(), seq: 1, kind, body })).await.unwrap();
    let error = ask(&mut connection, 1, &Renew {}).await.unwrap_err();
    assert_eq!(error.refusal(), reason, "its own words travel on");
    let GreetingError::NotNow { retry_after, .. } = error else { panic!("{error}") };
    assert_eq!(retry_after, Duration::from_secs(7));
}

#[tokio::test]
async fn an_event_of_another_kind_or_the_answer_to_another_question_is_no_answer() {
    let event = Event { from: "x".to_owned(), seq: 1, kind: Heartbeat::KIND.name.to_owned(), body: vec![] };
    let other = Answer { re: 9, result: Ok(codec::encode(&Beaten { now: tenure_protocol::id::Millis(1) })) };
    for frame in [Frame::Event(event), Frame::Answer(other)] {
        let (mut connection, far) = line();
        let mut far = Connection::new(far, frame::MOST);
        far.send(&frame).await.unwrap();
        let answered: Result<Renewed, _> = ask(&mut connection, 1, &Renew {}).await;
        assert_eq!(answered.unwrap_err().code(), "unreadable_answer");
    }
}

#[test]
fn what_cannot_be_read_is_told_apart_from_what_does_not_answer() {
    let form = DecodeError::Trailing(3);
    assert_eq!(unreadable_message(&form).code, "unreadable_message");
    assert_eq!(GreetingError::Unreadable(form).refusal().code, "unreadable_answer");
    assert_eq!(GreetingError::Nonsense.refusal().code, "unreadable_answer");
    assert_eq!(GreetingError::Wire(WireError::Closed).refusal().code, "no_answer");
}

// rule: X-10
#[test]
fn what_the_control_plane_said_travels_on_in_its_own_words() {
    let said = Refusal::new("retired", "node edge-1 is retired", "for good", "leave it");
    assert_eq!(GreetingError::Refused(said.clone()).refusal(), said);
}
