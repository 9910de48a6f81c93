//! The words of the project: every refusal and failure with its code and sentences, each reached by a test, and the
//! shapes of its messages.

#[expect(dead_code, reason = "the way back belongs to the frames")]
#[path = "../frames/examples.rs"]
mod examples;
mod golden;
mod reached;
mod said;
mod shapes;
mod style;
