//! One connection to a daemon's socket, to ask it things. Every question has a deadline; whoever answers in someone
//! else's name is not spoken to (S-09).

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tenure_protocol::id::NodeId;
use tenure_protocol::kind::Message;
use tenure_protocol::refusal::Refusal;
use tenure_protocol::wire::frame::{FrameError, MOST};
use tenure_protocol::wire::{CallError, Connection, Incoming, Outgoing, WireError, exchange};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::ending::Trouble;

/// How long an answer may take.
const WITHIN: Duration = Duration::from_secs(120);
/// Declaring a large fleet renders every node of it. Longer than the control plane itself waits, which then says why.
const RENDERED_WITHIN: Duration = Duration::from_secs(16 * 60);
/// How long the connection may be silent; longer than any answer may take.
const SILENCE: Duration = Duration::from_secs(20 * 60);
/// A connection that ended says how within this.
const GOODBYE: Duration = Duration::from_secs(2);
/// The user the packaged control plane runs as.
const SERVICE_USER: &str = "tenure-control";

/// Asks one daemon.
#[derive(Debug)]
pub(crate) struct Caller {
    outgoing: Outgoing,
    whom: &'static str,
    /// How the connection ended, once it has.
    end: Mutex<Option<JoinHandle<WireError>>>,
    /// Nothing comes unasked; but a queue nobody holds would end the connection.
    _incoming: mpsc::Receiver<Incoming>,
}

impl Caller {
    /// Speaks over `stream`, on the runtime this is called in. `whom` is named in messages.
    pub(crate) fn over<S>(stream: S, whom: &'static str) -> Self
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (outgoing, incoming, run) = exchange::exchange(Connection::new(stream, MOST), SILENCE);
        let end = Mutex::new(Some(tokio::spawn(run.run())));
        Self { outgoing, whom, end, _incoming: incoming }
    }

    /// Speaks over the socket that was connected at `path`, if its owner may be believed.
    pub(crate) fn trusted(stream: UnixStream, path: &Path, whom: &'static str) -> Result<Self, Trouble> {
        let peer = stream
            .peer_cred()
            .map_err(|error| Trouble::ours("whose socket this is cannot be asked", &error))?
            .uid();
        let own = nix::unistd::geteuid().as_raw();
        if peer == 0 || peer == own || Some(peer) == service_user() {
            Ok(Self::over(stream, whom))
        } else {
            Err(foreign(path, peer))
        }
    }

    /// Asks the address its kind names.
    pub(crate) async fn ask<M: Message>(&self, message: &M) -> Result<M::Answer, Trouble> {
        self.ask_at(M::KIND.to, message).await
    }

    /// Asks the address its kind names, of this node.
    pub(crate) async fn ask_of<M: Message>(&self, node: &NodeId, message: &M) -> Result<M::Answer, Trouble> {
        self.ask_at(&M::KIND.to.replace("{node}", node.as_str()), message).await
    }

    async fn ask_at<M: Message>(&self, to: &str, message: &M) -> Result<M::Answer, Trouble> {
        match self.outgoing.call(to, message, within(M::KIND.name)).await {
            Ok(answer) => Ok(answer),
            Err(CallError::Gone) => Err(self.gone(M::KIND.name).await),
            Err(error) => Err(self.no_answer(M::KIND.name, error)),
        }
    }

    /// Whoever spoke no frames is another program, which is told apart from a daemon that went.
    async fn gone(&self, kind: &str) -> Trouble {
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(end) = end else { return self.no_answer(kind, CallError::Gone) };
        match timeout(GOODBYE, end).await {
            Ok(Ok(WireError::Frame(error))) => self.not_ours(kind, &error),
            Ok(Ok(WireError::Closed | WireError::Cut | WireError::Silent(_) | WireError::Io(_)) | Err(_))
            | Err(_) => self.no_answer(kind, CallError::Gone),
        }
    }

    fn not_ours(&self, kind: &str, error: &FrameError) -> Trouble {
        let whom = self.whom;
        Trouble::failed(Refusal::new(
            "not_understood",
            format!("what answers `{kind}` in the place of {whom} does not speak as it does: {error}"),
            "another program holds that socket, or one of another version; nobody knows whether anything was done",
            "look who holds the socket (`ss -xlp`), or name the right one with --socket",
        ))
    }

    fn no_answer(&self, kind: &str, error: CallError) -> Trouble {
        let whom = self.whom;
        match error {
            CallError::Refused(refusal) => refusal.into(),
            CallError::TimedOut(within) => unanswered(
                "no_answer",
                format!("{whom} did not answer `{kind}` within {} s", within.as_secs()),
            ),
            CallError::Gone => unanswered(
                "connection_lost",
                format!("{whom} closed the connection before it answered `{kind}`"),
            ),
            CallError::Unreadable(error) => Trouble::failed(Refusal::new(
                "unreadable_answer",
                format!("the answer of {whom} to `{kind}` cannot be read: {error}"),
                "this command line and the daemon are of versions that do not understand each other",
                "compare `tenure --version` with `tenure nodes`, and use the command line of the same release",
            )),
        }
    }
}

fn unanswered(code: &str, happened: String) -> Trouble {
    Trouble::failed(Refusal::new(
        code,
        happened,
        "nobody knows from here whether it was done",
        "look before you ask again: `tenure nodes`, `tenure events`",
    ))
}

fn within(kind: &str) -> Duration {
    match kind {
        "declare" | "render" => RENDERED_WITHIN,
        _ => WITHIN,
    }
}

fn service_user() -> Option<u32> {
    nix::unistd::User::from_name(SERVICE_USER).ok().flatten().map(|user| user.uid.as_raw())
}

fn foreign(path: &Path, peer: u32) -> Trouble {
    Refusal::new(
        "foreign_socket",
        format!("the socket {} is held by user id {peer}", path.display()),
        "that is neither root, nor the control plane's own user, nor you; it was told nothing",
        "ask whose program that is; name the right socket with `--socket PATH`",
    )
    .into()
}

#[cfg(test)]
pub(crate) mod tests;
