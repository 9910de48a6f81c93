//! The link's port, and everybody who is not known there.

use std::time::Duration;

use tenure_controlplane::listener::MOST_STRANGERS;
use tenure_protocol::id::{Digest, Millis};
use tenure_protocol::kind::{Door, KINDS};
use tenure_protocol::proof::NodeKey;
use tenure_protocol::token::Presented;
use tenure_protocol::wire::codec;
use tenure_protocol::wire::tls::{self, ALPN_LINK, Trust};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, split};
use tokio::time::{Instant, interval};

use crate::bytes::{framed, no_frames, request, uncalled_for};
use crate::link::{Link, Node, SOON, connect, keys, shaken, shaken_by};
use crate::memory::{STRANGER, WORK};
use crate::reader::until_closed;
use crate::witness::Witness;

/// Handshake and first frame together may take ten seconds; the rest is a loaded machine's.
const PATIENCE: Duration = Duration::from_secs(20);

/// The first bytes of a TLS client, of which the rest never comes.
const HALF_A_HELLO: &[u8] = &[0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03, 1, 2, 3];

// rule: S-22
#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_no_tls_is_let_go_with_an_alert_at_most() {
    let witness = Witness::new();
    let memory = witness.memory();
    let attacks: [(&str, &[u8]); 8] = [
        ("HTTP", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        ("SSH", b"SSH-2.0-OpenSSH_9.2p1\r\n"),
        ("a frame without TLS", &[0, 0, 0, 5, 1, 2, 3, 4, 5]),
        ("zeros", &[0; 4096]),
        ("ones", &[0xff; 4096]),
        ("a record of another type", &[0x17, 3, 3, 0, 4, 1, 2, 3, 4]),
        ("a record that claims more than there may be", &[0x16, 3, 1, 0xff, 0xff, 1]),
        ("half a hello", HALF_A_HELLO),
    ];
    for (attack, bytes) in attacks {
        let mut stream = connect(&witness.sandbox, 9).await;
        stream.write_all(bytes).await.unwrap();
        let (came, _) = until_closed(&mut stream, PATIENCE, attack).await;
        assert!(came.len() < 64, "{attack}: {} bytes came", came.len());
    }
    witness.works();
    memory.assert_grew_at_most(attacks.len() * STRANGER + WORK, "what is no TLS");
}

// rule: S-01
// rule: S-02
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_believes_another_authority_or_speaks_another_protocol_gets_no_link() {
    let witness = Witness::new();
    let sandbox = &witness.sandbox;
    let ours = || Trust::Roots(vec![keys(sandbox).root.certificate]);
    let foreign = Trust::ByDigest(Digest::of(b"another authority"));
    let refused = shaken_by(sandbox, tls::client(foreign, Millis(0), ALPN_LINK).unwrap()).await.unwrap_err();
    assert!(tls::is_wrong_certificate(&refused), "{refused:?}");
    let api = tls::client(ours(), Millis(0), tls::ALPN_API).unwrap();
    assert!(shaken_by(sandbox, api).await.is_err(), "the protocol of the API on the link's port");
    let mut silent = (*tls::client(ours(), Millis(0), ALPN_LINK).unwrap()).clone();
    silent.alpn_protocols.clear();
    let mut stream = shaken_by(sandbox, silent.into()).await.unwrap();
    stream.write_all(&framed(&codec::encode(&request(1, "fleet", "nodes", vec![])))).await.unwrap();
    stream.flush().await.unwrap();
    let (came, _) = until_closed(&mut stream, PATIENCE, "a client that names no protocol").await;
    assert!(came.is_empty(), "{came:?}");
    witness.works();
}

// rule: S-22
#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_no_frame_ends_its_connection_and_gets_no_answer() {
    let witness = Witness::new();
    let memory = witness.memory();
    let mut attacks = no_frames();
    attacks.push(("a greeting above its limit", framed(&[0x91; 4097])));
    attacks.extend(uncalled_for().map(|frame| ("a frame that asks nothing", framed(&codec::encode(&frame)))));
    let count = attacks.len();
    for (attack, bytes) in attacks {
        let mut stream = shaken(&witness.sandbox, 9).await;
        stream.write_all(&bytes).await.unwrap();
        stream.flush().await.unwrap();
        let (came, after) = until_closed(&mut stream, PATIENCE, attack).await;
        assert!(came.is_empty(), "{attack}: {came:?}");
        assert!(after < Duration::from_secs(8), "{attack}: it was waited for, {after:?}");
    }
    let mut cut = shaken(&witness.sandbox, 9).await;
    cut.write_all(&[0, 0, 0, 100, 1, 2, 3]).await.unwrap();
    cut.shutdown().await.unwrap();
    until_closed(&mut cut, PATIENCE, "half a frame and a goodbye").await;
    witness.works();
    memory.assert_grew_at_most(count * STRANGER + WORK, "what is no frame");
}

/// Sends one byte after the other, half a second apart, until the other side has closed; says how long that took.
async fn drip<S: AsyncRead + AsyncWrite>(stream: S, bytes: &[u8], attack: &str) -> Duration {
    let (mut read, mut write) = split(stream);
    let dripping = async {
        let mut pause = interval(Duration::from_millis(500));
        for byte in bytes.iter().cycle() {
            pause.tick().await;
            if write.write_all(&[*byte]).await.is_err() || write.flush().await.is_err() {
                break;
            }
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        (_, after) = until_closed(&mut read, PATIENCE, attack) => after,
        () = dripping => unreachable!("it drips until it is cut off"),
    }
}

// rule: S-22
#[tokio::test(flavor = "multi_thread")]
async fn whoever_sends_a_byte_at_a_time_or_half_and_no_more_is_let_go_after_ten_seconds() {
    let witness = Witness::new();
    let memory = witness.memory();
    let began = Instant::now();
    let mut attackers = tokio::task::JoinSet::new();
    for number in 0..40 {
        let (tcp, tls) =
            (connect(&witness.sandbox, 10 + number).await, shaken(&witness.sandbox, 10 + number).await);
        attackers.spawn(async move { drip(tcp, HALF_A_HELLO, "a hello byte by byte").await });
        attackers.spawn(async move { drip(tls, &[0, 0, 0, 200, 0x81], "a frame byte by byte").await });
        let mut half_open = shaken(&witness.sandbox, 10 + number).await;
        attackers.spawn(async move {
            half_open.write_all(&[0, 0, 1]).await.unwrap();
            half_open.flush().await.unwrap();
            until_closed(&mut half_open, PATIENCE, "half a frame, and silence").await.1
        });
    }
    witness.works();
    let ended = attackers.join_all().await;
    assert!(
        ended.iter().all(|after| *after > Duration::from_secs(5)),
        "somebody was cut off early: {ended:?}"
    );
    witness.works();
    println!("120 slow connections were let go within {:?} of the first", began.elapsed());
    memory.assert_grew_at_most(MOST_STRANGERS.min(120) * STRANGER + WORK, "120 slow connections");
}

// rule: S-02
#[tokio::test(flavor = "multi_thread")]
async fn every_kind_that_is_no_greeting_is_refused_by_name_as_the_first_frame_and_as_the_second() {
    let witness = Witness::new();
    let sandbox = &witness.sandbox;
    let token = sandbox.invite("edge-2", &[]);
    let good = Presented::parse(&token).unwrap();
    for kind in KINDS {
        let refused = Link::open(sandbox).await.ask_raw(kind.to, kind.name, vec![0xc1]).await.unwrap_err();
        let greets = kind.doors.contains(&Door::Greeting);
        assert!(refused.is(if greets { "not_proven" } else { "wrong_door" }), "{}: {refused:?}", kind.name);
        let mut link = Link::open(sandbox).await;
        link.present(&token, &good, &NodeKey::generate().unwrap()).await.unwrap();
        let refused = link.ask_raw(kind.to, kind.name, vec![0xc1]).await.unwrap_err();
        let joins = kind.doors.contains(&Door::Enrolling);
        assert!(refused.is(if joins { "malformed" } else { "wrong_door" }), "{}: {refused:?}", kind.name);
    }
    let refused = Link::open(sandbox).await.ask_raw("fleet", "no.such.kind", vec![]).await.unwrap_err();
    assert!(refused.is("unsupported_kind"), "{refused:?}");
    assert_eq!(sandbox.tenure(&["node", "edge-2", "--json"]).expect(0).json()["state"], "enrolling");
    witness.works();
}

// rule: S-22
#[tokio::test(flavor = "multi_thread")]
async fn whoever_holds_a_token_and_joins_with_a_bomb_is_refused_by_name_and_redeems_nothing() {
    let witness = Witness::new();
    let memory = witness.memory();
    let token = witness.sandbox.invite("edge-2", &[]);
    let good = Presented::parse(&token).unwrap();
    // A list of a quarter of a million empty texts, which would be six megabytes of memory.
    let list = [&[0xdd, 0, 3, 0xd0, 0x90][..], &[0xa0; 250_000]].concat();
    let bomb =
        [&[0x82, 0xa9][..], b"inventory", &[0x81, 0xa9], b"listeners", &list, &[0xa7], b"profile", &[0x80]];
    let bomb = bomb.concat();
    for _ in 0..20 {
        let mut link = Link::open(&witness.sandbox).await;
        link.present(&token, &good, &NodeKey::generate().unwrap()).await.unwrap();
        let refused = link.ask_raw("fleet", "enrol.join", bomb.clone()).await.unwrap_err();
        assert!(refused.is("malformed") && refused.happened.contains("more than"), "{refused:?}");
    }
    memory.assert_grew_at_most(20 * 4 * bomb.len() + WORK, "twenty list bombs");
    let mut node = Node::enrolled(&witness.sandbox, "edge-3").await;
    node.session(&witness.sandbox).await;
    let invited = witness.sandbox.tenure(&["node", "edge-2", "--json"]).expect(0).json();
    assert_eq!(invited["state"], "enrolling", "{invited}");
    witness.works();
}

/// What one session may hold of what its node sent, whatever the constants add up to.
const OF_A_SESSION: usize = 6 << 20;
const _: () = assert!(tenure_controlplane::session::MOST_HELD <= OF_A_SESSION);

// rule: S-22
#[tokio::test(flavor = "multi_thread")]
async fn whoever_asks_and_never_reads_is_given_up_and_what_it_sent_has_a_bound() {
    let witness = Witness::new();
    let mut node = Node::enrolled(&witness.sandbox, "edge-2").await;
    let (link, _) = node.deaf_session(&witness.sandbox).await;
    let memory = witness.memory();
    let (_unread, mut writer) = link.connection.split();
    // Each of them is answered with a refusal that nobody takes.
    let beat = request(1, "lease/edge-2", "heartbeat", vec![0xc1; 200 * 1024]);
    let sending = async { while writer.send(&beat).await.is_ok() {} };
    tokio::time::timeout(SOON * 3, sending).await.expect("it is given up");
    witness.sandbox.wait("its session is gone", |sandbox| {
        sandbox.tenure(&["node", "edge-2", "--json"]).expect(0).json()["session"].is_null()
    });
    memory.assert_grew_at_most(OF_A_SESSION + WORK, "a node that never reads");
    witness.works();
}
