//! A TCP proxy that spoils links: it delays, cuts what is idle or old, buffers, holds a direction back so that one end
//! talks into the void, and moves to another target. The kernel here cannot do that by itself. It runs on one thread, in the lab's
//! network; dropping it closes what it carries.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::watch;

use super::{Lab, bed};

mod carry;
#[cfg(test)]
mod tests;

/// One of the two ways bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From who dialled.
    Up,
    /// To who dialled.
    Down,
}

/// A running proxy.
pub struct Proxy {
    address: SocketAddr,
    settings: watch::Sender<Settings>,
    counts: Arc<Counts>,
    thread: Option<JoinHandle<()>>,
}

/// What the proxy does at this moment; connections follow every change.
#[derive(Debug, Clone)]
struct Settings {
    target: SocketAddr,
    delay: Duration,
    idle: Option<Duration>,
    age: Option<Duration>,
    /// What goes down is passed on in whole blocks of this.
    block: Option<usize>,
    hold_up: bool,
    hold_down: bool,
    /// Connections that began under an earlier number are cut.
    cuts: u64,
    ended: bool,
}

#[derive(Debug, Default)]
struct Counts {
    accepted: AtomicUsize,
    open: AtomicUsize,
}

impl Proxy {
    /// Listens on the lab's own address and passes everything on to `target`.
    #[must_use]
    pub fn start(lab: &Lab, target: SocketAddr) -> Self {
        Self::listen(Some(lab.bed.namespace()), lab.address(), target)
    }

    fn listen(namespace: Option<PathBuf>, address: Ipv4Addr, target: SocketAddr) -> Self {
        let settings = Settings {
            target,
            delay: Duration::ZERO,
            idle: None,
            age: None,
            block: None,
            hold_up: false,
            hold_down: false,
            cuts: 0,
            ended: false,
        };
        let (sender, receiver) = watch::channel(settings);
        let counts = Arc::new(Counts::default());
        let (bound, binding) = std::sync::mpsc::channel();
        let carried = Arc::clone(&counts);
        let thread = std::thread::spawn(move || {
            if let Some(namespace) = namespace {
                bed::enter(&namespace);
            }
            // One thread carries everything, so that every socket is made in the network it entered.
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(carry::serve(address, receiver, carried, bound));
        });
        let address = binding.recv().expect("the proxy's thread binds a port");
        Self { address, settings: sender, counts, thread: Some(thread) }
    }

    /// Where to dial.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Delays every byte by this much, each way, without narrowing the link.
    pub fn delay(&self, delay: Duration) {
        self.settings.send_modify(|settings| settings.delay = delay);
    }

    /// Closes connections on which nothing has come from either side for this long; `None` lets them be.
    pub fn cut_idle_after(&self, idle: Option<Duration>) {
        self.settings.send_modify(|settings| settings.idle = idle);
    }

    /// Closes each connection when it is this old, whatever goes over it; `None` lets them grow older.
    pub fn cut_older_than(&self, age: Option<Duration>) {
        self.settings.send_modify(|settings| settings.age = age);
    }

    /// Passes on what goes to who dialled only in whole blocks of so many bytes, as a proxy that buffers answers does;
    /// `None` passes on at once, and what was gathered first.
    pub fn buffer(&self, block: Option<usize>) {
        self.settings.send_modify(|settings| settings.block = block);
    }

    /// Holds everything back that goes this way, the end of a stream included: the sender believes it was sent.
    pub fn hold(&self, direction: Direction) {
        self.settings.send_modify(|settings| *settings.held(direction) = true);
    }

    /// Lets what was held back go.
    pub fn release(&self, direction: Direction) {
        self.settings.send_modify(|settings| *settings.held(direction) = false);
    }

    /// New connections go to another target; those that are open stay where they are.
    pub fn point_at(&self, target: SocketAddr) {
        self.settings.send_modify(|settings| settings.target = target);
    }

    /// Closes every open connection now, whatever is held back.
    pub fn cut_all(&self) {
        self.settings.send_modify(|settings| settings.cuts += 1);
    }

    /// How many connections were ever accepted.
    #[must_use]
    pub fn accepted(&self) -> usize {
        self.counts.accepted.load(Ordering::Relaxed)
    }

    /// How many are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.counts.open.load(Ordering::Relaxed)
    }
}

impl Settings {
    fn held(&mut self, direction: Direction) -> &mut bool {
        match direction {
            Direction::Up => &mut self.hold_up,
            Direction::Down => &mut self.hold_down,
        }
    }

    /// How many of so many gathered bytes are passed on.
    fn lets_go(&self, direction: Direction, gathered: usize) -> usize {
        match (direction, self.block) {
            (Direction::Down, Some(block)) => gathered - gathered % block.max(1),
            (Direction::Down, None) | (Direction::Up, _) => gathered,
        }
    }

    fn holds(&self, direction: Direction) -> bool {
        match direction {
            Direction::Up => self.hold_up,
            Direction::Down => self.hold_down,
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.settings.send_modify(|settings| settings.ended = true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
