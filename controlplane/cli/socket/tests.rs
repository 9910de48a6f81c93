use super::*;
use crate::ending::Exit;

fn tried(path: &str, found: Result<&'static str, ErrorKind>) -> Tried<&'static str> {
    Tried { path: path.into(), found }
}

#[test]
fn the_only_control_plane_that_answers_is_taken() {
    let (path, stream) =
        choose(vec![tried("/run/a", Err(ErrorKind::NotFound)), tried("/home/b", Ok("b"))]).unwrap();
    assert_eq!((path.to_str().unwrap(), stream), ("/home/b", "b"));
}

#[test]
fn two_that_answer_are_listed_and_neither_is_asked() {
    let trouble = choose(vec![tried("/run/a", Ok("a")), tried("/home/b", Ok("b"))]).unwrap_err();
    assert_eq!(trouble.exit, Exit::Usage);
    assert_eq!(
        trouble.text(),
        "usage: two_control_planes
  what happened  two control planes answer on this machine, and none was named
  what it means  they hold different fleets; nothing was asked of either
  what to do     name one: --socket /run/a or --socket /home/b
"
    );
}

#[test]
fn none_that_answers_is_said_with_the_places_that_were_tried() {
    let trouble = choose::<()>(vec![
        Tried { path: "/run/a".into(), found: Err(ErrorKind::NotFound) },
        Tried { path: "/home/b".into(), found: Err(ErrorKind::ConnectionRefused) },
    ])
    .unwrap_err();
    assert_eq!((trouble.exit, trouble.refusal.code.as_str()), (Exit::Refused, "no_control_plane"));
    assert_eq!(trouble.refusal.happened, "no control plane answers at /run/a or /home/b");
}

#[test]
fn a_socket_that_may_not_be_opened_is_not_taken_for_one_that_is_not_there() {
    let trouble = choose(vec![
        tried("/run/a", Err(ErrorKind::PermissionDenied)),
        tried("/home/b", Err(ErrorKind::NotFound)),
    ])
    .unwrap_err();
    assert_eq!(trouble.refusal.code, "socket_not_permitted");
}
