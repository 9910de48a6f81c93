//! Bundles that are not what a control plane rendered, as `tenure-host plan` and `apply` meet them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::sys::stat::Mode;
use tenure_tests::sandbox::{Sandbox, text};

use super::assert_refused;

const CONTENT: &str = "a: what it says\n";

/// A control plane that rendered a bundle, and a machine that belongs to nobody.
struct Made {
    control: Sandbox,
    machine: Sandbox,
}

fn made() -> Made {
    let mut control = Sandbox::empty();
    control.start_control();
    control.invite("edge-1", &[]);
    control.module(&format!("[[file]]\npath = \"/a.txt\"\ncontent = \"{}\"\n", CONTENT.replace('\n', "\\n")));
    let (fleet, out) = (text(&control.at("fleet")), text(&control.at("bundle")));
    control.tenure(&["render", &fleet, "--node", "edge-1", "--out", &out]).expect(0);
    Made { control, machine: Sandbox::empty() }
}

impl Made {
    /// A copy of the bundle, to be spoilt.
    fn copy(&self, name: &str) -> PathBuf {
        let (from, to) = (self.control.at("bundle"), self.control.at(name));
        fs::create_dir_all(to.join("blobs/sha256")).unwrap();
        fs::copy(from.join("declaration.json"), to.join("declaration.json")).unwrap();
        fs::copy(self.blob(&from), to.join("blobs/sha256").join(self.blob(&from).file_name().unwrap()))
            .unwrap();
        to
    }

    /// The one content of a bundle.
    fn blob(&self, bundle: &Path) -> PathBuf {
        fs::read_dir(bundle.join("blobs/sha256")).unwrap().next().unwrap().unwrap().path()
    }
}

/// What stands in for a file of a bundle.
const STAND_INS: [fn(&Path); 6] = [
    |path| nix::unistd::mkfifo(path, Mode::S_IRWXU).unwrap(),
    |path| symlink("/dev/zero", path).unwrap(),
    |path| symlink("/etc/passwd", path).unwrap(),
    |path| fs::create_dir(path).unwrap(),
    |path| fs::File::create(path).unwrap().set_len(1 << 40).unwrap(),
    |_| {},
];

// rule: S-11
#[test]
fn what_stands_in_for_a_file_of_a_bundle_is_refused_without_waiting_by_plan_and_by_apply() {
    let made = made();
    for (number, put) in STAND_INS.iter().enumerate() {
        for (at, file) in ["declaration.json", "blob"].into_iter().enumerate() {
            let bundle = made.copy(&format!("bad-{number}-{at}"));
            let path = if file == "blob" { made.blob(&bundle) } else { bundle.join(file) };
            fs::remove_file(&path).unwrap();
            put(&path);
            for command in ["plan", "apply"] {
                let ran = made.machine.host(&[command, &text(&bundle), "--json"]);
                let refusal = super::refusal(&ran);
                let code = refusal["code"].as_str().unwrap();
                assert!(
                    ["bundle_unreadable", "bundle_content"].contains(&code),
                    "{number} {file}: {refusal}"
                );
                let name = path.file_name().unwrap().to_str().unwrap();
                assert!(refusal["happened"].as_str().unwrap().contains(name), "{refusal}");
            }
        }
    }
    assert_eq!(made.machine.read("/a.txt"), None);
}

// rule: S-11
// case: O-65
#[test]
fn a_bundle_that_was_changed_cut_or_says_something_else_is_refused_and_what_is_held_stays() {
    let made = made();
    let changed = made.copy("changed");
    fs::write(made.blob(&changed), CONTENT.replace("what", "WHAT")).unwrap();
    for command in ["plan", "apply"] {
        let ran = made.machine.host(&[command, &text(&changed), "--json"]);
        assert_refused(&ran, "bundle_content", &[]);
    }
    assert_eq!(made.machine.read("/a.txt"), None);

    let good = text(&made.copy("good"));
    assert!(made.machine.host(&["plan", &good]).expect(0).out.contains("/a.txt"));
    made.machine.host(&["apply", &good]).expect(0);
    assert_eq!(made.machine.read("/a.txt").unwrap(), CONTENT);

    let cut = made.copy("cut");
    let bytes = fs::read(cut.join("declaration.json")).unwrap();
    fs::write(cut.join("declaration.json"), &bytes[..bytes.len() / 2]).unwrap();
    let json = |name: &str, from: &str, to: &str| {
        let bundle = made.copy(name);
        let path = bundle.join("declaration.json");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(&path, text.replace(from, to)).unwrap();
        bundle
    };
    let other = json("other", "\"0644\"", "\"0600\"");
    let path = json("path", "/a.txt\"", "/../a.txt\"");
    let field = json("field", "\"revision\"", "\"revisions\"");
    for (bundle, commands, code) in [
        (&cut, &["plan", "apply"][..], "bundle_declaration"),
        (&field, &["plan", "apply"], "bundle_declaration"),
        // One number is one declaration.
        (&other, &["apply"], "revision_reused"),
    ] {
        for command in commands {
            assert_refused(&made.machine.host(&[command, &text(bundle), "--json"]), code, &[]);
        }
    }
    // A path that cannot be declared makes its resource refused by name, as one of a later version would be (S-10).
    let plan = made.machine.host(&["plan", &text(&path)]).expect(0);
    assert!(plan.out.contains("file:/../a.txt") && plan.out.contains("refuse"), "{}", plan.out);
    assert_refused(
        &made.machine.host(&["plan", &text(&made.control.at("fleet")), "--json"]),
        "bundle_unreadable",
        &["declaration.json is not there"],
    );
    made.machine.host(&["apply"]).expect(0);
    assert_eq!(made.machine.read("/a.txt").unwrap(), CONTENT);
}

// rule: S-10
#[test]
fn a_kind_that_this_host_does_not_know_and_files_that_nothing_names_cost_the_rest_of_a_bundle_nothing() {
    let made = made();
    let bundle = made.copy("more");
    let path = bundle.join("declaration.json");
    let text_of = fs::read_to_string(&path).unwrap();
    let later = "\"resources\":[{\"key\":\"container:web\",\"module\":\"web\",\"needs\":[],\"spec\":{\"image\":\"x\"}},";
    fs::write(&path, text_of.replace("\"resources\":[", later)).unwrap();
    fs::write(bundle.join("README"), "theirs").unwrap();
    nix::unistd::mkfifo(&bundle.join("blobs/sha256/pipe"), Mode::S_IRWXU).unwrap();
    symlink("/", bundle.join("everything")).unwrap();
    let plan = made.machine.host(&["plan", &text(&bundle)]).expect(0);
    assert!(plan.out.contains("container:web") && plan.out.contains("refuse"), "{}", plan.out);
    // Something of it was refused, so that it did not go well; what is known is applied.
    made.machine.host(&["apply", &text(&bundle)]).expect(4);
    assert_eq!(made.machine.read("/a.txt").unwrap(), CONTENT);
}
