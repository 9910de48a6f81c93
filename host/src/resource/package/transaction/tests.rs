use super::super::version::is_older;
use super::*;

const SIMULATION: &str = "\
NOTE: This is only a simulation!
Reading package lists...
The following NEW packages will be installed:
  nginx-light libnginx
Remv apache2 [2.4.57-2]
Inst libnginx (1.2 Debian:12.5/stable [amd64])
Inst libssl3 [3.0.11-1] (3.0.13-1 Debian-Security:12/stable-security [amd64])
Inst nginx-light (1.22.1-9 Debian:12.5/stable [amd64]) []
Conf libnginx (1.2 Debian:12.5/stable [amd64])
Purg left-over [1.0]
";

fn wanted(install: &[(&str, Option<&str>)], remove: &[&str]) -> Wanted {
    Wanted {
        install: install.iter().map(|(name, version)| ((*name).into(), version.map(str::to_owned))).collect(),
        remove: remove.iter().map(|name| (*name).into()).collect(),
        may_go: BTreeSet::new(),
        anew: false,
    }
}

fn judged(wanted: &Wanted, simulated: &Simulated) -> Result<(), TransactionRefusal> {
    let rules = Rules {
        held: &|name| name == "libssl3",
        contradicts: &|name, new| name == "pinned" && new != "1",
        is_older: &is_older,
        may_raise: true,
        host: "tenure-host",
        host_is_exact: false,
    };
    judge(wanted, simulated, &rules)
}

fn simulated(text: &str) -> Simulated {
    read_simulation(text)
}

#[test]
fn a_simulation_is_read_as_what_would_come_and_go() {
    let read = simulated(SIMULATION);
    assert_eq!(read.install["nginx-light"], (None, "1.22.1-9".into()));
    assert_eq!(read.install["libssl3"], (Some("3.0.11-1".into()), "3.0.13-1".into()));
    assert_eq!(read.remove.iter().collect::<Vec<_>>(), ["apache2", "left-over"]);
    assert_eq!(read.install.len(), 3);
}

// rule: H-25
#[test]
fn a_transaction_that_removes_what_nobody_declared_is_refused_naming_each() {
    let refused = judged(&wanted(&[("nginx-light", None)], &[]), &simulated(SIMULATION));
    assert_eq!(refused, Err(TransactionRefusal::Removes("apache2, left-over".into())));
}

// rule: H-25
#[test]
fn a_transaction_that_downgrades_or_unholds_what_nobody_declared_is_refused() {
    let down = simulated("Inst a (1 x)\nInst b [2] (1 x)\n");
    assert_eq!(judged(&wanted(&[("a", None)], &[]), &down), Err(TransactionRefusal::Downgrades("b".into())));
    assert_eq!(
        judged(&wanted(&[("a", None), ("b", Some("1"))], &[]), &down),
        Ok(()),
        "a declared downgrade is meant"
    );
    let held = simulated("Inst a (1 x)\nInst libssl3 [1] (2 x)\n");
    assert_eq!(
        judged(&wanted(&[("a", None)], &[]), &held),
        Err(TransactionRefusal::OnHold("libssl3".into()))
    );
}

// rule: H-02
#[test]
fn a_transaction_that_would_remove_the_host_is_refused_even_where_it_was_asked_for() {
    let refused = judged(&wanted(&[], &["tenure-host"]), &simulated("Remv tenure-host [1]\n"));
    assert_eq!(refused, Err(TransactionRefusal::Host("tenure-host".into())));
}

// rule: S-14
#[test]
fn a_simulation_that_does_less_or_other_than_was_asked_is_refused() {
    let missing = judged(&wanted(&[("a", None)], &["b"]), &simulated(""));
    assert_eq!(missing, Err(TransactionRefusal::Leaves("remove b, install a".into())));
    let other = judged(&wanted(&[("a", Some("1"))], &[]), &simulated("Inst a (2 x)\n"));
    assert_eq!(other, Err(TransactionRefusal::Leaves("install a at 1 but at 2".into())));
    assert_eq!(
        judged(&wanted(&[("a", Some("2"))], &[]), &simulated("Inst a (2 x)\nInst new-dependency (5 x)\n")),
        Ok(())
    );
}

// rule: H-02
#[test]
fn the_host_is_raised_and_only_lowered_to_a_version_that_is_named_exactly() {
    let raise = simulated("Inst tenure-host [1.0] (1.1 x)\n");
    assert_eq!(judged(&wanted(&[("tenure-host", None)], &[]), &raise), Ok(()));
    let lower = simulated("Inst tenure-host [1.1] (1.0 x)\n");
    let asked = wanted(&[("tenure-host", Some("1.0"))], &[]);
    assert_eq!(judged(&asked, &lower), Err(TransactionRefusal::OlderHost("1.0".into())));
    let rules = Rules {
        held: &|_| false,
        contradicts: &|_, _| false,
        is_older: &is_older,
        may_raise: true,
        host: "tenure-host",
        host_is_exact: true,
    };
    assert_eq!(judge(&asked, &lower, &rules), Ok(()));
}

// rule: H-25
#[test]
fn what_is_declared_elsewhere_is_not_brought_to_another_version_on_the_way() {
    let on_the_way = simulated("Inst a (1 x)\nInst pinned [1] (2 x)\n");
    assert_eq!(
        judged(&wanted(&[("a", None)], &[]), &on_the_way),
        Err(TransactionRefusal::Undeclared("pinned".into()))
    );
}

#[test]
fn what_we_brought_and_is_no_longer_declared_may_make_room() {
    let instead = simulated("Inst nginx-full (1 x)\nRemv nginx-light [1]\n");
    let mut asked = wanted(&[("nginx-full", None)], &[]);
    assert_eq!(judged(&asked, &instead), Err(TransactionRefusal::Removes("nginx-light".into())));
    asked.may_go.insert("nginx-light".into());
    assert_eq!(judged(&asked, &instead), Ok(()));
}

// rule: H-25
#[test]
fn what_is_of_another_architecture_goes_and_comes_under_its_own_name() {
    let both = simulated(include_str!("../apt/said/two_architectures.txt"));
    let versions = |name: &str| both.install[name].clone();
    assert_eq!(versions("libshared1"), (Some("1.1".into()), "1.2".into()));
    assert_eq!(versions("libshared1:i386"), (Some("1.1".into()), "1.2".into()));
    assert_eq!(
        judged(&wanted(&[("libshared1", Some("1.2"))], &[]), &both),
        Ok(()),
        "they are of one version"
    );
    let goes = simulated(include_str!("../apt/said/other_architecture_goes.txt"));
    let refused = judged(&wanted(&[("libodd", Some("2.0"))], &[]), &goes);
    assert_eq!(refused, Err(TransactionRefusal::Removes("libodd:i386".into())));
    let elsewhere = simulated(include_str!("../apt/said/only_elsewhere.txt"));
    assert_eq!(judged(&wanted(&[("only32", Some("1.0")), ("libshared1", None)], &[]), &elsewhere), Ok(()));
    assert_eq!(elsewhere.touched()["only32:i386"], Some("1.0".into()));
}

// rule: H-25
#[test]
fn what_is_declared_is_lowered_in_every_architecture_and_nothing_else_is() {
    let down = simulated("Inst a [2] (1 x)\nInst a:i386 [2] (1 x)\nInst b:i386 [2] (1 x)\n");
    let refused = judged(&wanted(&[("a", Some("1"))], &[]), &down);
    assert_eq!(refused, Err(TransactionRefusal::Downgrades("b:i386".into())));
}
