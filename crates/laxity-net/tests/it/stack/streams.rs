//! Connections and datagrams between two stacks.

use std::io::{ErrorKind, Read};
use std::net::{Shutdown, SocketAddr};

use laxity_model::Span;
use laxity_model::nif::exchange::Reason;
use laxity_net::emulated::Faults;
use laxity_net::sockets::{TcpListener, TcpStream};
use laxity_net::stack::Config;

use super::{Stream, Two, address, address6, config, failure, read, sockets, write};

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 31 + at / 253) as u8).collect()
}

fn transfer(two: &mut Two, (mut from, mut to): (Stream, Stream), length: usize) {
    let sent = pattern(length);
    let (mut said, mut heard) = (0, Vec::new());
    let time = two.time.clone();
    two.until(|| {
        if said < sent.len() {
            said += write(&mut from, &sent[said..]);
            if said == sent.len() {
                from.shutdown(Shutdown::Write);
            }
        } else {
            from.poll(time.now());
        }
        read(&mut to, &mut heard).is_none().then_some(())
    });
    assert!(heard == sent, "{} of {} bytes", heard.len(), sent.len());
}

#[test]
fn transfers_complete_and_are_right_under_loss_reordering_doubling_and_corruption() {
    let late_by = Span::from_micros(900);
    for (lost, doubled, late, corrupted) in [
        (0, 0, 0, 0),
        (1_000, 0, 0, 0),
        (50_000, 0, 0, 0),
        (0, 50_000, 0, 0),
        (0, 0, 50_000, 0),
        (0, 0, 0, 10_000),
        (10_000, 10_000, 10_000, 10_000),
    ] {
        let faults = Faults {
            delay: Span::from_micros(200),
            lost,
            doubled,
            late,
            late_by,
            corrupted,
            ..Faults::default()
        };
        let mut two = Two::new(faults);
        let streams = two.connected(address(2));
        transfer(&mut two, streams, 1_000_000);
        two.end();
    }
}

/// Both ends send as much and end; each reads to the end of what the other sent.
fn exchange(two: &mut Two, streams: (Stream, Stream), length: usize) {
    let sent = pattern(length);
    let time = two.time.clone();
    let mut ends = [streams.0, streams.1].map(|stream| (stream, 0, Vec::new(), false));
    two.until(|| {
        for (stream, said, heard, is_told) in &mut ends {
            stream.poll(time.now());
            if *said < sent.len() {
                *said += write(stream, &sent[*said..]);
                if *said == sent.len() {
                    stream.shutdown(Shutdown::Write);
                }
            }
            *is_told = *is_told || read(stream, heard).is_none();
        }
        ends.iter().all(|(.., is_told)| *is_told).then_some(())
    });
    for (_, _, heard, _) in ends {
        assert!(heard == sent, "{} of {} bytes", heard.len(), sent.len());
    }
}

#[test]
fn both_ways_at_once_complete_over_a_wire_with_every_fault() {
    let faults = Faults {
        rate: 100_000_000,
        delay: Span::from_micros(200),
        lost: 5_000,
        doubled: 20_000,
        late: 50_000,
        late_by: Span::from_micros(700),
        corrupted: 10_000,
    };
    for seed in 1..=6 {
        for own in [address, address6] {
            let mut two = Two::seeded(faults, seed);
            let streams = two.connected(own(2));
            exchange(&mut two, streams, 300_000);
            two.end();
        }
    }
}

/// A host that has a buffer for one packet says so, and learns what has arrived though its peer has sent all that he may.
#[test]
fn a_host_of_one_buffer_each_way_is_done_however_much_is_lost_both_ways() {
    let faults = Faults {
        rate: 100_000_000,
        lost: 20_000,
        ..Faults::default()
    };
    for seed in 1..=6 {
        for own in [address, address6] {
            let mut two = Two::of_one_buffer(faults, seed);
            let streams = two.connected(own(2));
            exchange(&mut two, streams, 300_000);
            two.end();
        }
    }
}

#[test]
fn ipv6_carries_the_same() {
    let mut two = Two::new(Faults::default());
    let streams = two.connected(address6(2));
    transfer(&mut two, streams, 300_000);
    two.end();
}

#[test]
fn as_many_connections_as_the_backlog_has_room_for_begin_at_once_and_one_more_waits() {
    let mut two = Two::new(Faults::default());
    let listener = TcpListener::bind(&two.far.stack, 7, 8).unwrap();
    let again = TcpListener::bind(&two.far.stack, 7, 8).map(drop);
    assert_eq!(again.unwrap_err().kind(), ErrorKind::AddrInUse);
    let to = SocketAddr::new(address(2), 7);
    let streams: Vec<Stream> = (0..9)
        .map(|_| TcpStream::start(&two.near.stack, to).unwrap())
        .collect();
    let time = two.time.clone();
    let mut connected = 0;
    for _ in 0..2_000 {
        two.step();
        connected = streams
            .iter()
            .filter(|stream| {
                stream.poll(time.now());
                stream.send(b"x").is_ok()
            })
            .count();
    }
    assert_eq!(connected, 8);
    assert!(listener.refused() > 0);
    let mut accepted: Vec<Stream> = Vec::new();
    two.until(|| {
        for stream in &streams {
            stream.poll(time.now());
        }
        accepted.extend(listener.try_accept());
        (accepted.len() == 9).then_some(())
    });
    let mut peers: Vec<_> = accepted.iter().map(Stream::peer_addr).collect();
    peers.sort();
    let mut own: Vec<_> = streams.iter().map(Stream::local_addr).collect();
    own.sort();
    assert_eq!(peers, own);
    drop((streams, accepted, listener));
    two.end();
}

#[test]
fn who_has_ended_one_way_still_reads_the_other() {
    let mut two = Two::new(Faults::default());
    let (mut near, mut far) = two.connected(address(2));
    near.shutdown(Shutdown::Write);
    two.until(|| read(&mut far, &mut Vec::new()).is_none().then_some(()));
    assert_eq!(write(&mut far, b"still here"), 10);
    far.shutdown(Shutdown::Write);
    let mut heard = Vec::new();
    two.until(|| read(&mut near, &mut heard).is_none().then_some(()));
    assert_eq!(heard, b"still here");
    assert_eq!(near.send(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
    drop((near, far));
    two.end();
}

#[test]
fn a_reset_is_told_and_a_port_that_nobody_has_refuses() {
    let mut two = Two::new(Faults::default());
    let (near, mut far) = two.connected(address(2));
    near.abort();
    let told = two.until(|| failure(far.read(&mut [0; 8])));
    assert_eq!(told, ErrorKind::ConnectionReset);
    let nobodys = TcpStream::start(&two.near.stack, SocketAddr::new(address(2), 99)).unwrap();
    let told = two.until(|| failure(nobodys.send(b"x")));
    assert_eq!(told, ErrorKind::BrokenPipe);
    drop((near, far, nobodys));
    two.end();
}

#[test]
fn datagrams_arrive_whole_and_what_finds_no_buffer_is_counted() {
    for own in [address as fn(u8) -> _, address6] {
        let mut two = Two::new(Faults::default());
        let [a, b] = sockets(&mut two, own);
        let to = b.local_addr();
        let mut heard = 0;
        let mut bytes = [0; 2000];
        two.until(|| {
            a.send_to(&[7; 1000], to).ok();
            heard += usize::from(
                b.recv_from(&mut bytes)
                    .is_ok_and(|got| got == (1000, a.local_addr())),
            );
            (heard == 20).then_some(())
        });
        while b.recv_from(&mut bytes).is_ok() {}
        // It reads nothing, and has 64 buffers.
        for _ in 0..2_000 {
            a.send_to(&[7; 10], to).ok();
            two.step();
        }
        let mut kept = 0;
        while b.recv_from(&mut bytes).is_ok() {
            kept += 1;
        }
        assert_eq!(kept, 64);
        assert!(two.far.driver.account().dropped(Reason::NoBuffer) > 1_000);
        assert!(a.send_to(&[0; 1500], to).is_err());
        drop((a, b));
        two.end();
    }
}

#[test]
fn ten_thousand_connections_that_nothing_happens_to_are_looked_at_by_no_poll() {
    let small = Config {
        buffers: 1,
        window: 2048,
        ..config(1)
    };
    let mut two = Two::with(
        Faults::default(),
        Config {
            buffers: 64,
            ..small.clone()
        },
        64,
    );
    drop(two.connected(address(2)));
    let mut two = Two::with(Faults::default(), small, 10_100);
    let nobody = SocketAddr::new(address(99), 7);
    let idle: Vec<Stream> = (0..10_000)
        .map(|_| TcpStream::start(&two.near.stack, nobody).unwrap())
        .collect();
    (0..10_100).for_each(|_| two.step());
    let streams = two.connected(address(2));
    assert_eq!(two.near.stack.tended(), 0);
    transfer(&mut two, streams, 20_000);
    assert_eq!(idle.len(), 10_000);
}

#[test]
fn short_writes_are_gathered_only_where_they_may_wait() {
    for (is_at_once, most) in [(true, 10), (false, 2)] {
        let mut two = Two::new(Faults::default());
        let (mut stream, mut peer) = two.connected(address(2));
        stream.set_nodelay(is_at_once);
        let before = stream.moved().sent;
        for _ in 0..10 {
            assert_eq!(write(&mut stream, &[7; 10]), 10);
        }
        let mut received = Vec::new();
        let time = two.time.clone();
        two.until(|| {
            stream.poll(time.now());
            read(&mut peer, &mut received).expect("the peer is there");
            (received.len() == 100).then_some(())
        });
        let sent = stream.moved().sent.since(before);
        // Each has 40 bytes of headers, and an acknowledgement may stand alone.
        let segments = (sent.bytes - 100) / 40;
        assert_eq!((segments, sent.packets), (most, most), "{is_at_once}");
        drop((stream, peer));
        two.end();
    }
}
