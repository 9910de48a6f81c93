//! The durable steps of the control plane, by name: what is on its disk after it, and was not before. A test kills it
//! before and after each, and looks whether nothing it answered is lost and the next start goes on (O-64). A step that
//! is added is added to the list too; the test says so when it is not.
//!
//! One write is no step: the copy that is saved beside a store which somebody removed under the running control plane.
//! Before it only that process has the store, so that a death there is the loss of what was removed.

use tenure_actors::crash::Step;

/// A store that is made: under its name, with its tables.
pub use tenure_actors::database::CREATED as STORE_CREATED;

/// A key, written beside and synced.
pub const KEY_WRITTEN: Step = Step::named("key.written");
/// It has its name.
pub const KEY_PLACED: Step = Step::named("key.placed");
/// Who this control plane is.
pub const FOUNDED: Step = Step::named("founded");

/// An identity is reserved, with its token.
pub const INVITED: Step = Step::named("invited");
/// A token takes the place of the one before, or an enrolment is ended by hand.
pub const REINVITED: Step = Step::named("reinvited");
/// A token is redeemed: key, fencing token and event in one.
pub const REDEEMED: Step = Step::named("redeemed");
/// A session opened.
pub const SESSION_OPENED: Step = Step::named("session.opened");
/// Its host spoke on it.
pub const SESSION_USED: Step = Step::named("session.used");
/// A standing is withdrawn.
pub const RETIRED: Step = Step::named("retired");

/// Pieces of content that an operator brings.
pub const CONTENT_PUT: Step = Step::named("content.put");
/// Whole contents of our own.
pub const CONTENT_KEPT: Step = Step::named("content.kept");
/// What nothing names is dropped.
pub const CONTENT_SWEPT: Step = Step::named("content.swept");
/// Declarations, with the contents they bring.
pub const DECLARED: Step = Step::named("declared");

/// A part of a report.
pub const REPORTED: Step = Step::named("reported");
/// Its pass is whole.
pub const REPORT_SETTLED: Step = Step::named("report.settled");
/// Events of a node.
pub const EVENTS_STORED: Step = Step::named("events.stored");
/// Last events of an enrolment that holds no longer.
pub const LAST_WORDS: Step = Step::named("last_words");
/// An event of our own.
pub const TOLD: Step = Step::named("told");
/// A lease ended, or runs again.
pub const MARKED: Step = Step::named("marked");
/// When nodes were last heard, and what they said.
pub const CONTACTS: Step = Step::named("contacts");

/// Every one of them that is passed between the first start and a retirement.
pub const STEPS: [Step; 21] = [
    STORE_CREATED,
    KEY_WRITTEN,
    KEY_PLACED,
    FOUNDED,
    INVITED,
    REINVITED,
    REDEEMED,
    SESSION_OPENED,
    SESSION_USED,
    RETIRED,
    CONTENT_PUT,
    CONTENT_KEPT,
    CONTENT_SWEPT,
    DECLARED,
    REPORTED,
    REPORT_SETTLED,
    EVENTS_STORED,
    LAST_WORDS,
    TOLD,
    MARKED,
    CONTACTS,
];
