//! What leaves the declaration: what would become of each, by how it began (H-24).

use tenure_protocol::foresight::{Verdict, What};
use tenure_protocol::resource::{ResourceKey, ResourceKind, Spec};

use super::ahead::There;
use super::packages::GONE;
use super::{Foresight, Said, line_of, stopped};
use crate::reconcile::leave::{self, Leave};
use crate::resource::package::Request;
use crate::resource::{Seen, Trouble, counted};
use crate::store::Record;

impl<'a> Foresight<'a> {
    /// These leave, in this order.
    pub(super) fn leave(&mut self, records: &[&'a Record]) {
        for group in records.chunk_by(|a, b| is_package(a) && is_package(b)) {
            match group {
                [first, ..] if is_package(first) => self.packages_leave(group),
                group => group.iter().for_each(|record| self.one_leaves(record)),
            }
        }
    }

    fn one_leaves(&mut self, record: &Record) {
        let key = record.key.parse::<ResourceKey>().ok();
        let said = match &key {
            Some(_) if self.site.tools.is_called_off() => stopped(Trouble::called_off()),
            Some(key) => self.left(key, record),
            None => newer(),
        };
        if said.what == What::Remove
            && let Some(key) = &key
        {
            self.ahead.is_there(key, There::Nothing);
        }
        self.push_left(record, said);
    }

    /// What is gone already is removed from our records, and from nowhere else.
    fn push_left(&mut self, record: &Record, said: Said) {
        let is_gone = said.detail.first().is_some_and(|why| why == GONE_ALREADY);
        let mut line = line_of(&record.key, &record.module, said);
        if is_gone {
            line.verdict = Verdict::Keep;
        }
        self.lines.push(line);
    }

    fn left(&self, key: &ResourceKey, record: &Record) -> Said {
        if let Some(file) = key.path().and_then(|path| self.ahead.file_above(path)) {
            return released(format!("left: {file} is not a directory"));
        }
        let seen = match key.path() {
            Some(path) if self.ahead.is_gone(path) => Ok(Seen::Nothing),
            Some(path) => {
                let seen = self.site.look_at(key, record.applied.size_read());
                seen.map_err(|trouble| self.ahead.by_link(path, trouble))
            }
            None => self.site.look_at(key, None),
        };
        let remove = |text: &str| Said::plain(What::Remove, vec![text.to_owned()]);
        match leave::decide(key, record, &seen, self.places.holder(self.site, key)) {
            Leave::Gone => remove(GONE_ALREADY),
            Leave::Remove(Spec::Directory(_)) => match key.path().and_then(|path| self.ahead.entries(path)) {
                Some(0) => remove("it left the declaration, we created it, and it would be empty by then"),
                Some(entries) => released(format!("left: it would hold {} entries then", counted(entries))),
                None => stopped(Trouble::unknown("could_not_look", "nobody can see what it holds")),
            },
            Leave::Return(_) => released("left: it would be as it was before us again".to_owned()),
            Leave::Remove(_) => match self.mounted(key) {
                Some(trouble) => stopped(trouble),
                None => remove("it left the declaration, and we created it"),
            },
            Leave::Release(reason) => released(reason),
            Leave::Stop(trouble) => stopped(trouble),
        }
    }

    fn mounted(&self, key: &ResourceKey) -> Option<Trouble> {
        let (dir, name) = self.site.walker.parent(key.path()?).ok()?;
        dir.mounted(name).map(Trouble::mount_point)
    }

    /// All of them in one transaction, which removes nothing else.
    fn packages_leave(&mut self, group: &[&'a Record]) {
        let mut due = Vec::new();
        let mut told: Vec<(&Record, Option<Said>)> = Vec::new();
        for record in group {
            let Ok(key) = record.key.parse::<ResourceKey>() else {
                told.push((record, Some(newer())));
                continue;
            };
            match leave::decide(&key, record, &self.site.look_at(&key, None), None) {
                Leave::Remove(_) | Leave::Return(_) => {
                    due.push(record.key.strip_prefix("package:").unwrap_or_default());
                    told.push((record, None));
                }
                Leave::Gone => {
                    told.push((record, Some(Said::plain(What::Remove, vec![GONE_ALREADY.to_owned()]))))
                }
                Leave::Release(reason) => told.push((record, Some(released(reason)))),
                Leave::Stop(trouble) => told.push((record, Some(stopped(trouble)))),
            }
        }
        let requests: Vec<Request<'_>> = due.iter().map(|name| Request { name, wanted: &GONE }).collect();
        let mut foreseen = self.simulate(&requests).into_iter();
        let mut first = true;
        for (record, said) in told {
            let (said, moves) = match said {
                Some(said) => (said, Vec::new()),
                None => match foreseen.next() {
                    Some(Ok(moves)) => {
                        let text = "it left the declaration, and we brought it; removed, never purged";
                        (Said::plain(What::Remove, vec![text.to_owned()]), moves.to_vec())
                    }
                    Some(Err(trouble)) if trouble.code == "transaction_refused" => {
                        (released(format!("left: {}", trouble.reason)), Vec::new())
                    }
                    Some(Err(trouble)) => (stopped(trouble), Vec::new()),
                    None => (newer(), Vec::new()),
                },
            };
            let goes = said.what == What::Remove && !moves.is_empty();
            self.push_left(record, said);
            if goes {
                self.ahead.packages_move(&record.key);
                if std::mem::take(&mut first) {
                    self.tell_moves(moves);
                }
            }
        }
    }
}

const GONE_ALREADY: &str = "it left the declaration, and is gone already";

fn is_package(record: &Record) -> bool {
    record.key.split_once(':').is_some_and(|(kind, _)| kind == ResourceKind::Package.as_str())
}

fn released(reason: String) -> Said {
    Said { what: What::Release, code: Some("left"), detail: vec![reason] }
}

fn newer() -> Said {
    stopped(Trouble::failed(
        "unsupported_kind",
        "this version of the host does not know this kind; its record stays",
    ))
}
