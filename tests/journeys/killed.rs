//! The host is killed in the middle of an apply, again and again (H-09): each start goes on from where the last one
//! was ended, with nothing left over and nothing forgotten.

use std::path::Path;

use tenure_tests::sandbox::{SOON, Sandbox};
use tenure_tests::wait;

const FILES: usize = 1500;

fn entries(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

// rule: H-09
#[test]
fn a_host_killed_in_the_middle_of_an_apply_goes_on_and_forgets_nothing_it_made() {
    let mut sandbox = Sandbox::enrolled(&[]);
    let mut module = String::from("[[directory]]\npath = \"/srv\"\n");
    for at in 0..FILES {
        module.push_str(&format!("[[file]]\npath = \"/srv/{at:04}\"\ncontent = \"{at}\\n\"\n"));
    }
    sandbox.module(&module);
    let folder = sandbox.at("fleet").display().to_string();
    sandbox.tenure(&["declare", &folder]).expect(0);

    let srv = sandbox.machine("/srv");
    let mut killed = 0;
    for share in [1, 4, 7] {
        let reached = FILES * share / 10;
        wait::until_true("the apply is well under way", SOON, || entries(&srv).len() >= reached);
        killed += usize::from(entries(&srv).len() < FILES);
        sandbox.kill_host();
        sandbox.start_host();
    }
    assert!(killed > 0, "the host was always done before it was killed: more files are needed");
    sandbox.wait("everything is applied", |s| s.standing() == "applied");
    let left = entries(&srv);
    assert_eq!(
        left.len(),
        FILES,
        "something is left over: {:?}",
        left.iter().find(|name| name.starts_with('.'))
    );
    let owned = sandbox.host(&["owned", "--json"]).expect(0).json();
    let origins: Vec<_> = owned.as_array().unwrap().iter().map(|line| line["origin"].clone()).collect();
    assert_eq!(origins.len(), FILES + 1);
    assert!(
        origins.iter().all(|origin| origin == "created"),
        "a kill made us take our own work for somebody else's"
    );

    sandbox.module("[[directory]]\npath = \"/srv\"\n");
    sandbox.declare(&["--allow-removals", &FILES.to_string()]).expect(0);
    assert_eq!(entries(&srv), Vec::<String>::new());
}
