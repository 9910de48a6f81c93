//! What `up` prints while it runs: lines, each with who says it in front.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;

use tenure_protocol::text::shown;

use crate::screen::colours_are_wanted;

/// The longest line of a child.
const MOST: usize = 4000;

/// Who says a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Up,
    Control,
    Host,
}

impl Who {
    /// As it is named in sentences.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Up => "tenure up",
            Self::Control => "the control plane",
            Self::Host => "the host",
        }
    }

    const fn prefix(self) -> &'static str {
        match self {
            Self::Up => "up      │",
            Self::Control => "control │",
            Self::Host => "host    │",
        }
    }

    const fn colour(self) -> u8 {
        match self {
            Self::Up => 1,
            Self::Control => 36,
            Self::Host => 35,
        }
    }
}

/// Where the lines go; every child's reader has a clone.
#[derive(Clone)]
pub(crate) struct Lines {
    sink: Arc<dyn Fn(&str) + Send + Sync>,
    colours: bool,
}

impl Lines {
    /// To stderr. Nobody may read it: that stops nothing.
    pub(crate) fn to_stderr() -> Self {
        let sink = |line: &str| {
            let _ = std::io::stderr().write_all(line.as_bytes());
        };
        let colours = std::io::stderr().is_terminal() && colours_are_wanted();
        Self { sink: Arc::new(sink), colours }
    }

    #[cfg(test)]
    pub(crate) fn to(sink: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { sink: Arc::new(sink), colours: false }
    }

    pub(crate) fn say(&self, who: Who, line: &str) {
        let line = shown(line, MOST);
        let prefix = who.prefix();
        let line = if self.colours {
            format!("\u{1b}[{}m{prefix}\u{1b}[0m {line}\n", who.colour())
        } else {
            format!("{prefix} {line}\n")
        };
        (self.sink)(&line);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    // rule: S-20
    #[test]
    fn a_line_of_a_child_stays_one_line_and_moves_no_cursor() {
        let seen = Arc::new(Mutex::new(String::new()));
        let sink = Arc::clone(&seen);
        let lines = Lines::to(move |line| sink.lock().unwrap().push_str(line));
        lines.say(Who::Control, "ready \u{1b}[2J\nhost    │ forged");
        lines.say(Who::Host, "link up");
        assert_eq!(
            *seen.lock().unwrap(),
            "control │ ready \\u{1b}[2J\\nhost    │ forged\nhost    │ link up\n"
        );
    }
}
