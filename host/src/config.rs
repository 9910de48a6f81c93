//! `host.toml`: the few things a machine's owner may set. Absent is ordinary and means the defaults; a file that is
//! there and cannot be read as ours is refused with file, line and what is wrong, never passed over.

use std::path::Path;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use tenure_actors::file::{self, FileError, Links};
use tenure_protocol::refusal::{Explain, chain};
use tenure_protocol::text::{shown, spot};

/// A package manager, by the word for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PackageManager {
    /// apt over dpkg.
    Apt,
    /// dnf over rpm.
    Dnf,
    /// pacman.
    Pacman,
}

impl PackageManager {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Apt => "apt",
            Self::Dnf => "dnf",
            Self::Pacman => "pacman",
        }
    }
}

/// What may be set.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// How often to look for drift, as in `"10m"`; jittered. A second to a day.
    #[serde(deserialize_with = "interval")]
    pub timer: Duration,
    /// How often such a look reads the content of every declared file, as in `"4h"`; jittered. In between, a file is
    /// read where size, inode or change time say that it may have changed. Never more often than `timer`.
    #[serde(deserialize_with = "interval")]
    pub full_look: Duration,
    /// Whose packages are performed, as in `"dnf"`: for a machine where more than one database holds packages. It is
    /// read at each pass.
    pub packages: Option<PackageManager>,
    /// What is logged, as a filter like `info` or `tenure_host=debug`.
    pub log: String,
}

impl Default for Config {
    fn default() -> Self {
        // Ten minutes (H-07), and four hours: what hides from change times is found within half a working day.
        Self {
            timer: Duration::from_secs(600),
            full_look: Duration::from_secs(4 * 60 * 60),
            packages: None,
            log: String::new(),
        }
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

/// The configuration is there and cannot be used: where in it, and why.
#[derive(Debug, thiserror::Error)]
#[error("the configuration cannot be used: {0}")]
pub struct ConfigError(String);

impl Explain for ConfigError {
    fn code(&self) -> &'static str {
        "config_unusable"
    }

    fn meaning(&self) -> String {
        "nothing was started: guessing what a machine's owner meant would be worse".to_owned()
    }

    fn remedy(&self) -> String {
        "put right what is named, so that only root may write the file, or remove it to have the defaults (`timer = \"10m\"`, \
         `full_look = \"4h\"`)"
            .to_owned()
    }
}

impl Config {
    /// The configuration at `path`; the defaults when there is no file.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let file = shown(&path.display().to_string(), 300);
        let mut opened = match file::open(path, Links::Followed) {
            Ok(opened) => opened,
            Err(FileError::Absent { .. }) => return Ok(Self::default()),
            Err(error) => return Err(ConfigError(chain(&error))),
        };
        if opened.is_writable_by_all() {
            let mode = opened.mode();
            return Err(ConfigError(format!("{file} can be written by everybody (mode {mode:04o})")));
        }
        let bytes = opened.read(MOST_BYTES).map_err(|error| ConfigError(chain(&error)))?;
        let text = std::str::from_utf8(&bytes);
        let text = text.map_err(|_| ConfigError(format!("{file}: it is not UTF-8 text")))?;
        Self::parse(text).map_err(|why| ConfigError(format!("{file}{why}")))
    }

    /// The configuration that `text` is; or `:LINE:COLUMN: ` with what is wrong there, and the line itself.
    pub fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| {
            let spot = spot(text, error.span().map_or(text.len(), |span| span.start));
            let (line, column, message) = (spot.line, spot.column, shown(error.message(), 300));
            format!(":{line}:{column}: {message} — | {}", shown(spot.text, 160))
        })
    }
}

/// What is longer is no configuration of ours.
const MOST_BYTES: u64 = 256 * 1024;

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
        assert!(error.contains("host.toml:2:1: unknown field `timers`"), "{error}");
        assert!(error.ends_with(" — | timers = \"5m\""), "{error}");
    }

    #[test]
    fn a_file_that_anybody_may_write_or_that_is_none_is_refused_and_not_waited_for() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host.toml");
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o646)).unwrap();
        let refused = || Config::read(&path).unwrap_err().to_string();
        assert!(refused().ends_with("host.toml can be written by everybody (mode 0646)"), "{}", refused());
        std::fs::write(&path, b"log = \"\xff\"").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(refused().ends_with("host.toml: it is not UTF-8 text"), "{}", refused());
        std::fs::remove_file(&path).unwrap();
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(refused().ends_with("is a pipe, not a file"), "{}", refused());
    }

    #[test]
    fn a_package_manager_is_one_of_those_that_are_performed() {
        assert_eq!(Config::parse("").unwrap().packages, None);
        for which in [PackageManager::Apt, PackageManager::Dnf, PackageManager::Pacman] {
            let text = format!("packages = \"{}\"", which.as_str());
            assert_eq!(Config::parse(&text).unwrap().packages, Some(which));
        }
        let error = Config::parse("packages = \"zypper\"").unwrap_err();
        assert!(error.contains("`zypper`, expected one of `apt`, `dnf`, `pacman`"), "{error}");
    }

    #[test]
    fn an_interval_that_would_hammer_or_never_look_is_refused() {
        for wrong in ["0s", "999ms", "25h", "often", ""] {
            let error = Config::parse(&format!("timer = \"{wrong}\"")).unwrap_err();
            assert!(error.starts_with(":1:9: "), "{error}");
        }
        assert_eq!(Config::parse("timer = \"1s\"").unwrap().timer, Duration::from_secs(1));
        assert_eq!(Config::parse("timer = \"1h 30m\"").unwrap().timer, Duration::from_secs(5_400));
    }
}
