//! Journeys: what a person does with Tenure, with the programs as they are shipped, in a sandbox without root.

mod adopt;
mod bad_input;
mod disconnected;
mod enrol;
mod hold;
mod killed;
mod leave;
mod up;
