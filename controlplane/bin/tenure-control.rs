//! A program of Tenure.
fn main() {}
