use std::os::unix::fs::PermissionsExt as _;

use tenure_protocol::id::NodeId;
use tenure_protocol::secret::Secret;

use super::*;
use crate::screen::tests::{kept, with_a_closed_pipe};

const NOW: Millis = Millis(1_700_000_000_000);

fn invited(handed_back: bool) -> Invited {
    Invited {
        node: NodeId::new("edge-1").unwrap(),
        token: Secret::new("tenure_e1_abc".to_owned()),
        expires: Millis(NOW.0 + 1_800_000),
        handed_back,
    }
}

// case: O-62
#[test]
fn the_token_stands_alone_on_stdout_and_what_to_do_with_it_on_stderr() {
    let (mut screen, out, err) = kept(false, None);
    hand_out(&invited(false), None, &mut screen, NOW).unwrap();
    assert_eq!(out.text(), "tenure_e1_abc\n");
    assert_eq!(
        err.text(),
        "this is the token for edge-1, shown once; it can be redeemed once, and ends in 30 min
whoever holds it can become edge-1: bring it to the machine in a file, never as an argument
on the machine, as root:  tenure-host enrol --token-file FILE
"
    );
}

#[test]
fn an_outstanding_token_that_is_handed_back_says_so() {
    let (mut screen, _, err) = kept(false, None);
    hand_out(&invited(true), None, &mut screen, NOW).unwrap();
    assert!(err.text().starts_with("this is the outstanding token for edge-1, again;"));
}

// case: O-62
#[test]
fn into_a_file_the_token_goes_for_its_owner_alone_and_nowhere_else() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    for json in [false, true] {
        let _ = std::fs::remove_file(&path);
        let (mut screen, out, err) = kept(json, None);
        hand_out(&invited(false), Some(Place::reserve(&path).unwrap()), &mut screen, NOW).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "tenure_e1_abc\n");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o600);
        assert!(!out.text().contains("tenure_e1_") && !err.text().contains("tenure_e1_"));
    }
}

// case: O-62
#[test]
fn a_token_is_never_written_over_a_file_or_through_a_link() {
    let dir = tempfile::tempdir().unwrap();
    let (file, link) = (dir.path().join("file"), dir.path().join("link"));
    std::fs::write(&file, "mine").unwrap();
    std::os::unix::fs::symlink(dir.path().join("elsewhere"), &link).unwrap();
    for path in [&file, &link] {
        assert_eq!(Place::reserve(path).unwrap_err().refusal.code, "file_exists");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    assert!(!dir.path().join("elsewhere").exists());
}

#[test]
fn a_file_for_a_token_that_never_came_goes_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    drop(Place::reserve(&path).unwrap());
    assert!(!path.exists());
}

#[test]
fn a_token_nobody_could_read_is_a_failure_that_says_how_to_get_it_again() {
    let trouble = hand_out(&invited(false), None, &mut with_a_closed_pipe(), NOW).unwrap_err();
    assert_eq!((trouble.exit, trouble.refusal.code.as_str()), (Exit::Failed, "token_not_written"));
    assert!(trouble.refusal.remedy.contains("tenure reinvite edge-1"));
}

#[test]
fn for_programs_the_token_is_a_field() {
    let (mut screen, out, err) = kept(true, None);
    hand_out(&invited(false), None, &mut screen, NOW).unwrap();
    let value: serde_json::Value = serde_json::from_str(&out.text()).unwrap();
    assert_eq!(
        value,
        json!({ "node": "edge-1", "token": "tenure_e1_abc", "expires": NOW.0 + 1_800_000, "handed_back": false })
    );
    assert_eq!(err.text(), "");
}

#[test]
fn a_token_file_that_cannot_be_written_is_refused_before_a_token_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let trouble = Place::reserve(&folder.path().join("missing/token")).unwrap_err();
    assert_eq!(trouble.refusal.code, "cannot_write");
    assert_eq!(trouble.refusal.means, "no token was made");
}
