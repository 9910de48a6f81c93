use super::*;

// rule: H-02
#[test]
fn the_spelling_of_a_path_says_whether_it_is_ours_or_lies_above_ours() {
    let touch = |text: &str| by_spelling(&DeclaredPath::new(text).unwrap());
    for ours in [
        "/etc/tenure",
        "/etc/tenure/node.json",
        "//etc/./tenure//host.toml",
        "/usr/bin/tenure-host",
        "/lib/systemd/system/tenure-host.service",
        "/run/systemd/system/tenure-host.service.d/50.conf",
        "/etc/systemd/system/multi-user.target.wants/tenure-host.service",
        "/etc/systemd/system/tenure-.service.d/x.conf",
        "/etc/containers/systemd/tenure-host.container",
        "/usr/share/containers/systemd/tenure-host.container.d/x.conf",
    ] {
        assert_eq!(touch(ours), Touch::Ours, "{ours}");
    }
    for above in ["/etc", "/var", "/var/lib", "/usr/bin", "/etc/systemd", "/etc/systemd/system"] {
        assert_eq!(touch(above), Touch::Above, "{above}");
    }
    for other in [
        "/etc/tenure.d",
        "/etc/tenures/x",
        "/usr/bin/tenure",
        "/usr/bin/tenure-host-extra",
        "/etc/systemd/system/nginx.service",
        "/etc/systemd/system/tenure-control.service",
        "/home/tenure-host.service",
        "/etc/containers/systemd/web.container",
        "/etc/containers/systemd/tenure-host.volume",
        "/etc/containers/systemd/service.d/x.conf",
    ] {
        assert_eq!(touch(other), Touch::No, "{other}");
    }
}

// rule: H-02
#[test]
fn what_a_package_lists_is_a_part_of_the_host_by_its_name_and_a_drop_in_of_every_service_is_systemds() {
    for part in [
        "/usr/bin/tenure-host",
        "/bin/tenure-host",
        "/usr/lib/tenure-host/probation",
        "/usr/lib/systemd/system/tenure-host.service",
        "/lib/systemd/system/tenure-host.service.d/x.conf",
    ] {
        assert!(is_part_of_the_host(part), "{part}");
    }
    for other in [
        "/usr/lib/systemd/system/service.d",
        "/usr/lib/systemd/system/service.d/10-timeout-abort.conf",
        "/etc/tenure",
        "/usr/bin",
    ] {
        assert!(!is_part_of_the_host(other), "{other}");
    }
    // Whoever declares such a file changes the host's own unit by it.
    assert_eq!(by_text("/usr/lib/systemd/system/service.d/10-timeout-abort.conf"), Touch::Ours);
}

#[test]
fn the_ground_is_made_once_and_a_state_directory_that_was_open_is_closed() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let ground = Ground::new(folder.path(), true);
    std::fs::create_dir_all(ground.state()).unwrap();
    ground.create().unwrap();
    ground.create().unwrap();
    let mode = |path: std::path::PathBuf| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(ground.state()), mode(ground.run())), (0o700, 0o700));
    assert_eq!(ground.manifest(), folder.path().join("etc/tenure/node.json"));
    assert_eq!(ground.socket(), folder.path().join("run/tenure-host/api.sock"));
    assert_eq!(Ground::machine().store(), Path::new("/var/lib/tenure-host/store.db"));
}

// rule: H-02
#[test]
fn what_went_from_ours_leaves_its_number_to_whatever_is_made_next_and_that_is_not_ours() {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    std::fs::create_dir_all(at("var/lib/tenure-host")).unwrap();
    std::fs::create_dir_all(at("srv")).unwrap();
    std::fs::write(at("var/lib/tenure-host/store.db-wal"), "").unwrap();
    std::fs::hard_link(at("var/lib/tenure-host/store.db-wal"), at("srv/next")).unwrap();
    let own = Own::look(&Ground::new(folder.path(), true));
    let next = inode(&at("srv/next")).unwrap();
    assert_eq!(own.touch(next), Touch::Ours, "both are one file");
    std::fs::remove_file(at("var/lib/tenure-host/store.db-wal")).unwrap();
    assert_eq!(own.touch(next), Touch::No, "by this name nothing of ours is reached any more");
}

// rule: H-02
#[test]
fn where_not_all_of_ours_can_be_looked_at_again_what_was_found_there_counts_as_ours() {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    std::fs::create_dir_all(at("var/lib/tenure-host")).unwrap();
    std::fs::create_dir_all(at("etc/systemd/system")).unwrap();
    std::fs::create_dir_all(at("srv")).unwrap();
    std::fs::write(at("var/lib/tenure-host/store.db-wal"), "").unwrap();
    std::fs::hard_link(at("var/lib/tenure-host/store.db-wal"), at("srv/next")).unwrap();
    let own = Own::look(&Ground::new(folder.path(), true));
    let next = inode(&at("srv/next")).unwrap();
    assert_eq!(own.touch(next), Touch::Ours);
    std::fs::remove_file(at("var/lib/tenure-host/store.db-wal")).unwrap();
    // Where the drop-ins of our unit would lie is a link that leads to itself: nobody can say what is in it.
    let drop_ins = at("etc/systemd/system/tenure-host.service.d");
    std::os::unix::fs::symlink(&drop_ins, &drop_ins).unwrap();
    assert_eq!(own.touch(next), Touch::Ours);
    std::fs::remove_file(&drop_ins).unwrap();
    assert_eq!(own.touch(next), Touch::No, "once all can be looked at");
}
