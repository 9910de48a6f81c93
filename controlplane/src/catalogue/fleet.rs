//! The fleet: `fleet.toml` and every module it names, read strictly and refused whole.
//!
//! What holds without rendering is checked here, once for the folder: names, settings, module needs, circles. What
//! a resource becomes on a node is judged by [`super::render`].

use std::collections::{BTreeMap, BTreeSet};

use tenure_protocol::id::{ModuleName, NodeId};
use tenure_protocol::refusal::{Explain, Refusal};
use tenure_protocol::text::{nearest, shown};
use toml::Spanned;

use super::edges;
use super::folder::FolderFiles;
use super::mistake::{Mistake, did_you_mean};
use super::module::{self, Module};
use super::place::Source;
use super::reader::{self, Field, Fields};
use super::settings::{self, Given};

/// A fleet as it is written, valid but for what only rendering shows. Borrows the folder.
#[derive(Debug)]
pub struct Fleet<'f> {
    pub(super) folder: &'f FolderFiles,
    pub(super) source: Source<'f>,
    pub(super) modules: BTreeMap<ModuleName, Module<'f>>,
    groups: BTreeMap<String, Assignment>,
    nodes: BTreeMap<NodeId, Assignment>,
}

/// What a group or a node is given.
#[derive(Debug)]
pub(super) struct Assignment {
    /// Where its name stands.
    at: usize,
    /// Empty for a group.
    groups: Vec<Spanned<String>>,
    modules: Vec<Spanned<ModuleName>>,
    pub(super) settings: BTreeMap<ModuleName, Given>,
    /// Where each of those tables of settings stands.
    settings_at: BTreeMap<ModuleName, usize>,
}

/// Reads `fleet.toml` and every module it names.
pub fn read(folder: &FolderFiles) -> Result<Fleet<'_>, Refusal> {
    let Some(source) = module::text_of(folder, "fleet.toml")? else {
        let below = folder.paths().find_map(|path| path.strip_suffix("/fleet.toml"));
        let hint = below.map(|at| format!("; there is one in `{}`", shown(at, 80))).unwrap_or_default();
        return Err(Mistake::NoFleet { hint }.refusal());
    };
    let document = reader::parse(source)?;
    let top = Fields::top(source, &document, "the fleet");
    top.only(&["group", "node"])?;
    let groups = assignments(&top, "group", &["modules", "settings"])?;
    let nodes = assignments(&top, "node", &["groups", "modules", "settings"])?;
    if nodes.is_empty() {
        return Err(Mistake::NoNodes.at(source, 0));
    }
    let nodes = nodes
        .into_iter()
        .map(|(name, given)| match NodeId::new(&name) {
            Ok(node) => Ok((node, given)),
            Err(error) => Err(Mistake::BadName(error).at(source, given.at)),
        })
        .collect::<Result<_, _>>()?;
    let mut fleet = Fleet { folder, source, modules: BTreeMap::new(), groups, nodes };
    fleet.modules = fleet.read_modules()?;
    fleet.check()?;
    Ok(fleet)
}

impl<'f> Fleet<'f> {
    /// The nodes it names, sorted.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeId> {
        self.nodes.keys()
    }

    /// The modules `node` has, in the order they are given: its groups' first, then its own. None: the folder does
    /// not name this node.
    pub fn modules_of(&self, node: &NodeId) -> Option<Vec<&Module<'f>>> {
        self.nodes.get(node).map(|given| self.assigned(given))
    }

    /// Refuses the folder when it names a node that is not among `known`; all of them are listed, with the name
    /// each may have been meant to be.
    pub fn check_nodes(&self, known: &BTreeSet<NodeId>) -> Result<(), Refusal> {
        let unknown: Vec<_> = self.nodes.iter().filter(|(node, _)| !known.contains(node)).collect();
        let Some((_, first)) = unknown.iter().min_by_key(|(_, given)| given.at) else { return Ok(()) };
        let known = || known.iter().map(NodeId::as_str);
        let named = |node: &NodeId| match nearest(node.as_str(), known()) {
            Some(near) => format!("`{node}` (did you mean `{near}`?)"),
            None => format!("`{node}`"),
        };
        let mut names: Vec<String> = unknown.iter().take(MOST_LISTED).map(|(node, _)| named(node)).collect();
        if unknown.len() > MOST_LISTED {
            names.push(format!("and {} more", unknown.len() - MOST_LISTED));
        }
        Err(Mistake::UnknownNode(names.join(", ")).at(self.source, first.at))
    }

    /// What is given to `node`.
    pub(super) fn given(&self, node: &NodeId) -> Result<&Assignment, Refusal> {
        self.nodes.get(node).ok_or_else(|| {
            let hint = did_you_mean(node.as_str(), self.nodes.keys().map(NodeId::as_str));
            Mistake::NodeNotInFolder { node: node.clone(), hint }.refusal()
        })
    }

    /// The groups of an assignment, in its order.
    pub(super) fn groups_of<'a>(
        &'a self,
        given: &'a Assignment,
    ) -> impl Iterator<Item = (&'a str, &'a Assignment)> {
        given
            .groups
            .iter()
            .filter_map(|name| self.groups.get(name.get_ref()).map(|group| (name.get_ref().as_str(), group)))
    }

    /// The modules of an assignment, each once.
    pub(super) fn assigned(&self, given: &Assignment) -> Vec<&Module<'f>> {
        let mut seen = BTreeSet::new();
        let of_groups = self.groups_of(given).flat_map(|(_, group)| &group.modules);
        of_groups
            .chain(&given.modules)
            .map(Spanned::get_ref)
            .filter(|name| seen.insert(*name))
            .filter_map(|name| self.modules.get(name))
            .collect()
    }

    fn everything(&self) -> impl Iterator<Item = &Assignment> {
        self.groups.values().chain(self.nodes.values())
    }

    /// Every module that is assigned or given a setting; the first that is not in the folder is refused.
    fn read_modules(&self) -> Result<BTreeMap<ModuleName, Module<'f>>, Refusal> {
        let mut named: Vec<(usize, &ModuleName)> = Vec::new();
        for given in self.everything() {
            named.extend(given.modules.iter().map(|name| (name.span().start, name.get_ref())));
            named.extend(given.settings_at.iter().map(|(name, at)| (*at, name)));
        }
        named.sort();
        let mut modules = BTreeMap::new();
        for (at, name) in named {
            if modules.contains_key(name) {
                continue;
            }
            let Some(module) = module::read(self.folder, name)? else {
                let hint = did_you_mean(name.as_str(), self.module_folders());
                return Err(Mistake::UnknownModule { given: name.to_string(), hint }.at(self.source, at));
            };
            modules.insert(name.clone(), module);
        }
        Ok(modules)
    }

    fn module_folders(&self) -> impl Iterator<Item = &str> {
        self.folder
            .paths()
            .filter_map(|path| path.strip_prefix("modules/")?.strip_suffix("/module.toml"))
            .filter(|name| !name.contains('/'))
    }

    fn check(&self) -> Result<(), Refusal> {
        for given in self.everything() {
            for name in &given.groups {
                self.check_group(name)?;
            }
            for (name, settings) in &given.settings {
                if let Some(module) = self.modules.get(name) {
                    settings::check(self.source, module, settings)?;
                }
            }
        }
        self.check_module_circles()?;
        self.nodes.iter().try_for_each(|(node, given)| self.check_node(node, given))
    }

    fn check_group(&self, name: &Spanned<String>) -> Result<(), Refusal> {
        if self.groups.contains_key(name.get_ref()) {
            return Ok(());
        }
        let hint = did_you_mean(name.get_ref(), self.groups.keys().map(String::as_str));
        let mistake = Mistake::UnknownGroup { given: shown(name.get_ref(), 80), hint };
        Err(mistake.at(self.source, name.span().start))
    }

    fn check_module_circles(&self) -> Result<(), Refusal> {
        let modules: Vec<_> = self.modules.values().collect();
        let needs: Vec<Vec<usize>> = modules
            .iter()
            .map(|module| {
                let place =
                    |need: &Spanned<ModuleName>| modules.iter().position(|m| m.name == *need.get_ref());
                module.needs.iter().filter_map(place).collect()
            })
            .collect();
        let Some(circle) = edges::circle(&needs) else { return Ok(()) };
        let names: Vec<_> = circle.iter().filter_map(|at| modules.get(*at)).collect();
        let text: Vec<_> = names.iter().map(|module| module.name.as_str()).collect();
        let first = names.first().and_then(|module| module.needs.first().map(|need| (module.source, need)));
        let mistake = Mistake::ModuleCircle(text.join(" → "));
        Err(first.map_or_else(|| mistake.refusal(), |(source, need)| mistake.at(source, need.span().start)))
    }

    fn check_node(&self, node: &NodeId, given: &Assignment) -> Result<(), Refusal> {
        let assigned = self.assigned(given);
        let has = |name: &ModuleName| assigned.iter().any(|module| module.name == *name);
        for module in &assigned {
            if let Some(need) = module.needs.iter().find(|need| !has(need.get_ref())) {
                let (module_name, needs) = (module.name.clone(), need.get_ref().clone());
                let mistake = Mistake::ModuleNeedMissing { node: node.clone(), module: module_name, needs };
                return Err(mistake.at(module.source, need.span().start));
            }
            settings::effective(self, node, given, module)?;
        }
        match given.settings_at.iter().find(|(module, _)| !has(module)) {
            Some((module, at)) => {
                let mistake = Mistake::SettingsWithoutModule { node: node.clone(), module: module.clone() };
                Err(mistake.at(self.source, *at))
            }
            None => Ok(()),
        }
    }
}

/// More unknown nodes than this are counted and not named.
const MOST_LISTED: usize = 20;

fn assignments(
    top: &Fields<'_, '_>,
    name: &'static str,
    known: &[&str],
) -> Result<BTreeMap<String, Assignment>, Refusal> {
    let inside = if name == "group" { "a group" } else { "a node" };
    let Some(all) = top.table(name, inside)? else { return Ok(BTreeMap::new()) };
    let mut assignments = BTreeMap::new();
    for Field { name, at, value } in all.all() {
        let fields = Fields::of(top.source, name, value, inside)?;
        fields.only(known)?;
        assignments.insert(name.to_owned(), assignment(&fields, at)?);
    }
    Ok(assignments)
}

fn assignment(fields: &Fields<'_, '_>, at: usize) -> Result<Assignment, Refusal> {
    let mut settings = BTreeMap::new();
    let mut settings_at = BTreeMap::new();
    if let Some(all) = fields.table("settings", "the settings")? {
        for Field { name, at, value } in all.all() {
            let module = ModuleName::new(name).map_err(|e| Mistake::BadName(e).at(fields.source, at))?;
            let given = Fields::of(fields.source, name, value, "the settings of a module")?;
            settings.insert(module.clone(), settings::read(&given)?);
            settings_at.insert(module, at);
        }
    }
    Ok(Assignment {
        at,
        groups: fields.list("groups")?,
        modules: module::module_names(fields.source, fields.list("modules")?)?,
        settings,
        settings_at,
    })
}

#[cfg(test)]
mod tests;
