use super::*;
use crate::id::EpochId;
use crate::path::DeclaredPath;
use crate::resource::{FilePresent, FileSpec};

fn header() -> Header {
    Header {
        control_plane_id: ControlPlaneId::from_bytes([1; 16]),
        node: NodeId::new("edge-1").unwrap(),
        generation: Generation(1),
        epoch: Epoch { number: 1, id: EpochId::from_bytes([2; 16]) },
        revision: RevisionNumber(7),
        mode: Mode::Converged,
        taken: vec![],
        allowed_removals: None,
        is_final: false,
    }
}

fn file(path: &str, needs: &[&str]) -> Resource {
    let spec = FileSpec {
        path: DeclaredPath::new(path).unwrap(),
        present: Some(FilePresent {
            content: Content { sha256: Digest::of(b"x"), size: 1 },
            mode: "0644".parse().unwrap(),
            owner: "root".parse().unwrap(),
            group: "root".parse().unwrap(),
            create_once: false,
            replace_link: false,
            sensitive: false,
        }),
    };
    let spec = Spec::File(spec);
    let module = ModuleName::new("web").unwrap();
    Resource {
        key: spec.key(),
        module,
        needs: needs.iter().map(|need| need.parse().unwrap()).collect(),
        spec,
    }
}

// rule: S-11
#[test]
fn the_bytes_begin_with_whose_declaration_it_is_and_are_read_back_the_same() {
    let resources = [file("/etc/a", &[]), file("/etc/b", &["file:/etc/a"])];
    let bytes = Declaration::encode(&header(), &resources).unwrap();
    let text = String::from_utf8(bytes.clone()).unwrap();
    let order = [
        "control_plane_id",
        "node",
        "generation",
        "epoch",
        "revision",
        "mode",
        "taken",
        "allowed_removals",
        "resources",
    ];
    let places: Vec<usize> = order.iter().map(|field| text.find(&format!("\"{field}\"")).unwrap()).collect();
    assert!(places.is_sorted() && text.starts_with("{\"control_plane_id\""), "{text}");
    let back = Declaration::parse(&bytes).unwrap();
    assert_eq!(back.header, header());
    assert_eq!(back.resources().cloned().collect::<Vec<_>>(), resources);
}

// rule: S-10
#[test]
fn a_resource_that_is_not_understood_fails_alone_and_is_named() {
    let bytes = Declaration::encode(&header(), &[file("/etc/a", &[]), file("/etc/b", &[])]).unwrap();
    let text = String::from_utf8(bytes)
        .unwrap()
        .replace("\"path\":\"/etc/b\",", "\"path\":\"/etc/b\",\"colour\":\"red\",");
    let back = Declaration::parse(text.as_bytes()).unwrap();
    let Entry::Unsupported(unsupported) = &back.entries[1] else { panic!("{:?}", back.entries[1]) };
    assert_eq!((unsupported.key.as_str(), unsupported.code), ("file:/etc/b", "unsupported_field"));
    assert!(unsupported.reason.contains("colour"), "{}", unsupported.reason);
    assert_eq!(back.resources().count(), 1);

    let text = text.replace("\"key\":\"file:/etc/b\"", "\"key\":\"fiel:/etc/b\"");
    let back = Declaration::parse(text.as_bytes()).unwrap();
    let Entry::Unsupported(unsupported) = &back.entries[1] else { panic!() };
    assert_eq!(unsupported.code, "unsupported_kind");
    assert!(unsupported.reason.contains("did you mean `file`"), "{}", unsupported.reason);
}

// case: O-65
#[test]
fn a_truncated_document_is_refused_whole() {
    let bytes = Declaration::encode(&header(), &[file("/etc/a", &[]), file("/etc/b", &[])]).unwrap();
    for cut in 0..bytes.len() {
        assert!(
            matches!(Declaration::parse(&bytes[..cut]), Err(DeclarationError::Unreadable(_))),
            "cut at {cut}"
        );
    }
    assert!(matches!(
        Declaration::parse(&[bytes, b"{}".to_vec()].concat()),
        Err(DeclarationError::Unreadable(_))
    ));
}

#[test]
fn a_key_that_stands_twice_is_refused_also_in_another_spelling() {
    let bytes = Declaration::encode(&header(), &[file("/etc/a", &[]), file("/etc/b", &[])]).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let twice = text.replace("/etc/b", "/etc//./a");
    assert_eq!(Declaration::parse(twice.as_bytes()), Err(DeclarationError::Twice("file:/etc/a".into())));
}

#[test]
fn what_is_needed_comes_first_and_a_circle_is_named() {
    let parse =
        |resources: &[Resource]| Declaration::parse(&Declaration::encode(&header(), resources).unwrap());
    let good = parse(&[file("/a", &["file:/c"]), file("/b", &[]), file("/c", &["file:/b"])]).unwrap();
    assert_eq!(good.order(), [1, 2, 0]);
    let circle = parse(&[file("/a", &["file:/b"]), file("/b", &["file:/a"])]).unwrap_err();
    assert_eq!(circle, DeclarationError::Circle("file:/a → file:/b → file:/a".into()));
    let missing = parse(&[file("/a", &["file:/nowhere"])]).unwrap_err();
    assert!(matches!(missing, DeclarationError::NeedMissing { .. }));
}

#[test]
fn an_unknown_word_in_the_head_is_refused_whole() {
    let bytes = Declaration::encode(&header(), &[]).unwrap();
    let text =
        String::from_utf8(bytes).unwrap().replace("\"is_final\":false", "\"is_final\":false,\"force\":true");
    assert!(matches!(Declaration::parse(text.as_bytes()), Err(DeclarationError::Unreadable(_))));
}

// rule: S-10
#[test]
fn a_resource_that_is_not_understood_keeps_its_whole_key_and_one_without_a_key_refuses_all() {
    let long = format!("/etc/{}/{}", "a".repeat(200), "b\u{200f}".repeat(50));
    let bytes = Declaration::encode(&header(), &[file(&long, &[]), file("/etc/b", &[])]).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let strange = text.replace("\"owner\"", "\"colour\":\"red\",\"owner\"");
    let parsed = Declaration::parse(strange.as_bytes()).unwrap();
    assert_eq!(parsed.entries[0].key(), format!("file:{long}"));
    let Entry::Unsupported(unsupported) = &parsed.entries[0] else { panic!() };
    assert!(!unsupported.shown_key().contains('\u{200f}'));
    let spelt = strange.replace("\"file:/etc/b\"", "\"file:/etc//./b\"");
    assert_eq!(Declaration::parse(spelt.as_bytes()).unwrap().entries[1].key(), "file:/etc/b");
    let module = text.replace("\"module\":\"web\"", "\"module\":{}");
    assert_eq!(Declaration::parse(module.as_bytes()).unwrap().entries[1].key(), "file:/etc/b");
    for key in ["7", "null", "\"\"", &format!("\"x:{}\"", "y".repeat(5000))] {
        let text = text.replace("\"key\":\"file:/etc/b\"", &format!("\"key\":{key}"));
        let refused = Declaration::parse(text.as_bytes());
        assert!(matches!(refused, Err(DeclarationError::Unreadable(_))), "{key}: {refused:?}");
    }
    let none = text.replace("\"key\":\"file:/etc/b\",", "");
    assert!(matches!(Declaration::parse(none.as_bytes()), Err(DeclarationError::Unreadable(_))));
}

// rule: S-22
#[test]
fn a_list_that_is_a_bomb_is_refused_by_name_whatever_it_holds() {
    let bytes = Declaration::encode(&header(), &[]).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let many = |one: &str, count: usize| vec![one; count].join(",");
    let resources =
        text.replace("\"resources\":[", &format!("\"resources\":[{}", many("0", 3 * MOST_RESOURCES)));
    let refused = Declaration::parse(resources.as_bytes()).unwrap_err();
    assert_eq!(refused, DeclarationError::TooLarge(format!("more than {MOST_RESOURCES} resources")));
    let taken = text.replace("\"taken\":[", &format!("\"taken\":[{}", many("\"a\"", MOST_TAKEN + 1)));
    let refused = Declaration::parse(taken.as_bytes()).unwrap_err();
    assert!(
        matches!(&refused, DeclarationError::Unreadable(why) if why.contains("more than 10000")),
        "{refused}"
    );
    let nested = text.replace("\"resources\":[", &format!("\"resources\":[{}", "[".repeat(100_000)));
    assert!(matches!(Declaration::parse(nested.as_bytes()), Err(DeclarationError::Unreadable(_))));
}

#[test]
fn a_part_of_a_declaration_is_its_resources_as_they_stand_there_without_needs_of_the_others() {
    let resources = [file("/a", &[]), file("/b", &["file:/a"]), file("/c", &["file:/a", "file:/b"])];
    let bytes = Declaration::encode(&header(), &resources).unwrap();
    let (whole, places) = Declaration::parse_placed(&bytes).unwrap();
    let part = |positions: &[usize]| {
        let bytes = positions.iter().map(|at| &bytes[places[*at].clone()]);
        Declaration::of_part(whole.header.clone(), bytes).unwrap()
    };
    assert_eq!(part(&[0, 1, 2]), whole);
    let expected = vec![Entry::Known(file("/b", &[])), Entry::Known(file("/c", &["file:/b"]))];
    assert_eq!(part(&[1, 2]).entries, expected);
    let twice = [0, 0].iter().map(|at: &usize| &bytes[places[*at].clone()]);
    assert!(matches!(Declaration::of_part(header(), twice), Err(DeclarationError::Twice(_))));
    let cut = std::iter::once(&bytes[places[0].start..places[0].end - 1]);
    assert!(matches!(Declaration::of_part(header(), cut), Err(DeclarationError::Unreadable(_))));
}
