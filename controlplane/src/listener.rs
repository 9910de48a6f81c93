//! The link's listener: accepts, limits, does TLS, and lets the first frame decide. It never dials, keeps no session,
//! and tells a stranger nothing but `not_proven`. One actor `listener`; each connection is a task until it is a session.

use std::net::SocketAddr;
use std::sync::Arc;

use tenure_actors::{Address, Child};
use tokio::net::TcpListener;

use crate::plane::Plane;

mod actor;
mod admission;
mod greeting;
pub mod holder;
mod parting;
pub(crate) mod pool;

use actor::{Accepting, Msg};
pub use pool::{MOST_INVITED, MOST_PER_SOURCE, MOST_STRANGERS};

/// Where the link is listened on could not be had.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Somebody else listens there.
    #[error("{address} is in use{}", holder.as_ref().map(|holder| format!(" by {holder}")).unwrap_or_default())]
    InUse {
        /// Where.
        address: SocketAddr,
        /// Who, as far as the kernel tells us.
        holder: Option<String>,
    },
    /// The system does not let us.
    #[error("{address} cannot be listened on")]
    Io {
        /// Where.
        address: SocketAddr,
        /// What it said.
        #[source]
        source: std::io::Error,
    },
}

/// Takes the address. A port of 0 becomes one that is free.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, ListenError> {
    TcpListener::bind(address).await.map_err(|source| match source.kind() {
        std::io::ErrorKind::AddrInUse => ListenError::InUse {
            address,
            holder: holder::of(address.port()).map(|holder| holder.to_string()),
        },
        _ => ListenError::Io { address, source },
    })
}

/// The actor for the tree. The socket outlives its restarts.
pub fn child(plane: &Arc<Plane>, socket: &Arc<TcpListener>) -> Child {
    let (plane, socket) = (Arc::clone(plane), Arc::clone(socket));
    Child::new::<Accepting>("listener", Address::<Msg>::vacant(), move || {
        (Accepting, actor::Seed { plane: Arc::clone(&plane), socket: Arc::clone(&socket) })
    })
}
