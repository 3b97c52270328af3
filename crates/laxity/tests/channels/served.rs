//! Applications that reach their node by a socket, as another process does.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread::{self, JoinHandle};

use laxity::Span;
use laxity::channels::{
    Book, Cause, Client, Error, Excess, HostId, Known, Refusal, SendError, Server, Told, Traffic,
    Wanted,
};
use tempfile::TempDir;

use super::support::{addresses, listens, name, nodes};

/// A node that is served by a thread, until this is dropped.
struct Served {
    path: PathBuf,
    thread: Option<JoinHandle<()>>,
    ends: Option<UnixStream>,
    _directory: TempDir,
}

impl Served {
    fn client(&self) -> Client {
        Client::connect(&self.path).unwrap()
    }

    /// The node has ended.
    fn end(&mut self) {
        drop(self.ends.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.end();
    }
}

fn wanted(bytes: u32) -> Wanted {
    Wanted {
        to: HostId(1),
        traffic: Traffic::new(bytes, (1, Span::from_millis(1)), 8).unwrap(),
        discard: false,
        within: Span::from_millis(20),
        over: Excess::Shape,
    }
}

/// What both hosts' files say.
fn book() -> Book {
    let known = Known {
        wanted: wanted(64),
        over: vec![HostId(1)],
    };
    Book {
        routes: BTreeMap::from([(HostId(1), vec![HostId(1)])]),
        channels: BTreeMap::from([(name("control"), known)]),
        users: BTreeMap::new(),
    }
}

/// Two hosts that are neighbours over the loop, each served.
fn served() -> [Served; 2] {
    nodes(addresses(), true).map(|node| {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("own/channels.sock");
        let mut server = Server::open(node, book(), &path).unwrap();
        let (told, ends) = UnixStream::pair().unwrap();
        let told = OwnedFd::from(told);
        Served {
            path,
            thread: Some(thread::spawn(move || server.serve(&told).unwrap())),
            ends: Some(ends),
            _directory: directory,
        }
    })
}

#[test]
fn a_channel_of_the_file_is_opened_by_its_name_and_carries() {
    let [from, to] = served();
    let listener = (to.client()).listen(name("control"), listens(64)).unwrap();
    let client = from.client();
    assert_eq!(client.host(), HostId(0));
    let mut sender = client.open(&name("control"), None).unwrap();
    // Its ends have what they need of the connection.
    drop(client);
    assert_eq!(sender.granted().bounds.len(), 2);
    assert!(sender.granted().bound() <= Span::from_millis(20));
    // Nobody owns the loop.
    assert!(sender.grade().reason().is_some());
    let mut receiver = listener.accept(None).unwrap().unwrap();
    assert_eq!(receiver.channel(), sender.channel());
    assert_eq!(receiver.asked().traffic, wanted(64).traffic);
    let mut into = [0; 64];
    for number in 0..200_u64 {
        let message = [number as u8; 48];
        sender.send_until(&message, None).unwrap();
        let (told, length) = receiver.receive(&mut into, None).unwrap().unwrap();
        let Told::Message {
            number: told, gap, ..
        } = told
        else {
            panic!("{told:?}");
        };
        assert_eq!((told, gap), (number, 0));
        assert_eq!(into[..length], message);
    }
    let slower = Traffic::new(64, (1, Span::from_millis(2)), 8).unwrap();
    let granted = sender.change(slower, Span::from_millis(18)).unwrap();
    assert!(granted.bound() <= Span::from_millis(18));
    drop(sender);
    let over = receiver.receive(&mut into, None).unwrap_err();
    assert!(
        matches!(over, Error::Over(Cause::Closed(HostId(0)))),
        "{over}"
    );
}

#[test]
fn what_is_not_granted_is_told_as_by_a_node_of_ones_own() {
    let [from, to] = served();
    let client = from.client();
    let unnamed = client.open(&name("nothing"), None).unwrap_err();
    assert!(matches!(unnamed, Error::Unnamed), "{unnamed}");
    let nobody = client.open(&name("control"), None).unwrap_err();
    let declined = laxity::channels::DECLINED_NOBODY;
    assert!(
        matches!(nobody, Error::Refused(Refusal::Declined(why)) if why == declined),
        "{nobody}"
    );
    let listening = to.client();
    let listener = listening.listen(name("control"), listens(64)).unwrap();
    let taken = to
        .client()
        .listen(name("control"), listens(64))
        .unwrap_err();
    assert!(matches!(taken, Error::Taken), "{taken}");
    let large = client.open(&name("control"), Some(wanted(65))).unwrap_err();
    let declined = laxity::channels::DECLINED_LARGE;
    assert!(
        matches!(large, Error::Refused(Refusal::Declined(why)) if why == declined),
        "{large}"
    );
    let short = client
        .open(&name("control"), Some(wanted(100_000)))
        .unwrap_err();
    assert!(
        matches!(short, Error::Refused(Refusal::Short { at: HostId(0), .. })),
        "{short}"
    );
    let nowhere = Wanted {
        to: HostId(7),
        ..wanted(64)
    };
    let nowhere = client.open(&name("control"), Some(nowhere)).unwrap_err();
    assert!(
        matches!(nowhere, Error::Refused(Refusal::NoLink { .. })),
        "{nowhere}"
    );
    // Who listens no more leaves the name to others.
    drop(listener);
    drop(listening.listen(name("control"), listens(64)).unwrap());
}

#[test]
fn the_end_of_a_node_is_told_to_all_who_have_something_of_it() {
    let [mut from, to] = served();
    let listener = (to.client()).listen(name("control"), listens(64)).unwrap();
    let mut sender = from.client().open(&name("control"), None).unwrap();
    let mut receiver = listener.accept(None).unwrap().unwrap();
    from.end();
    while sender.send_until(&[0; 64], None).is_ok() {}
    let over = sender.send(&[0; 64]).unwrap_err();
    assert!(matches!(over, SendError::Over(Error::Ended)), "{over}");
    let mut told = Ok(None);
    while told.is_ok() {
        told = receiver.receive(&mut [0; 64], None);
    }
    let lost = told.unwrap_err();
    assert!(
        matches!(
            lost,
            Error::Over(Cause::Lost {
                silent: HostId(0),
                ..
            })
        ),
        "{lost}"
    );
    let again = Client::connect(&from.path).unwrap_err();
    assert!(matches!(again, Error::Unreached(..)), "{again}");
}
