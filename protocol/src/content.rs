//! Content by digest, in pieces that fit a frame: declarations, file contents, fleet folders, plans.

use serde::{Deserialize, Serialize};

use crate::id::{Digest, Revision};

/// The most bytes of one piece.
pub const PIECE: u32 = 128 * 1024;
/// The most bytes that all pieces of one answer may have together, so that it fits a frame.
pub const MOST_IN_AN_ANSWER: usize = 192 * 1024;
/// The most pieces one request may name.
pub const MOST_PIECES: usize = 256;

/// A part of some content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// Which content.
    pub sha256: Digest,
    /// From which byte on.
    pub offset: u64,
}

/// Asks for pieces, in this order. The answer holds as many as fit; the rest is asked for again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fetch {
    /// Which; at most [`MOST_PIECES`].
    #[serde(deserialize_with = "crate::wire::codec::bounded::<_, _, 256>")]
    pub wanted: Vec<Wanted>,
}

/// Pieces, in the order they were asked for; at least one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pieces {
    /// At most [`MOST_PIECES`], at most [`MOST_IN_AN_ANSWER`] bytes together.
    #[serde(deserialize_with = "crate::wire::codec::bounded::<_, _, 256>")]
    pub pieces: Vec<Piece>,
}

/// A run of bytes of some content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// Which content.
    pub sha256: Digest,
    /// Its whole size.
    pub size: u64,
    /// Where these bytes stand in it.
    pub offset: u64,
    /// At most [`PIECE`] bytes; fewer only at the end.
    #[serde(with = "serde_bytes")]
    pub bytes: Vec<u8>,
}

/// Asks which of these are not there yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// At most 2000 at a time.
    #[serde(deserialize_with = "crate::wire::codec::bounded::<_, _, 2000>")]
    pub sha256: Vec<Digest>,
}

/// Those that are not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingAre {
    /// A part of what was asked.
    #[serde(deserialize_with = "crate::wire::codec::bounded::<_, _, 2000>")]
    pub sha256: Vec<Digest>,
}

/// Uploads pieces. Content counts as there once all its bytes are, and their digest is the one named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Put {
    /// At most [`MOST_PIECES`]; the pieces of one content come in order.
    #[serde(deserialize_with = "crate::wire::codec::bounded::<_, _, 256>")]
    pub pieces: Vec<Piece>,
}

/// Tells a node that something newer is declared for it. The host fetches what it lacks and admits it whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Push {
    /// Which revision.
    pub revision: Revision,
    /// The digest of its bytes.
    pub sha256: Digest,
    /// How many bytes they are.
    pub bytes: u64,
    /// How many resources it has.
    pub resources: u64,
}

/// What the host does with a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pushed {
    /// It fetches it now, and reports on it.
    Fetching,
    /// It has this very one.
    Have,
    /// It has a later one, and keeps that.
    HaveLater(Revision),
}
