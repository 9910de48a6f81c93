//! What needs or follows what on one node: duplicate keys, needs that are missing, module needs, circles.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use tenure_protocol::id::{ModuleName, NodeId};
use tenure_protocol::path::DeclaredPath;
use tenure_protocol::refusal::{Explain, Refusal};
use tenure_protocol::resource::{DirectorySpec, FileSpec, Resource, ResourceKey, ResourceKind, Spec};

use super::mistake::{Mistake, did_you_mean};
use super::module::Module;
use super::place::Source;

/// A rendered resource, with where it was written. Its own `needs` are still empty.
#[derive(Debug)]
pub(super) struct Placed<'f> {
    pub(super) resource: Resource,
    pub(super) source: Source<'f>,
    pub(super) at: usize,
    /// What it names, each with where that stands.
    pub(super) edges: Vec<Edge>,
}

/// One resource named by another.
#[derive(Debug)]
pub(super) struct Edge {
    pub(super) how: How,
    pub(super) to: ResourceKey,
    pub(super) at: usize,
}

/// How a resource depends on another. Only needs block on failure; all of them order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Needs,
    RestartsOn,
    ReloadsOn,
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Needs => "needs",
            Self::RestartsOn => "restarts on",
            Self::ReloadsOn => "reloads on",
        })
    }
}

/// For each resource, the positions of others.
type Positions = Vec<BTreeSet<usize>>;

/// The most edges one declaration may have; more would not fit in its bytes.
const MOST_EDGES: usize = 500_000;

/// Where a kind stands where no edge says otherwise: packages, then what has a path, then units.
pub(super) const fn turn(kind: ResourceKind) -> u8 {
    match kind {
        ResourceKind::Package => 0,
        ResourceKind::Directory | ResourceKind::File => 1,
        ResourceKind::Unit => 2,
    }
}

/// Puts the resources in the order of their kinds and paths, so that a directory stands before what lies in it, and
/// gives each its needs: those it names, and what the modules its module needs end in.
pub(super) fn resolve(
    node: &NodeId,
    modules: &[&Module<'_>],
    mut placed: Vec<Placed<'_>>,
) -> Result<Vec<Resource>, Refusal> {
    placed.sort_by(|one, other| {
        let (one, other) = (&one.resource.key, &other.resource.key);
        turn(one.kind()).cmp(&turn(other.kind())).then_with(|| one.cmp(other))
    });
    check_twice(&placed)?;
    check_paths(&placed)?;
    let (mut needs, follows) = named(node, &placed)?;
    // What a unit restarts on does not stand in its way, so a module neither begins nor ends by it.
    add_module_needs(modules, &placed, &mut needs);
    let edges: Vec<Vec<usize>> =
        needs.iter().zip(&follows).map(|(needs, follows)| needs.union(follows).copied().collect()).collect();
    let count: usize = edges.iter().map(Vec::len).sum();
    if count > MOST_EDGES {
        let what = format!("{count} needs between resources, at most {MOST_EDGES}");
        return Err(Mistake::TooLarge { node: node.clone(), what }.refusal());
    }
    refuse_circle(&placed, &edges)?;
    let keys: Vec<ResourceKey> = placed.iter().map(|placed| placed.resource.key.clone()).collect();
    let needs = needs.iter().map(|needs| needs.iter().filter_map(|at| keys.get(*at).cloned()).collect());
    Ok(placed.into_iter().zip(needs).map(|(placed, needs)| Resource { needs, ..placed.resource }).collect())
}

/// One path is one thing, and one name is one thing of its kind.
fn check_twice(placed: &[Placed<'_>]) -> Result<(), Refusal> {
    let mut things: HashMap<(Option<ResourceKind>, &str), &Placed<'_>> = HashMap::with_capacity(placed.len());
    for one in placed {
        let key = &one.resource.key;
        let kind = if key.path().is_some() { None } else { Some(key.kind()) };
        if let Some(other) = things.insert((kind, key.name()), one) {
            // The one that comes later where a person reads is the one to point at.
            let (first, second) = if (other.source.file, other.at) <= (one.source.file, one.at) {
                (other, one)
            } else {
                (one, other)
            };
            let mistake =
                Mistake::Twice { key: second.resource.key.to_string(), first: first.source.place(first.at) };
            return Err(mistake.at(second.source, second.at));
        }
    }
    Ok(())
}

/// Nothing lies below a file or below what should be gone.
fn check_paths(placed: &[Placed<'_>]) -> Result<(), Refusal> {
    let paths: HashMap<&DeclaredPath, &Placed<'_>> =
        placed.iter().filter_map(|one| Some((one.resource.key.path()?, one))).collect();
    placed.iter().try_for_each(|one| check_above(one, &paths))
}

fn check_above(one: &Placed<'_>, paths: &HashMap<&DeclaredPath, &Placed<'_>>) -> Result<(), Refusal> {
    let above = |path: &DeclaredPath| path.parent().and_then(|path| DeclaredPath::new(path).ok());
    let mut next = one.resource.key.path().and_then(above);
    while let Some(path) = next {
        if let Some(other) = paths.get(&path).filter(|_| !one.resource.spec.is_absent()) {
            let how = match &other.resource.spec {
                Spec::Directory(DirectorySpec { present: None, .. })
                | Spec::File(FileSpec { present: None, .. }) => Some("absent"),
                Spec::File(FileSpec { present: Some(_), .. }) => Some("a file"),
                Spec::Directory(_) | Spec::Package(_) | Spec::Unit(_) => None,
            };
            if let Some(how) = how {
                let key = one.resource.key.to_string();
                let place = other.source.place(other.at);
                let mistake = Mistake::Below { key, above: path.to_string(), how, place };
                return Err(mistake.at(one.source, one.at));
            }
        }
        next = above(&path);
    }
    Ok(())
}

/// The needs that are written, and what is restarted or reloaded on, as positions.
fn named(node: &NodeId, placed: &[Placed<'_>]) -> Result<(Positions, Positions), Refusal> {
    let places: HashMap<&ResourceKey, usize> =
        placed.iter().enumerate().map(|(at, placed)| (&placed.resource.key, at)).collect();
    let missing = |one: &Placed<'_>, edge: &Edge| {
        let keys: Vec<String> = placed.iter().map(|one| one.resource.key.to_string()).collect();
        let hint = did_you_mean(&edge.to.to_string(), keys.iter().map(String::as_str));
        let (key, to) = (one.resource.key.clone(), edge.to.clone());
        Mistake::NeedMissing { node: node.clone(), key, how: edge.how, to, hint }.at(one.source, edge.at)
    };
    let of = |one: &Placed<'_>| {
        let (mut needs, mut follows) = (BTreeSet::new(), BTreeSet::new());
        for edge in &one.edges {
            let at = *places.get(&edge.to).ok_or_else(|| missing(one, edge))?;
            match edge.how {
                How::Needs => needs.insert(at),
                How::RestartsOn | How::ReloadsOn => follows.insert(at),
            };
        }
        Ok((needs, follows))
    };
    placed.iter().map(of).collect()
}

/// A module that needs another begins after the other ends: what nothing else of its module comes before needs
/// what nothing else of the other module comes after.
fn add_module_needs(modules: &[&Module<'_>], placed: &[Placed<'_>], edges: &mut [BTreeSet<usize>]) {
    let mut members: BTreeMap<&ModuleName, Vec<usize>> = BTreeMap::new();
    for (at, one) in placed.iter().enumerate() {
        members.entry(&one.resource.module).or_default().push(at);
    }
    let module_of = |at: usize| placed.get(at).map(|one| &one.resource.module);
    let mut firsts: BTreeMap<&ModuleName, Vec<usize>> = BTreeMap::new();
    let mut lasts: BTreeMap<&ModuleName, Vec<usize>> = BTreeMap::new();
    for (module, members) in &members {
        let inner = |at: &usize| {
            edges.get(*at).into_iter().flatten().filter(|need| module_of(**need) == Some(module))
        };
        let needed: BTreeSet<usize> = members.iter().flat_map(inner).copied().collect();
        firsts.insert(module, members.iter().filter(|at| inner(at).next().is_none()).copied().collect());
        lasts.insert(module, members.iter().filter(|at| !needed.contains(at)).copied().collect());
    }
    for module in modules {
        let mut ends = BTreeSet::new();
        for need in &module.needs {
            collect_ends(need.get_ref(), modules, &lasts, &mut ends);
        }
        for first in firsts.get(&module.name).into_iter().flatten() {
            if let Some(needs) = edges.get_mut(*first) {
                needs.extend(&ends);
            }
        }
    }
}

/// What the module `name` ends in; through modules that have no resource of their own. Modules do not need each
/// other in a circle here: that was refused when the fleet was read.
fn collect_ends(
    name: &ModuleName,
    modules: &[&Module<'_>],
    lasts: &BTreeMap<&ModuleName, Vec<usize>>,
    ends: &mut BTreeSet<usize>,
) {
    match (lasts.get(name), modules.iter().find(|module| module.name == *name)) {
        (Some(lasts), _) => ends.extend(lasts),
        (None, Some(module)) => {
            module.needs.iter().for_each(|need| collect_ends(need.get_ref(), modules, lasts, ends));
        }
        (None, None) => {}
    }
}

fn refuse_circle(placed: &[Placed<'_>], edges: &[Vec<usize>]) -> Result<(), Refusal> {
    let Some(circle) = circle(edges) else { return Ok(()) };
    let members: Vec<&Placed<'_>> = circle.iter().filter_map(|at| placed.get(*at)).collect();
    let names: Vec<String> = members.iter().map(|one| one.resource.key.to_string()).collect();
    let mistake = Mistake::Circle(names.join(" → "));
    // A step of the circle that is written, rather than made by a module need.
    let written = members.windows(2).find_map(|pair| {
        let [one, next] = pair else { return None };
        let edge = one.edges.iter().find(|edge| edge.to == next.resource.key)?;
        Some((one.source, edge.at))
    });
    Err(written.map_or_else(|| mistake.refusal(), |(source, at)| mistake.at(source, at)))
}

/// Positions that need each other in a circle, the first repeated at the end; none: there is no circle.
pub(super) fn circle(edges: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut waiting: Vec<usize> = edges.iter().map(Vec::len).collect();
    let mut needed_by: Vec<Vec<usize>> = vec![Vec::new(); edges.len()];
    for (at, needs) in edges.iter().enumerate() {
        for need in needs {
            needed_by[*need].push(at);
        }
    }
    let mut ready: Vec<usize> = (0..edges.len()).filter(|at| waiting[*at] == 0).collect();
    while let Some(at) = ready.pop() {
        for &next in &needed_by[at] {
            waiting[next] -= 1;
            if waiting[next] == 0 {
                ready.push(next);
            }
        }
    }
    let mut at = waiting.iter().position(|left| *left > 0)?;
    let mut walked: Vec<usize> = Vec::new();
    let mut seen = BTreeSet::new();
    // Whatever still waits needs something that still waits, so this ends only by coming back.
    while seen.insert(at) {
        walked.push(at);
        at = edges[at].iter().copied().find(|need| waiting[*need] > 0)?;
    }
    let start = walked.iter().position(|place| *place == at).unwrap_or_default();
    Some(walked.get(start..).into_iter().flatten().copied().chain([at]).collect())
}

#[cfg(test)]
mod tests;
