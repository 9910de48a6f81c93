//! From a folder's digest to declarations in the store: the folder is put together, read, rendered for every node it
//! names, compared with what each of them has, and written in one transaction, or not at all. Called by the actor.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tenure_protocol::content::Push;
use tenure_protocol::declaration::{Declaration, Header, MOST_BYTES};
use tenure_protocol::id::{Digest, NodeId, RevisionNumber};
use tenure_protocol::machine::NodeState;
use tenure_protocol::operator::{Change, Declare, Declared, Folder, NodePlan, Plan, Render, Rendered};
use tenure_protocol::refusal::{Explain as _, Refusal};
use tenure_protocol::resource::Content;
use tenure_protocol::text::shown;
use tokio::runtime::Handle;

use super::fleet::{self, Fleet};
use super::folder::{self, FolderFiles};
use super::refusals::CatalogueRefusal;
use super::render::{self, Rendering};
use super::{ahead, preview, removals};
use crate::briefing::not_assignable;
use crate::plane::Plane;
use crate::store::{NewDeclaration, NodeRecord, NodeSummary};

/// Writes what the folder declares, or says what that would change.
pub(super) async fn declare(plane: &Arc<Plane>, asked: Declare) -> Result<Declared, Refusal> {
    let files = files(plane, asked.folder).await?;
    let is_plan = asked.plan;
    let draft = off_the_runtime(plane, move |store| draft(store, &files, &asked)).await?;
    let Draft { declarations, contents, mut plan, .. } = draft;
    if is_plan {
        ahead::lay_aside(plane, declarations, contents, &mut plan).await?;
        return Ok(Declared { written: false, plan: show(plane, plan.encode()).await? });
    }
    // What is written can always be shown: it is kept before, or nothing is written.
    let plan = keep(plane, plan.encode(), Vec::new()).await?;
    if declarations.is_empty() {
        return Ok(Declared { written: false, plan });
    }
    let pushes: Vec<(NodeId, Push)> = declarations.iter().map(push).collect();
    let written = plane.store.declare(declarations, contents.into_values().collect(), plane.now()).await?;
    written.map_err(|not| CatalogueRefusal::from(not).refusal())?;
    for (node, push) in pushes {
        tracing::info!(%node, revision = %push.revision, resources = push.resources, "declared");
        if let Ok(node) = crate::fleet::find(plane, &node) {
            node.reconcile.declared(push);
        }
    }
    Ok(Declared { written: true, plan })
}

/// Keeps a document that nothing names for an hour, with what it speaks of, if there is room (S-22).
async fn keep(plane: &Plane, document: Vec<u8>, mut contents: Vec<Vec<u8>>) -> Result<Content, Refusal> {
    let content = named(&document);
    contents.push(document);
    let is_kept = plane.store.keep(contents, plane.now()).await?;
    if is_kept { Ok(content) } else { Err(CatalogueRefusal::NotKept.refusal()) }
}

/// Keeps the document of a plan likewise, in what plans have of that room.
async fn show(plane: &Plane, document: Vec<u8>) -> Result<Content, Refusal> {
    let content = named(&document);
    let is_kept = plane.store.keep_plan(document, plane.now()).await?;
    if is_kept { Ok(content) } else { Err(CatalogueRefusal::NotKept.refusal()) }
}

/// Renders one node with the header that the next declaration would have. Its contents are kept for an hour.
pub(super) async fn render(plane: &Arc<Plane>, asked: Render) -> Result<Rendered, Refusal> {
    let files = files(plane, asked.folder).await?;
    let (bytes, rendering) = off_the_runtime(plane, move |store| {
        let fleet = fleet::read(&files)?;
        fleet.check_nodes(&store.known())?;
        let before = store.before(&asked.node)?;
        let rendering = render::render(&fleet, &asked.node)?;
        let bytes = render::declare(&store.header(&before, None), &rendering.resources)?;
        Ok((bytes, rendering))
    })
    .await?;
    let declaration = keep(plane, bytes, rendering.contents.into_values().collect()).await?;
    Ok(Rendered { declaration })
}

fn named(bytes: &[u8]) -> Content {
    Content { sha256: Digest::of(bytes), size: u64::try_from(bytes.len()).unwrap_or(u64::MAX) }
}

fn push(new: &NewDeclaration) -> (NodeId, Push) {
    let Content { sha256, size } = named(&new.bytes);
    (new.node.clone(), Push { revision: new.revision, sha256, bytes: size, resources: new.resources })
}

/// Puts the folder together from its listing. Its names and sizes are judged before anything is fetched.
async fn files(plane: &Plane, listing: Digest) -> Result<FolderFiles, Refusal> {
    let absent = |sha256| CatalogueRefusal::NoContent(sha256).refusal();
    let bytes = plane.store.content(listing).await?.ok_or_else(|| absent(listing))?;
    let listing: Folder = serde_json::from_slice(&bytes)
        .map_err(|error| CatalogueRefusal::Listing(shown(&error.to_string(), 200)).refusal())?;
    folder::check(&listing)?;
    let mut files = BTreeMap::new();
    for file in listing.files {
        let bytes = plane.store.content(file.sha256).await?.ok_or_else(|| absent(file.sha256))?;
        if u64::try_from(bytes.len()) != Ok(file.size) {
            return Err(CatalogueRefusal::Size { path: shown(&file.path, 200) }.refusal());
        }
        files.insert(file.path, bytes);
    }
    FolderFiles::new(files)
}

/// Runs what renders on a thread of its own; there it may wait for the store.
async fn off_the_runtime<T: Send + 'static>(
    plane: &Arc<Plane>,
    job: impl FnOnce(&Desk) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let desk = Desk { plane: Arc::clone(plane), runtime: Handle::current() };
    match tokio::task::spawn_blocking(move || job(&desk))
        .await
        .map_err(tokio::task::JoinError::try_into_panic)
    {
        Ok(result) => result,
        // A fault of ours is the actor's to tell; whoever asked hears that nothing was answered.
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        // The runtime ends, and this with it.
        Err(Err(_)) => std::future::pending().await,
    }
}

/// What the store knows, for a thread that may wait.
struct Desk {
    plane: Arc<Plane>,
    runtime: Handle,
}

/// A node as it stands before a declaration.
struct Before {
    record: NodeRecord,
    number: RevisionNumber,
    declaration: Option<Declaration>,
    /// What it owns: as it reported, or as was declared for it, whichever is more.
    owned: u64,
    /// The bytes of that declaration.
    bytes: Option<Content>,
}

impl Desk {
    fn wait<T>(&self, pending: crate::store::Pending<'_, T>) -> Result<T, Refusal> {
        Ok(self.runtime.block_on(pending)?)
    }

    /// Every identity, in every state.
    fn known(&self) -> BTreeSet<NodeId> {
        let addresses = self.plane.nodes.list();
        addresses.iter().filter_map(|address| address.strip_prefix("node/")?.parse().ok()).collect()
    }

    fn content(&self, sha256: Digest) -> Option<Vec<u8>> {
        self.wait(self.plane.store.content(sha256)).ok().flatten()
    }

    fn before(&self, node: &NodeId) -> Result<Before, Refusal> {
        let summary = self.wait(self.plane.store.summary(node.clone()))?;
        let summary = summary.ok_or_else(|| crate::fleet::unknown(&self.plane, node))?;
        let NodeSummary { record, declared, report, .. } = summary;
        if record.state == NodeState::Retired {
            return Err(CatalogueRefusal::Retired(node.clone()).refusal());
        }
        if let Some(line) = not_assignable(&record) {
            let (node, subject, text) = (node.clone(), line.subject.clone(), line.text.clone());
            return Err(CatalogueRefusal::NotAssignable { node, subject, text }.refusal());
        }
        let reported = report.map_or(0, |report| report.summary.owned);
        let Some(declared) = declared else {
            return Ok(Before {
                record,
                number: RevisionNumber(0),
                declaration: None,
                owned: reported,
                bytes: None,
            });
        };
        let unreadable = || CatalogueRefusal::LastUnreadable(node.clone()).refusal();
        let bytes = self.wait(self.plane.store.content(declared.sha256))?.ok_or_else(unreadable)?;
        let declaration = Declaration::parse(&bytes).map_err(|_| unreadable())?;
        Ok(Before {
            record,
            number: declared.revision.number,
            declaration: Some(declaration),
            owned: reported.max(declared.resources),
            bytes: Some(Content { sha256: declared.sha256, size: declared.bytes }),
        })
    }

    /// The terms of the next declaration.
    fn header(&self, before: &Before, allowed_removals: Option<u64>) -> Header {
        Header {
            control_plane_id: self.plane.founding.control_plane_id,
            node: before.record.node.clone(),
            generation: before.record.generation,
            epoch: self.plane.founding.epoch,
            revision: before.number.next(),
            mode: before.record.mode,
            taken: Vec::new(),
            allowed_removals,
            is_final: false,
        }
    }
}

/// How many bytes the nodes of a plan and their changes may have together: three quarters of what the command line takes
/// as one document. The names of the nodes that are not in the folder have the rest.
const MOST_LISTED: u64 = MOST_BYTES / 4 * 3;

/// What may be said of a node beside its changes after they are listed: why it cannot be asked, and how many are not
/// listed.
const MOST_TOLD: usize = 1024;

/// What is to be written, and what it changes.
#[derive(Default)]
struct Draft {
    declarations: Vec<NewDeclaration>,
    contents: BTreeMap<Digest, Vec<u8>>,
    plan: Plan,
    /// The most bytes that the nodes of the plan, with the changes it lists, may come to.
    listed: u64,
}

impl Draft {
    /// Counts a node of which nothing is listed yet.
    fn head(&mut self, plan: &NodePlan) {
        let head = serde_json::to_vec(plan).map_or(usize::MAX, |bytes| bytes.len());
        self.listed = self.with(head.saturating_add(MOST_TOLD));
    }

    fn with(&self, bytes: usize) -> u64 {
        self.listed.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// Lists the changes, as many as there is room for; the others are counted.
    fn list(&mut self, plan: &mut NodePlan, changes: Vec<Change>) {
        for change in changes {
            // As a document quotes it, each of its characters may be two; quotes and a comma stand around a line.
            let lines = change.detail.iter().map(|line| 2 * line.len() + 3).sum::<usize>();
            let listed = self.with(lines + 2 * change.key.len() + 128);
            if listed > MOST_LISTED {
                plan.unlisted += 1;
            } else {
                self.listed = listed;
                plan.changes.push(change);
            }
        }
    }
}

fn draft(desk: &Desk, files: &FolderFiles, asked: &Declare) -> Result<Draft, Refusal> {
    let fleet = fleet::read(files)?;
    let known = desk.known();
    fleet.check_nodes(&known)?;
    let mut draft = Draft::default();
    for node in fleet.nodes() {
        one(desk, &fleet, node, asked, &mut draft)?;
    }
    draft.plan.not_in_folder = not_in_folder(desk, &fleet)?;
    Ok(draft)
}

fn one(
    desk: &Desk,
    fleet: &Fleet<'_>,
    node: &NodeId,
    asked: &Declare,
    draft: &mut Draft,
) -> Result<(), Refusal> {
    let before = desk.before(node)?;
    let rendering = render::render(fleet, node)?;
    let resources = u64::try_from(rendering.resources.len()).unwrap_or(u64::MAX);
    let mut plan = NodePlan {
        node: node.clone(),
        from: before.declaration.is_some().then_some(before.number),
        to: before.number,
        resources,
        declaration: before.bytes,
        cannot_know: None,
        refused: None,
        changes: Vec::new(),
        unlisted: 0,
    };
    let header = desk.header(&before, asked.allow_removals);
    if !is_same(before.declaration.as_ref(), &header, &rendering) {
        let leaving = leaving(before.declaration.as_ref(), &rendering);
        let judged = removals::check(node, before.owned, leaving, asked.allow_removals, false);
        // A plan shows what would be refused, so that it can be looked at.
        match (judged, asked.plan) {
            (Err(refusal), false) => return Err(refusal),
            (judged, _) => plan.refused = judged.err().map(|why| removals::in_a_plan(why, leaving)),
        }
        let text = |sha256| rendering.contents.get(&sha256).cloned().or_else(|| desk.content(sha256));
        let changes = preview::changes(before.declaration.as_ref(), &rendering.resources, &text);
        plan.to = header.revision;
        let bytes = render::declare(&header, &rendering.resources)?;
        plan.declaration = Some(named(&bytes));
        draft.head(&plan);
        draft.list(&mut plan, changes);
        draft.declarations.push(NewDeclaration {
            node: node.clone(),
            after: before.number,
            revision: header.revision(),
            bytes,
            resources,
            contents: rendering.contents.keys().copied().collect(),
        });
        draft.contents.extend(rendering.contents);
    } else {
        draft.head(&plan);
    }
    draft.plan.nodes.push(plan);
    Ok(())
}

/// The same resources under the same terms are no new revision. The number is no term, and neither is the word for
/// removals unless it allows more than before: a node that refused for the lack of it needs a revision that has it.
fn is_same(before: Option<&Declaration>, header: &Header, rendering: &Rendering) -> bool {
    before.is_some_and(|before| {
        if header.allowed_removals > before.header.allowed_removals {
            return false;
        }
        let terms = Header {
            revision: header.revision,
            allowed_removals: header.allowed_removals,
            ..before.header.clone()
        };
        terms == *header
            && before.entries.len() == rendering.resources.len()
            && before.resources().eq(&rendering.resources)
    })
}

fn leaving(before: Option<&Declaration>, rendering: &Rendering) -> u64 {
    let after: BTreeSet<String> =
        rendering.resources.iter().map(|resource| resource.key.to_string()).collect();
    let gone =
        before.into_iter().flat_map(|before| &before.entries).filter(|entry| !after.contains(&entry.key()));
    u64::try_from(gone.count()).unwrap_or(u64::MAX)
}

/// Nodes that keep their declaration since the folder does not name them.
fn not_in_folder(desk: &Desk, fleet: &Fleet<'_>) -> Result<Vec<NodeId>, Refusal> {
    let named: BTreeSet<&NodeId> = fleet.nodes().collect();
    let (mut left, mut after) = (Vec::new(), None);
    loop {
        let page = desk.wait(desk.plane.store.names(after, 1000))?;
        let Some((last, _)) = page.last() else { return Ok(left) };
        after = Some(last.clone());
        let stays = |(node, state): (NodeId, NodeState)| {
            (state != NodeState::Retired && !named.contains(&node)).then_some(node)
        };
        left.extend(page.into_iter().filter_map(stays));
    }
}

#[cfg(test)]
mod tests {
    use tenure_protocol::id::ModuleName;
    use tenure_protocol::operator::ChangeKind;

    use super::*;

    fn head(node: &str) -> NodePlan {
        NodePlan {
            node: NodeId::new(node).unwrap(),
            from: None,
            to: RevisionNumber(1),
            resources: 20,
            declaration: Some(named(b"")),
            cannot_know: None,
            refused: None,
            changes: Vec::new(),
            unlisted: 0,
        }
    }

    /// A plan whose nodes each have so many changes, of so many lines that are nothing but quotes.
    fn planned(nodes: usize, changes: usize, lines: (usize, usize)) -> Draft {
        let change = |number: usize| Change {
            key: format!("file:/srv/{number}"),
            module: ModuleName::new("web").unwrap(),
            what: ChangeKind::Add,
            detail: vec!["\"".repeat(lines.1); lines.0],
        };
        let mut draft = Draft::default();
        for number in 0..nodes {
            let mut plan = head(&format!("edge-{number}"));
            draft.head(&plan);
            draft.list(&mut plan, (0..changes).map(change).collect());
            assert_eq!(plan.changes.len() + usize::try_from(plan.unlisted).unwrap(), changes);
            plan.cannot_know = Some(CatalogueRefusal::NotLaidAside(plan.node.clone()).refusal());
            draft.plan.nodes.push(plan);
        }
        draft
    }

    // rule: S-22
    #[test]
    fn a_plan_lists_as_many_changes_as_it_has_room_for_and_counts_the_others() {
        // Long lines and short ones for few nodes, and one change for each of thousands.
        for (nodes, changes, lines) in
            [(2, 20, (10_000, 100)), (2, 20, (10, 120_000)), (20_000, 1, (20, 100))]
        {
            let plan = planned(nodes, changes, lines).plan;
            let unlisted: Vec<u64> = plan.nodes.iter().map(|node| node.unlisted).collect();
            assert!(unlisted.first() == Some(&0) && unlisted.last() > Some(&0), "{nodes} of {changes}");
            let bytes = plan.encode().len();
            assert!(
                u64::try_from(bytes).unwrap() <= MOST_BYTES,
                "quoted, {bytes} bytes are few enough to be fetched"
            );
        }
    }
}
