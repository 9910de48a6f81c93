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
fn a_word_nobody_knows_is_refused_with_its_line() {
    let refused = read("listen = \"127.0.0.1:1\"\nadvertize = [\"a:1\"]\n").unwrap_err().to_string();
    assert!(refused.contains("advertize") && refused.contains("line 2"), "{refused}");
}

#[test]
fn an_address_without_a_port_and_times_that_cannot_work_are_refused() {
    assert!(matches!(read("advertise = [\"host\"]"), Err(ConfigError::Address(_))));
    assert!(matches!(read("advertise = [\"a b:1\"]"), Err(ConfigError::Address(_))));
    assert!(matches!(read("heartbeat_seconds = 100"), Err(ConfigError::Times)));
}
