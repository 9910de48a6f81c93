use super::{Directory, Taken};

#[test]
fn what_is_registered_is_found_until_its_entry_is_dropped() {
    let directory = Directory::new();
    let entry = directory.register("node/a", 1).unwrap();
    let _other = directory.register("fleet", 2).unwrap();
    assert_eq!(directory.find("node/a"), Some(1));
    assert_eq!(directory.list(), ["fleet", "node/a"]);
    drop(entry);
    assert_eq!(directory.find("node/a"), None);
    assert_eq!(directory.list(), ["fleet"]);
}

#[test]
fn a_name_is_given_once_and_again_when_it_is_free() {
    let directory = Directory::new();
    let entry = directory.register("node/a", 1).unwrap();
    assert_eq!(directory.register("node/a", 2).unwrap_err(), Taken { name: "node/a".into() });
    assert_eq!(directory.find("node/a"), Some(1), "the refused one changed nothing");
    drop(entry);
    let _again = directory.register("node/a", 2).unwrap();
    assert_eq!(directory.find("node/a"), Some(2));
}

#[test]
fn clones_share_the_entries() {
    let directory = Directory::new();
    let _entry = directory.clone().register("web", "here").unwrap();
    assert_eq!(directory.find("web"), Some("here"));
}

#[test]
fn an_entry_outlives_the_directory_harmlessly() {
    let directory = Directory::new();
    let entry = directory.register("web", 1).unwrap();
    drop(directory);
    drop(entry);
}
