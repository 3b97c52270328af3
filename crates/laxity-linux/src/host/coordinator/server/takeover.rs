//! What a coordinator leaves to the one that follows it: which seats it has given, and in which memory. Nobody is asked for that who might gain by what he says.
//!
//! Each seat that is given has a file, which whoever has the seat has open and locked. Nobody else has the same: who unlocks it, or ends, gives up his own seat and no other. Which memory it is that all share is
//! written in the file that a coordinator keeps to itself; its owner cannot be made by another user.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

use laxity_model::Instant;
use laxity_model::program::coordinator::{Answer, Item, Who};
use laxity_model::program::together::SEATS;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, FlockOperation, StatxFlags, flock, makedev, statx};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::{Coordinator, CoordinatorError, House, at};
use crate::host::together::Region;
use crate::os::clock;

/// What is known of a process that has a seat from the coordinator before.
pub(super) struct Awaited {
    /// The file of the seat, opened for this coordinator: to see whether the other's lock of it lasts.
    lock: File,
    /// `None` where it has ended, and its number is nobody's.
    process: Option<OwnedFd>,
    who: Who,
}

impl Awaited {
    fn of(mut lock: File) -> io::Result<Option<Self>> {
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return Ok(None);
        }
        let mut text = String::new();
        lock.read_to_string(&mut text)?;
        let who = text.split_once(' ').and_then(|(process, user)| {
            let process = process.parse().ok()?;
            let user = user.trim_end().parse().ok()?;
            Some(Who { process, user })
        });
        let who = who.ok_or(io::ErrorKind::InvalidData)?;
        let number = Pid::from_raw(who.process.cast_signed()).ok_or(io::ErrorKind::InvalidData)?;
        let process = match pidfd_open(number, PidfdFlags::empty()) {
            Err(Errno::SRCH) => None,
            opened => Some(opened?),
        };
        Ok(Some(Self { lock, process, who }).filter(Self::lives))
    }

    /// Whether the process has the seat still. A child that it has forked may have the file, and not the seat.
    fn lives(&self) -> bool {
        let Some(process) = &self.process else {
            return false;
        };
        let mut ended = [PollFd::new(process, PollFlags::IN)];
        let at_once = Timespec::default();
        !matches!(poll(&mut ended, Some(&at_once)), Ok(count) if count > 0)
            && flock(&self.lock, FlockOperation::NonBlockingLockExclusive).is_err()
    }
}

/// By which an open file is known from all others, and whose it is. Of a stranger's file system nobody is asked, who might not answer.
fn identity(file: impl AsFd) -> Option<(u64, u64, u32)> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let found = statx(file, c"", flags, StatxFlags::INO | StatxFlags::UID).ok()?;
    let device = makedev(found.stx_dev_major, found.stx_dev_minor);
    Some((device, found.stx_ino, found.stx_uid))
}

impl Coordinator {
    fn seat_file(&self, seat: u16) -> PathBuf {
        self.settings.at.path(&format!("seat-{seat}"))
    }

    /// What a process is given with its seat: the file of that, which it alone has open and locked.
    pub(super) fn lends(&self, seat: u16, who: Who) -> Result<File, CoordinatorError> {
        let path = self.seat_file(seat);
        let _ = fs::remove_file(&path);
        let mut options = File::options();
        let made = options.write(true).create_new(true).mode(0o600).open(&path);
        let Who { process, user } = who;
        let written =
            made.and_then(|mut file| file.write_all(format!("{process} {user}\n").as_bytes()));
        let opened = written.and_then(|()| File::open(&path));
        let file = at(&path, opened)?;
        let locked = flock(&file, FlockOperation::NonBlockingLockExclusive);
        at(&path, locked).map(|()| file)
    }

    /// Nobody has this seat any more.
    pub(super) fn frees(&mut self, seat: u16) {
        let _ = fs::remove_file(self.seat_file(seat));
        self.registry.frees(seat);
    }

    /// Those who have seats from the coordinator before are awaited, if they live.
    pub(super) fn finds_seats(&mut self) -> Result<(), CoordinatorError> {
        for seat in 0..SEATS as u16 {
            let path = self.seat_file(seat);
            let found = match File::open(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => at(&path, opened.and_then(Awaited::of))?,
            };
            match found {
                Some(awaited) => {
                    self.registry.awaits(seat, awaited.who);
                    self.awaited.insert(seat, awaited);
                }
                None => at(&path, fs::remove_file(&path))?,
            }
        }
        Ok(())
    }

    /// Memory that all are to share who come from now on: nobody has a seat.
    pub(super) fn founds(&mut self) -> Result<(), CoordinatorError> {
        let region = Region::create()?;
        let path = self.settings.at.path("lock");
        let known = identity(&region).map(|(device, file, _)| [device, file]);
        let known = at(&path, known.ok_or(io::ErrorKind::InvalidData))?;
        let written = self
            .only
            .write_all_at(&known.map(u64::to_ne_bytes).concat(), 0);
        at(&path, written)?;
        self.house = Some(House::open(region, &self.settings)?);
        Ok(())
    }

    /// Whether this is the memory that all share: made by a coordinator, of this user, and the one that was written down.
    fn is_shared(&self, memory: &OwnedFd) -> bool {
        let mut known = [0; 16];
        let Some((device, file, user)) = identity(memory) else {
            return false;
        };
        self.only.read_exact_at(&mut known, 0).is_ok()
            && known[..] == [device, file].map(u64::to_ne_bytes).concat()
            && user == rustix::process::geteuid().as_raw()
    }

    /// Whether somebody has shown that he has this seat from the coordinator before. The first who has shows where the memory is.
    pub(super) fn comes_back(&mut self, seat: u16, with: &[OwnedFd]) -> Result<(), String> {
        let [memory, lock] = with else {
            return Err("a seat is shown by what came with it".to_owned());
        };
        let awaited = self.awaited.get(&seat);
        let is_its =
            |one: &Awaited| identity(lock).is_some() && identity(lock) == identity(&one.lock);
        if !awaited.is_some_and(is_its) {
            return Err(format!("nobody who has shown that has seat {seat}"));
        }
        if self.house.is_none() {
            if !self.is_shared(memory) {
                return Err("it is not the memory that all share".to_owned());
            }
            let again = memory.try_clone().map_err(|error| error.to_string())?;
            let region = Region::attach(again).map_err(|error| error.to_string())?;
            let house = House::open(region, &self.settings).map_err(|error| error.to_string())?;
            for seat in 0..SEATS as u16 {
                match self.registry.process(seat) {
                    Some(process) => house.guard.gave(seat, process),
                    None => house.guard.vacate(seat),
                }
            }
            self.house = Some(house);
        }
        Ok(())
    }

    /// One that has come back says what it has. Who says what cannot be loses its seat.
    pub(super) fn resumes(
        &mut self,
        id: u64,
        (seat, who): (u16, Who),
        name: &str,
        items: Vec<Item>,
    ) -> Answer {
        if let Err(reason) = self.registry.resumes(seat, who, name, items) {
            if let Some(house) = &self.house {
                house.guard.remove(seat);
            }
            self.registry.goes(seat, clock::now());
            self.awaited.remove(&seat);
            return Answer::Refused(reason);
        }
        self.awaited.remove(&seat);
        self.seats(id, seat);
        Answer::Held(Vec::new())
    }

    /// Who has ended is awaited no more.
    pub(super) fn misses(&mut self, now: Instant) {
        let ended = self.awaited.iter().filter(|(_, one)| !one.lives());
        let ended: Vec<u16> = ended.map(|(seat, _)| *seat).collect();
        for seat in ended {
            self.awaited.remove(&seat);
            self.registry.goes(seat, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::fchown;

    use rustix::process::geteuid;

    use super::super::Settings;
    use super::*;
    use crate::host::coordinator::At;

    /// The number that was written down may be that of another file by now, which another user has made.
    #[test]
    fn what_another_user_made_is_not_the_memory_that_all_share() {
        let directory = tempfile::tempdir().unwrap();
        let at = At::new(0, Some(directory.path().to_owned()));
        let coordinator = Coordinator::open(Settings {
            watch: None,
            ..Settings::new(at)
        })
        .unwrap();
        let is_shared = |file: File| {
            let (device, number, _) = identity(&file).unwrap();
            let known = [device, number].map(u64::to_ne_bytes).concat();
            coordinator.only.write_all_at(&known, 0).unwrap();
            coordinator.is_shared(&file.into())
        };
        let own = || tempfile::tempfile().unwrap();
        assert!(is_shared(own()));
        let of_another = match geteuid().is_root() {
            true => own(),
            false => File::open("/proc/1").unwrap(),
        };
        if geteuid().is_root() {
            fchown(&of_another, Some(65_534), None).unwrap();
        }
        assert!(!is_shared(of_another));
    }
}
