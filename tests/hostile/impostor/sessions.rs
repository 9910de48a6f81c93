//! What a control plane in wrong hands does on an open session.

use std::sync::{Arc, Mutex};

use tenure_controlplane::keys::Keys;
use tenure_protocol::content::{Pieces, Push, Pushed};
use tenure_protocol::envelope::{Answer, Frame};
use tenure_protocol::id::{Digest, Revision, RevisionNumber};
use tenure_protocol::kind::{Door, KINDS};
use tenure_protocol::refusal::Refusal;
use tenure_protocol::session::Ended;
use tenure_protocol::wire::exchange::{CallError, MOST_HELD, exchange};
use tenure_protocol::wire::{Incoming, codec};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{Impostor, served, session, welcome};
use crate::bytes::{framed, request};
use crate::link::SOON;
use crate::memory::{Memory, WORK};
use crate::reader::until_closed;

// rule: S-02
// rule: X-10
#[tokio::test(flavor = "multi_thread")]
async fn every_kind_that_may_not_come_down_the_link_is_refused_by_name_and_the_session_goes_on() {
    let mut impostor = Impostor::new().await;
    let keys = Arc::clone(&impostor.keys);
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    impostor.plays(move |stream| {
        let (keys, told) = (Arc::clone(&keys), told.clone());
        async move {
            let (connection, _) = session(keys, stream).await?;
            let (outgoing, _incoming, frames) = exchange(connection, SOON);
            let running = tokio::spawn(frames.run());
            let names = KINDS.iter().map(|kind| kind.name).filter(|name| *name != "session.ended");
            for name in names.chain(["no.such.kind", "\u{202e}"]) {
                let answer = outgoing.call_raw("link", name, vec![0xc1], SOON).await;
                told.send((name, answer)).ok()?;
            }
            drop(told);
            running.await.ok().map(drop)
        }
    });
    for kind in KINDS.iter().filter(|kind| kind.name != "session.ended") {
        let (name, answer) = tokio::time::timeout(SOON, heard.recv()).await.unwrap().unwrap();
        let Err(CallError::Refused(refused)) = answer else { panic!("{name}: {answer:?}") };
        let code = if kind.doors.contains(&Door::LinkDown) { "unreadable_message" } else { "wrong_door" };
        assert!(name == kind.name && refused.is(code), "{name}: {refused:?}");
    }
    let (_, answer) = tokio::time::timeout(SOON, heard.recv()).await.unwrap().unwrap();
    assert!(
        matches!(&answer, Err(CallError::Refused(refused)) if refused.is("unsupported_kind")),
        "{answer:?}"
    );
    impostor.ends();
}

/// Welcomes a host, and says something that is no frame.
async fn misspeak(keys: Arc<Keys>, stream: TcpStream) -> Option<()> {
    let mut stream = served(Arc::clone(&keys.server), stream).await?;
    let mut asked = vec![0; usize::try_from(stream.read_u32().await.ok()?).ok()?];
    stream.read_exact(&mut asked).await.ok()?;
    let Frame::Request(asked) = codec::decode(&asked).ok()? else { return None };
    let result = Ok(codec::encode(&welcome(&keys, &codec::decode(&asked.body).ok()?)));
    let welcome = codec::encode(&Frame::Answer(Answer { re: asked.id, result }));
    stream.write_all(&[framed(&welcome), framed(&[0xc1; 64])].concat()).await.ok()?;
    stream.flush().await.ok()?;
    // The host closes when it has seen that.
    until_closed(&mut stream, SOON, "a frame that is none").await;
    Some(())
}

// case: O-70
// rule: X-10
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_breaks_off_is_told_by_how_it_broke_off() {
    let mut impostor = Impostor::new().await;
    let keys = Arc::clone(&impostor.keys);
    impostor.plays(move |stream| {
        let keys = Arc::clone(&keys);
        async move { session(keys, stream).await.map(drop) }
    });
    let said = impostor.wait_for_reason("closed", "a session that is closed");
    assert!(said.contains("the other side closed"), "{said}");
    let keys = Arc::clone(&impostor.keys);
    impostor.plays(move |stream| misspeak(Arc::clone(&keys), stream));
    impostor.wait_for_reason("unreadable_frame", "a frame that is none");
    impostor.ends();
}

/// What a control plane in wrong hands does on an open session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Misdeed {
    /// Declares more bytes than there are.
    Endless,
    /// Declares something, and gives nothing of it.
    Nothing,
    /// Declares something, and gives something else.
    Another,
    /// Asks without end and reads no answer.
    NeverReads,
    /// Asks with a body that is a bomb.
    Bomb,
    /// Sends the node away for ever, with a text of great length.
    Away,
}

async fn misbehave(keys: Arc<Keys>, stream: TcpStream, misdeed: Misdeed) -> Option<()> {
    let (connection, hello) = session(keys, stream).await?;
    let revision = Revision { epoch: hello.epoch, number: RevisionNumber(1_000_000) };
    let bytes = if misdeed == Misdeed::Endless { u64::MAX } else { 1000 };
    let push = Push { revision, sha256: Digest::of(b"never"), bytes, resources: u64::MAX };
    match misdeed {
        Misdeed::NeverReads => {
            let (_unread, mut writer) = connection.split();
            let asked = request(1, "reconcile", "declaration.push", vec![0xc1; 8 * 1024]);
            while writer.send(&asked).await.is_ok() {}
            return Some(());
        }
        Misdeed::Bomb => {
            let (outgoing, _incoming, frames) = exchange(connection, SOON);
            let asked =
                async { outgoing.call_raw("reconcile", "declaration.push", vec![0x91; 200_000], SOON).await };
            tokio::select! { answer = asked => assert!(answer.is_err()), _ = frames.run() => {} }
            return Some(());
        }
        Misdeed::Endless | Misdeed::Nothing | Misdeed::Another | Misdeed::Away => {}
    }
    let (outgoing, mut incoming, frames) = exchange(connection, SOON);
    let running = tokio::spawn(frames.run());
    if misdeed == Misdeed::Away {
        let long = "away ".repeat(10_000);
        let reason = Refusal::new("retired", long.clone(), long.clone(), long);
        outgoing.tell("session", &Ended { reason, retry_after_ms: u64::MAX }).ok()?;
        drop(outgoing);
        return running.await.ok().map(drop);
    }
    let pushed = outgoing.call("reconcile", &push, SOON).await;
    assert!(matches!(pushed, Ok(Pushed::Fetching)), "{pushed:?}");
    while let Some(came) = incoming.recv().await {
        let Incoming::Request(asked) = came else { continue };
        let answer = match (asked.kind.as_str(), misdeed) {
            ("content.fetch", Misdeed::Another) => Ok(vec![0xc1; 200_000]),
            ("content.fetch", _) => Ok(codec::encode(&Pieces { pieces: Vec::new() })),
            _ => Err(Refusal::new("try_later", "h", "m", "d")),
        };
        outgoing.answer(asked.id, answer).await.ok()?;
    }
    Some(())
}

// rule: X-10
#[tokio::test(flavor = "multi_thread")]
async fn a_control_plane_in_wrong_hands_makes_the_host_neither_grow_nor_let_go_of_its_machine() {
    let mut impostor = Impostor::new().await;
    for misdeed in [
        Misdeed::Endless,
        Misdeed::Nothing,
        Misdeed::Another,
        Misdeed::Bomb,
        Misdeed::NeverReads,
        Misdeed::Away,
    ] {
        let keys = Arc::clone(&impostor.keys);
        let met = Arc::new(Mutex::new(0_u32));
        let count = Arc::clone(&met);
        impostor.plays(move |stream| {
            *count.lock().unwrap() += 1;
            misbehave(Arc::clone(&keys), stream, misdeed)
        });
        let memory = Memory::of(impostor.witness.host());
        impostor.witness.sandbox.wait("the host has dialled", |_| *met.lock().unwrap() > 0);
        match misdeed {
            Misdeed::Away => drop(impostor.wait_for_reason("retired", "sent away")),
            Misdeed::NeverReads => {
                impostor
                    .witness
                    .sandbox
                    .wait("it is given up, and dialled anew", |_| *met.lock().unwrap() > 1);
            }
            Misdeed::Endless | Misdeed::Nothing | Misdeed::Another | Misdeed::Bomb => {}
        }
        impostor.still_holds();
        memory.assert_grew_at_most(2 * MOST_HELD + WORK, &format!("{misdeed:?}"));
    }
    impostor.ends();
}
