//! That a thread is held by a reservation: every process can know, so that none takes for the thread's own what a reservation makes of it, and leaves that behind.
//!
//! It is told by a lock (`flock`) on the thread's directory in `/proc`. That needs no place to write, belongs to the thread and to none that has its number later,
//! and ends with whoever has it, however that ends. Who comes must have it alone for a moment, and shares it then: with the guardian, which has it until it
//! has given back what a killed process left.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::thread;
use std::time::Duration;

use laxity_model::Span;
use rustix::fs::{FlockOperation, Mode, OFlags, fstat, major, minor, open, openat};
use rustix::io::Errno;
use rustix::path::DecInt;

use crate::os::clock;
use crate::os::fact::{Fact, Unknown, read};
use crate::os::sched::Tid;

/// The name of the process that gives back what a killed one left.
pub(crate) const GUARDIAN: &CStr = c"laxity-guardian";
/// A guardian takes no longer to give back, or to hear that it was done, unless somebody starves it.
const GUARDIANS_TAKE: Span = Span::from_secs(1);
/// From one look at whether it is done to the next.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A thread is held, as long as this is there.
#[derive(Debug)]
pub(crate) struct Claim(OwnedFd);

/// Why a thread cannot be held.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClaimError {
    /// Somebody else holds it.
    #[error("thread {0} is held already, by {1}: let that end first")]
    Held(Tid, String),
    /// It cannot be seen whether somebody does.
    #[error("whether thread {0} is held already: {1}")]
    Unknown(Tid, io::Error),
}

impl Claim {
    /// Nobody else may hold this thread from now on. Waits for a guardian that still gives it back.
    pub(crate) fn of(thread: Tid) -> Result<Self, ClaimError> {
        let unknown = |error: Errno| ClaimError::Unknown(thread, error.into());
        let directory = directory_of(thread).map_err(unknown)?;
        let until = clock::now() + GUARDIANS_TAKE;
        loop {
            match own(&directory) {
                Ok(()) => return Ok(Self(directory)),
                Err(Errno::WOULDBLOCK) => {}
                Err(error) => return Err(unknown(error)),
            }
            let holders = holders(&directory);
            let is_over = |holders: &Vec<u32>| holders.iter().all(|one| is_guardian(*one));
            if !holders.as_ref().is_ok_and(is_over) || clock::now() > until {
                return Err(ClaimError::Held(thread, named(holders)));
            }
            thread::sleep(LOOK_EVERY);
        }
    }
}

/// At once, though a process that was forked meanwhile may still have the descriptor.
impl Drop for Claim {
    fn drop(&mut self) {
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

/// Alone, and then shared. Changing from one to the other leaves a moment in which another may come; then this is held by that one.
fn own(directory: &OwnedFd) -> rustix::io::Result<()> {
    rustix::fs::flock(directory, FlockOperation::NonBlockingLockExclusive)?;
    rustix::fs::flock(directory, FlockOperation::NonBlockingLockShared)
}

/// The claim to a thread that somebody else has, shared: as long as this is open, nobody else can have it. Kernel calls only.
pub(crate) fn share(thread: Tid) -> rustix::io::Result<OwnedFd> {
    let directory = directory_of(thread)?;
    rustix::fs::flock(&directory, FlockOperation::NonBlockingLockShared)?;
    Ok(directory)
}

/// Kernel calls only.
fn directory_of(thread: Tid) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let all = open(c"/proc", flags, Mode::empty())?;
    openat(&all, DecInt::new(thread.0).as_c_str(), flags, Mode::empty())
}

/// The processes that have a lock on this directory.
pub(super) fn holders(directory: impl AsFd) -> Fact<Vec<u32>> {
    let found = fstat(directory).map_err(|error| Unknown(error.to_string()))?;
    let device = (major(found.st_dev), minor(found.st_dev));
    Ok(locked_by(&read("/proc/locks")?, device, found.st_ino))
}

/// The processes that have a lock (`flock`) on a file, by its device's numbers and its own, in the text of `/proc/locks`; 0 is one that cannot be seen from here.
pub fn locked_by(locks: &str, (major, minor): (u32, u32), inode: u64) -> Vec<u32> {
    let file = format!("{major:02x}:{minor:02x}:{inode}");
    let of_line = |line: &str| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let is_lock = fields.next()? == "FLOCK";
        let (process, on) = (fields.nth(2)?, fields.next()?);
        (is_lock && on == file).then(|| process.parse().ok())?
    };
    locks.lines().filter_map(of_line).collect()
}

fn name_of(process: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}

fn is_guardian(process: u32) -> bool {
    name_of(process).as_bytes() == GUARDIAN.to_bytes()
}

/// One of them for people: a guardian only where there is nobody else.
fn named(holders: Fact<Vec<u32>>) -> String {
    let holders = match holders {
        Ok(holders) => holders,
        Err(why) => return format!("a process that cannot be seen ({why})"),
    };
    let real = holders.iter().find(|one| !is_guardian(**one));
    match real.or(holders.first()) {
        Some(own) if *own == std::process::id() => "this process".to_owned(),
        Some(&process @ 1..) => format!("process {process} {:?}", name_of(process)),
        Some(0) | None => "a process that cannot be seen from here".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn who_has_a_lock_is_found_in_the_kernels_text() {
        let locks = "1: FLOCK  ADVISORY  WRITE 22202 fe:00:5817126 0 EOF\n\
            2: FLOCK  ADVISORY  READ 7 00:15:5817126 0 EOF\n\
            2: -> FLOCK  ADVISORY  WRITE 8 00:15:5817126 0 EOF\n\
            3: POSIX  ADVISORY  READ 9 00:15:5817126 0 EOF\n\
            4: FLOCK  ADVISORY  READ 10 00:15:58171260 0 EOF\n\
            5: FLOCK  ADVISORY  READ 0 00:15:5817126 0 EOF\n\
            6: FLOCK  ADVISORY";
        assert_eq!(locked_by(locks, (0, 0x15), 5_817_126), [7, 0]);
        assert_eq!(locked_by(locks, (0xfe, 0), 5_817_126), [22_202]);
    }

    #[test]
    fn a_thread_is_held_by_one_and_whoever_gives_it_back_still_counts() {
        let mut program = Command::new("sleep").arg("1000").spawn().unwrap();
        let thread = Tid(program.id().cast_signed());
        let first = Claim::of(thread).unwrap();
        let refused = Claim::of(thread).unwrap_err().to_string();
        assert_eq!(
            refused,
            format!("thread {thread} is held already, by this process: let that end first")
        );
        let shared = share(thread).unwrap();
        drop(first);
        assert!(matches!(Claim::of(thread), Err(ClaimError::Held(..))));
        drop(shared);
        let again = Claim::of(thread);
        program.kill().unwrap();
        program.wait().unwrap();
        assert!(again.is_ok(), "{again:?}");
        let gone = Claim::of(thread).unwrap_err();
        assert!(matches!(gone, ClaimError::Unknown(..)), "{gone}");
    }
}
