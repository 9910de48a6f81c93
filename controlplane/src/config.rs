//! What an operator configures, in `control.toml`. Strict: a word nobody knows is refused, with the line.
//! A file that is not there means the defaults; the command line goes before it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use tenure_actors::file::{self, FileError, Links, Opened};
use tenure_protocol::text::{shown, spot};
use tenure_protocol::token::MOST_ADDRESSES;

/// What is longer is no configuration of ours.
const MOST_BYTES: u64 = 256 * 1024;
/// A day, in seconds: a node that was silent for longer is not to be called ready.
const LONGEST_LEASE: u64 = 24 * 60 * 60;
/// Thirty days, in minutes: what lives longer is no session (N-06).
pub(crate) const LONGEST_SESSION: u64 = 30 * 24 * 60;

/// What holds for this run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Where the link is listened on.
    pub listen: SocketAddr,
    /// Where hosts reach it, as `host:port`; goes into every invitation.
    pub advertise: Vec<String>,
    /// How long silence is believed.
    pub lease: Duration,
    /// How often a host beats.
    pub heartbeat: Duration,
    /// After how long without a word a connection counts as gone.
    pub silence: Duration,
    /// How long a session token lives.
    pub session_life: Duration,
    /// The log filter; empty: the default one.
    pub log: String,
}

/// Why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It is there and cannot be read.
    #[error(transparent)]
    Unreadable(#[from] FileError),
    /// Whoever may write it says where hosts are sent.
    #[error("{} can be written by everybody (mode {mode:04o})", path.display())]
    OpenToAll {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Not TOML, an unknown word, or a value of another form.
    #[error("{}{what}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Line, column, what is wrong, and the line itself.
        what: String,
    },
    /// An address to advertise is none.
    #[error("`{0}` is not an address of the form HOST:PORT")]
    Address(String),
    /// More than a token carries.
    #[error("{0} addresses are advertised, and an invitation carries at most {MOST_ADDRESSES}")]
    TooMany(usize),
    /// Times that cannot work together.
    #[error(
        "heartbeat must be shorter than silence, silence shorter than lease, lease at most a day, and a session from a minute to 30 days"
    )]
    Times,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Form {
    listen: SocketAddr,
    advertise: Vec<String>,
    lease_seconds: u64,
    heartbeat_seconds: u64,
    silence_seconds: u64,
    session_minutes: u64,
    log: String,
}

impl Default for Form {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([0, 0, 0, 0], 7443)),
            advertise: Vec::new(),
            lease_seconds: 90,
            heartbeat_seconds: 10,
            silence_seconds: 25,
            session_minutes: 30,
            log: String::new(),
        }
    }
}

impl Config {
    /// Reads the file if there is one; what the command line said goes before it.
    pub fn read(path: &Path, listen: Option<SocketAddr>, advertise: &[String]) -> Result<Self, ConfigError> {
        let mut form = match file::open(path, Links::Followed) {
            Ok(opened) => Form::read(path, opened)?,
            Err(FileError::Absent { .. }) => Form::default(),
            Err(error) => return Err(error.into()),
        };
        form.listen = listen.unwrap_or(form.listen);
        if !advertise.is_empty() {
            form.advertise = advertise.to_vec();
        }
        form.checked()
    }
}

impl Form {
    fn read(path: &Path, mut opened: Opened) -> Result<Self, ConfigError> {
        let path = path.to_owned();
        if opened.is_writable_by_all() {
            return Err(ConfigError::OpenToAll { path, mode: opened.mode() });
        }
        let bytes = opened.read(MOST_BYTES)?;
        let Ok(text) = std::str::from_utf8(&bytes) else {
            return Err(ConfigError::Malformed { path, what: ": it is not UTF-8 text".to_owned() });
        };
        toml::from_str(text).map_err(|error| {
            let spot = spot(text, error.span().map_or(text.len(), |span| span.start));
            let (line, column, message) = (spot.line, spot.column, shown(error.message(), 300));
            let what = format!(":{line}:{column}: {message} — | {}", shown(spot.text, 160));
            ConfigError::Malformed { path, what }
        })
    }

    fn checked(self) -> Result<Config, ConfigError> {
        if self.advertise.len() > MOST_ADDRESSES {
            return Err(ConfigError::TooMany(self.advertise.len()));
        }
        if let Some(wrong) = self.advertise.iter().find(|address| !is_address(address)) {
            return Err(ConfigError::Address(shown(wrong, 100)));
        }
        let in_order = 0 < self.heartbeat_seconds
            && self.heartbeat_seconds < self.silence_seconds
            && self.silence_seconds < self.lease_seconds
            && self.lease_seconds <= LONGEST_LEASE
            && (1..=LONGEST_SESSION).contains(&self.session_minutes);
        if !in_order {
            return Err(ConfigError::Times);
        }
        Ok(Config {
            listen: self.listen,
            advertise: self.advertise,
            lease: Duration::from_secs(self.lease_seconds),
            heartbeat: Duration::from_secs(self.heartbeat_seconds),
            silence: Duration::from_secs(self.silence_seconds),
            session_life: Duration::from_secs(self.session_minutes.saturating_mul(60)),
            log: self.log,
        })
    }
}

fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':' | '[' | ']' | '%');
    !host.is_empty()
        && text.len() <= 200
        && host.chars().all(plain)
        && port.parse::<u16>().is_ok_and(|p| p > 0)
}

#[cfg(test)]
mod tests;
