//! The one place of this crate that does IO: frames of MessagePack over TLS or a local socket, with every limit.
//!
//! [`codec`] turns values into bytes and back, [`frame`] bytes into frames, [`tls`] decides who may be at the other
//! end, [`connection`] sends and receives with deadlines, [`exchange`] lets both sides ask at the same time.

pub mod codec;
pub mod connection;
pub mod exchange;
pub mod frame;
pub mod tls;

pub use connection::{Connection, WireError};
pub use exchange::{CallError, Incoming, Outgoing};
