use std::collections::BTreeSet;

use super::*;
use crate::declare::folder::gather;

#[test]
fn every_file_of_the_packaged_example_is_embedded_and_none_besides() {
    let packaged = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/example");
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("example");
    write(&out).unwrap();
    assert_eq!(gather(&out).unwrap().listing, gather(&packaged).unwrap().listing);
    let names: BTreeSet<&str> = FILES.iter().map(|(path, _)| *path).collect();
    assert_eq!(names.len(), FILES.len());
}

#[test]
fn an_example_that_is_there_is_the_operators_and_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("example");
    write(&out).unwrap();
    std::fs::write(out.join("fleet.toml"), "mine").unwrap();
    write(&out).unwrap();
    assert_eq!(std::fs::read_to_string(out.join("fleet.toml")).unwrap(), "mine");
}
