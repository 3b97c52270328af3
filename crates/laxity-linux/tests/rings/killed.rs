//! A side is killed at each access that it makes to what is shared: the other one takes what was sent, whole and in order, and learns of the end.

use std::cell::Cell;
use std::env;
use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::process::{Command, Stdio, id};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, AtomicU64};

use laxity_linux::host::ring::Ring;
use laxity_model::Instant;
use laxity_model::base::bell::Sleeping;
use laxity_model::channels::ring::{Control, Memory, Receiver, Refused, Sender, Side, Tag, end};
use rustix::process::{Signal, getpid, kill_process};

use super::shape;

/// What the other side is told: which memory, which side it is, and before which access it is to be killed.
const OTHER: &str = "LAXITY_TEST_OTHER_SIDE";

/// A ring whose process is killed before one of its accesses.
#[derive(Clone)]
struct Mortal {
    ring: Ring,
    left: Rc<Cell<u32>>,
}

impl Mortal {
    fn ages(&self) {
        match self.left.get().checked_sub(1) {
            Some(left) => self.left.set(left),
            None => kill_process(getpid(), Signal::KILL).unwrap(),
        }
    }
}

impl Sleeping for Mortal {
    fn sleep(&self, word: &AtomicU32, seen: u32, until: Option<Instant>) -> bool {
        self.ages();
        self.ring.sleep(word, seen, until)
    }

    fn wake_all(&self, word: &AtomicU32) {
        self.ages();
        self.ring.wake_all(word);
    }
}

impl Memory for Mortal {
    fn control(&self) -> &Control {
        self.ages();
        self.ring.control()
    }

    fn words(&self) -> &[AtomicU64] {
        self.ages();
        self.ring.words()
    }

    fn raise(&self, side: Side) {
        self.ages();
        self.ring.raise(side);
    }
}

fn bytes(number: u64) -> [u8; 40] {
    std::array::from_fn(|at| (number as usize * 3 + at) as u8)
}

fn tag(number: u64) -> Tag {
    Tag {
        number,
        ..Tag::default()
    }
}

/// The other side, which goes on until it is killed; a test only where it is started as that.
#[test]
fn the_other_side() {
    let Some(told) = env::var_os(OTHER) else {
        return;
    };
    let told = told.into_string().unwrap();
    let [memory, side, left] = told.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{told}");
    };
    let memory = File::options().read(true).write(true).open(memory).unwrap();
    let bell = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
    let own = match side {
        "sender" => Side::Sender,
        _ => Side::Receiver,
    };
    let mortal = Mortal {
        ring: Ring::attach(shape(), own, [memory.into(), bell]).unwrap(),
        left: Rc::new(Cell::new(left.parse().unwrap())),
    };
    match own {
        Side::Sender => {
            let mut sender = Sender::new(mortal, shape()).unwrap();
            for number in 0.. {
                sender.wait(None).unwrap();
                sender.send(&bytes(number), tag(number)).unwrap();
            }
        }
        Side::Receiver => {
            let mut receiver = Receiver::new(mortal, shape()).unwrap();
            for number in 0.. {
                let taken = receiver.wait(None).unwrap().unwrap();
                is_whole(&receiver, &taken, number);
                receiver.give_back(taken);
            }
        }
    }
}

fn is_whole<M: Memory>(
    receiver: &Receiver<M>,
    taken: &laxity_model::channels::ring::Taken,
    number: u64,
) {
    let mut read = [0; 40];
    receiver.copy(taken, 0, &mut read);
    assert_eq!((taken.tag, read), (tag(number), bytes(number)));
}

/// Lives as long as the other process; what it has taken part in is gone with that.
fn killed(side: &str, left: u32, [memory, bell]: [OwnedFd; 2]) -> impl FnOnce() {
    let path = format!("/proc/{}/fd/{}", id(), memory.as_raw_fd());
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "killed::the_other_side", "--nocapture"]);
    command.env(OTHER, format!("{path} {side} {left}"));
    command.stdin(Stdio::from(bell)).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(command);
    move || {
        let status = child.wait().unwrap();
        drop(memory);
        use std::os::unix::process::ExitStatusExt as _;
        assert_eq!(status.signal(), Some(libc::SIGKILL), "{status}");
    }
}

/// Which accesses: all of the first messages, and some of later ones, by a seed.
fn accesses() -> impl Iterator<Item = u32> {
    let step = |seed: &u32| Some(seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    let seeded = std::iter::successors(Some(13), step).skip(1);
    (0..24).chain(seeded.take(8).map(|seed| 24 + seed % 4_000))
}

#[test]
fn a_sender_that_is_killed_at_any_step_leaves_what_it_sent() {
    for left in accesses() {
        let (ring, other) = Ring::create(shape(), Side::Receiver).unwrap();
        let mut receiver = ring.receiver();
        let ends = killed("sender", left, other);
        let mut number = 0;
        std::thread::scope(|scope| {
            // As who has the connection of a process learns that it has gone.
            scope.spawn(|| {
                ends();
                end(&ring);
            });
            loop {
                match receiver.wait(None) {
                    Ok(taken) => {
                        let taken = taken.unwrap();
                        is_whole(&receiver, &taken, number);
                        receiver.give_back(taken);
                        number += 1;
                    }
                    Err(why) => {
                        assert_eq!(why, Refused::Ended, "at {left}");
                        break;
                    }
                }
            }
        });
        assert!(number > 0 || left < 24, "at {left}");
    }
}

#[test]
fn a_receiver_that_is_killed_at_any_step_blocks_nobody() {
    for left in accesses() {
        let (ring, other) = Ring::create(shape(), Side::Sender).unwrap();
        let mut sender = ring.sender();
        let ends = killed("receiver", left, other);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                ends();
                end(&ring);
            });
            let why = (0..).find_map(|number| {
                let waited = sender.wait(None);
                waited
                    .and_then(|()| sender.send(&bytes(number), tag(number)))
                    .err()
            });
            assert_eq!(why, Some(Refused::Ended), "at {left}");
        });
    }
}

/// Who polls learns of it without anybody's word.
#[test]
fn who_polls_sees_that_the_other_was_killed() {
    let (ring, other) = Ring::create(shape(), Side::Receiver).unwrap();
    let mut receiver = ring.receiver();
    let ends = killed("sender", 50, other);
    let mut polled = [rustix::event::PollFd::new(
        &ring,
        rustix::event::PollFlags::IN,
    )];
    let mut number = 0;
    loop {
        while let Some(taken) = receiver.take().unwrap() {
            is_whole(&receiver, &taken, number);
            receiver.give_back(taken);
            number += 1;
        }
        if receiver.rests() {
            rustix::event::poll(&mut polled, None).unwrap();
            if !ring.clear() {
                break;
            }
        }
    }
    ends();
    assert!(number > 0);
}
