//! Events in the journal's own protocol: one datagram each, with the line as a terminal would show it in MESSAGE and
//! each of the event's own fields beside it, so that a person reads it whole and a program need not. The crate for it
//! puts only the words of an event into MESSAGE, and lets nobody change that.

use std::fmt::{Debug, Write as _};
use std::io::{self, Write as _};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::{escaped, line};

/// Where systemd's journal takes datagrams.
pub(super) const SOCKET: &str = "/run/systemd/journal/socket";

/// What a value may have in bytes, and a whole datagram: far below what a socket takes, and far above what is read.
const MOST_VALUE: usize = 16 * 1024;
const MOST: usize = 128 * 1024;

/// Writes events to the journal.
pub(super) struct Journal {
    program: &'static str,
    socket: UnixDatagram,
    to: PathBuf,
}

impl Journal {
    /// One that writes to the socket at `to`; an error where nobody listens there.
    pub(super) fn at(to: &Path, program: &'static str) -> io::Result<Self> {
        UnixDatagram::unbound()?.connect(to)?;
        Ok(Self { program, socket: UnixDatagram::unbound()?, to: to.to_owned() })
    }
}

impl<S: Subscriber> Layer<S> for Journal {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        let message = line(event);
        let mut datagram = Datagram::default();
        datagram.put("MESSAGE", &message);
        datagram.put("PRIORITY", priority(*metadata.level()));
        datagram.put("SYSLOG_IDENTIFIER", self.program);
        datagram.put("TARGET", metadata.target());
        if let (Some(file), Some(at)) = (metadata.file(), metadata.line()) {
            datagram.put("CODE_FILE", file);
            datagram.put("CODE_LINE", &at.to_string());
        }
        event.record(&mut datagram);
        if self.socket.send_to(datagram.text.as_bytes(), &self.to).is_err() {
            // Its own stream is what is left; where that is gone too there is nobody to tell.
            let _ = writeln!(io::stderr(), "{message}");
        }
    }
}

/// `NAME=value` lines. No value has a line break in it: control characters are escaped.
#[derive(Default)]
struct Datagram {
    text: String,
}

impl Datagram {
    fn put(&mut self, name: &str, value: &str) {
        let value = escaped(value);
        let value = &value[..value.floor_char_boundary(MOST_VALUE)];
        if self.text.len() + name.len() + value.len() < MOST {
            // Writing to a string does not fail.
            let _ = writeln!(self.text, "{name}={value}");
        }
    }

    fn own(&mut self, field: &Field, value: &str) {
        let name = name(field.name());
        // The words of the event are in MESSAGE already.
        if !name.is_empty() && name != "MESSAGE" {
            self.put(&name, value);
        }
    }
}

impl Visit for Datagram {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.own(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.own(field, &format!("{value:?}"));
    }
}

/// A name as the journal takes it: capitals, digits and underscores, a capital first.
fn name(of: &str) -> String {
    let plain = of.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
    plain.skip_while(|c| !c.is_ascii_alphabetic()).collect()
}

/// The severities of syslog, which the journal sorts by.
const fn priority(level: Level) -> &'static str {
    match level {
        Level::ERROR => "3",
        Level::WARN => "4",
        Level::INFO => "6",
        Level::DEBUG | Level::TRACE => "7",
    }
}
