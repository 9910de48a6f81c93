//! Logging: to the journal, line and fields, when the journal reads us, else one compact line per event on stderr. It
//! never writes more than one line for one event, and never puts ractor's own spans into it. Each `main` calls it first.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::{DefaultFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use crate::clock::{self, SharedClock};
use journal::Journal;

mod journal;
#[cfg(test)]
mod tests;

/// Where the log goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Log {
    /// The journal when stderr is connected to it, else the terminal's form.
    #[default]
    Auto,
    /// One line per event on stderr.
    Terminal,
    /// The journal; stderr when its socket is absent.
    Journal,
}

/// The filter when nobody says otherwise: our own events, and ractor only when something is wrong.
pub const DEFAULT_FILTER: &str = "info,ractor=warn";

/// Start logging for this process. `level` is a filter like [`DEFAULT_FILTER`] (empty means that one); the variable
/// `TENURE_LOG` goes before it. A filter that cannot be read is replaced by the default one and said so. Calling it
/// again is harmless and changes nothing.
pub fn start(program: &'static str, choice: Log, level: &str) {
    let asked = std::env::var("TENURE_LOG").ok().filter(|text| !text.trim().is_empty());
    let asked = asked.as_deref().unwrap_or(level);
    let (filter, complaint) = filter(asked);
    let registry = tracing_subscriber::registry().with(filter);
    if registry.with(output(program, choice)).try_init().is_err() {
        return;
    }
    if let Some(error) = complaint {
        tracing::warn!(filter = asked, %error, "the log filter cannot be read: using {DEFAULT_FILTER}");
    }
}

type Output = Box<dyn Layer<tracing_subscriber::layer::Layered<EnvFilter, Registry>> + Send + Sync>;

fn output(program: &'static str, choice: Log) -> Output {
    let journal = match choice {
        Log::Terminal => false,
        Log::Journal => true,
        Log::Auto => {
            stderr_is_journal(std::env::var("JOURNAL_STREAM").ok().as_deref(), Path::new("/proc/self/fd/2"))
        }
    };
    // The journal's socket may be absent (a rescue shell, a chroot); then stderr is better than nothing.
    match journal.then(|| Journal::at(Path::new(journal::SOCKET), program)) {
        Some(Ok(layer)) => layer.boxed(),
        Some(Err(_)) | None => tracing_subscriber::fmt::layer()
            .with_writer(std::io::stderr)
            .with_ansi(false)
            .event_format(OneLine { clock: clock::system() })
            .boxed(),
    }
}

fn filter(asked: &str) -> (EnvFilter, Option<String>) {
    let asked = if asked.trim().is_empty() { DEFAULT_FILTER } else { asked };
    match EnvFilter::try_new(asked) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new(DEFAULT_FILTER), Some(error.to_string())),
    }
}

/// systemd names the stream it gave us as `device:inode`. A child that inherited the variable but has its stderr
/// somewhere else is not talking to the journal, so the two are compared.
fn stderr_is_journal(stream: Option<&str>, stderr: &Path) -> bool {
    let Some((device, inode)) = stream.and_then(|text| text.split_once(':')) else { return false };
    std::fs::metadata(stderr)
        .is_ok_and(|file| device.parse() == Ok(file.dev()) && inode.parse() == Ok(file.ino()))
}

/// `HH:MM:SSZ level message key=value …`
struct OneLine {
    clock: SharedClock,
}

impl<S, N> FormatEvent<S, N> for OneLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let (hour, minute, second) = self.clock.now().time_of_day();
        let level = word(*event.metadata().level());
        writeln!(out, "{hour:02}:{minute:02}:{second:02}Z {level} {}", line(event))
    }
}

/// `message key=value …`
fn line(event: &Event<'_>) -> String {
    let mut fields = String::new();
    // Writing to a string does not fail; a value that cannot be shown leaves what came before it.
    let _ = DefaultFields::new().format_fields(Writer::new(&mut fields), event);
    escaped(&fields)
}

/// A text with a line break in it would forge a second event.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { escaped.extend(c.escape_default()) } else { escaped.push(c) }
    }
    escaped
}

fn word(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    }
}
