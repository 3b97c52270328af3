//! What strangers may say to a coordinator: it answers, or ends the connection, and serves the others as before.

mod descriptors;
mod slow;
mod starting;
mod users;

use std::fs::{self, Permissions};
use std::io::{IoSlice, IoSliceMut};
use std::iter;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use laxity_linux::host::coordinator::{
    At, Client, Coordinator, CoordinatorError, Settings, Starter, list,
};
use laxity_linux::host::together::Region;
use laxity_model::analysis::Task;
use laxity_model::executor::linked::Linked;
use laxity_model::program::coordinator::{Answer, Ask, Item};
use laxity_model::program::together::Standing;
use laxity_model::{Service, Span};
use rustix::cmsg_space;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    recvmsg, sendmsg, socket_with,
};
use tempfile::TempDir;

/// Connections of one user.
const OF_ONE_USER: usize = 36;

struct Served {
    directory: TempDir,
    thread: JoinHandle<()>,
}

fn settings(directory: &TempDir) -> Settings {
    let at = At::new(0, Some(directory.path().to_owned()));
    Settings {
        watch: None,
        linger: Span::from_millis(300),
        silence: Span::from_secs(100),
        ..Settings::new(at)
    }
}

impl Served {
    fn new(change: fn(&mut Settings)) -> Self {
        let directory = TempDir::new().unwrap();
        let mut settings = settings(&directory);
        change(&mut settings);
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
        Stranger::of(&self.directory)
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
        // Who was let go a moment ago may still count as a connection of this user.
        let listed = iter::repeat_with(|| list(&self.at()));
        let all = listed.flat_map(Result::ok).next().flatten().unwrap();
        assert!(
            all.iter()
                .any(|told| told.seat == client.seat().number && told.items.len() == 1)
        );
    }
}

struct Stranger(OwnedFd);

impl Stranger {
    fn of(directory: &TempDir) -> Self {
        Self::reach(directory).unwrap()
    }

    fn reach(directory: &TempDir) -> Result<Self, Errno> {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        let path = directory.path().join("cpu0.sock");
        connect(&socket, &SocketAddrUnix::new(path)?)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(Duration::from_secs(10)))?;
        Ok(Self(socket))
    }

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

    /// What is answered, with its descriptors, if it is there; the end is an error.
    fn heard(&self) -> Option<(Answer, Vec<OwnedFd>)> {
        let mut bytes = vec![0; 1 << 16];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(2))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let received = match recvmsg(&self.0, &mut parts, &mut control, flags) {
            Err(Errno::AGAIN) => return None,
            received => received.unwrap().bytes,
        };
        let with = control.drain().flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(with) => with.collect(),
            _ => Vec::new(),
        });
        let with = with.collect();
        Some((Answer::decode(&bytes[..received]).unwrap(), with))
    }

    /// A connection on which something was not received ends with that, once it is closed.
    fn has_ended(&self) -> bool {
        matches!(
            recv(&self.0, &mut [0_u8; 1][..], RecvFlags::empty()),
            Ok((0, _)) | Err(Errno::CONNRESET)
        )
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
    let served = Served::new(|_| ());
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
    let served = Served::new(|_| ());
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
    for with in [&[][..], &[file], &[file, file], &[region, file]] {
        assert!(
            is_refused(stranger.asks(&resume, with).as_ref()),
            "{}",
            with.len()
        );
    }
    // What has more than it may have is the end.
    assert_eq!(stranger.asks(&resume, &[region; 8]), None);
    assert_eq!(seat.region.standing(seat.number), Some(Standing::Given));
    drop(stranger);
    served.still_serves(&client);
    drop(client);
    served.thread.join().unwrap();
}

#[test]
fn who_does_not_read_and_who_connects_too_often_holds_up_nobody() {
    let served = Served::new(|_| ());
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

#[test]
fn who_connects_and_says_nothing_is_let_go() {
    let served = Served::new(|settings| settings.silence = Span::from_millis(500));
    let client = served.client();
    let garbling = served.stranger();
    let silent: Vec<Stranger> = (2..OF_ONE_USER).map(|_| served.stranger()).collect();
    // What cannot be understood is as good as nothing; the answer to it may have come.
    garbling.send(&[7], &[]);
    while garbling.hears().is_some() {
        garbling.send(&[7], &[]);
    }
    assert!(silent.iter().all(Stranger::has_ended));
    // Who has a seat may be silent.
    served.still_serves(&client);
    drop(client);
    served.thread.join().unwrap();
}

/// A coordinator in this thread, and what is said to it.
struct Own {
    coordinator: Coordinator,
}

/// What came with a seat.
struct Seated {
    seat: u16,
    with: Vec<OwnedFd>,
    _stranger: Stranger,
}

impl Own {
    fn open(directory: &TempDir) -> Self {
        let coordinator = Coordinator::open(settings(directory)).unwrap();
        Self { coordinator }
    }

    fn asks(
        &mut self,
        stranger: &Stranger,
        ask: &Ask,
        with: &[BorrowedFd<'_>],
    ) -> (Answer, Vec<OwnedFd>) {
        assert!(stranger.send(&ask.encode(), with));
        loop {
            let heard = self.coordinator.hear().unwrap().unwrap();
            self.coordinator.answer(heard);
            if let Some(heard) = stranger.heard() {
                return heard;
            }
        }
    }

    /// Asks for a seat.
    fn joins(&mut self, directory: &TempDir) -> Result<Seated, Answer> {
        let stranger = Stranger::of(directory);
        let name = "one".to_owned();
        match self.asks(&stranger, &Ask::Join { name }, &[]) {
            (Answer::Welcome { seat, .. }, with) => Ok(Seated {
                seat,
                with,
                _stranger: stranger,
            }),
            (answer, _) => Err(answer),
        }
    }

    /// Says that it has this seat from the coordinator before, and shows this with it.
    fn resumes(
        &mut self,
        directory: &TempDir,
        seat: u16,
        with: [BorrowedFd<'_>; 2],
    ) -> (Answer, Stranger) {
        let stranger = Stranger::of(directory);
        let resume = Ask::Resume {
            name: "one".to_owned(),
            seat,
            items: Vec::new(),
        };
        let (answer, _) = self.asks(&stranger, &resume, &with);
        (answer, stranger)
    }
}

fn is_awaited(joined: &Result<Seated, Answer>) -> bool {
    matches!(joined, Err(Answer::NotYet(_)))
}

/// Two who have seats from a coordinator that has ended.
fn two(directory: &TempDir) -> [Seated; 2] {
    let mut first = Own::open(directory);
    let mut join = || {
        first
            .joins(directory)
            .map_err(|answer| format!("{answer:?}"))
    };
    [join().unwrap(), join().unwrap()]
}

#[test]
fn who_gives_up_a_seat_gives_up_no_other() {
    let directory = TempDir::new().unwrap();
    let [one, other] = two(&directory);
    for lock in &one.with {
        // The memory, which no lock is of, and the seat.
        let _ = flock(lock, FlockOperation::Unlock);
    }
    let mut next = Own::open(&directory);
    assert!(is_awaited(&next.joins(&directory)));
    let [memory, lock] = [&other.with[0], &other.with[1]].map(|with| with.as_fd());
    let (answer, _there) = next.resumes(&directory, other.seat, [memory, lock]);
    assert_eq!(answer, Answer::Held(Vec::new()));
    // Whoever gave it up has it no more, and cannot say so of another.
    assert_eq!(
        next.joins(&directory).map(|joined| joined.seat).ok(),
        Some(one.seat)
    );
    let (answer, _) = next.resumes(&directory, one.seat, [memory, lock]);
    assert!(is_refused(Some(&answer)));
}

#[test]
fn who_has_a_seat_shows_that_and_the_memory_of_all() {
    let directory = TempDir::new().unwrap();
    let [one, other] = two(&directory);
    let mut next = Own::open(&directory);
    let own = Region::create().unwrap();
    let [memory, lock] = [&one.with[0], &one.with[1]].map(|with| with.as_fd());
    let file = tempfile::tempfile().unwrap();
    for (seat, with) in [
        (one.seat, [own.as_fd(), lock]),
        (other.seat, [memory, lock]),
        (one.seat, [memory, file.as_fd()]),
        (7, [memory, lock]),
    ] {
        let (answer, _) = next.resumes(&directory, seat, with);
        assert!(is_refused(Some(&answer)), "{answer:?}");
        assert!(is_awaited(&next.joins(&directory)));
    }
    let (answer, _there) = next.resumes(&directory, one.seat, [memory, lock]);
    assert_eq!(answer, Answer::Held(Vec::new()));
    assert!(is_awaited(&next.joins(&directory)));
    drop(other);
    let third = next.joins(&directory).map(|third| third.seat);
    assert_eq!(third.ok(), Some(1));
}

#[test]
fn who_has_ended_is_not_awaited_though_another_has_what_it_had() {
    let directory = TempDir::new().unwrap();
    let [one, other] = two(&directory);
    let mut ended = Command::new("true").spawn().unwrap();
    ended.wait().unwrap();
    for seated in [&one, &other] {
        let path = directory.path().join(format!("cpu0.seat-{}", seated.seat));
        fs::write(path, format!("{} 0\n", ended.id())).unwrap();
    }
    let mut next = Own::open(&directory);
    assert_eq!(
        next.joins(&directory).map(|joined| joined.seat).ok(),
        Some(0)
    );
}

#[test]
fn a_seat_that_is_taken_is_given_to_nobody_whatever_is_written_of_it() {
    let directory = TempDir::new().unwrap();
    let mut coordinator = Own::open(&directory);
    let first = coordinator.joins(&directory).ok().unwrap();
    // How it stands is the first that is written of a seat, behind two lines of all.
    rustix::io::pwrite(&first.with[0], &[0; 4], 128).unwrap();
    let region = Region::attach(first.with[0].try_clone().unwrap()).unwrap();
    assert_eq!(region.standing(first.seat), Some(Standing::Free));
    let second = coordinator.joins(&directory).ok().unwrap();
    assert_eq!([first.seat, second.seat], [0, 1]);
}

#[test]
fn where_others_may_write_nobody_serves() {
    let directory = TempDir::new().unwrap();
    let permit = |mode| fs::set_permissions(directory.path(), Permissions::from_mode(mode));
    for mode in [0o770, 0o707, 0o1777] {
        permit(mode).unwrap();
        let opened = Coordinator::open(settings(&directory)).err();
        assert!(
            matches!(opened, Some(CoordinatorError::Shared(_))),
            "{opened:?}"
        );
    }
    permit(0o755).unwrap();
    assert!(Coordinator::open(settings(&directory)).is_ok());
}
