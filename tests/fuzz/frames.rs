//! Frames: what comes over a socket or a link before anything is known of it.

use bytes::BytesMut;
use tenure_protocol::envelope::{Answer, Event, Frame, Request};
use tenure_protocol::refusal::Refusal;
use tenure_protocol::wire::codec;
use tenure_protocol::wire::frame::{FrameCodec, MOST};
use tokio_util::codec::{Decoder as _, Encoder as _};

use crate::frame_examples::{self, Example};
use crate::{change, run};

/// Heads of MessagePack that claim much, nest, or end nothing.
const WORDS: &[&[u8]] = &[
    &[0xdd, 0xff, 0xff, 0xff, 0xff],
    &[0xdf, 0xff, 0xff, 0xff, 0xff],
    &[0xc6, 0xff, 0xff, 0xff, 0xff],
    &[0xdb, 0xff, 0xff, 0xff, 0xff],
    &[0xdc, 0xff, 0xff],
    &[0x91; 40],
    &[0x81, 0xa0, 0x81, 0xa0, 0x81, 0xa0],
    &[0xc0],
    &[0xc1],
    &[0xc7, 0x00, 0x00],
    &[0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
    &[0xd3, 0x80, 0, 0, 0, 0, 0, 0, 0],
    &[0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0],
    &[0xa4, b'b', b'o', b'd', b'y'],
    &[0xa4, b'k', b'i', b'n', b'd'],
];

// rule: S-10
#[test]
fn a_changed_body_of_any_kind_is_read_or_refused_and_what_is_read_is_written_the_same_again() {
    let examples = frame_examples::all();
    run::run(60_000, |random| {
        let Example { name, bytes, again } = random.of(&examples);
        let other = &random.of(&examples).bytes;
        let changed = change::bytes(random, bytes, WORDS, other);
        if let Some(written) = again(&changed) {
            assert_eq!(again(&written).as_ref(), Some(&written), "{name} is written in two ways");
        }
    });
}

fn frames(body: &[u8]) -> Vec<Frame> {
    let body = body.to_vec();
    vec![
        Frame::Request(Request {
            to: "node/edge-1".into(),
            id: 7,
            kind: "report".into(),
            body: body.clone(),
        }),
        Frame::Event(Event {
            from: "session".into(),
            seq: 1,
            kind: "session.ended".into(),
            body: body.clone(),
        }),
        Frame::Answer(Answer { re: 7, result: Ok(body) }),
        Frame::Answer(Answer { re: 8, result: Err(Refusal::new("code", "happened", "means", "do")) }),
    ]
}

// rule: S-22
#[test]
fn a_changed_stream_is_frames_or_an_error_and_reserves_no_more_than_came() {
    let examples = frame_examples::all();
    let stream = |body: &[u8]| {
        let mut stream = BytesMut::new();
        for frame in frames(body) {
            FrameCodec::new(MOST).encode(&frame, &mut stream).unwrap();
        }
        stream.to_vec()
    };
    run::run(30_000, |random| {
        let good = stream(&random.of(&examples).bytes);
        let changed = change::bytes(random, &good, WORDS, &[0xff; 8]);
        let (mut codec, mut buffer) = (FrameCodec::new(MOST), BytesMut::new());
        for chunk in changed.chunks(1 + random.below(changed.len() + 1)) {
            buffer.extend_from_slice(chunk);
            loop {
                match codec.decode(&mut buffer) {
                    Ok(Some(frame)) => assert_eq!(codec::decode(&codec::encode(&frame)), Ok(frame)),
                    Ok(None) => break,
                    Err(_) => return,
                }
            }
            assert!(buffer.capacity() <= 2 * changed.len() + 64 * 1024, "{} bytes", buffer.capacity());
        }
    });
}
