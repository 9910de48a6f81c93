//! The tables. A migration is frozen once it was released; it imports nothing of ours.

/// `tnCP`, in the file's header.
pub(super) const APPLICATION_ID: i32 = 0x746e_4350;

pub(super) const MIGRATIONS: &[&str] = &[FIRST];

const FIRST: &str = "
CREATE TABLE control (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    control_plane_id BLOB NOT NULL,
    epoch INTEGER NOT NULL,
    epoch_id BLOB NOT NULL,
    founded_at INTEGER NOT NULL
) STRICT;

CREATE TABLE node (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    uuid BLOB NOT NULL UNIQUE,
    rental TEXT NOT NULL,
    generation INTEGER NOT NULL,
    mode TEXT NOT NULL,
    rejoin TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('enrolling', 'ready', 'lost', 'retired')),
    fencing INTEGER NOT NULL DEFAULT 0,
    key BLOB,
    revoked INTEGER NOT NULL DEFAULT 0,
    invited_at INTEGER NOT NULL,
    enrolled_at INTEGER,
    retired_at INTEGER,
    profile BLOB,
    inventory BLOB,
    briefing BLOB,
    store_id BLOB,
    session_counter INTEGER,
    boot_id BLOB,
    software TEXT,
    session_at INTEGER,
    session_used INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE invitation (
    node INTEGER NOT NULL REFERENCES node (id),
    counter INTEGER NOT NULL,
    token BLOB NOT NULL UNIQUE,
    bytes BLOB NOT NULL,
    expires INTEGER NOT NULL,
    minted_at INTEGER NOT NULL,
    replaced INTEGER NOT NULL DEFAULT 0,
    spent_at INTEGER,
    spent_key BLOB,
    spent_from TEXT,
    PRIMARY KEY (node, counter)
) STRICT, WITHOUT ROWID;

CREATE TABLE bound_key (
    key BLOB PRIMARY KEY,
    node INTEGER NOT NULL REFERENCES node (id),
    fencing INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE contact (
    node INTEGER PRIMARY KEY REFERENCES node (id),
    received_at INTEGER NOT NULL,
    version TEXT,
    disk BLOB NOT NULL
) STRICT;

CREATE TABLE report (
    node INTEGER PRIMARY KEY REFERENCES node (id),
    store_id BLOB NOT NULL,
    pass INTEGER NOT NULL,
    summary BLOB NOT NULL,
    received_at INTEGER NOT NULL,
    received INTEGER NOT NULL,
    whole INTEGER NOT NULL,
    applied BLOB,
    outcomes INTEGER NOT NULL
) STRICT;

CREATE TABLE outcome (
    node INTEGER NOT NULL REFERENCES node (id),
    key TEXT NOT NULL,
    module TEXT NOT NULL,
    outcome TEXT NOT NULL,
    since INTEGER NOT NULL,
    count INTEGER NOT NULL,
    code TEXT,
    reason TEXT,
    pass INTEGER NOT NULL,
    PRIMARY KEY (node, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE event (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB,
    node INTEGER REFERENCES node (id),
    own INTEGER NOT NULL,
    kind TEXT NOT NULL,
    key TEXT,
    text TEXT NOT NULL,
    observed_at INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    -- Of last words alone: the enrolment they are of, which holds no longer.
    enrolment INTEGER
) STRICT;
CREATE INDEX event_of_node ON event (node, seq);
CREATE INDEX last_words_of_node ON event (node, enrolment) WHERE enrolment IS NOT NULL;
-- What a node tells and what we tell about it have ids of their own; what has none is a fact each time.
CREATE UNIQUE INDEX event_once ON event (node, own, id);

-- The newest moment of an event's writing, by our own clock then; none of before the clock was said to be right.
CREATE TABLE newest_write (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    at INTEGER NOT NULL
) STRICT;

CREATE TABLE content (
    id INTEGER PRIMARY KEY,
    sha256 BLOB NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    received INTEGER NOT NULL,
    added_at INTEGER NOT NULL
) STRICT;

CREATE TABLE piece (
    content INTEGER NOT NULL REFERENCES content (id),
    offset INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (content, offset)
) STRICT;

CREATE TABLE declaration (
    node INTEGER NOT NULL REFERENCES node (id),
    epoch INTEGER NOT NULL,
    number INTEGER NOT NULL,
    epoch_id BLOB NOT NULL,
    sha256 BLOB NOT NULL,
    bytes INTEGER NOT NULL,
    resources INTEGER NOT NULL,
    declared_at INTEGER NOT NULL,
    PRIMARY KEY (node, epoch, number)
) STRICT, WITHOUT ROWID;

-- What the newest declaration of a node names: its own bytes and the contents it needs.
CREATE TABLE named_content (
    node INTEGER NOT NULL REFERENCES node (id),
    sha256 BLOB NOT NULL,
    PRIMARY KEY (node, sha256)
) STRICT, WITHOUT ROWID;
CREATE INDEX named_by ON named_content (sha256);
";
