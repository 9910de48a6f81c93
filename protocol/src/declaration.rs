//! A declaration: the whole desired state of one node, under a revision.
//!
//! It has one form everywhere, JSON in a fixed order: what is rendered, what a bundle holds, what the link carries
//! and what the host stores are the same bytes, and their SHA-256 names them. They begin with the header, so that a
//! digest covers whose declaration it is (S-11). [`Declaration::parse`] refuses a damaged document whole; a resource
//! this version does not understand fails alone (S-10).

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::id::{ControlPlaneId, Digest, Epoch, Generation, ModuleName, NodeId, Revision, RevisionNumber};
use crate::machine::Mode;
use crate::resource::{Content, Resource, ResourceKey, ResourceKind, Spec};
use crate::text::{nearest, shown};
use crate::wire::codec::bounded;

/// The most resources one declaration may have.
pub const MOST_RESOURCES: usize = 100_000;
/// The most bytes one declaration may have.
pub const MOST_BYTES: u64 = 64 * 1024 * 1024;
/// The most modules a declaration may call taken.
pub const MOST_TAKEN: usize = 10_000;
/// The most bytes of a key that can be read: a path, and room for the word before it.
const MOST_KEY: usize = 4096 + 64;

/// Whose declaration it is, and under which terms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The control plane that declares.
    pub control_plane_id: ControlPlaneId,
    /// The node it is for.
    pub node: NodeId,
    /// The life of that node it is for.
    pub generation: Generation,
    /// The control plane's epoch.
    pub epoch: Epoch,
    /// The revision within the epoch.
    pub revision: RevisionNumber,
    /// Whether found things are kept.
    pub mode: Mode,
    /// The modules that were taken on this node.
    pub taken: Vec<ModuleName>,
    /// How many owned resources this revision may remove in all. None: a tenth, at least one, and never all (H-23).
    pub allowed_removals: Option<u64>,
    /// The final, empty declaration of a graceful retirement (H-14): said, never inferred from an empty list.
    pub is_final: bool,
}

impl Header {
    /// Whether both are for the same life of the same node, of the same control plane.
    pub fn is_for_the_same(&self, other: &Self) -> bool {
        (self.control_plane_id, &self.node, self.generation)
            == (other.control_plane_id, &other.node, other.generation)
    }

    /// Epoch and number together.
    pub const fn revision(&self) -> Revision {
        Revision { epoch: self.epoch, number: self.revision }
    }
}

/// The whole desired state of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declaration {
    /// Whose, and under which terms.
    pub header: Header,
    /// Every resource, understood or not, in the order they were declared.
    pub entries: Vec<Entry>,
    order: Vec<usize>,
}

/// One line of a declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A resource this version understands.
    Known(Resource),
    /// One it does not: it is refused by name, and the rest applies.
    Unsupported(Unsupported),
}

impl Entry {
    /// The key as text, also of one that is not understood: as it is compared, not as it is shown.
    pub fn key(&self) -> String {
        match self {
            Self::Known(resource) => resource.key.text(),
            Self::Unsupported(unsupported) => unsupported.key.clone(),
        }
    }
}

/// A resource this version cannot perform as declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported {
    /// Its key as written, in its one spelling where it has one: what records are compared with. It comes from outside;
    /// show [`Unsupported::shown_key`].
    pub key: String,
    /// The module that declares it, as written; bounded and escaped.
    pub module: String,
    /// `unsupported_kind` or `unsupported_field`.
    pub code: &'static str,
    /// What is not understood.
    pub reason: String,
}

impl Unsupported {
    /// The key as it may be shown: bounded and escaped.
    pub fn shown_key(&self) -> String {
        shown(&self.key, MOST_KEY)
    }
}

/// Why bytes are not a declaration. It is refused whole, and the last good one stays.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeclarationError {
    /// Not JSON, cut short, or its head has another form.
    #[error("the declaration cannot be read: {0}")]
    Unreadable(String),
    /// Two resources of one key.
    #[error("the declaration names {0} twice")]
    Twice(String),
    /// A resource needs one that the declaration does not have.
    #[error("{key} needs {needs}, which is not declared")]
    NeedMissing {
        /// The one that needs.
        key: String,
        /// What it needs.
        needs: String,
    },
    /// Resources that need each other in a circle.
    #[error("these need each other in a circle: {0}")]
    Circle(String),
    /// More resources or bytes than one declaration may have.
    #[error("the declaration is too large: {0}")]
    TooLarge(String),
}

#[derive(Serialize)]
struct FormOut<'a> {
    #[serde(flatten)]
    header: HeaderForm<'a>,
    resources: Vec<EntryOut<'a>>,
}

/// The header's fields stand at the top level, in this order; `flatten` keeps it.
#[derive(Serialize)]
struct HeaderForm<'a> {
    control_plane_id: &'a ControlPlaneId,
    node: &'a NodeId,
    generation: Generation,
    epoch: Epoch,
    revision: RevisionNumber,
    mode: Mode,
    taken: &'a [ModuleName],
    allowed_removals: Option<u64>,
    is_final: bool,
}

#[derive(Serialize)]
struct EntryOut<'a> {
    key: &'a ResourceKey,
    module: &'a ModuleName,
    needs: &'a [ResourceKey],
    #[serde(flatten)]
    spec: SpecOut<'a>,
}

#[derive(Serialize)]
enum SpecOut<'a> {
    #[serde(rename = "spec")]
    Package(&'a crate::resource::PackageSpec),
    #[serde(rename = "spec")]
    Unit(&'a crate::resource::UnitSpec),
    #[serde(rename = "spec")]
    File(&'a crate::resource::FileSpec),
    #[serde(rename = "spec")]
    Directory(&'a crate::resource::DirectorySpec),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FormIn<'a> {
    control_plane_id: ControlPlaneId,
    node: NodeId,
    generation: Generation,
    epoch: Epoch,
    revision: RevisionNumber,
    mode: Mode,
    #[serde(deserialize_with = "bounded::<_, _, MOST_TAKEN>")]
    taken: Vec<ModuleName>,
    allowed_removals: Option<u64>,
    is_final: bool,
    #[serde(borrow, deserialize_with = "list::one_more::<_, MOST_RESOURCES>")]
    resources: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryIn<'a> {
    key: ResourceKey,
    module: ModuleName,
    needs: Vec<ResourceKey>,
    #[serde(borrow)]
    spec: &'a RawValue,
}

/// What is read of a resource that is not understood, to name it. Its key must be readable: a resource without one would
/// look as though it had left the declaration.
#[derive(Deserialize)]
struct Name {
    key: String,
    #[serde(default)]
    module: serde_json::Value,
}

/// The head, and each resource as it is written.
fn open(bytes: &[u8]) -> Result<(Header, Vec<&RawValue>), DeclarationError> {
    if u64::try_from(bytes.len()).is_ok_and(|len| len > MOST_BYTES) {
        return Err(DeclarationError::TooLarge(format!("{} bytes, at most {MOST_BYTES}", bytes.len())));
    }
    let form: FormIn<'_> = serde_json::from_slice(bytes).map_err(|error| unreadable(&error))?;
    if form.resources.len() > MOST_RESOURCES {
        return Err(DeclarationError::TooLarge(format!("more than {MOST_RESOURCES} resources")));
    }
    let header = Header {
        control_plane_id: form.control_plane_id,
        node: form.node,
        generation: form.generation,
        epoch: form.epoch,
        revision: form.revision,
        mode: form.mode,
        taken: form.taken,
        allowed_removals: form.allowed_removals,
        is_final: form.is_final,
    };
    Ok((header, form.resources))
}

fn unreadable(error: &serde_json::Error) -> DeclarationError {
    DeclarationError::Unreadable(shown(&error.to_string(), 300))
}

impl Declaration {
    /// The bytes of a declaration of known resources; the digest and the link carry exactly these.
    pub fn encode(header: &Header, resources: &[Resource]) -> Result<Vec<u8>, DeclarationError> {
        let form = FormOut {
            header: HeaderForm {
                control_plane_id: &header.control_plane_id,
                node: &header.node,
                generation: header.generation,
                epoch: header.epoch,
                revision: header.revision,
                mode: header.mode,
                taken: &header.taken,
                allowed_removals: header.allowed_removals,
                is_final: header.is_final,
            },
            resources: resources
                .iter()
                .map(|resource| EntryOut {
                    key: &resource.key,
                    module: &resource.module,
                    needs: &resource.needs,
                    spec: match &resource.spec {
                        Spec::Package(spec) => SpecOut::Package(spec),
                        Spec::Directory(spec) => SpecOut::Directory(spec),
                        Spec::File(spec) => SpecOut::File(spec),
                        Spec::Unit(spec) => SpecOut::Unit(spec),
                    },
                })
                .collect(),
        };
        serde_json::to_vec(&form).map_err(|error| DeclarationError::Unreadable(error.to_string()))
    }

    /// Reads a declaration. Refused whole when the document is damaged, has a key twice, a need that is not
    /// declared, a circle, a resource whose key cannot be read, or is too large; a resource that is not understood becomes [`Entry::Unsupported`].
    pub fn parse(bytes: &[u8]) -> Result<Self, DeclarationError> {
        Self::parse_placed(bytes).map(|(declaration, _)| declaration)
    }

    /// Only the head of a declaration, of whatever resources.
    pub fn header_of(bytes: &[u8]) -> Result<Header, DeclarationError> {
        open(bytes).map(|(header, _)| header)
    }

    /// The resources this version understands.
    pub fn resources(&self) -> impl Iterator<Item = &Resource> {
        Self::known(&self.entries)
    }

    fn known(entries: &[Entry]) -> impl Iterator<Item = &Resource> {
        entries.iter().filter_map(|entry| match entry {
            Entry::Known(resource) => Some(resource),
            Entry::Unsupported(_) => None,
        })
    }

    /// Every content the resources need, each once.
    pub fn contents(&self) -> Vec<Content> {
        let mut seen = std::collections::HashSet::new();
        self.resources().filter_map(|r| r.spec.content().copied()).filter(|c| seen.insert(c.sha256)).collect()
    }

    /// The positions of `entries` in an order in which what is needed comes first; ties by kind, then as declared.
    pub fn order(&self) -> &[usize] {
        &self.order
    }
}

fn entry(raw: &RawValue) -> Result<Entry, DeclarationError> {
    match read(raw) {
        Ok(resource) => Ok(Entry::Known(resource)),
        Err((code, reason)) => {
            let Name { key, module } = name(raw)?;
            Ok(Entry::Unsupported(Unsupported {
                key: key.parse::<ResourceKey>().map_or(key, |key| key.to_string()),
                module: shown(module.as_str().unwrap_or_default(), 63),
                code,
                reason: shown(&reason, 300),
            }))
        }
    }
}

fn name(raw: &RawValue) -> Result<Name, DeclarationError> {
    let nameless = |why: String| {
        DeclarationError::Unreadable(format!("the key of a resource cannot be read: {}", shown(&why, 200)))
    };
    let name: Name = serde_json::from_str(raw.get()).map_err(|error| nameless(error.to_string()))?;
    match name.key.len() {
        0 => Err(nameless("it is empty".to_owned())),
        1..=MOST_KEY => Ok(name),
        long => Err(nameless(format!("it has {long} bytes, at most {MOST_KEY}"))),
    }
}

fn read(raw: &RawValue) -> Result<Resource, (&'static str, String)> {
    let field = |error: serde_json::Error| ("unsupported_field", error.to_string());
    let form: EntryIn<'_> = serde_json::from_str(raw.get()).map_err(|error| unsupported(raw, &error))?;
    let spec = match form.key.kind() {
        ResourceKind::Package => Spec::Package(serde_json::from_str(form.spec.get()).map_err(field)?),
        ResourceKind::File => Spec::File(serde_json::from_str(form.spec.get()).map_err(field)?),
        ResourceKind::Unit => Spec::Unit(serde_json::from_str(form.spec.get()).map_err(field)?),
        ResourceKind::Directory => Spec::Directory(serde_json::from_str(form.spec.get()).map_err(field)?),
    };
    if spec.key() != form.key {
        return Err((
            "unsupported_field",
            format!("its key is {}, but its spec is of {}", form.key, spec.key()),
        ));
    }
    Ok(Resource { key: form.key, module: form.module, needs: form.needs, spec })
}

fn unsupported(raw: &RawValue, error: &serde_json::Error) -> (&'static str, String) {
    let name = name(raw).ok();
    let known = ResourceKind::ALL.map(ResourceKind::as_str);
    match name.as_ref().and_then(|name| name.key.split_once(':')) {
        Some((kind, _)) if !known.contains(&kind) => {
            let hint =
                nearest(kind, known).map(|near| format!("; did you mean `{near}`")).unwrap_or_default();
            ("unsupported_kind", format!("this version does not know the kind `{kind}`{hint}"))
        }
        _ => ("unsupported_field", error.to_string()),
    }
}

impl Digest {
    /// The digest that names a declaration: of its bytes as they stand.
    pub fn of_declaration(bytes: &[u8]) -> Self {
        Self::of(bytes)
    }
}

mod list;
mod order;
mod part;

#[cfg(test)]
mod tests;
