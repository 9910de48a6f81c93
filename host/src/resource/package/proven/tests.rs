use std::os::unix::fs::MetadataExt;

use super::*;

/// What apt 2.6.2 and 3.0.4 say of the same sources, and what no source line can hold.
const TARGETS: &str = "\
http://deb.debian.org/debian/ bookworm main
http://deb.debian.org/debian/ bookworm contrib
http://deb.debian.org/debian/ bookworm main
copy:/srv/r/ ./ $(COMPONENT)
cdrom:[Debian GNU/Linux 12.0.0 _Bookworm_]/ bookworm main
[trusted=yes] copy:/srv/evil ./
copy:/srv/\"a\" ./ main
copy:/srv/only
";

// rule: S-13
#[test]
fn each_source_is_written_once_without_any_option_and_what_cannot_be_is_left_out() {
    assert_eq!(
        sources(TARGETS),
        "deb http://deb.debian.org/debian/ bookworm main\ndeb http://deb.debian.org/debian/ bookworm contrib\n\
         deb copy:/srv/r/ ./\n"
    );
}

// rule: S-13
#[test]
fn they_are_there_as_long_as_they_are_used_and_apt_uses_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let proven = Proven::write("copy:/srv/r/ ./ $(COMPONENT)\n", folder.path()).unwrap();
    let options = proven.options();
    let list = options.iter().find_map(|word| word.strip_prefix("Dir::Etc::SourceList=")).unwrap().to_owned();
    assert_eq!(std::fs::read_to_string(&list).unwrap(), "deb copy:/srv/r/ ./\n");
    assert_eq!(std::fs::metadata(&list).unwrap().mode() & 0o022, 0);
    assert!(options.contains(&"Dir::Etc::SourceParts=/dev/null".to_owned()));
    drop(proven);
    assert!(!Path::new(&list).exists());
}

#[test]
fn sources_that_cannot_be_written_are_a_failure_that_names_the_file() {
    let trouble = Proven::write("", Path::new("/nonexistent")).unwrap_err();
    assert_eq!(trouble.code, "sources_unwritable");
    assert!(trouble.reason.contains("/nonexistent/sources-"), "{}", trouble.reason);
}
