//! A module: `modules/NAME/module.toml` and the files beside it, read strictly and not yet rendered.

use tenure_protocol::id::ModuleName;
use tenure_protocol::refusal::Refusal;
use tenure_protocol::text::shown;
use toml::Spanned;

use super::folder::FolderFiles;
use super::mistake::{Mistake, did_you_mean};
use super::place::Source;
use super::reader::{self, Field, Fields};
use super::settings::{self, Given};

/// A module as it is written.
#[derive(Debug)]
pub struct Module<'f> {
    /// Its name, which is that of its folder.
    pub name: ModuleName,
    /// What its author calls this state of it; none: not said. Nothing depends on it.
    pub version: Option<String>,
    pub(super) source: Source<'f>,
    pub(super) needs: Vec<Spanned<ModuleName>>,
    pub(super) settings: Given,
    pub(super) resources: Vec<Written>,
}

/// A resource as it is written: strings that are rendered later, each with its place.
#[derive(Debug)]
pub(super) struct Written {
    /// Where it begins.
    pub(super) at: usize,
    /// Its path, or its name where its kind has no path.
    pub(super) name: Spanned<String>,
    pub(super) needs: Vec<Spanned<String>>,
    pub(super) says: Says,
}

/// What a resource says of itself, by kind; none: it should be gone.
#[derive(Debug)]
pub(super) enum Says {
    /// Its version.
    Package(Option<Spanned<String>>),
    Directory(Option<Access>),
    File(Option<(Access, Body)>),
    Unit(UnitSays),
}

/// Whose a directory or file is, and who may do what with it.
#[derive(Debug)]
pub(super) struct Access {
    pub(super) mode: Option<Spanned<String>>,
    pub(super) owner: Option<Spanned<String>>,
    pub(super) group: Option<Spanned<String>>,
}

/// What a unit says of itself; at least one of these is there.
#[derive(Debug)]
pub(super) struct UnitSays {
    pub(super) enabled: Option<Spanned<String>>,
    pub(super) running: Option<Spanned<String>>,
    pub(super) masked: Option<Spanned<String>>,
    pub(super) restart_on: Vec<Spanned<String>>,
    pub(super) reload_on: Vec<Spanned<String>>,
}

/// What only a file has.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) origin: Origin,
    pub(super) create_once: bool,
    pub(super) replace_link: bool,
    pub(super) sensitive: bool,
}

/// Where the bytes of a file come from.
#[derive(Debug)]
pub(super) enum Origin {
    /// Written in `module.toml`, rendered.
    Content(Spanned<String>),
    /// A file of the module, rendered.
    Template(Spanned<String>),
    /// A file of the module, as it is.
    Verbatim(Spanned<String>),
}

/// Kinds and tables of later versions: refused by name, never passed over.
const LATER: [&str; 3] = ["container", "opening", "secrets"];
const TOP: [&str; 6] = ["module", "settings", "package", "directory", "file", "unit"];
const PACKAGE: [&str; 4] = ["name", "version", "absent", "needs"];
const FILE: [&str; 12] = [
    "path",
    "mode",
    "owner",
    "group",
    "content",
    "template",
    "source",
    "create_once",
    "replace_link",
    "sensitive",
    "absent",
    "needs",
];
const DIRECTORY: [&str; 6] = ["path", "mode", "owner", "group", "absent", "needs"];
const UNIT: [&str; 7] = ["name", "enabled", "running", "masked", "restart_on", "reload_on", "needs"];
/// What an absent resource may not have beside its path or name.
const OF_PRESENT: [&str; 10] = [
    "version",
    "mode",
    "owner",
    "group",
    "content",
    "template",
    "source",
    "create_once",
    "replace_link",
    "sensitive",
];

/// The path of a module's own file in the folder.
pub(super) fn path_of(name: &ModuleName, file: &str) -> String {
    format!("modules/{name}/{file}")
}

/// Reads the module `name`; none: the folder does not have it.
pub(super) fn read<'f>(folder: &'f FolderFiles, name: &ModuleName) -> Result<Option<Module<'f>>, Refusal> {
    let Some(source) = text_of(folder, &path_of(name, "module.toml"))? else { return Ok(None) };
    let document = reader::parse(source)?;
    let top = Fields::top(source, &document, "the module");
    refuse_later_kinds(&top)?;
    top.only(&TOP)?;
    let missing = || Mistake::MissingField { name: "module", inside: "the file" }.at(source, 0);
    let head = top.table("module", "[module]")?.ok_or_else(missing)?;
    head.only(&["name", "version", "needs"])?;
    check_name(&head, name)?;
    let settings = match top.table("settings", "[settings]")? {
        Some(fields) => settings::read(&fields)?,
        None => Given::new(),
    };
    Ok(Some(Module {
        name: name.clone(),
        version: head.text("version")?.map(Spanned::into_inner),
        source,
        needs: module_names(source, head.list("needs")?)?,
        settings,
        resources: resources(&top)?,
    }))
}

fn resources(top: &Fields<'_, '_>) -> Result<Vec<Written>, Refusal> {
    let mut resources = Vec::new();
    for fields in top.tables("package", "[[package]]")? {
        fields.only(&PACKAGE)?;
        let says = Says::Package(unless_absent(&fields, "package", |fields| fields.required("version"))?);
        resources.push(written(&fields, "name", says)?);
    }
    for fields in top.tables("directory", "[[directory]]")? {
        fields.only(&DIRECTORY)?;
        let says = Says::Directory(unless_absent(&fields, "directory", access)?);
        resources.push(written(&fields, "path", says)?);
    }
    for fields in top.tables("file", "[[file]]")? {
        fields.only(&FILE)?;
        let file = |fields: &Fields<'_, '_>| Ok((access(fields)?, body(fields)?));
        let says = Says::File(unless_absent(&fields, "file", file)?);
        resources.push(written(&fields, "path", says)?);
    }
    for fields in top.tables("unit", "[[unit]]")? {
        let says = Says::Unit(unit(&fields)?);
        resources.push(written(&fields, "name", says)?);
    }
    Ok(resources)
}

/// A text file of the folder; none: it is not there.
pub(super) fn text_of<'f>(folder: &'f FolderFiles, path: &str) -> Result<Option<Source<'f>>, Refusal> {
    use tenure_protocol::refusal::Explain as _;
    let Some((file, bytes)) = folder.entry(path) else { return Ok(None) };
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Some(Source { file, text })),
        Err(_) => Err(Mistake::NotText(shown(file, 200)).refusal()),
    }
}

/// Strings as module names.
pub(super) fn module_names(
    source: Source<'_>,
    list: Vec<Spanned<String>>,
) -> Result<Vec<Spanned<ModuleName>>, Refusal> {
    list.into_iter()
        .map(|text| match ModuleName::new(text.get_ref()) {
            Ok(name) => Ok(Spanned::new(text.span(), name)),
            Err(error) => Err(Mistake::BadName(error).at(source, text.span().start)),
        })
        .collect()
}

fn refuse_later_kinds(top: &Fields<'_, '_>) -> Result<(), Refusal> {
    for Field { name, at, .. } in top.all() {
        if LATER.contains(&name) {
            return Err(Mistake::LaterKind(name.to_owned()).at(top.source, at));
        }
        // `[[packge]]` is a later kind misspelt, which the known names would not suggest.
        if !TOP.contains(&name) {
            let inside = "the module";
            let hint = did_you_mean(name, TOP.into_iter().chain(LATER));
            return Err(Mistake::UnknownField { given: shown(name, 80), inside, hint }.at(top.source, at));
        }
    }
    Ok(())
}

fn check_name(head: &Fields<'_, '_>, folder: &ModuleName) -> Result<(), Refusal> {
    let given = head.required("name")?;
    let at = given.span().start;
    match ModuleName::new(given.get_ref()) {
        Err(error) => Err(Mistake::BadName(error).at(head.source, at)),
        Ok(given) if given != *folder => {
            Err(Mistake::OtherModuleName { folder: folder.clone(), given }.at(head.source, at))
        }
        Ok(_) => Ok(()),
    }
}

fn written(fields: &Fields<'_, '_>, name: &'static str, says: Says) -> Result<Written, Refusal> {
    Ok(Written { at: fields.at, name: fields.required(name)?, needs: fields.list("needs")?, says })
}

/// What `present` reads; none for what is declared absent, which may have nothing that is read so.
fn unless_absent<'t, 'f, T>(
    fields: &Fields<'t, 'f>,
    kind: &'static str,
    present: impl FnOnce(&Fields<'t, 'f>) -> Result<T, Refusal>,
) -> Result<Option<T>, Refusal> {
    if !fields.flag("absent")? {
        return present(fields).map(Some);
    }
    match OF_PRESENT.iter().find_map(|field| fields.place_of(field).map(|at| (*field, at))) {
        Some((field, at)) => Err(Mistake::AbsentWith { kind, field }.at(fields.source, at)),
        None => Ok(None),
    }
}

fn access(fields: &Fields<'_, '_>) -> Result<Access, Refusal> {
    Ok(Access { mode: fields.text("mode")?, owner: fields.text("owner")?, group: fields.text("group")? })
}

fn unit(fields: &Fields<'_, '_>) -> Result<UnitSays, Refusal> {
    if let Some(at) = fields.place_of("absent") {
        return Err(Mistake::UnitAbsent.at(fields.source, at));
    }
    fields.only(&UNIT)?;
    let says = UnitSays {
        enabled: fields.truth("enabled")?,
        running: fields.truth("running")?,
        masked: fields.truth("masked")?,
        restart_on: fields.list("restart_on")?,
        reload_on: fields.list("reload_on")?,
    };
    let is_silent = says.enabled.is_none()
        && says.running.is_none()
        && says.masked.is_none()
        && says.restart_on.is_empty()
        && says.reload_on.is_empty();
    if is_silent { Err(Mistake::UnitSaysNothing.at(fields.source, fields.at)) } else { Ok(says) }
}

fn body(fields: &Fields<'_, '_>) -> Result<Body, Refusal> {
    let origins = [
        fields.text("content")?.map(|text| ("content", Origin::Content(text))),
        fields.text("template")?.map(|text| ("template", Origin::Template(text))),
        fields.text("source")?.map(|text| ("source", Origin::Verbatim(text))),
    ];
    let mut given = origins.into_iter().flatten();
    let (first, origin) = given.next().ok_or_else(|| Mistake::NoContent.at(fields.source, fields.at))?;
    if let Some((second, _)) = given.next() {
        return Err(Mistake::TwoContents(first, second).at(fields.source, fields.at));
    }
    let (create_once, replace_link) = (fields.flag("create_once")?, fields.flag("replace_link")?);
    Ok(Body { origin, create_once, replace_link, sensitive: fields.flag("sensitive")? })
}

#[cfg(test)]
mod tests;
