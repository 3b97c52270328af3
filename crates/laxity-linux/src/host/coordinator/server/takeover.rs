//! What a coordinator does that follows another one: it finds the seats that one has given.

use std::fs;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;

use laxity_model::program::coordinator::Who;
use laxity_model::program::together::{SEATS, Standing};
use rustix::fs::{FlockOperation, flock};

use super::{Coordinator, CoordinatorError, House};
use crate::host::together::Region;
use crate::os::clock;
use crate::os::proc::threads_of;

/// Whether both are the same file.
fn are_one(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> bool {
    let file = |fd| {
        rustix::fs::fstat(fd)
            .map(|found| (found.st_dev, found.st_ino))
            .ok()
    };
    file(one).is_some_and(|one| Some(one) == file(other))
}

impl Coordinator {
    /// Whether a process has shown that it has this seat from the coordinator before. The first who has shows where the seats are.
    pub(super) fn has_seat(&mut self, seat: u16, who: Who, with: &[OwnedFd]) -> Result<(), String> {
        let [region, members] = with else {
            return Err("a seat is shown by what came with it".to_owned());
        };
        if !are_one(members.as_fd(), self.members.as_fd()) {
            return Err("the seat is of another coordinator".to_owned());
        }
        if self.house.is_none() {
            let again = region.try_clone().map_err(|error| error.to_string())?;
            let region = Region::attach(again).map_err(|error| error.to_string())?;
            let house = House::open(region, &self.settings).map_err(|error| error.to_string())?;
            self.house = Some(house);
            self.finds_seats();
        }
        let Some(house) = &self.house else {
            return Err("there are no seats".to_owned());
        };
        if !are_one(region.as_fd(), house.region.as_fd()) {
            return Err("the seat is of other memory".to_owned());
        }
        let thread = house.region.thread(seat);
        let own = threads_of(who.process).unwrap_or_default();
        if !own.iter().any(|own| thread == Some(own.0.cast_unsigned())) {
            let process = who.process;
            return Err(format!("no thread of process {process} has seat {seat}"));
        }
        if let Some(taken) = self.untaken.iter().position(|untaken| *untaken == seat) {
            self.untaken.swap_remove(taken);
            self.registry.awaits(seat, who);
        }
        Ok(())
    }

    /// Who has it says what cannot be.
    pub(super) fn ends_seat(&mut self, seat: u16) {
        if let Some(house) = &self.house {
            house.guard.remove(seat);
        }
        self.registry.goes(seat, clock::now());
    }

    /// Those who have seats from the coordinator before are awaited, if they live.
    fn finds_seats(&mut self) {
        let Some(house) = &self.house else {
            return;
        };
        let free = |seat: u16| matches!(house.region.standing(seat), Some(Standing::Free) | None);
        for seat in (0..SEATS as u16).filter(|seat| !free(*seat)) {
            if house.region.standing(seat) == Some(Standing::Given) {
                self.untaken.push(seat);
                continue;
            }
            match owner(house.region.thread(seat).unwrap_or(0)) {
                Some(who) => {
                    house.guard.gave(seat, who.process);
                    self.registry.awaits(seat, who);
                }
                None => house.guard.vacate(seat),
            }
        }
    }

    /// Where none is left of those who had seats from the coordinator before, nobody is awaited.
    pub(super) fn begins_anew(&mut self) {
        let own = flock(&self.members, FlockOperation::NonBlockingLockExclusive);
        let shared = flock(&self.members, FlockOperation::NonBlockingLockShared);
        if own.is_ok() && shared.is_ok() {
            let house = Region::create().map_err(CoordinatorError::from);
            let house = house.and_then(|region| House::open(region, &self.settings));
            self.house = house.ok();
        }
    }
}

/// The process of a thread, and whose it is.
fn owner(thread: u32) -> Option<Who> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    let process = process.trim().parse().ok()?;
    let user = fs::metadata(format!("/proc/{process}")).ok()?.uid();
    Some(Who { process, user })
}
