//! Everything of Tenure that crosses a wire or meets an operator: ids, the declaration and its resources, outcomes
//! and reports, enrolment and session, operator messages, refusals, and (in [`wire`]) the one place that does IO.
//!
//! Nothing here knows a runtime, a database, a file or a process. Values are parsed once, at the edge; inside, a
//! value is valid by its type.

#[cfg(feature = "command-line")]
pub mod command_line;
pub mod content;
pub mod declaration;
pub mod enrolment;
pub mod envelope;
pub mod event;
pub mod foresight;
pub mod id;
pub mod kind;
pub mod machine;
pub mod manifest;
pub mod operator;
pub mod outcome;
pub mod path;
pub mod profile;
pub mod proof;
pub mod refusal;
pub mod report;
pub mod rescue;
pub mod resource;
pub mod secret;
pub mod session;
pub mod text;
pub mod token;
pub mod version;
pub mod wire;
