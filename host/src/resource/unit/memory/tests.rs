use super::super::systemctl::captured;
use super::*;

/// What the bus of Debian 12 and 13 said of four units.
fn said() -> Vec<Listed> {
    [
        ("webfront.service", "loaded active running"),
        ("webfront.service", "loaded active running"),
        ("nosuch.service", "not-found inactive dead"),
        ("legacy-sync.service", "masked inactive dead"),
    ]
    .map(|(id, stands)| stands_as(id, stands))
    .to_vec()
}

fn stands_as(id: &str, stands: &str) -> Listed {
    let [load, active, sub]: [&str; 3] = stands.split(' ').collect::<Vec<_>>().try_into().unwrap();
    let [id, load, active, sub] = [id, load, active, sub].map(str::to_owned);
    Listed { id, load, active, sub }
}
const NAMES: [&str; 4] = ["webfront.service", "www.service", "nosuch.service", "legacy-sync.service"];

fn machine() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for place in ["etc/systemd/system/a.service.d", "run/systemd/units", "usr/lib/systemd/system"] {
        std::fs::create_dir_all(folder.path().join(place)).unwrap();
    }
    folder
}

#[test]
fn what_the_bus_and_systemctl_say_of_one_unit_is_the_same() {
    let folder = machine();
    for mut seen in captured() {
        seen.values_mut().for_each(|shown| shown.run.clear());
        let mut memory = Memory::default();
        let disk = disk(folder.path()).unwrap();
        memory.keep(Some(disk), seen.iter().map(|(name, shown)| (*name, shown)));
        let running = said();
        assert_eq!(memory.stands(&NAMES, disk, &running, folder.path()).len(), 4);
    }
}

#[test]
fn another_run_of_a_unit_is_not_the_one_that_is_remembered() {
    let folder = machine();
    for seen in captured() {
        let (mut shown, disk) = (seen["webfront.service"].clone(), disk(folder.path()).unwrap());
        shown.run = "5f0c".to_owned();
        let mut memory = Memory::default();
        memory.keep(Some(disk), std::iter::once(("webfront.service", &shown)));
        let stands = |memory: &Memory| {
            let running = said();
            memory.stands(&NAMES[..1], disk, &running[..1], folder.path()).len()
        };
        let link = folder.path().join("run/systemd/units/invocation:webfront.service");
        assert_eq!(stands(&memory), 0, "which run it is, nobody says");
        std::os::unix::fs::symlink("5f0c", &link).unwrap();
        assert_eq!(stands(&memory), 1);
        std::fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("77aa", &link).unwrap();
        assert_eq!(stands(&memory), 0);
        std::fs::remove_file(&link).unwrap();
    }
}

#[test]
fn what_no_link_names_the_run_of_is_remembered_by_how_it_stands() {
    let folder = machine();
    for seen in captured() {
        let disk = disk(folder.path()).unwrap();
        for name in ["helper.socket", "tick.timer", "multi-user.target", "dev-mqueue.mount", "once.service"] {
            let mut shown = seen[name].clone();
            shown.run = "5f0c".to_owned();
            let mut memory = Memory::default();
            memory.keep(Some(disk), std::iter::once((name, &shown)));
            let running = [stands_as(name, &shown.stands)];
            assert_eq!(memory.stands(&[name], disk, &running, folder.path()).len(), 1, "{name}");
            let other = [stands_as(name, "loaded failed failed")];
            assert_eq!(memory.stands(&[name], disk, &other, folder.path()).len(), 0, "{name}");
        }
    }
}

#[test]
fn whatever_is_changed_among_unit_files_is_seen() {
    let folder = machine();
    let at = |path: &str| folder.path().join(path);
    let mut before = disk(folder.path());
    assert!(before.is_some());
    assert_eq!(disk(folder.path()), before);
    let mut changed = |what: &str| {
        let after = disk(folder.path());
        assert!(after.is_some() && after != before, "{what}");
        before = after;
    };
    for path in [
        "usr/lib/systemd/system/a.service",
        "etc/systemd/system/a.service.d/x.conf",
        "etc/fstab",
        "run/systemd/systemd-units-load",
    ] {
        std::fs::write(at(path), "x").unwrap();
        changed(path);
    }
    std::os::unix::fs::symlink(at("srv"), at("etc/systemd/system/www.service")).unwrap();
    changed("a link");
    std::fs::write(at("srv"), "y").unwrap();
    changed("what a link leads to");
    std::fs::create_dir(at("elsewhere.d")).unwrap();
    for link in ["etc/systemd/system/www.service.d", "etc/systemd/system.control"] {
        std::os::unix::fs::symlink(at("elsewhere.d"), at(link)).unwrap();
        changed("a link to a directory");
        std::fs::write(at("elsewhere.d/x.conf"), "x").unwrap();
        changed("what is in a directory that a link leads to");
        std::fs::write(at("elsewhere.d/x.conf"), "another").unwrap();
        changed("a file in a directory that a link leads to");
        std::fs::remove_file(at("elsewhere.d/x.conf")).unwrap();
        std::fs::remove_file(at(link)).unwrap();
        changed("both are gone");
    }
    std::fs::remove_file(at("etc/systemd/system/a.service.d/x.conf")).unwrap();
    changed("a removal");
}

#[test]
fn what_does_not_last_is_not_remembered() {
    let folder = machine();
    let disk = disk(folder.path()).unwrap();
    for seen in captured() {
        let mut stale = seen["webfront.service"].clone();
        stale.needs_reload = true;
        let bad = &seen["broken.service"];
        let mut memory = Memory::default();
        let slow = &seen["slow.service"];
        let all = [("webfront.service", &stale), ("broken.service", bad), ("slow.service", slow)];
        memory.keep(Some(disk), all.into_iter());
        assert!(!memory.knows(disk));
        memory.keep(Some(disk), std::iter::once(("webfront.service", &seen["webfront.service"])));
        assert!(memory.knows(disk));
        memory.keep(None, std::iter::empty());
        assert!(!memory.knows(disk), "nothing is known of the disk");
        let mut made = seen["webfront.service"].clone();
        for (source, lasts) in [
            ("/etc/containers/systemd/web.container", false),
            ("/etc/init.d/web/er", false),
            ("/etc/init.d/web", true),
            ("/etc/fstab", true),
        ] {
            made.source = source.to_owned();
            memory.keep(Some(disk), std::iter::once(("webfront.service", &made)));
            assert_eq!(memory.knows(disk), lasts, "{source}");
        }
    }
}

#[test]
fn of_a_unit_that_is_no_longer_declared_nothing_is_remembered() {
    let folder = machine();
    let disk = disk(folder.path()).unwrap();
    for seen in captured() {
        let mut memory = Memory::default();
        memory.keep(Some(disk), NAMES.iter().map(|name| (*name, &seen[*name])));
        memory.keep(Some(disk), std::iter::once((NAMES[3], &seen[NAMES[3]])));
        let running = said();
        let stands = memory.stands(&NAMES, disk, &running, folder.path());
        assert_eq!(stands.into_keys().collect::<Vec<_>>(), [NAMES[3]]);
    }
}

#[test]
fn another_process_goes_by_the_disk_only_where_its_times_tell_what_changes() {
    let folder = machine();
    let at = |path: &str| folder.path().join(path);
    let settled = |now: i64| {
        let mut memory = Memory::default();
        memory.keep(disk(folder.path()), std::iter::empty());
        memory.settled(Millis(now)).is_some()
    };
    let later = (tenure_actors::clock::system().now().millis() / 1_000 + 120) * 1_000;
    assert!(!settled(later), "nothing says when unit files were read");
    std::fs::write(at("run/systemd/systemd-units-load"), "").unwrap();
    assert!(settled(later) && !settled(later - 120_000));
    // As of a mask.
    std::os::unix::fs::symlink("/dev/null", at("etc/systemd/system/b.service")).unwrap();
    assert!(settled(later));
    std::os::unix::fs::symlink("/proc/version", at("etc/systemd/system/c.service")).unwrap();
    assert!(!settled(later), "what it leads to may change at any time");
    std::fs::remove_file(at("etc/systemd/system/c.service")).unwrap();
    std::fs::write(at("usr/local"), "no directory").unwrap();
    assert!(settled(later));
}
