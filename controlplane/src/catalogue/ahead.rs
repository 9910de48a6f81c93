//! What a plan lays aside, so that the nodes it names can be asked what they would make of it: the declaration of each
//! node that is there, with what it names. It is kept for an hour, and never takes the room of what is uploaded (S-22).

use std::collections::{BTreeMap, BTreeSet};

use tenure_protocol::id::{Digest, NodeId};
use tenure_protocol::operator::{NodePlan, Plan};
use tenure_protocol::refusal::{Explain as _, Refusal};

use super::refusals::CatalogueRefusal;
use crate::plane::Plane;
use crate::store::NewDeclaration;

/// How much goes into one commit: so much that a fleet of small declarations needs few, so little that nobody else who
/// writes waits for it.
const TOGETHER: usize = 1024 * 1024;

/// Lays aside the nodes one after the other. From the first one that finds no room on, the plan says of each that it
/// cannot be asked, and why.
pub(super) async fn lay_aside(
    plane: &Plane,
    declarations: Vec<NewDeclaration>,
    mut contents: BTreeMap<Digest, Vec<u8>>,
    plan: &mut Plan,
) -> Result<(), Refusal> {
    let is_there = |new: &NewDeclaration| plane.presence.of(&new.node).session.is_some();
    let (now, mut has_room, mut beyond) = (plane.now(), true, BTreeSet::new());
    let mut there = declarations.into_iter().filter(is_there).peekable();
    while there.peek().is_some() {
        let (mut nodes, mut sets, mut bytes) = (Vec::new(), Vec::new(), 0_usize);
        while bytes < TOGETHER
            && let Some(new) = there.next()
        {
            // What several nodes name is laid aside with the first of them.
            let named = new.contents.iter().filter_map(|sha256| contents.remove(sha256));
            let set: Vec<Vec<u8>> = named.chain([new.bytes]).collect();
            bytes = set.iter().fold(bytes, |bytes, content| bytes.saturating_add(content.len()));
            nodes.push(new.node);
            sets.push(set);
        }
        let found = if has_room { plane.store.lay_aside(sets, now).await? } else { 0 };
        has_room = found == nodes.len();
        beyond.extend(nodes.into_iter().skip(found));
    }
    plan.nodes.iter_mut().filter(|plan| beyond.contains(&plan.node)).for_each(cannot_be_asked);
    Ok(())
}

fn cannot_be_asked(plan: &mut NodePlan) {
    let node: NodeId = plan.node.clone();
    plan.cannot_know = Some(CatalogueRefusal::NotLaidAside(node).refusal());
}
