//! The embedded store: SQLite through the kit's one writer. Each method is one transaction of its own; the statements
//! lie in the folder, by what they are about.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::{Connection, Transaction};
use tenure_actors::Child;
use tenure_actors::crash::Step;
use tenure_actors::database::{Check, Create, Database, DatabaseError, OpenError, Opening, rusqlite};
use tenure_protocol::content::{Piece, Wanted};
use tenure_protocol::event::{Listed, NodeEvent};
use tenure_protocol::id::{Digest, EventId, FencingToken, Millis, NodeId, StoreId};
use tenure_protocol::machine::NodeState;
use tenure_protocol::outcome::ResourceOutcome;
use tenure_protocol::proof::PublicKey;
use tenure_protocol::report::Part;

use super::upload::{MOST_SHOWN, MOST_UNNAMED};
use super::{
    Attempt, Contact, DeclaredRecord, Fact, Founding, InvitationRecord, NewDeclaration, NewNode, NewToken,
    NodeRecord, NodeSummary, NotDeclared, NotPut, PartStored, Pending, Redeemed, SessionFacts, Store,
    StoreError,
};
use crate::bounds;
use crate::ground::Ground;
use crate::steps;

mod content;
mod declared;
mod events;
mod health;
mod identity;
mod lists;
mod redemption;
mod report;
mod room;
mod rows;
mod saving;
mod schema;
mod watch;

use health::Health;
use room::Room;

/// The embedded store.
#[derive(Debug, Clone)]
pub struct Sqlite {
    database: Database,
    room: Arc<Room>,
    health: Arc<Health>,
    path: Arc<Path>,
    /// What this process alone still has was saved, since the store's file was removed.
    saved: Arc<AtomicBool>,
}

impl Sqlite {
    /// Opens the store of this ground. `create`: it may be made, since nothing promises that there is one.
    pub fn open(ground: &Ground, create: Create) -> Result<Self, OpenError> {
        let path = ground.store();
        let database = Database::open(Opening {
            path: &path,
            application_id: schema::APPLICATION_ID,
            migrations: schema::MIGRATIONS,
            create,
            cache_kib: 32 * 1024,
            readers: 4,
            check: Check::Before,
        })?;
        let (room, health, saved) = (Arc::default(), Arc::default(), Arc::default());
        Ok(Self { database, room, health, path: path.into(), saved })
    }

    /// Makes the changes that are queued and closes the store; blocks until then.
    pub fn close(self) {
        self.database.close();
    }

    /// The actor that looks after it.
    pub fn child(&self) -> Child {
        watch::child(self.clone())
    }

    /// Finds out how the store is; its health says what is new. Where it was unwell, only a change that reached the
    /// disk shows that it is well: the number of the schema is written over itself.
    async fn look(&self) {
        let well = self.health.is_well();
        let touch = move |tx: &Transaction<'_>| {
            if well {
                return Ok(());
            }
            let number: i64 = tx.query_row("PRAGMA user_version", (), |row| row.get(0))?;
            tx.pragma_update(None, "user_version", number)
        };
        // What it answers is told by its health.
        match self.write(touch).await {
            Err(StoreError::Removed | StoreError::Replaced) if !self.saved.swap(true, Ordering::Relaxed) => {
                let (database, path) = (self.database.clone(), Arc::clone(&self.path));
                drop(tokio::task::spawn_blocking(move || saving::save(&database, &path)).await);
            }
            Ok(()) => self.saved.store(false, Ordering::Relaxed),
            Err(_) => {}
        }
    }

    fn write<'a, T: Send + 'static>(
        &'a self,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Pending<'a, T> {
        Box::pin(async move {
            let answer = self.database.write(change).await.map_err(StoreError::from);
            self.health.saw(&answer);
            answer
        })
    }

    /// The same, as one of the steps a death may come between.
    fn step<'a, T: Send + 'static>(
        &'a self,
        step: Step,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Pending<'a, T> {
        Box::pin(step.awaited(self.write(change)))
    }

    fn read<'a, T: Send + 'static>(
        &'a self,
        look: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Pending<'a, T> {
        Box::pin(async move {
            let answer = self.database.read(look).await.map_err(StoreError::from);
            if answer.as_ref().is_err_and(|error| *error == StoreError::Damaged) {
                self.health.saw(&answer);
            }
            answer
        })
    }
}

impl From<DatabaseError> for StoreError {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::Full => Self::Full,
            DatabaseError::ReadOnly => Self::ReadOnly,
            DatabaseError::Damaged => Self::Damaged,
            DatabaseError::Failing => Self::Failing,
            DatabaseError::Busy => Self::Busy,
            DatabaseError::Removed | DatabaseError::LogRemoved => Self::Removed,
            DatabaseError::Replaced => Self::Replaced,
            DatabaseError::Unmounted => Self::Unmounted,
            DatabaseError::Closed => Self::Closed,
            DatabaseError::Sql(error) => Self::Fault(tenure_protocol::text::shown(&error.to_string(), 200)),
        }
    }
}

impl Store for Sqlite {
    fn founding(&self) -> Pending<'_, Option<Founding>> {
        self.read(identity::founding)
    }

    fn found(&self, founding: Founding, now: Millis) -> Pending<'_, Founding> {
        self.step(steps::FOUNDED, move |tx| identity::found(tx, founding, now))
    }

    fn names(&self, after: Option<NodeId>, most: u32) -> Pending<'_, Vec<(NodeId, NodeState)>> {
        self.read(move |db| lists::names(db, after.as_ref(), most))
    }

    fn node(&self, node: NodeId) -> Pending<'_, Option<NodeRecord>> {
        self.read(move |db| identity::node(db, &node))
    }

    fn summaries(&self, after: Option<NodeId>, most: u32) -> Pending<'_, Vec<NodeSummary>> {
        self.read(move |db| lists::summaries(db, after.as_ref(), most))
    }

    fn summary(&self, node: NodeId) -> Pending<'_, Option<NodeSummary>> {
        self.read(move |db| lists::summary(db, &node))
    }

    fn invite(&self, new: NewNode, now: Millis) -> Pending<'_, bool> {
        self.step(steps::INVITED, move |tx| identity::invite(tx, &new, now))
    }

    fn invitation(&self, node: NodeId) -> Pending<'_, Option<InvitationRecord>> {
        self.read(move |db| identity::newest_invitation(db, &node))
    }

    fn reinvite(
        &self,
        node: NodeId,
        token: Option<NewToken>,
        revoke: bool,
        now: Millis,
    ) -> Pending<'_, bool> {
        self.step(steps::REINVITED, move |tx| identity::reinvite(tx, &node, token.as_ref(), revoke, now))
    }

    fn redeem(&self, attempt: Attempt) -> Pending<'_, Redeemed> {
        self.step(steps::REDEEMED, move |tx| redemption::redeem(tx, &attempt))
    }

    fn bound_key(&self, node: NodeId, fencing: FencingToken) -> Pending<'_, Option<PublicKey>> {
        self.read(move |db| redemption::bound_key(db, &node, fencing))
    }

    fn session_opened(&self, node: NodeId, facts: SessionFacts, now: Millis) -> Pending<'_, ()> {
        self.step(steps::SESSION_OPENED, move |tx| identity::session_opened(tx, &node, &facts, now))
    }

    fn session_used(&self, node: NodeId, fencing: FencingToken) -> Pending<'_, ()> {
        self.step(steps::SESSION_USED, move |tx| identity::session_used(tx, &node, fencing))
    }

    fn marked(&self, node: NodeId, state: NodeState, text: String, now: Millis) -> Pending<'_, bool> {
        self.step(steps::MARKED, move |tx| identity::marked(tx, &node, state, &text, now))
    }

    fn retire(&self, node: NodeId, now: Millis) -> Pending<'_, Option<bool>> {
        self.step(steps::RETIRED, move |tx| identity::retire(tx, &node, now))
    }

    fn contacts(&self, contacts: Vec<(NodeId, Contact)>) -> Pending<'_, ()> {
        self.step(steps::CONTACTS, move |tx| identity::contacts(tx, &contacts))
    }

    fn report(&self, node: NodeId, store_id: StoreId, part: Part, now: Millis) -> Pending<'_, PartStored> {
        Box::pin(async move {
            let part = Part { summary: bounds::summary(part.summary), ..part };
            let (of, summary) = (node.clone(), part.summary.clone());
            let written =
                self.step(steps::REPORTED, move |tx| report::part(tx, &of, store_id, &part, now)).await?;
            let report::Written::Stored(stored) = written else {
                // Many outcomes take a while to read: not while everybody waits to write.
                let of = node.clone();
                if self.read(move |db| report::copy(db, &of)).await? != summary.digest {
                    return Ok(PartStored::Differs);
                }
                return self
                    .step(steps::REPORT_SETTLED, move |tx| report::settled(tx, &node, store_id, &summary))
                    .await;
            };
            Ok(stored)
        })
    }

    fn outcomes(&self, node: NodeId, after: Option<String>, most: u32) -> Pending<'_, Vec<ResourceOutcome>> {
        self.read(move |db| report::outcomes(db, &node, after.as_deref(), most))
    }

    fn node_events(&self, node: NodeId, events: Vec<NodeEvent>, now: Millis) -> Pending<'_, Vec<EventId>> {
        self.step(steps::EVENTS_STORED, move |tx| events::of_node(tx, &node, &events, now))
    }

    fn last_words(
        &self,
        node: NodeId,
        enrolment: FencingToken,
        mark: String,
        events: Vec<NodeEvent>,
        now: Millis,
    ) -> Pending<'_, Option<Vec<EventId>>> {
        Box::pin(async move {
            // Whoever comes again and again without room must not occupy the one writer.
            let of = node.clone();
            if self.read(move |db| events::room_for_last_words(db, &of, enrolment)).await? == 0 {
                return Ok(None);
            }
            let words =
                move |tx: &Transaction<'_>| events::last_words(tx, &node, enrolment, &mark, events, now);
            self.step(steps::LAST_WORDS, words).await
        })
    }

    fn tell(&self, facts: Vec<Fact>, now: Millis) -> Pending<'_, ()> {
        self.step(steps::TOLD, move |tx| facts.iter().try_for_each(|fact| events::tell(tx, fact, now)))
    }

    fn events(&self, after: Option<u64>, node: Option<NodeId>, most: u32) -> Pending<'_, Vec<Listed>> {
        self.read(move |db| events::page(db, after, node.as_ref(), most))
    }

    fn missing(&self, contents: Vec<Digest>) -> Pending<'_, Vec<Digest>> {
        self.read(move |db| content::missing(db, &contents))
    }

    fn put(&self, pieces: Vec<Piece>, now: Millis) -> Pending<'_, Result<(), NotPut>> {
        let room = Arc::clone(&self.room);
        self.step(steps::CONTENT_PUT, move |tx| content::put(tx, &room, &pieces, now))
    }

    fn keep(&self, contents: Vec<Vec<u8>>, now: Millis) -> Pending<'_, bool> {
        let room = Arc::clone(&self.room);
        self.step(steps::CONTENT_KEPT, move |tx| content::keep_below(MOST_UNNAMED, tx, &room, &contents, now))
    }

    fn lay_aside(&self, sets: Vec<Vec<Vec<u8>>>, now: Millis) -> Pending<'_, usize> {
        let room = Arc::clone(&self.room);
        self.step(steps::CONTENT_KEPT, move |tx| content::lay_aside(tx, &room, &sets, now))
    }

    fn keep_plan(&self, document: Vec<u8>, now: Millis) -> Pending<'_, bool> {
        let room = Arc::clone(&self.room);
        self.step(steps::CONTENT_KEPT, move |tx| content::keep_below(MOST_SHOWN, tx, &room, &[document], now))
    }

    fn newest_stamp(&self) -> Pending<'_, Millis> {
        self.read(events::newest_stamp)
    }

    fn content(&self, sha256: Digest) -> Pending<'_, Option<Vec<u8>>> {
        self.read(move |db| content::whole(db, sha256))
    }

    fn pieces(&self, wanted: Vec<Wanted>, of: Option<NodeId>) -> Pending<'_, Result<Vec<Piece>, Digest>> {
        self.read(move |db| content::pieces(db, &wanted, of.as_ref()))
    }

    fn sweep(&self, before: Millis) -> Pending<'_, u64> {
        self.step(steps::CONTENT_SWEPT, move |tx| content::sweep(tx, before))
    }

    fn declared(&self, node: NodeId) -> Pending<'_, Option<DeclaredRecord>> {
        self.read(move |db| declared::newest(db, &node))
    }

    fn declare(
        &self,
        declarations: Vec<NewDeclaration>,
        contents: Vec<Vec<u8>>,
        now: Millis,
    ) -> Pending<'_, Result<(), NotDeclared>> {
        self.step(steps::DECLARED, move |tx| declared::declare(tx, &declarations, &contents, now))
    }
}
