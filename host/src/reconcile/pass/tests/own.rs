//! Every way to name what is the host's own (H-02): each place of its, by each way that leads there, in each form a
//! declaration has for it. Each is refused by name, the rest applies, and nothing of the host's has changed.

use std::collections::BTreeMap;

use super::scripted::{Offer, Unit, offer, unit};
use super::trouble::{Mounted, bind};
use super::*;

const BINARY: &str = "/usr/bin/tenure-host";
const UNITS: &str = "/etc/systemd/system";

/// What lies there already; the rest of the host's own is not there yet, and as little to be made.
const THERE: [&str; 10] = [
    BINARY,
    "/usr/lib/tenure-host/known-good/tenure-host",
    "/usr/lib/systemd/system/tenure-host.service",
    "/etc/systemd/system/tenure-host.service.d/10-site.conf",
    "/etc/tenure/host.toml",
    "/etc/tenure/node.json",
    "/var/lib/tenure-host/aside/store.db",
    "/var/lib/tenure-host/node.key",
    "/srv/ca/authority.pem",
    "/srv/large/kept",
];

/// The host's own by the name it has: there or not.
const BY_NAME: [&str; 32] = [
    BINARY,
    "/usr/lib/tenure-host",
    "/usr/lib/tenure-host/probation",
    "/usr/lib/tenure-host/known-good/tenure-host",
    "/etc/tenure",
    "/etc/tenure/host.toml",
    "/etc/tenure/node.json",
    "/etc/needrestart/conf.d/tenure-host.conf",
    "/var/lib/tenure-host",
    "/var/lib/tenure-host/store.db",
    "/var/lib/tenure-host/node.key",
    "/var/lib/tenure-host/aside/store.db",
    "/run/tenure-host",
    "/run/tenure-host/api.sock",
    "/usr/lib/systemd/system/tenure-host.service",
    "/usr/lib/systemd/system/service.d/all.conf",
    "/usr/local/lib/systemd/system/tenure-host.service",
    "/etc/systemd/system/tenure-host.service.d",
    "/etc/systemd/system/tenure-host.service.d/10-site.conf",
    "/etc/systemd/system/tenure-.service.d/x.conf",
    "/etc/systemd/system/multi-user.target.wants/tenure-host.service",
    "/etc/systemd/system/tenure-host.service.wants",
    "/etc/systemd/system/tenure-host.service.requires/x.service",
    "/etc/systemd/system/tenure-host.socket",
    "/etc/systemd/system/tenure-host.timer.d/x.conf",
    "/etc/systemd/system.control/tenure-host.service.d/x.conf",
    "/run/systemd/system/tenure-host-.service.d/x.conf",
    "/run/systemd/system/tenure-host-packages-.service.d/x.conf",
    "/run/systemd/transient/tenure-host-packages-17.service",
    "/run/systemd/generator.early/tenure-host.service",
    "/run/systemd/generator.late/tenure-host.service.d/x.conf",
    "/run/systemd/system.attached/tenure-host@1.service",
];

/// What an operator, or a machine's making, has put there that leads to the host's own, and the paths that go that way.
const LINKED: [(&str, &str, &[&str]); 15] = [
    ("usr/lib", "/lib", &["/lib/tenure-host/probation", "/lib/systemd/system/tenure-host.service"]),
    ("usr/bin", "/bin", &["/bin/tenure-host"]),
    ("../run", "/var/run", &["/var/run/tenure-host/api.sock", "/var/run/systemd/system/service.d/x.conf"]),
    ("/var/lib/tenure-host", "/srv/state", &["/srv/state", "/srv/state/node.key", "/srv/state/new"]),
    ("../etc", "/srv/etc", &["/srv/etc/tenure", "/srv/etc/tenure/new/below"]),
    ("/srv/etc", "/srv/twice", &["/srv/twice/systemd/system/tenure-host.service"]),
    ("/usr/bin/tenure-host", "/srv/program", &["/srv/program"]),
    ("program", "/srv/to-program", &["/srv/to-program"]),
    ("/etc/tenure/not-yet", "/srv/dangling", &["/srv/dangling"]),
    // What its own folders have only a link to, and a link that leads to what they lie in.
    ("../../srv/ca/authority.pem", "/etc/tenure/ca.pem", &["/srv/ca/authority.pem"]),
    ("../../../srv/large", "/var/lib/tenure-host/large", &["/srv/large/new"]),
    ("..", "/etc/tenure/up", &["/etc/tenure/up"]),
    // Other names of its unit, and what systemd reads with it by those.
    (
        "/usr/lib/systemd/system/tenure-host.service",
        "/etc/systemd/system/guard.service",
        &["/etc/systemd/system/guard.service", "/run/systemd/system/guard.service.d/x.conf"],
    ),
    (
        "guard.service",
        "/usr/lib/systemd/system/watch.service",
        &["/etc/systemd/system/watch.service.d", "/etc/systemd/system/watch.service.requires/x.service"],
    ),
    (
        "../guard.service",
        "/etc/systemd/system/basic.target.wants/guard.service",
        &["/etc/systemd/system/basic.target.wants/guard.service"],
    ),
];

/// A second name of an inode of the host's.
const HARD: [(&str, &str); 3] = [
    (BINARY, "/srv/hard-binary"),
    ("/etc/tenure/host.toml", "/srv/hard-toml"),
    ("/etc/systemd/system/tenure-host.service.d/10-site.conf", "/srv/hard-drop-in"),
];

/// What is mounted elsewhere, and the paths that go that way.
const MOUNTED: [(&str, &str, &[&str]); 6] = [
    ("/var/lib/tenure-host", "/mnt/state", &["/mnt/state", "/mnt/state/new"]),
    ("/var/lib/tenure-host/aside", "/mnt/aside", &["/mnt/aside", "/mnt/aside/store.db", "/mnt/aside/new"]),
    ("/etc/tenure/host.toml", "/mnt/host.toml", &["/mnt/host.toml"]),
    (
        "/etc/systemd/system",
        "/mnt/units",
        &["/mnt/units/tenure-host.service", "/mnt/units/service.d", "/mnt/units/guard.service.d/x.conf"],
    ),
    (
        "/run",
        "/mnt/run",
        &["/mnt/run/tenure-host/x", "/mnt/run/systemd/transient/tenure-host-packages-1.service"],
    ),
    (
        "/",
        "/mnt/root",
        &["/mnt/root/etc/tenure/x", "/mnt/root/usr/local/lib/systemd/system/tenure-.service.d"],
    ),
];

const TEXT: &str = "# the host's\n";

/// What is laid there, what is mounted, and the paths, those that reach the same place in lists of their own.
fn laid() -> (Machine, Vec<Mounted>, [Vec<&'static str>; 3]) {
    let machine = Machine::new().given_programs();
    let folder = |path: &str| std::fs::create_dir_all(machine.at(path).parent().unwrap()).unwrap();
    for path in THERE {
        folder(path);
        machine.write(path, TEXT);
    }
    let mut named = BY_NAME.to_vec();
    let (mut linked, mut mounted) = (Vec::new(), Vec::new());
    for (to, at, ways) in LINKED {
        folder(at);
        symlink(to, machine.at(at)).unwrap();
        linked.extend(ways);
    }
    for (of, at) in HARD {
        std::fs::hard_link(machine.at(of), machine.at(at)).unwrap();
        named.push(at);
    }
    let mut mounts = Vec::new();
    for (from, at, ways) in MOUNTED {
        folder(at);
        let (from, to) = (machine.at(from), machine.at(at));
        if from.is_dir() {
            std::fs::create_dir(&to).unwrap()
        } else {
            std::fs::write(&to, "").unwrap()
        }
        let Some(mount) = bind(&from, &to) else { break };
        mounts.push(mount);
        mounted.extend(ways);
    }
    (machine, mounts, [named, linked, mounted])
}

/// All that lies below the root but the host's own store, which each pass writes, and what is only mounted there.
fn everything(machine: &Machine) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    let mut folders = vec![machine.ground.root().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let (path, stat) = (entry.path(), entry.metadata().unwrap());
            let name = entry.file_name().into_string().unwrap();
            if name.starts_with("store.db") || name == "mnt" || name == "srv" {
                continue;
            }
            let what = if stat.is_symlink() {
                format!("{:?}", std::fs::read_link(&path).unwrap())
            } else if stat.is_file() {
                std::fs::read_to_string(&path).unwrap()
            } else {
                folders.push(path.clone());
                String::new()
            };
            all.insert(path, format!("{:o} {} {} {what}", stat.mode(), stat.ino(), stat.nlink()));
        }
    }
    all
}

/// A form a declaration has for something at a path.
type Form = fn(&mut Machine, &str);

/// Each of them.
const FORMS: [(&str, Form); 6] = [
    ("file", |machine, path| machine.file(path, "evil")),
    ("file", |machine, path| {
        machine.file_with(path, "evil", serde_json::json!({ "create_once": true }));
    }),
    ("file", |machine, path| {
        machine.file_with(path, "evil", serde_json::json!({ "replace_link": true }));
    }),
    ("file", |machine, path| machine.absent("file", path)),
    ("directory", |machine, path| machine.directory(path, "0777")),
    ("directory", |machine, path| machine.absent("directory", path)),
];

// rule: H-02
#[test]
fn whatever_way_and_form_a_declaration_has_for_what_is_the_hosts_own_it_is_refused_and_nothing_changes() {
    let (mut machine, _mounts, lists) = laid();
    let before = everything(&machine);
    for (number, (kind, form)) in FORMS.into_iter().enumerate() {
        for paths in &lists {
            machine.resources.clear();
            paths.iter().for_each(|path| form(&mut machine, path));
            machine.file("/srv/fine", "fine");
            let done = machine.pass();
            let through: Vec<_> = paths
                .iter()
                .map(|path| line(&done, &format!("{kind}:{path}")))
                .filter(|line| (line.outcome, line.code.as_deref()) != (Refused, Some("own_file")))
                .map(|line| (&line.key, line.outcome, &line.code))
                .collect();
            assert!(through.is_empty(), "form {number}: {through:#?}");
            assert!(line(&done, "file:/srv/fine").outcome.is_as_declared());
            assert_eq!(everything(&machine), before, "form {number}");
        }
    }
    assert!(machine.is_clean());
    assert_eq!(machine.acts(), Vec::<String>::new());
}

// rule: H-02
#[test]
fn what_only_looks_like_the_hosts_own_is_nobody_elses_business() {
    let (mut machine, _mounts, _) = laid();
    for path in [
        "/etc/tenure.d/x",
        "/usr/bin/tenure",
        "/srv/tenure-host.service",
        "/etc/systemd/system/nginx.service",
        "/etc/systemd/system/nginx.service.d/x.conf",
        "/etc/systemd/system/tenure-hosts.service",
        "/usr/lib/systemd/system/tenure-control.service",
        "/mnt/units/other.service.d/x.conf",
    ] {
        let parent = path.rsplit_once('/').unwrap().0;
        std::fs::create_dir_all(machine.at(parent)).unwrap();
        machine.file(path, "theirs");
    }
    assert_eq!(machine.pass().summary.counts.in_words(), "8 applied");
}

// rule: H-02
#[test]
fn a_folder_above_the_hosts_own_is_not_opened_to_others_where_it_lies_where_it_is_mounted_or_before_it_is_there()
 {
    let (mut machine, mounts, _) = laid();
    std::fs::create_dir_all(machine.at("/usr/local")).unwrap();
    let mut paths =
        vec!["/etc", "/var/lib", "/usr/bin", UNITS, "/usr/local/lib/systemd/system", "/lib/systemd"];
    paths.extend((!mounts.is_empty()).then_some("/mnt/units"));
    let before = everything(&machine);
    for path in &paths {
        machine.directory(path, "0777");
    }
    let done = machine.pass();
    for path in paths {
        let (outcome, code) = outcome(&done, &format!("directory:{path}"));
        assert!(
            outcome == Refused && matches!(code.as_deref(), Some("own_file" | "path_is_link")),
            "{path}: {outcome:?} {code:?}"
        );
    }
    assert_eq!(everything(&machine), before);
}

// rule: H-02
// rule: H-24
#[test]
fn what_we_made_and_what_leads_to_the_host_since_leaves_the_declaration_and_nothing_of_the_host_goes() {
    let (mut machine, ..) = laid();
    machine.directory("/srv/app", "0755");
    machine.file("/srv/app/node.key", TEXT);
    machine.file("/srv/program-of-ours", TEXT);
    machine.file("/etc/systemd/system/late.service.d/x.conf", "[Service]\n");
    machine.directory("/etc/systemd/system/late.service.d", "0755");
    machine.pass();
    std::fs::remove_dir_all(machine.at("/srv/app")).unwrap();
    symlink("/var/lib/tenure-host", machine.at("/srv/app")).unwrap();
    std::fs::remove_file(machine.at("/srv/program-of-ours")).unwrap();
    std::fs::hard_link(machine.at(BINARY), machine.at("/srv/program-of-ours")).unwrap();
    symlink("tenure-host.service", machine.at("/etc/systemd/system/late.service")).unwrap();
    let before = everything(&machine);
    machine.resources.clear();
    machine.file("/srv/rest", "rest");
    let done = machine.pass();
    let left = [
        "directory:/srv/app",
        "file:/srv/app/node.key",
        "file:/srv/program-of-ours",
        "file:/etc/systemd/system/late.service.d/x.conf",
    ];
    for key in left {
        assert_eq!(line(&done, key).outcome, Released, "{key}: {done:#?}");
        assert!(reason(&done, key).contains("files of the host itself"), "{}", reason(&done, key));
    }
    assert_eq!(everything(&machine), before);
}

// rule: H-02
#[test]
fn a_unit_that_is_to_restart_on_a_file_of_the_hosts_is_left_as_it_runs() {
    let (mut machine, ..) = laid();
    machine.has_unit("app.service", unit("active", "enabled"));
    machine.file("/etc/tenure/host.toml", "evil");
    machine.unit(
        "app.service",
        serde_json::json!({ "running": true, "restart_on": ["file:/etc/tenure/host.toml"] }),
        &["file:/etc/tenure/host.toml"],
    );
    let done = machine.pass();
    assert_eq!(outcome(&done, "file:/etc/tenure/host.toml"), (Refused, Some("own_file".to_owned())));
    assert_eq!(line(&done, "unit:app.service").outcome, Unchanged);
    assert_eq!(machine.acts(), Vec::<String>::new());
}

/// What a declaration can say of a unit.
const SAYS: [&str; 5] = ["running", "enabled", "masked", "disabled", "stopped"];

// rule: H-02
#[test]
fn a_unit_of_the_hosts_is_refused_by_every_name_whatever_is_said_of_it() {
    let (mut machine, ..) = laid();
    let mut alias = unit("active", "enabled");
    alias.id = "tenure-host.service".to_owned();
    for name in ["guard.service", "agent@1.service"] {
        machine.has_unit(name, alias.clone());
    }
    machine.has_unit("tenure-host.service", unit("active", "enabled"));
    machine.has_unit("nginx.service", unit("active", "enabled"));
    let names = [
        "tenure-host.service",
        "tenure-host.socket",
        "tenure-host.timer",
        "tenure-host.path",
        "tenure-host@1.service",
        "tenure-host-packages-17.service",
        "guard.service",
        "agent@1.service",
    ];
    for says in SAYS {
        machine.resources.clear();
        let spec = match says {
            "running" => serde_json::json!({ "running": true }),
            "stopped" => serde_json::json!({ "running": false }),
            "enabled" => serde_json::json!({ "enabled": true }),
            "disabled" => serde_json::json!({ "enabled": false }),
            _ => serde_json::json!({ "masked": true }),
        };
        names.iter().for_each(|name| machine.unit(name, spec.clone(), &[]));
        machine.unit("nginx.service", serde_json::json!({ "running": true }), &[]);
        let done = machine.pass();
        for name in names {
            let said = outcome(&done, &format!("unit:{name}"));
            assert_eq!(said, (Refused, Some("own_unit".to_owned())), "{name} {says}");
        }
        assert_eq!(line(&done, "unit:nginx.service").outcome, Unchanged);
    }
    // Names that are none are refused as they are, and reach nothing.
    for name in ["tenure-host", "tenure-host.service.d", "tenure-host@.service", "../tenure-host.service"] {
        machine.resources.clear();
        machine.unit(name, serde_json::json!({ "running": false }), &[]);
        let done = machine.pass_unforeseen();
        assert_eq!(line(&done, &format!("unit:{name}")).outcome, Refused, "{name}");
    }
    assert_eq!(machine.acts(), Vec::<String>::new());
    assert_eq!(machine.is("tenure-host.service"), ("active", "enabled"));
}

// rule: H-02
#[test]
fn what_the_hosts_unit_requires_is_not_stopped_masked_or_restarted_and_what_excludes_it_not_started() {
    let mut machine = Machine::with_programs();
    let with = |says, active| Unit { says, ..unit(active, "static") };
    machine.has_unit("sysinit.target", with("RequiredBy=tenure-host.service ssh.service\n", "active"));
    machine.has_unit("var.mount", with("RequiredBy=x.service\nBoundBy=tenure-host.service\n", "active"));
    machine.has_unit("other.target", with("RequiredBy=tenure-hosts.service\n", "active"));
    machine.has_unit("lone.target", with("ConflictedBy=tenure-host.service\n", "inactive"));
    machine.file("/srv/a", "a");
    let forms = [
        serde_json::json!({ "running": false }),
        serde_json::json!({ "masked": true }),
        serde_json::json!({ "running": true, "restart_on": ["file:/srv/a"] }),
    ];
    for form in forms {
        for name in ["sysinit.target", "var.mount"] {
            machine.unit(name, form.clone(), &["file:/srv/a"]);
        }
        machine.unit("lone.target", serde_json::json!({ "running": true }), &[]);
        let done = machine.pass();
        for (name, says) in
            [("sysinit.target", "requires"), ("var.mount", "requires"), ("lone.target", "exclude each other")]
        {
            let key = format!("unit:{name}");
            assert_eq!(outcome(&done, &key), (Refused, Some("own_unit".to_owned())), "{name}: {form}");
            assert!(reason(&done, &key).contains(says), "{}", reason(&done, &key));
        }
    }
    assert_eq!(machine.acts(), Vec::<String>::new());
    // As it runs it may be declared, and others that are required are nobody's business.
    machine.unit("sysinit.target", serde_json::json!({ "running": true }), &[]);
    machine.unit("lone.target", serde_json::json!({ "running": false }), &[]);
    machine.unit("other.target", serde_json::json!({ "running": false }), &[]);
    machine.forget("unit:var.mount");
    let done = machine.pass();
    assert_eq!(done.summary.counts.in_words(), "3 unchanged, 1 applied");
    assert_eq!(machine.acts(), ["stop other.target"]);
}

// rule: H-02
#[test]
fn no_package_takes_the_hosts_files_with_it_or_puts_others_in_their_place() {
    let (mut machine, ..) = laid();
    machine.installs("tenure-host", "1.0");
    for name in ["acme", "acme-old"] {
        machine.installs(name, "1.0");
        machine.write(&format!("/var/lib/dpkg/info/{name}.list"), "/.\n/bin\n/bin/tenure-host\n");
    }
    machine.installs("plain", "1.0");
    machine.write(
        "/var/lib/dpkg/info/plain.list",
        "/.\n/usr/lib/systemd/system/service.d/10-timeout-abort.conf\n",
    );
    machine.offers("acme", &[offer("2.0")]);
    machine.offers("plain", &[offer("2.0")]);
    machine.offers("usurper", &[Offer { removes: vec!["tenure-host"], ..offer("1") }]);
    for (name, how) in [
        ("tenure-host", "absent"),
        ("acme", "2.0"),
        ("acme-old", "absent"),
        ("usurper", "present"),
        ("plain", "2.0"),
    ] {
        machine.package(name, how, &[]);
    }
    let done = machine.pass();
    for (name, code) in [
        ("tenure-host", "own_package"),
        ("acme", "transaction_refused"),
        ("acme-old", "transaction_refused"),
        ("usurper", "transaction_refused"),
    ] {
        assert_eq!(outcome(&done, &format!("package:{name}")), (Refused, Some(code.to_owned())), "{name}");
    }
    for name in ["acme", "acme-old"] {
        let why = reason(&done, &format!("package:{name}"));
        assert!(why.contains(&format!("{name} has brought /bin/tenure-host")), "{why}");
        assert!(why.contains("leave that package as it is installed"), "{why}");
    }
    assert_eq!(line(&done, "package:plain").outcome, Applied);
    assert_eq!(
        (machine.version("tenure-host").as_deref(), machine.version("acme").as_deref()),
        (Some("1.0"), Some("1.0"))
    );
}
