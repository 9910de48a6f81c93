use std::sync::atomic::AtomicBool;

use super::*;
use crate::ground::Ground;

const DESC: &str = include_str!("../golden/desc.txt");

fn on_a_machine(work: impl FnOnce(&Path, &Tools<'_>)) {
    let (folder, never) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
    let ground = Ground::new(folder.path(), false);
    std::fs::create_dir_all(folder.path().join("var/lib/pacman/local")).unwrap();
    std::fs::write(folder.path().join("var/lib/pacman/local/ALPM_DB_VERSION"), "9\n").unwrap();
    work(folder.path(), &Tools::new(&ground, None, None, &never));
}

fn entry(root: &Path, name: &str, file: &str, text: &str) {
    let entry = root.join("var/lib/pacman/local").join(name);
    std::fs::create_dir_all(&entry).unwrap();
    std::fs::write(entry.join(file), text).unwrap();
}

#[test]
fn a_package_is_what_its_entry_describes_and_the_operators_word_holds_it() {
    on_a_machine(|root, tools| {
        assert!(!holds_packages(tools).unwrap());
        let none = read(tools, &[], &[]).unwrap_err();
        assert!(none.reason.contains("holds no package"), "{}", none.reason);
        entry(root, "dep-1.0-1", "desc", DESC);
        assert!(holds_packages(tools).unwrap());
        let held = |pattern: &str| {
            let packages = read(tools, &[pattern.to_owned()], &[]).unwrap();
            assert_eq!(packages.installed("dep"), Some("1.0-1"));
            packages.get("dep").unwrap().hold
        };
        assert!(held("dep") && held("de*") && !held("depnew"));
    });
}

#[test]
fn an_entry_that_was_cut_short_is_not_whole_and_neither_is_one_that_is_there_twice() {
    on_a_machine(|root, tools| {
        entry(root, "half-done-2.0-1", "files", "");
        entry(root, "dep-1.0-1", "desc", DESC);
        entry(root, "dep-2.0-1", "desc", &DESC.replace("1.0-1", "2.0-1"));
        let packages = read(tools, &[], &[]).unwrap();
        let mut unfinished: Vec<String> = packages.unfinished().map(|(name, _)| name).collect();
        unfinished.sort();
        assert_eq!(unfinished, ["dep", "dep", "half-done"]);
    });
}

// rule: H-02
#[test]
fn whose_files_are_the_hosts_own_is_read_from_the_entry() {
    on_a_machine(|root, tools| {
        entry(root, "brought-it-1.0-1", "files", "%FILES%\nusr/\nusr/bin/\nusr/bin/tenure-host\n");
        entry(root, "brought-1.0-1", "files", "%FILES%\nusr/\nusr/bin/\n");
        let of = |name| of_the_hosts_files(tools, &["filesystem", name]).unwrap();
        assert_eq!(of("brought-it").as_deref(), Some("brought-it has brought /usr/bin/tenure-host"));
        assert_eq!(of("brought"), None);
    });
}
