//! Who lets go of a socket has sent what it sent.

use std::io::{ErrorKind, Read};

use laxity_model::Span;
use laxity_net::emulated::Faults;
use laxity_net::sockets::{TcpListener, TcpStream};

use super::{Stream, Two, address, config, failure, sockets};
use laxity_net::stack::Config;

#[test]
fn a_datagram_leaves_whose_socket_is_let_go_of_at_once() {
    let mut two = Two::new(Faults::default());
    let [a, b] = sockets(&mut two, address);
    // So that the neighbour is known.
    a.send_to(b"first", b.local_addr()).unwrap();
    (0..80).for_each(|_| two.step());
    let mut bytes = [0; 20];
    assert_eq!(b.recv_from(&mut bytes).unwrap().0, 5);
    a.send_to(b"second", b.local_addr()).unwrap();
    drop(a);
    (0..80).for_each(|_| two.step());
    assert_eq!(b.recv_from(&mut bytes).unwrap().0, 6);
    drop(b);
    two.end();
}

#[test]
fn a_reset_leaves_whose_connection_is_let_go_of_at_once() {
    let mut two = Two::new(Faults::default());
    let (near, mut far) = two.connected(address(2));
    near.abort();
    drop(near);
    two.near.stack.poll(two.time.now());
    let told = two.until(|| failure(far.read(&mut [0; 8])));
    assert_eq!(told, ErrorKind::ConnectionReset);
    drop(far);
    two.end();
}

/// Whether its client is asked for, its answer is under way, or it waits to be accepted.
#[test]
fn what_nobody_accepts_any_more_is_reset_however_far_it_has_come() {
    for steps in [0, 1, 2, 3, 5, 1_000] {
        let mut two = Two::new(Faults::default());
        let listener = TcpListener::bind(&two.far.stack, 7, 4).unwrap();
        let near = TcpStream::start(&two.near.stack, (address(2), 7).into()).unwrap();
        let step = |two: &mut Two| {
            two.step();
            near.poll(two.time.now());
        };
        while two.far.stack.account().began == 0 {
            step(&mut two);
        }
        (0..steps).for_each(|_| step(&mut two));
        drop(listener);
        let is_reset = |error: ErrorKind| {
            matches!(
                error,
                ErrorKind::ConnectionReset | ErrorKind::ConnectionRefused
            )
        };
        // Of one that had no client yet nothing is left: it is told when its peer begins again.
        let is_told = (0..30_000).any(|_| {
            step(&mut two);
            let ended = near.receive(&mut [0; 4]).map_err(|error| error.kind());
            ended.is_err_and(is_reset)
        });
        assert!(is_told, "{steps}");
        drop(near);
        two.end();
    }
}

/// The peer reads to the end, and ends, too.
fn ends(two: &mut Two, mut peer: Stream) {
    two.until(|| (peer.read(&mut [0; 8]).ok() == Some(0)).then_some(()));
}

/// His last acknowledgement may be lost, so that he is there for some time.
#[test]
fn who_waits_for_the_last_words_of_his_peer_has_neither_client_nor_buffers_of_his_own() {
    // The stack's own, and one connection's.
    let mut two = Two::with(Faults::default(), config(1), 2);
    for connections in 1..=5 {
        let (near, far) = two.connected(address(2));
        drop(near);
        ends(&mut two, far);
        (0..100).for_each(|_| two.step());
        assert!(two.near.has_all_home() && two.far.has_all_home());
        assert_eq!(two.near.stack.tended(), connections);
    }
    // What is said once more is answered once more.
    let (near, mut far) = two.connected(address(2));
    drop(near);
    two.until(|| (far.read(&mut [0; 8]).ok() == Some(0)).then_some(()));
    (0..1_000).for_each(|_| two.step());
    let arrived = two.near.driver.account().arrived;
    drop(far);
    for _ in 0..1_000 {
        if two.near.driver.account().arrived == arrived {
            two.step();
        }
    }
    two.wire.set_faults(Faults {
        lost: 1_000_000,
        ..Faults::default()
    });
    two.step();
    two.wire.set_faults(Faults::default());
    assert!(!two.far.has_all_home());
    for _ in 0..50_000 {
        two.step();
    }
    assert!(two.far.has_all_home(), "within 5 s");
    assert!(two.near.stack.account().passed > 0);
    two.end();
}

#[test]
fn who_has_ended_does_not_wait_for_ever_for_a_peer_that_does_not_end() {
    let near = Config {
        patience: Span::from_secs(2),
        ..config(1)
    };
    let mut two = Two::with(Faults::default(), near, 64);
    let (near, mut far) = two.connected(address(2));
    drop(near);
    let from = two.time.now();
    let mut says = || far.read(&mut [0; 8]).and_then(|_| far.send(b"x"));
    let told = two.until(|| says().err().and_then(|error| failure::<()>(Err(error))));
    assert_eq!(told, ErrorKind::BrokenPipe);
    let took = two.time.now().saturating_since(from);
    assert!(
        took > Span::from_secs(2) && took < Span::from_secs(3),
        "{took:?}"
    );
    drop(far);
    two.end();
}
