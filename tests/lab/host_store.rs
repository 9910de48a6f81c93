//! The host's store under a real service manager: a full, a read-only and a damaged one. The unit is up again by itself
//! each time, and what the host does not need a restart for, it is not restarted for.

use tenure_tests::lab::{Base, Pair};

const FILE: &str = "/srv/site.txt";
const STATE: &str = "/var/lib/tenure-host";

fn spoil(pair: &Pair) {
    pair.b.write(FILE, "spoilt");
}

fn is_repaired(pair: &Pair) -> bool {
    pair.read(FILE).as_deref() == Some("one\n")
}

/// How often systemd has started the host again by itself.
fn restarts(pair: &Pair) -> u32 {
    let shown = pair.b.must(&["systemctl", "show", "--value", "--property", "NRestarts", "tenure-host"]);
    shown.trim().parse().unwrap()
}

/// Whether the host's last word upward is this.
fn is_told(pair: &Pair, code: &str) -> bool {
    pair.node()["report"]["refused"]["code"] == code
}

// rule: H-11
// case: O-05
// case: O-06
#[test]
fn a_host_under_systemd_is_up_again_by_itself_after_a_full_a_damaged_and_a_read_only_store() {
    let pair = Pair::boot("host_store", Base::Bookworm);
    pair.start_control(&pair.direct().to_string(), "");
    pair.install_host();
    pair.b.must(&["mount", "-t", "tmpfs", "-o", "size=16m,mode=0700", "tmpfs", STATE]);
    pair.enrol();
    pair.start_host();
    pair.wait_for_state("ready");
    pair.module(&format!("[[file]]\npath = \"{FILE}\"\ncontent = \"one\\n\"\n"));
    let _ = pair.declare(&[]).must();
    pair.wait_for_applied(1);

    let _ = pair.b.sh(&format!("dd if=/dev/zero of={STATE}/ballast bs=4k"));
    spoil(&pair);
    pair.wait("the full disk is told", |pair| is_told(pair, "store_full"));
    assert_eq!(restarts(&pair), 0);
    pair.b.must(&["systemctl", "kill", "--signal=KILL", "tenure-host"]);
    let killed: i64 = pair.b.must(&["date", "+%s%3N"]).trim().parse().unwrap();
    pair.wait("systemd starts it once, on the full disk", |pair| restarts(pair) == 1);
    pair.wait("it is back with its session", |pair| {
        pair.b.has("/run/tenure-host/api.sock") && !pair.session().is_null()
    });
    pair.wait("and says the same", |pair| pair.status()["last"]["refused"]["code"] == "store_full");
    pair.wait("also upward, with a pass of this start", |pair| {
        let begun = pair.node()["report"]["observed_at"].as_i64();
        is_told(pair, "store_full") && begun.is_some_and(|begun| begun > killed)
    });
    assert!(!is_repaired(&pair), "nothing is changed that could not be recorded");
    pair.b.must(&["rm", &format!("{STATE}/ballast")]);
    pair.wait("room mends it", is_repaired);
    assert_eq!((restarts(&pair), pair.told("store_lost", None)), (1, 0));

    let damage = format!("dd if=/dev/urandom of={STATE}/store.db bs=4k count=12 conv=notrunc");
    let _ = pair.b.sh(&damage).must();
    spoil(&pair);
    pair.wait("the loss is told", |pair| pair.told("store_lost", None) == 1);
    pair.wait("it holds on", is_repaired);
    assert_eq!(restarts(&pair), 1, "the store was opened anew in the same process");

    pair.b.must(&["systemctl", "stop", "tenure-host"]);
    pair.b.must(&["mount", "-o", "remount,ro", STATE]);
    pair.b.must(&["systemctl", "start", "--no-block", "tenure-host"]);
    pair.wait("it says that it cannot write", |pair| {
        pair.b.journal("tenure-host").contains("store_read_only")
    });
    pair.b.must(&["mount", "-o", "remount,rw", STATE]);
    spoil(&pair);
    pair.wait("it starts by itself and holds on", is_repaired);
    assert_eq!(pair.told("store_lost", None), 1);
}
