use super::*;

fn manifest() -> NodeManifest {
    NodeManifest {
        manifest: 1,
        node: NodeId::new("edge-1").unwrap(),
        node_uuid: NodeUuid::from_bytes([3; 16]),
        provider_uuid: None,
        control_plane_id: Some(ControlPlaneId::from_bytes([1; 16])),
        control_plane_url: "control.example:7443".into(),
        generation: Generation(1),
        mode: Mode::Converged,
        stack_version: None,
        host_version: "0.1.0".into(),
        components: BTreeMap::new(),
        enrolled_at: Millis(1_700_000_000_000),
        bootstrapped_at: None,
    }
}

// rule: I-01
#[test]
fn a_manifest_carries_who_the_machine_is_and_is_read_back() {
    let bytes = manifest().encode().unwrap();
    assert_eq!(NodeManifest::parse(&bytes).unwrap(), manifest());
    let text = String::from_utf8(bytes).unwrap();
    for field in [
        "node",
        "node_uuid",
        "provider_uuid",
        "control_plane_id",
        "control_plane_url",
        "stack_version",
        "host_version",
        "components",
        "enrolled_at",
        "bootstrapped_at",
    ] {
        assert!(text.contains(&format!("\"{field}\"")), "{field}");
    }
}

// rule: I-02
#[test]
fn a_manifest_has_no_field_that_is_secret_or_compared_for_trust() {
    let fields: serde_json::Value = serde_json::from_slice(&manifest().encode().unwrap()).unwrap();
    let names: Vec<&String> = fields.as_object().unwrap().keys().collect();
    for word in
        ["key", "secret", "token", "password", "fingerprint", "fencing", "digest", "proof", "signature"]
    {
        assert!(!names.iter().any(|name| name.contains(word)), "{word} in {names:?}");
    }
}

// rule: I-04
#[test]
fn a_manifest_that_is_not_ours_is_unreadable_and_not_absent() {
    let good = manifest().encode().unwrap();
    for bad in [&b""[..], b"\0\0\0\0", b"{}", b"null", b"Welcome to edge-1!\n", &good[..good.len() / 2]] {
        assert!(NodeManifest::parse(bad).is_err());
    }
    assert!(NodeManifest::parse(&vec![b' '; MOST_BYTES + 1]).is_err());
    let newer = String::from_utf8(good).unwrap().replace("\"manifest\": 1", "\"manifest\": 2");
    assert!(NodeManifest::parse(newer.as_bytes()).unwrap_err().to_string().contains("form is 2"));
}

// rule: S-10
#[test]
fn an_older_reader_ignores_what_a_newer_host_added() {
    let text = String::from_utf8(manifest().encode().unwrap()).unwrap();
    let newer = text.replacen('{', "{\"mood\": \"fine\",", 1);
    assert_eq!(NodeManifest::parse(newer.as_bytes()).unwrap(), manifest());
}

// rule: I-06
#[test]
fn a_manifest_belongs_by_id_and_only_without_one_by_address() {
    let ours = Some(ControlPlaneId::from_bytes([1; 16]));
    let theirs = Some(ControlPlaneId::from_bytes([9; 16]));
    assert!(manifest().belongs_to(ours, "elsewhere:1"));
    assert!(!manifest().belongs_to(theirs, "control.example:7443"));

    let without = NodeManifest { control_plane_id: None, ..manifest() };
    assert!(without.belongs_to(ours, "https://Control.Example./"));
    assert!(!without.belongs_to(ours, "control.example:7444"));
    assert!(manifest().belongs_to(None, "tenure://control.example"));

    let nobodys = NodeManifest { control_plane_id: None, control_plane_url: String::new(), ..manifest() };
    assert!(!nobodys.belongs_to(ours, ""));
    assert!(!nobodys.belongs_to(None, ""));
    assert!(!nobodys.belongs_to(None, "https://"));
}
