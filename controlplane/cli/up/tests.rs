use tenure_protocol::id::NodeId;

use super::*;

#[test]
fn up_without_a_sandbox_is_for_root_only() {
    assert!(
        may_start(true, false).is_ok() && may_start(true, true).is_ok() && may_start(false, true).is_ok()
    );
    let user = may_start(false, false).unwrap_err();
    assert_eq!((user.exit, user.refusal.code.as_str()), (Exit::Usage, "needs_root"));
    assert!(user.refusal.remedy.contains("tenure up --sandbox"));
}

#[test]
fn on_the_machine_itself_everything_has_its_ordinary_place_and_no_example_is_put() {
    let ground = Ground::of_the_machine();
    assert_eq!(ground.control_socket(), Path::new("/run/tenure-control/api.sock"));
    assert_eq!(ground.host_socket(), Path::new("/run/tenure-host/api.sock"));
    assert_eq!((ground.control().as_path(), ground.machine().as_path()), (Path::new("/"), Path::new("/")));
    assert_eq!(ground.example(), None);
    let joined = Joined { node: NodeId::new("edge-1").unwrap(), how: join::How::Anew };
    let tried = commands(Path::new("/usr/bin/tenure"), &ground, &joined);
    assert!(
        tried
            .iter()
            .all(|command| command.starts_with("/usr/bin/tenure --socket /run/tenure-control/api.sock "))
    );
}

#[test]
fn what_to_try_names_the_binary_and_the_socket_and_can_be_typed_as_it_stands() {
    let ground = Ground::new("/home/a b/tenure".into(), None);
    let joined = Joined { node: NodeId::new("sandbox").unwrap(), how: join::How::Anew };
    let socket = "--socket '/home/a b/tenure/control/run/tenure-control/api.sock'";
    assert_eq!(
        commands(Path::new("/opt/tenure"), &ground, &joined),
        [
            format!("/opt/tenure {socket} nodes"),
            format!("/opt/tenure {socket} declare '/home/a b/tenure/example' --wait"),
            format!("/opt/tenure {socket} node sandbox"),
        ]
    );
}

#[test]
fn a_user_without_a_home_is_told_to_name_a_folder() {
    let trouble = no_home();
    assert_eq!((trouble.exit, trouble.refusal.code.as_str()), (Exit::Usage, "no_home"));
    assert!(trouble.refusal.remedy.contains("--root DIR"));
}
