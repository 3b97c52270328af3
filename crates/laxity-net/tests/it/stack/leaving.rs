//! Who lets go of a socket has sent what it sent.

use std::io::{ErrorKind, Read};

use laxity_net::emulated::Faults;

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
