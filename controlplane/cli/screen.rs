//! Where a command writes. Results go to stdout, everything said about them to stderr. A reader that closed the pipe
//! has seen enough: that ends the output and changes nothing about the command.

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal as _, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

use crate::ending::{Exit, Trouble};
use crate::table;

/// The fewest bytes whose progress is shown.
const WORTH_A_BAR: u64 = 1024 * 1024;

pub(crate) struct Screen {
    out: Box<dyn Write>,
    err: Box<dyn Write>,
    json: bool,
    out_closed: bool,
    /// How wide a table may be; none: as wide as it is.
    width: Option<u16>,
    out_colour: bool,
    bars: bool,
}

/// What a line means, for those who see colours.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tone {
    Added,
    Changed,
    Gone,
}

impl Tone {
    /// Of a line of a difference; none: it says what is the same, or is a sentence.
    pub(crate) fn of_a_diff(line: &str) -> Option<Self> {
        match line.as_bytes().first() {
            Some(b'+') => Some(Self::Added),
            Some(b'-') => Some(Self::Gone),
            _ => None,
        }
    }
}

impl Screen {
    pub(crate) fn of_this_process(json: bool) -> Self {
        let out_terminal = std::io::stdout().is_terminal();
        Self {
            out: Box::new(std::io::stdout()),
            err: Box::new(std::io::stderr()),
            json,
            out_closed: false,
            width: out_terminal.then(table::width_of_the_terminal),
            out_colour: out_terminal && colours_are_wanted(),
            bars: std::io::stderr().is_terminal(),
        }
    }

    /// Whether programs read it.
    pub(crate) const fn is_json(&self) -> bool {
        self.json
    }

    /// Whether whoever read stdout has gone.
    pub(crate) const fn is_closed(&self) -> bool {
        self.out_closed
    }

    pub(crate) fn table(&self, header: &[&str], rows: Vec<Vec<String>>) -> String {
        table::table(header, rows, self.width)
    }

    /// A part of the result.
    pub(crate) fn print(&mut self, text: &str) -> Result<(), Trouble> {
        if self.out_closed {
            return Ok(());
        }
        match self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.out_closed = true;
                Ok(())
            }
            Err(error) => Err(Trouble::ours("the result could not be written", &error)),
        }
    }

    /// The whole result, for programs.
    pub(crate) fn print_json(&mut self, value: &Value) -> Result<(), Trouble> {
        self.print(&format!("{value:#}\n"))
    }

    /// Something said beside the result. Nobody may be there to read it.
    pub(crate) fn say(&mut self, line: &str) {
        let _ = writeln!(self.err, "{line}");
    }

    /// Why a command ends as it does, beside a result that says so to programs itself.
    pub(crate) fn explain(&mut self, trouble: &Trouble) {
        let _ = self.err.write_all(trouble.text().as_bytes());
    }

    /// Why the command did not do what was asked.
    pub(crate) fn trouble(&mut self, trouble: &Trouble) -> Exit {
        self.explain(trouble);
        if self.json {
            let _ = self.print_json(&json!({ "refusal": trouble.refusal }));
        }
        trouble.exit
    }

    pub(crate) fn paint<'a>(&self, tone: Option<Tone>, text: &'a str) -> Cow<'a, str> {
        let Some(tone) = tone.filter(|_| self.out_colour) else { return Cow::Borrowed(text) };
        let colour = match tone {
            Tone::Added => 32,
            Tone::Changed => 33,
            Tone::Gone => 31,
        };
        Cow::Owned(format!("\u{1b}[{colour}m{text}\u{1b}[0m"))
    }

    /// A bar on stderr; nothing at all where that is no terminal.
    pub(crate) fn bar(&self, what: &'static str, length: u64) -> ProgressBar {
        let bar = ProgressBar::with_draw_target(Some(length), self.bars_target());
        dress(bar, what, "{msg} [{bar:30}] {pos}/{len} {prefix}")
    }

    /// The same of bytes. What is done in the blink of an eye needs none.
    pub(crate) fn bytes_bar(&self, what: &'static str, length: u64) -> ProgressBar {
        if length < WORTH_A_BAR {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::with_draw_target(Some(length), self.bars_target());
        dress(bar, what, "{msg} [{bar:30}] {bytes}/{total_bytes}")
    }

    fn bars_target(&self) -> ProgressDrawTarget {
        if self.bars { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() }
    }
}

fn dress(bar: ProgressBar, what: &'static str, template: &str) -> ProgressBar {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar.with_message(what)
}

/// The custom of https://no-color.org.
pub(crate) fn colours_are_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|no| no.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

#[cfg(test)]
pub(crate) mod tests;
