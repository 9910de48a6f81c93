//! A transaction of ours that the machine's end cut short: dpkg is told to finish what it had begun, once, and only
//! where nobody else has left anything half done (O-11). Called at the start of a pass, before anything is looked at.

use std::sync::Arc;

use tenure_protocol::text::shown;

use super::dpkg::Package;
use super::transact::Transaction;
use super::transaction::Wanted;
use super::{Begun, Declared, Names, Noted, Terms, Tools, Trouble, apart, database, lock};
use crate::resource::Stands;

impl Tools<'_> {
    /// Finishes what an earlier life of the host began and nobody saw the end of. Whatever comes of it is seen when each
    /// package is looked at; nothing is said here but in the log.
    pub(crate) fn finish_packages(&self) {
        let begun = match self.begun() {
            Ok(Some(begun)) => begun,
            Ok(None) => return,
            Err(trouble) => return tracing::warn!(why = trouble.reason, "what was begun is not known"),
        };
        let finished = self.finish(&begun);
        self.packages_moved();
        match finished {
            Ok(()) => self.end(),
            Err(trouble) => match trouble.stands {
                // Somebody is at work, or was before us: it is asked again by the next pass.
                Stands::Outstanding | Stands::Unknown => {
                    tracing::debug!(code = trouble.code, why = trouble.reason, "not finished yet");
                }
                // Tried once: from here each package says itself that it is not whole.
                Stands::Refused | Stands::Failed => {
                    tracing::warn!(code = trouble.code, why = trouble.reason, "packages were not finished");
                    self.end();
                }
            },
        }
    }

    fn finish(&self, begun: &Begun) -> Result<(), Trouble> {
        if let Some(trouble) = self.at_work()? {
            return Err(trouble);
        }
        // Only dpkg keeps a note of its own of what it began with: what another manager left undone is seen in its
        // database, and brought by the next transaction.
        // Where nobody can say whose they are it stays noted.
        let is_dpkg = self.is_dpkg().map_err(|why| Trouble::outstanding(why.code, why.reason))?;
        if !is_dpkg || self.is_whole()? {
            return Ok(());
        }
        lock::free(self)?;
        // Whoever has held it until now may have left nothing undone.
        self.packages_moved();
        if self.is_whole()? {
            return Ok(());
        }
        let packages = self.packages()?;
        if let Some((name, package)) = packages.unfinished().find(|(name, _)| !begun.contains_key(name)) {
            let reason = format!(
                "{name} is {} and was not begun by the host; run `dpkg --configure -a` on the machine and look at what \
                 it says",
                package.word
            );
            return Err(Trouble::outstanding("dpkg_interrupted", reason));
        }
        let names = shown(&begun.keys().map(String::as_str).collect::<Vec<_>>().join(" "), 300);
        // A dpkg that was cut short has left its journal; any other has come to its end.
        if self.is_tried()? && database::journal(self)?.is_empty() {
            return Err(given_up(&names));
        }
        let manager = self.package_manager()?;
        self.begin(begun, true)?;
        tracing::info!(packages = names, "a package transaction was cut short; dpkg finishes it");
        // It stays noted until both steps are done.
        let ended = apart::run(self, manager.as_ref(), &CONFIGURE.map(str::to_owned), begun)
            .and_then(|()| self.unpack_anew(begun));
        if ended.as_ref().is_err_and(is_not_over) {
            self.begin(begun, false)?;
        }
        ended
    }

    fn is_whole(&self) -> Result<bool, Trouble> {
        let packages = self.packages()?;
        let settled = packages.unfinished().next().is_none() && !packages.have_triggers_due();
        Ok(settled && database::journal(self)?.is_empty())
    }

    /// What was cut short while it was unpacked cannot be configured: it is brought again, in the version that was meant.
    fn unpack_anew(&self, begun: &Begun) -> Result<(), Trouble> {
        let packages = self.packages()?;
        let half = |name: &str| packages.get_called(name).is_some_and(Package::is_half_unpacked);
        let install = begun.iter().filter(|(name, version)| version.is_some() && half(name));
        let wanted = Wanted {
            install: install.map(|(name, version)| (name.clone(), version.clone())).collect(),
            anew: true,
            ..Wanted::default()
        };
        if wanted.is_empty() {
            return Ok(());
        }
        let (declared, none) = (Declared::new(), Names::new());
        let terms = Terms { declared: &declared, may_go: &none, kept: &none };
        let manager = self.package_manager()?;
        Transaction { tools: self, terms, manager, packages: Arc::clone(&packages) }.attempt(&wanted)
    }

    /// Whether what was begun may still bring something: nobody has seen its end.
    pub(crate) fn packages_in_doubt(&self) -> bool {
        // Nobody could look: then too.
        !matches!(self.begun(), Ok(None))
    }

    pub(super) fn begun(&self) -> Result<Noted, Trouble> {
        let Some(journal) = self.journal else { return Ok(None) };
        let mut read = self.begun_noted();
        if let Some(noted) = &*read {
            return Ok(noted.clone());
        }
        let noted = journal.begun().map_err(unwritten)?.map(Arc::new);
        Ok(read.insert(noted).clone())
    }

    fn is_tried(&self) -> Result<bool, Trouble> {
        self.journal.map_or(Ok(false), |journal| journal.is_tried().map_err(unwritten))
    }

    /// What changes packages is noted before, or not done (O-05). `tried`: it finishes what was begun before.
    pub(super) fn begin(&self, begun: &Begun, tried: bool) -> Result<(), Trouble> {
        // Nobody reads it before it is noted.
        let mut noted = self.begun_noted();
        *noted = None;
        match self.journal {
            Some(journal) => journal.begin(begun, tried).map_err(unwritten),
            None => Err(Trouble::outstanding(
                "not_noted",
                "this is only a look: a package transaction is noted in the host's store before it is run, and none is \
                 run here; `tenure-host apply` does it",
            )),
        }
    }

    pub(super) fn end(&self) {
        let mut noted = self.begun_noted();
        *noted = None;
        if let Some(Err(error)) = self.journal.map(|journal| journal.end()) {
            // It is found to be whole by the next pass.
            tracing::warn!(%error, "the end of a package transaction was not noted");
        }
    }
}

/// Somebody is at work, or was before us, or nobody could look.
fn is_not_over(trouble: &Trouble) -> bool {
    matches!(trouble.stands, Stands::Outstanding | Stands::Unknown)
}

/// The end of the one try could not be noted: from here they are the operator's.
fn given_up(names: &str) -> Trouble {
    let reason = format!(
        "dpkg was told once to finish {names} and came to its end without; the host does not try again: run \
         `dpkg --configure -a` on the machine and look at what it says"
    );
    Trouble::failed("dpkg_interrupted", reason)
}

fn unwritten(error: super::Unwritten) -> Trouble {
    let reason = format!("a package transaction is noted in the store before it is run: {error}");
    Trouble::outstanding("store_unwritable", reason)
}

/// The operator's configuration files are kept; scripts that ended are not run again.
const CONFIGURE: [&str; 5] = ["dpkg", "--force-confold", "--force-confdef", "--configure", "-a"];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;
    use crate::ground::Ground;
    use crate::resource::package::{Journal, Unwritten};

    #[test]
    fn what_only_looks_begins_no_package_transaction() {
        let (folder, never) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
        let ground = Ground::new(folder.path(), false);
        let tools = Tools::new(&ground, None, None, &never);
        let begun = Begun::from([("postgresql-15".to_owned(), None)]);
        let trouble = tools.begin(&begun, false).unwrap_err();
        assert_eq!((trouble.stands, trouble.code), (Stands::Outstanding, "not_noted"));
    }

    /// Counts how often it was asked what was begun.
    #[derive(Default)]
    struct Counting {
        asked: AtomicUsize,
        begun: Mutex<Option<Begun>>,
    }

    impl Journal for Counting {
        fn begun(&self) -> Result<Option<Begun>, Unwritten> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            Ok(self.begun.lock().unwrap().clone())
        }

        fn is_tried(&self) -> Result<bool, Unwritten> {
            Ok(false)
        }

        fn begin(&self, begun: &Begun, _: bool) -> Result<(), Unwritten> {
            *self.begun.lock().unwrap() = Some(begun.clone());
            Ok(())
        }

        fn end(&self) -> Result<(), Unwritten> {
            *self.begun.lock().unwrap() = None;
            Ok(())
        }
    }

    #[test]
    fn what_was_begun_is_read_once_for_all_packages_of_a_pass_until_that_changes() {
        let (folder, never) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
        let (ground, journal) = (Ground::new(folder.path(), false), Counting::default());
        let tools = Tools::new(&ground, None, Some(&journal), &never);
        let begun = Begun::from([("postgresql-15".to_owned(), None)]);
        let asked = |many: usize| {
            let told = (0..500).map(|_| tools.begun().unwrap().map(|begun| (*begun).clone()));
            let told: HashSet<_> = told.collect();
            assert_eq!(journal.asked.load(Ordering::Relaxed), many);
            told
        };
        assert_eq!(asked(1), HashSet::from([None]));
        tools.begin(&begun, false).unwrap();
        assert_eq!(asked(2), HashSet::from([Some(begun)]));
        tools.end();
        assert_eq!(asked(3), HashSet::from([None]));
    }
}
