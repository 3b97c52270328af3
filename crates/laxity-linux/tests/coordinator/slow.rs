//! What takes as long to close as whoever sent it likes.

use std::io::Write as _;
use std::iter;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd as _, OwnedFd};
use std::thread;
use std::time::Duration;

use laxity_linux::host::coordinator::Coordinator;
use laxity_model::program::coordinator::Ask;
use rustix::net::sockopt::set_socket_linger;

use tempfile::TempDir;

use crate::{OF_ONE_USER, Served, Stranger, settings};

/// A socket that lingers, with data that nobody reads: its last close waits for the other end's.
fn lingering() -> (OwnedFd, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut own = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (peer, _) = listener.accept().unwrap();
    own.set_nonblocking(true).unwrap();
    while own.write(&[0; 1 << 16]).is_ok() {}
    set_socket_linger(&own, Some(Duration::from_secs(3_600))).unwrap();
    (own.into(), peer)
}

/// Sends so many of them with a message, and keeps none: the other ends.
fn sends(stranger: &Stranger, ask: &Ask, count: usize) -> Vec<TcpStream> {
    let (sent, peers): (Vec<_>, _) = (0..count).map(|_| lingering()).unzip();
    let with: Vec<_> = sent.iter().map(|own: &OwnedFd| own.as_fd()).collect();
    assert!(stranger.send(&ask.encode(), &with));
    peers
}

fn resume() -> Ask {
    Ask::Resume {
        name: "stranger".to_owned(),
        seat: 0,
        items: Vec::new(),
    }
}

/// A coordinator that begins to serve when all of this has been sent, and somebody for whom it goes on.
fn serves_after<T>(sends: impl FnOnce(&TempDir) -> T) -> (Served, Stranger, T) {
    let directory = TempDir::new().unwrap();
    let mut coordinator = Coordinator::open(settings(&directory)).unwrap();
    let first = Stranger::of(&directory);
    let heard = coordinator.hear().unwrap().unwrap();
    coordinator.answer(heard);
    let sent = sends(&directory);
    let thread = thread::spawn(move || coordinator.serve().unwrap());
    (Served { directory, thread }, first, sent)
}

fn ends(served: Served, first: Stranger) {
    let client = served.client();
    served.still_serves(&client);
    drop((client, first));
    served.thread.join().unwrap();
}

#[test]
fn what_a_stranger_sends_with_a_message_holds_up_nobody() {
    for (ask, count) in [
        (Ask::List(0), 1),
        (resume(), 1),
        (resume(), 2),
        (resume(), 8),
    ] {
        let (served, first, (_peers, stranger)) = serves_after(|directory| {
            let stranger = Stranger::of(directory);
            (sends(&stranger, &ask, count), stranger)
        });
        // Only what may have them is answered with them, where there are no more than that may have.
        let is_answered = matches!(ask, Ask::Resume { .. }) && count <= 2;
        assert_eq!(stranger.hears().is_some(), is_answered);
        drop(stranger);
        ends(served, first);
    }
}

#[test]
fn what_a_stranger_sends_and_nobody_receives_holds_up_nobody() {
    let (served, first, (_peers, stranger)) = serves_after(|directory| {
        let stranger = Stranger::of(directory);
        // What is longer than any message ends the connection, with what is behind it.
        assert!(stranger.send(&vec![0; 50_000], &[]));
        (sends(&stranger, &Ask::List(0), 1), stranger)
    });
    assert!(stranger.has_ended());
    ends(served, first);
}

/// A connection is one of its user's until all that came with it is closed.
#[test]
fn what_is_not_closed_yet_counts_as_a_connection() {
    let (served, first, (peers, strangers)) = serves_after(|directory| {
        let of = |_| {
            let stranger = Stranger::of(directory);
            (sends(&stranger, &Ask::List(0), 1), stranger)
        };
        (2..OF_ONE_USER).map(of).unzip::<_, _, Vec<_>, Vec<_>>()
    });
    assert!(strangers.iter().all(Stranger::has_ended));
    let list = Ask::List(0).encode();
    let is_let_in = |one: &Stranger| one.send(&list, &[]) && one.hears().is_some();
    let next = || iter::repeat_with(|| served.stranger()).find(is_let_in);
    let last = next();
    assert!(served.stranger().has_ended());
    drop(peers);
    assert!(next().is_some());
    drop(last);
    ends(served, first);
}
