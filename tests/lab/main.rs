//! Journeys on real machines, and the proof that the machines are what they seem. Needs root; run by `tests/run lab`.

mod first_node;
mod install;
mod link;
mod machines;
mod up_root;
