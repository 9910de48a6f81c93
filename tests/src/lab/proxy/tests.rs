//! The proxy on loopback, without machines.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::{Direction, Proxy};
use crate::wait::until_true;

/// A listener, a proxy in front of it, and one connection through both.
fn carried() -> (TcpListener, Proxy, TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let proxy = Proxy::listen(None, Ipv4Addr::LOCALHOST, listener.local_addr().unwrap());
    let client = TcpStream::connect(proxy.address()).unwrap();
    let (server, _) = listener.accept().unwrap();
    for stream in [&client, &server] {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    }
    (listener, proxy, client, server)
}

fn read_three(stream: &mut TcpStream) -> [u8; 3] {
    let mut bytes = [0; 3];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

/// Nothing has arrived within a short look; the look is a read with a timeout, not a pause.
fn hears_nothing(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(Duration::from_millis(150))).unwrap();
    let heard = stream.read(&mut [0; 3]);
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    heard.is_err_and(|error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
}

#[test]
fn bytes_pass_both_ways() {
    let (_listener, _proxy, mut client, mut server) = carried();
    client.write_all(b"one").unwrap();
    assert_eq!(&read_three(&mut server), b"one");
    server.write_all(b"two").unwrap();
    assert_eq!(&read_three(&mut client), b"two");
}

#[test]
fn the_end_of_a_stream_passes_one_way_and_the_other_goes_on() {
    let (_listener, _proxy, mut client, mut server) = carried();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(server.read(&mut [0; 3]).unwrap(), 0);
    server.write_all(b"two").unwrap();
    assert_eq!(&read_three(&mut client), b"two");
}

#[test]
fn a_delay_is_waited_out_each_way() {
    let (_listener, proxy, mut client, mut server) = carried();
    proxy.delay(Duration::from_millis(120));
    let sent = Instant::now();
    client.write_all(b"one").unwrap();
    read_three(&mut server);
    server.write_all(b"two").unwrap();
    read_three(&mut client);
    assert!(sent.elapsed() >= Duration::from_millis(240), "{:?}", sent.elapsed());
}

#[test]
fn a_direction_that_is_held_back_delivers_later_and_the_other_is_not_touched() {
    let (_listener, proxy, mut client, mut server) = carried();
    proxy.hold(Direction::Up);
    client.write_all(b"one").unwrap();
    assert!(hears_nothing(&mut server));
    server.write_all(b"two").unwrap();
    assert_eq!(&read_three(&mut client), b"two");
    proxy.release(Direction::Up);
    assert_eq!(&read_three(&mut server), b"one");
}

#[test]
fn the_end_of_a_stream_is_held_back_too() {
    let (_listener, proxy, client, mut server) = carried();
    proxy.hold(Direction::Up);
    drop(client);
    assert!(hears_nothing(&mut server));
    proxy.cut_all();
    assert_eq!(server.read(&mut [0; 3]).unwrap(), 0);
}

#[test]
fn only_a_connection_that_is_idle_for_too_long_is_closed() {
    let (_listener, proxy, mut client, mut server) = carried();
    proxy.cut_idle_after(Some(Duration::from_millis(400)));
    let mut last_sent = Instant::now();
    // Kept busy for longer than the limit, it stays.
    for _ in 0..4 {
        assert!(hears_nothing(&mut client));
        last_sent = Instant::now();
        client.write_all(b"one").unwrap();
        read_three(&mut server);
    }
    assert_eq!(client.read(&mut [0; 3]).unwrap(), 0);
    assert!(last_sent.elapsed() >= Duration::from_millis(400), "{:?}", last_sent.elapsed());
    until_true("the proxy forgets it", Duration::from_secs(5), || proxy.open() == 0);
}

#[test]
fn what_is_buffered_on_its_way_down_comes_in_whole_blocks_or_when_it_is_let_go() {
    let (_listener, proxy, mut client, mut server) = carried();
    proxy.buffer(Some(6));
    client.write_all(b"one").unwrap();
    assert_eq!(&read_three(&mut server), b"one", "what goes up is not buffered");
    server.write_all(b"two").unwrap();
    assert!(hears_nothing(&mut client));
    server.write_all(b"three").unwrap();
    assert_eq!(&read_three(&mut client), b"two");
    assert_eq!(&read_three(&mut client), b"thr");
    assert!(hears_nothing(&mut client));
    server.write_all(b"e").unwrap();
    proxy.buffer(None);
    assert_eq!(&read_three(&mut client), b"eee");
}

#[test]
fn a_connection_that_is_too_old_is_closed_however_busy_it_is() {
    let (_listener, proxy, mut client, mut server) = carried();
    let began = Instant::now();
    proxy.cut_older_than(Some(Duration::from_millis(400)));
    let mut carried = 0;
    while client.write_all(b"one").is_ok() && server.read_exact(&mut [0; 3]).is_ok() {
        carried += 1;
        assert!(began.elapsed() < Duration::from_secs(20), "it was never closed");
    }
    assert!(carried > 0);
    until_true("the proxy forgets it", Duration::from_secs(5), || proxy.open() == 0);
}

#[test]
fn new_connections_go_to_the_new_target_and_old_ones_stay() {
    let (_listener, proxy, mut client, mut server) = carried();
    let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    proxy.point_at(other.local_addr().unwrap());
    let mut second = TcpStream::connect(proxy.address()).unwrap();
    let (mut elsewhere, _) = other.accept().unwrap();
    second.write_all(b"new").unwrap();
    assert_eq!(&read_three(&mut elsewhere), b"new");
    client.write_all(b"old").unwrap();
    assert_eq!(&read_three(&mut server), b"old");
    assert_eq!(proxy.accepted(), 2);
}

#[test]
fn a_target_that_is_not_there_closes_the_connection() {
    let nobody: SocketAddr = { TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap() };
    let proxy = Proxy::listen(None, Ipv4Addr::LOCALHOST, nobody);
    let mut client = TcpStream::connect(proxy.address()).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert_eq!(client.read(&mut [0; 3]).unwrap_or(0), 0);
}
