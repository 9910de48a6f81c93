//! What to tell a node, as a pure machine of what is declared, what the host holds, and whether a session is open.

use tenure_protocol::content::{Push, Pushed};
use tenure_protocol::id::{Digest, Revision};

/// What is known of one node's declaration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Desired {
    declared: Option<Push>,
    /// The digest of what the host holds or has begun to fetch.
    holds: Option<Digest>,
    /// It has a later one than we declared: said once, and not pushed against again.
    ahead: Option<Revision>,
}

/// What the host's word on a push means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// It takes it.
    Taken,
    /// Something newer was declared meanwhile: push that.
    Push(Push),
    /// It has a later one than this control plane ever declared (O-71). Nothing more is pushed until something newer is.
    Ahead(Revision),
}

impl Desired {
    /// This is declared now.
    pub(super) fn declare(&mut self, push: Push) {
        // What was declared earlier and arrives later is nothing new.
        if self.declared.is_none_or(|known| is_newer(push.revision, known.revision)) {
            self.declared = Some(push);
            self.ahead = None;
        }
    }

    /// A host came that holds this; its welcome told it `told`, which it fetches by itself.
    pub(super) fn came(&mut self, told: Option<Push>) {
        if let Some(told) = told {
            self.declare(told);
        }
        self.holds = told.map(|push| push.sha256);
        self.ahead = None;
    }

    /// What is to be pushed now, if anything.
    pub(super) fn next(&self) -> Option<Push> {
        self.declared.filter(|push| self.holds != Some(push.sha256) && self.ahead.is_none())
    }

    /// The host's word on `push`.
    pub(super) fn said(&mut self, push: Push, said: Pushed) -> After {
        match said {
            Pushed::Fetching | Pushed::Have => {
                self.holds = Some(push.sha256);
                self.next().map_or(After::Taken, After::Push)
            }
            Pushed::HaveLater(later) => match self.declared {
                Some(declared) if is_newer(declared.revision, push.revision) => {
                    self.next().map_or(After::Taken, After::Push)
                }
                Some(_) | None => {
                    self.ahead = Some(later);
                    After::Ahead(later)
                }
            },
        }
    }
}

/// Within an epoch the number decides; a later epoch is newer.
fn is_newer(one: Revision, other: Revision) -> bool {
    (one.epoch.number, one.number) > (other.epoch.number, other.number)
}

#[cfg(test)]
mod tests {
    use tenure_protocol::id::{Epoch, EpochId, RevisionNumber};

    use super::*;

    fn push(number: u64) -> Push {
        let epoch = Epoch { number: 1, id: EpochId::from_bytes([1; 16]) };
        let revision = Revision { epoch, number: RevisionNumber(number) };
        Push { revision, sha256: Digest::of(&number.to_be_bytes()), bytes: 1, resources: 1 }
    }

    // rule: X-6
    #[test]
    fn what_was_declared_earlier_and_arrives_later_is_not_pushed() {
        let mut desired = Desired::default();
        desired.declare(push(42));
        desired.declare(push(41));
        assert_eq!(desired.next(), Some(push(42)));
    }

    // case: O-71
    #[test]
    fn a_host_that_has_a_later_revision_is_not_pushed_against_in_a_loop() {
        let mut desired = Desired::default();
        desired.declare(push(41));
        assert_eq!(
            desired.said(push(41), Pushed::HaveLater(push(42).revision)),
            After::Ahead(push(42).revision)
        );
        assert_eq!(desired.next(), None);
        desired.declare(push(43));
        assert_eq!(desired.next(), Some(push(43)));
    }

    #[test]
    fn what_came_between_push_and_word_is_pushed_next_and_what_is_held_is_not() {
        let mut desired = Desired::default();
        desired.declare(push(1));
        desired.declare(push(2));
        assert_eq!(desired.said(push(1), Pushed::Fetching), After::Push(push(2)));
        assert_eq!(desired.said(push(2), Pushed::Have), After::Taken);
        desired.came(Some(push(2)));
        assert_eq!(desired.next(), None);
    }
}
