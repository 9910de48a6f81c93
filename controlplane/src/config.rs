//! What an operator configures, in `control.toml`. Strict: a word nobody knows is refused, with the line.
//! A file that is not there means the defaults; the command line goes before it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use tenure_protocol::token::MOST_ADDRESSES;

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
    #[error("{} cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Not TOML, an unknown word, or a value of another form.
    #[error("{}: {what}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong, with line and column.
        what: String,
    },
    /// An address to advertise is none.
    #[error("`{0}` is not an address of the form HOST:PORT")]
    Address(String),
    /// More than a token carries.
    #[error("{0} addresses are advertised, and an invitation carries at most {MOST_ADDRESSES}")]
    TooMany(usize),
    /// Times that cannot work together.
    #[error("heartbeat must be shorter than silence, and silence shorter than lease")]
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
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(source) => return Err(ConfigError::Unreadable { path: path.to_owned(), source }),
        };
        let mut form: Form = toml::from_str(&text).map_err(|error| ConfigError::Malformed {
            path: path.to_owned(),
            what: error.to_string().trim_end().replace('\n', " | "),
        })?;
        form.listen = listen.unwrap_or(form.listen);
        if !advertise.is_empty() {
            form.advertise = advertise.to_vec();
        }
        form.checked()
    }
}

impl Form {
    fn checked(self) -> Result<Config, ConfigError> {
        if self.advertise.len() > MOST_ADDRESSES {
            return Err(ConfigError::TooMany(self.advertise.len()));
        }
        if let Some(wrong) = self.advertise.iter().find(|address| !is_address(address)) {
            return Err(ConfigError::Address(tenure_protocol::text::shown(wrong, 100)));
        }
        let in_order = 0 < self.heartbeat_seconds
            && self.heartbeat_seconds < self.silence_seconds
            && self.silence_seconds < self.lease_seconds
            && self.session_minutes > 0;
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
