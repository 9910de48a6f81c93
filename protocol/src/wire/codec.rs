//! Values to MessagePack and back: named maps, at most 32 levels, no trailing bytes, bounded lists.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// How deep values may be nested. The library's own limit would overflow a thread's stack.
pub const DEPTH: usize = 32;

/// Bytes are not a value of the expected form. Says nothing of what they hold beyond the library's own words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Not MessagePack, too deep, a list too long, a field missing or of another type.
    #[error("the message cannot be read: {0}")]
    Form(String),
    /// A whole value, and then more.
    #[error("the message has {0} bytes behind its end")]
    Trailing(usize),
}

/// The bytes of `value`, as named maps: a field keeps its name across versions, where a position would not.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    #[expect(
        clippy::expect_used,
        reason = "writing to memory cannot fail, and our types know the length of their lists"
    )]
    rmp_serde::to_vec_named(value).expect("a value of ours can always be written")
}

/// The same; none where it holds what cannot be written, such as a path that is no text.
pub fn encode_if_written<T: Serialize + ?Sized>(value: &T) -> Option<Vec<u8>> {
    rmp_serde::to_vec_named(value).ok()
}

/// The same with its fields by their position: smaller and sooner read, for what nobody reads but the program that wrote
/// it. No type of it may leave fields out.
#[expect(clippy::disallowed_methods, reason = "no other version reads it")]
pub fn encode_by_position<T: Serialize + ?Sized>(value: &T) -> Option<Vec<u8>> {
    rmp_serde::to_vec(value).ok()
}

/// The value of exactly these bytes.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    let mut reader = rmp_serde::Deserializer::new(std::io::Cursor::new(bytes));
    reader.set_max_depth(DEPTH);
    let value = T::deserialize(&mut reader)
        .map_err(|error| DecodeError::Form(crate::text::shown(&error.to_string(), 200)))?;
    let read = usize::try_from(reader.into_inner().position()).unwrap_or(usize::MAX);
    match bytes.len().saturating_sub(read) {
        0 => Ok(value),
        trailing => Err(DecodeError::Trailing(trailing)),
    }
}

/// A list of at most `MOST` values, for `#[serde(deserialize_with = …)]`. What a list claims of its length reserves
/// nothing: memory follows what is really there.
pub fn bounded<'de, D: Deserializer<'de>, T: Deserialize<'de>, const MOST: usize>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    struct Bounded<T, const MOST: usize>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for Bounded<T, MOST> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of at most {MOST}")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
            let mut values = Vec::new();
            while let Some(value) = seq.next_element()? {
                if values.len() == MOST {
                    return Err(serde::de::Error::custom(format_args!(
                        "a list has more than {MOST} entries"
                    )));
                }
                values.push(value);
            }
            Ok(values)
        }
    }

    deserializer.deserialize_seq(Bounded::<T, MOST>(PhantomData))
}

#[cfg(test)]
mod tests;
