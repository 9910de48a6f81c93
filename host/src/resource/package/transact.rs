//! One transaction for all that a pass wants of packages at once: simulated, judged, run apart from us. Where it is
//! refused or fails, each is tried alone, so that one bad package does not stop the others (H-10). What came of it is
//! not said here: whoever called looks again.

use std::collections::BTreeSet;
use std::sync::Arc;

use tenure_protocol::refusal::chain;
use tenure_protocol::resource::PackageWanted;
use tenure_protocol::text::shown;

use super::apt::{LOCK_HELD, UNKNOWN, UNMET, UNSIGNED, virtual_name};
use super::dpkg::{PackageState, bare};
use super::hand::{Hand, Words};
use super::meaning::NOT_FETCHED;
use super::proven::Proven;
use super::transaction::{Rules, Simulated, TransactionRefusal, Wanted, judge};
use super::{Begun, Declared, Names, OWN_PACKAGE, Packages, Tools, Trouble, apart, is_open};
use crate::resource::Stands;
use crate::steps;

/// What is wanted of one package.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    /// Which.
    pub(crate) name: &'a str,
    /// How it should be; `Absent` removes it.
    pub(crate) wanted: &'a PackageWanted,
}

/// What holds for every transaction of a pass.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms<'a> {
    /// What is declared of packages.
    pub(crate) declared: &'a Declared<'a>,
    /// What we brought and is no longer declared: it may make room for what is.
    pub(crate) may_go: &'a Names<'a>,
    /// What was found before us and is kept: its version stays.
    pub(crate) kept: &'a Names<'a>,
}

/// Does what is wanted; says of each what stood in the way, if anything did.
pub(crate) fn transact(
    tools: &Tools<'_>,
    requests: &[Request<'_>],
    terms: Terms<'_>,
) -> Vec<Result<(), Trouble>> {
    let transaction = match Transaction::begin(tools, terms) {
        Ok(transaction) => transaction,
        Err(trouble) => return requests.iter().map(|_| Err(trouble.clone())).collect(),
    };
    let chosen: Vec<Result<Wanted, Trouble>> =
        requests.iter().map(|request| transaction.choose(request, requests)).collect();
    let all = together(chosen.iter().flatten());
    let several = chosen.iter().flatten().count() > 1;
    let mut ended = if all.is_empty() { Ok(()) } else { transaction.attempt(&all) };
    let mut each = |wanted: Result<Wanted, Trouble>| match &ended {
        // Nobody gets further while somebody else is at work.
        Err(trouble) if several && trouble.stands != Stands::Outstanding => {
            let alone = transaction.attempt_left(&wanted?, trouble);
            if alone.as_ref().is_err_and(|trouble| trouble.stands == Stands::Outstanding) {
                ended.clone_from(&alone);
            }
            alone
        }
        ended => wanted.and(ended.clone()),
    };
    chosen.into_iter().map(&mut each).collect()
}

/// One that is about to be run.
pub(super) struct Transaction<'a> {
    pub(super) tools: &'a Tools<'a>,
    pub(super) terms: Terms<'a>,
    pub(super) manager: Box<dyn Hand + 'a>,
    /// What was installed when it began.
    pub(super) packages: Arc<Packages>,
}

impl<'a> Transaction<'a> {
    /// Nobody else works with packages, and the database is whole.
    pub(super) fn begin(tools: &'a Tools<'a>, terms: Terms<'a>) -> Result<Self, Trouble> {
        let manager = tools.package_manager()?;
        if let Some(trouble) = tools.at_work()? {
            return Err(trouble);
        }
        manager.free()?;
        // Whoever has held it until now may have been half-way when they were read.
        tools.packages_moved();
        let packages = tools.packages()?;
        manager.whole(&packages, terms)?;
        Ok(Self { tools, terms, manager, packages })
    }

    /// Which version is meant.
    pub(super) fn choose(&self, request: &Request<'_>, all: &[Request<'_>]) -> Result<Wanted, Trouble> {
        let name = request.name.to_owned();
        let mut wanted = Wanted::default();
        match request.wanted {
            PackageWanted::Absent => {
                wanted.remove = self.to_go(&name);
            }
            PackageWanted::Present => {
                wanted.install.insert(name, None);
            }
            PackageWanted::Exact(version) if self.manager.takes_versions_as_declared() => {
                wanted.install.insert(name, Some(version.as_str().to_owned()));
            }
            PackageWanted::Exact(_) | PackageWanted::Prefix(_) => {
                let version = self.newest(request)?;
                wanted.install.insert(name, Some(version));
            }
        }
        // Alone, each may make go what is to go anyway.
        let to_go = all.iter().filter(|request| *request.wanted == PackageWanted::Absent);
        let may_go = self.terms.may_go.iter().copied().chain(to_go.map(|request| request.name));
        wanted.may_go = may_go.flat_map(|name| self.to_go(name)).collect();
        Ok(wanted)
    }

    /// What goes of a name: where it is declared absent, of every architecture; else the one that we brought.
    fn to_go(&self, name: &str) -> BTreeSet<String> {
        let is_declared = self.terms.declared.get(name) == Some(&&PackageWanted::Absent);
        let here = self.packages.here(name);
        let meant = here.filter(|(_, one)| is_declared || self.packages.get(name) == Some(*one));
        meant.map(|(called, _)| called).collect()
    }

    /// The newest version that begins as declared.
    fn newest(&self, request: &Request<'_>) -> Result<String, Trouble> {
        let Request { name, wanted } = request;
        let look = || {
            let versions = self.manager.versions(name)?;
            Ok::<_, Trouble>(versions.into_iter().find(|version| self.manager.takes(wanted, version)))
        };
        if let Some(version) = look()? {
            return Ok(version);
        }
        self.update()?;
        look()?.ok_or_else(|| {
            let reason = format!(
                "the machine's package sources have no version {wanted} of {name}; declare the source, or another version"
            );
            Trouble::failed(UNKNOWN, reason)
        })
    }

    /// Reads the sources anew, once a pass. What needed that and could not have it is not installed: the lists from
    /// before are older than what the source says now, and so is the signature on them (S-13).
    fn update(&self) -> Result<(), Trouble> {
        let failed = |trouble: Trouble| match trouble.stands {
            Stands::Outstanding | Stands::Refused => trouble,
            Stands::Failed | Stands::Unknown => {
                let reason = format!("the package sources could not be read anew: {}", trouble.reason);
                Trouble::failed("sources_unreadable", reason)
            }
        };
        if self.tools.only_looks() {
            let reason = "the package sources of this machine, as they were last read, do not have it; they are read \
                anew when it is applied";
            return Err(Trouble::unknown("sources_not_read", reason));
        }
        self.tools.updated.get_or_init(|| self.manager.update().map_err(failed)).clone()
    }

    /// What the package manager says it would do; the sources are read anew where it does not know a name.
    fn ask(&self, wanted: &Wanted) -> Result<Simulated, Trouble> {
        let now = self.tools.packages()?;
        let simulate = || self.manager.simulate(wanted, &now, None);
        let simulated = match simulate() {
            Err(trouble) if trouble.code == UNKNOWN => {
                self.update()?;
                simulate()
            }
            simulated => simulated,
        };
        simulated.map_err(|trouble| self.held_back(trouble))
    }

    fn judged(&self, wanted: &Wanted, simulated: &Simulated) -> Result<(), Trouble> {
        self.judge(wanted, simulated).map_err(|refusal| {
            self.by_another_name(wanted, simulated).unwrap_or_else(|| self.refused(&refusal))
        })
    }

    /// What it would do, where that may be done.
    pub(super) fn simulate(&self, wanted: &Wanted) -> Result<Simulated, Trouble> {
        let mut all = Simulated::default();
        for part in self.manager.parts(wanted.clone()) {
            let Simulated { install, remove } = self.ask(&part).and_then(|simulated| {
                self.judged(&part, &simulated)?;
                Ok(simulated)
            })?;
            all.install.extend(install);
            all.remove.extend(remove);
        }
        Ok(all)
    }

    /// Simulates, judges, and runs; in as many transactions as the package manager needs for it.
    pub(super) fn attempt(&self, wanted: &Wanted) -> Result<(), Trouble> {
        for (at, mut part) in self.manager.parts(wanted.clone()).into_iter().enumerate() {
            if at > 0 {
                // What went to make room is gone.
                let now = self.tools.packages()?;
                part.remove.retain(|name| now.installed(name).is_some());
            }
            if !part.is_empty() {
                self.attempt_part(&part)?;
            }
        }
        Ok(())
    }

    /// What the sources listed and have no more is looked for once again.
    fn attempt_part(&self, wanted: &Wanted) -> Result<(), Trouble> {
        match self.attempt_once(wanted) {
            Err(trouble) if trouble.code == NOT_FETCHED && self.tools.updated.get().is_none() => {
                self.update()?;
                self.attempt_once(wanted)
            }
            ended => ended,
        }
    }

    fn attempt_once(&self, wanted: &Wanted) -> Result<(), Trouble> {
        let simulated = self.ask(wanted)?;
        if simulated.brought(OWN_PACKAGE).is_some()
            && let Some(sources) = self.manager.proven()?
        {
            return self.attempt_host(wanted, &simulated, &sources);
        }
        self.run(wanted, &simulated, None)
    }

    /// Whatever brings the host itself is taken from what is proven, whatever the machine's configuration allows.
    fn attempt_host(&self, wanted: &Wanted, allowed: &Simulated, sources: &Proven) -> Result<(), Trouble> {
        let version = allowed.brought(OWN_PACKAGE).map_or("", |(_, new)| new.as_str());
        let now = self.tools.packages()?;
        let ran = match self.manager.simulate(wanted, &now, Some(sources)) {
            Ok(simulated) => self.run(wanted, &simulated, Some(sources)),
            Err(trouble) => Err(self.held_back(trouble)),
        };
        // The last is what is said where nothing else than what cannot be told signed has it.
        ran.map_err(|trouble| match trouble.code {
            UNSIGNED | UNKNOWN => self.unproven_host(version, &trouble),
            _ => trouble,
        })
    }

    fn unproven_host(&self, version: &str, why: &Trouble) -> Trouble {
        let places = self.manager.places(OWN_PACKAGE, version).join(", ");
        let places = if places.is_empty() { "the machine's sources".to_owned() } else { shown(&places, 200) };
        let reason = format!(
            "{OWN_PACKAGE} {version} of {places} is not taken: the host is brought only with what a signature proves, also \
             where this machine's configuration trusts a source without (`trusted=yes`, `allow-insecure=yes`); have that \
             source signed and its key given to the machine with `signed-by=`, or declare a version of one that is: {}",
            why.reason
        );
        Trouble::refused(UNSIGNED, reason)
    }

    fn run(&self, wanted: &Wanted, simulated: &Simulated, sources: Option<&Proven>) -> Result<(), Trouble> {
        self.judged(wanted, simulated)?;
        if self.tools.is_cancelled() {
            return Err(Trouble::cancelled());
        }
        let touched = simulated.touched();
        let command = self.manager.command(wanted, &touched, sources);
        self.tools.change_packages(self.manager.as_ref(), &command, &touched, wanted.anew)
    }

    /// What would be brought in place of a name that others only provide.
    fn by_another_name(&self, wanted: &Wanted, simulated: &Simulated) -> Option<Trouble> {
        let missed = wanted.install.keys().find(|name| simulated.brought(name).is_none())?;
        let providers = self.manager.providers(missed);
        (!providers.is_empty()).then(|| virtual_name(missed, &providers))
    }

    fn judge(&self, wanted: &Wanted, simulated: &Simulated) -> Result<(), TransactionRefusal> {
        let (held, contradicts) =
            (|name: &str| self.is_held(name), |n: &str, v: &str| self.contradicts(n, v));
        let is_older = |a: &str, b: &str| self.manager.is_older(a, b);
        let exact = matches!(self.terms.declared.get(OWN_PACKAGE), Some(PackageWanted::Exact(_)));
        let rules = Rules {
            held: &held,
            contradicts: &contradicts,
            is_older: &is_older,
            may_raise: self.manager.may_raise(),
            host: OWN_PACKAGE,
            host_is_exact: exact,
        };
        judge(wanted, simulated, &rules)?;
        // A new version of what brought them would put its own in their place.
        let is_anew = |(name, (old, _)): &(&String, &(Option<String>, String))| {
            old.is_some() && bare(name) != OWN_PACKAGE
        };
        let anew = simulated.install.iter().filter(is_anew).map(|(name, _)| name);
        let gone: Vec<&str> = simulated.remove.iter().chain(anew).map(String::as_str).collect();
        match self.manager.of_the_hosts_files(&gone) {
            Ok(None) => Ok(()),
            Ok(Some(whose)) => Err(TransactionRefusal::HostFiles(whose)),
            Err(unread) => Err(TransactionRefusal::UnreadFiles(unread)),
        }
    }

    /// What apt calls impossible, because somebody put a package on hold that would have to change (H-25).
    fn held_back(&self, trouble: Trouble) -> Trouble {
        if trouble.code != UNMET {
            return trouble;
        }
        let words = trouble.reason.split([' ', ',', ':']).collect::<BTreeSet<_>>();
        let held: Vec<&str> = words.into_iter().filter(|word| self.is_held(word)).collect();
        if held.is_empty() { trouble } else { self.refused(&TransactionRefusal::NeedsHeld(held.join(", "))) }
    }

    fn refused(&self, refusal: &TransactionRefusal) -> Trouble {
        refused(refusal, &self.manager.words())
    }

    fn is_held(&self, name: &str) -> bool {
        self.terms.kept.contains(bare(name))
            || self.packages.get_called(name).is_some_and(|package| package.hold)
    }

    fn contradicts(&self, name: &str, version: &str) -> bool {
        self.terms.declared.get(name).is_some_and(|wanted| !self.manager.takes(wanted, version))
    }

    /// Tries one alone, unless the common try has brought it already, or broke over it.
    fn attempt_left(&self, wanted: &Wanted, ended: &Trouble) -> Result<(), Trouble> {
        let now = self.tools.packages()?;
        let begun =
            |name: &String| now.get_called(name).is_some_and(|package| package.state == PackageState::Broken);
        if wanted.install.keys().any(begun) {
            return Err(ended.clone());
        }
        let as_wanted = |(name, version): (&String, &Option<String>)| {
            let installed = now.installed(name);
            installed.is_some() && (version.is_none() || installed == version.as_deref())
        };
        let is_gone = |name: &String| now.installed(name).is_none();
        if wanted.install.iter().all(as_wanted) && wanted.remove.iter().all(is_gone) {
            return Ok(());
        }
        self.attempt(wanted)
    }
}

impl Tools<'_> {
    /// Runs this, which changes packages, noted as begun before and as ended after; what is open stays noted, and what
    /// somebody's lock stopped half-way.
    fn change_packages(
        &self,
        manager: &dyn Hand,
        command: &[String],
        touched: &Begun,
        anew: bool,
    ) -> Result<(), Trouble> {
        // What an earlier one of this pass left open stays noted beside it; finishing it brings it anew.
        let open =
            if anew { Begun::new() } else { self.begun()?.map_or_else(Begun::new, |begun| (*begun).clone()) };
        let noted = open.iter().chain(touched).map(|(name, version)| (name.clone(), version.clone()));
        self.begin(&noted.collect(), anew)?;
        let ended = steps::PACKAGES_CHANGED.take(|| apart::run(self, manager, command, touched));
        if ended.as_ref().is_err_and(|trouble| is_open(trouble) || trouble.code == LOCK_HELD) {
            return ended;
        }
        if open.is_empty() {
            self.end();
        } else if let Err(trouble) = self.begin(&open, false) {
            // What stands noted is more than is open, and is found to be whole.
            tracing::warn!(why = trouble.reason, "the end of a package transaction was not noted");
        }
        ended
    }
}

pub(super) fn together<'w>(each: impl Iterator<Item = &'w Wanted>) -> Wanted {
    let mut all = Wanted::default();
    for Wanted { install, remove, may_go, anew } in each {
        all.install.extend(install.clone());
        all.remove.extend(remove.iter().cloned());
        all.may_go.extend(may_go.iter().cloned());
        all.anew |= anew;
    }
    all
}

fn refused(refusal: &TransactionRefusal, words: &Words) -> Trouble {
    let Words { unhold, simulate, whose, place, again: _ } = words;
    let unhold = unhold("NAME");
    let remedy = match refusal {
        TransactionRefusal::Removes(_) => "declare those absent, or declare another package".to_owned(),
        TransactionRefusal::Downgrades(_) | TransactionRefusal::Undeclared(_) => {
            "declare the version that is meant, or another package".to_owned()
        }
        TransactionRefusal::Raises(_) => {
            "bring the whole machine up to date by hand, or declare those too".to_owned()
        }
        TransactionRefusal::OnHold(_) | TransactionRefusal::NeedsHeld(_) => {
            format!("{unhold} lets it be changed, or taking the module where it is kept as found")
        }
        TransactionRefusal::Leaves(_) => format!("{simulate} on the machine shows why"),
        TransactionRefusal::Host(_) | TransactionRefusal::OlderHost(_) => {
            "a host is never removed by itself; declare the version of tenure-host exactly to lower it"
                .to_owned()
        }
        TransactionRefusal::HostFiles(_) => format!(
            "leave that package as it is installed; bring the host by its own package first, and {whose} with that path says \
             whose the file is"
        ),
        TransactionRefusal::UnreadFiles(_) => {
            format!("look on the machine what is wrong with it (`ls -l {place}`, `dmesg`) and put it right")
        }
    };
    Trouble::refused("transaction_refused", format!("not done: {}; {remedy}", chain(refusal)))
}
