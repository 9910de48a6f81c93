//! Whether units stay up: right after they were begun, and at every look since. One that ends is not what was declared,
//! though whoever looks may find it up between two of its falls.

use std::collections::HashMap;
use std::time::Duration;

use tenure_protocol::resource::UnitSpec;

use super::apply::Engine;
use super::units::Turn;
use crate::resource::unit::{Act, Active, Shown};
use crate::resource::{Seen, Site, Trouble};
use crate::store::{Record, State};

/// How long what was started is given to fall over again.
const SETTLE: Duration = Duration::from_millis(1_500);
/// How often what is still on its way up is looked at again, and how many times.
const AGAIN: Duration = Duration::from_secs(1);
const MOST_LOOKS: usize = 30;

/// One that was started anew by itself so often, and the last time less than this ago, does not stay up.
const OFTEN: u64 = 2;
const YOUNG: Duration = Duration::from_secs(60);

impl Engine<'_> {
    /// One that ends again and again does not run, though whoever looks may find it up.
    pub(super) fn stays(&self, spec: &UnitSpec, shown: &Shown) -> Result<(), Trouble> {
        let has_fallen = self.site.tools.has_fallen(spec.name.as_str(), shown);
        let young = self.site.tools.age(shown).is_some_and(|age| age < YOUNG);
        if shown.again || (has_fallen || shown.restarts >= OFTEN && young) && !shown.passes {
            let name = &spec.name;
            let how = if shown.again { format!("; it ended with {}", shown.result) } else { String::new() };
            let what = match shown.restarts {
                // It has fallen for the first time, and waits.
                0 => format!("it ended with {}, and is to be started anew by itself", shown.result),
                1 => format!("it was started anew by itself once and does not stay up{how}"),
                times => format!("it was started anew by itself {times} times and does not stay up{how}"),
            };
            let reason = format!("{what}; `journalctl -u {name}` on the machine says why");
            return Err(Trouble::failed("unit_died", reason));
        }
        let before = self.book.before(&format!("unit:{}", spec.name));
        let had_died = before.is_some_and(|before| before.code.as_deref() == Some("unit_died"));
        if had_died && young && !shown.passes {
            let reason = format!(
                "it ended, and has not been up for a minute since; `journalctl -u {}` on the machine says why",
                spec.name
            );
            return Err(Trouble::failed("unit_died", reason));
        }
        Ok(())
    }

    /// One that a pass of ours began, and that ended badly soon after while nothing was changed: being begun once more is
    /// no cure, though it is up for now. One that the machine's start or somebody else began is put right without a word.
    pub(super) fn ails(&self, spec: &UnitSpec, record: Option<&Record>, shown: &Shown) -> Option<Trouble> {
        let record = record
            .filter(|record| matches!(record.applied, State::Unit { running: Some(true), .. }))
            .filter(|_| spec.running == Some(true) && !self.touched)?;
        let by_us = self.began(shown).is_some_and(|began| began <= record.recorded_at);
        let ended_badly = shown.active == Active::Failed || !shown.is_up() && shown.result != "success";
        let lived = shown.lived().filter(|lived| by_us && ended_badly && *lived < YOUNG)?;
        let (name, result, lived) = (&spec.name, &shown.result, lived.as_secs());
        let reason = format!(
            "it ended with {result} {lived} s after it was last begun, and was begun anew; `journalctl -u {name}` on the \
             machine says why"
        );
        Some(Trouble::failed("unit_died", reason))
    }

    /// Keeps how often one that was just begun has started anew by itself: the next look tells what came after.
    pub(super) fn note_falls(&self, turn: &Turn<'_>, last: &Seen) {
        if let Seen::Unit(shown) = last {
            self.site.tools.has_fallen(turn.spec.name.as_str(), shown);
        }
    }
}

impl Turn<'_> {
    /// It runs, as the same run, since it was first looked at.
    pub(super) fn stays_up(
        &self,
        shown: &Shown,
        first: Option<&Result<Seen, Trouble>>,
    ) -> Result<(), Trouble> {
        let name = &self.spec.name;
        let died = |how: String| {
            let said = self.said.as_ref().err().map(|said| format!("; {}", said.reason)).unwrap_or_default();
            let reason = format!("{how}{said}; `journalctl -u {name}` on the machine says why");
            Err(Trouble::failed("unit_died", reason))
        };
        if shown.again {
            return died(format!(
                "it was started, ended with {}, and is to be started anew by itself",
                shown.result
            ));
        }
        if shown.active == Active::Starting {
            let reason = format!(
                "it is still on its way up after {MOST_LOOKS} s; systemd goes on with it, and the next pass looks again; \
                 `systemctl status {name}` says what it waits for"
            );
            return Err(Trouble::outstanding("unit_starting", reason));
        }
        if shown.active == Active::Failed || !shown.is_up() && shown.result != "success" {
            return died(format!("it was started and ended with {}", shown.result));
        }
        if !shown.is_up() {
            return match &self.said {
                Err(said) => Err(said.clone()),
                Ok(()) => died("it was started and does not run".to_owned()),
            };
        }
        // systemd counts anew from each start that somebody asks for.
        let at_once = self.does(&[Act::Start, Act::Restart]) && shown.restarts > 0;
        let since = match first {
            Some(Ok(Seen::Unit(first))) => {
                first.is_up() && (first.began != shown.began || shown.restarts > first.restarts)
            }
            Some(_) | None => false,
        };
        if (at_once || since) && !shown.passes {
            return died("it was started, ended, and was started anew by itself".to_owned());
        }
        Ok(())
    }
}

pub(super) type Looks = HashMap<String, Result<Seen, Trouble>>;

/// Looks at what was acted on, twice where something was started: first at once, then when it had time to fall over.
/// What is on its way up is waited for.
pub(super) fn watch(site: &Site<'_>, turns: &[Turn<'_>]) -> (Looks, Looks) {
    let acted: Vec<&Turn<'_>> = turns.iter().filter(|turn| !turn.acts.is_empty()).collect();
    let mut last = looks(site, &acted);
    let begun: Vec<&Turn<'_>> = acted.into_iter().filter(|turn| turn.begins()).collect();
    if begun.is_empty() {
        return (Looks::new(), last);
    }
    for _ in 0..MOST_LOOKS {
        let rising = |turn: &&&Turn<'_>| match last.get(turn.spec.name.as_str()) {
            Some(Ok(Seen::Unit(shown))) => shown.active == Active::Starting && !shown.again,
            Some(_) | None => false,
        };
        let rising: Vec<&Turn<'_>> = begun.iter().filter(rising).copied().collect();
        if rising.is_empty() {
            break;
        }
        site.tools.rest(AGAIN);
        last.extend(looks(site, &rising));
    }
    let first = last.clone();
    site.tools.rest(SETTLE);
    last.extend(looks(site, &begun));
    (first, last)
}

fn looks(site: &Site<'_>, turns: &[&Turn<'_>]) -> Looks {
    let names: Vec<&str> = turns.iter().map(|turn| turn.spec.name.as_str()).collect();
    if !names.is_empty() {
        site.tools.look_at_units(&names);
    }
    let look =
        |turn: &&Turn<'_>| (turn.spec.name.as_str().to_owned(), site.observe(&turn.resource.spec, false));
    turns.iter().map(look).collect()
}
