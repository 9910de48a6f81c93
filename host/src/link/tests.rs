//! The link against a control plane of a test, over real TLS on loopback, in whole daemons.

use std::sync::Arc;
use std::time::Duration;

use tenure_protocol::declaration::{Declaration, Header};
use tenure_protocol::id::{Digest, Epoch, EpochId, Generation, Millis, ModuleName, NodeId, RevisionNumber};
use tenure_protocol::machine::{MachineState, Mode};
use tenure_protocol::path::DeclaredPath;
use tenure_protocol::refusal::Refusal;
use tenure_protocol::rescue::LinkStatus;
use tenure_protocol::resource::{Content, FilePresent, FileSpec, Principal, Resource, Spec};
use tenure_protocol::session::Ended;

use super::*;
use crate::daemon::{Daemon, Options, start};
use crate::identity::StoredIdentity;
use crate::link::dial::system_resolver;
use crate::manifest::{Finding, look};
use fake::Fake;

mod broken;
mod clock;
pub(crate) mod fake;
mod foreseeing;
mod holding;
mod joining;
mod names;
mod telling;

// case: O-05
#[test]
fn a_store_that_cannot_be_mended_is_asked_about_once_and_another_fault_of_it_again() {
    use tenure_actors::database::DatabaseError;
    let asked = Asked::default();
    let is_new = |error: DatabaseError| asked.is_new(Some(&StoreTrouble::of(&error)));
    assert!(is_new(DatabaseError::Removed));
    for _ in 0..3 {
        assert!(!is_new(DatabaseError::Full), "no pass makes room");
        assert!(!is_new(DatabaseError::Removed));
    }
    assert!(is_new(DatabaseError::Damaged));
    // It works again: what comes then is new.
    assert!(!asked.is_new(None));
    assert!(is_new(DatabaseError::Damaged));
}

/// A machine of a test: a folder, and how a daemon runs in it.
struct Machine {
    folder: tempfile::TempDir,
    resolve: dial::Resolve,
    clock: SharedClock,
    foreseeing: Foreseeing,
}

impl Machine {
    fn new() -> Self {
        let clock = tenure_actors::clock::system();
        let (folder, foreseeing) = (tempfile::tempdir().unwrap(), Foreseeing::default());
        Self { folder, resolve: system_resolver(), clock, foreseeing }
    }

    fn ground(&self) -> Ground {
        Ground::new(self.folder.path(), true)
    }

    async fn start(&self) -> Daemon {
        let options = Options {
            resolve: Arc::clone(&self.resolve),
            clock: Arc::clone(&self.clock),
            reconcile_every: Some(Duration::from_secs(86_400)),
            foreseeing: self.foreseeing.clone(),
            ..Options::at(self.ground())
        };
        start(options).await.unwrap()
    }

    /// Every file with its bytes, to see that nothing changed.
    fn files(&self) -> Vec<(std::path::PathBuf, Vec<u8>)> {
        fn walk(at: &std::path::Path, into: &mut Vec<(std::path::PathBuf, Vec<u8>)>) {
            for entry in std::fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path()) {
                if entry.is_dir() {
                    walk(&entry, into);
                } else if entry.is_file() {
                    into.push((entry.clone(), std::fs::read(&entry).unwrap()));
                }
            }
        }
        let mut files = Vec::new();
        walk(self.folder.path(), &mut files);
        files.sort();
        files
    }
}

/// Waits for the link to be as `holds` says; a link that never is fails the test.
async fn linked(daemon: &Daemon, holds: impl Fn(&LinkView) -> bool) -> LinkView {
    let mut views = daemon.link.watch();
    let waited = tokio::time::timeout(Duration::from_secs(20), views.wait_for(|view| holds(view)));
    waited.await.expect("the link was not in the expected state in time").unwrap().clone()
}

fn is_up(view: &LinkView) -> bool {
    matches!(view.link, LinkStatus::Up { .. })
}

fn is_down_with(view: &LinkView, code: &str) -> bool {
    matches!(&view.link, LinkStatus::Down { reason: Some(reason), .. } if reason.is(code))
}

fn declaration(fake: &Fake, number: u64, files: &[(&str, &[u8])]) -> Vec<u8> {
    let header = Header {
        control_plane_id: fake.id,
        node: NodeId::new("edge-1").unwrap(),
        generation: Generation(1),
        epoch: fake::EPOCH,
        revision: RevisionNumber(number),
        mode: Mode::Converged,
        taken: Vec::new(),
        allowed_removals: None,
        is_final: false,
    };
    let resources: Vec<Resource> = files
        .iter()
        .map(|(path, bytes)| {
            let content = Content { sha256: Digest::of(bytes), size: u64::try_from(bytes.len()).unwrap() };
            fake.change(|ways| drop(ways.contents.insert(content.sha256, bytes.to_vec())));
            let spec = Spec::File(FileSpec {
                path: DeclaredPath::new(path).unwrap(),
                present: Some(FilePresent {
                    content,
                    mode: "0644".parse().unwrap(),
                    owner: "root".parse::<Principal>().unwrap(),
                    group: "root".parse::<Principal>().unwrap(),
                    create_once: false,
                    replace_link: false,
                    sensitive: false,
                }),
            });
            Resource { key: spec.key(), module: ModuleName::new("base").unwrap(), needs: Vec::new(), spec }
        })
        .collect();
    Declaration::encode(&header, &resources).unwrap()
}

fn refusal(code: &str) -> Refusal {
    Refusal::new(code, "it is so", "it means that", "do this")
}

fn identity(machine: &Machine) -> StoredIdentity {
    let store = Store::open(&machine.ground(), false, tenure_actors::clock::system().now()).unwrap().store;
    let identity = store.identity().unwrap().unwrap();
    store.close();
    identity
}

fn keep(machine: &Machine, identity: &StoredIdentity) {
    let store = Store::open(&machine.ground(), false, tenure_actors::clock::system().now()).unwrap().store;
    store.set_identity(identity).unwrap();
    store.close();
}
