//! One turn of the loop, on its worker thread: what is stored is read, one pass is run, and what changed is said in
//! the log. With no identity there is nothing to hold, except by hand.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tenure_actors::database::DatabaseError;
use tenure_actors::watchdog::Progress;
use tenure_actors::work::Panicked;
use tenure_protocol::declaration::{Declaration, DeclarationError, Header};
use tenure_protocol::event::{self, NodeEvent};
use tenure_protocol::id::{Digest, Millis};
use tenure_protocol::outcome::Outcome;
use tenure_protocol::refusal::{Refusal, chain};
use tenure_protocol::report::{Summary, Trigger};
use tracing::field::display;

use super::actor::Setting;
use super::memory::Memory;
use super::pass::{self, PassDone, PassInput, Rejected, Rows};
use super::quiet::Stood;
use super::{intake, patience, quiet};
use crate::identity::StoredIdentity;
use crate::outbox::Report;
use crate::program::{self, Listed, ProgramError, Programs, Ran, Up};
use crate::resource::Reading;
use crate::store::{Cure, Store, StoreTrouble};

/// What a turn came to.
#[derive(Debug)]
pub(super) enum Turn {
    /// There is nothing to hold here, or the loop ends and nothing more was begun.
    Idle,
    /// A pass was run.
    Done {
        /// As it is reported.
        report: Box<Report>,
        /// Why the store could not be read or written, if it could not.
        store_trouble: Option<StoreTrouble>,
        /// Whether something waits for somebody else's work with packages.
        waits: bool,
    },
}

/// A group of changes with its synchronising is far below this, and a tool may take long; a thread that hangs in a dead
/// file system is what this is for (H-15).
const STEP: Duration = Duration::from_secs(15 * 60);
/// The watchdog needs no word for each of ten thousand files.
const SAY_EVERY: usize = 64;

/// However a pass ends, also in a panic, the watchdog waits for it no longer.
struct Idle(Progress);

impl Drop for Idle {
    fn drop(&mut self) {
        self.0.idle();
    }
}

/// Why a turn came to nothing.
#[derive(Debug)]
pub(super) enum NoTurn {
    /// What is stored cannot be held.
    Refused(Refusal),
    /// The store does not say what is stored.
    Store(StoreTrouble),
}

impl From<DatabaseError> for NoTurn {
    fn from(error: DatabaseError) -> Self {
        Self::Store(StoreTrouble::of(&error))
    }
}

impl NoTurn {
    /// In words.
    pub(super) fn refusal(self) -> Refusal {
        match self {
            Self::Refused(refusal) => refusal,
            Self::Store(trouble) => trouble.refusal,
        }
    }
}

/// One turn; where it finds the store lost, what can be done about that is done, and the daemon asked to open it anew.
pub(super) fn run(
    setting: &Setting,
    (trigger, reading): (Trigger, Reading),
    refused: Option<Rejected>,
    cancelled: &AtomicBool,
) -> Result<Turn, NoTurn> {
    let mut turn = hold(setting, (trigger, reading), refused, cancelled);
    let trouble = match &turn {
        Ok(Turn::Done { store_trouble, .. }) => store_trouble.as_ref(),
        Err(NoTurn::Store(trouble)) => Some(trouble),
        Ok(Turn::Idle) | Err(NoTurn::Refused(_)) => None,
    };
    match trouble.map(|trouble| trouble.cure) {
        Some(Cure::OpenAnew) => setting.anew.notify_one(),
        Some(Cure::WriteBack) => match setting.store.write_back() {
            Ok(()) => setting.anew.notify_one(),
            // What is open is the only copy: it stays open until the next pass has put it into the file.
            Err(error) => name_anew(&mut turn, StoreTrouble::not_written_back(&error)),
        },
        // Of a store that is not known to be sound nothing is put anywhere.
        Some(Cure::PutBack) if setting.store.sound().is_err() => {}
        Some(Cure::PutBack) => match setting.store.put_back(&setting.ground) {
            Ok(()) => {
                tracing::warn!(path = %setting.ground.store().display(), "store written to its place again");
                setting.anew.notify_one();
            }
            Err(error) => tracing::error!(error = %chain(&error), "store not written to its place again"),
        },
        Some(Cure::Time) | None => {}
    }
    turn
}

/// What stands in the way of the cure is what is told, also upward.
fn name_anew(turn: &mut Result<Turn, NoTurn>, trouble: StoreTrouble) {
    match turn {
        Ok(Turn::Done { report, store_trouble, .. }) => {
            let refused = &mut report.summary.refused;
            if *refused == store_trouble.as_ref().map(|trouble| trouble.refusal.clone()) {
                *refused = Some(trouble.refusal.clone());
            }
            *store_trouble = Some(trouble);
        }
        Err(NoTurn::Store(before)) => *before = trouble,
        Ok(Turn::Idle) | Err(NoTurn::Refused(_)) => {}
    }
}

fn hold(
    setting: &Setting,
    (trigger, reading): (Trigger, Reading),
    refused: Option<Rejected>,
    cancelled: &AtomicBool,
) -> Result<Turn, NoTurn> {
    // A pass of an earlier life of the loop may still be at its last group; two never overlap.
    let alone = setting.store.passing();
    let _alone = alone.lock().unwrap_or_else(PoisonError::into_inner);
    let _idle = Idle(setting.progress.clone());
    setting.progress.step("reconcile", STEP);
    let store = &setting.store;
    let held = store.declaration_held()?;
    let identity = store.identity::<StoredIdentity>()?;
    if identity.is_none() && (trigger != Trigger::Asked || held.is_none()) {
        store.in_place()?;
        return Ok(Turn::Idle);
    }
    let progress = |at: pass::Progress<'_>| {
        if at.done.is_multiple_of(SAY_EVERY) {
            setting.progress.step(format!("reconcile ({} of {})", at.done, at.total), STEP);
        }
    };
    let announced = program::of(&setting.ground).map(|programs| Announced { programs, setting });
    let mut input = PassInput {
        ground: &setting.ground,
        programs: announced.as_ref().map(|announced| -> &dyn Programs { announced }),
        store,
        clock: setting.clock.as_ref(),
        declaration: None,
        trigger,
        refused,
        looked: &|looked| {
            if looked.is_multiple_of(SAY_EVERY) {
                setting.progress.step(format!("look ({looked} of it)"), STEP);
            }
        },
        progress: &progress,
        cancelled,
    };
    // One that panicked has left nothing in it that could be believed too long.
    let mut memory = setting.memory.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Millis(setting.clock.now().millis());
    let how = (memory.begin(now, reading == Reading::Whole), setting.full_look);
    quiet_or_ordinary(&mut input, &mut memory, how, held.map(|(_, sha256)| sha256), identity.as_ref())
}

/// A quiet pass where that says all, else an ordinary one. `held`: which declaration the store holds.
pub(super) fn quiet_or_ordinary(
    input: &mut PassInput<'_>,
    memory: &mut Memory,
    how: (Reading, Duration),
    held: Option<Digest>,
    identity: Option<&StoredIdentity>,
) -> Result<Turn, NoTurn> {
    forget_units(input.store, how.0);
    memory.recall_units(input.store);
    let stood = held.and_then(|sha256| quiet::pass(input, memory, how, sha256, identity));
    match stood {
        Some(Stood::All(summary)) => {
            reconciled(&summary);
            let (changed, forgotten, read_whole) = (Vec::new(), Vec::new(), memory.read_whole());
            let report = Box::new(Report { summary: *summary, changed, forgotten, all: None, read_whole });
            return Ok(Turn::Done { report, store_trouble: None, waits: false });
        }
        Some(Stood::Part(done)) => return Ok(ended(*done, memory)),
        None => {}
    }
    if input.cancelled.load(Ordering::Relaxed) {
        // The loop ends, and nobody waits for more: all would be read once more, and nothing done.
        return Ok(Turn::Idle);
    }
    forget_units(input.store, how.0);
    ordinary(input, memory, how, identity)
}

/// Whoever asks for everything to be read has every unit looked at in full, whatever this process remembers; what a pass by
/// hand left to it still counts ([`Memory::recall_units`]).
fn forget_units(store: &Store, reading: Reading) {
    if reading == Reading::Whole {
        store.units().lock().unwrap_or_else(PoisonError::into_inner).forget();
    }
}

/// Everything is decided anew.
fn ordinary(
    input: &mut PassInput<'_>,
    memory: &mut Memory,
    how: (Reading, Duration),
    identity: Option<&StoredIdentity>,
) -> Result<Turn, NoTurn> {
    let store = input.store;
    // Either takes as long as the other where much is declared. Where no thread can be had, one comes after the other.
    let (declared, rows) = std::thread::scope(|scope| {
        let rows = std::thread::Builder::new().spawn_scoped(scope, || Rows::read(store)).ok();
        (declared(store), rows.map(std::thread::ScopedJoinHandle::join))
    });
    let Declared { declaration, sha256, places } = declared?;
    let rows = match rows {
        Some(Ok(rows)) => rows,
        Some(Err(panicked)) => std::panic::resume_unwind(panicked),
        None => Rows::read(store),
    };
    // What was read may be of a store that is still being checked: nothing is done with it before.
    store.sound()?;
    // One that was applied by hand, or is of an earlier life: under another identity it would drop what is ours.
    input.declaration = match (declaration, identity) {
        (Some(declaration), Some(identity)) if !identity.is_meant_by(&declaration.header) => {
            let why = not_ours(&declaration.header, identity);
            input.refused = input.refused.take().or(Some(Rejected { revision: None, why }));
            None
        }
        (declaration, _) => declaration,
    };
    let recall = memory.take(how.0);
    let (done, looked) = pass::run_with(input, &recall, rows);
    drop(recall);
    if let Some(declaration) = &input.declaration {
        if let Some(looked) = looked.filter(|_| !input.cancelled.load(Ordering::Relaxed)) {
            let declared: (&Declaration, _, &[_]) = (declaration, sha256, &places);
            memory.keep(how, looked, declared, (&done.outcomes, &done.summary));
        }
        if let Err(error) = intake::tidy(store, declaration) {
            tracing::debug!(%error, "content that nothing needs was not dropped");
        }
    }
    input.declaration = None;
    memory.move_down();
    Ok(ended(done, memory))
}

/// Says in the log what a pass did, and what it has to report.
fn ended(done: PassDone, memory: &Memory) -> Turn {
    say(&done);
    let PassDone { summary, outcomes, changed, forgotten, kept, store_trouble, .. } = done;
    let waits = patience::waits(&outcomes);
    let all = (!kept).then_some(outcomes);
    let report = Box::new(Report { summary, changed, forgotten, all, read_whole: memory.read_whole() });
    Turn::Done { report, store_trouble, waits }
}

/// What the store holds, its digest, and where each entry stands in it.
struct Declared {
    declaration: Option<Arc<Declaration>>,
    sha256: Digest,
    places: Vec<Range<usize>>,
}

fn declared(store: &Store) -> Result<Declared, NoTurn> {
    let Some(stored) = store.declaration()? else {
        return Ok(Declared { declaration: None, sha256: Digest::of(&[]), places: Vec::new() });
    };
    let parsed = Declaration::parse_placed(&stored.bytes);
    let (declaration, places) = parsed.map_err(|error| NoTurn::Refused(not_understood(error)))?;
    Ok(Declared { declaration: Some(Arc::new(declaration)), sha256: stored.sha256, places })
}

/// Programs whose time is told to the watchdog before they begin: a transaction of packages may take longer than any
/// other step (H-15).
struct Announced<'a> {
    programs: &'a dyn Programs,
    setting: &'a Setting,
}

impl Announced<'_> {
    fn during<T>(&self, program: &str, within: Duration, run: impl FnOnce(&dyn Programs) -> T) -> T {
        let Setting { progress, .. } = self.setting;
        progress.step(format!("reconcile: {program}"), within.saturating_add(STEP));
        let ran = run(self.programs);
        progress.step("reconcile", STEP);
        ran
    }
}

impl Programs for Announced<'_> {
    fn run(&self, program: &str, arguments: &[&str], within: Duration) -> Result<Ran, ProgramError> {
        self.during(program, within, |programs| programs.run(program, arguments, within))
    }

    fn attend(
        &self,
        program: &str,
        arguments: &[&str],
        within: Duration,
        stop: &AtomicBool,
    ) -> Result<Ran, ProgramError> {
        self.during(program, within, |programs| programs.attend(program, arguments, within, stop))
    }

    fn units(&self, names: &[&str], within: Duration) -> Option<Vec<Listed>> {
        self.during("the bus", within, |programs| programs.units(names, within))
    }

    fn show_units(
        &self,
        names: &[&str],
        wanted: &'static [&'static str],
        within: Duration,
    ) -> Option<String> {
        self.during("the bus", within, |programs| programs.show_units(names, wanted, within))
    }

    fn up(&self) -> Up {
        self.programs.up()
    }

    fn rest(&self, time: Duration) {
        self.programs.rest(time);
    }
}

/// One pass over what is stored, for a command that has taken the store's lock; with the store's own trouble, if any.
pub fn by_hand(setting: &Setting, reading: Reading) -> Result<(Summary, Option<Refusal>), Refusal> {
    match run(setting, (Trigger::Asked, reading), None, &AtomicBool::new(false)).map_err(NoTurn::refusal)? {
        Turn::Idle => Err(nothing_to_hold()),
        Turn::Done { report, store_trouble, .. } => {
            Ok((report.summary, store_trouble.map(|trouble| trouble.refusal)))
        }
    }
}

/// One line per change of state, and one that sums the pass up: all that a quiet pass says, and one that fails as the
/// pass before it did (H-10).
fn say(done: &PassDone) {
    // What could not be kept is no news: the next pass finds it anew, and says it when it is kept.
    let is_news = |event: &&NodeEvent| {
        done.kept || ![event::FAILURE_BEGAN, event::FAILURE_ENDED].contains(&event.kind.as_str())
    };
    for event in done.events.iter().filter(is_news) {
        let key = event.key.as_deref().map(display);
        match event.kind.as_str() {
            event::DRIFT_REPAIRED => tracing::info!(key, what = event.text, "drift repaired"),
            event::FAILURE_BEGAN => tracing::warn!(key, why = event.text, "failure began"),
            event::FAILURE_ENDED => tracing::info!(key, "failure ended"),
            event::PACKAGE_REMARK => {
                tracing::warn!(key, what = event.text, "package brought, not without remark")
            }
            event::REMOVED => tracing::info!(key, "removed"),
            event::RELEASED => tracing::info!(key, why = event.text, "released"),
            kind => tracing::info!(%kind, key, what = event.text, "event"),
        }
    }
    reconciled(&done.summary);
}

fn reconciled(summary: &Summary) {
    let count = |outcome| Some(summary.counts.get(outcome)).filter(|count| *count > 0);
    tracing::info!(
        trigger = %summary.trigger.as_str(),
        revision = summary.revision.map(display),
        unchanged = count(Outcome::Unchanged),
        applied = count(Outcome::Applied),
        removed = count(Outcome::Removed),
        released = count(Outcome::Released),
        held = count(Outcome::Held),
        refused = count(Outcome::Refused),
        failed = count(Outcome::Failed),
        outstanding = count(Outcome::Outstanding),
        unknown = count(Outcome::Unknown),
        took = %took(summary),
        "reconciled"
    );
}

fn took(summary: &Summary) -> String {
    format!("{}ms", summary.took_ms)
}

/// The store did not answer.
pub(crate) fn unreadable(error: DatabaseError) -> Refusal {
    StoreTrouble::of(&error).refusal
}

pub(crate) fn not_understood(error: DeclarationError) -> Refusal {
    Refusal::new(
        "declaration_unreadable",
        format!("the stored declaration cannot be read: {}", chain(&error)),
        "a newer host may have stored it; nothing is changed, and nothing counts as left out of it",
        "declare again with `tenure declare`, or install the newer tenure-host again",
    )
}

fn not_ours(header: &Header, identity: &StoredIdentity) -> Refusal {
    Refusal::new(
        "declaration_not_ours",
        format!(
            "the stored declaration is for node {} generation {} of control plane {}, and this machine is node {} \
             generation {} of {}",
            header.node,
            header.generation,
            header.control_plane_id,
            identity.node,
            identity.generation,
            identity.control_plane_id
        ),
        "it was applied by hand or is of an earlier life; nothing of it is done, and what the host owns stays as it is",
        "declare for this machine with `tenure declare`; its next declaration replaces the stored one",
    )
}

pub(crate) fn nothing_to_hold() -> Refusal {
    Refusal::new(
        "nothing_declared",
        "nothing is declared for this machine",
        "the host holds no declaration, and the machine belongs to no control plane",
        "enrol it with `tenure-host enrol --token-file FILE`, or name a bundle: `tenure-host apply BUNDLE`",
    )
}

pub(super) fn broke_off(panicked: &Panicked) -> Refusal {
    Refusal::new(
        "pass_broke_off",
        format!("the pass broke off: {panicked}"),
        "this is a fault of the host; what was changed before is recorded or planned again",
        "report it with what `journalctl -u tenure-host` shows; the host tries again by itself",
    )
}
