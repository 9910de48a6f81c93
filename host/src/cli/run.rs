//! `tenure-host run`.

use std::time::Duration;

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid};
use tenure_actors::log::{self, Log};
use tenure_protocol::refusal::{Explain as _, Refusal};
use tokio::runtime::Runtime;

use super::Done;
use crate::config::Config;
use crate::daemon::{self, Options};
use crate::ground::Ground;

/// A pass, a few reads and a fetch at the same time; more threads would only keep their stacks.
const MOST_BLOCKING: usize = 16;
/// How long what is at work when the daemon ends may take to come to its end: a pass at its last step needs a moment, and
/// the unit gives the whole of it 90 s.
const LEAVES_WITHIN: Duration = Duration::from_secs(60);

pub(super) fn run(ground: Ground, die_with_parent: bool) -> Result<Done, Refusal> {
    if die_with_parent && !follow_parent() {
        return Ok(Done::Well);
    }
    let config = Config::read(&ground.config()).map_err(|error| error.refusal())?;
    log::start("tenure-host", Log::Auto, &config.log);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(MOST_BLOCKING)
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(_) => super::runtime()?,
    };
    match to_its_end(runtime, daemon::run(Options::at(ground)), LEAVES_WITHIN) {
        Ok(true) => Ok(Done::Well),
        Ok(false) => Ok(Done::OurFault),
        Err(error) => Err(error.refusal()),
    }
}

/// Does the work. A look that hangs in the kernel would hold up the end until whoever waits for it kills us.
fn to_its_end<T>(runtime: Runtime, work: impl Future<Output = T>, leaves_within: Duration) -> T {
    let done = runtime.block_on(work);
    runtime.shutdown_timeout(leaves_within);
    done
}

/// Asks the kernel to end us with whoever started us; answers no when that one is gone already.
fn follow_parent() -> bool {
    // Where the kernel refuses, the one who started us still ends us itself.
    let _ = set_pdeathsig(Signal::SIGTERM);
    getppid() != Pid::from_raw(1) || is_ourselves()
}

/// In a container the one who started us may be process 1 itself.
fn is_ourselves() -> bool {
    let program = |process: &str| std::fs::read_link(format!("/proc/{process}/exe")).ok();
    program("1").is_some_and(|first| program("self") == Some(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_hangs_does_not_hold_up_the_end() {
        let (release, hangs) = std::sync::mpsc::channel::<()>();
        let work = async move { drop(tokio::task::spawn_blocking(move || hangs.recv())) };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        // Were it waited for, this would never come back: what it waits for is let go only afterwards.
        to_its_end(runtime, work, Duration::from_millis(10));
        drop(release);
    }
}
