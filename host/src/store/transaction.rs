//! The package transaction that was begun and of which nobody has seen the end. It is noted before it is run and
//! forgotten after it ended, so that what a power cut left half done is known to be ours to finish (H-09, O-11).

use tenure_actors::database::DatabaseError;
use tenure_protocol::refusal::chain;
use tenure_protocol::wire::codec::encode;

use super::{LEAST_ROOM, Store, StoreTrouble, look, set_fact};
use crate::resource::package::{Begun, Journal, Unwritten};
use crate::steps;

pub(super) const TRANSACTION: &str = "package_transaction";
/// Beside it once finishing it was tried; what older hosts noted has none.
const TRIED: &str = "package_transaction_tried";

impl Store {
    /// The transaction that was begun and not seen to end, if there is one.
    pub(crate) fn begun_transaction(&self) -> Result<Option<Begun>, DatabaseError> {
        self.fact(TRANSACTION)
    }
}

impl Journal for Store {
    fn begun(&self) -> Result<Option<Begun>, Unwritten> {
        self.begun_transaction().map_err(unwritten)
    }

    fn is_tried(&self) -> Result<bool, Unwritten> {
        self.fact(TRIED).map(Option::unwrap_or_default).map_err(unwritten)
    }

    fn begin(&self, begun: &Begun, tried: bool) -> Result<(), Unwritten> {
        if let Some(left) = self.room().filter(|left| tried && *left < LEAST_ROOM) {
            return Err(Unwritten(StoreTrouble::no_room(left).refusal.happened));
        }
        let (bytes, tried) = (encode(begun), encode(&tried));
        self.write(steps::PACKAGES_NOTED, move |t| {
            look::forget(t)?;
            set_fact(t, TRANSACTION, &bytes)?;
            set_fact(t, TRIED, &tried)
        })
        .map_err(unwritten)
    }

    fn end(&self) -> Result<(), Unwritten> {
        self.write(steps::PACKAGES_FORGOTTEN, |t| {
            let sql = "DELETE FROM fact WHERE name IN (?1, ?2)";
            t.prepare_cached(sql)?.execute([TRANSACTION, TRIED]).map(drop)
        })
        .map_err(unwritten)
    }
}

fn unwritten(error: DatabaseError) -> Unwritten {
    Unwritten(chain(&error))
}
