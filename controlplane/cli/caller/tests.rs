use serde_json::Value;
use tenure_protocol::envelope::Request;
use tenure_protocol::operator::{Retire, Retired};
use tenure_protocol::wire::codec;
use tokio::task::JoinHandle;

use super::*;
use crate::ending::Exit;

/// What a scripted daemon answers to one question.
pub(crate) type Answer = Result<Vec<u8>, Refusal>;

/// A caller whose daemon is this script. The script is dropped with the caller.
pub(crate) fn answered_by(mut script: impl FnMut(&Request) -> Answer + Send + 'static) -> Caller {
    answered_or_not_by(move |request| vec![(request.id, script(request))])
}

/// A caller whose daemon answers what, and when, this script says: of each question it is given the answers that go out.
pub(crate) fn answered_or_not_by(
    script: impl FnMut(&Request) -> Vec<(u64, Answer)> + Send + 'static,
) -> Caller {
    let (near, far) = tokio::io::duplex(1024 * 1024);
    tokio::spawn(serve(far, script));
    Caller::over(near, "the control plane")
}

/// Answers what comes over `stream` until it closes.
pub(crate) async fn serve<S>(stream: S, mut script: impl FnMut(&Request) -> Vec<(u64, Answer)>)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (outgoing, mut incoming, run) = exchange::exchange(Connection::new(stream, MOST), SILENCE);
    let run: JoinHandle<_> = tokio::spawn(run.run());
    while let Some(Incoming::Request(request)) = incoming.recv().await {
        for (id, answer) in script(&request) {
            outgoing.answer(id, answer).await.unwrap();
        }
    }
    run.abort();
}

/// The question `request` holds, if it is of this kind.
pub(crate) fn asked<M: Message>(request: &Request) -> Option<M> {
    (request.kind == M::KIND.name).then(|| codec::decode(&request.body).unwrap())
}

/// The bytes of an answer to a question of this kind.
pub(crate) fn ok<M: Message>(answer: M::Answer) -> Answer {
    Ok(codec::encode(&answer))
}

fn edge() -> NodeId {
    NodeId::new("edge-1").unwrap()
}

#[tokio::test]
async fn a_question_goes_to_the_address_its_kind_names_with_the_node_in_it() {
    let control = answered_by(|request| {
        assert_eq!(request.to, "fleet");
        ok::<Retire>(Retired { already: request.kind == "retire" })
    });
    assert!(control.ask(&Retire { node: edge() }).await.unwrap().already);
    let control = answered_by(|request| Err(Refusal::new("to", request.to.clone(), "", "")));
    let asked = tenure_protocol::operator::Node { node: edge() };
    assert_eq!(control.ask_of(&edge(), &asked).await.unwrap_err().refusal.happened, "node/edge-1");
}

#[tokio::test]
async fn a_connection_that_ends_before_the_answer_is_a_failure_and_not_a_refusal() {
    let (near, far) = tokio::io::duplex(1024);
    drop(far);
    let control = Caller::over(near, "the control plane");
    let trouble = control.ask(&Retire { node: edge() }).await.unwrap_err();
    assert_eq!((trouble.exit, trouble.refusal.code.as_str()), (Exit::Failed, "connection_lost"));
    assert_eq!(
        trouble.refusal.happened,
        "the control plane closed the connection before it answered `retire`"
    );
}

#[tokio::test]
async fn something_that_speaks_no_frames_is_told_apart_from_a_daemon_that_went() {
    use tokio::io::AsyncWriteExt as _;
    let (near, mut far) = tokio::io::duplex(1024);
    let control = Caller::over(near, "the control plane");
    far.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
    let trouble = control.ask(&Retire { node: edge() }).await.unwrap_err();
    assert_eq!((trouble.exit, trouble.refusal.code.as_str()), (Exit::Failed, "not_understood"));
    assert!(trouble.refusal.happened.contains("does not speak as it does"), "{}", trouble.refusal.happened);
    assert!(trouble.refusal.remedy.contains("--socket"), "{}", trouble.refusal.remedy);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_come_leaves_open_whether_it_was_done() {
    let (near, _far) = tokio::io::duplex(1024);
    let control = Caller::over(near, "the control plane");
    let trouble = control.ask(&Retire { node: edge() }).await.unwrap_err();
    assert_eq!((trouble.exit, trouble.refusal.code.as_str()), (Exit::Failed, "no_answer"));
    assert_eq!(trouble.refusal.means, "nobody knows from here whether it was done");
}

// rule: S-09
#[tokio::test]
async fn a_socket_of_ones_own_is_spoken_to_and_one_of_somebody_else_is_named() {
    let (near, _far) = UnixStream::pair().unwrap();
    assert!(Caller::trusted(near, Path::new("/s"), "the control plane").is_ok());
    let trouble = foreign(Path::new("/tmp/s"), 4711);
    assert_eq!(trouble.refusal.happened, "the socket /tmp/s is held by user id 4711");
    assert_eq!(trouble.exit, Exit::Refused);
}

#[tokio::test(start_paused = true)]
async fn a_declare_is_waited_for_longer_than_the_control_plane_itself_waits_and_a_question_is_not() {
    let (near, _far) = tokio::io::duplex(1024);
    let control = Caller::over(near, "the control plane");
    let began = tokio::time::Instant::now();
    control.ask(&tenure_protocol::operator::Nodes { after: None }).await.unwrap_err();
    assert_eq!(began.elapsed(), Duration::from_secs(120));
    let began = tokio::time::Instant::now();
    let folder = tenure_protocol::id::Digest::of(b"folder");
    let declare = tenure_protocol::operator::Declare { folder, plan: false, allow_removals: None };
    assert_eq!(control.ask(&declare).await.unwrap_err().refusal.code, "no_answer");
    assert!(began.elapsed() > Duration::from_secs(15 * 60));
}

// rule: S-09
#[test]
fn a_socket_of_somebody_else_is_named_with_whose_it_is() {
    let refusal = foreign(Path::new("/tmp/api.sock"), 4711).refusal;
    assert_eq!(refusal.code, "foreign_socket");
    assert!(refusal.happened.contains("/tmp/api.sock") && refusal.happened.contains("4711"), "{refusal:?}");
}

/// `value` with hostile text, long beyond reason, in every place that takes any text: all that its type does not refuse.
pub(crate) fn hostile(mut value: Value, taken: impl Fn(&Value) -> bool) -> Value {
    for place in places(&value, String::new()) {
        let there = value.pointer_mut(&place).unwrap();
        let before = std::mem::replace(there, Value::String(HOSTILE.repeat(400)));
        if !taken(&value) {
            *value.pointer_mut(&place).unwrap() = before;
        }
    }
    assert!(value.to_string().contains("\u{202e}"), "nothing takes text: {value}");
    value
}

/// The same of an answer.
pub(crate) fn hostile_answer<M: Message>(answer: &M::Answer) -> M::Answer {
    let taken = |value: &Value| serde_json::from_value::<M::Answer>(value.clone()).is_ok();
    serde_json::from_value(hostile(serde_json::to_value(answer).unwrap(), taken)).unwrap()
}

/// Moves the cursor, turns the line, hides, and forges a line of its own.
const HOSTILE: &str = "x\u{1b}[2J\r\nready\u{202e}txt\u{2066}\u{200b}\u{7}";

/// Every text inside, by its place.
fn places(value: &Value, at: String) -> Vec<String> {
    match value {
        Value::String(_) => vec![at],
        Value::Array(values) => values
            .iter()
            .enumerate()
            .flat_map(|(number, inner)| places(inner, format!("{at}/{number}")))
            .collect(),
        Value::Object(fields) => {
            fields.iter().flat_map(|(name, inner)| places(inner, format!("{at}/{name}"))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// That what is shown moves no cursor, turns no line, and has an end.
pub(crate) fn assert_harmless(text: &str) {
    let odd = |c: char| c.is_control() && c != '\n' || "\u{202e}\u{2066}\u{200b}".contains(c);
    assert!(!text.contains(odd), "{text:?}");
    assert!(!text.lines().any(|line| line.starts_with("ready")), "a forged line: {text}");
    assert!(text.chars().count() < 20_000, "{} characters", text.chars().count());
}
