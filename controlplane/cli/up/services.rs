//! Whether our own services run on this machine already: two hosts would hold it, or two control planes answer for it.
//! It asks the service manager and changes nothing. A machine without one has no services.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::process::Stdio;
use std::time::Duration;

use tenure_protocol::refusal::Refusal;
use tokio::time::timeout;

use super::child;
use crate::ending::Trouble;

/// What would be in the way.
const SERVICES: [&str; 2] = ["tenure-host.service", "tenure-control.service"];
/// A service manager that is silent for longer is not to be relied on.
const ANSWER: Duration = Duration::from_secs(10);

/// Refused where one of them is active, or nobody can tell.
pub(crate) async fn none_is_active() -> Result<(), Trouble> {
    none_is_active_by("systemctl").await
}

/// By the word of this program.
async fn none_is_active_by(program: impl AsRef<OsStr>) -> Result<(), Trouble> {
    let asked = child::command(program)
        .arg("is-active")
        .args(SERVICES)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    match timeout(ANSWER, asked).await {
        Ok(Ok(said)) => judge(&String::from_utf8_lossy(&said.stdout)).map_err(Trouble::from),
        Ok(Err(error)) if error.kind() == ErrorKind::NotFound => Ok(()),
        Ok(Err(error)) => Err(cannot_tell(&error.to_string()).into()),
        Err(_) => Err(cannot_tell(&format!("it did not answer within {} s", ANSWER.as_secs())).into()),
    }
}

/// `said` has a line for each service, in order; none where there is no service manager to ask.
fn judge(said: &str) -> Result<(), Refusal> {
    let active: Vec<&str> = SERVICES
        .into_iter()
        .zip(said.lines())
        .filter(|(_, state)| !matches!(state.trim(), "inactive" | "failed" | "unknown" | ""))
        .map(|(service, _)| service)
        .collect();
    if active.is_empty() { Ok(()) } else { Err(in_the_way(&active)) }
}

fn in_the_way(active: &[&str]) -> Refusal {
    let verb = if active.len() == 1 { "is" } else { "are" };
    Refusal::new(
        "services_active",
        format!("{} {verb} active on this machine", active.join(" and ")),
        "it is held already, and two that hold it would undo each other's work; nothing was started",
        format!(
            "look with `systemctl status {}`; use what runs, or stop it first, or try `tenure up --sandbox`",
            active.join(" ")
        ),
    )
}

fn cannot_tell(why: &str) -> Refusal {
    Refusal::new(
        "services_unknown",
        format!("the service manager could not be asked what runs here: {why}"),
        format!("{} may be active; nothing was started", SERVICES.join(" or ")),
        "see that `systemctl is-system-running` answers, then run this again",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_of_ours_that_runs_or_is_about_to_is_named_with_how_to_see_it() {
        for (said, named) in [
            ("active\ninactive\n", "tenure-host.service is active"),
            ("inactive\nactivating\n", "tenure-control.service is active"),
            ("deactivating\nreloading\n", "tenure-host.service and tenure-control.service are active"),
        ] {
            let refusal = judge(said).unwrap_err();
            assert_eq!(refusal.code, "services_active");
            assert!(refusal.happened.contains(named), "{refusal:?}");
            assert!(refusal.remedy.contains("systemctl status tenure-"), "{refusal:?}");
        }
    }

    #[tokio::test]
    async fn a_service_manager_that_cannot_be_asked_is_no_word_that_nothing_runs_and_none_at_all_is() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("systemctl");
        std::fs::write(&program, "no program that may be run").unwrap();
        let refusal = none_is_active_by(&program).await.unwrap_err().refusal;
        assert_eq!(refusal.code, "services_unknown");
        assert!(
            refusal.happened.contains("denied") && refusal.means.contains("may be active"),
            "{refusal:?}"
        );
        std::fs::remove_file(&program).unwrap();
        none_is_active_by(&program).await.unwrap();
    }

    #[test]
    fn services_that_do_not_run_are_in_nobodys_way() {
        for said in ["inactive\ninactive\n", "failed\nunknown\n", ""] {
            assert_eq!(judge(said), Ok(()));
        }
    }
}
