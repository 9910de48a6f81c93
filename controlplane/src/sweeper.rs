//! Drops content that nothing names: at the start, and each hour from then on. One actor `sweeper`.

use std::sync::Arc;
use std::time::Duration;

use tenure_actors::ractor::{Actor, ActorProcessingErr, ActorRef};
use tenure_actors::timer::{Timer, after};
use tenure_actors::{Address, Child};
use tenure_protocol::id::Millis;

use crate::plane::Plane;
use crate::store::StoreError;

/// Content that nothing refers to is kept this long, for a `declare` that is still to come.
const UNNAMED_FOR: Duration = Duration::from_secs(3600);
/// How often it is looked for.
const EVERY: Duration = Duration::from_secs(3600);

struct Sweeper;

enum Msg {
    Due,
}

struct Sweeping {
    plane: Arc<Plane>,
    due: Timer,
}

/// The actor for the tree.
pub fn child(plane: &Arc<Plane>) -> Child {
    let plane = Arc::clone(plane);
    Child::new("sweeper", Address::vacant(), move || (Sweeper, Arc::clone(&plane)))
}

/// Drops what nothing has named for an hour.
pub async fn sweep(plane: &Plane) -> Result<(), StoreError> {
    let now = plane.now();
    let before = Millis(now.0.saturating_sub(i64::try_from(UNNAMED_FOR.as_millis()).unwrap_or(i64::MAX)));
    let dropped = plane.store.sweep(before).await?;
    if dropped > 0 {
        tracing::info!(contents = dropped, "dropped content that nothing names");
    }
    Ok(())
}

impl Actor for Sweeper {
    type Msg = Msg;
    type State = Sweeping;
    type Arguments = Arc<Plane>;

    async fn pre_start(&self, me: ActorRef<Msg>, plane: Arc<Plane>) -> Result<Sweeping, ActorProcessingErr> {
        Ok(Sweeping { plane, due: after(&me, EVERY, || Msg::Due) })
    }

    async fn handle(
        &self,
        me: ActorRef<Msg>,
        Msg::Due: Msg,
        sweeping: &mut Sweeping,
    ) -> Result<(), ActorProcessingErr> {
        if let Err(error) = sweep(&sweeping.plane).await {
            tracing::warn!(%error, "content that nothing names could not be dropped, and is looked for again");
        }
        sweeping.due = after(&me, EVERY, || Msg::Due);
        Ok(())
    }
}
