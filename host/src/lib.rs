//! The host daemon.

pub mod api;
pub mod bundle;
pub mod cli;
pub mod config;
pub mod daemon;
pub mod enrol;
pub mod ground;
pub mod heartbeat;
pub mod identity;
pub mod link;
pub mod machine;
pub mod manifest;
pub mod outbox;
pub mod program;
pub mod reconcile;
pub mod resource;
pub mod status;
pub mod steps;
pub mod store;
pub mod walk;
