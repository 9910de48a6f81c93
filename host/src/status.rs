//! What is true here, read from the store: what the daemon answers, and what the command says where no daemon runs.

use tenure_actors::database::DatabaseError;
use tenure_protocol::machine::MachineState;
use tenure_protocol::rescue::{Identity, LinkStatus, StatusIs};
use tenure_protocol::version::SOFTWARE;

use crate::ground::Ground;
use crate::identity::{StoredIdentity, keep};
use crate::link::LinkView;
use crate::store::Store;

/// The status, with what the link says where there is one that can be asked.
pub fn read(
    store: &Store,
    ground: &Ground,
    view: Option<LinkView>,
    store_note: Option<String>,
) -> Result<StatusIs, DatabaseError> {
    let identity: Option<StoredIdentity> = store.identity()?;
    let credential = keep::trouble(ground, identity.as_ref());
    let machine = if identity.is_some() { MachineState::Disconnected } else { MachineState::Hosted };
    let view = view.unwrap_or(LinkView { link: LinkStatus::None, machine });
    Ok(StatusIs {
        machine_state: view.machine,
        version: SOFTWARE.to_owned(),
        store_id: store.store_id(),
        identity: identity.map(shown),
        link: view.link,
        revision: store.declaration()?.map(|declaration| declaration.revision),
        last: store.last_pass()?,
        read_whole: None,
        owned: store.owned_count()?,
        spooled: store.spooled_count()?,
        store_note,
        credential,
        sandbox: ground.is_sandbox(),
    })
}

fn shown(identity: StoredIdentity) -> Identity {
    Identity {
        node: identity.node,
        control_plane_id: identity.control_plane_id,
        addresses: identity.addresses,
        generation: identity.generation,
        fencing: identity.fencing,
        mode: identity.mode,
    }
}
