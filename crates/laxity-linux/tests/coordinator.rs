//! What strangers may say to a coordinator: it answers, or ends the connection, and serves the others as before.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use laxity_linux::host::coordinator::{At, Client, Coordinator, Settings, Starter, list};
use laxity_model::analysis::Task;
use laxity_model::executor::linked::Linked;
use laxity_model::program::coordinator::{Answer, Ask, Item};
use laxity_model::program::together::Standing;
use laxity_model::{Service, Span};
use rustix::cmsg_space;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, recv, sendmsg, socket_with,
};
use tempfile::TempDir;

/// Connections of one user.
const OF_ONE_USER: usize = 36;

struct Served {
    directory: TempDir,
    thread: JoinHandle<()>,
}

impl Served {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let at = At::new(0, Some(directory.path().to_owned()));
        let settings = Settings {
            watch: None,
            linger: Span::from_millis(20),
            ..Settings::new(at)
        };
        let coordinator = Coordinator::open(settings).unwrap();
        let thread = thread::spawn(move || coordinator.serve().unwrap());
        Self { directory, thread }
    }

    fn at(&self) -> At {
        At::new(0, Some(self.directory.path().to_owned()))
    }

    fn client(&self) -> Client {
        let starter = Starter {
            program: Some(PathBuf::from("false")),
            ordinary: true,
        };
        Client::join(self.at(), starter, "honest").unwrap()
    }

    fn stranger(&self) -> Stranger {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        let path = self.directory.path().join("cpu0.sock");
        connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
        set_socket_timeout(&socket, Timeout::Recv, Some(Duration::from_secs(10))).unwrap();
        Stranger(socket)
    }

    /// The honest have what they had, and more where they ask.
    fn still_serves(&self, client: &Client) {
        let item = Item {
            name: "honest".to_owned(),
            linked: Linked::alone(
                Task::new(Service::from_micros(300), Span::from_millis(10)).unwrap(),
            ),
        };
        assert!(client.hold(&[item], true).is_ok());
        let all = list(&self.at()).unwrap().unwrap();
        assert!(
            all.iter()
                .any(|told| told.seat == client.seat().number && told.items.len() == 1)
        );
    }
}

struct Stranger(OwnedFd);

impl Stranger {
    fn send(&self, bytes: &[u8], with: &[BorrowedFd<'_>]) -> bool {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(8))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !with.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(with)));
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        sendmsg(&self.0, &[IoSlice::new(bytes)], &mut control, flags).is_ok()
    }

    /// `None` at the end.
    fn hears(&self) -> Option<Answer> {
        let mut bytes = vec![0; 1 << 16];
        let (count, _) = recv(&self.0, &mut *bytes, RecvFlags::empty()).ok()?;
        (count > 0).then(|| Answer::decode(&bytes[..count]).unwrap())
    }

    fn asks(&self, ask: &Ask, with: &[BorrowedFd<'_>]) -> Option<Answer> {
        assert!(self.send(&ask.encode(), with));
        self.hears()
    }
}

fn is_refused(answer: Option<&Answer>) -> bool {
    matches!(answer, Some(Answer::Refused(_)))
}

#[test]
fn what_is_no_message_is_refused_and_serves_the_others_as_before() {
    let served = Served::new();
    let client = served.client();
    let stranger = served.stranger();
    let join = Ask::Join {
        name: "stranger".to_owned(),
    };
    for bytes in [
        vec![0],
        vec![7; 100],
        join.encode()[..9].to_vec(),
        [join.encode(), vec![0]].concat(),
    ] {
        assert!(stranger.send(&bytes, &[]));
        assert!(is_refused(stranger.hears().as_ref()), "{bytes:?}");
    }
    let hold = Ask::Hold {
        items: Vec::new(),
        keep: true,
    };
    assert!(is_refused(stranger.asks(&hold, &[]).as_ref()));
    assert!(stranger.send(&Ask::Settled(0).encode(), &[]));
    assert!(matches!(
        stranger.asks(&join, &[]),
        Some(Answer::Welcome { .. })
    ));
    assert!(is_refused(stranger.asks(&join, &[]).as_ref()));
    // What is longer than any message ends the connection.
    assert!(stranger.send(&vec![0; 50_000], &[]));
    assert_eq!(stranger.hears(), None);
    served.still_serves(&client);
    drop(client);
    served.thread.join().unwrap();
}

#[test]
fn nobody_resumes_where_nobody_is_awaited() {
    let served = Served::new();
    let client = served.client();
    let seat = client.seat();
    let resume = Ask::Resume {
        name: "stranger".to_owned(),
        seat: seat.number,
        items: Vec::new(),
    };
    let stranger = served.stranger();
    let file = tempfile::tempfile().unwrap();
    let (region, file) = (seat.region.as_fd(), file.as_fd());
    for with in [
        &[][..],
        &[file],
        &[file, file],
        &[region, file],
        &[region; 8],
    ] {
        assert!(
            is_refused(stranger.asks(&resume, with).as_ref()),
            "{}",
            with.len()
        );
    }
    assert_eq!(seat.region.standing(seat.number), Some(Standing::Given));
    drop(stranger);
    served.still_serves(&client);
    drop(client);
    served.thread.join().unwrap();
}

#[test]
fn who_does_not_read_and_who_connects_too_often_holds_up_nobody() {
    let served = Served::new();
    let client = served.client();
    let deaf = served.stranger();
    let mut sent = 0;
    for _ in 0..20_000 {
        sent += u32::from(deaf.send(&Ask::List(0).encode(), &[]));
    }
    assert!(sent > 100, "{sent}");
    let all: Vec<Stranger> = (0..OF_ONE_USER).map(|_| served.stranger()).collect();
    let list = Ask::List(0).encode();
    let answered = all
        .iter()
        .filter(|one| one.send(&list, &[]) && one.hears().is_some());
    assert_eq!(answered.count(), OF_ONE_USER - 2);
    drop((all, deaf));
    served.still_serves(&client);
    drop(client);
    served.thread.join().unwrap();
}
