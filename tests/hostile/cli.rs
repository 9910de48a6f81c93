//! Both command lines, where something else answers in the place of the daemon.

use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use tenure_protocol::envelope::{Answer, Frame, Request};
use tenure_protocol::wire::codec;
use tenure_tests::program::Ran;
use tenure_tests::sandbox::{Sandbox, text};

use crate::bytes::{framed, no_frames};

/// Answers each connection at `path` with what `answer` makes of the first frame that came, and closes.
fn impostor(path: &Path, answer: impl Fn(&[u8]) -> Vec<u8> + Send + 'static) {
    let _ = std::fs::remove_file(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let listener = UnixListener::bind(path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let asked = first_frame(&mut stream);
            let _ = stream.write_all(&answer(&asked));
            let _ = stream.shutdown(std::net::Shutdown::Write);
            // Whoever asked closes when it has understood that nothing more comes.
            let _ = stream.read_to_end(&mut Vec::new());
        }
    });
}

fn first_frame(stream: &mut UnixStream) -> Vec<u8> {
    let mut head = [0; 4];
    stream.read_exact(&mut head).unwrap();
    let mut body = vec![0; usize::try_from(u32::from_be_bytes(head)).unwrap()];
    stream.read_exact(&mut body).unwrap();
    body
}

/// The bytes of an answer, made of the question's.
type Play = Box<dyn Fn(&[u8]) -> Vec<u8> + Send>;

/// What is answered, what each command line calls that, and the bytes.
type Answered = (&'static str, [&'static str; 2], Play);

fn answers() -> Vec<Answered> {
    let id_of = |asked: &[u8]| match codec::decode::<Frame>(asked).unwrap() {
        Frame::Request(Request { id, .. }) => id,
        other => panic!("{other:?}"),
    };
    let answered = move |asked: &[u8], body: Vec<u8>| {
        framed(&codec::encode(&Frame::Answer(Answer { re: id_of(asked), result: Ok(body) })))
    };
    let mut answers: Vec<Answered> = vec![
        ("nothing", ["connection_lost", "host_gone"], Box::new(|_| Vec::new())),
        ("half a frame", ["connection_lost", "host_gone"], Box::new(|_| vec![0, 0, 1, 0, 5])),
        (
            "an answer to another question",
            ["connection_lost", "host_gone"],
            Box::new(|_| framed(&codec::encode(&Frame::Answer(Answer { re: 77, result: Ok(vec![]) })))),
        ),
        (
            "an answer that is none",
            ["unreadable_answer", "host_no_answer"],
            Box::new(move |asked| answered(asked, vec![0xc1; 100])),
        ),
        (
            "an answer that claims four thousand million lines",
            ["unreadable_answer", "host_no_answer"],
            Box::new(move |asked| {
                answered(asked, vec![0x81, 0xa5, b'n', b'o', b'd', b'e', b's', 0xdd, 0xff, 0xff, 0xff, 0xff])
            }),
        ),
    ];
    for (what, bytes) in no_frames() {
        let answer = move |_: &[u8]| bytes.clone();
        answers.push((what, ["not_understood", "not_understood"], Box::new(answer)));
    }
    answers
}

fn assert_is_told(ran: &Ran, code: &str, what: &str) {
    assert!([3, 4].contains(&ran.code) && ran.out.is_empty(), "{what}: {ran:?}");
    assert!(ran.err.contains(code), "{what}: {}", ran.err);
    for part in ["means", "what to do"] {
        assert!(ran.err.contains(part), "{what}: {}", ran.err);
    }
}

#[test]
fn something_else_in_the_place_of_a_daemon_is_told_apart_from_a_daemon_that_went() {
    let sandbox = Sandbox::empty();
    let control = sandbox.at("control/run/tenure-control/api.sock");
    let host = tenure_host::ground::Ground::new(sandbox.at("machine"), true).socket();
    assert!(text(&control).len() < 100 && text(&host).len() < 100, "a path that can be bound");
    for ((what, [code, _], at_control), (_, [_, of_host], at_host)) in answers().into_iter().zip(answers()) {
        impostor(&control, at_control);
        impostor(&host, at_host);
        let began = Instant::now();
        assert_is_told(&sandbox.tenure(&["nodes"]), code, what);
        assert_is_told(&sandbox.host(&["status"]), of_host, what);
        assert!(began.elapsed() < Duration::from_secs(20), "{what}: it took {:?}", began.elapsed());
    }
}
