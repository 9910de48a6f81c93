//! `host.toml`: the few things a machine's owner may set. Absent is ordinary and means the defaults; a file that is
//! there and cannot be read as ours is refused with file, line and what is wrong, never passed over.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use tenure_protocol::refusal::Explain;

/// What may be set.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// How often to look for drift, as in `"10m"`; jittered. A second to a day.
    #[serde(deserialize_with = "interval")]
    pub timer: Duration,
    /// What is logged, as a filter like `info` or `tenure_host=debug`.
    pub log: String,
}

impl Default for Config {
    fn default() -> Self {
        // Ten minutes (H-07).
        Self { timer: Duration::from_secs(600), log: String::new() }
    }
}

/// Less would be polling; more would be never looking.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

fn interval<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    match humantime::parse_duration(&text) {
        Ok(interval) if (SHORTEST..=LONGEST).contains(&interval) => Ok(interval),
        Ok(_) => Err(D::Error::custom(format_args!("`{text}` is not between 1s and 24h"))),
        Err(error) => Err(D::Error::custom(format_args!("`{text}` is no time as in 10m: {error}"))),
    }
}

/// The configuration is there and cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the configuration {} cannot be used: {why}", path.display())]
pub struct ConfigError {
    path: PathBuf,
    why: String,
}

impl Explain for ConfigError {
    fn code(&self) -> &'static str {
        "config_unusable"
    }

    fn meaning(&self) -> String {
        "nothing was started: guessing what a machine's owner meant would be worse".to_owned()
    }

    fn remedy(&self) -> String {
        "put the line right, or remove the file to have the defaults (`timer = \"10m\"`)".to_owned()
    }
}

impl Config {
    /// The configuration at `path`; the defaults when there is no file.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let unusable = |why: String| ConfigError { path: path.to_owned(), why };
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text).map_err(unusable),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(unusable(error.to_string())),
        }
    }

    /// The configuration that `text` is, or what is wrong with it and where.
    pub fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_means_the_defaults_and_a_broken_one_is_refused_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host.toml");
        assert_eq!(Config::read(&path).unwrap().timer, Duration::from_secs(600));
        std::fs::write(&path, "log = \"info\"\ntimers = \"5m\"\n").unwrap();
        let error = Config::read(&path).unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("timers"), "{error}");
    }

    #[test]
    fn an_interval_that_would_hammer_or_never_look_is_refused() {
        for wrong in ["0s", "999ms", "25h", "often", ""] {
            let error = Config::parse(&format!("timer = \"{wrong}\"")).unwrap_err();
            assert!(error.contains("line 1"), "{error}");
        }
        assert_eq!(Config::parse("timer = \"1s\"").unwrap().timer, Duration::from_secs(1));
        assert_eq!(Config::parse("timer = \"1h 30m\"").unwrap().timer, Duration::from_secs(5_400));
    }
}
