use super::*;
use crate::catalogue::render::Rendering;
use crate::catalogue::tests::{declared, find, rendered, web};

fn file(path: &str, needs: &[&str]) -> String {
    format!("[[file]]\npath = \"{path}\"\ncontent = \"\"\nneeds = {needs:?}\n")
}

#[test]
fn a_module_need_orders_what_begins_after_what_ends() {
    let base = format!("[module]\nname = \"base\"\n{}{}", file("/b/1", &[]), file("/b/2", &["file:/b/1"]));
    let web = format!(
        "[module]\nname = \"web\"\nneeds = [\"base\"]\n[settings]\nport = 1\n{}{}",
        file("/w/1", &[]),
        file("/w/2", &["file:/w/1"])
    );
    let rendering =
        rendered(&[("modules/base/module.toml", &base), ("modules/web/module.toml", &web)]).unwrap();
    assert_eq!(find(&rendering, "file:/w/1").needs, ["file:/b/2".parse().unwrap()]);
    assert_eq!(find(&rendering, "file:/w/2").needs, ["file:/w/1".parse().unwrap()]);
}

#[test]
fn a_module_without_resources_passes_on_what_it_needs() {
    let fleet = "[node.edge-1]\nmodules = [\"base\", \"middle\", \"web\"]\n";
    let middle = "[module]\nname = \"middle\"\nneeds = [\"base\"]\n";
    let web = format!("[module]\nname = \"web\"\nneeds = [\"middle\"]\n{}", file("/w", &[]));
    let files =
        [("fleet.toml", fleet), ("modules/middle/module.toml", middle), ("modules/web/module.toml", &web)];
    let rendering = rendered(&files).unwrap();
    assert_eq!(find(&rendering, "file:/w").needs, ["directory:/etc/site".parse().unwrap()]);
}

#[test]
fn a_directory_stands_before_what_lies_in_it_however_it_was_written() {
    let rendering = web(
        "[[directory]]\npath = \"/s/a/b\"\n[[directory]]\npath = \"/s\"\n[[directory]]\npath = \"/s/a\"\n",
    )
    .unwrap();
    let paths: Vec<&str> = rendering.resources.iter().map(|r| r.key.name()).collect();
    assert_eq!(paths, ["/etc/site", "/s", "/s/a", "/s/a/b"]);
}

#[test]
fn what_should_be_gone_may_lie_below_what_should_be_gone_and_nothing_else_may() {
    let gone = "[[directory]]\npath = \"/s\"\nabsent = true\n[[file]]\npath = \"/s/x/f\"\n";
    assert!(web(&format!("{gone}absent = true\n")).is_ok());
    assert_eq!(web(&format!("{gone}content = \"\"\n")).unwrap_err().code, "declared_below");
}

#[test]
fn a_circle_through_a_module_need_is_refused() {
    let base = format!("[module]\nname = \"base\"\n{}", file("/b", &["file:/w"]));
    let web =
        format!("[module]\nname = \"web\"\nneeds = [\"base\"]\n[settings]\nport = 1\n{}", file("/w", &[]));
    let refusal =
        rendered(&[("modules/base/module.toml", &base), ("modules/web/module.toml", &web)]).unwrap_err();
    assert_eq!(refusal.code, "circle");
    assert!(refusal.happened.contains("file:/b → file:/w → file:/b"), "{}", refusal.happened);
}

#[test]
fn the_circle_that_is_named_is_the_circle_and_not_the_way_to_it() {
    assert_eq!(circle(&[vec![1], vec![2], vec![1]]), Some(vec![1, 2, 1]));
    assert_eq!(circle(&[vec![0]]), Some(vec![0, 0]));
    assert_eq!(circle(&[vec![1, 2], vec![2], vec![]]), None);
}

fn keys(rendering: &Rendering) -> Vec<String> {
    rendering.resources.iter().map(|resource| resource.key.to_string()).collect()
}

const STACK: &str = "[[unit]]\nname = \"app.service\"\nrunning = true\nrestart_on = [\"file:/a/f\"]\n\
    [[file]]\npath = \"/a/f\"\ncontent = \"\"\n[[directory]]\npath = \"/a\"\n\
    [[package]]\nname = \"zsh\"\nversion = \"present\"\n[[package]]\nname = \"app\"\nversion = \"present\"\n";

#[test]
fn packages_stand_first_then_what_has_a_path_then_units() {
    let told = keys(&web(STACK).unwrap());
    assert_eq!(
        told,
        [
            "package:app",
            "package:zsh",
            "directory:/a",
            "file:/a/f",
            "directory:/etc/site",
            "unit:app.service"
        ]
    );
}

#[test]
fn an_edge_says_otherwise_than_the_order_of_kinds() {
    let sources = "[[package]]\nname = \"extra\"\nversion = \"1.*\"\nneeds = [\"file:/a/f\", \"unit:late.timer\"]\n\
        [[unit]]\nname = \"late.timer\"\nenabled = true\nreload_on = [\"unit:app.service\"]\n";
    let rendering = web(&format!("{STACK}{sources}")).unwrap();
    let declaration = declared(&rendering);
    let order: Vec<String> = declaration.order().iter().map(|at| declaration.entries[*at].key()).collect();
    let place = |key: &str| order.iter().position(|one| one == key).unwrap();
    for (first, then) in [
        ("package:app", "directory:/a"),
        ("file:/a/f", "unit:app.service"),
        ("unit:app.service", "unit:late.timer"),
        ("unit:late.timer", "package:extra"),
    ] {
        assert!(place(first) < place(then), "{first} after {then}: {order:?}");
    }
}

#[test]
fn what_a_unit_restarts_on_orders_it_and_does_not_stand_in_its_way() {
    let rendering = web(STACK).unwrap();
    let unit = find(&rendering, "unit:app.service");
    assert_eq!(unit.needs, []);
    assert_eq!(unit.spec.follows().map(ToString::to_string).collect::<Vec<_>>(), ["file:/a/f"]);
}

#[test]
fn a_unit_that_only_follows_its_module_begins_and_ends_it_too() {
    let unit = |name: &str, on: &str| {
        format!("[[unit]]\nname = \"{name}.service\"\nrunning = true\nrestart_on = [\"{on}\"]\n")
    };
    let base = format!("[module]\nname = \"base\"\n{}{}", file("/b", &[]), unit("b", "file:/b"));
    let web = format!(
        "[module]\nname = \"web\"\nneeds = [\"base\"]\n[settings]\nport = 1\n{}{}",
        file("/w", &[]),
        unit("w", "file:/w")
    );
    let rendering =
        rendered(&[("modules/base/module.toml", &base), ("modules/web/module.toml", &web)]).unwrap();
    let ends = ["file:/b".parse().unwrap(), "unit:b.service".parse().unwrap()];
    assert_eq!(find(&rendering, "file:/w").needs, ends);
    assert_eq!(find(&rendering, "unit:w.service").needs, ends);
}

#[test]
fn a_unit_that_restarts_on_itself_is_a_circle() {
    let refusal = web("[[unit]]\nname = \"a.service\"\nrestart_on = [\"unit:a.service\"]\n").unwrap_err();
    assert_eq!(refusal.code, "circle");
    assert!(refusal.happened.starts_with("modules/web/module.toml:5:15: "), "{}", refusal.happened);
}

#[test]
fn one_name_may_be_a_package_and_a_unit() {
    let both = "[[package]]\nname = \"a.service\"\nversion = \"present\"\n[[unit]]\nname = \"a.service\"\nrunning = true\n";
    assert_eq!(keys(&web(both).unwrap()), ["package:a.service", "directory:/etc/site", "unit:a.service"]);
}
