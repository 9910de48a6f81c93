//! Fleet folders: what people write, as an editor, a merge or a script may leave it.

use std::collections::{BTreeMap, BTreeSet};

use tenure_controlplane::catalogue::folder::FolderFiles;
use tenure_controlplane::catalogue::{fleet, render};
use tenure_protocol::id::NodeId;
use tenure_protocol::refusal::Refusal;
use tenure_protocol::resource::Resource;

use crate::{change, run};

type Files = BTreeMap<String, Vec<u8>>;

/// One of everything a folder may say.
const RIGHT: &[(&str, &str)] = &[
    (
        "fleet.toml",
        "[group.web]\nmodules = [\"base\", \"web\"]\nsettings = { web = { port = 8081 } }\n\n\
         [node.\"edge-1\"]\ngroups = [\"web\"]\nsettings = { web = { name = \"site\", list = [\"a\", \"b\"] } }\n\n\
         [node.\"edge-2\"]\nmodules = [\"base\"]\n",
    ),
    (
        "modules/base/module.toml",
        "[module]\nname = \"base\"\nversion = \"1\"\n\n[[directory]]\npath = \"/etc/site\"\nmode = \"0755\"\n\n\
         [[package]]\nname = \"nginx\"\nversion = \"present\"\n\n[[file]]\npath = \"/etc/old\"\nabsent = true\n",
    ),
    (
        "modules/web/module.toml",
        "[module]\nname = \"web\"\nversion = \"3\"\nneeds = [\"base\"]\n\n\
         [settings]\nport = 8080\nname = \"site\"\nlist = []\nis_on = true\n\n\
         [[file]]\npath = \"/etc/site/{{ name }}.conf\"\ntemplate = \"site.conf\"\nowner = \"root\"\nmode = \"0640\"\n\n\
         [[file]]\npath = \"/etc/site/logo\"\nsource = \"logo.bin\"\nneeds = [\"file:/etc/site/{{ name }}.conf\"]\n\n\
         [[file]]\npath = \"/etc/site/key\"\ncontent = \"{{ port }}\"\nsensitive = true\ncreate_once = true\n\n\
         [[unit]]\nname = \"nginx.service\"\nenabled = \"{{ is_on }}\"\nrunning = true\n\
         restart_on = [\"file:/etc/site/{{ name }}.conf\"]\n",
    ),
    (
        "modules/web/site.conf",
        "# {{ node }}\nlisten {{ port }}\n{% for item in list %}{{ item | upper }} {{ loop.index }}\n{% endfor %}\
         {% if is_on and port > 80 %}on{% else %}off{% endif %}\n",
    ),
    ("modules/web/logo.bin", "{{ verbatim }}"),
];

const WORDS: &[&[u8]] = &[
    b"{{ ",
    b" }}",
    b"{% for i in range(99999) %}",
    b"{% for i in range(1000) %}{% for j in range(1000) %}x{% endfor %}{% endfor %}",
    b"{% endfor %}",
    b"{% set a = a ~ a %}",
    b"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    b"{% include \"site.conf\" %}",
    b"{% raw %}",
    b"{{ node * 99999999 }}",
    b"{{ node | indent(99999999) }}",
    b"{{ \"%99999999d\" | format(1) }}",
    b"{{ 1 / 0 }}",
    b"{{ node.x.y }}",
    b"{{ self }}",
    b"{{ debug() }}",
    b"[[file]]\n",
    b"[module]\n",
    b"[node.\"edge-1\"]\n",
    b"[settings]\n",
    b"path = \"/etc/site\"\n",
    b"path = \"/proc/1/mem\"\n",
    b"needs = [\"file:/etc/site/key\"]\n",
    b"\"\"\"",
    b"'''",
    b"\\u0000",
    b"\\U0010ffff",
    b"= {",
    b"a.b.c.d.e.f.g = 1\n",
    b"[[[[[[[[[[[[[[[[[[[[[[",
    b"99999999999999999999",
    b"2026-02-30",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\r\n",
    b"\0",
];

/// Refusals about a whole file or node, which have no line to point to.
const OF_A_WHOLE: &[&str] = &["not_text", "declaration_too_large"];

fn right() -> Files {
    RIGHT.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect()
}

/// Everything the right folder makes of its first node.
pub(crate) fn rendered() -> Vec<Resource> {
    let folder = FolderFiles::new(right()).unwrap();
    let fleet = fleet::read(&folder).unwrap();
    let resources = render::render(&fleet, &NodeId::new("edge-1").unwrap()).unwrap().resources;
    assert!(resources.len() >= 7, "{resources:?}");
    resources
}

/// Reads a folder and renders every node of it.
fn declared(files: &Files) -> Result<(), Refusal> {
    let folder = FolderFiles::new(files.clone())?;
    let fleet = fleet::read(&folder)?;
    fleet.check_nodes(&["edge-1", "edge-2"].map(|name| NodeId::new(name).unwrap()).into())?;
    let nodes: BTreeSet<NodeId> = fleet.nodes().cloned().collect();
    for node in nodes {
        let resources = render::render(&fleet, &node)?.resources;
        let again = render::render(&fleet, &node)?.resources;
        assert_eq!(resources, again, "the same folder renders in two ways");
        render::declare(&super::declarations::header(), &resources)?;
    }
    Ok(())
}

fn assert_is_told(refusal: &Refusal, files: &Files) {
    let Refusal { code, happened, means, remedy } = refusal;
    for text in [code, happened, means, remedy] {
        assert!(!text.is_empty() && text.len() < 4000, "{refusal:?}");
        assert!(!text.chars().any(char::is_control), "{refusal:?}");
    }
    assert_ne!(code, "not_readable_back", "a host would not admit what was rendered: {refusal:?}");
    let is_place = |path: &String| {
        let behind = happened.split_once(&format!("{path}:")).map(|(_, behind)| behind);
        behind.is_some_and(|behind| behind.starts_with(|first: char| first.is_ascii_digit()))
    };
    let has_place = files.keys().any(is_place) || OF_A_WHOLE.contains(&code.as_str());
    assert!(has_place, "it names no file and line: {refusal:?}");
}

#[test]
fn a_changed_folder_is_rendered_or_refused_with_the_place_of_its_mistake() {
    let right = right();
    declared(&right).unwrap();
    run::run(12_000, |random| {
        let mut files = right.clone();
        for _ in 0..=random.below(2) {
            let paths: Vec<&String> = right.keys().collect();
            let (path, other) = (*random.of(&paths), *random.of(&paths));
            let changed = change::bytes(random, &files[path], WORDS, &right[other]);
            files.insert(path.clone(), changed);
        }
        if let Err(refusal) = declared(&files) {
            assert_is_told(&refusal, &files);
        }
    });
}

#[test]
fn a_folder_with_a_file_too_few_or_under_another_name_is_refused_with_what_is_missing() {
    let right = right();
    run::run(1_000, |random| {
        let mut files = right.clone();
        let paths: Vec<&String> = right.keys().collect();
        let path = *random.of(&paths);
        let bytes = files.remove(path).unwrap();
        if random.below(2) == 0 {
            let name =
                change::bytes(random, path.as_bytes(), &[b"/", b"..", b"./", b"\n", b"\0"], path.as_bytes());
            files.insert(String::from_utf8_lossy(&name).into_owned(), bytes);
        }
        if let Err(refusal) = declared(&files) {
            assert!(
                !refusal.code.is_empty() && !refusal.happened.chars().any(char::is_control),
                "{refusal:?}"
            );
        }
    });
}
