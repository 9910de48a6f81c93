use proptest::prelude::*;

use super::*;

#[test]
fn every_spelling_of_a_path_is_the_same_path() {
    for spelling in
        ["/etc/app.conf", "//etc/app.conf", "/etc//app.conf", "/./etc/./app.conf", "/etc/app.conf/"]
    {
        assert_eq!(DeclaredPath::new(spelling).unwrap().as_str(), "/etc/app.conf");
    }
}

#[test]
fn a_path_that_cannot_be_declared_is_refused_by_its_own_reason() {
    let refused = |text: &str| DeclaredPath::new(text).unwrap_err();
    assert!(matches!(refused("etc/x"), PathError::Relative(_)));
    assert!(matches!(refused(""), PathError::Relative(_)));
    assert!(matches!(refused("/etc/../x"), PathError::Parent(_)));
    assert!(matches!(refused("/etc/x\0y"), PathError::Control(_)));
    assert!(matches!(refused("/etc/x\ny"), PathError::Control(_)));
    assert!(matches!(refused(&format!("/{}", "n".repeat(256))), PathError::Long(_)));
    assert!(matches!(refused(&"/nn".repeat(1400)), PathError::Long(_)));
    assert!(matches!(refused("/"), PathError::Root));
    assert!(matches!(refused("//./"), PathError::Root));
    assert!(matches!(refused("/proc/sys/kernel/x"), PathError::Kernel(_, "/proc")));
    assert!(matches!(refused("//sys"), PathError::Kernel(_, "/sys")));
    assert!(matches!(refused("/dev/sda"), PathError::Kernel(_, "/dev")));
    assert!(DeclaredPath::new("/system/x").is_ok() && DeclaredPath::new("/procfs").is_ok());
}

proptest! {
    #[test]
    fn what_is_taken_is_its_own_one_spelling(text in "\\PC{0,60}") {
        if let Ok(path) = DeclaredPath::new(&text) {
            prop_assert_eq!(DeclaredPath::new(path.as_str()).unwrap(), path.clone());
            prop_assert!(path.names().all(|name| !name.is_empty() && name != "." && name != ".."));
        }
    }
}
