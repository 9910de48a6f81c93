//! The way from the first start to retirement, in stretches. Each begins with both sides killed and started, and ends
//! when all that it set out to do is done, whoever died over it.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;

use serde_json::Value;
use tenure_tests::sandbox::text;

use crate::world::{Order, Side, World};

/// One stretch of the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stretch {
    /// Both are started where nothing is.
    Begin,
    /// The log of the host's store is gone when it starts.
    CutLog,
    /// Its store is damaged when it starts.
    Damage,
    /// The node is invited and enrols.
    Enrol,
    /// Files and directories are made, changed and removed.
    Declare,
    /// Somebody else changes some of them.
    Drift,
    /// The host's store is removed under it.
    Remove,
    /// The node is not heard for longer than its lease.
    Silence,
    /// The clock is behind what was written, and said to be right.
    Clock,
    /// The node is invited again and enrols anew.
    Rejoin,
    /// Some of it leaves the declaration, and some is declared otherwise.
    Leave,
    /// Its standing is withdrawn while it is away, and it still has something to tell.
    Retire,
}

impl Stretch {
    /// The way of those that die on this side, in order.
    pub fn of(side: Side) -> Vec<Self> {
        let all = [
            Self::Begin,
            Self::CutLog,
            Self::Damage,
            Self::Enrol,
            Self::Declare,
            Self::Drift,
            Self::Remove,
            Self::Silence,
            Self::Clock,
            Self::Rejoin,
            Self::Leave,
            Self::Retire,
        ];
        let others: &[Self] = match side {
            Side::Host => &[Self::Silence, Self::Clock],
            Side::Control => &[Self::CutLog, Self::Damage, Self::Remove],
        };
        all.into_iter().filter(|stretch| !others.contains(stretch)).collect()
    }

    /// Whether it is gone only for the steps that no other stretch takes: it lasts long, or a death at another step
    /// would be a second mishap beside the first.
    pub const fn is_a_detour(self) -> bool {
        matches!(self, Self::Remove | Self::Silence)
    }
}

/// What lies on the machine before us: path, bytes, mode; a directory has no bytes.
const FOUND: [(&str, Option<&str>, u32); 7] = [
    ("srv", None, 0o755),
    ("srv/found.txt", Some("found\n"), 0o644),
    ("srv/same.txt", Some("same\n"), 0o644),
    ("srv/closed.txt", Some("closed\n"), 0o600),
    ("srv/gone.txt", Some("gone\n"), 0o644),
    ("srv/gone", None, 0o755),
    ("srv/closed", None, 0o700),
];

const FIRST: &str = r#"
[[directory]]
path = "/srv"
[[directory]]
path = "/srv/app"
mode = "0750"
[[directory]]
path = "/srv/app/sub"
[[directory]]
path = "/srv/app/swap"
[[file]]
path = "/srv/app/made.txt"
content = "made\n"
[[file]]
path = "/srv/app/sub/deep.txt"
content = "deep\n"
[[file]]
path = "/srv/app/stays.txt"
content = "one\n"
[[file]]
path = "/srv/app/mode.txt"
content = "mode\n"
[[file]]
path = "/srv/app/big.bin"
source = "big.bin"
[[file]]
path = "/srv/found.txt"
content = "wanted\n"
[[file]]
path = "/srv/same.txt"
content = "same\n"
[[file]]
path = "/srv/closed.txt"
content = "closed\n"
[[file]]
path = "/srv/gone.txt"
absent = true
[[directory]]
path = "/srv/gone"
absent = true
[[directory]]
path = "/srv/closed"
"#;

const SECOND: &str = r#"
[[directory]]
path = "/srv"
[[directory]]
path = "/srv/app"
mode = "0700"
[[file]]
path = "/srv/app/stays.txt"
content = "two\n"
[[file]]
path = "/srv/app/mode.txt"
content = "mode\n"
mode = "0600"
[[file]]
path = "/srv/app/swap"
content = "a file where a directory was\n"
[[file]]
path = "/srv/app/new.txt"
content = "new\n"
"#;

/// Larger than one piece of content.
const BIG: usize = 300_000;

impl World {
    /// Goes one stretch.
    pub fn go(&mut self, stretch: Stretch, order: Order<'_>) {
        self.kill_both();
        match stretch {
            Stretch::Begin => self.lay_out(),
            Stretch::CutLog => self.cut_the_log(),
            Stretch::Damage => self.damage_the_store(),
            Stretch::Silence => self.have_short_leases(),
            Stretch::Clock => self.write_in_the_future(),
            Stretch::Retire => self.repair_unheard(),
            Stretch::Enrol
            | Stretch::Declare
            | Stretch::Drift
            | Stretch::Remove
            | Stretch::Rejoin
            | Stretch::Leave => {}
        }
        self.order(order);
        self.start(Side::Control);
        if stretch == Stretch::Retire {
            return self.retire();
        }
        self.start(Side::Host);
        self.both_answer();
        match stretch {
            Stretch::Begin | Stretch::CutLog | Stretch::Damage | Stretch::Retire => {}
            Stretch::Enrol => self.enrol(),
            Stretch::Declare => self.declare(1, FIRST, &[]),
            Stretch::Drift => self.drift(),
            Stretch::Remove => self.remove_the_store(),
            Stretch::Silence => self.be_silent(),
            Stretch::Clock => self.say_the_clock_is_right(),
            Stretch::Rejoin => self.rejoin(),
            Stretch::Leave => self.declare(2, SECOND, &["--allow-removals", "20"]),
        }
    }

    pub fn both_answer(&mut self) {
        self.until("both sides answer", |world| {
            let control = world.sandbox.tenure(&["nodes"]).code == 0;
            // One that is not up yet is answered for by its store, and has steps to take before it is.
            let is_up = UnixStream::connect(world.sandbox.machine("/run/tenure-host/api.sock")).is_ok();
            (control && is_up && world.status().is_some()).then_some(())
        });
    }

    fn lay_out(&self) {
        for (path, bytes, mode) in FOUND {
            let at = self.sandbox.at("machine").join(path);
            match bytes {
                Some(bytes) => std::fs::write(&at, bytes).unwrap(),
                None => std::fs::create_dir_all(&at).unwrap(),
            }
            std::fs::set_permissions(&at, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        self.sandbox.write("fleet/modules/web/big.bin", vec![b'x'; BIG]);
        std::fs::create_dir_all(self.sandbox.at("control/etc/tenure")).unwrap();
    }

    fn enrol(&mut self) {
        // The operator who got no answer asks for the token again.
        let ran = self.done("the node is invited", |sandbox| {
            let ran = sandbox.tenure(&["invite", "edge-1", "--rejoin", "invitation"]);
            if ran.err.contains("node_exists") { sandbox.tenure(&["reinvite", "edge-1"]) } else { ran }
        });
        self.join(ran.out.trim(), 1);
    }

    fn rejoin(&mut self) {
        let ran = self.done("the node is invited again", |sandbox| sandbox.tenure(&["reinvite", "edge-1"]));
        self.join(ran.out.trim(), 2);
        self.settled(1);
    }

    fn join(&mut self, token: &str, fencing: u64) {
        let token = token.to_owned();
        self.done("the token is redeemed", |sandbox| sandbox.redeem(&token));
        self.until("the node is ready, and the machine knows who it is", |world| {
            let node = world.node()?;
            assert!(node["fencing_token"].as_u64() <= Some(fencing), "a token was redeemed twice: {node}");
            let status = world.status()?;
            (node["state"] == "ready"
                && !node["session"].is_null()
                && status["machine_state"] == "enrolled"
                && node["fencing_token"] == fencing
                && status["identity"]["fencing"] == fencing)
                .then_some(())
        });
    }

    fn declare(&mut self, revision: u64, module: &str, more: &[&str]) {
        self.sandbox.module(module);
        let folder = text(&self.sandbox.at("fleet"));
        let arguments: Vec<&str> = ["declare", &folder].into_iter().chain(more.iter().copied()).collect();
        let look: Vec<&str> = arguments.iter().copied().chain(["--plan"]).collect();
        self.done("the folder is looked at", |sandbox| sandbox.tenure(&look));
        self.done("the folder is declared", |sandbox| sandbox.tenure(&arguments));
        self.settled(revision);
    }

    /// Waits until this revision is applied, reported, and nothing is left to be told.
    pub fn settled(&mut self, revision: u64) {
        self.until("everything is as declared, and told", |world| {
            let node = world.node()?;
            let declared = node["revision"]["declared"].as_u64();
            assert!(declared <= Some(revision), "one folder became two revisions: {node}");
            let quiet = node["resources"].as_array().is_some_and(|lines| {
                !lines.is_empty() && lines.iter().all(|line| line["outcome"] == "unchanged")
            });
            let applied = node["revision"]["applied"] == revision && declared == Some(revision);
            (applied && quiet && world.status()?["spooled"] == 0).then_some(())
        });
    }

    fn drift(&mut self) {
        let theirs = self.sandbox.write("theirs", "theirs\n");
        std::fs::rename(theirs, self.sandbox.machine("/srv/app/made.txt")).unwrap();
        std::fs::remove_file(self.sandbox.machine("/srv/app/sub/deep.txt")).unwrap();
        let app = self.sandbox.machine("/srv/app");
        std::fs::set_permissions(&app, std::fs::Permissions::from_mode(0o755)).unwrap();
        let made = self.sandbox.machine("/srv/app/mode.txt");
        std::fs::set_permissions(&made, std::fs::Permissions::from_mode(0o640)).unwrap();
        self.until("what somebody changed is as declared again", |world| {
            let sandbox = &world.sandbox;
            let mode =
                |path: &str| sandbox.machine(path).metadata().ok().map(|m| m.permissions().mode() & 0o7777);
            (sandbox.read("/srv/app/made.txt").as_deref() == Some("made\n")
                && sandbox.read("/srv/app/sub/deep.txt").as_deref() == Some("deep\n")
                && mode("/srv/app") == Some(0o750)
                && mode("/srv/app/mode.txt") == Some(0o644))
            .then_some(())
        });
        self.settled(1);
        self.until("all four repairs are told", |world| {
            let told = world.events()?.iter().filter(|event| event["kind"] == "drift_repaired").count();
            (told >= 4).then_some(())
        });
    }

    /// Repairs something, with nobody there to hear of it.
    fn repair_unheard(&mut self) {
        self.order(Order::Live);
        self.start(Side::Host);
        std::fs::remove_file(self.sandbox.machine("/srv/app/new.txt")).unwrap();
        self.until("the repair waits to be told", |world| {
            (world.status()?["spooled"] == 1 && world.sandbox.machine("/srv/app/new.txt").exists())
                .then_some(())
        });
        self.kill_both();
    }

    fn retire(&mut self) {
        self.done("the node is retired", |sandbox| sandbox.tenure(&["retire", "edge-1"]));
        self.start(Side::Host);
        let heard = |world: &mut Self| {
            let reason: Value = world.status()?["link"]["down"]["reason"]["code"].clone();
            (world.node()?["state"] == "retired" && reason == "retired").then_some(())
        };
        self.until("the machine hears that it is retired", heard);
        let told = |world: &mut Self| (world.status()?["spooled"] == 0).then_some(());
        if self.side() == Side::Control && self.has_died() && told(self).is_none() {
            // It asks again within the hour; one that is started asks at once.
            drop(self.sandbox.host.take());
            self.start(Side::Host);
        }
        self.until("its last words are told", told);
        self.until("the machine hears that it is retired", heard);
    }
}
