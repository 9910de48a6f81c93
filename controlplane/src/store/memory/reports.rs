//! Reports: state, not history. The newest pass wins, its outcomes are kept by key.

use std::collections::BTreeMap;
use std::ops::Bound;

use tenure_protocol::declaration::MOST_RESOURCES;
use tenure_protocol::id::{Digest, Millis, StoreId};
use tenure_protocol::outcome::ResourceOutcome;
use tenure_protocol::report::{self, Part, Summary};

use crate::bounds;
use crate::store::reporting::{self, Standing, Verdict, Writing};
use crate::store::{PartStored, ReportRecord};

#[derive(Debug, Default)]
pub(super) struct Reports {
    newest: Option<Report>,
    /// By key, with the pass that told it last.
    outcomes: BTreeMap<String, (u64, ResourceOutcome)>,
}

#[derive(Debug)]
struct Report {
    standing: Standing,
    summary: Summary,
    received_at: Millis,
}

impl Reports {
    pub(super) fn record(&self) -> Option<ReportRecord> {
        self.newest.as_ref().map(|report| ReportRecord {
            summary: report.summary.clone(),
            received_at: report.received_at,
            received: report.standing.received,
            whole: report.standing.whole,
            applied: report.standing.applied,
        })
    }

    pub(super) fn outcomes(&self, after: &str, most: usize) -> Vec<ResourceOutcome> {
        let page = self.outcomes.range::<str, _>((Bound::Excluded(after), Bound::Unbounded)).take(most);
        page.map(|(_, (_, outcome))| outcome.clone()).collect()
    }

    pub(super) fn part(&mut self, store_id: StoreId, part: &Part, now: Millis) -> PartStored {
        let held = self.newest.as_ref().map(|report| &report.standing);
        let Writing { begins_anew, standing, stored } = match reporting::judge(held, store_id, part) {
            Verdict::Nothing(stored) => return stored,
            Verdict::Write(writing) => writing,
        };
        if begins_anew {
            self.outcomes.clear();
        }
        self.write(part);
        if part.last && part.full {
            self.drop_older(standing.pass);
        }
        self.newest = Some(Report { standing, summary: part.summary.clone(), received_at: now });
        stored.unwrap_or_else(|| self.compare(store_id, &part.summary))
    }

    fn compare(&mut self, store_id: StoreId, summary: &Summary) -> PartStored {
        if self.digest() != summary.digest {
            return PartStored::Differs;
        }
        let held = self.newest.as_ref().map(|report| &report.standing);
        match reporting::settled(held, store_id, summary.pass, summary.revision) {
            Some((standing, stored)) => {
                self.newest.iter_mut().for_each(|report| report.standing = standing.clone());
                stored
            }
            None => PartStored::Older,
        }
    }

    fn digest(&self) -> Digest {
        report::digest(self.outcomes.values().map(|(_, outcome)| outcome))
    }

    fn write(&mut self, part: &Part) {
        for key in &part.forgotten {
            self.outcomes.remove(bounds::cut(key, bounds::KEY));
        }
        let pass = part.summary.pass;
        for outcome in part.outcomes.iter().map(kept) {
            if !self.outcomes.contains_key(&outcome.key) && self.outcomes.len() >= MOST_RESOURCES && part.full
            {
                // What earlier passes left would be dropped at the end of this one anyway.
                self.drop_older(pass);
            }
            if self.outcomes.contains_key(&outcome.key) || self.outcomes.len() < MOST_RESOURCES {
                self.outcomes.insert(outcome.key.clone(), (pass, outcome));
            }
        }
    }

    /// What a full report did not mention is gone.
    fn drop_older(&mut self, pass: u64) {
        self.outcomes.retain(|_, (of, _)| *of == pass);
    }
}

/// Bounded in bytes (S-22). What the digest covers is kept as it came, and escaped where it is shown.
fn kept(outcome: &ResourceOutcome) -> ResourceOutcome {
    let cut = |text: &str, most| bounds::cut(text, most).to_owned();
    ResourceOutcome {
        key: cut(&outcome.key, bounds::KEY),
        module: cut(&outcome.module, bounds::WORD),
        code: outcome.code.as_deref().map(|code| cut(code, bounds::WORD)),
        reason: outcome.reason.as_deref().map(|reason| bounds::clause(reason, bounds::CLAUSE)),
        ..outcome.clone()
    }
}
