//! The packages of a pass: all that can be done together in one transaction, then all looked at again. What dpkg says is
//! what became of each, whatever the program that ran it said.

use std::sync::Arc;

use tenure_protocol::outcome::Origin;
use tenure_protocol::resource::Spec;

use super::apply::{Act, Engine, Item};
use crate::resource::package::{Request, Terms, UNFINISHED, is_open, transact};
use crate::resource::{Accounts, Seen, Site, Trouble};
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
        let made: Vec<_> = taken
            .iter()
            .map(|item| {
                let said = if item.changes() { said.next().unwrap_or(Ok(())) } else { Ok(()) };
                self.read_back(&again, item, said).map(|record| (record, None))
            })
            .collect();
        self.keep_begun(&again, taken, &made);
        self.record(taken, made, Vec::new());
    }

    /// What was brought and is not whole is ours all the same: it goes when it leaves the declaration.
    fn keep_begun(
        &mut self,
        site: &Site<'_>,
        taken: &[Item<'a>],
        made: &[Result<(Record, Option<String>), Trouble>],
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

fn request<'i>(item: &'i Item<'_>) -> Option<Request<'i>> {
    match &item.resource.spec {
        Spec::Package(spec) => Some(Request { name: spec.name.as_str(), wanted: &spec.wanted }),
        Spec::Directory(_) | Spec::File(_) | Spec::Unit(_) => None,
    }
}
