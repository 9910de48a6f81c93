//! A hostile wire, against the programs as they are shipped: each attack costs at most its own connection and a stated
//! amount of memory, whoever behaves well beside it goes on working, and every refusal has a name.

mod bytes;
mod cli;
mod crowd;
mod deaf;
mod doors;
mod impostor;
mod link;
mod memory;
mod reader;
mod sockets;
mod strangers;
mod tokens;
mod witness;
