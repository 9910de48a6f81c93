//! What a point is in a program that tests build: it is written down where `TENURE_CRASH_LOG` says, one line each, and
//! it is the end of the process where `TENURE_CRASH` names it, as `NAME.before`, or as `NAME.before:3` for the third
//! time it is passed.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::getpid;

/// What the environment asks for, read once.
struct Armed {
    at: Option<String>,
    /// How often it is passed until then.
    left: AtomicU64,
    log: Option<PathBuf>,
}

pub(super) fn pass(step: &str, side: &str) {
    let armed = armed();
    let point = format!("{step}.{side}");
    if let Some(log) = &armed.log {
        write_down(log, &point);
    }
    if armed.at.as_deref() == Some(point.as_str()) && armed.left.fetch_sub(1, Ordering::SeqCst) == 1 {
        die();
    }
}

fn armed() -> &'static Armed {
    static ARMED: OnceLock<Armed> = OnceLock::new();
    ARMED.get_or_init(|| {
        let at = std::env::var("TENURE_CRASH").ok();
        let (at, left) = at.as_deref().map_or((None, 0), |at| {
            let (at, time) = parse(at);
            (Some(at.to_owned()), time)
        });
        let log = std::env::var_os("TENURE_CRASH_LOG").map(PathBuf::from);
        Armed { at, left: AtomicU64::new(left), log }
    })
}

/// The point, and the how manyth time is meant; the first where no number says otherwise.
pub(super) fn parse(text: &str) -> (&str, u64) {
    let numbered = text.rsplit_once(':').and_then(|(at, time)| Some((at, time.parse().ok()?)));
    numbered.filter(|(_, time)| *time > 0).unwrap_or((text, 1))
}

/// A line is appended in one write, so that those of many threads do not mix.
fn write_down(log: &PathBuf, point: &str) {
    let file = File::options().create(true).append(true).open(log);
    if let Err(error) = file.and_then(|mut file| file.write_all(format!("{point}\n").as_bytes())) {
        tracing::error!(%error, log = %log.display(), "a point was not written down");
    }
}

fn die() {
    // A process may always end itself; if the system says otherwise, it ends all the same.
    let _ = kill(getpid(), Signal::SIGKILL);
    std::process::abort();
}
