use proptest::prelude::*;

use super::*;
use crate::envelope::Frame;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Listed {
    #[serde(deserialize_with = "bounded::<_, _, 3>")]
    list: Vec<u8>,
}

#[test]
fn a_value_with_bytes_behind_it_is_refused() {
    let mut bytes = encode(&Listed { list: vec![1] });
    bytes.push(0xc0);
    assert_eq!(decode::<Listed>(&bytes), Err(DecodeError::Trailing(1)));
}

#[test]
fn a_list_longer_than_its_bound_is_refused() {
    assert!(decode::<Listed>(&encode(&Listed { list: vec![1, 2, 3] })).is_ok());
    let refused = decode::<Listed>(&encode(&Listed { list: vec![1, 2, 3, 4] })).unwrap_err();
    assert!(refused.to_string().contains("more than 3"), "{refused}");
}

#[test]
fn a_value_nested_too_deep_is_an_error_and_not_the_end_of_the_process() {
    for depth in [DEPTH + 1, 1024, 100_000] {
        let mut bytes = vec![0x81, 0xa1, b'x'];
        bytes.extend(std::iter::repeat_n(0x91, depth));
        bytes.push(0xc0);
        assert!(decode::<Frame>(&bytes).is_err(), "{depth}");
    }
}

#[test]
fn a_claimed_length_of_four_gigabytes_reserves_nothing() {
    for claim in [0xdd_u8, 0xdf, 0xdb, 0xc6] {
        let bytes = [&[0x81, 0xa4][..], b"list", &[claim, 0xff, 0xff, 0xff, 0xff]].concat();
        assert!(decode::<Listed>(&bytes).is_err());
    }
}

#[test]
fn values_are_written_as_named_maps() {
    assert_eq!(encode(&Listed { list: vec![] }), [&[0x81, 0xa4][..], b"list", &[0x90]].concat());
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_fall_over(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = decode::<Frame>(&bytes);
        let _ = decode::<crate::session::Hello>(&bytes);
    }
}
