//! `tenure-host plan` and `tenure-host apply`: a preview that changes nothing, and a pass by hand.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure_actors::clock;
use tenure_actors::watchdog::Progress;
use tenure_protocol::declaration::Declaration;
use tenure_protocol::foresight::Foreseen;
use tenure_protocol::id::Millis;
use tenure_protocol::refusal::{Explain as _, Refusal, chain};
use tenure_protocol::report::Summary;
use tenure_protocol::rescue::{Applied, Apply, Identity, Status};

use super::ask::Host;
use super::look::Reached;
use super::snapshot::Snapshot;
use super::{Done, asking, look, print, show};
use crate::bundle::Bundle;
use crate::ground::Ground;
use crate::outbox::Outbox;
use crate::reconcile::foresee::{PreviewInput, preview};
use crate::reconcile::{Memory, Setting, by_hand, not_understood, nothing_to_hold, unreadable};
use crate::resource::Reading;
use crate::status as read;
use crate::store::{Opened, Store};

const ANSWER_WITHIN: Duration = Duration::from_secs(30);
const PASS_WITHIN: Duration = Duration::from_secs(60 * 60);

pub(super) fn plan(ground: &Ground, bundle: Option<PathBuf>, json: bool) -> Result<Done, Refusal> {
    let foreseen = look_ahead(ground, bundle)?;
    print(json, &foreseen, || show::plan(&foreseen));
    Ok(Done::Well)
}

/// What a pass would do: from a copy where a host runs, else from its store, else as if nothing were ours.
fn look_ahead(ground: &Ground, bundle: Option<PathBuf>) -> Result<Foreseen, Refusal> {
    let bundle = bundle.map(Bundle::open).transpose().map_err(|error| error.refusal())?;
    if let Some(bundle) = &bundle {
        bundle.check().map_err(|error| error.refusal())?;
    }
    if !has_store(ground)? {
        return previewed(ground, None, bundle.as_ref());
    }
    if asking()?.block_on(Host::find(ground))?.is_none()
        && let Some(snapshot) = Snapshot::of_stopped(ground)
    {
        return previewed(ground, snapshot.store(), bundle.as_ref());
    }
    match asking()?.block_on(look::reach(ground))? {
        Reached::Host(_) => {
            let snapshot = Snapshot::of(ground)?;
            previewed(ground, snapshot.store(), bundle.as_ref())
        }
        Reached::Store(Opened { store, .. }) => {
            let lines = previewed(ground, Some(&store), bundle.as_ref());
            store.close();
            lines
        }
    }
}

/// Whether there is a store. Not being let in is not the same as there being none (I-05).
fn has_store(ground: &Ground) -> Result<bool, Refusal> {
    ground.store().try_exists().map_err(|error| {
        Refusal::new(
            "store_unreadable",
            format!("whether there is a store at {} cannot be seen: {error}", ground.store().display()),
            "what this host owns is not known, and not knowing is no preview; nothing was changed",
            "run the command as root, and name the right `--root`",
        )
    })
}

fn no_preview(error: impl std::error::Error) -> Refusal {
    Refusal::new(
        "no_preview",
        format!("what a pass would do cannot be said: {}", chain(&error)),
        "looking failed, and not knowing is no preview; nothing was changed",
        "run the command as root, and name the right `--root`",
    )
}

fn previewed(ground: &Ground, store: Option<&Store>, bundle: Option<&Bundle>) -> Result<Foreseen, Refusal> {
    let programs = crate::program::of(ground);
    let now = Millis(clock::system().now().millis());
    // Whoever typed the command ends it.
    let called_off = &AtomicBool::new(false);
    if let Some(bundle) = bundle {
        let declaration = bundle.declaration();
        let input = PreviewInput { ground, store, declaration, programs, contents: bundle, now, called_off };
        let lines = preview(&input).map_err(no_preview)?;
        let refused = store.and_then(|store| bundle.refusal(store));
        return Ok(Foreseen { at: now, refused, lines });
    }
    let store = store.ok_or_else(nothing_to_hold)?;
    let stored = store.declaration().map_err(unreadable)?.ok_or_else(nothing_to_hold)?;
    let declaration = Declaration::parse(&stored.bytes).map_err(not_understood)?;
    let input = PreviewInput {
        ground,
        store: Some(store),
        declaration: &declaration,
        programs,
        contents: store,
        now,
        called_off,
    };
    let lines = preview(&input).map_err(no_preview)?;
    Ok(Foreseen { at: now, refused: None, lines })
}

pub(super) fn apply(ground: &Ground, bundle: Option<PathBuf>, json: bool) -> Result<Done, Refusal> {
    let (summary, trouble) = reconcile(ground, bundle)?;
    print(json, &Applied { summary: summary.clone() }, || show::summary(&summary));
    if let Some(trouble) = &trouble {
        // With `--json` the answer is the summary; the trouble is for whoever reads the other stream.
        super::refuse(trouble, false);
    }
    Ok(done(&summary, trouble.is_some()))
}

/// What a pass came to: not knowing is no better than failing.
fn done(summary: &Summary, in_trouble: bool) -> Done {
    let counts = summary.counts;
    if counts.failed + counts.refused + counts.unknown > 0 || summary.refused.is_some() || in_trouble {
        Done::Failed
    } else if counts.outstanding > 0 {
        Done::Outstanding
    } else {
        Done::Well
    }
}

type Passed = (Summary, Option<Refusal>);

fn reconcile(ground: &Ground, bundle: Option<PathBuf>) -> Result<Passed, Refusal> {
    match bundle {
        Some(bundle) => apply_bundle(ground, &bundle),
        None => match asking()?.block_on(ask(ground))? {
            Asked::Done(summary) => Ok((*summary, None)),
            Asked::ByHand(store) => pass(ground, store),
        },
    }
}

/// What came of asking the daemon for a pass.
enum Asked {
    /// It did one.
    Done(Box<Summary>),
    /// None runs, and this is its store.
    ByHand(Store),
}

async fn ask(ground: &Ground) -> Result<Asked, Refusal> {
    match look::reach_or(ground, look::open_ahead).await? {
        Reached::Host(host) => {
            let Applied { summary } = host.ask(&Apply {}, PASS_WITHIN).await?;
            Ok(Asked::Done(Box::new(summary)))
        }
        Reached::Store(Opened { store, .. }) => Ok(Asked::ByHand(store)),
    }
}

/// A bundle is taken only where no control plane would contradict it.
fn apply_bundle(ground: &Ground, folder: &Path) -> Result<Passed, Refusal> {
    let bundle = Bundle::open(folder).map_err(|error| error.refusal())?;
    let running = asking()?.block_on(async {
        match Host::find(ground).await? {
            Some(host) => host.ask(&Status {}, ANSWER_WITHIN).await.map(Some),
            None => Ok(None),
        }
    })?;
    if let Some(status) = running
        && let Some(identity) = status.identity
    {
        return Err(belongs(&identity, status.revision.map(|revision| revision.to_string())));
    }
    let store = super::opened(ground)?;
    let status = read::read(&store, ground, None, None).map_err(unreadable)?;
    let refusal = match (status.identity, status.credential) {
        (Some(identity), _) => Some(belongs(&identity, status.revision.map(|revision| revision.to_string()))),
        // It was enrolled, and nobody can say where.
        (None, credential) => credential,
    };
    if let Some(refusal) = refusal {
        store.close();
        return Err(refusal);
    }
    if let Err(error) = bundle.keep(&store, None) {
        store.close();
        return Err(error.refusal());
    }
    pass(ground, store)
}

/// The same pass that the daemon runs, in this process.
fn pass(ground: &Ground, store: Store) -> Result<Passed, Refusal> {
    let setting = Setting {
        ground: ground.clone(),
        store: store.clone(),
        clock: clock::system(),
        outbox: Outbox::default(),
        every: Duration::MAX,
        full_look: Duration::MAX,
        memory: Arc::new(Mutex::new(Memory::kept(&store, ground))),
        progress: Progress::new(),
        anew: Arc::default(),
    };
    let summary = by_hand(&setting, Reading::Whole);
    setting.memory.lock().unwrap_or_else(PoisonError::into_inner).keep_in(&store, ground);
    drop(setting);
    // Of a damaged store this is what is wrong, whatever came of reading it.
    let checked = store.checked().map_err(|error| error.refusal());
    store.close();
    checked.and(summary)
}

fn belongs(identity: &Identity, revision: Option<String>) -> Refusal {
    let holds = revision.map_or_else(
        || "and holds no declaration yet".to_owned(),
        |revision| format!("and holds its revision {revision}"),
    );
    Refusal::new(
        "belongs_to_control_plane",
        format!(
            "this machine is node {} of the control plane {} ({}), {holds}",
            identity.node,
            identity.control_plane_id,
            identity.addresses.join(", ")
        ),
        "a bundle would be undone by its next declaration; nothing was changed",
        "declare it there with `tenure declare`; `tenure-host apply` without a bundle reconciles what is stored",
    )
}

#[cfg(test)]
mod tests;
