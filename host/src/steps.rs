//! Every durable step of the host, by name: what is on the disk, on the machine or with the control plane after it, and
//! was not before. A test kills the host before and after each, and looks whether the next start converges (H-09). A
//! step that is added is added to its list too; the test says so when it is not.
//!
//! What is no step: room kept for a full disk, a lock's own line, directories that are made where they are not, and the
//! removal of temporary names; of these nothing is told, and whoever starts next makes them or does without.

use tenure_actors::crash::Step;

/// A store that is made: under its name, with its tables.
pub use tenure_actors::database::CREATED as STORE_CREATED;

/// The first rows of a store: its id, and what was lost with the one before.
pub const STORE_BEGUN: Step = Step::named("store.begun");
/// That the log of a store is gone, before the store is opened without it.
pub const LOG_MISSED: Step = Step::named("store.log_missed");
/// That is in the store, and noted beside it no more.
pub const LOG_TOLD: Step = Step::named("store.log_told");
/// A part of a damaged store, under another name.
pub const STORE_ASIDE: Step = Step::named("store.aside");
/// The copy of a store that somebody removed, in its place.
pub const STORE_BACK: Step = Step::named("store.back");

/// A node key, written beside and synced.
pub const KEY_WRITTEN: Step = Step::named("key.written");
/// It has its name as the pending one.
pub const KEY_PENDING: Step = Step::named("key.pending");
/// It is the standing one.
pub const KEY_STANDING: Step = Step::named("key.standing");
/// The token is redeemed, and the answer is here.
pub const TOKEN_REDEEMED: Step = Step::named("token.redeemed");
/// The identity, which is the commit of an enrolment.
pub const IDENTITY: Step = Step::named("identity");
/// Its copy beside the key, written and synced.
pub const IDENTITY_WRITTEN: Step = Step::named("identity.written");
/// That copy has its name.
pub const IDENTITY_COPIED: Step = Step::named("identity.copied");
/// The node manifest, written beside and synced.
pub const MANIFEST_WRITTEN: Step = Step::named("manifest.written");
/// It has its name.
pub const MANIFEST_PLACED: Step = Step::named("manifest.placed");

/// The number of a session.
pub const SESSION_NUMBERED: Step = Step::named("session.numbered");
/// The control plane's clock.
pub const TIME_TOLD: Step = Step::named("session.time");
/// The token of a session.
pub const TOKEN_NOTED: Step = Step::named("session.token");
/// The address that led to the control plane.
pub const ADDRESS_NOTED: Step = Step::named("session.address");

/// Pieces of content.
pub const CONTENT_KEPT: Step = Step::named("content.kept");
/// A declaration that was admitted.
pub const DECLARATION_KEPT: Step = Step::named("declaration.kept");
/// The content that only the one before needed is dropped.
pub const CONTENT_DROPPED: Step = Step::named("content.dropped");

/// What a pass is about to do.
pub const INTENDED: Step = Step::named("intended");
/// More of it.
pub const INTENDED_ALSO: Step = Step::named("intended.also");
/// What became ours.
pub const RECORDED: Step = Step::named("recorded");
/// What no longer is.
pub const LEFT: Step = Step::named("left");
/// What a pass came to: its outcomes, and what is to be told.
pub const PASS_KEPT: Step = Step::named("pass.kept");

/// A file is there under its temporary name, empty.
pub const FILE_MADE: Step = Step::named("file.made");
/// Its bytes are in it.
pub const FILE_FILLED: Step = Step::named("file.filled");
/// It has its owner and mode.
pub const FILE_GIVEN: Step = Step::named("file.given");
/// It is synced.
pub const FILE_SYNCED: Step = Step::named("file.synced");
/// A directory is there under its temporary name.
pub const DIRECTORY_MADE: Step = Step::named("directory.made");
/// It has its owner and mode, and is synced.
pub const DIRECTORY_GIVEN: Step = Step::named("directory.given");
/// A new file has its name, where nothing was.
pub const FILE_PLACED: Step = Step::named("file.placed");
/// A new directory has its name.
pub const DIRECTORY_PLACED: Step = Step::named("directory.placed");
/// A new file has taken the place of the one before.
pub const FILE_REPLACED: Step = Step::named("file.replaced");
/// A file stands with another owner or mode.
pub const FILE_SET: Step = Step::named("file.set");
/// A directory does.
pub const DIRECTORY_SET: Step = Step::named("directory.set");
/// A file is gone.
pub const FILE_REMOVED: Step = Step::named("file.removed");
/// A directory is gone.
pub const DIRECTORY_REMOVED: Step = Step::named("directory.removed");
/// A directory in which something was placed or removed is synced.
pub const PLACE_SYNCED: Step = Step::named("place.synced");

/// A part of a report was told and taken.
pub const REPORT_TOLD: Step = Step::named("report.told");
/// How far reports were told.
pub const REPORT_NOTED: Step = Step::named("report.noted");
/// Events were told and taken.
pub const EVENTS_TOLD: Step = Step::named("events.told");
/// What was taken of them is dropped here.
pub const EVENTS_DROPPED: Step = Step::named("events.dropped");

/// A package transaction that is about to be run.
pub const PACKAGES_NOTED: Step = Step::named("packages.noted");
/// The package manager has done what it was asked.
pub const PACKAGES_CHANGED: Step = Step::named("packages.changed");
/// It has ended, and is noted no more.
pub const PACKAGES_FORGOTTEN: Step = Step::named("packages.forgotten");
/// A unit was enabled, disabled, started, stopped, restarted or reloaded.
pub const UNIT_ACTED: Step = Step::named("unit.acted");
/// That unit files are about to be changed, which the service manager will have to read.
pub const UNITS_NOTED: Step = Step::named("units.noted");
/// The service manager has read its unit files.
pub const UNITS_READ: Step = Step::named("units.read");
/// It has read all of them, and that is noted no more.
pub const UNITS_FORGOTTEN: Step = Step::named("units.forgotten");

/// What every host passes on its way, also in a folder.
pub const STEPS: [Step; 45] = [
    STORE_CREATED,
    STORE_BEGUN,
    LOG_MISSED,
    LOG_TOLD,
    STORE_ASIDE,
    STORE_BACK,
    KEY_WRITTEN,
    KEY_PENDING,
    KEY_STANDING,
    TOKEN_REDEEMED,
    IDENTITY,
    IDENTITY_WRITTEN,
    IDENTITY_COPIED,
    MANIFEST_WRITTEN,
    MANIFEST_PLACED,
    SESSION_NUMBERED,
    TIME_TOLD,
    TOKEN_NOTED,
    ADDRESS_NOTED,
    CONTENT_KEPT,
    DECLARATION_KEPT,
    CONTENT_DROPPED,
    INTENDED,
    INTENDED_ALSO,
    RECORDED,
    LEFT,
    PASS_KEPT,
    FILE_MADE,
    FILE_FILLED,
    FILE_GIVEN,
    FILE_SYNCED,
    DIRECTORY_MADE,
    DIRECTORY_GIVEN,
    FILE_PLACED,
    DIRECTORY_PLACED,
    FILE_REPLACED,
    FILE_SET,
    DIRECTORY_SET,
    FILE_REMOVED,
    DIRECTORY_REMOVED,
    PLACE_SYNCED,
    REPORT_TOLD,
    REPORT_NOTED,
    EVENTS_TOLD,
    EVENTS_DROPPED,
];

/// What a machine passes besides, where it has a package manager and a service manager.
pub const STEPS_OF_A_MACHINE: [Step; 7] = [
    PACKAGES_NOTED,
    PACKAGES_CHANGED,
    PACKAGES_FORGOTTEN,
    UNIT_ACTED,
    UNITS_NOTED,
    UNITS_READ,
    UNITS_FORGOTTEN,
];
