//! The store's tables. Each step is frozen once it was released; a new one is added behind it.

/// `tenH` in the file's header.
pub(super) const APPLICATION_ID: i32 = 0x7465_6e48;

pub(super) const MIGRATIONS: &[&str] = &[FIRST, SECOND];

/// Outcomes keep the pass in which they began, not a count that would have to be written in every quiet pass.
const FIRST: &str = "
CREATE TABLE fact (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE declaration (
    only_one INTEGER PRIMARY KEY CHECK (only_one = 1),
    revision BLOB NOT NULL, sha256 BLOB NOT NULL, bytes BLOB NOT NULL
) STRICT;
CREATE TABLE content (
    id INTEGER PRIMARY KEY,
    sha256 BLOB NOT NULL UNIQUE, size INTEGER NOT NULL, have INTEGER NOT NULL, complete INTEGER NOT NULL
) STRICT;
CREATE TABLE piece (
    content INTEGER NOT NULL REFERENCES content ON DELETE CASCADE,
    offset INTEGER NOT NULL, bytes BLOB NOT NULL,
    UNIQUE (content, offset)
) STRICT;
CREATE TABLE record (
    key TEXT PRIMARY KEY, module TEXT NOT NULL, origin TEXT NOT NULL,
    earlier BLOB NOT NULL, applied BLOB NOT NULL, recorded_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE intent (
    key TEXT PRIMARY KEY, module TEXT NOT NULL, origin TEXT NOT NULL,
    earlier BLOB NOT NULL, wanted BLOB NOT NULL, temporary TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE outcome (
    key TEXT PRIMARY KEY, module TEXT NOT NULL, outcome BLOB NOT NULL, since INTEGER NOT NULL,
    began INTEGER NOT NULL, code TEXT, reason TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE event (seq INTEGER PRIMARY KEY AUTOINCREMENT, id BLOB NOT NULL UNIQUE, body BLOB NOT NULL) STRICT;
";

/// What somebody else had changed of what a pass is about to change.
const SECOND: &str = "ALTER TABLE intent ADD COLUMN drift TEXT;";
