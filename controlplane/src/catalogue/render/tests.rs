use tenure_protocol::id::{ControlPlaneId, Epoch, EpochId, Generation, ModuleName, RevisionNumber};
use tenure_protocol::machine::Mode as NodeMode;

use super::*;
use crate::catalogue::fleet;
use crate::catalogue::tests::{find, folder, node, rendered, text_of, web};

fn header() -> Header {
    Header {
        control_plane_id: ControlPlaneId::from_bytes([1; 16]),
        node: node("edge-1"),
        generation: Generation(1),
        epoch: Epoch { number: 1, id: EpochId::from_bytes([2; 16]) },
        revision: RevisionNumber(7),
        mode: NodeMode::Adopted,
        taken: vec![ModuleName::new("web").unwrap()],
        allowed_removals: Some(3),
        is_final: false,
    }
}

#[test]
fn the_same_folder_gives_the_same_bytes() {
    let bytes = || declare(&header(), &rendered(&[]).unwrap().resources).unwrap();
    assert_eq!(bytes(), bytes());
    assert_eq!(Digest::of_declaration(&bytes()), Digest::of(&bytes()));
}

// rule: A-01
#[test]
fn a_declaration_says_the_mode_of_the_node_and_the_modules_taken() {
    let bytes = declare(&header(), &rendered(&[]).unwrap().resources).unwrap();
    let back = Declaration::parse(&bytes).unwrap();
    assert_eq!(back.header, header());
    assert_eq!(back.resources().count(), 2);
}

#[test]
fn only_strings_and_templates_are_rendered_and_nothing_is_escaped() {
    let rendering =
        web("[settings]\nhtml = \"<b>\"\n[[file]]\npath = \"/a.html\"\ncontent = \"{{ html }}\\n\"\n\
         [[file]]\npath = \"/{{ node }}\"\nsource = \"{{ 'logo' }}.bin\"\n")
        .unwrap();
    assert_eq!(text_of(&rendering, "file:/a.html"), "<b>\n");
    assert_eq!(text_of(&rendering, "file:/edge-1"), "{{ verbatim }}");
}

#[test]
fn settings_keep_their_types_in_templates() {
    let rendering =
        web("[settings]\nlist = [1, 2]\ntable = { a = true }\nratio = 1.5\n[[file]]\npath = \"/a\"\n\
         content = \"{% for n in list %}{{ n + 1 }} {% endfor %}{{ table.a }} {{ ratio }}\"\n")
        .unwrap();
    assert_eq!(text_of(&rendering, "file:/a"), "2 3 true 1.5");
}

// rule: S-14
#[test]
fn a_setting_cannot_smuggle_what_could_not_be_written() {
    for (field, value, code) in [
        ("path", "/etc/../etc/shadow", "parent_in_path"),
        ("path", "/var/run/tenure-host/api.sock", "own_path"),
        ("path", "/lib/systemd/system/tenure-host.service.d/x.conf", "own_path"),
        ("path", "/dev/sda", "kernel_path"),
        ("owner", "-R", "bad_value"),
        ("mode", "07777777", "bad_value"),
        ("source", "../../fleet.toml", "outside_module"),
    ] {
        let mut fields = BTreeMap::from([("path", "/a"), ("source", "logo.bin")]);
        fields.insert(field, "{{ value }}");
        let fields: String = fields.iter().map(|(name, text)| format!("{name} = \"{text}\"\n")).collect();
        let refusal = web(&format!("[settings]\nvalue = \"{value}\"\n[[file]]\n{fields}")).unwrap_err();
        assert_eq!(refusal.code, code, "{field} {value}: {refusal:?}");
    }
}

// rule: S-14
// rule: H-02
#[test]
fn a_setting_cannot_smuggle_a_package_or_unit_that_could_not_be_written() {
    let (package, unit) =
        ("[[package]]\nname = \"ab\"\nversion = \"1\"\n", "[[unit]]\nname = \"a.service\"\nrunning = true\n");
    for (module, field, value, code) in [
        (package, "\"ab\"", "-y", "bad_value"),
        (package, "\"ab\"", "nginx=1.0", "bad_value"),
        (package, "\"ab\"", "./x.deb", "bad_value"),
        (package, "\"ab\"", "nginx-", "bad_value"),
        (package, "\"ab\"", "a b", "bad_value"),
        (package, "\"1\"", "absent", "bad_value"),
        (package, "\"1\"", "*", "bad_value"),
        (package, "\"1\"", "1.0 --allow-unauthenticated", "bad_value"),
        (package, "\"1\"", "", "bad_value"),
        (unit, "\"a.service\"", "--now.service", "bad_value"),
        (unit, "\"a.service\"", "wg-quick@.service", "bad_value"),
        (unit, "\"a.service\"", "a*.service", "bad_value"),
        (unit, "\"a.service\"", "/etc/x.service", "bad_value"),
        (unit, "\"a.service\"", "tenure-host.service", "own_unit"),
        (unit, "\"a.service\"", "tenure-host", "own_unit"),
        (unit, "true", "1", "bad_value"),
        (unit, "true", "True", "bad_value"),
        (unit, "true", "", "bad_value"),
    ] {
        let module = module.replace(field, "\"{{ value }}\"");
        let refusal = web(&format!("[settings]\nvalue = \"{value}\"\n{module}")).unwrap_err();
        assert_eq!(refusal.code, code, "{field} {value}: {refusal:?}");
    }
}

// rule: H-02
#[test]
fn no_spelling_of_the_hosts_own_unit_is_taken() {
    for name in [
        "tenure-host",
        "tenure-host.service",
        "tenure-host.socket",
        "tenure-host.timer",
        "tenure-host@1.service",
        "tenure-host.service.d",
    ] {
        let refusal = web(&format!("[[unit]]\nname = \"{name}\"\nenabled = false\n")).unwrap_err();
        assert_eq!(refusal.code, "own_unit", "{name}");
    }
    for name in ["tenure-hosts.service", "tenure-control.service", "x-tenure-host.service"] {
        assert!(web(&format!("[[unit]]\nname = \"{name}\"\nenabled = false\n")).is_ok(), "{name}");
    }
}

// rule: H-02
#[test]
fn the_host_may_be_raised_and_never_removed() {
    let host = |says: &str| web(&format!("[[package]]\nname = \"tenure-{{{{ 'host' }}}}\"\n{says}\n"));
    for says in ["version = \"present\"", "version = \"1.4.0\"", "version = \"1.*\""] {
        assert!(host(says).is_ok(), "{says}");
    }
    assert_eq!(host("absent = true").unwrap_err().code, "own_package");
    // No other package is meant by it.
    assert!(web("[[package]]\nname = \"tenure-host-doc\"\nabsent = true\n").is_ok());
}

#[test]
fn packages_and_units_are_read_back_as_they_were_rendered() {
    let rendering = web("[[package]]\nname = \"nginx\"\nversion = \"1.22.*\"\n[[package]]\nname = \"apache2\"\nabsent = true\n\
        [[unit]]\nname = \"nginx.service\"\nenabled = true\nrunning = true\nrestart_on = [\"package:nginx\"]\n\
        reload_on = [\"directory:/etc/site\"]\nneeds = [\"package:nginx\"]\n")
    .unwrap();
    let bytes = declare(&header(), &rendering.resources).unwrap();
    let back = Declaration::parse(&bytes).unwrap();
    assert!(back.resources().eq(&rendering.resources));
}

#[test]
fn a_fault_in_a_template_names_the_template_its_line_and_the_line_itself() {
    let refusal = rendered(&[("modules/web/site.conf", "# ok\nlisten {{ prot }}\n")]).unwrap_err();
    assert_eq!(
        refusal.happened,
        "modules/web/site.conf:2:11: `prot` is not a setting of the module `web`; did you mean `port` — | listen {{ prot }}"
    );
    let refusal = rendered(&[("modules/web/site.conf", "# ok\n{% if port %}\n")]).unwrap_err();
    assert_eq!(refusal.code, "template_failed");
    assert!(refusal.happened.starts_with("modules/web/site.conf:"), "{}", refusal.happened);
}

#[test]
fn a_fault_in_written_content_names_its_own_line() {
    let text = "[[file]]\npath = \"/a\"\ncontent = '''\none\ntwo {{ nope }}\n'''\n";
    let refusal = web(text).unwrap_err();
    assert!(refusal.happened.starts_with("modules/web/module.toml:7:8: "), "{}", refusal.happened);
    assert!(refusal.happened.ends_with(" — | two {{ nope }}"), "{}", refusal.happened);
}

#[test]
fn a_fault_in_content_written_with_escapes_names_where_the_content_begins() {
    let refusal =
        web("[[file]]\npath = \"/a\"\ncontent = \"\\u00e9\\n\\u00e9{{ nope }}\" # é\n").unwrap_err();
    assert!(refusal.happened.starts_with("modules/web/module.toml:5:11: "), "{}", refusal.happened);
}

// rule: S-19
#[test]
fn a_refusal_shows_no_line_of_a_sensitive_file() {
    for secret in ["sensitive = true", "mode = \"0600\""] {
        let file =
            format!("[[file]]\npath = \"/a\"\n{secret}\ncontent = \"hunter2 {{{{ 'hunter2' | int }}}}\"\n");
        let refusal = web(&file).unwrap_err();
        assert_eq!(refusal.code, "template_failed");
        assert!(!format!("{refusal:?}").contains("hunter2"), "{refusal:?}");
        assert!(refusal.happened.starts_with("modules/web/module.toml:"), "{}", refusal.happened);
    }
}

#[test]
fn a_template_that_would_never_end_or_fill_the_memory_is_stopped() {
    let endless = "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}";
    let refusal = rendered(&[("modules/web/site.conf", endless)]).unwrap_err();
    assert!(refusal.happened.contains("too many steps"), "{}", refusal.happened);
    let huge = "{% for a in range(9999) %}{{ 'x' * 9999 }}{% endfor %}";
    let refusal = rendered(&[("modules/web/site.conf", huge)]).unwrap_err();
    assert!(refusal.happened.contains("longer than"), "{}", refusal.happened);
}

#[test]
fn a_template_cannot_read_another_file() {
    let refusal = rendered(&[("modules/web/site.conf", "{% include 'logo.bin' %}")]).unwrap_err();
    assert_eq!(refusal.code, "template_failed");
}

// case: O-68
#[test]
fn a_node_the_folder_does_not_name_is_refused_with_the_near_one() {
    let folder = folder(&[]);
    let fleet = fleet::read(&folder).unwrap();
    let refusal = render(&fleet, &node("egde-1")).unwrap_err();
    assert_eq!(refusal.code, "node_not_in_folder");
    assert!(refusal.happened.contains("did you mean `edge-1`"), "{}", refusal.happened);
}

#[test]
fn a_node_with_nothing_renders_to_nothing() {
    let rendering = rendered(&[("fleet.toml", "[node.edge-1]\n")]).unwrap();
    assert!(rendering.resources.is_empty() && rendering.contents.is_empty());
}

#[test]
fn content_is_kept_once_under_its_digest() {
    let rendering =
        web("[[file]]\npath = \"/a\"\ncontent = \"x\"\n[[file]]\npath = \"/b\"\ncontent = \"x\"\n").unwrap();
    assert_eq!(rendering.contents.len(), 1);
    assert_eq!(find(&rendering, "file:/a").spec.content(), find(&rendering, "file:/b").spec.content());
    assert!(rendering.contents.contains_key(&Digest::of(b"x")));
}

#[test]
fn a_node_that_would_get_too_much_is_refused_before_it_is_all_rendered() {
    let large = "{% for a in range(1600) %}{{ 'x' * 9999 }}{% endfor %}";
    let file = |n: usize| format!("[[file]]\npath = \"/{n}\"\ntemplate = \"large\"\n");
    let web =
        format!("[module]\nname = \"web\"\n[settings]\nport = 1\n{}", (0..6).map(file).collect::<String>());
    let refusal = rendered(&[("modules/web/large", large), ("modules/web/module.toml", &web)]).unwrap_err();
    assert_eq!(refusal.code, "declaration_too_large");
}
