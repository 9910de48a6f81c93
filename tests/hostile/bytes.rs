//! Bytes that nobody of ours sends.

use tenure_protocol::envelope::{Answer, Event, Frame, Request};
use tenure_protocol::wire::codec;

/// A frame of these bytes, with their length before them.
pub(crate) fn framed(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&length[..], body].concat()
}

pub(crate) fn request(id: u64, to: &str, kind: &str, body: Vec<u8>) -> Frame {
    Frame::Request(Request { to: to.to_owned(), id, kind: kind.to_owned(), body })
}

fn good() -> Vec<u8> {
    codec::encode(&request(
        1,
        "fleet",
        "control.status",
        codec::encode(&tenure_protocol::operator::Status {}),
    ))
}

/// What is no frame, with what it is called; each ends the connection that sends it, at any door.
pub(crate) fn no_frames() -> Vec<(&'static str, Vec<u8>)> {
    let trailing = [good(), vec![0xc0]].concat();
    let mut nested = vec![0x81, 0xa4, b'b', b'o', b'd', b'y'];
    nested.extend([0x91; 4000]);
    let nobody = Frame::Answer(Answer { re: 0, result: Ok(Vec::new()) });
    let mut both = codec::encode(&nobody);
    // A map of two fields of which the second is one more: an answer that is a request as well.
    both[0] = 0x83;
    both.extend([0xa4, b'k', b'i', b'n', b'd', 0xa1, b'x']);
    vec![
        ("a length of four gigabytes", vec![0xff, 0xff, 0xff, 0xff]),
        ("a length one above the limit", (256 * 1024 + 1_u32).to_be_bytes().to_vec()),
        ("an empty frame", framed(&[])),
        ("nothing but nonsense", framed(&[0xc1; 64])),
        ("a map that claims four thousand million fields", framed(&[0xdf, 0xff, 0xff, 0xff, 0xff])),
        ("four thousand levels", framed(&nested)),
        ("bytes behind the end", framed(&trailing)),
        ("an answer that is a request as well", framed(&both)),
        ("HTTP", b"GET /v1/nodes HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec()),
    ]
}

/// Frames that are whole, and that nobody waits for: an answer to nothing and an event that is none.
pub(crate) fn uncalled_for() -> [Frame; 2] {
    let event =
        Event { from: "session".to_owned(), seq: 1, kind: "session.ended".to_owned(), body: vec![0xc1] };
    [Frame::Answer(Answer { re: u64::MAX, result: Ok(vec![0xc1]) }), Frame::Event(event)]
}
