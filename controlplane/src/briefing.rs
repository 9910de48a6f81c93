//! The lines an enrolment ends with, judged from what the machine told of itself (H-13). Pure. Enrolment always
//! completes: a failed line makes the node not assignable and undoes nothing.

use tenure_protocol::enrolment::{Briefing, BriefingLine, Join};
use tenure_protocol::machine::{Mode, NodeState};
use tenure_protocol::resource::ResourceKind;
use tenure_protocol::text::shown;

use crate::store::NodeRecord;

/// The briefing of a machine that joins in this mode, over this version of the protocol.
pub fn briefing(join: &Join, mode: Mode, protocol: u16) -> Briefing {
    Briefing::new(vec![protocol_line(protocol), system(join), kinds(join), looked(join), found(join, mode)])
}

/// The first line that stands in the way of assigning this node anything; none: nothing does. One that has not enrolled
/// yet has no lines, and what is declared for it waits.
pub fn not_assignable(record: &NodeRecord) -> Option<&BriefingLine> {
    match record.state {
        NodeState::Ready | NodeState::Lost => record.briefing.lines().iter().find(|line| line.failed),
        NodeState::Enrolling | NodeState::Retired => None,
    }
}

fn line(subject: &str, failed: bool, text: String) -> BriefingLine {
    BriefingLine { subject: subject.to_owned(), failed, text }
}

fn protocol_line(protocol: u16) -> BriefingLine {
    line("protocol", false, format!("version {protocol} is spoken"))
}

fn system(join: &Join) -> BriefingLine {
    let profile = &join.profile;
    let sandbox = if profile.sandbox { ", in a sandbox of its own" } else { "" };
    let text = format!("{} on {}{sandbox}", shown(&profile.os, 60), shown(&profile.architecture, 20));
    line("system", false, text)
}

fn kinds(join: &Join) -> BriefingLine {
    let performed = |kind: &ResourceKind| join.inventory.kinds.iter().any(|known| known == kind.as_str());
    // A sandbox is a directory tree: packages and units belong to a machine, and are refused there one by one.
    let needed: &[ResourceKind] = if join.profile.sandbox {
        &[ResourceKind::Directory, ResourceKind::File]
    } else {
        &ResourceKind::ALL
    };
    let lacking: Vec<&str> =
        needed.iter().filter(|kind| !performed(kind)).map(|kind| kind.as_str()).collect();
    match lacking.is_empty() {
        true => line("kinds", false, format!("it performs {}", some(&join.inventory.kinds))),
        false => line("kinds", true, format!("this host does not perform {}", lacking.join(", "))),
    }
}

/// Could not look is said, and is not "nothing there" (I-05).
fn looked(join: &Join) -> BriefingLine {
    let could_not = &join.inventory.could_not_look;
    match could_not.is_empty() {
        true => line("inventory", false, "everything could be looked at".to_owned()),
        false => line("inventory", false, format!("could not look at {}", some(could_not))),
    }
}

/// Somebody else's listeners, where everything declared would be ours.
fn found(join: &Join, mode: Mode) -> BriefingLine {
    let others: Vec<String> =
        join.inventory.listeners.iter().filter(|listener| is_in_use(listener)).cloned().collect();
    match (mode, others.is_empty() || join.profile.sandbox) {
        (_, true) => line("in use", false, format!("joins {mode}; nothing of others stands in the way")),
        (Mode::Adopted, false) => {
            line("in use", false, format!("joins adopted; found and kept: {}", some(&others)))
        }
        (Mode::Converged, false) => line(
            "in use",
            true,
            format!("joins converged, and is in use: {}; invite it adopted instead", some(&others)),
        ),
    }
}

/// What every machine has is not a sign of use: the sshd that one comes by, loopback, address, resolver, time (I-08).
fn is_in_use(listener: &str) -> bool {
    let mut words = listener.split_whitespace().skip(1);
    let address = words.next().unwrap_or_default();
    let program = words.next().unwrap_or_default();
    let loopback = ["127.", "[::1]", "::1:", "localhost:"].iter().any(|prefix| address.starts_with(prefix));
    let ordinary = [
        "sshd",
        "dhclient",
        "dhcpcd",
        "systemd-network",
        "systemd-resolve",
        "systemd-timesyn",
        "chronyd",
        "ntpd",
        "tenure-control",
        "tenure",
    ];
    // A host that could not name the program says the address alone; the door one came in by is port 22 then.
    let door = program.is_empty() && address.ends_with(":22");
    !loopback && !door && !ordinary.contains(&program)
}

fn some(names: &[String]) -> String {
    let mut text = names.iter().take(8).map(|name| shown(name, 80)).collect::<Vec<_>>().join(", ");
    if names.len() > 8 {
        text.push_str(&format!(" and {} more", names.len() - 8));
    }
    text
}

#[cfg(test)]
mod tests {
    use tenure_protocol::profile::{Inventory, Profile};

    use super::*;

    fn join(listeners: &[&str], kinds: &[&str]) -> Join {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Join {
            profile: Profile { os: "debian 12".to_owned(), ..Profile::default() },
            inventory: Inventory { listeners: texts(listeners), kinds: texts(kinds), could_not_look: vec![] },
        }
    }

    const KINDS: &[&str] = &["package", "directory", "file", "unit"];

    #[test]
    fn every_line_says_what_was_judged_and_shows_nothing_as_the_machine_wrote_it() {
        let mut join = join(&["tcp 0.0.0.0:80 ngi\u{1b}[2Jnx"], &["fi\u{202e}le"]);
        join.profile.os = "deb\u{1b}ian\u{2066}".to_owned();
        join.inventory.could_not_look = vec!["ss\n".to_owned()];
        for mode in [Mode::Adopted, Mode::Converged] {
            let briefing = briefing(&join, mode, 1);
            let subjects: Vec<&str> = briefing.lines().iter().map(|line| line.subject.as_str()).collect();
            assert_eq!(subjects, ["protocol", "system", "kinds", "inventory", "in use"]);
            let odd = |char: char| char.is_control() || matches!(char, '\u{202e}' | '\u{2066}');
            assert!(!briefing.lines().iter().any(|line| line.text.contains(odd)), "{briefing:?}");
        }
    }

    // rule: H-13
    #[test]
    fn a_host_that_lacks_a_kind_enrols_and_is_not_assignable() {
        assert!(briefing(&join(&[], KINDS), Mode::Converged, 1).is_assignable());
        let mut sandbox = join(&[], &["directory", "file"]);
        assert!(!briefing(&sandbox, Mode::Converged, 1).is_assignable());
        sandbox.profile.sandbox = true;
        assert!(
            briefing(&sandbox, Mode::Converged, 1).is_assignable(),
            "a sandbox has no packages and units"
        );
        let lacking = briefing(&join(&[], &["file"]), Mode::Converged, 1);
        assert!(!lacking.is_assignable());
        assert!(lacking.lines().iter().any(|line| line.failed && line.text.contains("directory")));
    }

    // rule: H-13
    #[test]
    fn a_converged_machine_in_use_has_a_failed_line_that_names_what_uses_it_and_an_adopted_one_has_not() {
        let join =
            join(&["tcp 0.0.0.0:5432 postgres", "tcp 0.0.0.0:22 sshd", "tcp 127.0.0.1:80 nginx"], KINDS);
        let door = self::join(&["tcp 0.0.0.0:22", "tcp [::]:22"], KINDS);
        assert!(
            briefing(&door, Mode::Converged, 1).is_assignable(),
            "the door one came in by is no sign of use"
        );
        let converged = briefing(&join, Mode::Converged, 1);
        let failed: Vec<&BriefingLine> = converged.lines().iter().filter(|line| line.failed).collect();
        assert!(
            matches!(&failed[..], [line] if line.text.contains("postgres") && !line.text.contains("sshd"))
        );
        assert!(briefing(&join, Mode::Adopted, 1).is_assignable());
    }
}
