use super::*;
use crate::catalogue::golden;
use crate::catalogue::tests::{folder, node, rendered, text_of};

const SITE: &str = "file:/etc/site/site.conf";

fn port(fleet: &str) -> String {
    text_of(&rendered(&[("fleet.toml", fleet)]).unwrap(), SITE)
}

#[test]
fn a_nodes_own_value_wins_over_its_groups_and_theirs_over_the_default() {
    let groups = "[group.a]\nmodules = [\"base\", \"web\"]\n[group.b]\nsettings.web.port = 2\n";
    let of = |rest: &str| port(&format!("{groups}[node.\"edge-1\"]\n{rest}"));
    assert_eq!(of("groups = [\"a\"]\n"), "# edge-1\nlisten 8080\n");
    assert_eq!(of("groups = [\"a\", \"b\"]\n"), "# edge-1\nlisten 2\n");
    assert_eq!(of("groups = [\"a\", \"b\"]\nsettings.web.port = 3\n"), "# edge-1\nlisten 3\n");
}

#[test]
fn two_groups_that_agree_are_taken_and_a_nodes_own_value_settles_a_disagreement() {
    let agree = "[group.a]\nmodules = [\"base\", \"web\"]\nsettings.web.port = 2\n[group.b]\nsettings.web.port = 2\n\
                 [node.\"edge-1\"]\ngroups = [\"a\", \"b\"]\n";
    assert_eq!(port(agree), "# edge-1\nlisten 2\n");
    let settled = agree.replacen("port = 2", "port = 1", 1) + "settings.web.port = 7\n";
    assert_eq!(port(&settled), "# edge-1\nlisten 7\n");
}

#[test]
fn modules_come_from_groups_first_and_each_once() {
    let text = "[group.a]\nmodules = [\"base\"]\n[node.\"edge-1\"]\ngroups = [\"a\"]\nmodules = [\"web\", \"base\"]\n";
    let folder = folder(&[("fleet.toml", text)]);
    let fleet = read(&folder).unwrap();
    let modules = fleet.modules_of(&node("edge-1")).unwrap();
    assert_eq!(modules.iter().map(|m| m.name.as_str()).collect::<Vec<_>>(), ["base", "web"]);
    assert_eq!(modules[1].version.as_deref(), Some("3"));
    assert!(fleet.modules_of(&node("edge-2")).is_none());
}

#[test]
fn a_module_nobody_names_is_not_read() {
    assert!(read(&folder(&[("modules/draft/module.toml", "not = [toml")])).is_ok());
}

// case: O-68
#[test]
fn nodes_the_control_plane_does_not_know_are_listed_all_with_what_was_likely_meant() {
    let text = "[node.edge-1]\nmodules = []\n[node.egde-2]\nmodules = []\n[node.zzz]\nmodules = []\n";
    let folder = folder(&[("fleet.toml", text)]);
    let fleet = read(&folder).unwrap();
    let known = BTreeSet::from([node("edge-1"), node("edge-2")]);
    golden::check("unknown_node_of_fleet", &fleet.check_nodes(&known).unwrap_err());
    let all = BTreeSet::from([node("edge-1"), node("egde-2"), node("zzz")]);
    assert!(fleet.check_nodes(&all).is_ok());
}

#[test]
fn a_place_is_told_in_characters_and_a_hostile_line_is_escaped() {
    let text = "[node.edge-1]\nmodules = [\"é\u{202e}\"]\n";
    let refusal = read(&folder(&[("fleet.toml", text)])).unwrap_err();
    assert!(refusal.happened.starts_with("fleet.toml:2:12: "), "{}", refusal.happened);
    assert!(refusal.happened.contains("\\u{202e}"), "{}", refusal.happened);
}
