//! The fleet's mailbox.

use std::sync::Arc;

use tenure_actors::ractor::{Actor, ActorProcessingErr, ActorRef};
use tenure_actors::{Reply, answer};
use tenure_protocol::id::NodeId;
use tenure_protocol::machine::NodeState;
use tenure_protocol::operator::{Invite, Invited};
use tenure_protocol::refusal::{Explain as _, Refusal};

use super::invitation;
use crate::node::house;
use crate::node::refusals::NodeRefusal;
use crate::plane::Plane;

pub(super) struct Host;

pub(super) enum Msg {
    Gather(Reply<Result<u64, Refusal>>),
    Invite(Invite, Reply<Result<Invited, Refusal>>),
}

/// How many names are read at a time.
const PAGE: u32 = 1000;
/// How many of them are housed one after the other.
const AT_ONCE: usize = 32;

impl Actor for Host {
    type Msg = Msg;
    type State = Arc<Plane>;
    type Arguments = Arc<Plane>;

    async fn pre_start(&self, _: ActorRef<Msg>, plane: Arc<Plane>) -> Result<Arc<Plane>, ActorProcessingErr> {
        Ok(plane)
    }

    async fn handle(
        &self,
        _: ActorRef<Msg>,
        msg: Msg,
        plane: &mut Arc<Plane>,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            Msg::Gather(reply) => answer(reply, gather(plane).await),
            Msg::Invite(asked, reply) => answer(reply, invite(plane, &asked).await),
        }
        Ok(())
    }
}

async fn gather(plane: &Arc<Plane>) -> Result<u64, Refusal> {
    let (mut after, mut count) = (None, 0);
    loop {
        let page = plane.store.names(after, PAGE).await?;
        let Some((last, _)) = page.last() else { return Ok(count) };
        after = Some(last.clone());
        count += u64::try_from(page.len()).unwrap_or(u64::MAX);
        house_all(plane, page).await;
    }
}

/// Housing waits for a home's answer; many wait at the same time.
async fn house_all(plane: &Arc<Plane>, page: Vec<(NodeId, NodeState)>) {
    let mut housing = tokio::task::JoinSet::new();
    for some in page.chunks(AT_ONCE).map(<[_]>::to_vec) {
        let plane = Arc::clone(plane);
        housing.spawn(async move {
            for (node, state) in some {
                house(&plane, &node, state).await;
            }
        });
    }
    housing.join_all().await;
}

async fn invite(plane: &Arc<Plane>, asked: &Invite) -> Result<Invited, Refusal> {
    let refuse = |refusal: NodeRefusal| refusal.refusal();
    invitation::clock_holds(plane, asked.clock_is_right).await?;
    let (new, invited) = invitation::first(plane, asked).map_err(refuse)?;
    let node = new.node.clone();
    if !plane.store.invite(new, plane.now()).await? {
        let record = plane.store.node(node.clone()).await?;
        let retired = record.is_some_and(|record| record.state == NodeState::Retired);
        return Err(refuse(if retired { NodeRefusal::Retired(node) } else { NodeRefusal::Exists(node) }));
    }
    house(plane, &node, NodeState::Enrolling).await;
    tracing::info!(%node, until = %invitation::until(invited.expires), "invited");
    Ok(invited)
}
