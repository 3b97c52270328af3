//! A process with nodes that forks: they are the parent's alone.
#![allow(unsafe_code, reason = "forks without another program")]

use laxity::Span;
use laxity::channels::{Error, Lane, Told};

use super::support::{addresses, listens, name, nodes, spec};

/// A child that panics exits, too, and is no second test.
struct Exits;

impl Drop for Exits {
    fn drop(&mut self) {
        // SAFETY: takes a number.
        unsafe { libc::_exit(99) }
    }
}

#[test]
fn a_child_is_told_that_it_has_no_node_and_the_parents_goes_on() {
    let both = nodes(addresses(), true);
    let listener = both[1].listen(name("control"), listens(64), Span::ZERO);
    let listener = listener.unwrap();
    let mut sender = both[0].open(&spec(64, 1)).unwrap();
    let mut receiver = listener.accept(None).unwrap().unwrap();
    // SAFETY: the child has a copy of all that it calls, waits for no other thread but as it is told, and exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let _exits = Exits;
        // SAFETY: takes a number.
        unsafe { libc::alarm(20) };
        let is_told = matches!(both[0].links(), Err(Error::Ended))
            && matches!(both[0].open(&spec(64, 1)), Err(Error::Ended))
            && matches!(receiver.counts(Lane::RealTime), Err(Error::Ended));
        drop((listener, sender, receiver, both));
        // SAFETY: takes a number.
        unsafe { libc::_exit(i32::from(!is_told)) }
    }
    let mut status = -1;
    // SAFETY: the number is there.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, status), (child, 0));
    sender.send(&[7; 64]).unwrap();
    let (told, length) = receiver.receive(&mut [0; 64], None).unwrap().unwrap();
    assert!(matches!(told, Told::Message { number: 0, .. }) && length == 64);
    assert!(both[0].links().is_ok());
}
