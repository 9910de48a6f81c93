//! The host on a real machine, killed before and after each step that it takes with packages and units, each time that
//! it takes it: a package comes, is raised and goes, a service is started, restarted and stopped, and another one is
//! masked and given back (H-09, H-24). However it dies, the machine ends where it ends when nobody dies, and no script and no start ran twice.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tenure_actors::database::rusqlite::{Connection, OptionalExtension as _};
use tenure_host::steps::STEPS_OF_A_MACHINE;
use tenure_tests::lab::{AptRepository, Base, Deb, Pair, SOON, Trust};
use tenure_tests::wait;

use crate::world::PROGRAMS;

/// One stretch of the way, which is gone again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stretch {
    /// A package, a unit file and its unit come.
    Come,
    /// Another version of the package, and other settings, on which the unit restarts; another unit is masked.
    Change,
    /// All of it leaves the declaration.
    Leave,
}

impl Stretch {
    const ALL: [Self; 3] = [Self::Come, Self::Change, Self::Leave];

    fn module(self) -> String {
        match self {
            Self::Come => module("1.0", "one"),
            Self::Change => module("2.0", "two") + MASKED,
            Self::Leave => STAYS.to_owned(),
        }
    }
}

const SERVICE: &str = "/etc/systemd/system/site.service";
/// A unit that is on the machine before us, and runs.
const QUIET: &str = "/usr/lib/systemd/system/quiet.service";
const MASKED: &str = "[[unit]]\nname = \"quiet.service\"\nrunning = false\nmasked = true\n";
const STAYS: &str = "[[file]]\npath = \"/srv/stays\"\ncontent = \"stays\\n\"\n";

/// A service that writes a line each time it starts.
fn module(version: &str, settings: &str) -> String {
    let unit = "[Service]\\nExecStart=/bin/sh -c 'echo start >>/var/log/starts; exec sleep infinity'\\n\
                [Install]\\nWantedBy=multi-user.target\\n";
    format!(
        "{STAYS}[[package]]\nname = \"app\"\nversion = \"{version}\"\n\
         [[file]]\npath = \"{SERVICE}\"\ncontent = \"{unit}\"\n\
         [[file]]\npath = \"/srv/site.conf\"\ncontent = \"{settings}\\n\"\n\
         [[unit]]\nname = \"site.service\"\nenabled = true\nrunning = true\nneeds = [\"file:{SERVICE}\"]\n\
         restart_on = [\"file:/srv/site.conf\"]\n"
    )
}

/// A package whose scripts write down that they ran. One with a `postrm` would leave that behind.
fn package(version: &str) -> Deb {
    ["preinst", "postinst", "prerm"]
        .into_iter()
        .fold(Deb::new("app", version).file("/usr/share/app/it", version, 0o644), |deb, script| {
            deb.script(script, &format!("echo \"{script} $1\" >>/var/log/scripts"))
        })
}

/// What there is at the end of a stretch. It must not tell who died on it.
#[derive(Debug, PartialEq, Eq)]
struct End {
    package: String,
    /// The scripts of packages that ran on this stretch, in order.
    scripts: String,
    /// Whether the service runs and starts with the machine, and the same of the one that is masked.
    service: [String; 4],
    /// How often it was started on this stretch.
    starts: usize,
    owned: BTreeMap<String, String>,
    /// What was told on this stretch, by kind and key.
    events: BTreeMap<String, usize>,
    /// What an apply leaves behind that is cut short and not cleared up.
    left_over: String,
    /// Rows of intents, and whether a transaction stands noted.
    noted: (i64, bool),
}

/// A control plane, and a machine whose host can be told to die.
struct Lab {
    pair: Pair,
    revision: u64,
    told: BTreeMap<String, usize>,
}

/// Each look starts two programs, beside what is looked at.
const PAUSE: Duration = Duration::from_millis(250);

/// What the next host is told by its environment; only the first, or the first two, so that it does not die for ever.
const ORDERED: &str = "/run/crash.env";
const ORDERED_AGAIN: &str = "/run/crash.again";
const POINTS: &str = "/run/crash.points";
const TAKES_ORDERS: &str = "[Service]\nRestartSec=100ms\nEnvironmentFile=-/run/crash.env\n\
    ExecStopPost=/bin/sh -c 'mv -f /run/crash.again /run/crash.env 2>/dev/null || rm -f /run/crash.env'\n";

impl Lab {
    fn raise(name: &str, base: Base) -> Self {
        let pair = Pair::raised_on(name, base);
        let repository = AptRepository::new(&pair.lab, Trust::Signed);
        [package("1.0"), package("2.0")].iter().for_each(|package| repository.add(package));
        pair.b.use_apt(&repository);
        pair.b.must(&["systemctl", "stop", "tenure-host"]);
        pair.b.copy_in(Path::new(PROGRAMS.host), "/usr/bin/tenure-host", 0o755);
        pair.b.write("/etc/systemd/system/tenure-host.service.d/crash.conf", TAKES_ORDERS);
        pair.b.write(QUIET, "[Service]\nExecStart=sleep infinity\n[Install]\nWantedBy=multi-user.target\n");
        pair.b.must(&["systemctl", "daemon-reload"]);
        pair.b.must(&["systemctl", "start", "quiet.service"]);
        Self { pair, revision: 0, told: BTreeMap::new() }
    }

    /// Goes a stretch with a host that is told this, and the one after its death that; counts its deaths.
    fn go(&mut self, stretch: Stretch, order: &str, again: &str) -> (End, u32) {
        let Self { pair, .. } = self;
        pair.b.must(&["rm", "-f", "/var/log/scripts", "/var/log/starts"]);
        pair.b.write(ORDERED, order);
        if !again.is_empty() {
            pair.b.write(ORDERED_AGAIN, again);
        }
        pair.b.must(&["systemctl", "start", "tenure-host"]);
        pair.module(&stretch.module());
        let _ = pair.declare(&["--allow-removals", "9"]).expect(0);
        self.revision += 1;
        self.wait_until_settled();
        let pair = &self.pair;
        let told = told(pair);
        let events = since(&std::mem::replace(&mut self.told, told.clone()), told);
        let owned = pair.owned();
        let deaths = pair.b.must(&["systemctl", "show", "--value", "--property=NRestarts", "tenure-host"]);
        pair.b.must(&["systemctl", "stop", "tenure-host"]);
        let read = |path: &str| pair.read(path).unwrap_or_default();
        let asked =
            |(verb, unit): (&str, &str)| pair.b.run(&["systemctl", verb, unit]).stdout.trim().to_owned();
        let [site, quiet] = ["site.service", "quiet.service"];
        let end = End {
            package: pair.b.sh("dpkg-query -W -f='${db:Status-Status} ${Version}' app 2>/dev/null").stdout,
            scripts: read("/var/log/scripts"),
            service: [("is-active", site), ("is-enabled", site), ("is-active", quiet), ("is-enabled", quiet)]
                .map(asked),
            starts: read("/var/log/starts").lines().count(),
            owned,
            events,
            left_over: left_over(pair),
            noted: noted(pair),
        };
        (end, deaths.parse().unwrap())
    }

    fn wait_until_settled(&self) {
        let settled = || {
            let (pair, node) = (&self.pair, self.pair.node());
            let quiet = node["resources"].as_array().is_some_and(|lines| {
                !lines.is_empty() && lines.iter().all(|line| line["outcome"] == "unchanged")
            });
            let status = pair.b.run(&["tenure-host", "status", "--json"]);
            let spooled = status.success().then(|| status.json()["spooled"].clone());
            let applied = node["revision"]["applied"] == self.revision && spooled == Some(0.into());
            (quiet && applied).then_some(())
        };
        wait::until_each(PAUSE, "everything is as declared, and told", SOON, settled);
    }

    /// Goes a stretch on which it dies there, and when it is started anew perhaps once more, and ends as if it had not.
    fn go_dying(&mut self, stretch: Stretch, point: &str, twice: bool, well: &End) {
        let order = format!("TENURE_CRASH={point}\n");
        // Of what the first one did already, the next one passes less.
        let again = point.rsplit_once(':').map_or(point, |(point, _)| point);
        let again = if twice { format!("TENURE_CRASH={again}\n") } else { String::new() };
        let (end, deaths) = self.go(stretch, &order, &again);
        assert!(deaths > 0, "nobody died: {stretch:?} {order}");
        assert_eq!(&end, well, "a death left a trace: {stretch:?} {order}");
    }

    /// The points at which it is to die on each stretch, and how it ends when it does not.
    fn go_well(&mut self) -> Vec<(Stretch, Vec<String>, End)> {
        let mut go = |stretch| {
            self.pair.b.must(&["rm", "-f", POINTS]);
            let (end, deaths) = self.go(stretch, &format!("TENURE_CRASH_LOG={POINTS}\n"), "");
            assert_eq!(deaths, 0, "{stretch:?}");
            (stretch, each_time(&self.pair.read(POINTS).unwrap_or_default()), end)
        };
        Stretch::ALL.map(&mut go).into()
    }
}

/// Each passing of a point of a step of a machine, as the order to die there.
fn each_time(log: &str) -> Vec<String> {
    let mut times = BTreeMap::new();
    let is_of_a_machine = |point: &&str| {
        let step = point.rsplit_once('.').map(|(step, _)| step);
        STEPS_OF_A_MACHINE.iter().any(|known| Some(known.name()) == step)
    };
    let numbered = log.lines().filter(is_of_a_machine).map(|point| {
        let time: &mut u32 = times.entry(point).or_default();
        *time += 1;
        format!("{point}:{time}")
    });
    numbered.collect()
}

fn assert_complete(well: &[(Stretch, Vec<String>, End)]) {
    let passed: BTreeSet<String> = well.iter().flat_map(|(_, points, _)| points.iter().cloned()).collect();
    for step in STEPS_OF_A_MACHINE {
        for side in ["before", "after"] {
            let first = format!("{}.{side}:1", step.name());
            assert!(passed.contains(&first), "{first} is never passed on the way");
        }
    }
}

fn told(pair: &Pair) -> BTreeMap<String, usize> {
    let events = pair.tenure(&["events", "--json"]).expect(0).json();
    let word = |event: &Value, name: &str| event[name].as_str().unwrap_or_default().to_owned();
    let mut told = BTreeMap::new();
    for event in events.as_array().into_iter().flatten().filter(|event| !event["key"].is_null()) {
        *told.entry(format!("{} {}", word(event, "kind"), word(event, "key"))).or_default() += 1;
    }
    told
}

fn since(before: &BTreeMap<String, usize>, mut now: BTreeMap<String, usize>) -> BTreeMap<String, usize> {
    now.iter_mut().for_each(|(event, count)| *count -= before.get(event).unwrap_or(&0));
    now.retain(|_, count| *count > 0);
    now
}

fn left_over(pair: &Pair) -> String {
    let found = "find /srv /etc /usr/share /run/tenure-host -name '*.tenure-*' -o -name 'package-*.log' 2>/dev/null; \
                 systemctl list-units --all --plain --no-legend 'tenure-host-packages-*'; \
                 dpkg --audit; ls -A /var/lib/dpkg/updates";
    pair.b.sh(found).stdout
}

/// What the store of a host that was stopped in order still has noted as begun.
fn noted(pair: &Pair) -> (i64, bool) {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("store.db");
    std::fs::write(&copy, pair.b.read("/var/lib/tenure-host/store.db")).unwrap();
    let db = Connection::open(copy).unwrap();
    let intents = db.query_row("SELECT count(*) FROM intent", (), |row| row.get(0)).unwrap();
    let begun = "SELECT 1 FROM fact WHERE name = 'package_transaction'";
    (intents, db.query_row(begun, (), |_| Ok(())).optional().unwrap().is_some())
}

// rule: H-09
// rule: H-24
// case: O-41
#[test]
fn a_host_that_is_killed_before_or_after_any_step_with_packages_and_units_does_none_of_them_twice() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: lab machines need root");
        return;
    }
    // Most of it is waiting, so two machines share the journeys, and each has deaths of both kinds.
    std::thread::scope(|scope| {
        scope.spawn(|| killed_on("crash_12", Base::Bookworm, |at| matches!(at % 4, 0 | 3)));
        scope.spawn(|| killed_on("crash_13", Base::Trixie, |at| matches!(at % 4, 1 | 2)));
    });
}

fn killed_on(name: &str, base: Base, is_its: impl Fn(usize) -> bool) {
    let mut lab = Lab::raise(name, base);
    let well = lab.go_well();
    assert_complete(&well);
    let most = well.iter().map(|(_, points, _)| points.len()).max().unwrap_or(0);
    for at in (0..most).filter(|at| is_its(*at)) {
        for (stretch, points, well) in &well {
            match points.get(at) {
                Some(point) => lab.go_dying(*stretch, point, at / 4 % 2 == 1, well),
                // What came goes from where it is; and it has to come before it goes.
                None => assert_eq!(&lab.go(*stretch, "", "").0, well, "{stretch:?}"),
            }
        }
    }
}
