//! Packages: the transaction that would bring them, simulated and judged as the pass would (H-25). What cannot be
//! simulated, since somebody else is at work or the sources are older, cannot be known.

use std::collections::BTreeSet;

use tenure_protocol::declaration::{Declaration, Entry};
use tenure_protocol::foresight::{MOST_PACKAGES, PackageMove, Verdict, What};
use tenure_protocol::outcome::Origin;
use tenure_protocol::resource::{PackageWanted, Resource, Spec};

use super::{Foresight, Said, Sights, held, kept, stopped};
use crate::reconcile::plan::{Change, Decision};
use crate::resource::Trouble;
use crate::resource::package::{Declared, Moves, Names, Request, Terms, foresee};

/// The packages that are one transaction: those that follow each other, as long as none needs one before it.
pub(super) fn run<'a, 'o>(
    declaration: &'a Declaration,
    first: &'a Resource,
    rest: &'o [usize],
) -> (Vec<&'a Resource>, &'o [usize]) {
    let mut run = vec![first];
    let mut left = rest;
    while let Some((at, rest)) = left.split_first()
        && let Some(Entry::Known(resource)) = declaration.entries.get(*at)
        && matches!(resource.spec, Spec::Package(_))
        && !resource.needs.iter().any(|need| run.iter().any(|before| before.key == *need))
    {
        run.push(resource);
        left = rest;
    }
    (run, left)
}

/// One package of a run, before the transaction is simulated.
struct Due<'a> {
    resource: &'a Resource,
    change: Change,
}

fn request(resource: &Resource) -> Option<Request<'_>> {
    match &resource.spec {
        Spec::Package(spec) => Some(Request { name: spec.name.as_str(), wanted: &spec.wanted }),
        Spec::Directory(_) | Spec::File(_) | Spec::Unit(_) => None,
    }
}

impl<'a> Foresight<'a> {
    pub(super) fn packages(&mut self, run: &[&'a Resource], sights: &mut Sights) {
        let mut due = Vec::new();
        for resource in run {
            if self.site.tools.is_called_off() {
                self.becomes(resource, stopped(Trouble::called_off()));
                continue;
            }
            let at = self.declaration.entries.iter().position(|entry| match entry {
                Entry::Known(known) => known.key == resource.key,
                Entry::Unsupported(_) => false,
            });
            let sight = self.sight(resource, at.unwrap_or(usize::MAX), sights);
            let said = match self.decide(resource, &sight) {
                Decision::Hold(reason) => held(&reason),
                Decision::Keep(record) => {
                    record.iter().for_each(|record| self.triggers.recorded(record));
                    kept(record.as_ref())
                }
                Decision::Stop(trouble) => stopped(trouble),
                Decision::Change(change) => match self.waits(resource) {
                    Some(said) => said,
                    None => {
                        due.push(Due { resource, change });
                        continue;
                    }
                },
            };
            self.becomes(resource, said);
        }
        self.transaction(due);
    }

    fn transaction(&mut self, due: Vec<Due<'a>>) {
        // What an earlier run of this pass changes is part of what this one begins with.
        let changed: Vec<&Resource> = self.changed_packages();
        let requests: Vec<Request<'_>> =
            changed.iter().copied().chain(due.iter().map(|due| due.resource)).filter_map(request).collect();
        let foreseen = self.simulate(&requests).split_off(changed.len().min(requests.len()));
        let mut told = self.told_moves();
        for (Due { resource, change }, foreseen) in due.into_iter().zip(foreseen) {
            let moves = match foreseen {
                Ok(moves) => moves,
                Err(trouble) => {
                    self.becomes(resource, stopped(trouble));
                    continue;
                }
            };
            let mut detail = change.differs.clone();
            detail.extend(change.drift.iter().map(|drift| format!("since we left it, {drift}")));
            let own = moves.iter().find(|one| one.name == resource.key.name());
            detail.extend(own.map(in_words));
            let what = if resource.spec.is_absent() { What::Remove } else { What::Change };
            self.becomes(resource, Said::plain(what, detail));
            let fresh = moves.iter().filter(|one| told.insert(one.name.clone()));
            let fresh: Vec<PackageMove> = fresh.cloned().collect();
            self.tell_moves(fresh);
        }
    }

    /// Puts the moves of a transaction with the line that was written last.
    pub(super) fn tell_moves(&mut self, moves: Vec<PackageMove>) {
        let Some(line) = self.lines.last_mut() else { return };
        let more = moves.len().saturating_sub(MOST_PACKAGES);
        if more > 0 {
            line.detail.push(format!("… and {more} more packages with it"));
        }
        line.packages = moves.into_iter().take(MOST_PACKAGES).collect();
    }

    fn told_moves(&self) -> BTreeSet<String> {
        self.lines.iter().flat_map(|line| &line.packages).map(|one| one.name.clone()).collect()
    }

    fn changed_packages(&self) -> Vec<&'a Resource> {
        let changed = |resource: &&Resource| {
            matches!(resource.spec, Spec::Package(_))
                && self.became.get(&resource.key).is_some_and(|what| what.verdict() == Verdict::Change)
        };
        self.declaration.resources().filter(changed).collect()
    }

    pub(super) fn simulate(&self, requests: &[Request<'_>]) -> Vec<Result<Moves, Trouble>> {
        if requests.is_empty() {
            return Vec::new();
        }
        let packages = |resource: &'a Resource| match &resource.spec {
            Spec::Package(spec) => Some((spec.name.as_str(), &spec.wanted)),
            Spec::Directory(_) | Spec::File(_) | Spec::Unit(_) => None,
        };
        let declared: Declared<'_> = self.declaration.resources().filter_map(packages).collect();
        let created = self.records.values().filter(|record| record.origin == Origin::Created);
        let ours = created.filter_map(|record| record.key.strip_prefix("package:"));
        let may_go: Names<'_> = ours.filter(|name| !declared.contains_key(name)).collect();
        let kept = self.became.iter().filter(|(_, what)| **what == What::Hold);
        let kept: Names<'_> =
            kept.filter_map(|(key, _)| declared.get_key_value(key.name()).map(|(name, _)| *name)).collect();
        foresee(self.site.tools, requests, Terms { declared: &declared, may_go: &may_go, kept: &kept })
    }
}

fn in_words(one: &PackageMove) -> String {
    match (&one.from, &one.to) {
        (None, Some(to)) => format!("it would be installed at {to}"),
        (Some(from), Some(to)) => format!("it would be brought from {from} to {to}"),
        (_, None) => "it would be removed".to_owned(),
    }
}

/// The request to remove what leaves.
pub(super) const GONE: PackageWanted = PackageWanted::Absent;
