//! Fuzzing without a special toolchain: what is good is changed at random, and whatever comes of it must be read or
//! refused by name, within a second or two and without a panic.
//!
//! The same seed makes the same inputs. `tests/run fuzz [TARGET]` runs longer; `TENURE_FUZZ_SEED` and
//! `TENURE_FUZZ_ITERATIONS` say from where and how long. What was found became a test of its own, beside what it broke.

mod change;
mod declarations;
mod folders;
#[path = "../frames/examples.rs"]
mod frame_examples;
mod frames;
mod run;
mod tokens;
