//! The proxy's own work: accept, dial, and carry bytes both ways as the settings say at each moment.

use std::future::pending;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::{Counts, Direction, Settings};

type Follow = watch::Receiver<Settings>;

/// Listens until the settings say that it has ended; what is open is dropped with the runtime.
pub(super) async fn serve(
    address: Ipv4Addr,
    settings: Follow,
    counts: Arc<Counts>,
    bound: std::sync::mpsc::Sender<SocketAddr>,
) {
    let listener = TcpListener::bind((address, 0)).await.expect("a free port on the lab's own address");
    bound.send(listener.local_addr().expect("a bound port has an address")).expect("the proxy's maker waits");
    let mut ended = settings.clone();
    let accepting = async {
        loop {
            let Ok((client, _)) = listener.accept().await else { continue };
            counts.accepted.fetch_add(1, Ordering::Relaxed);
            counts.open.fetch_add(1, Ordering::Relaxed);
            let (counts, settings) = (Arc::clone(&counts), settings.clone());
            tokio::spawn(async move {
                carry(client, settings).await;
                counts.open.fetch_sub(1, Ordering::Relaxed);
            });
        }
    };
    tokio::select! {
        () = accepting => {}
        _ = ended.wait_for(|settings| settings.ended) => {}
    }
}

/// Carries one connection until both ways have ended, it is cut, or it was idle for too long.
async fn carry(client: TcpStream, mut settings: Follow) {
    let (target, cuts) = {
        let now = settings.borrow_and_update();
        (now.target, now.cuts)
    };
    let Ok(server) = TcpStream::connect(target).await else { return };
    let (last, heard) = watch::channel(Instant::now());
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let both = async {
        tokio::join!(
            pump(from_client, to_server, Direction::Up, settings.clone(), &last),
            pump(from_server, to_client, Direction::Down, settings.clone(), &last),
        )
    };
    let mut cut = settings.clone();
    tokio::select! {
        _ = both => {}
        _ = cut.wait_for(|settings| settings.cuts != cuts) => {}
        () = idle(settings.clone(), heard) => {}
        () = old(settings.clone()) => {}
    }
}

/// Carries one way. Reading goes on while bytes wait out their delay, so that a delay does not narrow the link.
async fn pump(
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
    direction: Direction,
    settings: Follow,
    last: &watch::Sender<Instant>,
) {
    let (sender, receiver) = mpsc::channel(IN_FLIGHT);
    tokio::join!(take_in(from, sender, last), give_out(to, receiver, direction, settings));
}

async fn take_in(
    mut from: OwnedReadHalf,
    sender: mpsc::Sender<(Instant, Vec<u8>)>,
    last: &watch::Sender<Instant>,
) {
    let mut buffer = vec![0; CHUNK];
    while let Ok(length) = from.read(&mut buffer).await {
        if length == 0 {
            break;
        }
        let now = Instant::now();
        last.send_replace(now);
        if sender.send((now, buffer[..length].to_vec())).await.is_err() {
            break;
        }
    }
}

async fn give_out(
    mut to: OwnedWriteHalf,
    mut receiver: mpsc::Receiver<(Instant, Vec<u8>)>,
    direction: Direction,
    mut settings: Follow,
) {
    let mut gathered = Vec::new();
    loop {
        let came = tokio::select! {
            came = receiver.recv() => came,
            // What waits for its block to be full may be let go meanwhile.
            Ok(()) = settings.changed(), if !gathered.is_empty() => Some((Instant::now(), Vec::new())),
        };
        let Some((arrived, bytes)) = came else { break };
        let delay = settings.borrow().delay;
        sleep_until(arrived + delay).await;
        let _ = settings.wait_for(|settings| !settings.holds(direction)).await;
        gathered.extend(bytes);
        let whole = settings.borrow().lets_go(direction, gathered.len());
        let rest = gathered.split_off(whole);
        if to.write_all(&gathered).await.is_err() || to.flush().await.is_err() {
            return;
        }
        gathered = rest;
    }
    let _ = settings.wait_for(|settings| !settings.holds(direction)).await;
    // With the end of the stream comes what never filled a block.
    let _ = to.write_all(&gathered).await;
    let _ = to.shutdown().await;
}

/// Ends when the connection is as old as the settings allow.
async fn old(mut settings: Follow) {
    let began = Instant::now();
    loop {
        let allowed = settings.borrow_and_update().age;
        let over = async {
            match allowed {
                Some(allowed) => sleep_until(began + allowed).await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = over => return,
            changed = settings.changed() => if changed.is_err() { return },
        }
    }
}

/// Ends when nothing has come from either side for as long as the settings allow.
async fn idle(mut settings: Follow, mut heard: watch::Receiver<Instant>) {
    loop {
        let allowed = settings.borrow_and_update().idle;
        let last = *heard.borrow_and_update();
        let over = async {
            match allowed {
                Some(allowed) => sleep_until(last + allowed).await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = over => return,
            changed = settings.changed() => if changed.is_err() { return },
            changed = heard.changed() => if changed.is_err() { return },
        }
    }
}

const CHUNK: usize = 16 * 1024;
/// Chunks that may wait out their delay; then the sender is made to wait, as a full link would.
const IN_FLIGHT: usize = 256;
