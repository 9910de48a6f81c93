//! What is refused by name, while the rest applies.

use super::*;

// rule: H-02
#[test]
fn what_reaches_the_hosts_own_files_is_refused_by_every_spelling_and_the_rest_applies() {
    let mut machine = Machine::new();
    for place in ["/usr/bin", "/usr/lib/tenure-host", "/etc/systemd/system", "/lib"] {
        std::fs::create_dir_all(machine.at(place)).unwrap();
    }
    machine.write("/usr/bin/tenure-host", "binary");
    std::fs::hard_link(machine.at("/usr/bin/tenure-host"), machine.at("/srv/hard")).unwrap();
    symlink("/var/lib/tenure-host", machine.at("/srv/state")).unwrap();
    symlink("../etc", machine.at("/srv/etc")).unwrap();
    let refused = [
        "/usr//bin/./tenure-host",
        "/usr/lib/tenure-host/probation",
        "/etc/tenure/host.toml",
        "/etc/tenure",
        "/var/lib/tenure-host/store.db",
        "/run/tenure-host/api.sock",
        "/etc/systemd/system/tenure-host.service",
        "/usr/lib/systemd/system/tenure-host.service.d/override.conf",
        "/etc/systemd/system/multi-user.target.wants/tenure-host.service",
        "/etc/systemd/system/service.d/all.conf",
        "/etc/needrestart/conf.d/tenure-host.conf",
        "/srv/hard",
        "/srv/state/node.key",
        "/srv/etc/tenure/new-file",
        "/var/lib",
        "/etc/systemd",
    ];
    for path in refused {
        machine.file(path, "evil");
    }
    machine.directory("/run/tenure-host", "0777");
    machine.directory("/srv/state/more", "0755");
    machine.file("/srv/fine", "fine");
    let done = machine.pass();
    assert_eq!(done.outcomes.len(), refused.len() + 3);
    for line in done.outcomes.iter().filter(|line| line.key != "file:/srv/fine") {
        assert_eq!((line.outcome, line.code.as_deref()), (Refused, Some("own_file")), "{line:?}");
    }
    assert_eq!(line(&done, "file:/srv/fine").outcome, Applied);
    assert_eq!(machine.read("/usr/bin/tenure-host"), "binary");
}

// rule: H-02
#[test]
fn a_place_of_ours_that_is_not_there_yet_is_not_reached_through_a_link() {
    let mut machine = Machine::new();
    std::fs::create_dir_all(machine.at("/run/systemd")).unwrap();
    symlink("/run", machine.at("/var/run")).unwrap();
    machine.directory("/var/run/systemd/system", "0755");
    machine.directory("/var/run/systemd/system/service.d", "0755");
    machine.file("/var/run/systemd/system/service.d/x.conf", "evil");
    machine.file("/var/run/systemd/system/tenure-host.service", "evil");
    machine.file("/var/run/systemd/system/other.service", "fine");
    let done = machine.pass();
    for key in
        ["directory:/var/run/systemd/system/service.d", "file:/var/run/systemd/system/service.d/x.conf"]
    {
        assert_eq!(outcome(&done, key), (Refused, Some("own_file".to_owned())), "{key}");
    }
    let unit = "file:/var/run/systemd/system/tenure-host.service";
    assert_eq!(outcome(&done, unit), (Refused, Some("own_file".to_owned())));
    assert!(!machine.at("/run/systemd/system/service.d").exists());
    assert_eq!(machine.read("/run/systemd/system/other.service"), "fine");
}

// rule: H-02
#[test]
fn a_directory_above_the_hosts_own_files_may_be_declared_but_not_removed_or_given_away() {
    let mut machine = Machine::new();
    machine.directory("/etc", "0755");
    machine.directory("/var/lib", "0777");
    machine.absent("directory", "/run");
    let done = machine.pass();
    assert!(line(&done, "directory:/etc").outcome.is_as_declared());
    assert_eq!(outcome(&done, "directory:/var/lib"), (Refused, Some("own_file".to_owned())));
    assert_eq!(outcome(&done, "directory:/run"), (Refused, Some("own_file".to_owned())));
}

// rule: S-10
// rule: S-14
#[test]
fn a_resource_that_is_not_understood_is_refused_alone_and_what_needs_it_waits() {
    let mut machine = Machine::new();
    machine.file("/srv/a", "a");
    machine.resources[0]["spec"]["acl"] = "wide open".into();
    machine.file("/srv/b", "b");
    machine.resources[1]["needs"] = serde_json::json!(["file:/srv/a"]);
    machine.file("/srv/c", "c");
    machine.file("/srv/d", "d");
    machine.resources[3]["key"] = "container:api".into();
    machine.file("/srv/e/../../etc/passwd", "e");
    let done = machine.pass();
    assert_eq!(outcome(&done, "file:/srv/a"), (Refused, Some("unsupported_field".to_owned())));
    assert_eq!(outcome(&done, "file:/srv/b"), (Outstanding, Some("needs_failed".to_owned())));
    assert_eq!(outcome(&done, "container:api"), (Refused, Some("unsupported_kind".to_owned())));
    assert_eq!(line(&done, "file:/srv/e/../../etc/passwd").outcome, Refused);
    assert_eq!(line(&done, "file:/srv/c").outcome, Applied);
    assert!(!machine.at("/etc/passwd").exists());
}

// rule: S-10
#[test]
fn a_resource_that_is_no_longer_understood_does_not_count_as_left() {
    let mut machine = Machine::new();
    machine.file("/srv/a", "a");
    machine.file("/srv/b", "b");
    machine.pass();
    machine.resources[0]["spec"]["later"] = true.into();
    let done = machine.pass();
    assert_eq!(line(&done, "file:/srv/a").outcome, Refused);
    assert_eq!((machine.read("/srv/a").as_str(), done.summary.owned), ("a", 2));
}

// case: O-01
#[test]
fn a_path_that_is_a_link_is_refused_by_name_and_neither_replaced_nor_written_through() {
    let mut machine = Machine::new();
    machine.write("/srv/target", "target");
    symlink("/srv/target", machine.at("/srv/link")).unwrap();
    symlink("target", machine.at("/srv/same")).unwrap();
    symlink("/nowhere", machine.at("/srv/dangling")).unwrap();
    symlink("/srv", machine.at("/srv/dir")).unwrap();
    machine.file("/srv/link", "ours");
    machine.file("/srv/same", "target");
    machine.file("/srv/dangling", "ours");
    machine.directory("/srv/dir", "0700");
    let done = machine.pass();
    for (key, to) in [("file:/srv/link", "/srv/target"), ("file:/srv/dangling", "/nowhere")] {
        assert_eq!(outcome(&done, key), (Refused, Some("path_is_link".to_owned())));
        assert!(reason(&done, key).contains(&format!("path is a link to {to}")));
        assert!(reason(&done, key).ends_with("or say `replace_link = true` of it"));
    }
    assert_eq!(outcome(&done, "directory:/srv/dir"), (Refused, Some("path_is_link".to_owned())));
    assert_eq!(outcome(&done, "file:/srv/same"), (Refused, Some("path_is_link".to_owned())));
    assert_eq!(machine.read("/srv/target"), "target");
    assert!(machine.at("/srv/link").is_symlink() && machine.at("/srv/dangling").is_symlink());
}

// case: O-01
#[test]
fn a_link_that_is_declared_to_be_replaced_is_and_what_it_leads_to_stays() {
    let mut machine = Machine::new();
    machine.write("/srv/target", "target");
    symlink("/srv/target", machine.at("/srv/link")).unwrap();
    symlink("/nowhere", machine.at("/srv/dangling")).unwrap();
    symlink("/srv/target", machine.at("/srv/gone")).unwrap();
    for path in ["/srv/link", "/srv/dangling"] {
        machine.file_with(path, "ours", serde_json::json!({ "replace_link": true }));
    }
    machine.absent("file", "/srv/gone");
    let done = machine.pass();
    for path in ["/srv/link", "/srv/dangling"] {
        assert_eq!(line(&done, &format!("file:{path}")).outcome, Applied);
        assert!(!machine.at(path).is_symlink());
        assert_eq!(machine.read(path), "ours");
    }
    // Who declares that nothing is there has not said that a link may go.
    assert_eq!(outcome(&done, "file:/srv/gone"), (Refused, Some("path_is_link".to_owned())));
    assert_eq!(machine.read("/srv/target"), "target");
    assert_eq!(machine.pass().summary.counts.in_words(), "2 unchanged, 1 refused");
    // One that is put there again is drift; and since there was something before us, the file stays when it leaves.
    std::fs::remove_file(machine.at("/srv/link")).unwrap();
    symlink("/srv/target", machine.at("/srv/link")).unwrap();
    assert_eq!(outcome(&machine.pass(), "file:/srv/link"), (Applied, Some("drift".to_owned())));
    machine.forget("file:/srv/link");
    assert_eq!(line(&machine.pass(), "file:/srv/link").outcome, Released);
    assert_eq!(
        (machine.read("/srv/link").as_str(), machine.read("/srv/target").as_str()),
        ("ours", "target")
    );
    assert!(machine.is_clean());
}

// case: O-01
#[test]
fn a_link_that_root_put_among_the_directories_is_followed_inside_the_root() {
    let mut machine = Machine::new();
    std::fs::create_dir(machine.at("/srv/real")).unwrap();
    symlink("/srv/real", machine.at("/srv/absolute")).unwrap();
    symlink("../../../../srv/real", machine.at("/srv/relative")).unwrap();
    machine.file("/srv/absolute/a", "a");
    machine.file("/srv/relative/b", "b");
    let done = machine.pass();
    assert_eq!(done.summary.counts.in_words(), "2 applied");
    assert_eq!((machine.read("/srv/real/a").as_str(), machine.read("/srv/real/b").as_str()), ("a", "b"));
}

// rule: S-12
#[test]
fn a_pipe_a_socket_or_a_directory_at_the_path_is_refused_and_nobody_waits_for_it() {
    let mut machine = Machine::new();
    nix::unistd::mkfifo(&machine.at("/srv/pipe"), nix::sys::stat::Mode::from_bits_truncate(0o644)).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(machine.at("/srv/socket")).unwrap();
    std::fs::create_dir(machine.at("/srv/dir")).unwrap();
    machine.write("/srv/file", "x");
    machine.file("/srv/pipe", "x");
    machine.file("/srv/socket", "x");
    machine.file("/srv/dir", "x");
    machine.directory("/srv/file", "0755");
    machine.file("/srv/file/below", "x");
    let done = machine.pass();
    assert_eq!(outcome(&done, "file:/srv/pipe"), (Refused, Some("not_a_regular_file".to_owned())));
    assert!(reason(&done, "file:/srv/pipe").contains("a named pipe"));
    assert_eq!(outcome(&done, "file:/srv/socket"), (Refused, Some("not_a_regular_file".to_owned())));
    assert_eq!(outcome(&done, "file:/srv/dir"), (Refused, Some("path_is_directory".to_owned())));
    assert_eq!(outcome(&done, "directory:/srv/file"), (Refused, Some("path_is_file".to_owned())));
    assert_eq!(outcome(&done, "file:/srv/file/below"), (Refused, Some("parent_not_a_directory".to_owned())));
}
