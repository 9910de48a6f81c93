use tenure_protocol::id::Digest;
use tenure_protocol::operator::FolderFile;

use super::*;
use crate::catalogue::golden;

fn listing(files: &[(&str, u64)]) -> Folder {
    let file = |(path, size): &(&str, u64)| FolderFile {
        path: (*path).to_owned(),
        sha256: Digest::of(b""),
        size: *size,
    };
    Folder { files: files.iter().map(file).collect() }
}

#[test]
fn a_name_that_leaves_the_folder_is_refused() {
    for path in ["../x", "/etc/passwd", "a/../b", "a//b", "./a", "a/", "", "a\0b", "a\nb"] {
        let refusal = check(&listing(&[(path, 1)])).unwrap_err();
        assert_eq!(refusal.code, "bad_file_name", "{path:?}");
        let files = BTreeMap::from([(path.to_owned(), Vec::new())]);
        assert_eq!(FolderFiles::new(files).unwrap_err(), refusal);
    }
    golden::check("bad_file_name", &check(&listing(&[("../x", 1)])).unwrap_err());
    golden::check("bad_file_name_twice", &check(&listing(&[("a", 1), ("a", 2)])).unwrap_err());
}

#[test]
fn a_folder_too_large_is_refused_before_its_contents_are_there() {
    assert!(check(&listing(&[("a", MOST_BYTES)])).is_ok());
    golden::check("folder_too_large", &check(&listing(&[("a", MOST_BYTES), ("b", 1)])).unwrap_err());
    let names: Vec<String> = (0..=MOST_FILES).map(|n| n.to_string()).collect();
    let many: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 0)).collect();
    assert!(check(&listing(&many[1..])).is_ok());
    golden::check("folder_too_large_files", &check(&listing(&many)).unwrap_err());
}

#[test]
fn sizes_that_would_wrap_around_are_too_large() {
    let refusal = check(&listing(&[("a", u64::MAX), ("b", u64::MAX)])).unwrap_err();
    assert_eq!(refusal.code, "folder_too_large");
}
