//! Having the service manager read its unit files anew: once for all that was changed, before a unit is looked at or
//! begun that may hang on it, and at the end of a pass for what was changed after that. That it is due stands in the
//! store before the first change, so that a death in between leaves it to the next pass. It changes no file itself.

use super::apply::Engine;
use crate::resource::Trouble;

/// What there is to read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Unread {
    /// Nothing was changed since it last read all.
    #[default]
    Nothing,
    /// Something was.
    Something,
    /// It was asked to, and did not: once more in the next pass, or after the next change.
    Refused,
}

impl Engine<'_> {
    /// Has read what the pass before left unread, where it was cut short or refused: before anybody looks at a unit, since
    /// until then the service manager tells of units as they were.
    pub(super) fn reread_what_was_left(&mut self, left: bool) {
        if left {
            (self.unread, self.noted_unread) = (Unread::Something, true);
            drop(self.reread_units());
        }
    }

    /// Notes, once a pass, that files are about to be changed which the service manager will have to read. Where that
    /// cannot be noted the pass is stopped.
    pub(super) fn note_unread(&mut self) {
        let is_due = !self.noted_unread && self.halted().is_none() && self.site.tools.reads_units();
        if is_due {
            match self.store.note_unread_units() {
                Ok(()) => self.noted_unread = true,
                Err(error) => self.stop(&error),
            }
        }
    }

    /// Has the service manager read its unit files anew, where one was changed since it last did.
    pub(super) fn reread_units(&mut self) -> Result<(), Trouble> {
        if self.unread != Unread::Something {
            return Ok(());
        }
        let read = match self.site.tools.daemon_reload() {
            // One that is not there will read all once it is.
            Err(trouble) if trouble.code != "unit_failed" => Ok(()),
            read => read,
        };
        self.unread = if read.is_ok() { Unread::Nothing } else { Unread::Refused };
        if let Err(trouble) = &read {
            tracing::warn!(why = trouble.reason, "the service manager has not read its unit files anew");
        }
        read
    }

    /// The same when a pass is over: what was noted is done with once all is read.
    pub(super) fn end_rereading(&mut self) {
        // Whoever needed it has failed by name already; the note stays.
        drop(self.reread_units());
        if self.noted_unread && self.unread == Unread::Nothing {
            match self.store.forget_unread_units() {
                Ok(()) => self.noted_unread = false,
                Err(error) => self.stop(&error),
            }
        }
    }
}
