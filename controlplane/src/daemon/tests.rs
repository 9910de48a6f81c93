//! A whole control plane in process, with scripted hosts over real TLS and an operator over the real socket.

mod admitting;
mod altered;
mod assigning;
mod beginning;
mod clock;
mod crashing;
mod crowding;
mod declaring;
mod enrolling;
mod fencing;
mod foreseeing;
mod refusing;
mod reinviting;
mod scripted;
mod secrets;
mod sessions;
mod starting;
mod store_states;
mod tokens;
mod without_key;
