//! Which software and which range of the protocol somebody speaks. A fleet of mixed versions is ordinary (H-20).

use serde::{Deserialize, Serialize};

/// The version of this build, as every program of it reports.
pub const SOFTWARE: &str = env!("CARGO_PKG_VERSION");

/// What this build speaks.
pub const SPOKEN: ProtocolRange = ProtocolRange { lowest: 1, highest: 1 };

/// An inclusive range of protocol versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtocolRange {
    /// The oldest version still spoken.
    pub lowest: u16,
    /// The newest version spoken.
    pub highest: u16,
}

impl ProtocolRange {
    /// The newest version both speak, or none.
    pub fn common(self, other: Self) -> Option<u16> {
        let highest = self.highest.min(other.highest);
        (highest >= self.lowest.max(other.lowest)).then_some(highest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_ranges_meet_at_the_newest_version_both_speak() {
        let range = |lowest, highest| ProtocolRange { lowest, highest };
        assert_eq!(range(1, 3).common(range(2, 9)), Some(3));
        assert_eq!(range(1, 1).common(range(1, 1)), Some(1));
        assert_eq!(range(1, 2).common(range(3, 4)), None);
    }
}
