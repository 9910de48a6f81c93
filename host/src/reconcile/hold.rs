//! What is kept as found. Pure: on an adopted node whatever is present at a declared place with no record
//! of ours is found, and is kept until the module that declares it is taken.

use std::collections::HashMap;

use tenure_protocol::declaration::Header;
use tenure_protocol::id::ModuleName;
use tenure_protocol::machine::Mode;
use tenure_protocol::outcome::Origin;
use tenure_protocol::resource::Resource;

use super::plan::Sight;
use crate::resource::unit::Active;
use crate::resource::{Seen, Trouble};
use crate::store::Record;

/// Whether what this module finds is kept.
pub fn keeps_found(header: &Header, module: &ModuleName) -> bool {
    match header.mode {
        Mode::Adopted => !header.taken.contains(module),
        Mode::Converged => false,
    }
}

/// Whether what is seen of this very resource is kept, if it is not ours.
pub(super) fn keeps(
    header: &Header,
    resource: &Resource,
    sight: &Result<Sight, Trouble>,
    records: &HashMap<String, Record>,
) -> bool {
    keeps_found(header, &resource.module) && !is_unit_of_ours(sight, records)
}

/// Whether this very thing is kept: it is there, in whatever form, and is not ours.
pub fn is_held(keeps_found: bool, is_ours: bool, seen: &Seen) -> bool {
    keeps_found && !is_ours && seen.is_there()
}

/// Whether a unit that is there is one whose file we created, and nobody has it run or start with the machine: neither
/// its content nor its state was found.
fn is_unit_of_ours(sight: &Result<Sight, Trouble>, records: &HashMap<String, Record>) -> bool {
    let Ok(Sight { seen: Seen::Unit(shown), .. }) = sight else { return false };
    let file = records.get(&format!("file:{}", shown.fragment));
    let created = file.is_some_and(|record| record.origin == Origin::Created);
    created && !shown.is_enabled() && shown.active == Active::Inactive
}

/// How it is said.
pub(super) fn reason(seen: &Seen) -> String {
    match seen {
        Seen::Link { to } => format!("found before us and kept: a link to {to}"),
        Seen::Package { version: Some(version), .. } => {
            format!("found before us and kept until its module is taken: installed at {version}")
        }
        Seen::Nothing
        | Seen::File { .. }
        | Seen::Directory(_)
        | Seen::Other { .. }
        | Seen::Package { .. }
        | Seen::Unit(_) => "found before us and kept until its module is taken".to_owned(),
    }
}
