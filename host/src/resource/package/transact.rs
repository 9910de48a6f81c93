//! One transaction for all that a pass wants of packages at once: simulated, judged, run apart from us. Where it is
//! refused or fails, each is tried alone, so that one bad package does not stop the others (H-10). What came of it is
//! not said here: whoever called looks again.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tenure_protocol::refusal::chain;
use tenure_protocol::resource::PackageWanted;

use super::apt::{Apt, LOCK_HELD, UNMET, command};
use super::dpkg::PackageState;
use super::transaction::{Rules, Simulated, TransactionRefusal, Wanted, judge};
use super::{Begun, Declared, Names, OWN_PACKAGE, Packages, Tools, Trouble, apart, is_open, lock, owner};
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
    pub(super) apt: Apt<'a>,
    /// What was installed when it began.
    pub(super) packages: Arc<Packages>,
}

impl<'a> Transaction<'a> {
    /// Nobody else works with packages, and the database is whole.
    fn begin(tools: &'a Tools<'a>, terms: Terms<'a>) -> Result<Self, Trouble> {
        let apt = Apt { programs: tools.programs()? };
        if let Some(trouble) = tools.at_work()? {
            return Err(trouble);
        }
        lock::free(tools)?;
        // Whoever has held it until now may have been half-way when they were read.
        tools.packages_moved();
        let packages = tools.packages()?;
        lock::whole(tools, &packages, terms)?;
        Ok(Self { tools, terms, apt, packages })
    }

    /// Which version is meant.
    fn choose(&self, request: &Request<'_>, all: &[Request<'_>]) -> Result<Wanted, Trouble> {
        let name = request.name.to_owned();
        let mut wanted = Wanted::default();
        match request.wanted {
            PackageWanted::Absent => {
                wanted.remove.insert(name);
            }
            PackageWanted::Present => {
                wanted.install.insert(name, None);
            }
            PackageWanted::Exact(version) => {
                wanted.install.insert(name, Some(version.as_str().to_owned()));
            }
            PackageWanted::Prefix(_) => {
                let version = self.newest(request)?;
                wanted.install.insert(name, Some(version));
            }
        }
        // Alone, each may make go what is to go anyway.
        let to_go = all.iter().filter(|request| *request.wanted == PackageWanted::Absent);
        let may_go = self.terms.may_go.iter().copied().chain(to_go.map(|request| request.name));
        wanted.may_go = may_go.map(str::to_owned).collect();
        Ok(wanted)
    }

    /// The newest version that begins as declared.
    fn newest(&self, request: &Request<'_>) -> Result<String, Trouble> {
        let Request { name, wanted } = request;
        let look = || {
            let versions = self.apt.versions(name)?;
            Ok::<_, Trouble>(versions.into_iter().find(|version| wanted.takes(version)))
        };
        if let Some(version) = look()? {
            return Ok(version);
        }
        self.update()?;
        look()?.ok_or_else(|| {
            let reason = format!(
                "the machine's package sources have no version {wanted} of {name}; declare the source, or another version"
            );
            Trouble::failed("unknown_package", reason)
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
        self.tools.updated.get_or_init(|| self.apt.update().map_err(failed)).clone()
    }

    /// Simulates, judges, and runs.
    pub(super) fn attempt(&self, wanted: &Wanted) -> Result<(), Trouble> {
        let simulated = match self.apt.simulate(wanted) {
            Err(trouble) if trouble.code == "unknown_package" => {
                self.update()?;
                self.apt.simulate(wanted)
            }
            simulated => simulated,
        };
        let simulated = simulated.map_err(|trouble| self.held_back(trouble))?;
        self.judge(wanted, &simulated).map_err(|refusal| refused(&refusal))?;
        if self.tools.cancelled.load(Ordering::Relaxed) {
            return Err(Trouble::outstanding("cancelled", "the pass was ended before its turn came"));
        }
        self.tools.change_packages(&command(wanted), &simulated.touched(), wanted.anew)
    }

    fn judge(&self, wanted: &Wanted, simulated: &Simulated) -> Result<(), TransactionRefusal> {
        judge(wanted, simulated, &self.rules(&|name| self.is_held(name), &|n, v| self.contradicts(n, v)))?;
        for name in &simulated.remove {
            match owner::of_the_hosts_files(self.tools, name) {
                Ok(None) => {}
                Ok(Some(whose)) => return Err(TransactionRefusal::HostFiles(whose)),
                Err(unread) => return Err(TransactionRefusal::UnreadFiles(chain(&unread))),
            }
        }
        Ok(())
    }

    /// What apt calls impossible, because somebody put a package on hold that would have to change (H-25).
    fn held_back(&self, trouble: Trouble) -> Trouble {
        if trouble.code != UNMET {
            return trouble;
        }
        let words = trouble.reason.split([' ', ',', ':']).collect::<std::collections::BTreeSet<_>>();
        let held: Vec<&str> = words.into_iter().filter(|word| self.is_held(word)).collect();
        if held.is_empty() { trouble } else { refused(&TransactionRefusal::NeedsHeld(held.join(", "))) }
    }

    fn rules<'r>(
        &self,
        held: &'r dyn Fn(&str) -> bool,
        contradicts: &'r dyn Fn(&str, &str) -> bool,
    ) -> Rules<'r> {
        let exact = matches!(self.terms.declared.get(OWN_PACKAGE), Some(PackageWanted::Exact(_)));
        Rules { held, contradicts, host: OWN_PACKAGE, host_is_exact: exact }
    }

    fn is_held(&self, name: &str) -> bool {
        self.terms.kept.contains(name) || self.packages.get(name).is_some_and(|package| package.hold)
    }

    fn contradicts(&self, name: &str, version: &str) -> bool {
        self.terms.declared.get(name).is_some_and(|wanted| !wanted.takes(version))
    }

    /// Tries one alone, unless the common try has brought it already, or broke over it.
    fn attempt_left(&self, wanted: &Wanted, ended: &Trouble) -> Result<(), Trouble> {
        let now = self.tools.packages()?;
        let begun =
            |name: &String| now.get(name).is_some_and(|package| package.state == PackageState::Broken);
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
    fn change_packages(&self, command: &[String], touched: &Begun, anew: bool) -> Result<(), Trouble> {
        self.begin(touched, anew)?;
        let ended = steps::PACKAGES_CHANGED.take(|| apart::run(self, command, touched));
        if !ended.as_ref().is_err_and(|trouble| is_open(trouble) || trouble.code == LOCK_HELD) {
            self.end();
        }
        ended
    }
}

fn together<'w>(each: impl Iterator<Item = &'w Wanted>) -> Wanted {
    let mut all = Wanted::default();
    for Wanted { install, remove, may_go, anew } in each {
        all.install.extend(install.clone());
        all.remove.extend(remove.iter().cloned());
        all.may_go.extend(may_go.iter().cloned());
        all.anew |= anew;
    }
    all
}

fn refused(refusal: &TransactionRefusal) -> Trouble {
    let remedy = match refusal {
        TransactionRefusal::Removes(_) => "declare those absent, or declare another package",
        TransactionRefusal::Downgrades(_) | TransactionRefusal::Undeclared(_) => {
            "declare the version that is meant, or another package"
        }
        TransactionRefusal::OnHold(_) | TransactionRefusal::NeedsHeld(_) => {
            "`apt-mark unhold` lets it be changed, or taking the module where it is kept as found"
        }
        TransactionRefusal::Leaves(_) => "`apt-get -s install` on the machine shows why",
        TransactionRefusal::Host(_) | TransactionRefusal::OlderHost(_) => {
            "a host is never removed by itself; declare the version of tenure-host exactly to lower it"
        }
        TransactionRefusal::HostFiles(_) => {
            "stop declaring it absent; bring the host by its own package first, and `dpkg -S` says what else it has"
        }
        TransactionRefusal::UnreadFiles(_) => {
            "look on the machine what is wrong with it (`ls -l /var/lib/dpkg`, `dmesg`) and put it right"
        }
    };
    Trouble::refused("transaction_refused", format!("not done: {}; {remedy}", chain(refusal)))
}
