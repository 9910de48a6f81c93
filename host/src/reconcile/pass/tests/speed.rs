//! Not a timed test: many resources at once still come out right. The numbers are printed for whoever looks.

use super::*;

#[test]
fn thousands_of_files_over_many_directories_come_out_right() {
    let count: usize = std::env::var("TENURE_TEST_FILES").ok().and_then(|n| n.parse().ok()).unwrap_or(2_000);
    let mut machine = Machine::new();
    let mut resources = Vec::new();
    let mut pieces = Vec::new();
    for number in 0..count {
        let bytes = format!("{number:>1023}\n").into_bytes();
        let (sha256, size) = (Digest::of(&bytes), 1024);
        pieces.push(Piece { sha256, size, offset: 0, bytes });
        if number % 100 == 0 {
            let path = format!("/srv/{:03}", number / 100);
            resources
                .push(serde_json::json!({ "key": format!("directory:{path}"), "module": "base", "needs": [],
                "spec": { "path": path, "mode": "0755", "owner": "root", "group": "root" } }));
        }
        let path = format!("/srv/{:03}/{number:05}", number / 100);
        resources.push(serde_json::json!({ "key": format!("file:{path}"), "module": "base", "needs": [],
            "spec": { "path": path, "content": { "sha256": sha256.to_string(), "size": size },
                      "mode": "0644", "owner": "root", "group": "root" } }));
    }
    machine.store.put_pieces(pieces).unwrap();
    let total = resources.len();
    machine.resources = resources;
    let declaration = machine.declaration();
    let first = machine.pass_of(Some(declaration.clone()));
    let next = machine.pass_of(Some(declaration.clone()));
    let last = machine.pass_of(Some(declaration));
    eprintln!(
        "{count} files: {} ms, {} ms, {} ms",
        first.summary.took_ms, next.summary.took_ms, last.summary.took_ms
    );
    assert_eq!(first.summary.counts.applied, u64::try_from(total).unwrap());
    assert_eq!(next.summary.counts.unchanged, u64::try_from(total).unwrap());
    assert!(last.changed.is_empty());
    assert!(machine.is_clean());
}
