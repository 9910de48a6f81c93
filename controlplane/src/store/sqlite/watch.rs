//! Looks after the embedded store while nobody asks it for anything, so that a store that was moved away is said to be
//! soon, one that is well again as well, and little room before there is none. One actor `store`; it changes nothing.

use std::path::Path;
use std::time::Duration;

use nix::sys::statvfs::statvfs;
use tenure_actors::ractor::{Actor, ActorProcessingErr, ActorRef};
use tenure_actors::timer::{Timer, after};
use tenure_actors::work::{Panicked, Work, work};
use tenure_actors::{Address, Child};

use super::Sqlite;

/// How soon it is noticed that files of the store are gone, and that they are back.
const EVERY: Duration = Duration::from_secs(5);

/// A day of reports and uploads of a large fleet fits into it.
const LITTLE: u64 = 64 << 20;

struct Watch;

enum Msg {
    LookDue,
    Looked(Result<(), Panicked>),
}

struct Watching {
    store: Sqlite,
    due: Option<Timer>,
    looking: Option<Work>,
    room: Room,
}

/// How much room is left on the disk of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    Enough,
    Little,
}

impl Room {
    /// With so many bytes left. Only twice of little is enough again, so that it is not said at each turn of a log.
    const fn with(self, left: u64) -> Self {
        match self {
            Self::Enough if left >= LITTLE => Self::Enough,
            Self::Little if left >= 2 * LITTLE => Self::Enough,
            Self::Enough | Self::Little => Self::Little,
        }
    }
}

/// The actor for the tree.
pub(super) fn child(store: Sqlite) -> Child {
    Child::new("store", Address::vacant(), move || (Watch, store.clone()))
}

impl Actor for Watch {
    type Msg = Msg;
    type State = Watching;
    type Arguments = Sqlite;

    async fn pre_start(&self, me: ActorRef<Msg>, store: Sqlite) -> Result<Watching, ActorProcessingErr> {
        Ok(Watching {
            store,
            due: Some(after(&me, EVERY, || Msg::LookDue)),
            looking: None,
            room: Room::Enough,
        })
    }

    async fn handle(
        &self,
        me: ActorRef<Msg>,
        msg: Msg,
        watching: &mut Watching,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            Msg::LookDue => watching.look(&me),
            Msg::Looked(looked) => watching.looked(&me, looked),
        }
        Ok(())
    }
}

impl Watching {
    fn look(&mut self, me: &ActorRef<Msg>) {
        self.due = None;
        let store = self.store.clone();
        self.looking = Some(work(me, async move { store.look().await }, Msg::Looked));
    }

    fn looked(&mut self, me: &ActorRef<Msg>, looked: Result<(), Panicked>) {
        self.looking = None;
        if let Err(panicked) = looked {
            tracing::error!(%panicked, "the store could not be looked after, and is again");
        }
        self.measure();
        self.due = Some(after(me, EVERY, || Msg::LookDue));
    }

    fn measure(&mut self) {
        let folder = self.store.path.parent().unwrap_or(Path::new("/"));
        // Where it cannot be measured, the store itself will say when there is none.
        let Ok(found) = statvfs(folder) else { return };
        let left = found.blocks_available().saturating_mul(found.fragment_size());
        let (room, left_mib) = (self.room.with(left), left >> 20);
        match (self.room, room) {
            (Room::Enough, Room::Little) => {
                let remedy = format!("make room on the disk that holds {0} (`df {0}`)", folder.display());
                tracing::warn!(left_mib, "do" = %remedy, "little room is left for the store");
            }
            (Room::Little, Room::Enough) => tracing::info!(left_mib, "there is room for the store again"),
            (Room::Enough, Room::Enough) | (Room::Little, Room::Little) => {}
        }
        self.room = room;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // case: O-70
    #[test]
    fn little_room_is_said_before_there_is_none_and_only_twice_as_much_is_enough_again() {
        let (less, more) = (LITTLE - 1, 2 * LITTLE);
        assert_eq!(Room::Enough.with(LITTLE), Room::Enough);
        assert_eq!(Room::Enough.with(less), Room::Little);
        assert_eq!(Room::Little.with(LITTLE), Room::Little);
        assert_eq!(Room::Little.with(more), Room::Enough);
    }
}
