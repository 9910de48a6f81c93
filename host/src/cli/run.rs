//! `tenure-host run`.

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid};
use tenure_actors::log::{self, Log};
use tenure_protocol::refusal::{Explain as _, Refusal};

use super::Done;
use crate::config::Config;
use crate::daemon::{self, Options};
use crate::ground::Ground;

/// A pass, a few reads and a fetch at the same time; more threads would only keep their stacks.
const MOST_BLOCKING: usize = 16;

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
    match runtime.block_on(daemon::run(Options::at(ground))) {
        Ok(true) => Ok(Done::Well),
        Ok(false) => Ok(Done::OurFault),
        Err(error) => Err(error.refusal()),
    }
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
