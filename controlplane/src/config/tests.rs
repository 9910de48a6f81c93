use super::*;

fn read(text: &str) -> Result<Config, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control.toml");
    std::fs::write(&path, text).unwrap();
    Config::read(&path, None, &[])
}

#[test]
fn without_a_file_the_defaults_hold() {
    let config = Config::read(Path::new("/nonexistent/control.toml"), None, &[]).unwrap();
    assert_eq!(config.listen.port(), 7443);
    assert!(config.advertise.is_empty());
    assert_eq!((config.lease, config.heartbeat), (Duration::from_secs(90), Duration::from_secs(10)));
}

#[test]
fn the_command_line_goes_before_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control.toml");
    std::fs::write(&path, "listen = \"127.0.0.1:1\"\nadvertise = [\"a:1\"]\n").unwrap();
    let config =
        Config::read(&path, Some(SocketAddr::from(([127, 0, 0, 1], 2))), &["b:2".to_owned()]).unwrap();
    assert_eq!((config.listen.port(), config.advertise), (2, vec!["b:2".to_owned()]));
}

#[test]
fn what_is_wrong_is_refused_with_file_line_and_column_and_the_line_itself() {
    for (text, wanted) in [
        ("listen = \"127.0.0.1:1\"\nadvertize = [\"a:1\"]\n", "control.toml:2:1: unknown field `advertize`"),
        ("listen = \"127.0.0.1:1\"\nadvertize = [\"a:1\"]\n", " — | advertize = [\"a:1\"]"),
        ("listen = \"nowhere\"\n", "control.toml:1:10: "),
        ("log = \"a\"\nlog = \"b\"\n", "control.toml:2:1: duplicate key"),
        ("lease_seconds = \"90\"", "control.toml:1:17: "),
        ("[listen", "control.toml:1:"),
    ] {
        let refused = read(text).unwrap_err().to_string();
        assert!(refused.contains(wanted), "{wanted}: {refused}");
        assert!(!refused.contains('\n'), "{refused}");
    }
}

#[test]
fn a_file_that_anybody_may_write_is_no_text_or_no_file_is_refused_and_not_waited_for() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control.toml");
    let refused = || Config::read(&path, None, &[]).unwrap_err();
    std::fs::write(&path, "log = \"\"\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert!(refused().to_string().ends_with("can be written by everybody (mode 0666)"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o664)).unwrap();
    Config::read(&path, None, &[]).unwrap();
    std::fs::write(&path, b"log = \"\xff\"\n").unwrap();
    assert!(refused().to_string().ends_with(": it is not UTF-8 text"));
    std::fs::remove_file(&path).unwrap();
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(matches!(refused(), ConfigError::Unreadable(FileError::NotAFile { what: "a pipe", .. })));
}

#[test]
fn an_address_without_a_port_and_times_that_cannot_work_are_refused() {
    assert!(matches!(read("advertise = [\"host\"]"), Err(ConfigError::Address(_))));
    assert!(matches!(read("advertise = [\"a b:1\"]"), Err(ConfigError::Address(_))));
    for times in [
        "heartbeat_seconds = 100",
        "lease_seconds = 9223372036854775807",
        "session_minutes = 0",
        "session_minutes = 999999",
    ] {
        assert!(matches!(read(times), Err(ConfigError::Times)), "{times}");
    }
}
