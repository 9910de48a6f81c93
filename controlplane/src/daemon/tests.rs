//! A whole control plane in process, with scripted hosts over real TLS and an operator over the real socket.

mod assigning;
mod crashing;
mod crowding;
mod declaring;
mod enrolling;
mod reinviting;
mod scripted;
mod secrets;
mod sessions;
mod starting;
mod store_states;
