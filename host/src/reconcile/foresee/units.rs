//! Units: what would be done with each, and why. Whether one stays up when it was started nobody knows before.

use tenure_protocol::foresight::What;
use tenure_protocol::resource::{Resource, UnitSpec};

use super::ahead::There;
use super::{Foresight, Said, kept};
use crate::ground::own::is_own_unit;
use crate::reconcile::plan::{Decision, Sight};
use crate::resource::unit::{Act, Load, Shown, acts};
use crate::resource::{Seen, Trouble};

impl Foresight<'_> {
    pub(super) fn unit(
        &self,
        resource: &Resource,
        spec: &UnitSpec,
        decision: &Decision,
        sight: &Result<Sight, Trouble>,
    ) -> Said {
        let due = !matches!(decision, Decision::Keep(_));
        let missing =
            matches!(sight, Ok(Sight { seen: Seen::Unit(shown), .. }) if shown.load == Load::NotFound);
        let said = match (decision, sight) {
            (Decision::Stop(_), _) if missing => self.brought(spec),
            (Decision::Stop(trouble), _) => Some(self.later(trouble.clone())),
            (_, Ok(Sight { seen: Seen::Unit(shown), .. })) => self.acted_on(resource, spec, shown, decision),
            (_, _) => None,
        };
        let trouble = || match decision {
            Decision::Stop(trouble) => self.later(trouble.clone()),
            Decision::Keep(_) | Decision::Change(_) | Decision::Hold(_) => kept(None),
        };
        let said = said.unwrap_or_else(trouble);
        let acts = said.what != What::Keep;
        self.before_reading(spec, self.waits(resource).filter(|_| due || acts).unwrap_or(said))
    }

    /// What is seen of a unit now may be how it was before its file was changed: by a pass that was cut short, or by one
    /// whose files systemd did not read. What is held, waits, or is no unit that may be touched stays so whatever it reads;
    /// one that is refused for how systemd shows it does not.
    fn before_reading(&self, spec: &UnitSpec, said: Said) -> Said {
        let is_beyond =
            is_own_unit(spec.name.as_str()) || matches!(said.code, Some("no_service_manager" | "sandbox"));
        let by_rule = said.what == What::Refuse && is_beyond;
        if !self.unread || by_rule || matches!(said.what, What::Hold | What::Wait) {
            return said;
        }
        let mut detail = said.detail;
        detail.push(
            "systemd has not read all changed unit files yet, and a pass has it read them first".to_owned(),
        );
        Said { what: What::CannotKnow, code: Some("cut_short"), detail }
    }

    /// What is not there yet comes with its file.
    fn brought(&self, spec: &UnitSpec) -> Option<Said> {
        let (key, there) = self.ahead.file_of(&spec.name)?;
        if there == There::Nothing {
            return None;
        }
        let mut detail = vec![format!("it comes with {key}, and is read by systemd then")];
        detail.extend((spec.enabled == Some(true)).then(|| word(Act::Enable).to_owned()));
        detail.extend((spec.running == Some(true)).then(|| word(Act::Start).to_owned()));
        // Without anything to do it is as declared as soon as it is there.
        let what = if detail.len() > 1 { What::Change } else { What::Keep };
        Some(Said::plain(what, detail))
    }

    fn acted_on(
        &self,
        resource: &Resource,
        spec: &UnitSpec,
        shown: &Shown,
        decision: &Decision,
    ) -> Option<Said> {
        let record = self.records.get(&resource.key.to_string());
        let (fired, key) = self.triggers.fired(spec, record, self.site.tools.began(shown, self.now));
        let acts = acts(spec, shown, fired);
        let mut detail = match decision {
            Decision::Change(change) => change.differs.clone(),
            Decision::Keep(_) | Decision::Hold(_) | Decision::Stop(_) => Vec::new(),
        };
        if let Some((key, There::Nothing)) = self.ahead.file_of(&spec.name) {
            detail.push(format!(
                "its file {key} is removed before it, and what systemd makes of it is known then"
            ));
            return Some(Said { what: What::CannotKnow, code: Some("unit_file_goes"), detail });
        }
        if acts.is_empty() {
            return None;
        }
        let awaited = acts.iter().all(|act| *act == Act::Await);
        for act in acts {
            let follows = matches!(act, Act::Restart | Act::Reload);
            let why = key.filter(|_| follows).map(|key| format!(", since {key} would be changed"));
            detail.push(format!("{}{}", word(act), why.unwrap_or_default()));
        }
        if awaited {
            return Some(Said { what: What::CannotKnow, code: Some("unit_starting"), detail });
        }
        Some(Said::plain(What::Change, detail))
    }
}

const fn word(act: Act) -> &'static str {
    match act {
        Act::Enable => "it would be enabled",
        Act::Disable => "it would be disabled",
        Act::DisableUntilBoot => "it would be disabled, which it is not until the next boot only",
        Act::Start => "it would be started",
        Act::Await => "it is on its way up, and would be waited for",
        Act::Stop => "it would be stopped",
        Act::Restart => "it would be restarted",
        Act::Reload => "it would be reloaded",
        Act::Mask => "it would be masked",
        Act::Unmask => "our mask would be taken off",
        Act::Forgive => "systemd would be told to forget that it failed",
    }
}
