//! What one frame holds: a request to an address, the answer to one, or an event nobody answers. The body is opaque
//! here, so that an unknown kind can be refused by name without being read.

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use crate::refusal::Refusal;

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// Somebody wants something.
    Request(Request),
    /// What became of it.
    Answer(Answer),
    /// A fact that is told.
    Event(Event),
}

/// `{to, id, kind, body}`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Whom it is for, as in `node/edge-1`. On the link it is never believed: there the node is the session's (S-02).
    pub to: String,
    /// Names it among those that wait for an answer on this connection; never zero.
    pub id: u64,
    /// Its kind.
    pub kind: String,
    /// Its body, not yet read.
    pub body: Vec<u8>,
}

/// `{re, ok | refusal}`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The id of the request it answers.
    pub re: u64,
    /// The body of the answer, not yet read, or why there is none.
    pub result: Result<Vec<u8>, Refusal>,
}

/// `{from, seq, kind, body}`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Who tells it.
    pub from: String,
    /// Rises by one with each event of this connection.
    pub seq: u64,
    /// Its kind.
    pub kind: String,
    /// Its body, not yet read.
    pub body: Vec<u8>,
}

/// The fields of all three; which are there says which frame it is. Unknown ones are ignored (S-10).
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Form {
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<ByteBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    re: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ok: Option<ByteBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<Refusal>,
}

/// The fields of a value are those of no frame, or of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is neither a request, nor an answer, nor an event")]
pub struct NotAFrame;

impl Serialize for Frame {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bytes = |body: &[u8]| Some(ByteBuf::from(body));
        let form = match self {
            Self::Request(Request { to, id, kind, body }) => Form {
                to: Some(to.clone()),
                id: Some(*id),
                kind: Some(kind.clone()),
                body: bytes(body),
                ..Form::default()
            },
            Self::Answer(Answer { re, result: Ok(body) }) => {
                Form { re: Some(*re), ok: bytes(body), ..Form::default() }
            }
            Self::Answer(Answer { re, result: Err(refusal) }) => {
                Form { re: Some(*re), refusal: Some(refusal.clone()), ..Form::default() }
            }
            Self::Event(Event { from, seq, kind, body }) => Form {
                from: Some(from.clone()),
                seq: Some(*seq),
                kind: Some(kind.clone()),
                body: bytes(body),
                ..Form::default()
            },
        };
        form.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Frame {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Form::deserialize(deserializer)?.frame().map_err(serde::de::Error::custom)
    }
}

impl Form {
    fn frame(self) -> Result<Frame, NotAFrame> {
        let Self { to, id, from, seq, kind, body, re, ok, refusal } = self;
        match (to, id, from, seq, kind, body, re, ok, refusal) {
            (Some(to), Some(id), None, None, Some(kind), Some(body), None, None, None) if id != 0 => {
                Ok(Frame::Request(Request { to, id, kind, body: body.into_vec() }))
            }
            (None, None, None, None, None, None, Some(re), Some(ok), None) => {
                Ok(Frame::Answer(Answer { re, result: Ok(ok.into_vec()) }))
            }
            (None, None, None, None, None, None, Some(re), None, Some(refusal)) => {
                Ok(Frame::Answer(Answer { re, result: Err(refusal.from_outside()) }))
            }
            (None, None, Some(from), Some(seq), Some(kind), Some(body), None, None, None) => {
                Ok(Frame::Event(Event { from, seq, kind, body: body.into_vec() }))
            }
            _ => Err(NotAFrame),
        }
    }
}

#[cfg(test)]
mod tests;
