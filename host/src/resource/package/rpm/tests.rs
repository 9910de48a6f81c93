use super::*;

fn wanted(text: &str) -> PackageWanted {
    text.parse().unwrap()
}

#[test]
fn what_rpm_lists_is_read_with_its_epoch_and_without_its_keys() {
    let all: Vec<(String, String)> = installed(include_str!("golden/installed.txt"))
        .map(|(name, package)| (name, package.version.to_string()))
        .collect();
    assert!(all.contains(&("r-other".to_owned(), "1.0-1".to_owned())));
    assert!(all.contains(&("r-epoch".to_owned(), "2:1.0-1".to_owned())));
    assert!(!all.iter().any(|(name, _)| name == "gpg-pubkey"));
}

#[test]
fn a_declared_version_without_an_epoch_means_any() {
    for text in ["1.0-1", "2:1.0-1", "1.*", "2:1.*"] {
        assert!(takes(&wanted(text), "2:1.0-1"), "{text}");
    }
    for text in ["0:1.0-1", "3:1.0-1", "1.0", "1.0-2", "3:1.*", "2.*", "absent"] {
        assert!(!takes(&wanted(text), "2:1.0-1"), "{text}");
    }
    assert!(takes(&wanted("0:1.0-1"), "1.0-1") && takes(&wanted("present"), "1.0-1"));
}

#[test]
fn two_versions_of_one_architecture_are_what_a_cut_short_update_leaves() {
    let package = |version: &str, architecture: &str| Package::installed(version.into(), architecture.into());
    assert_eq!(twice(&[package("2-1", "x86_64"), package("1-1", "i686")]), None);
    let left = twice(&[package("2-1", "x86_64"), package("1-1", "x86_64")]).unwrap();
    assert_eq!(left, "there twice, at 2-1 and at 1-1");
}
