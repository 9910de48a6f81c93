//! What a machine's own tools say: packages, units, rules, listeners.

use std::collections::BTreeMap;

use super::Facts;
use crate::lab::machine::Machine;

/// Asks the machine and adds `package …`, `unit …`, `rules …` and `listener …`.
pub(super) fn read(machine: &Machine, facts: &mut Facts) {
    packages(
        &machine.must(&["dpkg-query", "--show", "--showformat=${binary:Package} ${Version} ${Status}\\n"]),
        facts,
    );
    let units = [
        "systemctl",
        "show",
        "--property=Id,ActiveState,SubState,UnitFileState,InvocationID",
        "*.service",
        "*.socket",
        "*.timer",
        "*.path",
    ];
    unit_states(&machine.must(&units), facts);
    for (name, command) in RULES {
        let text = without_counters(&machine.must(command));
        facts.insert(format!("rules {name}"), BTreeMap::from([("rules", format!("{text}\n"))]));
    }
    for line in machine.must(&["ss", "--no-header", "--tcp", "--udp", "--listening", "--numeric"]).lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [protocol, _, _, _, address, ..] = words.as_slice() {
            facts.insert(format!("listener {protocol} {address}"), BTreeMap::new());
        }
    }
}

fn packages(text: &str, facts: &mut Facts) {
    for line in text.lines() {
        let mut words = line.splitn(3, ' ');
        if let (Some(name), Some(version), Some(status)) = (words.next(), words.next(), words.next()) {
            let known = BTreeMap::from([("version", version.to_owned()), ("status", status.to_owned())]);
            facts.insert(format!("package {name}"), known);
        }
    }
}

/// A unit that runs, or failed, is known by this very run of it: its invocation changes when it is started again. Units
/// that do neither come and go in the service manager's memory and are known by their files, links included.
fn unit_states(text: &str, facts: &mut Facts) {
    for block in text.split("\n\n") {
        let properties: BTreeMap<&str, &str> =
            block.lines().filter_map(|line| line.split_once('=')).collect();
        let property = |name| properties.get(name).copied().unwrap_or_default();
        if matches!(property("ActiveState"), "inactive" | "") {
            continue;
        }
        let unit = facts.entry(format!("unit {}", property("Id"))).or_default();
        unit.insert("state", format!("{}/{}", property("ActiveState"), property("SubState")));
        unit.insert("at boot", property("UnitFileState").to_owned());
        unit.insert("invocation", property("InvocationID").to_owned());
    }
}

/// Rules without what packets do to them: nft's `packets N bytes M`, the `[N:M]` of iptables, its comments with the time.
pub(super) fn without_counters(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut words: Vec<&str> = line.split(' ').collect();
        while let Some(at) = words.windows(4).position(|four| four[0] == "packets" && four[2] == "bytes") {
            words.drain(at..at + 4);
        }
        words.retain(|word| !is_iptables_counter(word));
        words.join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn is_iptables_counter(word: &str) -> bool {
    let Some(inner) = word.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else { return false };
    inner
        .split_once(':')
        .is_some_and(|(packets, bytes)| packets.parse::<u64>().is_ok() && bytes.parse::<u64>().is_ok())
}

/// Both rule sets: a legacy drop is invisible to nft.
const RULES: &[(&str, &[&str])] = &[
    ("nft", &["nft", "list", "ruleset"]),
    ("iptables-legacy", &["iptables-legacy-save"]),
    ("ip6tables-legacy", &["ip6tables-legacy-save"]),
];
