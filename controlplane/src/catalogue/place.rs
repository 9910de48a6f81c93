//! Where in the folder something stands: file, line and column, with the line itself.

use std::fmt;
use std::ops::Range;

use tenure_protocol::text::{Spot, shown, spot};

/// A text file of the folder, by name. Copied freely: it only borrows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'f> {
    /// Its path in the folder.
    pub(super) file: &'f str,
    /// What it says.
    pub(super) text: &'f str,
}

/// One place in a file. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    file: String,
    line: usize,
    column: usize,
    text: String,
}

/// A longer line is cut here when it is shown.
const MOST_SHOWN: usize = 160;

impl Source<'_> {
    /// The place of the byte at `at`; past the end counts as the end.
    pub(super) fn place(self, at: usize) -> Place {
        let Spot { line, column, text } = spot(self.text, at);
        Place { file: shown(self.file, 200), line, column, text: shown(text, MOST_SHOWN) }
    }

    /// The byte at which line number `line` (from 1) begins.
    pub(super) fn line_start(self, line: usize) -> usize {
        let lines = self.text.split_inclusive('\n').take(line.saturating_sub(1));
        lines.map(str::len).sum()
    }

    /// Where `value`, written at `span`, begins inside its quotes; none: it is written with escapes.
    pub(super) fn inside(self, span: &Range<usize>, value: &str) -> Option<usize> {
        self.text.get(span.clone())?.find(value).map(|found| span.start + found)
    }
}

impl Place {
    /// The line that stands there, bounded and escaped.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}
