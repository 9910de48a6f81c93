use tenure_protocol::id::{Digest, Millis};
use tenure_protocol::wire::tls::{ALPN_LINK, Trust, client};

use super::*;
use crate::link::tests::fake::Fake;

fn config(fake: &Fake) -> Arc<ClientConfig> {
    client(Trust::ByDigest(Digest::of(&fake.ca)), Millis(0), ALPN_LINK).unwrap()
}

/// A resolver that knows these names and no other.
fn knows(names: &'static [&'static str], sockets: Vec<SocketAddr>) -> Resolve {
    Arc::new(move |address| {
        let sockets = sockets.clone();
        Box::pin(async move {
            if names.contains(&address.as_str()) {
                Ok(sockets)
            } else {
                Err(io::Error::other("no such name"))
            }
        })
    })
}

/// A port where nobody listens.
async fn nobody() -> SocketAddr {
    tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

// case: O-60
#[tokio::test]
async fn every_address_of_every_name_is_tried_until_one_leads_there() {
    let (fake, stranger) = (Fake::start().await, Fake::start().await);
    let resolve = knows(&["b:1"], vec![nobody().await, stranger.at, fake.at]);
    let addresses = ["a:1".to_owned(), "b:1".to_owned()];
    let dialled = dial(&addresses, None, &config(&fake), &resolve).await.unwrap();
    assert_eq!((dialled.reached.socket, dialled.reached.address.as_str()), (fake.at, "b:1"));
    assert!(!dialled.remembered);
}

// case: O-60
#[tokio::test]
async fn a_wrong_certificate_is_told_even_where_others_do_not_answer_at_all() {
    let (fake, stranger) = (Fake::start().await, Fake::start().await);
    let resolve = knows(&["a:1"], vec![stranger.at, nobody().await]);
    let error = dial(&["a:1".to_owned()], None, &config(&fake), &resolve).await.unwrap_err();
    assert_eq!(error.code(), "wrong_certificate");
}

// case: O-60
#[tokio::test]
async fn names_that_fail_and_machines_that_do_not_answer_are_two_errors() {
    let fake = Fake::start().await;
    let addresses = ["a:1".to_owned()];
    let error = dial(&addresses, None, &config(&fake), &knows(&[], vec![])).await.unwrap_err();
    assert_eq!((error.code(), NAMES_FAIL), ("names_fail", "names_fail"));
    let other = LastGood { address: "b:1".to_owned(), socket: fake.at };
    let error = dial(&addresses, Some(&other), &config(&fake), &knows(&[], vec![])).await.unwrap_err();
    assert_eq!(error.code(), NAMES_FAIL, "what is remembered of another name does not count");
    let resolve = knows(&["a:1"], vec![nobody().await]);
    let error = dial(&addresses, None, &config(&fake), &resolve).await.unwrap_err();
    assert_eq!(error.code(), "unreachable");
}

#[tokio::test]
async fn whoever_does_not_speak_tls_is_unreachable_and_is_told_nothing() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let proxy = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut heard = vec![0; 4096];
        let length = stream.read(&mut heard).await.unwrap();
        stream.write_all(b"HTTP/1.1 401 Unauthorized\r\n\r\n").await.unwrap();
        heard.truncate(length);
        heard
    });
    let fake = Fake::start().await;
    let error =
        dial(&["a:1".to_owned()], None, &config(&fake), &knows(&["a:1"], vec![at])).await.unwrap_err();
    assert_eq!(error.code(), "unreachable");
    assert!(!proxy.await.unwrap().is_empty());
}

// case: O-60
#[test]
fn one_of_each_name_and_family_is_tried_in_turn() {
    assert_eq!(in_turn(vec![vec![1, 2, 3], vec![], vec![4], vec![5, 6]]), [1, 4, 5, 2, 6, 3]);
}
