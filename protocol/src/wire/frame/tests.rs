use super::*;
use crate::envelope::{Answer, Request};

fn frame(body: usize) -> Frame {
    Frame::Request(Request { to: "x".into(), id: 1, kind: "k".into(), body: vec![7; body] })
}

#[test]
fn frames_come_out_as_they_went_in_however_the_stream_is_cut() {
    let mut codec = FrameCodec::new(MOST);
    let mut stream = BytesMut::new();
    let frames = [frame(0), frame(5000), Frame::Answer(Answer { re: 9, result: Ok(vec![]) })];
    for frame in &frames {
        codec.encode(frame, &mut stream).unwrap();
    }
    for chunk in [1, 3, 7, 4096] {
        let (mut buffer, mut out) = (BytesMut::new(), Vec::new());
        for part in stream.chunks(chunk) {
            buffer.extend_from_slice(part);
            while let Some(frame) = codec.decode(&mut buffer).unwrap() {
                out.push(frame);
            }
        }
        assert_eq!(out, frames);
    }
}

#[test]
fn a_claimed_length_above_the_limit_is_refused_before_its_bytes_arrive() {
    let mut buffer = BytesMut::from(&[0xff_u8, 0xff, 0xff, 0xff][..]);
    let refused = FrameCodec::new(MOST_GREETING).decode(&mut buffer).unwrap_err();
    assert!(matches!(refused, FrameError::TooLong { most: MOST_GREETING, .. }));
    assert!(buffer.capacity() < 1024);
}

#[test]
fn a_frame_larger_than_the_wire_takes_is_not_sent() {
    let mut buffer = BytesMut::new();
    assert!(matches!(
        FrameCodec::new(MOST).encode(&frame(MOST), &mut buffer),
        Err(FrameError::TooLong { .. })
    ));
    assert!(buffer.is_empty());
}

#[test]
fn the_words_of_another_protocol_are_no_frame() {
    let mut buffer = BytesMut::from(&b"GET / HTTP/1.1\r\n\r\n"[..]);
    assert!(FrameCodec::new(MOST).decode(&mut buffer).is_err());
}
