//! What a real apt would do and the host does not: take packages of sources that prove nothing (S-13), bring something
//! else than what was named (S-14), remove, downgrade or change what nobody declared (H-25). Each is refused in words of
//! its own, and the rest applies.

use tenure_tests::lab::{AptRepository, Base, Deb, Pair, Trust};

fn deb(name: &str, version: &str) -> Deb {
    Deb::new(name, version).file(&format!("/usr/share/{name}/version"), version, 0o644)
}

/// Declares these packages and a file.
fn declare(pair: &Pair, packages: &[(&str, &str)], file: &str) {
    let mut module = format!("[[file]]\npath = \"{file}\"\ncontent = \"it\\n\"\n");
    for (name, version) in packages {
        module.push_str(&format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n"));
    }
    pair.module(&module);
    let _ = pair.declare(&["--allow-removals", "9"]).must();
    pair.wait_for_resource(&format!("file:{file}"));
}

fn version(pair: &Pair, name: &str) -> Option<String> {
    pair.read(&format!("/usr/share/{name}/version"))
}

fn use_repository(pair: &Pair, trust: Trust, packages: &[Deb]) {
    let repository = AptRepository::new(&pair.lab, trust);
    packages.iter().for_each(|package| repository.add(package));
    pair.b.use_apt(&repository);
}

fn what_nobody_declared_is_not_removed_lowered_or_changed(pair: &Pair) {
    use_repository(
        pair,
        Trust::Signed,
        &[
            deb("theirs", "1.0"),
            deb("also-theirs", "1.0"),
            deb("lib", "1.0"),
            deb("lib", "2.0"),
            deb("routerd", "5.0"),
            deb("routerd", "5.1"),
            deb("site-tool", "1.0"),
            deb("greedy", "1.0").field("Conflicts", "theirs, also-theirs"),
            deb("old", "1.0").field("Depends", "lib (= 1.0)"),
            deb("wants-router", "1.0").field("Depends", "routerd (>= 5.1)"),
            deb("good", "1.0"),
        ],
    );
    let before = ["theirs", "also-theirs", "lib=2.0", "routerd=5.0"];
    pair.b.must(&[&["apt-get", "install", "-y", "-q"][..], &before].concat());
    pair.b.must(&["apt-mark", "hold", "routerd"]);
    // With this pin apt would lower it for whoever needs that.
    pair.b.write("/etc/apt/preferences.d/lib", "Package: lib\nPin: version 1.0\nPin-Priority: 1001\n");
    declare(
        pair,
        &[
            ("greedy", "present"),
            ("old", "present"),
            ("wants-router", "present"),
            ("routerd", "5.1"),
            ("site.tool", "present"),
            ("good", "present"),
        ],
        "/srv/a.txt",
    );
    pair.wait_for_resource("package:good");
    for (key, code, words) in [
        ("package:greedy", "transaction_refused", "also remove also-theirs, theirs"),
        ("package:old", "transaction_refused", "also downgrade lib"),
        ("package:wants-router", "transaction_refused", "another version of routerd"),
        ("package:routerd", "package_on_hold", "its version is 5.0, declared 5.1"),
        // apt takes the dot for any letter, and would bring site-tool.
        ("package:site.tool", "transaction_refused", "it would not install site.tool"),
    ] {
        let why = pair.wait_for_code(key, "refused", code);
        assert!(why.contains(words), "{key}: {why}");
    }
    assert_eq!(version(pair, "good").as_deref(), Some("1.0"));
    let kept = [("theirs", "1.0"), ("also-theirs", "1.0"), ("lib", "2.0"), ("routerd", "5.0")];
    for (name, is) in kept {
        assert_eq!(version(pair, name).as_deref(), Some(is), "{name}");
    }
    assert_eq!(pair.b.must(&["apt-mark", "showhold"]), "routerd");
    for name in ["greedy", "old", "wants-router", "site-tool"] {
        assert_eq!(version(pair, name), None, "{name}");
    }
}

fn what_proves_nothing_is_not_taken(pair: &Pair) {
    let evil = [deb("evil", "1.0"), deb("tenure-host", "9.9")];
    // What apt calls a source that was signed before, and one that never was.
    for (trust, words) in [(Trust::Unsigned, "is no longer signed"), (Trust::Stranger, "InRelease")] {
        use_repository(pair, trust, &evil);
        declare(pair, &[("good", "present"), ("evil", "present")], &format!("/srv/{trust:?}.txt"));
        let why = pair.wait_for_code("package:evil", "refused", "unsigned_source");
        assert!(why.contains(words) && why.contains("copy:/srv/lab-apt"), "{why}");
        assert_eq!(version(pair, "evil"), None);
        pair.wait_for_resource("package:good");
        declare(pair, &[("good", "present")], &format!("/srv/{trust:?}.txt"));
    }
    // Whatever the machine's own configuration allows: the package is known now, and refused for what it is.
    let lax = "Acquire::AllowDowngradeToInsecureRepositories \"true\";\nAcquire::AllowInsecureRepositories \"true\";\nAPT::Get::AllowUnauthenticated \"true\";\nAPT::Get::Force-Yes \"true\";\n";
    pair.b.write("/etc/apt/apt.conf.d/99lax", lax);
    use_repository(pair, Trust::Unsigned, &evil);
    declare(pair, &[("good", "present"), ("evil", "present")], "/srv/lax.txt");
    let why = pair.wait_for_code("package:evil", "refused", "unsigned_package");
    assert!(why.contains("not authenticated"), "{why}");
    assert_eq!((version(pair, "evil"), version(pair, "good").as_deref()), (None, Some("1.0")));
    assert_eq!(pair.b.must(&["dpkg", "--audit"]), "");
}

/// The machine's own configuration lets a source go unsigned, in each of the ways it can say so: of other packages that is
/// the operator's choice, of the host it is not.
fn the_host_is_taken_only_from_what_a_signature_proves(pair: &Pair) {
    pair.b.must(&["rm", "-f", "/etc/apt/apt.conf.d/99lax"]);
    let raise = [
        deb("tenure-host", "9.9"),
        deb("theirs-alone", "1.0"),
        deb("on-the-way", "1.0").field("Depends", "tenure-host (>= 9.9)"),
    ];
    use_repository(pair, Trust::Claimed, &raise);
    let packages = [("tenure-host", "9.9"), ("theirs-alone", "present"), ("on-the-way", "present")];
    declare(pair, &packages, "/srv/claimed.txt");
    pair.wait_for_resource("package:theirs-alone");
    let refused = |how: &str| {
        let why = pair.wait_for_code("package:tenure-host", "refused", "unsigned_package");
        assert!(
            why.contains("tenure-host 9.9 of copy:/srv/lab-apt") && why.contains("signed-by="),
            "{how}: {why}"
        );
        pair.wait_for_code("package:on-the-way", "refused", "unsigned_package");
        assert_eq!((version(pair, "tenure-host"), version(pair, "on-the-way")), (None, None), "{how}");
    };
    refused("trusted=yes");
    let deb822 = "Types: deb\nURIs: copy:/srv/lab-apt\nSuites: ./\nTrusted: yes\n";
    for (how, file, text) in [
        ("Trusted: yes", "lab.sources", deb822),
        ("allow-insecure=yes", "lab.list", "deb [allow-insecure=yes] copy:/srv/lab-apt ./\n"),
    ] {
        pair.b.must(&["rm", "-rf", "/etc/apt/sources.list.d"]);
        pair.b.write(&format!("/etc/apt/sources.list.d/{file}"), text);
        let lax = "APT::Get::AllowUnauthenticated \"true\";\nAcquire::AllowInsecureRepositories \"true\";\n";
        pair.b.write("/etc/apt/apt.conf.d/99lax", lax);
        let _ = pair.b.run(&["apt-get", "update"]).must();
        declare(pair, &packages, &format!("/srv/{file}.txt"));
        let _ = pair.b.run(&["tenure-host", "apply"]);
        refused(how);
    }
    pair.b.must(&["rm", "-f", "/etc/apt/apt.conf.d/99lax"]);
    use_repository(pair, Trust::Signed, &raise);
    pair.wait_for_resource("package:tenure-host");
    pair.wait_for_resource("package:on-the-way");
    assert_eq!(version(pair, "tenure-host").as_deref(), Some("9.9"));
    assert_eq!(pair.b.must(&["dpkg", "--audit"]), "");
}

fn refused_on(base: Base) {
    let pair = Pair::raised_on("refused", base);
    what_nobody_declared_is_not_removed_lowered_or_changed(&pair);
    what_proves_nothing_is_not_taken(&pair);
    the_host_is_taken_only_from_what_a_signature_proves(&pair);
}

// rule: H-25
// rule: S-13
// rule: S-14
// case: O-09
#[test]
fn what_apt_would_do_beyond_what_is_declared_or_from_who_proves_nothing_is_refused_by_name_on_debian_12() {
    refused_on(Base::Bookworm);
}

// rule: H-25
// rule: S-13
// rule: S-14
// case: O-09
#[test]
fn what_apt_would_do_beyond_what_is_declared_or_from_who_proves_nothing_is_refused_by_name_on_debian_13() {
    refused_on(Base::Trixie);
}
