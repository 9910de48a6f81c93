use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use tenure_protocol::declaration::{Declaration, Header};
use tenure_protocol::id::{ControlPlaneId, Epoch, EpochId, Generation, NodeId, RevisionNumber};
use tenure_protocol::machine::Mode;
use tenure_protocol::refusal::{Explain, Refusal};
use tenure_protocol::resource::{Resource, Spec};

use super::folder::FolderFiles;
use super::mistake::Mistake;
use super::render::Rendering;
use super::{fleet, golden, render};

/// A small fleet that is right; tests replace a file of it.
const RIGHT: [(&str, &str); 5] = [
    (
        "fleet.toml",
        "[group.web]\nmodules = [\"base\", \"web\"]\n\n[node.\"edge-1\"]\ngroups = [\"web\"]\nsettings = { web = { port = 8081 } }\n",
    ),
    ("modules/base/module.toml", "[module]\nname = \"base\"\n\n[[directory]]\npath = \"/etc/site\"\n"),
    ("modules/web/module.toml", WEB),
    ("modules/web/site.conf", "# {{ node }}\nlisten {{ port }}\n"),
    ("modules/web/logo.bin", "{{ verbatim }}"),
];

const WEB: &str = "[module]\nname = \"web\"\nversion = \"3\"\nneeds = [\"base\"]\n\n[settings]\nport = 8080\nname = \"site\"\n\n\
    [[file]]\npath = \"/etc/site/{{ name }}.conf\"\ntemplate = \"site.conf\"\n";

pub(super) fn folder(files: &[(&str, &str)]) -> FolderFiles {
    let mut all: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for (path, text) in RIGHT.iter().chain(files) {
        all.insert((*path).to_owned(), text.as_bytes().to_vec());
    }
    FolderFiles::new(all).unwrap()
}

pub(super) fn node(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

/// The right fleet with these files in place of its own, rendered for its node.
pub(super) fn rendered(files: &[(&str, &str)]) -> Result<Rendering, Refusal> {
    let folder = folder(files);
    let fleet = fleet::read(&folder)?;
    render::render(&fleet, &node("edge-1"))
}

/// The same with this as the whole of `modules/web/module.toml` after its head.
pub(super) fn web(rest: &str) -> Result<Rendering, Refusal> {
    let text = format!("[module]\nname = \"web\"\n{rest}");
    let fleet = "[node.\"edge-1\"]\nmodules = [\"base\", \"web\"]\n";
    rendered(&[("fleet.toml", fleet), ("modules/web/module.toml", &text)])
}

pub(super) fn find<'a>(rendering: &'a Rendering, key: &str) -> &'a Resource {
    rendering.resources.iter().find(|resource| resource.key.to_string() == key).unwrap()
}

pub(super) fn text_of(rendering: &Rendering, key: &str) -> String {
    let content = find(rendering, key).spec.content().unwrap();
    String::from_utf8(rendering.contents[&content.sha256].clone()).unwrap()
}

/// The declaration of this rendering, as a host reads it.
pub(super) fn declared(rendering: &Rendering) -> Declaration {
    let header = Header {
        control_plane_id: ControlPlaneId::from_bytes([1; 16]),
        node: node("edge-1"),
        generation: Generation(1),
        epoch: Epoch { number: 1, id: EpochId::from_bytes([2; 16]) },
        revision: RevisionNumber(1),
        mode: Mode::Converged,
        taken: Vec::new(),
        allowed_removals: None,
        is_final: false,
    };
    Declaration::parse(&render::declare(&header, &rendering.resources).unwrap()).unwrap()
}

/// Each is a whole `modules/web/module.toml` after its name, and the code it is refused with.
const BAD_MODULES: [(&str, &str); 58] = [
    ("malformed_toml", "[[file]\npath = \"/a\"\n"),
    ("malformed_toml_duplicate_key", "[[file]]\npath = \"/a\"\npath = \"/b\"\ncontent = \"\"\n"),
    ("unknown_field", "[[file]]\npath = \"/a\"\ncontnet = \"x\"\n"),
    ("unknown_field_of_nothing_near", "[[file]]\npath = \"/a\"\ncolour = \"x\"\n"),
    ("unknown_field_kind", "[[fiel]]\npath = \"/a\"\n"),
    ("unknown_field_later_kind", "[[contaner]]\nname = \"api\"\n"),
    ("unknown_field_package", "[[package]]\nname = \"nginx\"\nversoin = \"present\"\n"),
    ("unknown_field_unit", "[[unit]]\nname = \"nginx.service\"\nrestarts_on = [\"file:/a\"]\n"),
    ("not_yet", "[[container]]\nname = \"api\"\nimage = \"api:3\"\n"),
    ("not_yet_secrets", "[secrets]\npassword = \"\"\n"),
    ("wrong_type", "[[file]]\npath = \"/a\"\nmode = 644\ncontent = \"\"\n"),
    ("wrong_type_needs", "[[file]]\npath = \"/a\"\nneeds = \"file:/b\"\ncontent = \"\"\n"),
    ("wrong_type_truth", "[[unit]]\nname = \"nginx.service\"\nenabled = 1\n"),
    ("wrong_type_table", "[file]\npath = \"/a\"\n"),
    ("wrong_type_date", "[settings]\nday = 2026-01-01\n"),
    ("missing_field_version", "[[package]]\nname = \"nginx\"\n"),
    ("missing_field", "[[directory]]\nmode = \"0755\"\n"),
    ("listed_twice", "needs = [\"base\", \"base\"]\n"),
    ("bad_name", "needs = [\"Base!\"]\n"),
    ("reserved_setting", "[settings]\nnode = \"me\"\n"),
    ("module_need_missing", "needs = [\"tls\"]\n"),
    ("undefined_setting", "[settings]\nport = 1\n[[file]]\npath = \"/a\"\ncontent = \"{{ prot }}\"\n"),
    ("template_failed", "[[file]]\npath = \"/a\"\ncontent = '''\nfirst\n{{ node | reverze }}\n'''\n"),
    ("relative_path", "[[file]]\npath = \"etc/a\"\ncontent = \"\"\n"),
    (
        "parent_in_path",
        "[settings]\nname = \"../shadow\"\n[[file]]\npath = \"/etc/{{ name }}\"\ncontent = \"\"\n",
    ),
    ("control_in_path", "[[file]]\npath = \"/etc/a\\u0000b\"\ncontent = \"\"\n"),
    ("root_path", "[[directory]]\npath = \"//./\"\n"),
    ("kernel_path", "[[file]]\npath = \"//./proc/sys/kernel/x\"\ncontent = \"\"\n"),
    ("own_path", "[[file]]\npath = \"/etc//tenure/./host.toml\"\ncontent = \"\"\n"),
    ("bad_value", "[[file]]\npath = \"/a\"\nmode = \"rw-r--r--\"\ncontent = \"\"\n"),
    ("bad_value_owner", "[[file]]\npath = \"/a\"\nowner = \"--reference=x\"\ncontent = \"\"\n"),
    ("bad_value_package", "[[package]]\nname = \"nginx*\"\nversion = \"present\"\n"),
    ("bad_value_version", "[[package]]\nname = \"nginx\"\nversion = \">= 1.22\"\n"),
    ("bad_value_version_absent", "[[package]]\nname = \"nginx\"\nversion = \"absent\"\n"),
    ("bad_value_unit", "[[unit]]\nname = \"nginx\"\nrunning = true\n"),
    ("bad_value_truth", "[[unit]]\nname = \"nginx.service\"\nrunning = \"yes\"\n"),
    ("bad_need", "[[file]]\npath = \"/a\"\nneeds = [\"container:api\"]\ncontent = \"\"\n"),
    ("bad_need_restart_on", "[[unit]]\nname = \"nginx.service\"\nrestart_on = [\"/etc/nginx\"]\n"),
    ("own_unit", "[[unit]]\nname = \"tenure-host.service\"\nrunning = false\n"),
    ("own_unit_without_kind", "[[unit]]\nname = \"tenure-host\"\nenabled = false\n"),
    ("own_package", "[[package]]\nname = \"tenure-host\"\nabsent = true\n"),
    ("unit_absent", "[[unit]]\nname = \"nginx.service\"\nabsent = true\n"),
    (
        "masked_with_more",
        "[[unit]]\nname = \"nginx.service\"\nmasked = true\nenabled = false\nrunning = true\n",
    ),
    ("unit_says_nothing", "[[unit]]\nname = \"nginx.service\"\nrestart_on = []\n"),
    (
        "restart_and_reload",
        "[[unit]]\nname = \"nginx.service\"\nrestart_on = [\"directory:/etc/site\"]\nreload_on = [\"directory:/etc//site\"]\n",
    ),
    (
        "listed_twice_however_spelled",
        "[[unit]]\nname = \"x.timer\"\nreload_on = [\"file:/a\", \"file://a\"]\n",
    ),
    ("absent_with_more", "[[file]]\npath = \"/a\"\nabsent = true\nmode = \"0644\"\n"),
    ("absent_with_more_package", "[[package]]\nname = \"nginx\"\nabsent = true\nversion = \"1.22.*\"\n"),
    ("file_without_content", "[[file]]\npath = \"/a\"\n"),
    ("two_contents", "[[file]]\npath = \"/a\"\ncontent = \"\"\ntemplate = \"site.conf\"\n"),
    ("outside_module", "[[file]]\npath = \"/a\"\nsource = \"../base/module.toml\"\n"),
    ("no_such_file", "[[file]]\npath = \"/a\"\ntemplate = \"site.cnf\"\n"),
    ("declared_twice", "[[file]]\npath = \"/etc/./site/\"\ncontent = \"\"\n"),
    (
        "declared_twice_package",
        "[[package]]\nname = \"nginx\"\nversion = \"present\"\n[[package]]\nname = \"nginx\"\nabsent = true\n",
    ),
    (
        "declared_below",
        "[[file]]\npath = \"/a\"\ncontent = \"\"\n[[file]]\npath = \"/a/b\"\ncontent = \"\"\n",
    ),
    ("need_missing", "[[file]]\npath = \"/a\"\nneeds = [\"directory:/etc/sit\"]\ncontent = \"\"\n"),
    (
        "need_missing_restart_on",
        "[[unit]]\nname = \"nginx.service\"\nrestart_on = [\"directory:/etc/sites\"]\n",
    ),
    ("need_missing_reload_on", "[[unit]]\nname = \"nginx.service\"\nreload_on = [\"file:/etc/passwd\"]\n"),
];

/// Each is a whole `fleet.toml`.
const BAD_FLEETS: [(&str, &str); 9] = [
    ("no_nodes", "[group.web]\nmodules = [\"base\"]\n"),
    ("unknown_field_fleet", "[nodes.a]\nmodules = [\"base\"]\n"),
    ("bad_name_node", "[node.\"Edge 1\"]\nmodules = [\"base\"]\n"),
    ("unknown_group", "[group.web]\nmodules = []\n[node.\"edge-1\"]\ngroups = [\"wbe\"]\n"),
    ("unknown_module", "[node.\"edge-1\"]\nmodules = [\"bsae\"]\n"),
    (
        "unknown_setting",
        "[node.\"edge-1\"]\nmodules = [\"base\", \"web\"]\nsettings = { web = { prot = 1 } }\n",
    ),
    ("settings_without_module", "[node.\"edge-1\"]\nmodules = [\"base\"]\nsettings.web.port = 1\n"),
    (
        "groups_disagree",
        "[group.a]\nmodules = [\"base\", \"web\"]\nsettings.web.port = 1\n[group.b]\nsettings.web.port = 2\n\
         [node.\"edge-1\"]\ngroups = [\"a\", \"b\"]\n",
    ),
    ("node_not_in_folder", "[node.\"edge-2\"]\nmodules = [\"base\"]\n"),
];

#[test]
fn the_fleet_that_is_right_is_taken() {
    let rendering = rendered(&[]).unwrap();
    assert_eq!(text_of(&rendering, "file:/etc/site/site.conf"), "# edge-1\nlisten 8081\n");
}

// rule: S-14
// rule: S-10
// rule: H-02
#[test]
fn every_bad_module_is_refused_in_its_own_words() {
    for (name, rest) in BAD_MODULES {
        let refusal = web(rest).map(|_| name).unwrap_err();
        assert!(name.starts_with(&refusal.code), "{name}: {refusal:?}");
        assert!(refusal.happened.contains("modules/web/module.toml:"), "{name}: {refusal:?}");
        assert!(refusal.happened.contains(" — | "), "{name}: {refusal:?}");
        golden::check(name, &refusal);
    }
}

// case: O-68
#[test]
fn every_bad_fleet_is_refused_in_its_own_words() {
    for (name, text) in BAD_FLEETS {
        let refusal = rendered(&[("fleet.toml", text)]).map(|_| name).unwrap_err();
        assert!(name.starts_with(&refusal.code), "{name}: {refusal:?}");
        golden::check(name, &refusal);
    }
}

#[test]
fn circles_and_names_that_do_not_agree_are_refused_in_their_own_words() {
    let base = "[module]\nname = \"base\"\nneeds = [\"web\"]\n";
    golden::check("module_circle", &rendered(&[("modules/base/module.toml", base)]).unwrap_err());
    let ring = "[[file]]\npath = \"/a\"\ncontent = \"\"\nneeds = [\"file:/b\"]\n\
                [[file]]\npath = \"/b\"\ncontent = \"\"\nneeds = [\"file:/a\"]\n";
    golden::check("circle", &web(ring).unwrap_err());
    let ring = "[[file]]\npath = \"/a\"\ncontent = \"\"\nneeds = [\"unit:a.service\"]\n\
                [[unit]]\nname = \"a.service\"\nrestart_on = [\"file:/a\"]\n";
    golden::check("circle_through_a_restart", &web(ring).unwrap_err());
    let other = "[module]\nname = \"wbe\"\n";
    golden::check("other_module_name", &rendered(&[("modules/web/module.toml", other)]).unwrap_err());
    let long = format!("[[file]]\npath = \"/{}\"\ncontent = \"\"\n", "x".repeat(256));
    golden::check("long_path", &web(&long).unwrap_err());
}

#[test]
fn what_has_no_line_is_refused_in_its_own_words() {
    let one = |path: &str, bytes: &[u8]| {
        FolderFiles::new(BTreeMap::from([(path.to_owned(), bytes.to_vec())])).unwrap()
    };
    golden::check("no_fleet", &fleet::read(&one("example/fleet.toml", b"")).unwrap_err());
    golden::check("not_text", &fleet::read(&one("fleet.toml", b"\xff")).unwrap_err());
    let (node, what) = (node("edge-1"), "65 MiB, at most 64 MiB".to_owned());
    golden::check("declaration_too_large", &Mistake::TooLarge { node, what }.refusal());
    let broken = Mistake::NotReadable("the declaration names file:/a twice".to_owned());
    golden::check("not_readable_back", &broken.refusal());
}

#[test]
fn every_code_has_a_golden_text() {
    if std::env::var_os("BLESS").is_some() {
        // They are being written beside this test.
        return;
    }
    let source = include_str!("mistake/explain.rs");
    let codes = source
        .split("fn meaning(")
        .next()
        .unwrap()
        .lines()
        .chain(source.lines().skip_while(|l| !l.contains("fn path_code")).take(10));
    let names = golden::names();
    for code in codes.filter_map(|line| line.split_once("=> \"")?.1.strip_suffix("\",")) {
        assert!(names.iter().any(|name| name.starts_with(code)), "no golden text of {code}");
    }
}

#[test]
fn the_example_renders_for_the_sandbox() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/example");
    let mut files = BTreeMap::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                files.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    let folder = FolderFiles::new(files).unwrap();
    let fleet = fleet::read(&folder).unwrap();
    let rendering = render::render(&fleet, &node("sandbox")).unwrap();
    assert_eq!(
        text_of(&rendering, "file:/srv/web/html/index.html"),
        "<!doctype html>\n<html lang=\"en\">\n<title>It works</title>\n<h1>It works</h1>\n<p>Served by sandbox.</p>\n</html>\n"
    );
    assert_eq!(
        text_of(&rendering, "file:/srv/web/site.conf"),
        "listen = 8080\nroot = /srv/web/html\ninclude = /srv/web/local.conf\n"
    );
    // In an empty root everything has to find the directory it lies in.
    let directories: Vec<&str> = rendering
        .resources
        .iter()
        .filter(|r| matches!(r.spec, Spec::Directory(_)))
        .map(|r| r.key.name())
        .collect();
    for resource in rendering.resources.iter().filter(|r| !r.spec.is_absent()) {
        let parent = resource.key.path().and_then(|path| path.parent());
        assert!(parent.is_none_or(|parent| directories.contains(&parent)), "{} has no parent", resource.key);
    }
}

/// Text that is often nearly a module.
fn nearly_toml() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("[[file]]\n".to_owned()),
        Just("[[directory]]\n".to_owned()),
        Just("[[package]]\n".to_owned()),
        Just("[[unit]]\n".to_owned()),
        Just("name = \"ab.service\"\n".to_owned()),
        Just("version = \"{{ port }}.*\"\n".to_owned()),
        Just("enabled = \"{{ port }}\"\n".to_owned()),
        Just("restart_on = [\"unit:ab.service\", \"file:/etc/a\"]\n".to_owned()),
        Just("[settings]\nport = 1\n".to_owned()),
        Just("path = ".to_owned()),
        Just("content = ".to_owned()),
        Just("\"/etc/a\"\n".to_owned()),
        Just("\"{{ port }}\"\n".to_owned()),
        Just("\"{% for x in range(9) %}\u{e9}\"\n".to_owned()),
        Just("'''\n{{ \u{202e} }}'''\n".to_owned()),
        Just("absent = true\n".to_owned()),
        "\\PC{0,12}",
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_text_makes_the_catalogue_panic(text in nearly_toml(), template in ".{0,60}") {
        let _answer = web(&text);
        let _answer = rendered(&[("modules/web/module.toml", &text), ("fleet.toml", &text)]);
        let _answer = rendered(&[("modules/web/site.conf", &template)]);
        let _answer = rendered(&[("fleet.toml", &text)]);
    }
}
