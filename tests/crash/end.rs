//! What there is at the end of the way. It must not tell who died on it.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tenure_actors::database::rusqlite::{Connection, OpenFlags};
use tenure_tests::program::Running;

use crate::world::{World, answered};

/// Everything that is compared.
#[derive(Debug, PartialEq, Eq)]
pub struct End {
    /// Every path below the machine's root, with its mode and bytes; of what is the host's own only the names.
    pub machine: BTreeMap<String, String>,
    /// The names of the control plane's files.
    pub control: BTreeMap<String, String>,
    /// What is ours, by how it became so.
    pub owned: BTreeMap<String, String>,
    /// How often each event was told, by kind and key.
    pub events: BTreeMap<String, usize>,
    /// Rows of the host's store, by table.
    pub rows: BTreeMap<&'static str, i64>,
}

impl World {
    /// Looks at everything, and stops both sides on the way.
    pub fn end(&mut self) -> End {
        let owned = self
            .until("the host says what it owns", |world| answered(&world.sandbox.host(&["owned", "--json"])));
        let text = |value: &serde_json::Value| value.as_str().unwrap_or("").to_owned();
        let owned = owned.as_array().unwrap();
        let owned = owned.iter().map(|line| (text(&line["key"]), text(&line["origin"]))).collect();
        let mut events = BTreeMap::new();
        let all = self.until("the control plane lists what happened", |world| world.events());
        // Not every journey has the detour on which these come.
        for event in all.iter().filter(|event| event["kind"] != "lost" && event["kind"] != "ready_again") {
            *events.entry(format!("{} {}", text(&event["kind"]), text(&event["key"]))).or_default() += 1;
        }
        for side in [self.sandbox.host.take(), self.sandbox.control.take()] {
            let status = side.map(Running::stop);
            assert!(status.is_some_and(|status| status.success()), "it was not stopped in order: {status:?}");
        }
        let machine = below(&self.sandbox.at("machine"), &["var/lib/tenure-host", "run", "etc/tenure"]);
        let control = below(&self.sandbox.at("control"), &[""]);
        End { machine, control, owned, events, rows: rows(&self.sandbox.at("machine/var/lib/tenure-host")) }
    }
}

/// Every path below `root`; of those below `own` no bytes, and not the files that SQLite comes and goes with.
fn below(root: &Path, own: &[&str]) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            let meta = path.symlink_metadata().unwrap();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            let is_own = own.iter().any(|own| name.starts_with(own));
            let bytes = match std::fs::read(&path) {
                Ok(bytes) if !is_own && bytes.len() < 1000 => String::from_utf8_lossy(&bytes).into_owned(),
                Ok(bytes) if !is_own => format!("{} bytes", bytes.len()),
                Ok(_) | Err(_) => String::new(),
            };
            if meta.is_dir() {
                folders.push(path);
            }
            if !is_own || !name.ends_with("-wal") && !name.ends_with("-shm") {
                // What is kept aside has the time of it in its name.
                let name = name.split_once(".damaged-").map_or(name.as_str(), |(name, _)| name).to_owned();
                all.insert(name, format!("{:o} {bytes}", meta.permissions().mode()));
            }
        }
    }
    all
}

const TABLES: [&str; 5] = ["intent", "event", "content", "record", "declaration"];

fn rows(state: &Path) -> BTreeMap<&'static str, i64> {
    let store = std::fs::read_dir(state).unwrap().flatten().map(|entry| entry.path());
    let store = store.into_iter().find(|path| path.extension().is_some_and(|end| end == "db")).unwrap();
    let db = Connection::open_with_flags(store, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let count = |table: &&'static str| {
        let sql = format!("SELECT count(*) FROM {table}");
        (*table, db.query_row(&sql, (), |row| row.get(0)).unwrap())
    };
    TABLES.iter().map(count).collect()
}
