use super::*;
use crate::catalogue::render::Rendering;
use crate::catalogue::tests::{declared, rendered, web};

fn between(before: &Rendering, after: &Rendering) -> Vec<Change> {
    let text = |digest: Digest| after.contents.get(&digest).or_else(|| before.contents.get(&digest)).cloned();
    changes(Some(&declared(before)), &after.resources, &text)
}

fn lines(change: &Change) -> Vec<&str> {
    change.detail.iter().map(String::as_str).collect()
}

#[test]
fn nothing_changes_where_nothing_changed() {
    let rendering = rendered(&[]).unwrap();
    assert_eq!(between(&rendering, &rendering), []);
}

#[test]
fn every_field_that_differs_is_named_and_text_is_diffed() {
    let before = rendered(&[]).unwrap();
    let after =
        rendered(&[("modules/web/site.conf", "# {{ node }}\nlisten\t{{ port }}\nquiet\u{1b}\n")]).unwrap();
    let changes = between(&before, &after);
    assert_eq!(changes.len(), 1);
    assert_eq!((changes[0].what, changes[0].key.as_str()), (ChangeKind::Change, "file:/etc/site/site.conf"));
    let lines = lines(&changes[0]);
    assert!(lines[0].starts_with("content 21 bytes ("), "{lines:?}");
    assert_eq!(
        lines[1..],
        ["@@ -1,2 +1,3 @@", " # edge-1", "-listen 8081", "+listen\t8081", "+quiet\\u{1b}"]
    );
}

#[test]
fn a_line_that_only_ends_otherwise_is_shown_with_how_it_ends() {
    let with = |end: &str| web(&format!("[[file]]\npath = \"/a\"\ncontent = \"one{end}\"\n")).unwrap();
    let changes = between(&with("\\n"), &with("\\r\\n"));
    assert_eq!(lines(&changes[0])[1..], ["@@ -1 +1 @@", "-one", "+one\\r"]);
}

#[test]
fn what_is_added_and_what_leaves_stands_in_the_order_of_paths() {
    let before =
        web("[[file]]\npath = \"/b\"\ncontent = \"x\"\n[[file]]\npath = \"/c\"\ncontent = \"x\"\n").unwrap();
    let after =
        web("[[file]]\npath = \"/a\"\nmode = \"0600\"\ncontent = \"x\"\n[[directory]]\npath = \"/b\"\n\
         [[file]]\npath = \"/c\"\nmode = \"0755\"\ncontent = \"x\"\n")
        .unwrap();
    let changes = between(&before, &after);
    let told: Vec<(&str, ChangeKind)> = changes.iter().map(|c| (c.key.as_str(), c.what)).collect();
    assert_eq!(
        told,
        [
            ("file:/a", ChangeKind::Add),
            ("directory:/b", ChangeKind::Add),
            ("file:/b", ChangeKind::Leave),
            ("file:/c", ChangeKind::Change),
        ]
    );
    assert_eq!(
        lines(&changes[0]),
        ["mode 0600, owner root, group root", "content is sensitive and not shown"]
    );
    assert_eq!(lines(&changes[3]), ["mode 0644 → 0755"]);
}

// rule: S-19
#[test]
fn sensitive_content_is_in_no_diff_even_when_it_stops_being_sensitive() {
    let file = |extra: &str, content: &str| {
        web(&format!("[[file]]\npath = \"/a\"\n{extra}\ncontent = \"{content}\"\n")).unwrap()
    };
    for (old, new) in
        [("sensitive = true", ""), ("", "mode = \"0640\""), ("mode = \"0600\"", "mode = \"0600\"")]
    {
        let (before, after) = (file(old, "hunter2"), file(new, "hunter3"));
        let told = format!("{:?}", between(&before, &after));
        assert!(told.contains("sensitive and not shown"), "{told}");
        for secret in ["hunter", &Digest::of(b"hunter2").short(), &Digest::of(b"hunter3").short()] {
            assert!(!told.contains(secret), "{told}");
        }
    }
}

#[test]
fn what_is_not_text_or_too_large_or_not_known_is_told_by_size_and_digest() {
    let one = |content: &str| web(&format!("[[file]]\npath = \"/a\"\ncontent = \"{content}\"\n")).unwrap();
    let (small, binary, large) = (one("x"), one("\\u0000"), one(&"y".repeat(64 * 1024 + 1)));
    for (before, after) in [(&small, &binary), (&small, &large), (&large, &small)] {
        let changes = between(before, after);
        assert_eq!(changes[0].detail.len(), 1, "{:?}", changes[0].detail.first());
        assert!(changes[0].detail[0].starts_with("content "));
    }
    let unknown = changes(Some(&declared(&small)), &one("z").resources, &|_| None);
    assert_eq!(unknown[0].detail.len(), 1);
}

#[test]
fn a_first_declaration_adds_everything_and_shows_what_it_will_write() {
    let after = rendered(&[]).unwrap();
    let told = changes(None, &after.resources, &|digest| after.contents.get(&digest).cloned());
    assert_eq!(told.len(), 2);
    assert!(told.iter().all(|change| change.what == ChangeKind::Add));
    assert!(lines(&told[1]).contains(&"+listen 8081"), "{:?}", told[1]);
}

#[test]
fn the_diffs_of_one_node_are_bounded_together() {
    let file = |n: usize| format!("[[file]]\npath = \"/{n}\"\ncontent = \"{n} {}\"\n", "z".repeat(60_000));
    let after = web(&(0..10).map(file).collect::<String>()).unwrap();
    let told = changes(None, &after.resources, &|digest| after.contents.get(&digest).cloned());
    let diffed = told.iter().filter(|change| change.detail.iter().any(|line| line.starts_with("@@"))).count();
    assert_eq!(diffed, 4);
    assert_eq!(told.len(), 11);
}

#[test]
fn what_an_earlier_version_did_not_understand_is_said_to_change() {
    let after = rendered(&[]).unwrap();
    let mut before = declared(&after);
    before.entries[0] = Entry::Unsupported(tenure_protocol::declaration::Unsupported {
        key: "directory:/etc/site".to_owned(),
        module: "base".to_owned(),
        code: "unsupported_field",
        reason: "unknown field `colour`".to_owned(),
    });
    let told = changes(Some(&before), &after.resources, &|_| None);
    assert_eq!(lines(&told[0]), ["was not understood: unknown field `colour`"]);
}

fn told(before: &str, after: &str) -> Vec<(String, ChangeKind, Vec<String>)> {
    let changes = between(&web(before).unwrap(), &web(after).unwrap());
    changes.into_iter().map(|change| (change.key, change.what, change.detail)).collect()
}

#[test]
fn a_package_says_which_version_it_was_and_which_it_will_be() {
    let package = |says: &str| format!("[[package]]\nname = \"nginx\"\n{says}\n");
    let (present, prefix, exact, gone) =
        ("version = \"present\"", "version = \"1.22.*\"", "version = \"1.22.1-9\"", "absent = true");
    for (before, after, lines) in [
        (present, prefix, vec!["version present → 1.22.*"]),
        (prefix, exact, vec!["version 1.22.* → 1.22.1-9"]),
        (exact, gone, vec!["present → should be gone"]),
        (gone, prefix, vec!["should be gone → present", "version 1.22.*"]),
    ] {
        let told = told(&package(before), &package(after));
        let lines = lines.into_iter().map(str::to_owned).collect();
        assert_eq!(told, [("package:nginx".to_owned(), ChangeKind::Change, lines)]);
    }
    assert_eq!(told(&package(gone), &package(gone)), []);
    assert_eq!(told("", &package(exact))[0].2, ["version 1.22.1-9"]);
    assert_eq!(told("", &package(gone))[0].2, ["should be gone"]);
}

#[test]
fn a_unit_says_what_it_was_and_what_it_will_be() {
    let unit = |says: &str| {
        format!("[[file]]\npath = \"/a\"\ncontent = \"\"\n[[unit]]\nname = \"nginx.service\"\n{says}\n")
    };
    let before = unit("running = true\nrestart_on = [\"file:/a\"]");
    let after = unit("enabled = true\nrunning = false\nreload_on = [\"file:/a\", \"directory:/etc/site\"]");
    let told = told(&before, &after);
    assert_eq!(told.len(), 1);
    assert_eq!(
        told[0].2,
        [
            "enabled left as it is → true",
            "running true → false",
            "restart_on file:/a → nothing",
            "reload_on nothing → file:/a, directory:/etc/site",
        ]
    );
}

#[test]
fn a_unit_that_is_added_says_what_it_will_be_and_nothing_else() {
    let after =
        "[[unit]]\nname = \"a.timer\"\nenabled = \"{{ true }}\"\nrestart_on = [\"directory:/etc/site\"]\n";
    let told = told("", after);
    assert_eq!(told[0].2, ["enabled true", "restart_on directory:/etc/site"]);
}

#[test]
fn changes_stand_in_the_order_of_kinds_and_paths() {
    let after = "[[unit]]\nname = \"a.timer\"\nenabled = true\n[[file]]\npath = \"/z\"\ncontent = \"\"\n\
        [[package]]\nname = \"zsh\"\nversion = \"present\"\n";
    let keys: Vec<String> = told("", after).into_iter().map(|(key, ..)| key).collect();
    assert_eq!(keys, ["package:zsh", "file:/z", "unit:a.timer"]);
}
