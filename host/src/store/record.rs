//! What the host owns, and what it is about to do. A record is written after a change was read back; an intent before
//! the first change, so that a crash between the two leaves nothing nameless (H-09, H-24).

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};
use tenure_actors::database::DatabaseError;
use tenure_actors::database::rusqlite::{self, OptionalExtension, Row, Transaction, params};
use tenure_protocol::event::NodeEvent;
use tenure_protocol::id::{Digest, Millis};
use tenure_protocol::outcome::Origin;
use tenure_protocol::rescue::OwnedLine;
use tenure_protocol::resource::{DirectorySpec, FileSpec, PackageSpec, Spec, UnitSpec};
use tenure_protocol::wire::codec::encode;

use super::{Store, from_row, look, spool, whole};
use crate::resource::unit::Mask;
use crate::steps;

/// What was there when it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nothing.
    Absent,
    /// A regular file.
    File {
        /// Its permission bits.
        mode: u32,
        /// Its owner.
        uid: u32,
        /// Its group.
        gid: u32,
        /// Its size.
        size: u64,
        /// Of its content.
        sha256: Digest,
    },
    /// A regular file whose content was not read: it is of another size than what is declared.
    Unread {
        /// Its permission bits.
        mode: u32,
        /// Its owner.
        uid: u32,
        /// Its group.
        gid: u32,
        /// Its size.
        size: u64,
    },
    /// A directory.
    Directory {
        /// Its permission bits.
        mode: u32,
        /// Its owner.
        uid: u32,
        /// Its group.
        gid: u32,
    },
    /// A package; installed at this version, if at all.
    Package {
        /// Its version.
        version: Option<String>,
    },
    /// A unit. Of one that is ours only what is declared is kept.
    Unit {
        /// Whether it starts with the machine.
        enabled: Option<bool>,
        /// Whether it runs.
        running: Option<bool>,
        /// Whether it was masked for good; of one that is ours: whether we did that.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        masked: bool,
        /// Which mask we found in place once we had made it; none of what older hosts recorded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mask: Option<Mask>,
        /// What it restarts or reloads on, by key, as it stood when it last did.
        on: BTreeMap<String, Digest>,
    },
}

/// What an intent is about to bring about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    /// This file.
    File(FileSpec),
    /// This directory.
    Directory(DirectorySpec),
    /// This package.
    Package(PackageSpec),
    /// This unit.
    Unit(UnitSpec),
    /// This unit, running anew: a second time would be one too many.
    Restarted {
        /// How it is declared.
        spec: UnitSpec,
        /// When it began to run as it did before, in microseconds since boot.
        began: u64,
        /// What it follows, as it stands now.
        on: BTreeMap<String, Digest>,
    },
    /// It leaves the declaration, and nothing is to be there.
    Gone,
}

impl From<&Spec> for Wanted {
    fn from(spec: &Spec) -> Self {
        match spec {
            Spec::Package(spec) => Self::Package(spec.clone()),
            Spec::File(spec) => Self::File(spec.clone()),
            Spec::Directory(spec) => Self::Directory(spec.clone()),
            Spec::Unit(spec) => Self::Unit(spec.clone()),
        }
    }
}

impl State {
    /// The same, of a unit that follows this.
    pub fn following(self, follows: BTreeMap<String, Digest>) -> Self {
        match self {
            Self::Unit { enabled, running, masked, mask, .. } => {
                Self::Unit { enabled, running, masked, mask, on: follows }
            }
            other => other,
        }
    }

    /// The same, of a unit that we have masked with this.
    pub(crate) fn masked_by_us(self, mask: Option<Mask>) -> Self {
        match self {
            Self::Unit { enabled, running, on, .. } => {
                Self::Unit { enabled, running, masked: true, mask, on }
            }
            other => other,
        }
    }

    /// The same, of a unit that follows what the other one does, and whose mask is whose that one's is.
    pub fn following_as(self, other: &Self) -> Self {
        match other {
            Self::Unit { on, masked, mask, .. } => match self.following(on.clone()) {
                Self::Unit { enabled, running, on, .. } => {
                    Self::Unit { enabled, running, masked: *masked, mask: *mask, on }
                }
                other => other,
            },
            Self::Absent
            | Self::File { .. }
            | Self::Unread { .. }
            | Self::Directory { .. }
            | Self::Package { .. } => self,
        }
    }

    /// The size of what was read; none of what was not, or is no file.
    pub const fn size_read(&self) -> Option<u64> {
        match self {
            Self::File { size, .. } => Some(*size),
            Self::Absent
            | Self::Unread { .. }
            | Self::Directory { .. }
            | Self::Package { .. }
            | Self::Unit { .. } => None,
        }
    }
}

/// A resource that is ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Which.
    pub key: String,
    /// Of which module.
    pub module: String,
    /// How it became ours.
    pub origin: Origin,
    /// What was there before our first change.
    pub earlier: State,
    /// What was read back after our last one.
    pub applied: State,
    /// When it was recorded.
    pub recorded_at: Millis,
}

/// A change that is about to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    /// Of which resource.
    pub key: String,
    /// Of which module.
    pub module: String,
    /// The origin its record will have.
    pub origin: Origin,
    /// What is there now.
    pub earlier: State,
    /// What is to be there.
    pub wanted: Wanted,
    /// The name beside it under which the new thing is written first.
    pub temporary: String,
    /// What somebody else changed of it since it was recorded; told once the change is made, whoever makes it.
    pub drift: Option<String>,
}

impl Store {
    /// Every record, by key.
    pub fn records(&self) -> Result<HashMap<String, Record>, DatabaseError> {
        self.database.read_blocking(|c| {
            let sql = "SELECT key, module, origin, earlier, applied, recorded_at FROM record";
            let mut query = c.prepare_cached(sql)?;
            let records = query.query_map((), |row| record(row).map(|r| (r.key.clone(), r)))?;
            records.collect()
        })
    }

    /// The records of these keys, where there are any.
    pub fn records_of(&self, keys: &[String]) -> Result<HashMap<String, Record>, DatabaseError> {
        self.database.read_blocking(|c| {
            let sql = "SELECT key, module, origin, earlier, applied, recorded_at FROM record WHERE key = ?1";
            let mut query = c.prepare_cached(sql)?;
            let found = keys.iter().filter_map(|key| query.query_row([key], record).optional().transpose());
            found.map(|found| found.map(|record| (record.key.clone(), record))).collect()
        })
    }

    /// The keys of everything that is ours.
    pub fn owned_keys(&self) -> Result<Vec<String>, DatabaseError> {
        self.database.read_blocking(|c| {
            c.prepare_cached("SELECT key FROM record ORDER BY key")?
                .query_map((), |row| row.get(0))?
                .collect()
        })
    }

    /// How many things are ours.
    pub fn owned_count(&self) -> Result<u64, DatabaseError> {
        self.database.read_blocking(|c| {
            c.prepare_cached("SELECT count(*) FROM record")?.query_row((), |row| whole(row, 0))
        })
    }

    /// Up to `limit` records whose key comes after `after`, by key.
    pub fn owned_page(&self, after: Option<&str>, limit: u32) -> Result<Vec<OwnedLine>, DatabaseError> {
        self.database.read_blocking(|c| {
            let sql = "SELECT key, module, origin, earlier, applied, recorded_at FROM record
                WHERE key > ?1 ORDER BY key LIMIT ?2";
            let mut query = c.prepare_cached(sql)?;
            let lines = query.query_map(params![after.unwrap_or(""), limit], |row| {
                let Record { key, module, origin, recorded_at, .. } = record(row)?;
                Ok(OwnedLine { key, module, origin, recorded_at })
            })?;
            lines.collect()
        })
    }

    /// Every change that was begun and neither recorded nor given up.
    pub fn intents(&self) -> Result<Vec<Intent>, DatabaseError> {
        self.database.read_blocking(|c| {
            let sql = "SELECT key, module, origin, earlier, wanted, temporary, drift FROM intent";
            let mut query = c.prepare_cached(sql)?;
            query.query_map((), intent)?.collect()
        })
    }

    /// Whether any change was begun and neither recorded nor given up.
    pub fn has_intents(&self) -> Result<bool, DatabaseError> {
        self.database.read_blocking(|c| c.prepare_cached("SELECT 1 FROM intent LIMIT 1")?.exists(()))
    }

    /// Notes what a pass is about to do, in one transaction; what an earlier pass noted is forgotten, except what is
    /// not settled yet.
    pub fn intend(&self, intents: Vec<Intent>, unsettled: &HashSet<String>) -> Result<(), DatabaseError> {
        if intents.is_empty() {
            return Ok(());
        }
        let unsettled = unsettled.clone();
        self.write(steps::INTENDED, move |t| {
            look::forget(t)?;
            forget_intents(t, &unsettled)?;
            put_intents(t, &intents)
        })
    }

    /// Notes more of what this pass is about to do; what it noted before stays.
    pub fn intend_also(&self, intents: Vec<Intent>) -> Result<(), DatabaseError> {
        if intents.is_empty() {
            return Ok(());
        }
        self.write(steps::INTENDED_ALSO, move |t| {
            look::forget(t)?;
            put_intents(t, &intents)
        })
    }

    /// Records what became ours, forgets what no longer is, and spools what is to be told of it, in one transaction.
    /// The intents of both are done with.
    pub fn record(
        &self,
        ours: Vec<Record>,
        no_longer: Vec<String>,
        events: Vec<NodeEvent>,
    ) -> Result<(), DatabaseError> {
        if ours.is_empty() && no_longer.is_empty() && events.is_empty() {
            return Ok(());
        }
        let step = if no_longer.is_empty() { steps::RECORDED } else { steps::LEFT };
        self.write(step, move |t| {
            look::forget(t)?;
            spool::keep(t, &events)?;
            put_records(t, &ours)?;
            for key in &no_longer {
                t.prepare_cached("DELETE FROM record WHERE key = ?1")?.execute([key])?;
                t.prepare_cached("DELETE FROM intent WHERE key = ?1")?.execute([key])?;
            }
            Ok(())
        })
    }
}

/// Forgets every intent but those of these keys.
pub(super) fn forget_intents(t: &Transaction<'_>, unsettled: &HashSet<String>) -> rusqlite::Result<()> {
    if unsettled.is_empty() {
        return t.prepare_cached("DELETE FROM intent")?.execute(()).map(drop);
    }
    let keys: Vec<String> = t
        .prepare_cached("SELECT key FROM intent")?
        .query_map((), |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for key in keys.iter().filter(|key| !unsettled.contains(*key)) {
        t.prepare_cached("DELETE FROM intent WHERE key = ?1")?.execute([key])?;
    }
    Ok(())
}

fn put_records(t: &Transaction<'_>, records: &[Record]) -> rusqlite::Result<()> {
    let sql = "INSERT INTO record (key, module, origin, earlier, applied, recorded_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
        ON CONFLICT DO UPDATE SET module = excluded.module, origin = excluded.origin, earlier = excluded.earlier,
        applied = excluded.applied, recorded_at = excluded.recorded_at";
    let mut put = t.prepare_cached(sql)?;
    let mut done = t.prepare_cached("DELETE FROM intent WHERE key = ?1")?;
    records.iter().try_for_each(|record| {
        put.execute(params![
            record.key,
            record.module,
            origin_text(record.origin),
            encode(&record.earlier),
            encode(&record.applied),
            record.recorded_at.0
        ])?;
        done.execute([&record.key]).map(drop)
    })
}

fn put_intents(t: &Transaction<'_>, intents: &[Intent]) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO intent (key, module, origin, earlier, wanted, temporary, drift)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let mut put = t.prepare_cached(sql)?;
    intents.iter().try_for_each(|intent| {
        put.execute(params![
            intent.key,
            intent.module,
            origin_text(intent.origin),
            encode(&intent.earlier),
            encode(&intent.wanted),
            intent.temporary,
            intent.drift
        ])
        .map(drop)
    })
}

fn record(row: &Row<'_>) -> rusqlite::Result<Record> {
    Ok(Record {
        key: row.get(0)?,
        module: row.get(1)?,
        origin: origin(row.get_ref(2)?.as_str()?),
        earlier: from_row(row.get_ref(3)?.as_blob()?)?,
        applied: from_row(row.get_ref(4)?.as_blob()?)?,
        recorded_at: Millis(row.get(5)?),
    })
}

fn intent(row: &Row<'_>) -> rusqlite::Result<Intent> {
    Ok(Intent {
        key: row.get(0)?,
        module: row.get(1)?,
        origin: origin(row.get_ref(2)?.as_str()?),
        earlier: from_row(row.get_ref(3)?.as_blob()?)?,
        wanted: from_row(row.get_ref(4)?.as_blob()?)?,
        temporary: row.get(5)?,
        drift: row.get(6)?,
    })
}

const fn origin_text(origin: Origin) -> &'static str {
    match origin {
        Origin::Created => "created",
        Origin::Changed => "changed",
        Origin::AlreadyThere => "already_there",
    }
}

/// A word nobody knows counts as what existed before us: such a thing is never removed.
fn origin(text: &str) -> Origin {
    match text {
        "created" => Origin::Created,
        "changed" => Origin::Changed,
        _ => Origin::AlreadyThere,
    }
}
