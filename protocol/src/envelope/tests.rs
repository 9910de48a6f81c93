use super::*;
use crate::wire::codec;

fn request() -> Frame {
    Frame::Request(Request { to: "node/edge-1".into(), id: 1, kind: "heartbeat".into(), body: vec![0x80] })
}

#[test]
fn each_frame_is_read_back_as_what_it_was() {
    let refusal = Refusal::new("lost", "it happened", "it means", "do this");
    for frame in [
        request(),
        Frame::Answer(Answer { re: 1, result: Ok(vec![0xc0]) }),
        Frame::Answer(Answer { re: 2, result: Err(refusal) }),
        Frame::Event(Event { from: "session".into(), seq: 0, kind: "session.ended".into(), body: vec![] }),
    ] {
        assert_eq!(codec::decode::<Frame>(&codec::encode(&frame)).unwrap(), frame);
    }
}

// rule: S-10
#[test]
fn a_field_a_newer_side_added_is_ignored_in_an_envelope() {
    let newer = serde_json::json!({"re": 1, "refusal": {"code": "c", "happened": "h", "means": "m", "do": "d", "since": 5}, "trace": "x"});
    let frame: Frame = codec::decode(&codec::encode(&newer)).unwrap();
    assert!(matches!(frame, Frame::Answer(Answer { re: 1, result: Err(_) })));
}

#[test]
fn fields_of_no_frame_or_of_two_are_no_frame() {
    for bad in [
        serde_json::json!({}),
        serde_json::json!({"re": 1}),
        serde_json::json!({"to": "x", "id": 1, "kind": "k"}),
        serde_json::json!({"re": 1, "to": "x"}),
        serde_json::json!([1, 2]),
        serde_json::json!("hello"),
    ] {
        assert!(codec::decode::<Frame>(&codec::encode(&bad)).is_err(), "{bad}");
    }
    let Frame::Request(request) = request() else { panic!() };
    let zero = Frame::Request(Request { id: 0, ..request });
    assert!(codec::decode::<Frame>(&codec::encode(&zero)).is_err());
}
