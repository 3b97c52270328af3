//! Rings between two processes, of which one may be hostile, or be killed at any step.

mod forged;
mod killed;
mod reached;

use std::os::fd::OwnedFd;

use laxity_linux::host::ring::{Ring, RingError};
use laxity_model::channels::ring::{Refused, Shape, Side, Tag, end};
use laxity_model::{Instant, Span};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, SealFlags, ftruncate, memfd_create};

fn shape() -> Shape {
    Shape::new(4, 100).unwrap()
}

/// Both sides, in one process.
fn both() -> (Ring, Ring) {
    let (own, other) = Ring::create(shape(), Side::Receiver).unwrap();
    let sending = Ring::attach(shape(), Side::Sender, other).unwrap();
    (sending, own)
}

/// Whether its descriptor is readable now.
fn is_readable(ring: &Ring) -> bool {
    let mut polled = [PollFd::new(ring, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec::default())).unwrap() > 0
}

#[test]
fn what_is_sent_arrives_and_a_descriptor_is_raised_only_for_who_sleeps() {
    let (sending, receiving) = both();
    let (mut sender, mut receiver) = (sending.sender(), receiving.receiver());
    let mut bytes = [0; 100];
    sender.send(b"to who is awake", Tag::default()).unwrap();
    assert!(!is_readable(&receiving) && !receiver.rests());
    let received = receiver.receive(&mut bytes).unwrap();
    assert_eq!(received, Some((15, Tag::default())));
    assert!(receiver.rests());
    sender.send(b"to who sleeps", Tag::default()).unwrap();
    sender.send(b"and is woken once", Tag::default()).unwrap();
    assert!(is_readable(&receiving) && receiving.clear());
    assert!(!is_readable(&receiving));
    // The same for who waits for a buffer.
    let more = std::iter::from_fn(|| sender.send(&[], Tag::default()).ok());
    assert_eq!(more.count(), 2);
    assert!(sender.rests() && !is_readable(&sending));
    receiver.receive(&mut bytes).unwrap();
    assert!(is_readable(&sending) && sending.clear());
    // Nobody waits longer than he likes.
    let soon = laxity_linux::os::clock::now() + Span::from_millis(1);
    sender.send(&[], Tag::default()).unwrap();
    assert_eq!(sender.wait(Some(soon)), Err(Refused::Full));
    assert_eq!(
        receiver.wait(Some(Instant::ZERO)).map(|one| one.is_some()),
        Ok(true)
    );
}

#[test]
fn the_end_is_told_to_both_however_they_wait() {
    let (sending, receiving) = both();
    let (mut sender, mut receiver) = (sending.sender(), receiving.receiver());
    assert!(receiver.rests());
    std::thread::scope(|scope| {
        receiver.hold(true);
        let waits = scope.spawn(|| sender.wait(None));
        end(&receiving);
        assert_eq!(waits.join().unwrap(), Err(Refused::Ended));
    });
    // By its own end of the socket, too: another thread of the process has learned of the other's end.
    assert!(is_readable(&receiving) && !receiving.clear());
    assert_eq!(receiver.take(), Err(Refused::Ended));
    // And who polls sees that the other process has gone, though it said nothing.
    let (sending, receiving) = both();
    drop(sending);
    assert!(is_readable(&receiving) && !receiving.clear());
}

#[test]
fn whoever_wakes_the_other_never_waits_for_that() {
    let (own, other) = Ring::create(shape(), Side::Sender).unwrap();
    // What was sent along is blocking, and nobody ever reads it.
    rustix::io::ioctl_fionbio(&other[1], false).unwrap();
    let receiving = Ring::attach(shape(), Side::Receiver, other).unwrap();
    let (mut sender, mut receiver) = (own.sender(), receiving.receiver());
    for _ in 0..10_000 {
        assert!(receiver.rests());
        sender.send(&[], Tag::default()).unwrap();
        receiver.receive(&mut []).unwrap();
    }
    assert!(is_readable(&receiving));
}

#[test]
fn memory_that_is_none_of_a_ring_is_refused() {
    let refuses = |memory: OwnedFd, shape: Shape| {
        let (_, [_, bell]) = Ring::create(shape, Side::Sender).unwrap();
        let attached = Ring::attach(shape, Side::Receiver, [memory, bell]);
        assert!(
            matches!(attached, Err(RingError::Unknown(_))),
            "{attached:?}"
        );
    };
    let memory = |bytes: u64, seals| {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let memory = memfd_create("other", flags).unwrap();
        ftruncate(&memory, bytes).unwrap();
        rustix::fs::fcntl_add_seals(&memory, seals).unwrap();
        memory
    };
    refuses(memory(shape().memory(), SealFlags::GROW), shape());
    refuses(memory(shape().memory() - 1, SealFlags::SHRINK), shape());
    refuses(tempfile::tempfile().unwrap().into(), shape());
    let (_, [own, _]) = Ring::create(shape(), Side::Sender).unwrap();
    assert!(ftruncate(&own, 0).is_err());
    refuses(own, Shape::new(5, 100).unwrap());
}
