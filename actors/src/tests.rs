//! The page of guarantees names tests; here each name is looked up.

use std::path::Path;

#[test]
fn every_guarantee_is_held_by_a_test_of_that_name() {
    let page = include_str!("lib.rs").lines().filter(|line| line.starts_with("//!"));
    let text: String = page.collect();
    let named: Vec<_> =
        text.split('`').skip(1).step_by(2).filter(|word| word.matches('_').count() > 3).collect();
    assert!(named.len() > 25, "{named:?}");
    let sources = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    for name in named {
        assert!(sources.contains(&format!("fn {name}()")), "no test is named {name}");
    }
}

fn sources(folder: &Path) -> String {
    let read = |entry: std::fs::DirEntry| {
        let path = entry.path();
        if path.is_dir() { sources(&path) } else { std::fs::read_to_string(path).unwrap() }
    };
    std::fs::read_dir(folder).unwrap().map(|entry| read(entry.unwrap())).collect()
}
