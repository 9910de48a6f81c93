//! Each kind of the API to whoever performs it. The door is asked before a body is read; a kind with a node in its
//! address must name the same node in its body.

use std::sync::Arc;

use tenure_protocol::content::{Missing, MissingAre, Pieces, Put};
use tenure_protocol::envelope::Request;
use tenure_protocol::foresight::ForeseeOf;
use tenure_protocol::id::NodeId;
use tenure_protocol::kind::{Door, Kind, Message, Role, admit};
use tenure_protocol::operator::{
    Declare, Events, EventsPage, Get, Invite, Node, Nodes, NodesPage, Reinvite, Render, Resources,
    ResourcesPage, Retire, Rollout, RolloutPage, Status, StatusIs,
};
use tenure_protocol::refusal::Refusal;
use tenure_protocol::text::shown;
use tenure_protocol::version::SOFTWARE;
use tenure_protocol::wire::codec;

use crate::fleet::{self, lists};
use crate::plane::Plane;
use crate::reconcile::foresee::foresee;
use crate::session::{read, unhandled};
use crate::store::NodeSummary;

/// Whether its answer comes from a node, so that a minute may pass before it is there.
pub(super) fn waits_for_a_node(request: &Request) -> bool {
    request.kind == ForeseeOf::KIND.name
}

/// Answers one request of a peer that may operate.
pub(super) async fn serve(plane: &Arc<Plane>, request: &Request) -> Result<Vec<u8>, Refusal> {
    let kind = admit(&request.kind, Door::Api(Role::Operate))?;
    let addressed = addressed(kind, &request.to)?;
    match kind.name {
        "control.status" => {
            let Status {} = read(request)?;
            reply::<Status>(status(plane).await?)
        }
        "nodes" => reply::<Nodes>(nodes(plane, read(request)?).await?),
        "node" => {
            let Node { node } = read(request)?;
            same(&node, addressed.as_ref())?;
            reply::<Node>(detail(plane, node).await?)
        }
        "node.resources" => {
            let asked: Resources = read(request)?;
            same(&asked.node, addressed.as_ref())?;
            reply::<Resources>(resources(plane, asked).await?)
        }
        "rollout" => reply::<Rollout>(rollout(plane, read(request)?).await?),
        "events.list" => reply::<Events>(events(plane, read(request)?).await?),
        "invite" => reply::<Invite>(plane.fleet.invite(read(request)?).await?),
        "reinvite" => {
            let asked: Reinvite = read(request)?;
            reply::<Reinvite>(fleet::find(plane, &asked.node)?.reinvite(asked).await?)
        }
        "retire" => {
            let Retire { node } = read(request)?;
            reply::<Retire>(fleet::find(plane, &node)?.retire().await?)
        }
        "content.missing" => {
            let Missing { sha256 } = read(request)?;
            reply::<Missing>(MissingAre { sha256: plane.store.missing(sha256).await? })
        }
        "content.put" => {
            let Put { pieces } = read(request)?;
            plane.catalogue.put(plane, pieces).await?;
            reply::<Put>(())
        }
        "content.get" => {
            let Get { wanted } = read(request)?;
            reply::<Get>(Pieces { pieces: plane.catalogue.get(plane, wanted).await? })
        }
        "declare" => reply::<Declare>(plane.catalogue.declare(read(request)?).await?),
        "node.foresee" => {
            let asked: ForeseeOf = read(request)?;
            same(&asked.node, addressed.as_ref())?;
            reply::<ForeseeOf>(foresee(plane, asked).await?)
        }
        "render" => reply::<Render>(plane.catalogue.render(read(request)?).await?),
        // A kind that is admitted here and not handled is a hole in this table, and says so.
        other => Err(unhandled(other)),
    }
}

/// The type of the answer is the kind's own.
fn reply<M: Message>(answer: M::Answer) -> Result<Vec<u8>, Refusal> {
    Ok(codec::encode(&answer))
}

/// The node in the address, where the kind has one there.
fn addressed(kind: &Kind, to: &str) -> Result<Option<NodeId>, Refusal> {
    let wrong = || {
        Refusal::new(
            "wrong_address",
            format!("`{}` came for `{}`", kind.name, shown(to, 100)),
            "each kind has one address; it was not read",
            format!("send it to `{}`", kind.to),
        )
    };
    match kind.to.strip_suffix("{node}") {
        None if to == kind.to => Ok(None),
        None => Err(wrong()),
        Some(prefix) => {
            let node = to.strip_prefix(prefix).and_then(|name| NodeId::new(name).ok());
            node.map(Some).ok_or_else(wrong)
        }
    }
}

fn same(node: &NodeId, addressed: Option<&NodeId>) -> Result<(), Refusal> {
    if addressed == Some(node) {
        return Ok(());
    }
    Err(Refusal::new(
        "wrong_address",
        format!("a question about node {node} came for another node's address"),
        "address and question must agree; nothing was looked up",
        "send it to the node's own address",
    ))
}

async fn status(plane: &Plane) -> Result<StatusIs, Refusal> {
    Ok(StatusIs {
        control_plane_id: plane.founding.control_plane_id,
        epoch: plane.founding.epoch,
        version: SOFTWARE.to_owned(),
        advertise: plane.config.advertise.clone(),
        nodes: u64::try_from(plane.nodes.list().len()).unwrap_or(u64::MAX),
    })
}

async fn nodes(plane: &Plane, asked: Nodes) -> Result<NodesPage, Refusal> {
    let (summaries, more) = lists::page(plane.store.summaries(asked.after, lists::ONE_MORE).await?);
    let line = |summary: &NodeSummary| {
        let seen = plane.presence.of(&summary.record.node);
        lists::line(summary, &seen)
    };
    let (nodes, cut) = lists::fitting(summaries.iter().map(line).collect());
    Ok(NodesPage { nodes, more: more || cut })
}

async fn detail(plane: &Plane, node: NodeId) -> Result<tenure_protocol::operator::NodeDetail, Refusal> {
    let summary = plane.store.summary(node.clone()).await?;
    let summary = summary.ok_or_else(|| fleet::unknown(plane, &node))?;
    Ok(lists::detail(&summary, &plane.presence.of(&node)))
}

async fn resources(plane: &Plane, asked: Resources) -> Result<ResourcesPage, Refusal> {
    fleet::find(plane, &asked.node)?;
    let outcomes = plane.store.outcomes(asked.node, asked.after, lists::ONE_MORE).await?;
    let (resources, more) = lists::page(outcomes);
    let (resources, cut) = lists::fitting(resources);
    Ok(ResourcesPage { resources, more: more || cut })
}

/// Nodes without a declaration are left out, so that a page may be short; what comes after the last one looked at
/// is asked for until nothing more is there.
async fn rollout(plane: &Plane, asked: Rollout) -> Result<RolloutPage, Refusal> {
    let mut after = asked.after;
    loop {
        let (summaries, more) = lists::page(plane.store.summaries(after, lists::ONE_MORE).await?);
        after = summaries.last().map(|summary| summary.record.node.clone());
        let nodes: Vec<_> = summaries
            .iter()
            .filter_map(|summary| lists::rollout(summary, &plane.presence.of(&summary.record.node)))
            .collect();
        if !nodes.is_empty() || !more {
            let (nodes, cut) = lists::fitting(nodes);
            return Ok(RolloutPage { nodes, more: more || cut });
        }
    }
}

async fn events(plane: &Plane, asked: Events) -> Result<EventsPage, Refusal> {
    if let Some(node) = &asked.node {
        fleet::find(plane, node)?;
    }
    let forward = asked.after.is_some();
    let mut events = plane.store.events(asked.after, asked.node, lists::ONE_MORE).await?;
    if forward {
        let (events, more) = lists::page(events);
        let (events, cut) = lists::fitting(events);
        return Ok(EventsPage { events, more: more || cut });
    }
    // The newest page: what is too many is the oldest, and nothing comes after it.
    events.reverse();
    let (mut events, _) = lists::fitting(lists::page(events).0);
    events.reverse();
    Ok(EventsPage { events, more: false })
}
