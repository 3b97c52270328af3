//! Who lets go of a socket has sent what it sent.

use std::io::{ErrorKind, Read};

use laxity_net::emulated::Faults;
use laxity_net::sockets::{TcpListener, TcpStream};

use super::{Two, address, failure, sockets};

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
