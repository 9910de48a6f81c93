//! The arithmetic of access lists; what becomes of whole files is tested with whole passes.

use super::*;

fn list(entries: &[(u16, u16)]) -> Vec<u8> {
    let entry = |(tag, gives): &(u16, u16)| {
        [tag.to_le_bytes().as_slice(), &gives.to_le_bytes(), &u32::MAX.to_le_bytes()].concat()
    };
    [vec![2, 0, 0, 0], entries.iter().flat_map(entry).collect()].concat()
}

#[test]
fn the_mode_bounds_an_access_list_and_says_what_the_files_own_group_has() {
    let (owner, user, group, mask, other) = (0x01, 0x02, 0x04, 0x10, 0x20);
    let wide = list(&[(owner, 7), (user, 7), (group, 7), (mask, 7), (other, 7)]);
    let bound = list(&[(owner, 6), (user, 7), (group, 4), (mask, 4), (other, 0)]);
    assert_eq!(bounded(&wide, 0o640), bound);
    assert_eq!(bounded(&bound, 0o4640), bound, "the other bits are no part of it");
    // Without a mask it is the group itself that is bounded.
    let (plain, closed) =
        (list(&[(owner, 7), (group, 7), (other, 7)]), list(&[(owner, 7), (group, 0), (other, 0)]));
    assert_eq!(bounded(&plain, 0o700), closed);
}

// case: O-03
#[test]
fn whom_an_access_list_names_gets_nothing_from_a_wider_bound_that_the_one_before_kept_from_him() {
    let (owner, user, group, named, mask, other) = (0x01, 0x02, 0x04, 0x08, 0x10, 0x20);
    let all = |u, g, n, m| list(&[(owner, 6), (user, u), (group, g), (named, n), (mask, m), (other, 0)]);
    assert_eq!(bounded(&all(4, 0, 6, 0), 0o640), all(0, 4, 0, 4));
    assert_eq!(bounded(&all(7, 4, 6, 4), 0o660), all(4, 6, 4, 6));
    assert_eq!(bounded(&all(7, 6, 6, 6), 0o640), all(7, 4, 6, 4), "a narrower one keeps enough from him");
}

#[test]
fn what_the_kernel_makes_by_itself_is_no_part_of_what_goes_over() {
    for name in
        [c"security.evm", c"trusted.SGI_ACL_FILE", c"trusted.SGI_ACL_DEFAULT", c"trusted.overlay.opaque"]
    {
        assert!(is_derived(name), "{name:?}");
    }
    assert!(!is_derived(c"trusted.note") && !is_derived(ACCESS));
}

#[test]
fn an_access_list_in_a_form_of_the_file_systems_own_is_named() {
    let has = |names: &[&CStr]| {
        let attribute = |name: &&CStr| Attribute { name: (*name).to_owned(), value: Vec::new() };
        Attributes(names.iter().map(attribute).collect()).of_the_file_system()
    };
    assert_eq!(has(&[c"user.note", ACCESS, HANDED_DOWN]), None);
    assert_eq!(has(&[ACCESS, c"system.nfs4_acl"]).as_deref(), Some("system.nfs4_acl"));
}

// rule: S-20
#[test]
fn a_name_that_somebody_chose_is_nothing_to_be_afraid_of_in_a_command() {
    assert_eq!(typed(c"user.note-1"), "user.note-1");
    assert_eq!(typed(c"user.$(reboot);`x` '\n\u{202e}"), "user.??reboot???x?????");
    assert_eq!(typed(&CString::new("u".repeat(300)).unwrap()).len(), 100);
}

#[test]
fn a_list_of_a_form_that_is_not_known_is_left_as_it_is() {
    for strange in [&b""[..], b"\x03\0\0\0abcdefgh", b"\x02\0\0", b"\x02\0\0\0\x01"] {
        assert_eq!(bounded(strange, 0o600), strange, "{strange:?}");
    }
}
