use tenure_actors::clock::Moment;
use tenure_protocol::id::{Digest, Epoch, EpochId, Revision, RevisionNumber};
use tenure_protocol::outcome::Origin;

use super::*;
use crate::store::{State, StoredDeclaration};

struct Looked {
    _folder: tempfile::TempDir,
    ground: Ground,
    contents: HashMap<Digest, Vec<u8>>,
    resources: Vec<serde_json::Value>,
    mode: &'static str,
    called_off: bool,
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
        Self {
            _folder: folder,
            ground,
            contents: HashMap::new(),
            resources: Vec::new(),
            mode: "converged",
            called_off: false,
        }
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

    fn declaration(&self) -> Vec<u8> {
        let json = serde_json::json!({
            "control_plane_id": "6f1c1b3e-8d2f-4c55-9d0e-2b7a4c8f9e10",
            "node": "edge-1", "generation": 1,
            "epoch": { "number": 1, "id": "6f1c1b3e-8d2f-4c55-9d0e-2b7a4c8f9e11" },
            "revision": 1, "mode": self.mode, "taken": [], "allowed_removals": null, "is_final": false,
            "resources": self.resources,
        });
        serde_json::to_vec(&json).unwrap()
    }

    fn lines(&self, store: Option<&Store>) -> Vec<ForeseenLine> {
        let declaration = Declaration::parse(&self.declaration()).unwrap();
        let contents = Given(&self.contents);
        let input = PreviewInput {
            ground: &self.ground,
            store,
            declaration: &declaration,
            programs: None,
            contents: &contents,
            now: Millis(1),
            called_off: &AtomicBool::new(self.called_off),
        };
        preview(&input).unwrap()
    }
}

fn record(key: &str, origin: Origin) -> Record {
    Record {
        key: key.to_owned(),
        module: "base".to_owned(),
        origin,
        earlier: State::Absent,
        applied: State::File { mode: 0o644, uid: 0, gid: 0, size: 1, sha256: Digest::of(b"x") },
        recorded_at: Millis(1),
    }
}

fn line<'a>(lines: &'a [ForeseenLine], key: &str) -> &'a ForeseenLine {
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
    assert_eq!(line(&lines, "file:/srv/after").what, What::Wait);
    assert_eq!(std::fs::read_to_string(looked.ground.at("/srv/text")).unwrap(), "one\ntwo\nthree\n");
    assert_eq!(std::fs::read_dir(looked.ground.at("/srv")).unwrap().count(), 3);
    looked.mode = "adopted";
    assert_eq!(line(&looked.lines(None), "file:/srv/text").what, What::Hold);
}

#[test]
fn a_line_that_only_ends_otherwise_is_shown_with_how_it_ends() {
    let mut looked = Looked::new();
    looked.was("/srv/text", "one\r\ntwo\r\n", 0o644);
    looked.file("/srv/text", "one\ntwo\n", "0644");
    let detail = &line(&looked.lines(None), "file:/srv/text").detail.clone();
    for shown in ["-one\\r", "-two\\r", "+one", "+two"] {
        assert!(detail.iter().any(|line| line == shown), "{shown}: {detail:?}");
    }
}

#[test]
fn what_lies_below_a_declared_file_or_behind_a_link_to_what_is_made_first_cannot_be_known() {
    let mut looked = Looked::new();
    looked.file("/srv/f", "f", "0644");
    looked.file("/srv/f/below", "x", "0644");
    std::os::unix::fs::symlink("later", looked.ground.at("/srv/link")).unwrap();
    looked.file("/srv/link/x", "x", "0644");
    let lines = looked.lines(None);
    let said = |key: &str| (line(&lines, key).what, line(&lines, key).code.clone());
    assert_eq!(said("file:/srv/f/below"), (What::CannotKnow, Some("below_a_file".to_owned())));
    assert_eq!(said("file:/srv/link/x"), (What::CannotKnow, Some("link_leads_nowhere".to_owned())));
    assert_eq!(line(&lines, "file:/srv/f").verdict, tenure_protocol::foresight::Verdict::Change);
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
    assert!(shown.contains("sensitive and not shown: keyed digest") && shown.contains("not text"));
}

/// A store that holds these bytes.
fn holding(looked: &Looked, bytes: Vec<u8>) -> Store {
    looked.ground.create().unwrap();
    let store = Store::open(&looked.ground, true, Moment::from_millis(1)).unwrap().store;
    let (sha256, bytes) = (Digest::of(&bytes), Arc::from(bytes));
    let epoch = Epoch { number: 1, id: EpochId::from_bytes([1; 16]) };
    let revision = Revision { epoch, number: RevisionNumber(1) };
    store.put_declaration(StoredDeclaration { revision, sha256, bytes }).unwrap();
    store
}

// rule: S-19
#[test]
fn what_was_declared_sensitive_stays_unshown_where_the_planned_declaration_does_not_say_so() {
    let mut looked = Looked::new();
    looked.was("/srv/key", "hunter2\n", 0o644);
    looked.was("/srv/open", "old\n", 0o644);
    looked.file("/srv/key", "hunter2\n", "0600");
    looked.file("/srv/open", "old\n", "0644");
    let store = holding(&looked, looked.declaration());
    looked.resources.clear();
    looked.file("/srv/key", "public\n", "0644");
    looked.file("/srv/open", "new\n", "0644");
    let lines = looked.lines(Some(&store));
    let key = line(&lines, "file:/srv/key").detail.join("\n");
    assert!(!key.contains("hunter2") && key.contains("sensitive and not shown"), "{key}");
    assert!(line(&lines, "file:/srv/open").detail.contains(&"-old".to_owned()));
    // Of what cannot be read it is not known which were.
    store.close();
    std::fs::remove_dir_all(looked.ground.store().parent().unwrap()).unwrap();
    let lines = looked.lines(Some(&holding(&looked, b"{}".to_vec())));
    assert!(!format!("{lines:?}").contains("-old"), "{lines:?}");
}

// rule: S-19
#[test]
fn a_file_that_was_closed_since_it_was_seen_is_in_no_diff() {
    let mut looked = Looked::new();
    looked.was("/srv/a", "one\n", 0o644);
    looked.file("/srv/a", "two\n", "0644");
    let declaration = Declaration::parse(&looked.declaration()).unwrap();
    let resource = declaration.resources().next().unwrap();
    let Spec::File(spec) = &resource.spec else { panic!("{resource:?}") };
    let (own, contents) = (Own::look(&looked.ground), Given(&looked.contents));
    let walker = Walker::new(&looked.ground, &own).unwrap();
    let (accounts, never) = (Arc::new(Accounts::read(&walker)), AtomicBool::new(false));
    let tools = Tools::new(&looked.ground, None, None, &never);
    let site = Site {
        walker,
        accounts,
        contents: &contents,
        sets_owner: false,
        tools: &tools,
        recall: None,
        together: None,
    };
    let seen = site.observe(&resource.spec, true).unwrap();
    let diff = || diff::lines(&site, spec, &seen, false, &mut diff::Room::default()).join("\n");
    assert!(diff().contains("-one"));
    looked.was("/srv/a", "secret\n", 0o600);
    assert!(diff().contains("sensitive and not shown") && !diff().contains("secret\n"));
}

#[test]
fn what_was_called_off_before_its_turn_cannot_be_known() {
    let mut looked = Looked::new();
    looked.was("/srv/a", "a", 0o644);
    looked.file("/srv/a", "a", "0644");
    looked.resources.push(serde_json::json!({ "key": "package:app", "module": "base", "needs": [],
        "spec": { "name": "app", "version": "present" } }));
    looked.ground.create().unwrap();
    let store = Store::open(&looked.ground, true, Moment::from_millis(1)).unwrap().store;
    store.record(vec![record("file:/srv/left", Origin::Created)], Vec::new(), Vec::new()).unwrap();
    looked.called_off = true;
    let lines = looked.lines(Some(&store));
    assert_eq!(lines.len(), 3);
    for line in lines {
        assert_eq!(
            (line.what, line.code.as_deref()),
            (What::CannotKnow, Some("not_looked_at")),
            "{}",
            line.key
        );
    }
}

#[test]
fn what_would_leave_is_listed_by_what_becomes_of_it() {
    let mut looked = Looked::new();
    looked.ground.create().unwrap();
    let store = Store::open(&looked.ground, true, Moment::from_millis(1)).unwrap().store;
    looked.was("/srv/ours", "x", 0o644);
    looked.was("/srv/theirs", "x", 0o644);
    let records = vec![
        record("file:/srv/ours", Origin::Created),
        record("file:/srv/theirs", Origin::Changed),
        record("later:/srv/x", Origin::Created),
    ];
    store.record(records, Vec::new(), Vec::new()).unwrap();
    let lines = looked.lines(Some(&store));
    assert_eq!(line(&lines, "file:/srv/ours").what, What::Remove);
    assert_eq!(line(&lines, "file:/srv/theirs").what, What::Release);
    assert_eq!(line(&lines, "later:/srv/x").what, What::Fail);
    looked.file("/srv/new", "n", "0644");
    assert_eq!(looked.lines(Some(&store)).len(), 4);
}

// case: O-03
// case: O-07
#[test]
fn what_is_kept_of_a_file_that_would_be_replaced_is_said_and_what_bars_it_too() {
    use rustix::fs::{XattrFlags, lsetxattr};
    let mut looked = Looked::new();
    for path in ["/srv/a", "/srv/mode", "/srv/signed"] {
        looked.was(path, "old\n", 0o644);
    }
    let give = |path: &str, name: &std::ffi::CStr| {
        lsetxattr(looked.ground.at(path), name, b"x", XattrFlags::empty())
    };
    if give("/srv/a", c"user.note").and_then(|()| give("/srv/signed", c"security.ima")).is_err() {
        eprintln!("skipped: needs root, and a file system with attributes");
        return;
    }
    std::fs::hard_link(looked.ground.at("/srv/a"), looked.ground.at("/srv/other")).unwrap();
    looked.file("/srv/a", "new\n", "0644");
    looked.file("/srv/mode", "old\n", "0600");
    looked.file("/srv/signed", "new\n", "0644");
    let lines = looked.lines(None);
    let detail = lines[0].detail.join("\n");
    assert!(detail.contains("the path was one of 2 names of a file"), "{detail}");
    assert!(detail.contains("kept of the file that was there: user.note"), "{detail}");
    assert!(!lines[1].detail.join("\n").contains("kept"), "it is put right where it lies");
    assert_eq!(lines[2].what, What::Refuse);
    assert!(lines[2].detail[0].contains("security.ima"), "{:?}", lines[2]);
}
