//! The packages of a pass: all that can be done together in one transaction, then all looked at again. What dpkg says is
//! what became of each, whatever the program that ran it said.

use std::sync::Arc;

use tenure_protocol::outcome::{Origin, Outcome, ResourceOutcome};
use tenure_protocol::resource::{PackageSpec, PackageWanted, Resource, Spec};

use super::apply::Engine;
use super::book::Verdict;
use super::item::{Act, Item};
use crate::resource::package::{
    CUT_SHORT, Request, Terms, UNFINISHED, fails_still, is_open, note, transact, was_cut_short,
};
use crate::resource::remark::{CONFIGURATION_KEPT, SCRIPT_FAILED};
use crate::resource::{Accounts, Remark, Seen, Site, Trouble};
use crate::store::{Record, State};

impl<'a> Engine<'a> {
    pub(super) fn flush_packages(&mut self, taken: &[Item<'a>]) {
        if self.leave_if_halted(taken) {
            return;
        }
        let requests: Vec<Request<'_>> =
            taken.iter().filter(|item| item.changes()).filter_map(request).collect();
        let mut said = self.transact(&requests).into_iter();
        let again = self.site.fresh();
        let mut made: Vec<_> = taken
            .iter()
            .map(|item| {
                let said = if item.changes() { said.next().unwrap_or(Ok(())) } else { Ok(()) };
                let note = remark_of(&again, item).or_else(|| left_by(said.as_ref().err()?, &again, item));
                self.read_back(&again, item, said).map(|record| (record, note))
            })
            .collect();
        self.tell_of_others(taken, &mut made);
        self.keep_begun(&again, taken, &made);
        let made = self.made(taken, made, Vec::new());
        self.record(made);
    }

    /// One that is as declared. What lies beside the configuration that was kept is told until it is gone, and a script
    /// that failed until it has run again: the database of packages does not know of it.
    pub(super) fn leave_package(&mut self, resource: &'a Resource, spec: &PackageSpec) {
        let before = self.book.before(&resource.key.to_string());
        let verdict = match before.and_then(|before| before.code.as_deref()) {
            Some(CONFIGURATION_KEPT) => note(self.site.tools, spec.name.as_str())
                .map(|reason| Verdict::because(Outcome::Unchanged, CONFIGURATION_KEPT, reason)),
            Some(SCRIPT_FAILED) => {
                let reason = before.and_then(|before| before.reason.clone()).unwrap_or_default();
                self.fails_still(resource, &reason)
                    .then(|| Verdict::because(Outcome::Unchanged, SCRIPT_FAILED, reason))
            }
            Some(_) | None => None,
        };
        self.settle(resource, verdict.unwrap_or(Verdict::plain(Outcome::Unchanged)));
    }

    /// Whether nobody has brought anew, since we did, what is said to have failed; so too where nobody can look.
    fn fails_still(&self, resource: &Resource, reason: &str) -> bool {
        let records = self.store.records().ok();
        let ours = records.as_ref().and_then(|records| records.get(&resource.key.to_string()));
        ours.is_none_or(|ours| fails_still(self.site.tools, reason, ours.recorded_at))
    }

    /// One that is not as declared and is not tried. What was said when it was is told as long as nothing has changed.
    pub(super) fn stop_package(&mut self, resource: &'a Resource, trouble: Trouble) {
        let before = self.book.before(&resource.key.to_string());
        let goes_on = |before: &&ResourceOutcome| {
            let reason = before.reason.as_deref().unwrap_or_default();
            trouble.code == UNFINISHED
                && before.code.as_deref() == Some(UNFINISHED)
                && reason.starts_with(&trouble.reason)
        };
        let reason = before.filter(goes_on).and_then(|before| before.reason.clone());
        let trouble = Trouble { reason: reason.unwrap_or(trouble.reason), ..trouble };
        self.settle(resource, trouble.into());
    }

    /// What went wrong with packages that came along is told of the first that was brought: nobody else speaks of them.
    fn tell_of_others(&self, taken: &[Item<'a>], made: &mut [Result<(Record, Option<Remark>), Trouble>]) {
        let mut brought = taken.iter().zip(made).filter(|(item, made)| item.changes() && made.is_ok());
        if let Some((_, Ok((_, note)))) = brought.next() {
            self.site.tools.other_remarks().into_iter().for_each(|(name, other)| other.join(&name, note));
        }
    }

    /// What was brought and is not whole is ours all the same: it goes when it leaves the declaration.
    fn keep_begun(
        &mut self,
        site: &Site<'_>,
        taken: &[Item<'a>],
        made: &[Result<(Record, Option<Remark>), Trouble>],
    ) {
        let begun = |(item, made): (&Item<'_>, &Result<_, Trouble>)| {
            let Act::Change { change, .. } = &item.act else { return None };
            let unfinished = made.as_ref().is_err_and(|trouble| trouble.code == UNFINISHED);
            let Seen::Package { version, .. } = site.observe(&item.resource.spec, false).ok()? else {
                return None;
            };
            (unfinished && change.origin == Origin::Created).then(|| Record {
                key: item.resource.key.to_string(),
                module: item.resource.module.as_str().to_owned(),
                origin: change.origin,
                earlier: change.earlier.clone(),
                applied: State::Package { version },
                recorded_at: self.now(),
            })
        };
        let begun: Vec<Record> = taken.iter().zip(made).filter_map(begun).collect();
        self.keep(begun, Vec::new());
    }

    /// Does this with packages, and forgets what was seen before.
    pub(super) fn transact(&mut self, requests: &[Request<'_>]) -> Vec<Result<(), Trouble>> {
        if requests.is_empty() {
            return Vec::new();
        }
        let terms = Terms { declared: &self.packages, may_go: &self.may_go, kept: &self.kept };
        let said = transact(self.site.tools, requests, terms);
        self.site.tools.packages_moved();
        // Packages bring accounts, files and units.
        self.site.walker = self.site.walker.fresh();
        self.site.accounts = Arc::new(Accounts::read(&self.site.walker));
        (self.moved, self.touched) = (true, true);
        // What that transaction brings is ours, though nobody can record it yet.
        self.unrecorded |= said.iter().flat_map(|said| said.as_ref().err()).any(is_open);
        said
    }

    /// What it is now counts; why it is not as declared is what the package manager said, where it said something.
    fn read_back(
        &self,
        site: &Site<'_>,
        item: &Item<'_>,
        said: Result<(), Trouble>,
    ) -> Result<Record, Trouble> {
        match (item.verify(site, self.now()), said) {
            (Ok(record), _) => Ok(record),
            (Err(seen), Ok(())) => Err(seen),
            (Err(seen), Err(said)) if seen.code == "not_as_written" || is_open(&said) => Err(said),
            (Err(seen), Err(said)) => {
                let reason = format!("{}; {}", seen.reason, said.reason);
                Err(Trouble { reason, ..seen })
            }
        }
    }
}

fn remark_of(site: &Site<'_>, item: &Item<'_>) -> Option<Remark> {
    site.tools.remark_of(request(item)?.name)
}

/// What is told of one that is there though the transaction that was bringing it was ended.
fn left_by(trouble: &Trouble, site: &Site<'_>, item: &Item<'_>) -> Option<Remark> {
    let brings = |one: &Request<'_>| trouble.code == CUT_SHORT && *one.wanted != PackageWanted::Absent;
    was_cut_short(site.tools, request(item).filter(brings)?.name)
}

fn request<'i>(item: &'i Item<'_>) -> Option<Request<'i>> {
    match &item.resource.spec {
        Spec::Package(spec) => Some(Request { name: spec.name.as_str(), wanted: &spec.wanted }),
        Spec::Directory(_) | Spec::File(_) | Spec::Unit(_) => None,
    }
}
