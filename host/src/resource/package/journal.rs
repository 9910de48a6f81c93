//! Where a transaction is noted before it is run. It cannot be repeated at will, since maintainer scripts are in it: it
//! is noted as begun, and as ended once somebody has seen its end.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Each package that a transaction touches, with the version it is to have; none: it is to go.
pub(crate) type Begun = BTreeMap<String, Option<String>>;

/// What was begun, if anything was, as all packages of a pass share it.
pub(crate) type Noted = Option<Arc<Begun>>;

/// It could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unwritten(pub(crate) String);

/// What was begun and not seen to end; never more than one transaction.
pub(crate) trait Journal: Sync {
    /// What was begun, if anything was.
    fn begun(&self) -> Result<Option<Begun>, Unwritten>;

    /// Whether finishing it was tried, and nobody noted that this try is still open.
    fn is_tried(&self) -> Result<bool, Unwritten>;

    /// Notes what is about to be run, in place of what was noted; on the disk before it is answered. `tried`: this is to
    /// finish what was begun, which is refused too where there is hardly room to note its end.
    fn begin(&self, begun: &Begun, tried: bool) -> Result<(), Unwritten>;

    /// Whatever was begun has ended; nothing happens where nothing was.
    fn end(&self) -> Result<(), Unwritten>;
}
