//! The runtime both daemons stand on: supervision, asking with a deadline, work off the mailbox, timers, the clock,
//! the directory, the watchdog, systemd's notifications, signals, logging and opening SQLite. It knows nothing of nodes.

pub mod address;
pub mod clock;
pub mod database;
pub mod directory;
pub mod log;
pub mod signal;
pub mod supervisor;
pub mod systemd;
pub mod timer;
pub mod watchdog;
pub mod work;

pub use ractor;

pub use address::{Address, AskError, Gone, Reply, answer};
pub use supervisor::{Child, ChildState, Ended, Limits, Restart, StartError, Supervisor};
