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
