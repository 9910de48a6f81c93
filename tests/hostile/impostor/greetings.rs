//! What answers instead of a control plane, before a session is open.

use std::sync::Arc;

use tenure_controlplane::ground::Ground;
use tenure_controlplane::keys;
use tenure_protocol::envelope::{Answer, Frame};
use tenure_protocol::refusal::Refusal;
use tenure_protocol::wire::frame::MOST;
use tokio::io::AsyncWriteExt as _;

use super::{Impostor, greeted, served};
use crate::bytes::{no_frames, request};
use crate::link::SOON;
use crate::memory::{Memory, WORK};

// rule: X-10
// rule: S-01
#[tokio::test(flavor = "multi_thread")]
async fn somebody_without_the_certificate_costs_the_host_nothing_and_is_told_apart() {
    let mut impostor = Impostor::new().await;
    let foreign = tempfile::tempdir().unwrap();
    let ground = Ground::new(foreign.path());
    ground.create().unwrap();
    keys::make(&ground).unwrap();
    let stranger = Arc::new(keys::load(&ground).unwrap());
    impostor.plays(move |stream| {
        let stranger = Arc::clone(&stranger);
        async move { served(Arc::clone(&stranger.server), stream).await.map(drop) }
    });
    impostor.wait_for_reason("wrong_certificate", "another control plane");

    let mut silent = (*impostor.keys.server).clone();
    silent.alpn_protocols.clear();
    let silent = Arc::new(silent);
    impostor.plays(move |stream| {
        let silent = Arc::clone(&silent);
        async move { served(silent, stream).await.map(drop) }
    });
    let said = impostor.wait_for_reason("unreachable", "a server that chose no protocol");
    assert!(said.contains("protocol"), "{said}");

    for bytes in [&b"HTTP/1.1 400 Bad Request\r\nServer: nginx\r\n\r\n"[..], &[0xff; 3000], &[]] {
        impostor.plays(move |mut stream| async move { stream.write_all(bytes).await.ok() });
        impostor.wait_for_reason("unreachable", "no TLS at all");
    }
    impostor.ends();
}

// rule: X-10
#[tokio::test(flavor = "multi_thread")]
async fn nonsense_instead_of_a_welcome_costs_the_host_nothing_and_has_a_name() {
    let mut impostor = Impostor::new().await;
    let keys = Arc::clone(&impostor.keys);
    for (attack, bytes) in no_frames() {
        let (keys, bytes) = (Arc::clone(&keys), bytes.clone());
        impostor.plays(move |stream| {
            let (keys, bytes) = (Arc::clone(&keys), bytes.clone());
            async move {
                let mut stream = served(Arc::clone(&keys.server), stream).await?;
                stream.write_all(&bytes).await.ok()?;
                stream.shutdown().await.ok()
            }
        });
        impostor.wait_for_reason("no_answer", attack);
    }
    let many_roots = [&[0x81, 0xa5][..], b"roots", &[0xdd, 0, 3, 0xd0, 0x90], &[0x80; 250_000]].concat();
    type Turn = fn(u64, Vec<u8>) -> Frame;
    let answers: [(&str, Vec<u8>, Turn); 4] = [
        ("no welcome", vec![0xc1; 9], |re, body| Frame::Answer(Answer { re, result: Ok(body) })),
        ("a list bomb", many_roots, |re, body| Frame::Answer(Answer { re, result: Ok(body) })),
        ("an answer to something else", vec![], |re, body| {
            Frame::Answer(Answer { re: re + 1, result: Ok(body) })
        }),
        ("a question", vec![], |re, body| request(re, "link", "session.ended", body)),
    ];
    for (attack, body, turn) in answers {
        let keys = Arc::clone(&keys);
        impostor.plays(move |stream| {
            let (keys, body) = (Arc::clone(&keys), body.clone());
            async move {
                let (mut connection, id, _) = greeted(keys, stream).await?;
                connection.send(&turn(id, body)).await.ok()?;
                connection.receive(SOON).await.ok().map(drop)
            }
        });
        let memory = Memory::of(impostor.witness.host());
        impostor.wait_for_reason("unreadable_answer", attack);
        memory.assert_grew_at_most(4 * MOST + WORK, attack);
    }
    impostor.plays(move |stream| {
        let keys = Arc::clone(&keys);
        async move {
            let (mut connection, re, _) = greeted(keys, stream).await?;
            let long = "\u{1b}[2J".repeat(15_000);
            let refusal = Refusal::new("odd", long.clone(), long.clone(), long);
            connection.send(&Frame::Answer(Answer { re, result: Err(refusal) })).await.ok()?;
            connection.receive(SOON).await.ok().map(drop)
        }
    });
    let said = impostor.wait_for_reason("odd", "a refusal of two hundred thousand characters");
    assert!(said.len() < 20_000 && !said.contains('\u{1b}'), "{} bytes", said.len());
    impostor.ends();
}
