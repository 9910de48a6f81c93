use super::*;
use crate::catalogue::tests::{find, text_of, web};
use tenure_protocol::resource::{
    DirectoryPresent, FilePresent, FileSpec, Mode, PackageWanted, Principal, Spec, UnitSpec,
};

#[test]
fn what_is_left_out_has_the_ordinary_value() {
    let rendering =
        web("[[directory]]\npath = \"/a\"\n[[file]]\npath = \"/a/b\"\ncontent = \"x\"\n").unwrap();
    let root = Principal::Name("root".into());
    let Spec::Directory(directory) = &find(&rendering, "directory:/a").spec else {
        panic!("not a directory")
    };
    let mode = Mode::from_bits(0o755).unwrap();
    assert_eq!(directory.present, Some(DirectoryPresent { mode, owner: root.clone(), group: root.clone() }));
    let Spec::File(FileSpec { present: Some(file), .. }) = &find(&rendering, "file:/a/b").spec else {
        panic!("not a file")
    };
    let FilePresent { mode, owner, group, create_once, replace_link, sensitive, .. } = file;
    assert_eq!((mode.bits(), owner, group), (0o644, &root, &root));
    assert!(!create_once && !replace_link && !sensitive);
}

#[test]
fn every_field_arrives_where_it_belongs() {
    let rendering = web("[[file]]\npath = \"/a\"\nmode = \"0600\"\nowner = \"www-data\"\ngroup = \"33\"\n\
        source = \"logo.bin\"\ncreate_once = true\nreplace_link = true\nsensitive = true\nneeds = [\"directory:/etc/site\"]\n")
    .unwrap();
    let file = find(&rendering, "file:/a");
    assert_eq!(file.needs, ["directory:/etc/site".parse().unwrap()]);
    let Spec::File(FileSpec { present: Some(present), .. }) = &file.spec else { panic!("not a file") };
    assert_eq!(present.owner, Principal::Name("www-data".into()));
    assert_eq!(present.group, Principal::Number(33));
    assert!(present.create_once && present.replace_link && present.sensitive);
    // What is given as `source` goes out as it is.
    assert_eq!(text_of(&rendering, "file:/a"), "{{ verbatim }}");
}

#[test]
fn an_absent_thing_has_a_path_and_needs() {
    let rendering =
        web("[[file]]\npath = \"/a\"\nabsent = true\nneeds = [\"directory:/etc/site\"]\n").unwrap();
    assert!(find(&rendering, "file:/a").spec.is_absent());
}

#[test]
fn every_kind_of_a_later_version_is_refused_by_name() {
    for kind in LATER {
        let refusal = web(&format!("[[{kind}]]\nname = \"x\"\n")).unwrap_err();
        assert_eq!(refusal.code, "not_yet");
        assert!(refusal.happened.contains(&format!("`{kind}`")), "{}", refusal.happened);
    }
}

#[test]
fn a_package_is_present_or_of_a_version_or_of_a_prefix_or_gone() {
    for (says, wanted) in [
        ("version = \"present\"", "present"),
        ("version = \"1:2.3-4~bpo12+1\"", "1:2.3-4~bpo12+1"),
        ("version = \"1.22.*\"", "1.22.*"),
        ("version = \"{{ '1.' }}{{ 11 * 2 }}.*\"", "1.22.*"),
        ("absent = false\nversion = \"present\"", "present"),
        ("absent = true", "absent"),
    ] {
        let rendering = web(&format!("[[package]]\nname = \"nginx-light\"\n{says}\n")).unwrap();
        let Spec::Package(package) = &find(&rendering, "package:nginx-light").spec else {
            panic!("not a package")
        };
        assert_eq!(package.wanted, wanted.parse::<PackageWanted>().unwrap(), "{says}");
    }
}

#[test]
fn every_field_of_a_unit_arrives_where_it_belongs() {
    let rendering = web("[settings]\nup = false\n[[package]]\nname = \"nginx\"\nversion = \"present\"\n\
        [[unit]]\nname = \"wg-quick@{{ node }}.service\"\nenabled = true\nrunning = \"{{ up }}\"\n\
        restart_on = [\"package:nginx\"]\nreload_on = [\"directory:/etc/./site/\"]\nneeds = [\"package:nginx\"]\n")
    .unwrap();
    let unit = find(&rendering, "unit:wg-quick@edge-1.service");
    assert_eq!(unit.needs, ["package:nginx".parse().unwrap()]);
    let Spec::Unit(UnitSpec { enabled, running, restart_on, reload_on, .. }) = &unit.spec else {
        panic!("not a unit")
    };
    assert_eq!((*enabled, *running), (Some(true), Some(false)));
    assert_eq!(restart_on, &["package:nginx".parse().unwrap()]);
    assert_eq!(reload_on, &["directory:/etc/site".parse().unwrap()]);
}

#[test]
fn a_unit_can_be_masked_and_be_stopped_besides() {
    let rendering = web("[[unit]]\nname = \"a.service\"\nrunning = false\nmasked = true\n").unwrap();
    let Spec::Unit(unit) = &find(&rendering, "unit:a.service").spec else { panic!("not a unit") };
    assert_eq!((unit.enabled, unit.running, unit.masked), (None, Some(false), Some(true)));
}

#[test]
fn what_a_unit_does_not_say_is_left_as_it_is() {
    let rendering = web("[[unit]]\nname = \"a.socket\"\nreload_on = [\"directory:/etc/site\"]\n").unwrap();
    let Spec::Unit(unit) = &find(&rendering, "unit:a.socket").spec else { panic!("not a unit") };
    assert_eq!((unit.enabled, unit.running, unit.masked, unit.restart_on.len()), (None, None, None, 0));
}

#[test]
fn a_unit_is_refused_the_word_absent_whatever_it_says() {
    for says in ["true", "false", "\"no\""] {
        let refusal =
            web(&format!("[[unit]]\nname = \"a.service\"\nrunning = false\nabsent = {says}\n")).unwrap_err();
        assert_eq!(refusal.code, "unit_absent");
    }
}

// rule: S-10
#[test]
fn a_field_of_another_kind_is_unknown() {
    for (kind, field) in
        [("package", "enabled = true"), ("package", "mode = \"0644\""), ("unit", "version = \"1\"")]
    {
        let refusal = web(&format!("[[{kind}]]\nname = \"ab\"\n{field}\n")).unwrap_err();
        assert_eq!(refusal.code, "unknown_field", "{kind} {field}");
    }
}
