//! Journeys: what a person does with Tenure, with the programs as they are shipped, in a sandbox without root.

mod adopt;
mod bad_input;
mod disconnected;
mod enrol;
mod fenced;
mod herd;
mod hold;
mod host_disk;
mod host_store;
mod inputs;
mod killed;
mod leave;
mod preview;
mod stores;
mod typed;
mod up;
