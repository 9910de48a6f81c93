//! What can be wrong in a fleet folder, and how it is told: every mistake has a code, and a place where it has one.

use tenure_protocol::id::{ModuleName, NodeId};
use tenure_protocol::path::PathError;
use tenure_protocol::refusal::{Explain, Refusal};
use tenure_protocol::resource::{PackageName, ResourceKey};
use tenure_protocol::text::{nearest, shown};

use super::edges::How;
use super::place::{Place, Source};

mod explain;

/// One mistake. Texts from the folder are bounded and escaped when the mistake is made; a `hint` is empty or
/// begins with `;`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Mistake {
    #[error("there is no `fleet.toml` in this folder{hint}")]
    NoFleet { hint: String },
    #[error("`{0}` is not UTF-8 text")]
    NotText(String),
    #[error("{0}")]
    MalformedToml(String),
    #[error("unknown field `{given}` in {inside}{hint}")]
    UnknownField { given: String, inside: &'static str, hint: String },
    #[error("`{0}` is not performed yet: this version performs package, directory, file and unit")]
    LaterKind(String),
    #[error("`{name}` must be {wanted}, and is {given}")]
    WrongType { name: String, wanted: &'static str, given: &'static str },
    #[error("{inside} has no `{name}`")]
    MissingField { name: &'static str, inside: &'static str },
    #[error("`{0}` stands twice in this list")]
    ListedTwice(String),
    #[error("{0}")]
    BadName(tenure_protocol::id::Malformed),
    #[error("there is no node in `fleet.toml`")]
    NoNodes,
    #[error("there is no group `{given}`{hint}")]
    UnknownGroup { given: String, hint: String },
    #[error("there is no module `{given}`{hint}")]
    UnknownModule { given: String, hint: String },
    #[error("the module in the folder `{folder}` calls itself `{given}`")]
    OtherModuleName { folder: ModuleName, given: ModuleName },
    #[error("the module `{module}` has no setting `{given}`{hint}")]
    UnknownSetting { module: ModuleName, given: String, hint: String },
    #[error("a setting cannot be called `node`")]
    ReservedSetting,
    #[error("the node `{node}` gives settings to the module `{module}`, which it does not have")]
    SettingsWithoutModule { node: NodeId, module: ModuleName },
    #[error(
        "the groups `{one}` and `{other}` disagree on the setting `{setting}` of the module `{module}` for the node `{node}`"
    )]
    GroupsDisagree { node: NodeId, module: ModuleName, setting: String, one: String, other: String },
    #[error("the module `{module}` needs the module `{needs}`, which the node `{node}` does not have")]
    ModuleNeedMissing { node: NodeId, module: ModuleName, needs: ModuleName },
    #[error("these modules need each other in a circle: {0}")]
    ModuleCircle(String),
    #[error("`{given}` is not a setting of the module `{module}`{hint}")]
    Undefined { given: String, module: ModuleName, hint: String },
    #[error("this cannot be rendered for the node `{node}`: {said}")]
    Template { node: NodeId, said: String },
    #[error("{0}")]
    Path(PathError),
    #[error("path `{0}` is the host's own")]
    OwnPath(String),
    #[error("unit `{0}` is the host's own")]
    OwnUnit(String),
    #[error("the package `{0}` is the host itself, and is declared absent")]
    OwnPackage(PackageName),
    #[error("{0}")]
    BadValue(tenure_protocol::id::Malformed),
    #[error("{0}")]
    BadNeed(tenure_protocol::id::Malformed),
    #[error("a {kind} that is declared absent has `{field}`")]
    AbsentWith { kind: &'static str, field: &'static str },
    #[error("a unit cannot be declared absent")]
    UnitAbsent,
    #[error("the unit has none of `enabled`, `running`, `masked`, `restart_on` and `reload_on`")]
    UnitSaysNothing,
    #[error("{key} is to be masked, and has `{field} = true`")]
    MaskedWith { key: ResourceKey, field: &'static str },
    #[error("{key} has {on} both in `restart_on` and in `reload_on`")]
    RestartAndReload { key: ResourceKey, on: ResourceKey },
    #[error("the file has none of `content`, `template` and `source`")]
    NoContent,
    #[error("the file has both `{0}` and `{1}`")]
    TwoContents(&'static str, &'static str),
    #[error("`{0}` is not a file of this module")]
    OutsideModule(String),
    #[error("the module `{module}` has no file `{given}`{hint}")]
    NoSuchFile { module: ModuleName, given: String, hint: String },
    #[error("{key} is declared twice; first at {first}")]
    Twice { key: String, first: Place },
    #[error("{key} lies below {above}, which is declared as {how} at {place}")]
    Below { key: String, above: String, how: &'static str, place: Place },
    #[error("{key} {how} {to}, which the node `{node}` does not have{hint}")]
    NeedMissing { node: NodeId, key: ResourceKey, how: How, to: ResourceKey, hint: String },
    #[error("these wait for each other in a circle: {0}")]
    Circle(String),
    #[error("the declaration of the node `{node}` is too large: {what}")]
    TooLarge { node: NodeId, what: String },
    #[error("there is no node {0}")]
    UnknownNode(String),
    #[error("this folder does not name the node `{node}`{hint}")]
    NodeNotInFolder { node: NodeId, hint: String },
    #[error("the rendered declaration cannot be read back: {0}")]
    NotReadable(String),
}

impl Mistake {
    /// The refusal of this mistake at the byte `at` of `source`, with the line that stands there.
    pub(super) fn at(&self, source: Source<'_>, at: usize) -> Refusal {
        let place = source.place(at);
        let happened = format!("{place}: {self} — | {}", place.text());
        Refusal { happened, ..self.refusal() }
    }

    /// The same without the line, where it may hold what must not be shown (S-19).
    pub(super) fn at_secret(&self, source: Source<'_>, at: usize) -> Refusal {
        let happened = format!("{}: {self}", source.place(at));
        Refusal { happened, ..self.refusal() }
    }
}

/// `; did you mean …`, or nothing.
pub(super) fn did_you_mean<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(given, known).map(|near| format!("; did you mean `{}`", shown(near, 80))).unwrap_or_default()
}
