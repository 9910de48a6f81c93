//! The link between two machines, spoilt in every way: cut for short and for long, half-open, the control plane
//! restarted and moved, proxies that are slow or cut what they carry. Each time the node's standing and its reports
//! are right afterwards, over one session, and nobody dials in a storm.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use tenure_tests::lab::{Direction, PORT, Pair, Proxy, SOON};
use tenure_tests::wait;

/// Silence is noticed in five seconds; a node is lost after twelve.
const SHORT_LEASE: &str = "lease_seconds = 12\nheartbeat_seconds = 2\nsilence_seconds = 5\n";
/// Silence is noticed in five seconds; a node is not lost while a test runs.
const LONG_LEASE: &str = "lease_seconds = 300\nheartbeat_seconds = 2\nsilence_seconds = 5\n";
const FILE: &str = "/srv/site.txt";

fn direct(pair: &Pair) -> String {
    pair.direct().to_string()
}

/// The module in which the file has this content.
fn content(text: &str) -> String {
    format!("[[file]]\npath = \"{FILE}\"\ncontent = \"{text}\\n\"\n")
}

/// Declares that content while the node may be out of reach.
fn declare(pair: &Pair, text: &str) {
    pair.module(&content(text));
    let _ = pair.declare(&[]).must();
}

fn applied(pair: &Pair, text: &str, revision: u64) {
    pair.wait_for_applied(revision);
    assert_eq!(pair.read(FILE).as_deref(), Some(format!("{text}\n").as_str()));
}

fn spoil(pair: &Pair) {
    pair.b.write(FILE, "spoilt");
}

fn repaired(pair: &Pair, text: &str) {
    pair.wait("the file is repaired", |pair| pair.read(FILE).as_deref() == Some(&format!("{text}\n")));
}

fn wait_for_repairs_told(pair: &Pair, at_least: usize) {
    pair.wait("the control plane hears of the repairs", |pair| {
        pair.told("drift_repaired", Some(&format!("file:{FILE}"))) >= at_least
    });
}

// rule: H-08
// rule: N-08
// case: O-57
#[test]
fn a_cable_pulled_for_short_or_for_long_costs_neither_a_declaration_nor_a_report() {
    let pair = Pair::raised("link_cut", direct, SHORT_LEASE);
    declare(&pair, "one");
    applied(&pair, "one", 1);
    let fencing = pair.node()["fencing_token"].clone();

    pair.b.cut();
    declare(&pair, "two");
    assert_eq!(pair.node()["revision"]["applied"], 1);
    pair.b.join();
    applied(&pair, "two", 2);
    assert_eq!(pair.told("lost", None), 0);

    pair.b.cut();
    pair.wait("the host notices", |pair| pair.no_link_because() != "");
    spoil(&pair);
    repaired(&pair, "two");
    assert_eq!(pair.status()["machine_state"], "disconnected");
    pair.wait_for_state("lost");
    assert!(pair.session().is_null());
    // Lost is unobserved, not dead: the node goes on, and what is declared waits for it.
    declare(&pair, "three");
    spoil(&pair);
    repaired(&pair, "two");
    pair.b.join();
    pair.wait_for_state("ready");
    applied(&pair, "three", 3);
    wait_for_repairs_told(&pair, 2);
    pair.wait_for_link();
    assert_eq!(pair.told("lost", None), 1);
    assert_eq!(pair.node()["fencing_token"], fencing);
    assert_eq!(pair.status()["spooled"], 0);
}

// rule: N-08
// case: O-56
#[test]
fn a_control_plane_that_is_restarted_or_killed_has_its_node_back_and_never_calls_it_lost() {
    let pair = Pair::raised("link_restart", direct, LONG_LEASE);
    declare(&pair, "one");
    applied(&pair, "one", 1);
    let session = pair.session();

    pair.a.must(&["systemctl", "restart", "tenure-control"]);
    pair.wait("another session", |pair| !pair.session().is_null() && pair.session() != session);
    pair.wait_for_link();
    let session = pair.session();

    let killed = pair.a.must(&["systemctl", "show", "--value", "--property=MainPID", "tenure-control"]);
    pair.a.must(&["kill", "-KILL", &killed]);
    spoil(&pair);
    repaired(&pair, "one");
    pair.wait("it answers again", |pair| pair.tenure(&["nodes"]).success());
    assert_eq!(pair.node()["state"], "ready");
    pair.wait("another session", |pair| !pair.session().is_null() && pair.session() != session);
    pair.wait_for_link();
    declare(&pair, "two");
    applied(&pair, "two", 2);
    wait_for_repairs_told(&pair, 1);
    assert_eq!(pair.told("lost", None), 0);
    assert_eq!(pair.node()["fencing_token"], 1);
}

/// Gives the node's machine these lines beyond its own in /etc/hosts.
fn hosts(pair: &Pair, lines: &str) {
    pair.b.write("/etc/hosts", format!("127.0.0.1 localhost\n127.0.1.1 b\n{lines}"));
}

/// The name that the node dials leads there.
fn name_leads_to(pair: &Pair, address: Ipv4Addr) {
    hosts(pair, &format!("{address} control.lab\n"));
}

/// The name is in /etc/hosts before the node is told of it.
fn by_name(pair: &Pair) -> String {
    name_leads_to(pair, pair.a.address());
    format!("control.lab:{PORT}")
}

/// Moves the control plane's machine to another address of its network.
fn move_a(pair: &Pair) -> Ipv4Addr {
    let [one, two, three, _] = pair.a.address().octets();
    let moved = Ipv4Addr::new(one, two, three, 201);
    let old = format!("{}/24", pair.a.address());
    pair.a.must(&["sysctl", "-qw", "net.ipv4.conf.all.promote_secondaries=1"]);
    pair.a.must(&["ip", "address", "add", &format!("{moved}/24"), "dev", "host0"]);
    pair.a.must(&["ip", "address", "del", &old, "dev", "host0"]);
    moved
}

// rule: H-07
// case: O-60
#[test]
fn a_name_that_moves_is_followed_and_one_that_does_not_resolve_holds_up_no_start() {
    let pair = Pair::raised("link_name", by_name, LONG_LEASE);
    declare(&pair, "one");
    applied(&pair, "one", 1);

    let moved = move_a(&pair);
    name_leads_to(&pair, moved);
    pair.wait("the host dials the new address", |pair| {
        let status = pair.status();
        status["link"]["up"]["address"].as_str().is_some_and(|address| address.contains(&moved.to_string()))
    });
    pair.wait_for_link();
    declare(&pair, "two");
    applied(&pair, "two", 2);

    // A resolver that never answers, and no name: what a machine has that boots before its network.
    hosts(&pair, "");
    pair.b.write("/etc/resolv.conf", "nameserver 192.0.2.1\n");
    spoil(&pair);
    pair.b.reboot();
    let booted = Instant::now();
    repaired(&pair, "two");
    assert!(booted.elapsed() < Duration::from_secs(20), "a start waited for a name: {:?}", booted.elapsed());
    pair.wait("the remembered address is used, and said to be", |pair| {
        let status = pair.status();
        let note = status["link"]["up"]["note"].as_str().unwrap_or_default();
        note.contains("remembered address") && note.contains("DNS failing since")
    });
    pair.wait_for_link();
    wait_for_repairs_told(&pair, 1);
}

// rule: X-10
// case: O-60
#[test]
fn a_name_that_leads_to_another_control_plane_is_called_a_wrong_certificate_and_costs_nothing() {
    let pair = Pair::raised("link_stranger", by_name, LONG_LEASE);
    declare(&pair, "one");
    applied(&pair, "one", 1);
    let (manifest, fencing) = (pair.read("/etc/tenure/node.json"), pair.node()["fencing_token"].clone());

    // The stranger is on the node's own machine; nothing else is there to dial.
    pair.b.must(&["mkdir", "-p", "/srv/stranger"]);
    let stranger =
        ["/root/tenure/tenure-control", "run", "--root", "/srv/stranger", "--listen", "127.0.0.2:7443"];
    pair.b.start("stranger", &stranger);
    pair.b.wait_until("has a stranger", SOON, |b| b.sh("ss -Htln").stdout.contains("127.0.0.2:7443"));
    name_leads_to(&pair, Ipv4Addr::new(127, 0, 0, 2));
    pair.a.must(&["systemctl", "restart", "tenure-control"]);
    pair.wait("it is called by its name", |pair| pair.no_link_because() == "wrong_certificate");
    spoil(&pair);
    repaired(&pair, "one");
    assert_eq!(pair.status()["machine_state"], "disconnected");
    assert_eq!(pair.read("/etc/tenure/node.json"), manifest);

    name_leads_to(&pair, pair.a.address());
    pair.wait_for_link();
    declare(&pair, "two");
    applied(&pair, "two", 2);
    wait_for_repairs_told(&pair, 1);
    assert_eq!(pair.node()["fencing_token"], fencing);
}

/// A node whose control plane is dialled through a proxy.
fn raised_behind_a_proxy(name: &str, settings: &str) -> (Pair, Proxy) {
    let mut proxy = None;
    let advertise = |pair: &Pair| {
        let address = proxy.insert(Proxy::start(&pair.lab, pair.direct())).address();
        address.to_string()
    };
    let pair = Pair::raised(name, advertise, settings);
    (pair, proxy.expect("the pair asked for it"))
}

// case: O-54
// case: O-55
#[test]
fn with_default_settings_a_link_is_never_idle_for_long_and_a_dead_one_is_noticed_within_thirty_seconds() {
    let (pair, proxy) = raised_behind_a_proxy("link_default", "");
    let session = pair.session();
    let accepted = proxy.accepted();
    // Four times as strict as the usual proxy's minute: no stretch of fifteen seconds is without a byte.
    proxy.cut_idle_after(Some(Duration::from_secs(15)));
    let heard = |pair: &Pair| pair.node()["last_contact"].as_i64().unwrap_or_default();
    let first = heard(&pair);
    pair.wait("beats are heard for longer than that", |pair| heard(pair) - first > 24_000);
    assert_eq!((pair.session(), proxy.accepted()), (session, accepted));
    proxy.cut_idle_after(None);

    let died = Instant::now();
    pair.b.silence();
    let (mut host, mut control) = (None, None);
    wait::until_true("both ends notice", SOON, || {
        if host.is_none() && pair.no_link_because() != "" {
            host = Some(died.elapsed());
        }
        if control.is_none() && pair.session().is_null() {
            control = Some(died.elapsed());
        }
        host.is_some() && control.is_some()
    });
    let limit = Duration::from_secs(30);
    assert!(host.unwrap() <= limit && control.unwrap() <= limit, "host {host:?}, control plane {control:?}");
    assert_eq!(pair.node()["state"], "ready", "a lost link is no lost lease");
    pair.b.join();
    pair.wait_for_both_ends();
    // What was said into the silence is still on its way to the end of the old one.
    pair.wait("one connection is left", |_| proxy.open() == 1);
    assert_eq!(pair.told("lost", None), 0);
}

/// Both ends notice while one way is held back, and are joined again once it is let go.
fn half_open(pair: &Pair, proxy: &Proxy, direction: Direction) {
    let session = pair.session();
    let held = Instant::now();
    proxy.hold(direction);
    pair.wait(&format!("the host notices that nothing goes {direction:?}"), |pair| {
        pair.no_link_because() != ""
    });
    pair.wait("the control plane notices", |pair| pair.session() != session);
    assert!(held.elapsed() < Duration::from_secs(15), "noticed after {:?}", held.elapsed());
    proxy.release(direction);
    pair.wait("the link is back", |pair| {
        pair.status()["link"]["up"].is_object() && !pair.session().is_null() && pair.session() != session
    });
    pair.wait("one connection is left", |_| proxy.open() == 1);
}

// case: O-54
#[test]
fn a_link_that_is_dead_in_one_direction_is_noticed_at_both_ends_and_what_was_said_into_it_is_said_again() {
    let (pair, proxy) = raised_behind_a_proxy("link_half_open", LONG_LEASE);
    declare(&pair, "one");
    applied(&pair, "one", 1);
    for (direction, text, revision) in [(Direction::Up, "two", 2), (Direction::Down, "three", 3)] {
        // Said in the moment in which nothing arrives any more.
        proxy.hold(direction);
        declare(&pair, text);
        spoil(&pair);
        half_open(&pair, &proxy, direction);
        applied(&pair, text, revision);
    }
    wait_for_repairs_told(&pair, 1);
    assert_eq!((pair.told("lost", None), pair.node()["fencing_token"].clone()), (0, 1.into()));
}

/// Connections that a host may try in so short a time without being a storm: the wait doubles with each.
const FEW: usize = 20;

// case: O-55
// case: O-61
#[test]
fn through_a_slow_proxy_that_cuts_every_connection_nothing_is_lost_and_nobody_storms() {
    let (pair, proxy) = raised_behind_a_proxy("link_proxy", LONG_LEASE);
    proxy.delay(Duration::from_millis(300));
    let mut waits = Vec::new();
    for (number, text) in ["one", "two", "three"].into_iter().enumerate() {
        declare(&pair, text);
        spoil(&pair);
        let (session, accepted) = (pair.session(), proxy.accepted());
        proxy.cut_all();
        let cut = Instant::now();
        wait::until_true("it is dialled again", SOON, || proxy.accepted() > accepted);
        waits.push(cut.elapsed());
        pair.wait("a session that is another one", |pair| {
            !pair.session().is_null() && pair.session() != session
        });
        applied(&pair, text, u64::try_from(number).unwrap() + 1);
    }
    wait_for_repairs_told(&pair, 2);
    pair.wait("everything is told", |pair| pair.status()["spooled"] == 0);
    // Within its doubling window, and not by a table that all machines share.
    for (number, waited) in waits.iter().enumerate() {
        assert!(*waited < Duration::from_secs(3 + (2 << number)), "{waits:?}");
    }
    assert!(waits.windows(2).any(|two| two[0].abs_diff(two[1]) > Duration::from_millis(20)), "{waits:?}");

    let (accepted, stopped) = (proxy.accepted(), Instant::now());
    pair.a.must(&["systemctl", "stop", "tenure-control"]);
    wait::until_true("it is gone for a while", SOON, || stopped.elapsed() > Duration::from_secs(12));
    pair.a.must(&["systemctl", "start", "tenure-control"]);
    pair.wait_for_both_ends();
    let tried = proxy.accepted() - accepted;
    assert!((1..=FEW).contains(&tried), "{tried} connections in {:?}", stopped.elapsed());
    pair.wait("one connection is left", |_| proxy.open() == 1);
    assert_eq!(pair.told("lost", None), 0);
}

// case: O-55
#[test]
fn a_proxy_that_buffers_is_called_by_its_name_and_one_that_cuts_what_is_old_costs_no_growing_wait() {
    let (pair, proxy) = raised_behind_a_proxy("link_buffer", LONG_LEASE);
    declare(&pair, "one");
    applied(&pair, "one", 1);

    proxy.buffer(Some(64 * 1024));
    proxy.cut_all();
    pair.wait("the host says what it is", |pair| pair.no_link_because() == "buffering");
    let status = pair.b.must(&["tenure-host", "status"]);
    assert!(
        status.contains("the link opens but nothing arrives: something in between is buffering"),
        "{status}"
    );
    // By a field of its own, and whole in the words.
    let journal = ["journalctl", "--quiet", "--output=cat", "--unit=tenure-host", "REASON=buffering"];
    let said = pair.b.must(&journal);
    assert!(said.contains("link down reason=buffering why=\"the link opens but nothing arrives"), "{said}");
    spoil(&pair);
    repaired(&pair, "one");
    proxy.buffer(None);
    pair.wait_for_both_ends();
    declare(&pair, "two");
    applied(&pair, "two", 2);

    // A session that held for three beats was a success, so that each wait is a first one.
    proxy.cut_older_than(Some(Duration::from_secs(8)));
    for _ in 0..4 {
        let session = pair.session();
        pair.wait("it is cut", |pair| pair.session() != session);
        let (cut, accepted) = (Instant::now(), proxy.accepted());
        pair.wait("it is dialled again", |pair| proxy.accepted() > accepted || !pair.session().is_null());
        assert!(cut.elapsed() < Duration::from_secs(5), "the wait grew to {:?}", cut.elapsed());
        pair.wait_for_both_ends();
    }
    proxy.cut_older_than(None);
    pair.wait_for_both_ends();
    declare(&pair, "three");
    applied(&pair, "three", 3);
    wait_for_repairs_told(&pair, 1);
    assert_eq!(pair.told("lost", None), 0);
}
