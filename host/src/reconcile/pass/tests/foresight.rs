//! What a preview said is what the pass did, or the pass says why not: asked before every pass of every test of passes,
//! and of passes over small trees and declarations at random.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use tenure_protocol::foresight::{ForeseenLine, Verdict};

use super::*;
use crate::reconcile::foresee::{PreviewInput, preview};

/// What was foreseen; none where what is ours could not be read.
pub(super) struct Before {
    lines: Option<Vec<ForeseenLine>>,
    /// A pass was cut short before, and what it began may come to be ours only while it is looked at.
    cut_short: bool,
}

impl Machine {
    /// What a pass would do now. Asking runs nothing that changes anything.
    pub(super) fn foresee(&self, declaration: &Declaration) -> Option<Vec<ForeseenLine>> {
        let taken = self.scripted.as_ref().map(|_| {
            let mut state = self.state();
            // What runs ends for the pass, and not while somebody asks what that would do.
            (std::mem::take(&mut state.calls), state.ends_after.take())
        });
        let lines = preview(&PreviewInput {
            ground: &self.ground,
            store: Some(&self.store),
            declaration,
            programs: self.scripted.as_ref().map(|scripted| -> &dyn Programs { scripted }),
            contents: &self.store,
            now: Millis(self.clock.now().millis()),
            called_off: &std::sync::atomic::AtomicBool::new(false),
        });
        if let Some((calls, ends_after)) = taken {
            assert_eq!(self.acts(), Vec::<String>::new(), "a preview changes nothing");
            let mut state = self.state();
            (state.calls, state.ends_after) = (calls, ends_after);
        }
        lines.ok()
    }

    pub(super) fn before(&self, declaration: Option<&Declaration>) -> Before {
        let cut_short = !self.store.intents().unwrap_or_default().is_empty();
        Before { lines: declaration.and_then(|declaration| self.foresee(declaration)), cut_short }
    }
}

/// Every line that came otherwise than it was foreseen.
fn surprises(before: &Before, done: &PassDone) -> Vec<(String, ResourceOutcome)> {
    let Some(foreseen) = &before.lines else { return Vec::new() };
    let mut surprises = Vec::new();
    for line in &done.outcomes {
        match foreseen.iter().find(|before| before.key == line.key) {
            None if before.cut_short => {}
            None => surprises.push(("nobody foresaw it".to_owned(), line.clone())),
            Some(before) if before.what.outcome().is_some_and(|outcome| outcome != line.outcome) => {
                surprises.push((format!("{before:?}"), line.clone()));
            }
            Some(_) => {}
        }
    }
    surprises
}

/// What came otherwise says why.
// rule: H-09
pub(super) fn came(before: &Before, done: &PassDone) {
    for (foreseen, line) in surprises(before, done) {
        let says_why =
            matches!(line.outcome, Failed | Refused | Outstanding | Unknown) && line.reason.is_some();
        assert!(says_why, "{foreseen} became {line:?}");
    }
}

// rule: H-25
#[test]
fn the_transaction_is_simulated_and_a_package_that_the_sources_may_have_when_read_anew_cannot_be_known() {
    let mut machine = Machine::with_programs();
    machine.offers("app", &[scripted::offer("1.0")]);
    machine.package("app", "present", &[]);
    machine.package("newer", "present", &[]);
    let lines = machine.foresee(&machine.declaration()).unwrap();
    let of = |key: &str| lines.iter().find(|line| line.key == key).unwrap();
    let moves: Vec<_> =
        of("package:app").packages.iter().map(|one| (one.name.as_str(), one.to.as_deref())).collect();
    assert_eq!(moves, [("app", Some("1.0"))]);
    assert!(of("package:app").detail.contains(&"it would be installed at 1.0".to_owned()));
    assert_eq!(of("package:newer").code.as_deref(), Some("sources_not_read"));
    assert_eq!(of("package:newer").verdict, Verdict::CannotKnow);
}

// rule: S-13
#[test]
fn whether_a_signature_proves_the_host_that_would_be_brought_cannot_be_known_before() {
    let mut machine = Machine::with_programs();
    for name in ["app", "tenure-host"] {
        machine.offers(name, &[scripted::offer("1.0")]);
        machine.package(name, "present", &[]);
    }
    let lines = machine.foresee(&machine.declaration()).unwrap();
    let of = |key: &str| lines.iter().find(|line| line.key == key).unwrap();
    assert_eq!(of("package:tenure-host").code.as_deref(), Some("proven_when_applied"));
    assert_eq!(of("package:tenure-host").verdict, Verdict::CannotKnow);
    assert_eq!(of("package:app").verdict, Verdict::Change);
}

/// A place of the small world, and what is done or declared there.
#[derive(Debug, Clone)]
enum Thing {
    Nothing,
    File(u8, u32),
    Directory(u32),
    Link(&'static str),
    Pipe,
}

#[derive(Debug, Clone)]
struct Wish {
    at: usize,
    spec: WishSpec,
    /// Needs the wish so many before it.
    needs: Option<usize>,
}

#[derive(Debug, Clone)]
enum WishSpec {
    File(u8, u32, bool),
    NoFile,
    Directory(u32),
    NoDirectory,
}

const PLACES: [&str; 11] = [
    "/srv/a",
    "/srv/a/x",
    "/srv/a/x/p",
    "/srv/a/y",
    "/srv/b",
    "/srv/b/x",
    "/srv/b/x/p",
    "/srv/l",
    "/srv/l/x",
    "/srv/l/y",
    "/srv/c",
];

fn modes() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![0o644, 0o755, 0o600, 0o700])
}

fn thing() -> impl Strategy<Value = Thing> {
    prop_oneof![
        2 => Just(Thing::Nothing),
        4 => (0..3_u8, modes()).prop_map(|(text, mode)| Thing::File(text, mode)),
        4 => modes().prop_map(Thing::Directory),
        1 => prop::sample::select(vec!["a", "b", "/srv/a", "../srv/b", "nowhere"]).prop_map(Thing::Link),
        1 => Just(Thing::Pipe),
    ]
}

fn wish() -> impl Strategy<Value = Wish> {
    let spec = prop_oneof![
        5 => (0..3_u8, modes(), prop::bool::weighted(0.2)).prop_map(|(t, m, o)| WishSpec::File(t, m, o)),
        2 => Just(WishSpec::NoFile),
        4 => modes().prop_map(WishSpec::Directory),
        2 => Just(WishSpec::NoDirectory),
    ];
    (0..PLACES.len(), spec, prop::option::weighted(0.3, 1..4_usize)).prop_map(|(at, spec, needs)| Wish {
        at,
        spec,
        needs,
    })
}

#[derive(Debug, Clone)]
struct Round {
    changes: Vec<(usize, Thing)>,
    wishes: Vec<Wish>,
    adopted: bool,
}

fn round() -> impl Strategy<Value = Round> {
    let changes = prop::collection::vec((0..PLACES.len(), thing()), 0..6);
    (changes, prop::collection::vec(wish(), 0..8), prop::bool::weighted(0.25))
        .prop_map(|(changes, wishes, adopted)| Round { changes, wishes, adopted })
}

/// Somebody does this, where it can be done.
fn put(machine: &Machine, path: &str, thing: &Thing) {
    let at = machine.at(path);
    if at.symlink_metadata().is_ok_and(|stat| stat.is_dir()) {
        drop(std::fs::remove_dir_all(&at));
    } else {
        drop(std::fs::remove_file(&at));
    }
    let set = |mode| drop(std::fs::set_permissions(&at, std::fs::Permissions::from_mode(mode)));
    match thing {
        Thing::Nothing => {}
        Thing::File(text, mode) => {
            if std::fs::write(&at, text.to_string()).is_ok() {
                set(*mode);
            }
        }
        Thing::Directory(mode) => {
            if std::fs::create_dir(&at).is_ok() {
                set(*mode | 0o700);
            }
        }
        Thing::Link(to) => drop(symlink(to, &at)),
        Thing::Pipe => drop(nix::unistd::mkfifo(&at, nix::sys::stat::Mode::S_IRUSR)),
    }
}

fn wishes(machine: &mut Machine, wishes: &[Wish]) {
    machine.resources.clear();
    let mut keys: Vec<String> = Vec::new();
    let mut taken = std::collections::HashSet::new();
    for Wish { at, spec, needs } in wishes {
        let path = PLACES[*at];
        if !taken.insert(path) {
            continue;
        }
        let kind = match spec {
            WishSpec::File(text, mode, once) => {
                let more = serde_json::json!({ "mode": format!("{mode:04o}"), "create_once": once });
                machine.file_with(path, &text.to_string(), more);
                "file"
            }
            WishSpec::NoFile => {
                machine.absent("file", path);
                "file"
            }
            WishSpec::Directory(mode) => {
                machine.directory(path, &format!("{mode:04o}"));
                "directory"
            }
            WishSpec::NoDirectory => {
                machine.absent("directory", path);
                "directory"
            }
        };
        let need = needs.and_then(|back| keys.len().checked_sub(back)).and_then(|at| keys.get(at));
        if let (Some(need), Some(last)) = (need, machine.resources.last_mut()) {
            last["needs"] = serde_json::json!([need]);
        }
        keys.push(format!("{kind}:{path}"));
    }
}

/// All that is there, but for when it was last read.
fn snapshot(root: &Path) -> std::collections::BTreeMap<PathBuf, String> {
    let mut found = std::collections::BTreeMap::new();
    let mut left = vec![root.to_owned()];
    while let Some(at) = left.pop() {
        let stat = at.symlink_metadata().unwrap();
        let text = if stat.is_file() { std::fs::read(&at).unwrap() } else { Vec::new() };
        let (mtime, ctime) = ((stat.mtime(), stat.mtime_nsec()), (stat.ctime(), stat.ctime_nsec()));
        let words =
            (stat.ino(), stat.mode(), stat.uid(), stat.gid(), stat.nlink(), stat.size(), mtime, ctime);
        found.insert(at.clone(), format!("{words:?} {:?}", Digest::of(&text)));
        if stat.is_dir() {
            left.extend(std::fs::read_dir(&at).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    found
}

/// What is there of one place, as far as it is the place's own: a directory is not changed by what lies in it.
fn own(machine: &Machine, path: &str) -> String {
    let at = machine.at(path);
    match at.symlink_metadata() {
        Err(_) => "nothing".to_owned(),
        Ok(stat) if stat.is_dir() => format!("{:?}", (stat.ino(), stat.mode(), stat.uid(), stat.gid())),
        Ok(stat) if stat.is_file() => {
            let words = (stat.ino(), stat.mode(), stat.uid(), stat.gid(), stat.mtime_nsec());
            format!("{words:?} {:?}", std::fs::read(&at).ok())
        }
        Ok(stat) => format!("{:?}", (stat.ino(), stat.mode())),
    }
}

/// The same ones each time; others, and as many as are asked for, with `PROPTEST_CASES`.
fn cases() -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    let rng_seed = if asked.is_some() { RngSeed::Random } else { RngSeed::Fixed(25) };
    ProptestConfig {
        cases: asked.unwrap_or(96),
        rng_seed,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases())]

    // rule: A-18
    #[test]
    fn whatever_is_there_and_declared_a_pass_does_what_was_foreseen_and_foreseeing_changes_nothing(
        rounds in prop::collection::vec(round(), 1..4)
    ) {
        let mut machine = Machine::new();
        for Round { changes, wishes: wanted, adopted } in rounds {
            for (at, thing) in &changes {
                put(&machine, PLACES[*at], thing);
            }
            wishes(&mut machine, &wanted);
            machine.head.mode = if adopted { "adopted" } else { "converged" };
            let declaration = machine.declaration();
            // A store that was just written may fold its log into its file when it is next read.
            drop(machine.foresee(&declaration));
            let tree = snapshot(machine.ground.root());
            let before = machine.before(Some(&declaration));
            prop_assert_eq!(snapshot(machine.ground.root()), tree, "a preview changes nothing");
            let places: Vec<String> = PLACES.iter().map(|path| own(&machine, path)).collect();
            let done = machine.pass();
            prop_assert_eq!(surprises(&before, &done), vec![]);
            // Through a link one place has two names; what is done by one of them is seen by the other too.
            let by_link = wanted.iter().any(|wish| PLACES[wish.at].starts_with("/srv/l"));
            for (at, path) in PLACES.iter().enumerate().filter(|_| !by_link) {
                let lines = before.lines.iter().flatten();
                let here = lines.filter(|line| line.key.split_once(':').unwrap().1 == *path);
                let changes: Vec<_> = here.filter(|line| line.verdict == Verdict::Change).collect();
                let is_same = own(&machine, path) == places[at];
                prop_assert_eq!(is_same, changes.is_empty(), "{} {:?}", path, before.lines);
            }
        }
    }
}
