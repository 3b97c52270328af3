//! What no stack is made of, and whom no connection reaches.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;

use laxity_model::Instant;
use laxity_model::nif::link::Medium;
use laxity_net::buffers::Sleeper;
use laxity_net::emulated::{Faults, Wire};
use laxity_net::sockets::TcpStream;
use laxity_net::stack::{Config, Stack};

use super::{Scripted, config, driver};
use crate::support::CountedEnd;

/// The driver is as it was: its next stack is made.
#[test]
fn an_address_that_no_host_has_is_refused_with_what_would_be_right() {
    let (_, end, _) = Wire::new(Faults::default(), 7);
    let mut driver = driver(CountedEnd::new(end), 4);
    let mut made = |config: Config| {
        let sleeper = Sleeper::portable(|| Instant::MAX);
        Stack::new(&mut driver, config, sleeper, Arc::new(|| Instant::ZERO))
    };
    for (address, bits, words) in [
        ("224.0.0.1", 24, "224.0.0.1 is the multicast address"),
        ("0.1.2.3", 24, "all of 0.0.0.0/8 is"),
        ("255.255.255.255", 24, "broadcast"),
        ("ff02::1", 64, "fd00::2"),
        ("10.0.0.255", 24, "10.0.0.1 to 10.0.0.254"),
    ] {
        let wrong = Config {
            addresses: vec![(address.parse().unwrap(), bits)],
            ..config(1)
        };
        let why = made(wrong).err().map(|why| why.to_string());
        let why = why.unwrap_or_default();
        assert!(why.contains(words), "{address}/{bits}: {why:?}");
    }
    let first = made(config(1));
    let second = made(config(2)).err().map(|why| why.to_string());
    let second = second.unwrap_or_default();
    assert!(second.contains("has a stack already"), "{second:?}");
    drop(first);
}

fn started(host: &Scripted, peer: &str) -> ErrorKind {
    let peer: SocketAddr = peer.parse().unwrap();
    let started = TcpStream::start(&host.host.stack, peer);
    started.map(drop).unwrap_err().kind()
}

/// At once, and nothing is asked of anybody.
#[test]
fn a_peer_that_cannot_be_is_refused_at_once_as_the_system_does() {
    let mut host = Scripted::new();
    for (peer, kind) in [
        ("192.0.2.1:80", ErrorKind::NetworkUnreachable),
        ("[2001:db8::1]:80", ErrorKind::NetworkUnreachable),
        ("10.0.0.1:80", ErrorKind::AddrNotAvailable),
        ("224.0.0.1:80", ErrorKind::InvalidInput),
        ("255.255.255.255:80", ErrorKind::InvalidInput),
        ("10.0.0.255:80", ErrorKind::InvalidInput),
        ("10.0.0.0:80", ErrorKind::InvalidInput),
        ("0.0.0.0:80", ErrorKind::InvalidInput),
        ("0.1.2.9:80", ErrorKind::InvalidInput),
        ("127.0.0.1:80", ErrorKind::InvalidInput),
        ("[ff02::1]:80", ErrorKind::InvalidInput),
        ("10.0.0.2:0", ErrorKind::InvalidInput),
    ] {
        assert_eq!(started(&host, peer), kind, "{peer}");
    }
    assert!(host.hear().is_empty());
    // Whoever is at the other end of a wire without neighbours has every packet.
    let bare = Scripted::over(Medium::Ip);
    let peer = ([192, 0, 2, 1], 80).into();
    assert!(TcpStream::start(&bare.host.stack, peer).is_ok());
}
