//! In what a unit differs from what is declared, and what has to be done about it. Pure. What somebody else has masked is
//! left masked; what cannot be is refused in words that name the way to have it (O-15, O-16).

use tenure_protocol::resource::{UnitName, UnitSpec};

use super::systemctl::{Active, Enabled, Load, Shown, Until};
use super::systemd::Act;
use crate::resource::Trouble;

/// In what a unit differs from what is declared; the error says why it can never be as declared as it stands.
pub(super) fn differences(spec: &UnitSpec, shown: &Shown) -> Result<Vec<String>, Trouble> {
    let mask = mask_differs(spec, shown)?;
    if shown.masked_by_us && mask.is_some() {
        // Behind the mask nothing else can be seen.
        return Ok(mask.into_iter().map(str::to_owned).collect());
    }
    match &shown.load {
        Load::Loaded | Load::Masked(_) => {}
        Load::NotFound if spec.masked == Some(true) => {}
        Load::NotFound => return Err(missing(&spec.name)),
        Load::Bad(word) => return Err(unreadable(&spec.name, word)),
    }
    possible(spec, shown)?;
    let enabled = enabled_differs(spec, shown)?;
    let running = running_differs(spec, shown)?;
    Ok(mask.map(str::to_owned).into_iter().chain(enabled).chain(running).collect())
}

fn missing(name: &UnitName) -> Trouble {
    let reason =
        format!("there is no unit {name} on this machine; declare the package or the file that brings it");
    Trouble::failed("unit_missing", reason)
}

fn unreadable(name: &UnitName, word: &str) -> Trouble {
    let reason = format!("the service manager cannot read it ({word}); `systemctl status {name}` says why");
    Trouble::failed("unit_unreadable", reason)
}

fn mask_differs(spec: &UnitSpec, shown: &Shown) -> Result<Option<&'static str>, Trouble> {
    let name = &spec.name;
    let wants_more = spec.enabled == Some(true) || spec.running == Some(true);
    match (spec.masked, shown.masked()) {
        (Some(true), _) if wants_more => {
            let reason = "it is declared masked, and what is masked neither runs nor starts with the machine; declare \
                either `masked`, or `enabled` and `running`";
            Err(Trouble::refused("unit_masked_and_wanted", reason))
        }
        (Some(true), Some(Until::Undone)) => Ok(None),
        (Some(true), Some(Until::Boot)) => Ok(Some("it is masked until the next boot only")),
        (Some(true), None) if shown.fragment.starts_with("/etc/systemd/system/") => {
            let reason = format!(
                "it cannot be masked: its file is {}, where the mask would have to be; declare that file absent instead",
                shown.fragment
            );
            Err(Trouble::refused("unit_not_maskable", reason))
        }
        (Some(true), None) => Ok(Some("it is not masked")),
        (Some(false) | None, Some(_)) if shown.masked_by_us => Ok(Some("it is masked, by us")),
        (Some(false) | None, Some(until)) if wants_more || spec.masked == Some(false) => {
            Err(masked(name, until))
        }
        (Some(false) | None, _) => Ok(None),
    }
}

fn masked(name: &UnitName, until: Until) -> Trouble {
    let reason = match until {
        Until::Undone => format!(
            "somebody masked it, and only they may take that back; `systemctl unmask {name}` lets it be started again"
        ),
        Until::Boot => format!(
            "somebody masked it until the next boot, and only they may take that back before; `systemctl unmask --runtime \
             {name}` lets it be started again"
        ),
    };
    Trouble::refused("unit_masked", reason)
}

/// Refuses what no act can bring about.
fn possible(spec: &UnitSpec, shown: &Shown) -> Result<(), Trouble> {
    let loaded = shown.load == Load::Loaded;
    if loaded && !spec.reload_on.is_empty() && !shown.can.reload {
        let reason = "it cannot read its configuration anew while it runs (it has no ExecReload=); declare `restart_on` \
            instead of `reload_on`";
        return Err(Trouble::refused("unit_not_reloadable", reason));
    }
    if loaded && spec.enabled == Some(false) && shown.is_enabled() {
        let goes = |what: String| Err(Trouble::refused("unit_goes_when_disabled", what));
        if shown.linked {
            return goes(format!(
                "disabling it would remove {}, the link by which systemd knows it; put the file itself there, or declare \
                 it without `enabled`",
                shown.fragment
            ));
        }
        if shown.id != spec.name.as_str() {
            let id = &shown.id;
            return goes(format!(
                "it is another name of {id}, and is gone once that is disabled; declare {id}"
            ));
        }
    }
    Ok(())
}

fn enabled_differs(spec: &UnitSpec, shown: &Shown) -> Result<Option<String>, Trouble> {
    let differs = match (spec.enabled, shown.enabled) {
        (None, _) | (Some(true), Enabled::Yes) | (Some(false), Enabled::No) => None,
        (Some(true), Enabled::Runtime) => Some("it starts with the machine until the next boot only"),
        (Some(true), Enabled::No) => Some("it does not start with the machine"),
        (Some(false), Enabled::Yes | Enabled::Runtime) => Some("it starts with the machine"),
        (Some(true), Enabled::Never) => {
            let reason = format!("it cannot be enabled: {}; declare it without `enabled`", never(shown));
            return Err(Trouble::refused("unit_not_enableable", reason));
        }
        (Some(false), Enabled::Never) if shown.unit_file == "generated" => {
            let reason = format!(
                "it cannot be disabled: {}; change that, or declare it without `enabled`",
                never(shown)
            );
            return Err(Trouble::refused("unit_not_enableable", reason));
        }
        (Some(false), Enabled::Never) => None,
    };
    Ok(differs.map(str::to_owned))
}

/// Why it cannot be enabled, after systemd's own word for it.
fn never(shown: &Shown) -> String {
    let word = match shown.unit_file.as_str() {
        "" => "without a file of its own",
        word => word,
    };
    let why = match word {
        "static" => "its file has no install section, so something else starts it".to_owned(),
        "indirect" if shown.triggered_by.is_empty() => {
            "its install section only names other units with `Also=`; declare those".to_owned()
        }
        "indirect" => format!("it is begun by {}; declare that", shown.triggered_by.join(" and ")),
        "linked" | "linked-runtime" => {
            "its file lies elsewhere, and systemd enables no link by its name; put the file itself into \
             /etc/systemd/system"
                .to_owned()
        }
        "generated" => "a program makes it at each boot, from an init script or /etc/fstab".to_owned(),
        "transient" => "a program made it for this boot only".to_owned(),
        _ => "something else starts it".to_owned(),
    };
    format!("it is {word}, {why}")
}

fn running_differs(spec: &UnitSpec, shown: &Shown) -> Result<Option<String>, Trouble> {
    let by_others = |word: &str, setting: &str| {
        let reason = format!(
            "only other units may {word} it, says its file ({setting}=); declare one of those, or this one without `running`"
        );
        Trouble::refused("unit_by_others_only", reason)
    };
    match spec.running {
        Some(true) if shown.is_up() => Ok(None),
        Some(true) if !shown.can.start && shown.active != Active::Starting => {
            Err(by_others("start", "RefuseManualStart"))
        }
        Some(true) => Ok(Some(runs(shown))),
        Some(false) if stands_still(shown) => Ok(None),
        Some(false) if !shown.can.stop => Err(by_others("stop", "RefuseManualStop")),
        Some(false) => Ok(Some("it runs".to_owned())),
        None => Ok(None),
    }
}

fn runs(shown: &Shown) -> String {
    match shown.active {
        Active::Active | Active::Inactive => "it does not run".to_owned(),
        Active::Failed => format!("it does not run: it ended with {}", shown.result),
        Active::Starting if shown.again => {
            format!("it ended with {}, and is to be started anew by itself", shown.result)
        }
        Active::Starting => "it is on its way up".to_owned(),
        Active::Stopping => "it is on its way down".to_owned(),
    }
}

const fn stands_still(shown: &Shown) -> bool {
    match shown.active {
        Active::Active | Active::Starting => false,
        Active::Inactive | Active::Failed | Active::Stopping => true,
    }
}

/// What is done with a unit that is to be restarted or reloaded besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fired {
    Nothing,
    Reload,
    Restart,
}

/// What has to be done, in order. What does not run is started and never restarted; what is to stand still is neither.
/// Before a mask everything else is done, after one is taken back everything anew: what lay behind it was not seen.
pub(crate) fn acts(spec: &UnitSpec, shown: &Shown, fired: Fired) -> Vec<Act> {
    let unmask = shown.masked_by_us && spec.masked != Some(true);
    let mask = spec.masked == Some(true) && shown.masked() != Some(Until::Undone);
    let enabled = match spec.enabled {
        Some(true) if unmask || !shown.is_enabled() => Some(Act::Enable),
        Some(false) if unmask || shown.enabled == Enabled::Yes => Some(Act::Disable),
        Some(false) if shown.enabled == Enabled::Runtime => Some(Act::DisableUntilBoot),
        Some(_) | None => None,
    };
    let running =
        if unmask { (spec.running == Some(true)).then_some(Act::Start) } else { run(spec, shown, fired) };
    // Something was changed since systemd gave it up: it may be begun again.
    let forgiven = running == Some(Act::Start) && fired > Fired::Nothing && shown.active == Active::Failed;
    let acts = [
        unmask.then_some(Act::Unmask),
        enabled,
        forgiven.then_some(Act::Forgive),
        running,
        mask.then_some(Act::Mask),
    ];
    acts.into_iter().flatten().collect()
}

fn run(spec: &UnitSpec, shown: &Shown, fired: Fired) -> Option<Act> {
    let up = shown.active == Active::Active;
    match (spec.running, fired) {
        (Some(false), _) => (!stands_still(shown)).then_some(Act::Stop),
        (Some(true), Fired::Nothing) if shown.again => None,
        (Some(true), Fired::Nothing) if shown.active == Active::Starting => Some(Act::Await),
        (Some(true), Fired::Restart | Fired::Reload) if shown.active == Active::Starting => {
            Some(Act::Restart)
        }
        (Some(true), _) if !shown.is_up() => Some(Act::Start),
        (Some(true), Fired::Restart | Fired::Reload) if !up => Some(Act::Restart),
        (Some(true) | None, Fired::Restart) if up => Some(Act::Restart),
        (Some(true) | None, Fired::Reload) if up => Some(Act::Reload),
        (Some(true) | None, _) => None,
    }
}
