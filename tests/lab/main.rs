//! Journeys on real machines, and the proof that the machines are what they seem. Needs root; run by `tests/run lab`.

mod bus;
mod first_node;
mod foreseen;
mod host_store;
mod install;
mod killed;
mod link;
mod machines;
mod managers;
mod own;
mod packages;
mod refused;
mod resources;
mod unit_kinds;
mod units;
mod up_root;
mod volumes;
