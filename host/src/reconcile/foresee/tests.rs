use tenure_actors::clock::Moment;
use tenure_protocol::id::Digest;

use super::*;

struct Looked {
    _folder: tempfile::TempDir,
    ground: Ground,
    contents: HashMap<Digest, Vec<u8>>,
    resources: Vec<serde_json::Value>,
    mode: &'static str,
}

struct Given<'a>(&'a HashMap<Digest, Vec<u8>>);

impl Contents for Given<'_> {
    fn copy(
        &self,
        sha256: Digest,
        take: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
    ) -> Result<(), crate::resource::ContentsError> {
        let bytes = self.0.get(&sha256).ok_or(crate::resource::ContentsError::Missing(sha256))?;
        take(bytes).map_err(crate::resource::ContentsError::Taking)
    }
}

impl Looked {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ground = Ground::new(folder.path().join("root"), true);
        std::fs::create_dir_all(ground.at("/srv")).unwrap();
        Self { _folder: folder, ground, contents: HashMap::new(), resources: Vec::new(), mode: "converged" }
    }

    fn file(&mut self, path: &str, bytes: &str, mode: &str) {
        let sha256 = Digest::of(bytes.as_bytes());
        self.contents.insert(sha256, bytes.as_bytes().to_vec());
        self.resources.push(
            serde_json::json!({ "key": format!("file:{path}"), "module": "base", "needs": [],
            "spec": { "path": path, "content": { "sha256": sha256.to_string(), "size": bytes.len() },
                      "mode": mode, "owner": "root", "group": "root" } }),
        );
    }

    fn was(&self, path: &str, bytes: &str, mode: u32) {
        use std::os::unix::fs::PermissionsExt;
        std::fs::write(self.ground.at(path), bytes).unwrap();
        std::fs::set_permissions(self.ground.at(path), std::fs::Permissions::from_mode(mode)).unwrap();
    }

    fn lines(&self, store: Option<&Store>) -> Vec<PreviewLine> {
        let json = serde_json::json!({
            "control_plane_id": "6f1c1b3e-8d2f-4c55-9d0e-2b7a4c8f9e10",
            "node": "edge-1", "generation": 1,
            "epoch": { "number": 1, "id": "6f1c1b3e-8d2f-4c55-9d0e-2b7a4c8f9e11" },
            "revision": 1, "mode": self.mode, "taken": [], "allowed_removals": null, "is_final": false,
            "resources": self.resources,
        });
        let declaration = Declaration::parse(&serde_json::to_vec(&json).unwrap()).unwrap();
        let contents = Given(&self.contents);
        let input = PreviewInput {
            ground: &self.ground,
            store,
            declaration: &declaration,
            programs: None,
            contents: &contents,
        };
        preview(&input).unwrap()
    }
}

fn line<'a>(lines: &'a [PreviewLine], key: &str) -> &'a PreviewLine {
    lines.iter().find(|line| line.key == key).unwrap()
}

#[test]
fn a_preview_says_what_would_happen_with_a_diff_and_changes_nothing() {
    let mut looked = Looked::new();
    looked.was("/srv/text", "one\ntwo\nthree\n", 0o644);
    looked.was("/srv/same", "same", 0o644);
    looked.file("/srv/text", "one\n2\nthree\n", "0644");
    looked.file("/srv/same", "same", "0644");
    looked.file("/srv/new", "fresh\n", "0644");
    std::os::unix::fs::symlink("/etc", looked.ground.at("/srv/link")).unwrap();
    looked.file("/srv/link", "x", "0644");
    looked.resources.push(serde_json::json!({ "key": "file:/srv/after", "module": "base",
        "needs": ["file:/srv/link"], "spec": looked.resources[2]["spec"].clone() }));
    looked.resources[4]["spec"]["path"] = "/srv/after".into();
    let lines = looked.lines(None);
    let text = line(&lines, "file:/srv/text");
    assert_eq!(text.what, What::Change);
    assert!(text.detail.contains(&"-two".to_owned()) && text.detail.contains(&"+2".to_owned()), "{text:?}");
    assert_eq!(line(&lines, "file:/srv/same").what, What::Keep);
    assert!(line(&lines, "file:/srv/new").detail.contains(&"+fresh".to_owned()));
    assert_eq!(line(&lines, "file:/srv/link").what, What::Refuse);
    assert_eq!(line(&lines, "file:/srv/after").what, What::CannotKnow);
    assert_eq!(std::fs::read_to_string(looked.ground.at("/srv/text")).unwrap(), "one\ntwo\nthree\n");
    assert_eq!(std::fs::read_dir(looked.ground.at("/srv")).unwrap().count(), 3);
    looked.mode = "adopted";
    assert_eq!(line(&looked.lines(None), "file:/srv/text").what, What::Hold);
}

#[test]
fn what_others_may_not_read_is_in_no_diff() {
    let mut looked = Looked::new();
    looked.was("/srv/opens", "old secret\n", 0o600);
    looked.file("/srv/opens", "public\n", "0644");
    looked.was("/srv/closes", "public\n", 0o644);
    looked.file("/srv/closes", "new secret\n", "0640");
    looked.file("/srv/binary", "a\0b", "0644");
    let shown = format!("{:?}", looked.lines(None));
    assert!(!shown.contains("secret\"") && !shown.contains("-old") && !shown.contains("+new"), "{shown}");
    assert!(shown.contains("sensitive and not shown") && shown.contains("not text"));
}

#[test]
fn what_would_leave_is_listed_by_what_becomes_of_it() {
    use crate::store::{Record, State};
    use tenure_protocol::outcome::Origin;
    let mut looked = Looked::new();
    looked.ground.create().unwrap();
    let store = Store::open(&looked.ground, true, Moment::from_millis(1)).unwrap().store;
    looked.was("/srv/ours", "x", 0o644);
    looked.was("/srv/theirs", "x", 0o644);
    let record = |key: &str, origin| Record {
        key: key.to_owned(),
        module: "base".to_owned(),
        origin,
        earlier: State::Absent,
        applied: State::File { mode: 0o644, uid: 0, gid: 0, size: 1, sha256: Digest::of(b"x") },
        recorded_at: Millis(1),
    };
    let records = vec![
        record("file:/srv/ours", Origin::Created),
        record("file:/srv/theirs", Origin::Changed),
        record("later:/srv/x", Origin::Created),
    ];
    store.record(records, Vec::new(), Vec::new()).unwrap();
    let lines = looked.lines(Some(&store));
    assert_eq!(line(&lines, "file:/srv/ours").what, What::Remove);
    assert_eq!(line(&lines, "file:/srv/theirs").what, What::Release);
    assert_eq!(line(&lines, "later:/srv/x").what, What::CannotKnow);
    looked.file("/srv/new", "n", "0644");
    assert_eq!(looked.lines(Some(&store)).len(), 4);
}
