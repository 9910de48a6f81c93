//! What an attack cost in memory, by the kernel's own count, against a bound that follows from the limits. Each measure
//! is printed; where `TENURE_MEASURES` names a file, it is also a line at its end, so that one run leaves one table.

use std::io::Write as _;

use tenure_tests::program::Running;

/// A program, and what it held when we began to count.
pub(crate) struct Memory {
    pid: u32,
    before: usize,
}

impl Memory {
    /// Counts from here on: the kernel forgets the highest it saw before.
    pub(crate) fn of(running: &Running) -> Self {
        let pid = running.pid();
        std::fs::write(format!("/proc/{pid}/clear_refs"), "5").expect("our own child can be counted anew");
        Self { pid, before: field(pid, "VmRSS:") }
    }

    /// Asserts that the highest so far is at most `bound` bytes above the beginning, and prints both.
    pub(crate) fn assert_grew_at_most(&self, bound: usize, attack: &str) {
        let peak = field(self.pid, "VmHWM:");
        let grown = peak.saturating_sub(self.before);
        measured(&format!(
            "{attack}: {} before, {} at its peak; it grew by {}, and may grow by {}",
            mib(self.before),
            mib(peak),
            mib(grown),
            mib(bound)
        ));
        assert!(grown <= bound, "{attack}: it grew by {}, at most {}", mib(grown), mib(bound));
    }

    /// The same for `count` of one kind, each of which may hold `each` bytes.
    pub(crate) fn assert_each_grew_at_most(&self, count: usize, each: usize, attack: &str) {
        let grown = field(self.pid, "VmHWM:").saturating_sub(self.before);
        measured(&format!("{attack}: {} each, and {} is the bound of one", mib(grown / count), mib(each)));
        self.assert_grew_at_most(count * each + WORK, attack);
    }
}

fn measured(line: &str) {
    println!("memory: {line}");
    if let Some(path) = std::env::var_os("TENURE_MEASURES") {
        let file = std::fs::File::options().create(true).append(true).open(path);
        writeln!(file.expect("the file of measures"), "{line}").expect("a line of it");
    }
}

fn mib(bytes: usize) -> String {
    format!("{}.{} MiB", bytes >> 20, ((bytes & 0xf_ffff) * 10) >> 20)
}

fn field(pid: u32, name: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("the kernel counts");
    let kibibytes: usize = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kibibytes * 1024
}

/// How many files a program has open.
pub(crate) fn open_files(running: &Running) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", running.pid())).expect("it runs").count()
}

/// What one connection may cost before anybody is known: a handshake message as long as TLS takes one, a record in each
/// direction, the largest greeting twice over, and what the runtime keeps of it.
pub(crate) const STRANGER: usize =
    64 * 1024 + 2 * 18 * 1024 + 2 * tenure_protocol::wire::frame::MOST_GREETING + 16 * 1024;

/// What is held beside connections while a node is declared for and reports.
pub(crate) const WORK: usize = 16 << 20;
