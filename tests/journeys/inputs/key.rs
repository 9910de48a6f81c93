//! A control plane whose master key is not there, or not what it was (N-04).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use tenure_tests::sandbox::{Sandbox, text};

use super::assert_refused;

// rule: N-04
#[test]
fn without_a_master_key_nothing_is_minted_or_judged_and_everything_is_read_and_held() {
    let mut sandbox = Sandbox::enrolled(&[]);
    sandbox.module("[[file]]\npath = \"/a.txt\"\ncontent = \"a\\n\"\n");
    sandbox.declare(&[]).expect(0);
    let outstanding = sandbox.invite("edge-2", &[]);
    let path = sandbox.at("control/var/lib/tenure-control/master.key");
    let key = fs::read(&path).unwrap();
    let mut second = Sandbox::empty();
    second.start_host();
    for bytes in [None, Some(&b""[..]), Some(&key[..16]), Some(&[0; 32][..])] {
        sandbox.kill_control();
        match bytes {
            None => fs::remove_file(&path).unwrap(),
            Some(bytes) => fs::write(&path, bytes).unwrap(),
        }
        sandbox.start_control();
        let said = sandbox.control.as_ref().unwrap().said();
        assert!(said.contains("no_master_key") && said.contains("master.key"), "{said}");
        for command in [["invite", "edge-3", "--json"], ["reinvite", "edge-2", "--json"]] {
            assert_refused(
                &sandbox.tenure(&command),
                "no_master_key",
                &["the control plane has no master key"],
            );
        }
        let refused = second.redeem(&outstanding).expect(3);
        assert!(
            refused.err.contains("no_master_key") && refused.err.contains("may be good"),
            "{}",
            refused.err
        );
        assert_eq!(sandbox.node()["revision"]["declared"], 1);
        let fleet = text(&sandbox.at("fleet"));
        sandbox.tenure(&["declare", &fleet, "--plan"]).expect(0);
        assert_eq!(fs::read(&path).ok().as_deref(), bytes, "nothing is made in its place");
    }
    fs::write(sandbox.machine("/a.txt"), "spoilt").unwrap();
    sandbox.wait("the machine is held", |s| s.read("/a.txt").as_deref() == Some("a\n"));

    sandbox.kill_control();
    fs::write(&path, key).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    sandbox.start_control();
    sandbox.wait("the session is back", |s| !s.node()["session"].is_null());
    second.redeem(&outstanding).expect(0);
}
