//! Renders a fleet for one node: settings into strings and templates, strings into resources.
//!
//! The same folder and node give the same bytes. What a string became is parsed here, once; afterwards a resource is
//! valid by its type. Called by the catalogue for each node of a declaration, before anything is written.

use std::collections::BTreeMap;

use minijinja::Value;
use minijinja::value::Serde;
use tenure_protocol::declaration::{Declaration, DeclarationError, Header, MOST_BYTES, MOST_RESOURCES};
use tenure_protocol::id::{Digest, NodeId};
use tenure_protocol::refusal::{Explain, Refusal};
use tenure_protocol::resource::Resource;
use tenure_protocol::text::shown;
use toml::Spanned;

use super::edges;
use super::fleet::Fleet;
use super::folder::FolderFiles;
use super::mistake::{Mistake, did_you_mean};
use super::module::{self, Body, Module, Origin};
use super::place::Source;
use super::settings;
use super::template::{Engine, Fault};

mod spec;

/// What a node should be, without the terms under which it is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendering {
    /// Every resource, in the order of their kinds and paths, with all its needs.
    pub resources: Vec<Resource>,
    /// The contents they name, by digest.
    pub contents: BTreeMap<Digest, Vec<u8>>,
}

/// Renders everything `node` is given.
pub fn render(fleet: &Fleet<'_>, node: &NodeId) -> Result<Rendering, Refusal> {
    let given = fleet.given(node)?;
    let modules = fleet.assigned(given);
    let engine = Engine::new();
    let mut contents = BTreeMap::new();
    let mut placed = Vec::new();
    let mut bytes = 0_u64;
    for module in &modules {
        let mut values = settings::effective(fleet, node, given, module)?;
        let names: Vec<String> = values.keys().cloned().collect();
        values.insert(settings::NODE.to_owned(), node.as_str().into());
        let press = Press {
            engine: &engine,
            folder: fleet.folder,
            node,
            module,
            names,
            values: Value::from(Serde(values)),
        };
        for written in &module.resources {
            let (resource, content) = press.resource(written)?;
            if let (Some(name), Some(content)) = (resource.resource.spec.content(), content) {
                bytes = bytes.saturating_add(name.size);
                contents.insert(name.sha256, content);
            }
            placed.push(resource);
            check_size(node, placed.len(), bytes)?;
        }
    }
    Ok(Rendering { resources: edges::resolve(node, &modules, placed)?, contents })
}

fn check_size(node: &NodeId, resources: usize, bytes: u64) -> Result<(), Refusal> {
    if resources <= MOST_RESOURCES && bytes <= MOST_BYTES {
        return Ok(());
    }
    let what = format!(
        "more than {MOST_RESOURCES} resources, or more than {} MiB of content",
        MOST_BYTES / (1024 * 1024)
    );
    Err(Mistake::TooLarge { node: node.clone(), what }.refusal())
}

/// The bytes of the declaration of these resources under these terms. They are read back as a host would read them,
/// so that nothing is declared that no host admits.
pub fn declare(header: &Header, resources: &[Resource]) -> Result<Vec<u8>, Refusal> {
    let refused = |error: DeclarationError| match error {
        DeclarationError::TooLarge(what) => Mistake::TooLarge { node: header.node.clone(), what }.refusal(),
        other @ (DeclarationError::Unreadable(_)
        | DeclarationError::Twice(_)
        | DeclarationError::NeedMissing { .. }
        | DeclarationError::Circle(_)) => Mistake::NotReadable(other.to_string()).refusal(),
    };
    let bytes = Declaration::encode(header, resources).map_err(refused)?;
    let back = Declaration::parse(&bytes).map_err(refused)?;
    if back.header != *header || !back.resources().eq(resources) {
        return Err(Mistake::NotReadable("it says something else".to_owned()).refusal());
    }
    Ok(bytes)
}

/// One module on one node, about to be printed.
struct Press<'a, 'f> {
    engine: &'a Engine,
    folder: &'f FolderFiles,
    node: &'a NodeId,
    module: &'a Module<'f>,
    names: Vec<String>,
    values: Value,
}

/// Whether the text may be shown when something is wrong with it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Showing {
    Open,
    Secret,
}

impl<'f> Press<'_, 'f> {
    fn string(&self, written: &Spanned<String>) -> Result<String, Refusal> {
        self.rendered_in_toml(written, Showing::Open)
    }

    fn rendered_in_toml(&self, written: &Spanned<String>, showing: Showing) -> Result<String, Refusal> {
        let (source, span) = (self.module.source, written.span());
        // Where escapes hide which byte became which, the start of the string is as near as it gets.
        let place = |offset| source.inside(&span, written.get_ref()).map_or(span.start, |base| base + offset);
        self.rendered(source, written.get_ref(), place, showing)
    }

    fn bytes(&self, body: &Body, showing: Showing) -> Result<Vec<u8>, Refusal> {
        match &body.origin {
            Origin::Content(written) => self.rendered_in_toml(written, showing).map(String::into_bytes),
            Origin::Verbatim(name) => {
                let path = self.file(name)?;
                Ok(self.folder.get(&path).unwrap_or_default().to_vec())
            }
            Origin::Template(name) => {
                let path = self.file(name)?;
                let source = module::text_of(self.folder, &path)?;
                let source = source.ok_or_else(|| self.no_such_file(name, &path))?;
                self.rendered(source, source.text, |offset| offset, showing).map(String::into_bytes)
            }
        }
    }

    /// The path in the folder of a file of this module, which is there.
    fn file(&self, name: &Spanned<String>) -> Result<String, Refusal> {
        let given = self.string(name)?;
        if given.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(Mistake::OutsideModule(shown(&given, 200)).at(self.module.source, name.span().start));
        }
        let path = module::path_of(&self.module.name, &given);
        if self.folder.get(&path).is_none() { Err(self.no_such_file(name, &given)) } else { Ok(path) }
    }

    fn no_such_file(&self, name: &Spanned<String>, given: &str) -> Refusal {
        let folder = module::path_of(&self.module.name, "");
        let hint = did_you_mean(given, self.folder.paths().filter_map(|path| path.strip_prefix(&folder)));
        let mistake =
            Mistake::NoSuchFile { module: self.module.name.clone(), given: shown(given, 200), hint };
        mistake.at(self.module.source, name.span().start)
    }

    /// Renders `text`, which stands in `source`; `place` says where its bytes stand there.
    fn rendered(
        &self,
        source: Source<'f>,
        text: &str,
        place: impl Fn(usize) -> usize,
        showing: Showing,
    ) -> Result<String, Refusal> {
        self.engine.render(text, &self.values).map_err(|fault| {
            let within = Source { file: source.file, text };
            let offset = match (&fault.span, fault.line) {
                (Some(span), _) => span.start,
                (None, Some(line)) => within.line_start(line),
                (None, None) => 0,
            };
            let mistake = self.mistake(text, &fault, showing);
            match showing {
                Showing::Open => mistake.at(source, place(offset)),
                Showing::Secret => mistake.at_secret(source, place(offset)),
            }
        })
    }

    fn mistake(&self, text: &str, fault: &Fault, showing: Showing) -> Mistake {
        let expression = fault.span.clone().and_then(|span| text.get(span)).unwrap_or_default();
        let given = expression.trim_matches(|c: char| c == '{' || c == '}' || c == '-' || c.is_whitespace());
        if fault.is_undefined && !given.is_empty() && showing == Showing::Open {
            let known = self.names.iter().map(String::as_str).chain([settings::NODE]);
            let hint = did_you_mean(given, known);
            return Mistake::Undefined { given: shown(given, 80), module: self.module.name.clone(), hint };
        }
        let said = if showing == Showing::Open { &fault.said } else { &fault.kind };
        Mistake::Template { node: self.node.clone(), said: shown(said, 300) }
    }
}

#[cfg(test)]
mod tests;
