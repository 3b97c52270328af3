//! Who is reached by a socket, and lends rings there.

use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::time::Duration;

use laxity_linux::host::local::{Line, News, Server};
use laxity_linux::host::ring::Ring;
use laxity_model::channels::ring::{Side, Tag};
use rustix::process::{getpid, getuid};
use tempfile::TempDir;

use super::shape;

const PATIENCE: Duration = Duration::from_secs(10);

fn server() -> (TempDir, PathBuf, Server) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("own/node.sock");
    let server = Server::open(&path, false).unwrap();
    (directory, path, server)
}

/// What is new, of which there is something.
fn news(server: &mut Server) -> Vec<News> {
    let all = std::iter::repeat_with(|| server.hear(None, None).unwrap().unwrap());
    let mut some = all.filter(|news| !news.is_empty());
    some.next().unwrap()
}

#[test]
fn who_calls_is_known_and_gets_a_ring() {
    let (_directory, path, mut server) = server();
    let line = Line::connect(&path, PATIENCE).unwrap();
    let came = news(&mut server);
    let [News::Came(id, who)] = came[..] else {
        panic!("{came:?}");
    };
    let own = (getpid().as_raw_pid() as u32, getuid().as_raw());
    assert_eq!((who.process, who.user), own);
    assert_eq!(server.who(id), Some(who));
    line.say(b"a ring, please").unwrap();
    assert_eq!(
        news(&mut server),
        [News::Said(id, b"a ring, please".to_vec())]
    );
    let (ring, other) = Ring::create(shape(), Side::Receiver).unwrap();
    assert!(server.say(id, b"here", &[other[0].as_fd(), other[1].as_fd()]));
    drop(other);
    let (said, with) = line.hear().unwrap().unwrap();
    assert_eq!(said, b"here");
    let with: [_; 2] = with.try_into().unwrap();
    let own = Ring::attach(shape(), Side::Sender, with).unwrap();
    own.sender().send(b"by it", Tag::default()).unwrap();
    let mut bytes = [0; 5];
    let received = ring.receiver().receive(&mut bytes);
    assert_eq!(received, Ok(Some((5, Tag::default()))));
    drop(line);
    assert_eq!(news(&mut server), [News::Gone(id)]);
    assert!(!server.say(id, b"to nobody", &[]));
}

#[test]
fn who_says_too_much_or_takes_nothing_is_let_go_alone() {
    let (_directory, path, mut server) = server();
    let honest = Line::connect(&path, PATIENCE).unwrap();
    let long = Line::connect(&path, PATIENCE).unwrap();
    let deaf = Line::connect(&path, PATIENCE).unwrap();
    let mut came = Vec::new();
    while came.len() < 3 {
        came.extend(news(&mut server));
    }
    let ids: Vec<u64> = came
        .iter()
        .map(|news| match news {
            News::Came(id, _) => *id,
            other => panic!("{other:?}"),
        })
        .collect();
    long.say(&[0; 40_000]).unwrap();
    assert_eq!(news(&mut server), [News::Gone(ids[1])]);
    // Whoever reads nothing fills his own socket only.
    let taken = (0..100_000).take_while(|_| server.say(ids[2], &[0; 100], &[]));
    assert!(taken.count() < 100_000);
    server.let_go(ids[2]);
    assert_eq!(server.who(ids[2]), None);
    assert!(server.say(ids[0], b"still here", &[]));
    assert_eq!(honest.hear().unwrap().unwrap().0, b"still here");
    drop(deaf);
    let ends = rustix::event::eventfd(1, rustix::event::EventfdFlags::CLOEXEC).unwrap();
    assert_eq!(server.hear(Some(&ends), None).unwrap(), None);
    drop(server);
    assert!(!path.exists() && honest.hear().unwrap().is_none());
}

#[test]
fn a_directory_in_which_others_may_write_is_none_for_a_socket() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = TempDir::new().unwrap();
    let all = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(directory.path(), all).unwrap();
    let refused = Server::open(&directory.path().join("node.sock"), false);
    let kind = refused.err().map(|error| error.kind());
    assert_eq!(kind, Some(std::io::ErrorKind::PermissionDenied));
}
