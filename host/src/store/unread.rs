//! That the service manager has unit files to read anew. It is noted before the first of them is changed and forgotten
//! once it has read them, so that a host that dies in between leaves it to the next one (H-09).

use tenure_actors::database::DatabaseError;
use tenure_protocol::wire::codec::encode;

use super::{Store, look, set_fact};
use crate::steps;

pub(super) const UNREAD: &str = "unit_files_unread";

impl Store {
    /// Whether unit files were changed, or were about to be, and nobody has seen the service manager read them since.
    pub(crate) fn has_unread_units(&self) -> Result<bool, DatabaseError> {
        self.fact(UNREAD).map(Option::unwrap_or_default)
    }

    /// Unit files are about to be changed.
    pub(crate) fn note_unread_units(&self) -> Result<(), DatabaseError> {
        self.write(steps::UNITS_NOTED, |t| {
            look::forget(t)?;
            set_fact(t, UNREAD, &encode(&true))
        })
    }

    /// The service manager has read them all.
    pub(crate) fn forget_unread_units(&self) -> Result<(), DatabaseError> {
        self.write(steps::UNITS_FORGOTTEN, |t| {
            t.prepare_cached("DELETE FROM fact WHERE name = ?1")?.execute([UNREAD]).map(drop)
        })
    }
}
