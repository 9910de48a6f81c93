//! A value that must not be seen: it cannot be printed, and it is wiped when it goes.

use std::fmt;

use serde::{Deserialize, Serialize};
use zeroize::Zeroize;

/// Secret text. `Debug` and `Display` show nothing of it; the memory is wiped on drop.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Takes the text; the caller should not keep a copy.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The text itself, for the one place that must use it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}
