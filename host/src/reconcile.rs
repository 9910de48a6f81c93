//! Holding the machine in its declared state: what may be admitted, what is to be done, and doing it. The pure steps
//! (`admit`, `plan`, `hold`) know no disk; `apply` changes what they decided; `pass` is one run of the whole on a
//! worker thread.

mod actor;
pub mod admit;
mod agenda;
mod apply;
mod attempt;
mod book;
pub mod foresee;
pub mod hold;
pub mod intake;
mod item;
mod kept;
mod lane;
pub mod leave;
mod memory;
mod packages;
mod part;
pub mod pass;
mod patience;
mod perform;
mod places;
pub mod plan;
mod queue;
mod quiet;
mod recover;
mod release;
mod reread;
mod standing;
mod survey;
mod trigger;
mod turn;
mod units;
mod written;

pub use actor::{Reconcile, Setting};
pub use memory::{Memory, SharedMemory};
pub use turn::by_hand;
pub(crate) use turn::{not_understood, nothing_to_hold, unreadable};
