//! What a module may say of paths, owners, modes, templates and settings, and what not, with the place where it stands.

use std::fs;
use std::time::{Duration, Instant};

use tenure_tests::sandbox::{Sandbox, text};

use super::assert_refused;

/// A file at `path`, as it is written in TOML.
fn file(path: &str) -> String {
    format!("[[file]]\npath = \"{path}\"\ncontent = \"x\"\n")
}

fn with(line: &str) -> String {
    format!("{}{line}\n", file("/a"))
}

fn content(text: &str) -> String {
    format!("[[file]]\npath = \"/a\"\ncontent = \"{text}\"\n")
}

/// What is written, the code, and words of what happened.
fn bad() -> Vec<(String, &'static str, &'static str)> {
    vec![
        (file(&format!("/{}", "n".repeat(256))), "long_path", "module.toml:5:8: path `/nnn"),
        (file(&"/nnn".repeat(1024)), "long_path", "255 bytes a name, 4096 in all"),
        (file("/a\\nb"), "control_in_path", "`/a\\nb` has a control character in it"),
        (file("/a\\u001b[2J"), "control_in_path", "`/a\\u{1b}[2J`"),
        (file("/"), "root_path", "the root directory itself"),
        (file("//./"), "root_path", "the root directory itself"),
        (file("srv/a"), "relative_path", "`srv/a` is relative"),
        (file("~/a"), "relative_path", "`~/a` is relative"),
        (file("/srv/../etc"), "parent_in_path", "goes through `..`"),
        (file("/dev/sda"), "kernel_path", "lies in `/dev`"),
        (file("//proc/./sys"), "kernel_path", "lies in `/proc`"),
        (with("owner = \"a b\""), "bad_value", "owner or group"),
        (with("group = \"-1\""), "bad_value", "owner or group"),
        (with("owner = \"4294967295\""), "bad_value", "owner or group"),
        (with("owner = 0"), "wrong_type", "`owner` must be a string, and is a number"),
        (with("mode = \"0999\""), "bad_value", "mode"),
        (with("mode = \"rw\""), "bad_value", "mode"),
        (with("mode = \"17777\""), "bad_value", "mode"),
        (with("mode = 644"), "wrong_type", "`mode` must be a string, and is a number"),
        (
            content("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}"),
            "template_failed",
            "it takes too many steps",
        ),
        (
            content(
                "{% set n = namespace(s='x') %}{% for i in range(60) %}{% set n.s = n.s ~ n.s %}{% endfor %}",
            ),
            "template_failed",
            "it takes too many steps",
        ),
        (content("{{ 'x' * 99999999 }}"), "template_failed", "longer than 16777216 bytes"),
        (content("{{ 'x' * 99999999999 }}"), "template_failed", "it takes too many steps"),
        (content("{% include '/etc/passwd' %}"), "template_failed", "module.toml:6:"),
        (content("{{ 1 / 0 }}"), "template_failed", "module.toml:6:"),
        (content("{{"), "template_failed", "module.toml:6:"),
        (format!("[settings]\nport = 2020-01-01\n{}", file("/a")), "wrong_type", "is a date or time"),
        (
            format!("[settings]\nport = 99999999999999999999\n{}", file("/a")),
            "wrong_type",
            "a number of at most 64 bits",
        ),
        (format!("[settings]\nport = nan\n{}", file("/a")), "wrong_type", "a finite number"),
        (format!("[settings]\nnode = 1\n{}", file("/a")), "reserved_setting", "module.toml:5:1"),
        (
            "[[file]]\npath = \"/a\"\nsource = \"../../fleet.toml\"\n".to_owned(),
            "outside_module",
            "is not a file of this module",
        ),
        (
            "[[file]]\npath = \"/a\"\nsource = \"/etc/passwd\"\n".to_owned(),
            "outside_module",
            "is not a file of this module",
        ),
        ("[[file]]\npath = \"/a\"\nsource = \"none\"\n".to_owned(), "no_such_file", "has no file `none`"),
    ]
}

#[test]
fn what_cannot_be_declared_is_refused_where_it_stands_and_what_was_declared_stays() {
    let sandbox = Sandbox::enrolled(&[]);
    sandbox.module(&content("good"));
    sandbox.declare(&[]).expect(0);
    let fleet = text(&sandbox.at("fleet"));
    for (module, code, words) in bad() {
        sandbox.module(&module);
        assert_refused(&sandbox.tenure(&["declare", &fleet, "--json"]), code, &[words]);
    }
    // TOML is text; what is not has no line to point at.
    fs::write(sandbox.at("fleet/modules/web/module.toml"), b"[module]\nname = \"w\xff\"\n").unwrap();
    let ran = sandbox.tenure(&["declare", &fleet, "--json"]);
    assert_refused(&ran, "not_text", &["modules/web/module.toml"]);
    assert_eq!(sandbox.node()["revision"]["declared"], 1);
    assert_eq!(sandbox.read("/a").unwrap(), "good");
}

// rule: S-20
#[test]
fn what_is_odd_and_can_be_declared_is_applied_as_it_is_written() {
    use std::os::unix::fs::PermissionsExt as _;
    let sandbox = Sandbox::enrolled(&[]);
    let long = "n".repeat(255);
    let written = [
        format!("[[directory]]\npath = \"//srv/./{long}/\"\nmode = \"2755\"\n"),
        file(&format!("/srv/{long}/{long}")),
        format!("{}mode = \"04755\"\nowner = \"0\"\n", file("/srv/setuid")),
        file("/srv/ with a space and 'quotes'"),
        file("/srv/\\u202Eright to left"),
        file("/srv/no-utf8-needed-\u{1F980}"),
        "[[directory]]\npath = \"/srv\"\n".to_owned(),
    ];
    sandbox.module(&written.concat());
    sandbox.declare(&[]).expect(0);
    let mode = |path: &str| sandbox.machine(path).metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode("/srv/setuid"), 0o4755);
    assert_eq!(mode(&format!("/srv/{long}")), 0o2755);
    assert_eq!(sandbox.read(&format!("/srv/{long}/{long}")).unwrap(), "x");
    assert!(sandbox.read("/srv/\u{202e}right to left").is_some());
    let shown = sandbox.tenure(&["node", "edge-1"]).expect(0).out;
    assert!(shown.contains("\\u{202e}right to left") && !shown.contains('\u{202e}'), "{shown}");
}

/// A node with very many resources: one more than a declaration may have is refused, and as many as it may have are
/// rendered while everybody else is answered.
#[test]
fn a_hundred_thousand_resources_are_rendered_and_one_more_refused_while_everybody_else_is_answered() {
    let sandbox = Sandbox::enrolled(&[]);
    sandbox.invite("edge-2", &[]);
    let many = |count: usize| {
        let entries =
            (0..count).map(|number| format!("[[file]]\npath = \"/srv/{number}\"\ncontent = \"x\"\n"));
        sandbox.module(&entries.collect::<String>());
    };
    let fleet = text(&sandbox.at("fleet"));
    many(100_001);
    let ran = sandbox.tenure(&["declare", &fleet, "--plan", "--json"]);
    assert_refused(&ran, "declaration_too_large", &["`edge-1`", "more than 100000 resources"]);
    many(100_000);
    let answered = std::thread::scope(|scope| {
        let declaring = scope.spawn(|| sandbox.tenure(&["declare", &fleet, "--plan", "--json"]));
        let mut answered = 0;
        while !declaring.is_finished() {
            let asked = Instant::now();
            sandbox.tenure(&["nodes"]).expect(0);
            assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
            answered += 1;
        }
        let plan = declaring.join().unwrap().expect(0).json();
        assert_eq!(plan["plan"]["nodes"][0]["resources"], 100_000);
        answered
    });
    assert!(answered > 1, "the render was over before anybody was asked");
    assert_eq!(sandbox.node()["revision"]["declared"], serde_json::Value::Null);
}
