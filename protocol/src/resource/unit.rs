//! What a unit of the service manager should be. Its content and drop-ins are files.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ResourceKey;
use crate::id::Malformed;

/// The full name of a unit, as in `nginx.service` or `wg-quick@wg0.service`: up to 255 characters of
/// `A-Z a-z 0-9 : - _ . \ @`, ending in a kind of unit that can be enabled or started. Never a bare template, an
/// option, a pattern or a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct UnitName(Box<str>);

const KINDS: [&str; 8] =
    [".service", ".socket", ".timer", ".path", ".mount", ".automount", ".swap", ".target"];

impl UnitName {
    /// Takes `text` if it can be the name of a unit.
    pub fn new(text: &str) -> Result<Self, Malformed> {
        let stem = KINDS.iter().find_map(|kind| text.strip_suffix(kind)).unwrap_or_default();
        let first = stem.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_');
        let rest = stem.bytes().all(|b| b.is_ascii_alphanumeric() || br":-_.\@".contains(&b));
        if first && rest && !stem.ends_with('@') && text.len() <= 255 {
            Ok(Self(text.into()))
        } else {
            Err(Malformed::new(
                "unit name",
                text,
                "a full name as in `nginx.service` or `wg-quick@wg0.service`",
            ))
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The template it is an instance of, as in `wg-quick@.service`; none when it is no instance.
    pub fn template(&self) -> Option<String> {
        let (prefix, rest) = self.0.split_once('@')?;
        let (_, kind) = rest.rsplit_once('.')?;
        Some(format!("{prefix}@.{kind}"))
    }
}

impl TryFrom<String> for UnitName {
    type Error = Malformed;
    fn try_from(text: String) -> Result<Self, Malformed> {
        Self::new(&text)
    }
}

impl From<UnitName> for String {
    fn from(name: UnitName) -> Self {
        name.0.into()
    }
}

impl fmt::Display for UnitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A unit, and how it should be. What is left out is left as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitSpec {
    /// Its full name.
    pub name: UnitName,
    /// Whether it starts with the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Whether it runs now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<bool>,
    /// Whether it is forbidden to start, by whomever. What somebody else has masked is never unmasked: `false` only takes
    /// back a mask of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masked: Option<bool>,
    /// It is restarted once when one of these was changed, if it should run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restart_on: Vec<ResourceKey>,
    /// It is reloaded once when one of these was changed, unless it is restarted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reload_on: Vec<ResourceKey>,
}
