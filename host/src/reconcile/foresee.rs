//! What a pass would do, changing nothing: one line a resource, with a diff where the content is text that may be shown.
//! It decides with the very functions the pass decides with, and follows what each line would make of the machine for
//! those after it ([`ahead`]). Called by `tenure-host plan`, and by the link for a declaration that is not written yet.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tenure_actors::database::DatabaseError;
use tenure_protocol::declaration::{Declaration, Entry, Unsupported};
use tenure_protocol::foresight::{ForeseenLine, What};
use tenure_protocol::id::Millis;
use tenure_protocol::refusal::chain;
use tenure_protocol::resource::{Resource, ResourceKey, Spec};
use tenure_protocol::text::shown;

use super::places::Places;
use super::plan::{self, Decision, Sight, arrange};
use super::trigger::Triggers;
use super::{hold, survey};
use super::{leave, recover};
use crate::ground::Ground;
use crate::ground::own::Own;
use crate::program::Programs;
use crate::resource::package::is_unfinished;
use crate::resource::{Accounts, Contents, Seen, Site, Stands, Tools, Trouble};
use crate::store::{Record, Store};
use crate::walk::Walker;

use ahead::Ahead;
use secrets::Secrets;

mod ahead;
mod contents;
mod diff;
mod leaving;
mod packages;
mod paths;
mod secrets;
mod units;
mod veil;

pub use contents::{AtHand, worth_having};

/// What a preview needs.
#[expect(missing_debug_implementations, reason = "it holds a trait object")]
pub struct PreviewInput<'a> {
    /// Where.
    pub ground: &'a Ground,
    /// The store; none where no host has run yet: nothing is ours.
    pub store: Option<&'a Store>,
    /// What would be applied.
    pub declaration: &'a Declaration,
    /// What may be asked of packages and units; none: they would be refused.
    pub programs: Option<&'a dyn Programs>,
    /// Where its content is: the store, or a bundle.
    pub contents: &'a dyn Contents,
    /// The time of day.
    pub now: Millis,
    /// Set once nobody waits for it any more, or it took too long: what was not looked at by then cannot be known.
    pub called_off: &'a AtomicBool,
}

/// What a pass would do now, in the order it would be done. It changes nothing. The error is the store's: what is ours
/// cannot be read.
pub fn preview(input: &PreviewInput<'_>) -> Result<Vec<ForeseenLine>, DatabaseError> {
    let mut records = input.store.map(Store::records).transpose()?.unwrap_or_default();
    // What is open can be read still, but a pass would begin nothing.
    input.store.map(Store::in_place).transpose()?;
    let own = Own::look(input.ground);
    let walker = match Walker::new(input.ground, &own) {
        Ok(walker) => walker,
        Err(error) => return Ok(blind(input.declaration, &chain(&error))),
    };
    let accounts = Arc::new(Accounts::read(&walker));
    // Without a journal nothing is changed.
    let tools = Tools::new(input.ground, input.programs, None, input.called_off);
    let sets_owner = !input.ground.is_sandbox();
    let site = Site {
        walker,
        accounts,
        contents: input.contents,
        sets_owner,
        tools: &tools,
        recall: None,
        together: None,
    };
    let cut_short = match input.store {
        Some(store) => recover::foresee(&site, store, &mut records, input.now)?,
        None => false,
    };
    let places = Places::of(&site, input.declaration);
    places.respell(&site, input.declaration, &mut records);
    let mut pass = Foresight {
        site: &site,
        declaration: input.declaration,
        records: &records,
        places: &places,
        now: input.now,
        ahead: Ahead::new(&site),
        triggers: Triggers::new(input.declaration, &records),
        cut_short,
        unread: input.store.map(Store::has_unread_units).transpose()?.unwrap_or_default(),
        became: HashMap::new(),
        secrets: input.store.map(Secrets::held).transpose()?.unwrap_or_default(),
        room: diff::Room::default(),
        lines: Vec::with_capacity(input.declaration.entries.len()),
    };
    pass.run();
    Ok(pass.lines)
}

/// The root itself cannot be looked at.
fn blind(declaration: &Declaration, why: &str) -> Vec<ForeseenLine> {
    let trouble = Trouble::unknown("could_not_look", why);
    let line = |resource: &Resource| {
        line_of(&resource.key.to_string(), resource.module.as_str(), stopped(trouble.clone()))
    };
    declaration.resources().map(line).collect()
}

/// What a line says beside its key.
struct Said {
    what: What,
    code: Option<&'static str>,
    detail: Vec<String>,
}

impl Said {
    const fn plain(what: What, detail: Vec<String>) -> Self {
        Self { what, code: None, detail }
    }
}

/// The longest sentence of a line.
const MOST: usize = 1000;

fn line_of(key: &str, module: &str, said: Said) -> ForeseenLine {
    let Said { what, code, detail } = said;
    ForeseenLine {
        key: key.to_owned(),
        module: module.to_owned(),
        verdict: what.verdict(),
        what,
        code: code.map(str::to_owned),
        detail: detail.iter().map(|sentence| fit(sentence)).collect(),
        packages: Vec::new(),
    }
}

/// A sentence as it may be shown; tabs stay, for the diffs of configuration.
fn fit(sentence: &str) -> String {
    sentence.split('\t').map(|part| shown(part, MOST)).collect::<Vec<_>>().join("\t")
}

/// One preview on its way.
struct Foresight<'a> {
    site: &'a Site<'a>,
    declaration: &'a Declaration,
    records: &'a HashMap<String, Record>,
    places: &'a Places<'a>,
    now: Millis,
    ahead: Ahead<'a>,
    triggers: Triggers,
    /// A pass was cut short, and what it began is ended first.
    cut_short: bool,
    /// The service manager has not read all unit files that were changed, and a pass has it read them first.
    unread: bool,
    /// What would become of those before.
    became: HashMap<&'a ResourceKey, What>,
    secrets: Secrets,
    room: diff::Room,
    lines: Vec<ForeseenLine>,
}

type Sights = Vec<Option<Result<Sight, Trouble>>>;

impl<'a> Foresight<'a> {
    fn run(&mut self) {
        let (before, after) = leave::leaving(self.records, self.declaration);
        self.leave(&before);
        self.ahead.is_cleared();
        let mut sights = survey::survey(self.site, self.declaration, self.records, self.places, &|_| {});
        let order = arrange(self.declaration);
        let mut left = order.as_slice();
        while let Some((at, rest)) = left.split_first() {
            left = rest;
            match self.declaration.entries.get(*at) {
                Some(Entry::Known(resource)) if matches!(resource.spec, Spec::Package(_)) => {
                    let (run, rest) = packages::run(self.declaration, resource, rest);
                    left = rest;
                    self.packages(&run, &mut sights);
                }
                Some(Entry::Known(resource)) => self.resource(resource, *at, &mut sights),
                Some(Entry::Unsupported(unsupported)) => self.unsupported(unsupported),
                None => {}
            }
        }
        self.leave(&after);
    }

    fn unsupported(&mut self, unsupported: &Unsupported) {
        let Unsupported { module, code, reason, .. } = unsupported;
        let mut line =
            line_of(&unsupported.shown_key(), module, Said::plain(What::Refuse, vec![reason.clone()]));
        line.code = Some((*code).to_owned());
        self.lines.push(line);
    }

    fn resource(&mut self, resource: &'a Resource, at: usize, sights: &mut Sights) {
        if self.site.tools.is_called_off() {
            return self.becomes(resource, stopped(Trouble::called_off()));
        }
        let sight = self.sight(resource, at, sights);
        let decision = self.decide(resource, &sight);
        if let Decision::Keep(Some(record)) = &decision {
            self.triggers.recorded(record);
        }
        let said = match (&decision, &resource.spec) {
            (Decision::Hold(reason), _) => held(reason),
            (_, Spec::Unit(spec)) => self.unit(resource, spec, &decision, &sight),
            (Decision::Keep(record), _) => kept(record.as_ref()),
            (Decision::Stop(trouble), _) => self.later(match resource.key.path() {
                Some(path) => self.ahead.by_link(path, trouble.clone()),
                None => trouble.clone(),
            }),
            (Decision::Change(change), _) => match self.waits(resource) {
                Some(said) => said,
                None => {
                    let seen = sight.as_ref().map_or(&Seen::Nothing, |sight| &sight.seen);
                    self.path(resource, change, seen)
                }
            },
        };
        self.becomes(resource, said);
    }

    /// What is seen of it once everything that is in its way has left.
    fn sight(&self, resource: &Resource, at: usize, sights: &mut Sights) -> Result<Sight, Trouble> {
        let never = || Err(Trouble::unknown("could_not_look", "its turn to be looked at never came"));
        let sight = sights.get_mut(at).and_then(Option::take).unwrap_or_else(never);
        match resource.key.path().filter(|path| self.ahead.made_way_for(path)) {
            Some(_) => {
                let differs = self.site.differences(&resource.spec, &Seen::Nothing);
                Ok(Sight { seen: Seen::Nothing, differs })
            }
            None => sight,
        }
    }

    fn decide(&self, resource: &Resource, sight: &Result<Sight, Trouble>) -> Decision {
        let keeps_found = hold::keeps(&self.declaration.header, resource, sight, self.records);
        plan::decide(resource, self.records.get(&resource.key.to_string()), sight, keeps_found, self.now)
    }

    /// Only edges block, and only on what would not be as declared.
    fn waits(&self, resource: &Resource) -> Option<Said> {
        let blocks = |need: &&ResourceKey| {
            let what = self.became.get(need).copied().unwrap_or(What::CannotKnow);
            !what.outcome().is_some_and(tenure_protocol::outcome::Outcome::is_as_declared)
        };
        // One that surely is not decides, whatever is not known of the others.
        let surely =
            |need: &&&ResourceKey| self.became.get(**need).is_some_and(|what| *what != What::CannotKnow);
        let needs: Vec<&ResourceKey> = resource.needs.iter().filter(blocks).collect();
        let need = needs.iter().find(surely).or(needs.first())?;
        let known = self.became.get(*need).is_some_and(|what| *what != What::CannotKnow);
        Some(if known {
            let reason = format!("it needs {need}, which would not be as declared");
            Said { what: What::Wait, code: Some("needs_failed"), detail: vec![reason] }
        } else {
            let reason = format!("it needs {need}, of which nobody knows yet whether it will be as declared");
            Said { what: What::CannotKnow, code: Some("needs_unknown"), detail: vec![reason] }
        })
    }

    /// What stands in the way now, unless packages that come before may bring what is missing.
    fn later(&self, trouble: Trouble) -> Said {
        match self.ahead.packages() {
            Some(package) if trouble.stands == Stands::Failed => Said {
                what: What::CannotKnow,
                code: Some("after_packages"),
                detail: vec![format!(
                    "as things are, {}; {package} is changed before it, and what that brings is known then",
                    trouble.reason
                )],
            },
            Some(_) | None if trouble.stands == Stands::Failed && self.cut_short => Said {
                what: What::CannotKnow,
                code: Some("cut_short"),
                detail: vec![format!(
                    "as things are, {}; a pass was cut short here, and what it began is ended first",
                    trouble.reason
                )],
            },
            Some(_) | None => stopped(trouble),
        }
    }

    /// Writes the line, and what it makes of the machine for those after it.
    fn becomes(&mut self, resource: &'a Resource, said: Said) {
        let line = line_of(&resource.key.to_string(), resource.module.as_str(), said);
        self.became.insert(&resource.key, line.what);
        if line.verdict == tenure_protocol::foresight::Verdict::Change {
            self.triggers.changed(&line.key);
            self.ahead.becomes(resource);
        }
        self.lines.push(line);
    }
}

fn held(reason: &str) -> Said {
    Said { what: What::Hold, code: Some("found"), detail: vec![reason.to_owned()] }
}

fn kept(record: Option<&Record>) -> Said {
    let news = record.map(|_| "it is as declared, and is recorded as ours".to_owned());
    Said::plain(What::Keep, news.into_iter().collect())
}

fn stopped(trouble: Trouble) -> Said {
    let Trouble { stands, code, reason } = trouble;
    let what = match stands {
        // dpkg is half-way: whoever works with it may be through by then, and what was cut short is finished first.
        Stands::Failed if is_unfinished(code) => What::CannotKnow,
        Stands::Refused => What::Refuse,
        Stands::Failed => What::Fail,
        // Whoever stands in the way may be gone by then.
        Stands::Outstanding | Stands::Unknown => What::CannotKnow,
    };
    Said { what, code: Some(code), detail: vec![reason] }
}

#[cfg(test)]
pub(super) mod tests;
