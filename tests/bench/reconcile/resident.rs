//! What the daemon as it is shipped holds in memory over N declared files, and what it costs while nothing happens:
//! with its session open and the timers people have, and at its highest in passes of each kind.

use std::path::Path;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;
use tenure_tests::program::Running;
use tenure_tests::sandbox::{SOON, Sandbox, text};
use tenure_tests::wait;

use super::milliseconds;
use super::subject::Subject;
use crate::row::Rows;
use crate::{memory, module_of};

/// What is asked of the memory of a host, in MiB, and of its idle minute, in milliseconds.
const IDLE: (&str, f64) = ("the goal", 8.0);
const IDLE_OF_10K: (&str, f64) = ("the goal", 12.0);
const PEAK: (&str, f64) = ("the goal", 20.0);
const IDLE_CPU: (&str, f64) = ("the goal", 15.0);

/// Six beats.
const MINUTE: Duration = Duration::from_secs(60);

pub(super) fn run(rows: Rows, subject: &Subject, n: usize) {
    // Nothing is asked of fewer, and it takes minutes.
    if n >= 1_000 {
        idle(rows, n);
    }
    peaks(rows, subject, n);
}

/// Both daemons as two processes, N files declared by the operator and applied; then the host is started anew, and
/// nothing happens but beats.
fn idle(rows: Rows, n: usize) {
    let mut sandbox = Sandbox::enrolled(&[]);
    sandbox.module(&module_of(n));
    sandbox.tenure(&["declare", &text(&sandbox.at("fleet"))]).expect(0);
    wait::until_true("all are applied", SOON * 10, || {
        sandbox.tenure(&["nodes", "--json"]).json()[0]["revision"]["applied"] == 1
    });
    let host = sandbox.host.take().expect("it runs");
    rows.alone("resident after the first apply", n, memory(host.pid()).0, "MiB");
    host.stop();
    sandbox.write("machine/etc/tenure/host.toml", "");
    sandbox.start_host();
    sandbox.wait("a pass found nothing to do, and the session is open", |sandbox| {
        let status = sandbox.host(&["status", "--json"]).json();
        status["last"]["counts"]["unchanged"].as_u64() >= u64::try_from(n).ok()
            && status["link"]["up"].is_object()
    });
    let pid = sandbox.host.as_ref().expect("it runs").pid();
    // What a start leaves behind, it has given back by then.
    a_minute();
    let before = used(pid);
    a_minute();
    let goal = if n > 1_000 { IDLE_OF_10K } else { IDLE };
    rows.against("idle_cpu, of a minute", n, milliseconds(used(pid) - before), "ms", IDLE_CPU);
    rows.against("idle_memory", n, memory(pid).0, "MiB", goal);
    assert!(sandbox.host(&["status", "--json"]).json()["link"]["up"].is_object(), "the session stayed open");
}

fn a_minute() {
    let began = Instant::now();
    wait::until_each(Duration::from_secs(1), "a minute is over", MINUTE * 2, || {
        (began.elapsed() >= MINUTE).then_some(())
    });
}

/// What a process and all its threads have had of the processors, those that have ended too.
fn used(pid: u32) -> Duration {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a process id"));
    let used = clock_getcpuclockid(pid).and_then(ClockId::now).expect("our own child's clock");
    Duration::from(used)
}

fn peaks(rows: Rows, subject: &Subject, n: usize) {
    let root = subject.at("root");
    subject.belong();
    look_each_second(&root);
    let arguments = ["run", "--root", &text(&root), "--sandbox"];
    let host = Running::start("tenure-host", &arguments, &[], subject.at("host.log"));
    let passes = || subject.program(&["status"]).json()["last"]["pass"].as_u64().unwrap_or(0);
    wait::until_true("the host answers", SOON, || subject.program(&["status"]).code == 0);
    let first = passes();
    let after = |more: u64| wait::until_true("passes are done", SOON, || passes() >= first + more);
    after(3);
    let start = memory(host.pid());
    // From here on the highest is that of quiet passes, or of one that reads everything.
    forget_peak(host.pid());
    after(6);
    let quiet = memory(host.pid());
    forget_peak(host.pid());
    subject.program(&["apply"]).expect(0);
    let full = memory(host.pid());
    rows.alone("resident between passes", n, quiet.0, "MiB");
    rows.against("peak, at the start's pass", n, start.1, "MiB", PEAK);
    rows.against("peak, quiet passes", n, quiet.1, "MiB", PEAK);
    rows.against("peak, full pass on demand", n, full.1, "MiB", PEAK);
    host.stop();
}

fn look_each_second(root: &Path) {
    std::fs::create_dir_all(root.join("etc/tenure")).expect("a folder of the benchmark");
    std::fs::write(root.join("etc/tenure/host.toml"), "timer = \"1s\"\n").expect("a file of the benchmark");
}

fn forget_peak(pid: u32) {
    std::fs::write(format!("/proc/{pid}/clear_refs"), "5").expect("our own child");
}
