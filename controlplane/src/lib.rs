//! The control plane: the authority over node identities, their standing, what is declared for them, and what they
//! report. It dials nobody; hosts come to its [`listener`], operators to its [`api`].
//!
//! [`daemon`] builds the tree and is what `bin/tenure-control` runs. [`plane`] is what all parts of it share. A
//! decision (`redeem`, `recognise`, the catalogue's rendering) is a pure function beside the actor that calls it.

pub mod api;
pub mod bounds;
pub mod briefing;
pub mod catalogue;
pub mod cli;
pub mod config;
pub mod contacts;
pub mod daemon;
pub mod fleet;
pub mod ground;
pub mod keys;
pub mod lease;
pub mod listener;
pub mod losses;
pub mod node;
pub mod plane;
pub mod presence;
pub mod reconcile;
pub mod session;
pub mod steps;
pub mod store;
pub mod sweeper;
