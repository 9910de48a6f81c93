//! The catalogue: what people write in a fleet folder, read strictly and rendered into one declaration a node.
//!
//! Everything here is a function of its arguments: no runtime, no clock, no disk. The folder arrives as bytes
//! ([`folder`]), is read whole or refused whole ([`fleet`], [`module`]), is rendered for one node at a time
//! ([`render`]), compared with what was declared before ([`preview`]), and checked for how much it takes away
//! ([`removals`]). Nothing here knows which nodes exist; the caller says so ([`fleet::Fleet::check_nodes`]).
//!
//! Every refusal is written for whoever has the folder open: file, line, column, and the line itself.

pub mod actor;
mod ahead;
mod declare;
mod edges;
pub mod fleet;
pub mod folder;
mod mistake;
pub mod module;
mod own;
mod place;
pub mod preview;
mod reader;
mod refusals;
pub mod removals;
pub mod render;
mod settings;
mod template;

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;
