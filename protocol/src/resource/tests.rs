use super::*;

#[test]
fn two_spellings_of_a_path_are_one_key() {
    let key = |text: &str| text.parse::<ResourceKey>().unwrap();
    assert_eq!(key("file:/etc//app.conf"), key("file:/etc/./app.conf"));
    assert_ne!(key("file:/etc/app.conf"), key("directory:/etc/app.conf"));
    for bad in ["/etc/x", "fiel:/etc/x", "file:etc/x", "file:/../x", "file:", ""] {
        assert!(bad.parse::<ResourceKey>().is_err(), "{bad}");
    }
}

#[test]
fn a_mode_is_octal_and_has_no_other_bit() {
    assert_eq!("0644".parse::<Mode>().unwrap().bits(), 0o644);
    assert_eq!("755".parse::<Mode>().unwrap().to_string(), "0755");
    assert_eq!("4755".parse::<Mode>().unwrap().bits(), 0o4755);
    for bad in ["", "8", "0888", "17777", "-644", "+644", "u=rw", "420u"] {
        assert!(bad.parse::<Mode>().is_err(), "{bad}");
    }
}

// rule: S-14
#[test]
fn an_owner_is_a_name_or_a_number_and_never_an_option() {
    assert_eq!("33".parse::<Principal>().unwrap(), Principal::Number(33));
    assert_eq!("www-data".parse::<Principal>().unwrap(), Principal::Name("www-data".into()));
    for bad in ["-rf", "", "a b", "a:b", "4294967295", "99999999999", "a\n", "root;id"] {
        assert!(bad.parse::<Principal>().is_err(), "{bad}");
    }
}

// rule: S-10
#[test]
fn a_field_nobody_knows_inside_a_resource_is_an_error() {
    let json = r#"{"path":"/x","absent":true,"really":true}"#;
    assert!(serde_json::from_str::<FileSpec>(json).unwrap_err().to_string().contains("unknown field"));
    assert!(serde_json::from_str::<FileSpec>(r#"{"path":"/x","absent":true,"mode":"0644"}"#).is_err());
    assert!(serde_json::from_str::<FileSpec>(r#"{"path":"/x"}"#).is_err());
    assert!(serde_json::from_str::<DirectorySpec>(r#"{"path":"/x","mode":"0755","owner":"root"}"#).is_err());
}

// rule: S-14
#[test]
fn a_package_name_is_never_an_option_a_pattern_or_an_instruction() {
    for good in ["nginx-light", "g++", "libstdc++6", "0ad", "python3.11", "tenure-host", "NetworkManager"] {
        assert!(PackageName::new(good).is_ok(), "{good}");
    }
    for bad in
        ["", "a", "-y", "nginx*", "nginx=1.0", "nginx/bookworm", "nginx-", "nginx+", "./x.deb", "a b", "a\n"]
    {
        assert!(PackageName::new(bad).is_err(), "{bad:?}");
    }
}

// rule: S-14
#[test]
fn a_package_version_is_present_absent_exact_or_a_prefix() {
    let wanted = |text: &str| text.parse::<PackageWanted>();
    assert!(wanted("present").unwrap().takes("1"));
    assert!(!wanted("absent").unwrap().takes("1"));
    assert!(wanted("1:2.3-4~bpo+1").unwrap().takes("1:2.3-4~bpo+1"));
    assert!(wanted("1.22.*").unwrap().takes("1.22.9") && !wanted("1.22.*").unwrap().takes("1.220"));
    for text in ["present", "absent", "1.0", "1.0*"] {
        assert_eq!(wanted(text).unwrap().to_string(), text);
    }
    for bad in ["", "*", "-1", "1.0;x", "1 0", "1.*.2"] {
        assert!(wanted(bad).is_err(), "{bad:?}");
    }
}

// rule: S-14
#[test]
fn a_unit_name_is_whole_and_never_an_option_a_pattern_or_a_bare_template() {
    for good in
        ["nginx.service", "wg-quick@wg0.service", "dev-sda1.swap", r"a\x2db.mount", "ssh.socket", "x.timer"]
    {
        assert!(UnitName::new(good).is_ok(), "{good}");
    }
    for bad in [
        "",
        "nginx",
        "--now.service",
        "-.mount",
        "wg-quick@.service",
        "a*.service",
        "a/b.service",
        ".service",
        "a b.service",
        "x.slice",
    ] {
        assert!(UnitName::new(bad).is_err(), "{bad:?}");
    }
    assert_eq!(
        UnitName::new("wg-quick@wg0.service").unwrap().template().as_deref(),
        Some("wg-quick@.service")
    );
    assert_eq!(UnitName::new("nginx.service").unwrap().template(), None);
}
