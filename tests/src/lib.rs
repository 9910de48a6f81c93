//! The harness of the tests: the project's own tree, programs in a sandbox, machines in the lab. Nothing imports it.

#![expect(
    clippy::disallowed_methods,
    reason = "the harness is the one place of the tests that starts programs and looks at the clock"
)]

pub mod disk;
pub mod herd;
pub mod lab;
pub mod program;
pub mod sandbox;
pub mod secrets;
pub mod tree;
pub mod wait;
