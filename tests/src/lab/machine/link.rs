//! How a machine is connected: joined, cut, or silent. A cut outlives a reboot: the machine then boots on a bridge that
//! leads nowhere, so that not one packet passes.

use std::fs;

use super::Machine;
use crate::lab::bed::{BRIDGE, NOWHERE};

/// How the machine is connected.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    Joined,
    /// The cable is pulled: the machine sees that it has no carrier.
    Cut,
    /// The carrier is there and nothing passes: nobody is told anything.
    Silent,
}

impl Machine {
    /// Pulls its cable: it sees that it has no carrier. It stays pulled over a reboot.
    pub fn cut(&self) {
        self.connect_at_boot_to(NOWHERE);
        self.state().link = Link::Cut;
        self.set_link();
    }

    /// Lets nothing pass in either direction while the carrier stays: both ends have to find out by themselves.
    pub fn silence(&self) {
        self.connect_at_boot_to(NOWHERE);
        self.state().link = Link::Silent;
        self.set_link();
    }

    /// Undoes [`cut`](Self::cut) and [`silence`](Self::silence).
    pub fn join(&self) {
        self.connect_at_boot_to(BRIDGE);
        self.state().link = Link::Joined;
        self.set_link();
    }

    pub(super) fn connect_at_boot_to(&self, bridge: &str) {
        fs::write(self.folder.join("bridge"), bridge).expect("the machine's folder");
    }

    /// Makes the link what it is said to be; a machine that is off has none.
    pub(super) fn set_link(&self) {
        if self.leader().is_none() {
            return;
        }
        let port = format!("vb-{}", self.unique_name());
        match self.state().link {
            Link::Joined => self.bed.ip(&["link", "set", &port, "up", "master", BRIDGE]),
            Link::Silent => self.bed.ip(&["link", "set", &port, "up", "master", NOWHERE]),
            Link::Cut => self.bed.ip(&["link", "set", &port, "down", "master", NOWHERE]),
        };
    }
}
