//! Reading the list of resources without keeping more of it than may be judged.

use std::fmt;

use serde::Deserializer;
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The first `MOST` values and one more, if there are more: too many is told apart from what cannot be read, and costs
/// no memory.
pub(super) fn one_more<'de, D: Deserializer<'de>, const MOST: usize>(
    deserializer: D,
) -> Result<Vec<&'de RawValue>, D::Error> {
    struct OneMore<const MOST: usize>;

    impl<'de, const MOST: usize> Visitor<'de> for OneMore<MOST> {
        type Value = Vec<&'de RawValue>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of resources")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut values = Vec::new();
            while values.len() <= MOST
                && let Some(value) = seq.next_element()?
            {
                values.push(value);
            }
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            Ok(values)
        }
    }

    deserializer.deserialize_seq(OneMore::<MOST>)
}
