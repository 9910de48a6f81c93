//! What comes between on some stretches: a store that somebody spoilt, a node that is not heard, a clock that is behind.

use nix::sys::signal::Signal;
use tenure_actors::database::rusqlite::{Connection, OpenFlags};

use crate::world::{Side, World};

const HOSTS_STORE: &str = "/var/lib/tenure-host/store.db";
const STORE: &str = "control/var/lib/tenure-control/store.db";
const CONFIG: &str = "control/etc/tenure/control.toml";

impl World {
    /// What was written last is lost with it.
    pub fn cut_the_log(&self) {
        std::fs::remove_file(self.sandbox.machine(&format!("{HOSTS_STORE}-wal"))).unwrap();
    }

    pub fn damage_the_store(&self) {
        std::fs::write(self.sandbox.machine(HOSTS_STORE), [7; 9000]).unwrap();
    }

    /// The running host has all of it open, and puts it back.
    pub fn remove_the_store(&mut self) {
        let store = self.sandbox.machine(HOSTS_STORE);
        std::fs::remove_file(&store).unwrap();
        self.until("the store is in its place", |world| {
            // In this order: what was said before it lay there again would be of a host that may be dying over it just now.
            let lies_there = store.exists();
            let refused = &world.status()?["last"]["refused"];
            (lies_there && refused.is_null()).then_some(())
        });
        self.settled(1);
    }

    /// For this stretch alone: where much goes on, a lease of seconds ends by itself.
    pub fn have_short_leases(&self) {
        let text = "heartbeat_seconds = 1\nsilence_seconds = 2\nlease_seconds = 4\n";
        self.sandbox.write(CONFIG, text);
    }

    pub fn be_silent(&mut self) {
        let before = self.last_word();
        self.signal_host(Signal::SIGSTOP);
        self.until("the node is lost", |world| (world.node()?["state"] == "lost").then_some(()));
        self.signal_host(Signal::SIGCONT);
        self.ready_again();
        // Last words are written now and then, and when it stops.
        while self.stop_control() {
            self.start(Side::Control);
            self.ready_again();
        }
        assert!(self.last_word() > before, "the last word of the node is not in the store");
        std::fs::remove_file(self.sandbox.at(CONFIG)).unwrap();
    }

    fn ready_again(&mut self) {
        self.until("the node is ready again", |world| {
            let node = world.node()?;
            (node["state"] == "ready" && !node["session"].is_null()).then_some(())
        });
    }

    fn signal_host(&self, signal: Signal) {
        self.sandbox.host.as_ref().unwrap().signal(signal);
    }

    fn last_word(&self) -> i64 {
        let db =
            Connection::open_with_flags(self.sandbox.at(STORE), OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
        db.query_row("SELECT coalesce(max(received_at), 0) FROM contact", (), |row| row.get(0)).unwrap()
    }

    /// As a control plane whose clock was ahead would have left it.
    pub fn write_in_the_future(&mut self) {
        // One that was killed has a log, of which SQLite would make an end here.
        self.start(Side::Control);
        self.until("it answers", |world| (world.sandbox.tenure(&["nodes"]).code == 0).then_some(()));
        self.stop_control();
        let later = "UPDATE newest_write SET at = at + 86400000";
        Connection::open(self.sandbox.at(STORE)).unwrap().execute_batch(later).unwrap();
    }

    pub fn say_the_clock_is_right(&mut self) {
        self.done("the clock is said to be right", |sandbox| {
            sandbox.tenure(&["reinvite", "edge-1", "--clock-is-right"])
        });
    }
}
