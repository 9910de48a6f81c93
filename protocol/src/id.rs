//! Identities and numbers that mean something: each has a type of its own, parsed once and valid afterwards.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// A name or number from outside that does not have the form of its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} `{given}` is not valid: {rule}")]
pub struct Malformed {
    /// What it was meant to be, for example "node name".
    pub what: &'static str,
    /// What was given, bounded and escaped.
    pub given: String,
    /// The form it must have, in words.
    pub rule: &'static str,
}

impl Malformed {
    /// A refusal of `given` as a `what`; the text is bounded and escaped here.
    pub fn new(what: &'static str, given: &str, rule: &'static str) -> Self {
        Self { what, given: crate::text::shown(given, 80), rule }
    }
}

/// Text newtypes that are checked when they are made and when they arrive.
macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $what:literal, $rule:literal, $check:path) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $type(Box<str>);

        impl $type {
            /// Takes `text` if it has the form of this kind.
            pub fn new(text: &str) -> Result<Self, Malformed> {
                if $check(text) { Ok(Self(text.into())) } else { Err(Malformed::new($what, text, $rule)) }
            }

            /// The text as it is written everywhere.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $type {
            type Error = Malformed;
            fn try_from(text: String) -> Result<Self, Malformed> {
                Self::new(&text)
            }
        }

        impl From<$type> for String {
            fn from(name: $type) -> String {
                name.0.into()
            }
        }

        impl FromStr for $type {
            type Err = Malformed;
            fn from_str(text: &str) -> Result<Self, Malformed> {
                Self::new(text)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name!(
    /// The identity of a node: what an operator calls it, reserved before the machine exists.
    /// 1 to 63 characters of `a-z 0-9 - . _`, beginning with a letter or digit.
    NodeId, "node name", "1 to 63 characters of a-z, 0-9, `-`, `.` and `_`, beginning with a letter or a digit", is_label
);
name!(
    /// The name of a module in the catalogue; same form as a node's name.
    ModuleName, "module name", "1 to 63 characters of a-z, 0-9, `-`, `.` and `_`, beginning with a letter or a digit", is_label
);
name!(
    /// What a machine is rented as; a free label of the operator or provider. `own` where nothing is rented.
    Rental, "rental", "1 to 63 characters of a-z, 0-9, `-`, `.` and `_`, beginning with a letter or a digit", is_label
);

fn is_label(text: &str) -> bool {
    let first = text.bytes().next().is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    first
        && text.len() <= 63
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'.' | b'_'))
}

/// Random 128-bit ids. Written as a hyphenated UUID for people, as 16 bytes on the wire.
macro_rules! random_id {
    ($(#[$doc:meta])* $type:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $type(Uuid);

        impl $type {
            /// A fresh one from the operating system's randomness.
            pub fn random() -> Self {
                Self(Uuid::new_v4())
            }

            /// One made of these bytes, for tests and stored values.
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }

            /// Its 16 bytes.
            pub const fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }
        }

        impl FromStr for $type {
            type Err = Malformed;
            fn from_str(text: &str) -> Result<Self, Malformed> {
                Uuid::parse_str(text)
                    .map(Self)
                    .map_err(|_| Malformed::new("id", text, "a UUID, as in 6f1c1b3e-8d2f-4c55-9d0e-2b7a4c8f9e10"))
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }
    };
}

random_id!(
    /// Which control plane: minted once at its first start, never changed, survives a restore.
    ControlPlaneId
);
random_id!(
    /// The identity behind a node's name, minted with it and never reused.
    NodeUuid
);
random_id!(
    /// Which life of a host's store: minted when the store is created. A new one under a known key is store loss.
    StoreId
);
random_id!(
    /// Which boot of the machine, as the kernel tells it.
    BootId
);
random_id!(
    /// The random half of an epoch, so that two restores cannot be taken for one.
    EpochId
);
random_id!(
    /// One event of a node, unique across loss of its store.
    EventId
);
random_id!(
    /// One session, minted by the control plane when it opens.
    SessionId
);

/// Whole numbers that only ever rise.
macro_rules! number {
    ($(#[$doc:meta])* $type:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $type(pub u64);

        impl $type {
            /// The next one; stays at the highest number there is.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number!(
    /// One life of the machine under an identity. Starts at 1.
    Generation
);
number!(
    /// Rises with each enrolment; what carries a lower one is refused. Zero is lower than everything (N-05).
    FencingToken
);
number!(
    /// Counts the sessions a host opened with this store; two holders of one identity fork it.
    SessionCounter
);
number!(
    /// The number of a declaration within its epoch, per node, rising. Zero: nothing declared yet.
    RevisionNumber
);

/// One life of the control plane's store; a restore starts a new one (S-07).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Epoch {
    /// Rises by one with each restore; compared first.
    pub number: u64,
    /// Tells two epochs of the same number apart.
    pub id: EpochId,
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number.fmt(f)
    }
}

/// Which declaration: epoch and number together. Compared by number within an epoch only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revision {
    /// The control plane's epoch in which it was declared.
    pub epoch: Epoch,
    /// Its number within that epoch.
    pub number: RevisionNumber,
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.epoch.number > 1 {
            write!(f, "{}.{}", self.epoch.number, self.number)
        } else {
            self.number.fmt(f)
        }
    }
}

/// SHA-256 of some bytes. Written as 64 hexadecimal characters for people and in JSON, as 32 bytes on the wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// A digest computed elsewhere (a hasher fed piece by piece, a stored value).
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first 12 hexadecimal characters, for people.
    pub fn short(&self) -> String {
        let mut text = self.to_string();
        text.truncate(12);
        text
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let malformed = || Malformed::new("digest", text, "64 hexadecimal characters of a SHA-256");
        let mut bytes = [0; 32];
        if text.len() != 64 {
            return Err(malformed());
        }
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().as_chunks::<2>().0) {
            let [Some(high), Some(low)] = pair.map(nibble) else { return Err(malformed()) };
            *byte = high << 4 | low;
        }
        Ok(Self(bytes))
    }
}

/// What a hexadecimal character stands for; capital ones are another spelling, and none.
const fn nibble(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        _ => None,
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            serializer.serialize_bytes(&self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
            return text.parse().map_err(serde::de::Error::custom);
        }
        let bytes = serde_bytes::ByteArray::<32>::deserialize(deserializer)?;
        Ok(Self(bytes.into_array()))
    }
}

/// A moment on the clock of whoever states it: milliseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub i64);

impl Millis {
    /// This moment moved by `duration`; stays at the end of time rather than wrapping.
    #[must_use]
    pub fn plus(self, duration: std::time::Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    /// How long after `earlier` this is; zero when it is not after it.
    pub fn since(self, earlier: Self) -> std::time::Duration {
        std::time::Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests;
