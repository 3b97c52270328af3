//! TCP and UDP with the kernel's own, compared byte by byte.

use std::io::{Read, Write};
use std::net::{self, IpAddr, Shutdown, SocketAddr};
use std::thread;
use std::time::Duration;

use laxity::net::sockets::{TcpListener, TcpStream, UdpSocket};
use laxity::net::{Error, Interface, Options, StackConfig};
use laxity::{Span, now};
use laxity_model::nif::exchange::Reason;

use super::super::namespace::ip;
use super::super::support::in_namespace;
use super::{ALL, KERNELS, OURS, Over, Peers, Stream, config, kernels6, ours6, pattern};

const LENGTH: usize = 10_000_000;
const PATIENCE: Duration = Duration::from_secs(60);

/// Both ends send at once, each reads to the end, and all is as it was sent.
fn exchange(ours: &Stream, kernels: &net::TcpStream, over: Over) {
    let [our_words, their_words] = [1, 2].map(|seed| pattern(LENGTH, seed));
    ours.set_read_timeout(Some(Span::from_secs(60)));
    ours.set_write_timeout(Some(Span::from_secs(60)));
    kernels.set_read_timeout(Some(PATIENCE)).unwrap();
    kernels.set_write_timeout(Some(PATIENCE)).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut said = 0;
            while said < LENGTH {
                said += ours.send(&our_words[said..]).unwrap();
            }
            ours.shutdown(Shutdown::Write);
        });
        scope.spawn(|| {
            let mut kernels = kernels;
            kernels.write_all(&their_words).unwrap();
            kernels.shutdown(Shutdown::Write).unwrap();
        });
        let theirs = scope.spawn(|| {
            let (mut kernels, mut heard) = (kernels, Vec::with_capacity(LENGTH));
            kernels.read_to_end(&mut heard).unwrap();
            heard
        });
        let (mut heard, mut piece) = (Vec::with_capacity(LENGTH), vec![0; 65_536]);
        loop {
            match ours.receive(&mut piece).unwrap() {
                0 => break,
                count => heard.extend_from_slice(&piece[..count]),
            }
        }
        assert!(heard == their_words, "{over:?}: what we heard");
        assert!(
            theirs.join().unwrap() == our_words,
            "{over:?}: what they heard"
        );
    });
}

/// The kernel connects to us, then we to it.
fn both_roles(over: Over, ends: [IpAddr; 2]) {
    both_roles_with(over, ends, config());
}

fn both_roles_with(over: Over, [ours, kernels]: [IpAddr; 2], config: StackConfig) {
    in_namespace(|| {
        let Peers { host, interface } = Peers::with(over, config);
        let listener = TcpListener::bind(&host, 5_000, 2).unwrap();
        let stream = net::TcpStream::connect_timeout(&SocketAddr::new(ours, 5_000), PATIENCE);
        let stream = stream.unwrap();
        let peer = listener.accept(Some(now() + Span::from_secs(20))).unwrap();
        assert_eq!(peer.peer_addr(), stream.local_addr().unwrap());
        exchange(&peer, &stream, over);
        drop((peer, stream));
        let kernel = net::TcpListener::bind(SocketAddr::new(kernels, 5_001)).unwrap();
        let stream = TcpStream::connect(&host, kernel.local_addr().unwrap()).unwrap();
        let (peer, from) = kernel.accept().unwrap();
        assert_eq!(from, stream.local_addr());
        exchange(&stream, &peer, over);
        drop(stream);
        let account = interface.counters().unwrap().account;
        assert_eq!(
            account.dropped(Reason::Refused),
            0,
            "a queue has room for all of its buffers"
        );
    });
}

#[test]
fn ten_megabytes_each_way_arrive_right_in_both_roles_over_a_packet_socket() {
    both_roles(Over::Packet, [OURS.into(), KERNELS.into()]);
}

#[test]
fn and_where_the_kernel_leaves_segments_uncut() {
    both_roles(Over::PacketSegments, [OURS.into(), KERNELS.into()]);
}

#[test]
fn and_where_more_is_on_its_way_than_a_socket_of_the_kernels_has_room_for() {
    for over in [Over::PacketSegments, Over::TapSegments] {
        let config = StackConfig {
            window: 1 << 20,
            ..config()
        };
        both_roles_with(over, [OURS.into(), KERNELS.into()], config);
    }
}

#[test]
fn and_over_af_xdp() {
    both_roles(Over::Xdp, [OURS.into(), KERNELS.into()]);
}

#[test]
fn and_over_tap() {
    both_roles(Over::Tap, [OURS.into(), KERNELS.into()]);
}

#[test]
fn and_over_tap_where_the_kernel_leaves_segments_uncut() {
    both_roles(Over::TapSegments, [OURS.into(), KERNELS.into()]);
}

#[test]
fn and_over_tun() {
    for over in [Over::Tun, Over::TunSegments] {
        both_roles(over, [OURS.into(), KERNELS.into()]);
    }
}

#[test]
fn and_by_ipv6() {
    for over in ALL {
        both_roles(over, [ours6(), kernels6()]);
    }
}

#[test]
fn datagrams_come_back_as_they_were_sent() {
    for over in ALL {
        in_namespace(|| {
            let peers = Peers::new(over);
            for own in [IpAddr::from(OURS), ours6()] {
                let to = SocketAddr::new(own, 7);
                let socket = UdpSocket::bind(&peers.host, to).unwrap();
                socket.set_read_timeout(Some(Span::from_secs(20)));
                let any = SocketAddr::new(
                    if own.is_ipv4() {
                        KERNELS.into()
                    } else {
                        kernels6()
                    },
                    0,
                );
                let kernels = net::UdpSocket::bind(any).unwrap();
                kernels.set_read_timeout(Some(PATIENCE)).unwrap();
                let (mut one, mut other) = ([0; 2_000], [0; 2_000]);
                for length in (0..1_452).step_by(11) {
                    let said = pattern(length, length);
                    kernels.send_to(&said, to).unwrap();
                    let told = || {
                        let counters = peers.interface.counters().unwrap();
                        let (account, neighbours) = (peers.host.account(), peers.host.neighbours());
                        format!(
                            "{over:?}, {length} bytes to {to}: {counters:?} {account:?} {neighbours:?}"
                        )
                    };
                    let lost = |error| panic!("{error}: {}", told());
                    let (count, from) = socket.recv_from(&mut one).unwrap_or_else(lost);
                    assert_eq!(from, kernels.local_addr().unwrap());
                    socket.send_to(&one[..count], from).unwrap();
                    let (count, from) = kernels.recv_from(&mut other).unwrap_or_else(lost);
                    assert_eq!((&other[..count], from), (&said[..], to), "{over:?}");
                }
            }
        });
    }
}

#[test]
fn an_address_of_the_kernels_is_refused_by_name_where_it_has_the_interface_too() {
    in_namespace(|| {
        let peers = Peers::new(Over::Packet);
        for (taken, length) in [(IpAddr::from(KERNELS), 24), (kernels6(), 64)] {
            let config = StackConfig {
                addresses: vec![(taken, length)],
                ..config()
            };
            let beside = Interface::open("packet:near", Options::default()).unwrap();
            let refused = beside.stack(config.clone()).err().unwrap();
            assert!(matches!(refused, Error::KernelsAddress(address) if address == taken));
            assert!(
                refused
                    .to_string()
                    .contains(&format!("`ip address del {taken}"))
            );
            assert!(ip(&format!("address del {taken}/{length} dev far")));
            assert!(beside.stack(config).is_ok());
        }
        drop(peers);
    });
}
