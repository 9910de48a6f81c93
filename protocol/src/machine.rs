//! What a machine is to itself (machine state), and what a node is to the control plane (node state): two facts,
//! two types, never written from each other. And the mode in which a node treats what it finds.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The machine's own view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MachineState {
    /// No host is installed.
    Unmanaged,
    /// A host is installed and belongs to no control plane.
    Hosted,
    /// It has an identity and its link is up.
    Enrolled,
    /// It has an identity and its link is down; it goes on holding what it was told.
    Disconnected,
}

/// What can happen to a machine's standing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// A host was installed.
    Installed,
    /// An invitation was redeemed.
    Enrolled,
    /// The link went away.
    LinkLost,
    /// The link came back.
    LinkRegained,
    /// The identity was given up or taken away.
    Retired,
    /// The host was removed from the machine.
    Removed,
}

/// A step that the present state does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a machine that is {state} cannot be {step}")]
pub struct IllegalStep {
    /// What the machine is.
    pub state: MachineState,
    /// What was to happen.
    pub step: Step,
}

impl MachineState {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Unmanaged, Self::Hosted, Self::Enrolled, Self::Disconnected];

    /// The one table of what may follow what (H-12). Every other pair is refused.
    pub const fn after(self, step: Step) -> Result<Self, IllegalStep> {
        match (self, step) {
            (Self::Unmanaged, Step::Installed) | (Self::Enrolled | Self::Disconnected, Step::Retired) => {
                Ok(Self::Hosted)
            }
            (Self::Hosted, Step::Enrolled) | (Self::Disconnected, Step::LinkRegained) => Ok(Self::Enrolled),
            // A reinvite is redeemed over a standing enrolment: the machine stays what it is.
            (Self::Enrolled | Self::Disconnected, Step::Enrolled) => Ok(Self::Enrolled),
            (Self::Enrolled, Step::LinkLost) => Ok(Self::Disconnected),
            (Self::Hosted | Self::Enrolled | Self::Disconnected, Step::Removed) => Ok(Self::Unmanaged),
            (state, step) => Err(IllegalStep { state, step }),
        }
    }

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unmanaged => "unmanaged",
            Self::Hosted => "hosted",
            Self::Enrolled => "enrolled",
            Self::Disconnected => "disconnected",
        }
    }
}

impl fmt::Display for MachineState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Step {
    /// Every step.
    pub const ALL: [Self; 6] =
        [Self::Installed, Self::Enrolled, Self::LinkLost, Self::LinkRegained, Self::Retired, Self::Removed];
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Installed => "installed",
            Self::Enrolled => "enrolled",
            Self::LinkLost => "disconnected",
            Self::LinkRegained => "reconnected",
            Self::Retired => "retired",
            Self::Removed => "removed",
        })
    }
}

/// The control plane's view of an identity. *Lost* is an unobserved node, never a dead one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    /// Invited; no machine has redeemed it.
    Enrolling,
    /// Enrolled and believed: its lease runs.
    Ready,
    /// Enrolled and not heard from for a whole lease window.
    Lost,
    /// Its standing is withdrawn, for good.
    Retired,
}

impl NodeState {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enrolling => "enrolling",
            Self::Ready => "ready",
            Self::Lost => "lost",
            Self::Retired => "retired",
        }
    }
}

impl fmt::Display for NodeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a node treats what it finds. Given on the invitation, kept until the operator flips it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Found things are kept until their module is taken.
    Adopted,
    /// Everything declared is ours.
    Converged,
}

impl Mode {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Adopted => "adopted",
            Self::Converged => "converged",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rule: H-12
    #[test]
    fn the_table_of_transitions_allows_these_and_refuses_every_other() {
        use MachineState::{Disconnected, Enrolled, Hosted, Unmanaged};
        let allowed = [
            (Unmanaged, Step::Installed, Hosted),
            (Hosted, Step::Enrolled, Enrolled),
            (Enrolled, Step::Enrolled, Enrolled),
            (Disconnected, Step::Enrolled, Enrolled),
            (Enrolled, Step::LinkLost, Disconnected),
            (Disconnected, Step::LinkRegained, Enrolled),
            (Enrolled, Step::Retired, Hosted),
            (Disconnected, Step::Retired, Hosted),
            (Hosted, Step::Removed, Unmanaged),
            (Enrolled, Step::Removed, Unmanaged),
            (Disconnected, Step::Removed, Unmanaged),
        ];
        for state in MachineState::ALL {
            for step in Step::ALL {
                let expected =
                    allowed.iter().find(|(from, by, _)| (*from, *by) == (state, step)).map(|(.., to)| *to);
                assert_eq!(state.after(step).ok(), expected, "{state} {step}");
            }
        }
    }

    // rule: X-3
    #[test]
    fn machine_state_and_node_state_share_no_word_that_could_be_mistaken() {
        let machine: Vec<&str> = MachineState::ALL.iter().map(|state| state.as_str()).collect();
        for node in [NodeState::Enrolling, NodeState::Ready, NodeState::Lost, NodeState::Retired] {
            assert!(!machine.contains(&node.as_str()));
        }
    }
}
