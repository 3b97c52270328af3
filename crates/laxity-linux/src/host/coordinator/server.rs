//! The coordinator.

mod takeover;

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use laxity_model::program::coordinator::{Answer, Ask, Presence, Registry, Told, Who};
use laxity_model::program::together::{SEATS, Standing};
use laxity_model::{Instant, Span};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::wire::{Packet, Wire, listen};
use super::{At, CoordinatorError, Settings};
use crate::host::together::{Guard, Region, guard};
use crate::os::clock;
use crate::os::cpuset::CpuSet;
use crate::os::descriptor::{self, Alarm};
use crate::os::fact::read_as;
use crate::os::memory::MemoryLock;
use crate::os::proc::stat_of;
use crate::os::sched::{self, Policy, Tid};

/// So many connections of one user: one for each seat, and a few that only ask.
const OF_ONE_USER: usize = SEATS + 4;
/// So many of all.
const OF_ALL: usize = 4 * OF_ONE_USER;
/// While somebody is awaited, or a thread has not ended yet, it is looked so often for that.
const LOOK_EVERY: Span = Span::from_millis(20);

/// A process that is connected.
struct Connection {
    wire: Wire,
    /// Can be read when the process has ended, though a child of it has the connection still.
    process: OwnedFd,
    who: Who,
    seat: Option<u16>,
}

/// The memory that processes share, and who guards it.
struct House {
    region: Region,
    guard: Guard,
    /// Where that is permitted: no guard is to wait for a disk.
    _memory: Option<MemoryLock>,
}

/// What a coordinator was told and has done nothing about yet.
#[must_use = "somebody waits for an answer"]
pub struct Heard(Vec<(u64, Option<Packet>)>);

impl Heard {
    /// How many messages, and ends of connections.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

/// The one coordinator of a processor.
pub struct Coordinator {
    settings: Settings,
    listener: OwnedFd,
    _only: File,
    /// Whoever has a seat has this too, so that its lock lasts.
    members: File,
    /// `None` until one of those has come back who have seats from the coordinator before.
    house: Option<House>,
    registry: Registry,
    /// Seats of the coordinator before that nobody had taken yet: whoever it gave them to may.
    untaken: Vec<u16>,
    connections: BTreeMap<u64, Connection>,
    /// So many were ever connected.
    count: u64,
    /// Since when nobody is there.
    alone_since: Instant,
    alarm: Alarm,
}

fn at<T>(path: &Path, result: Result<T, impl Into<io::Error>>) -> Result<T, CoordinatorError> {
    result.map_err(|error| CoordinatorError::File(path.to_owned(), error.into()))
}

fn locked(path: &Path, how: FlockOperation) -> Result<(File, bool), CoordinatorError> {
    let mut options = File::options();
    let options = options.read(true).write(true).create(true).mode(0o600);
    let options = options.custom_flags(libc::O_NOFOLLOW);
    let file = at(path, options.open(path))?;
    match flock(&file, how) {
        Ok(()) => Ok((file, true)),
        Err(Errno::WOULDBLOCK) => Ok((file, false)),
        Err(error) => at(path, Err(error)),
    }
}

impl Coordinator {
    /// Becomes that of a processor, and can be reached then.
    ///
    /// # Errors
    ///
    /// [`CoordinatorError::Served`]: another one is; there is no such processor; a missing right of its guards; or what the kernel says of a file.
    pub fn open(settings: Settings) -> Result<Self, CoordinatorError> {
        let At {
            directory,
            processor,
        } = &settings.at;
        let online = read_as("/sys/devices/system/cpu/online", CpuSet::parse);
        if online.is_ok_and(|online| !online.contains(*processor)) {
            return Err(CoordinatorError::NoProcessor(*processor));
        }
        let mode = if settings.everyone { 0o755 } else { 0o700 };
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(mode)
            .create(directory);
        at(directory, made)?;
        let (only, is_only) = locked(
            &settings.at.path("lock"),
            FlockOperation::NonBlockingLockExclusive,
        )?;
        if !is_only {
            return Err(CoordinatorError::Served(*processor));
        }
        let path = settings.at.path("members");
        let (members, is_new) = locked(&path, FlockOperation::NonBlockingLockExclusive)?;
        // Nobody else takes it who has not the lock above.
        at(
            &path,
            flock(&members, FlockOperation::NonBlockingLockShared),
        )?;
        let house = match is_new {
            true => Some(House::open(Region::create()?, &settings)?),
            false => None,
        };
        let path = settings.at.path("sock");
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => at(&path, Err(error))?,
            _ => {}
        }
        let listener = at(&path, listen(&path))?;
        let mode = if settings.everyone { 0o666 } else { 0o600 };
        at(
            &path,
            fs::set_permissions(&path, Permissions::from_mode(mode)),
        )?;
        let alarm = at(&path, Alarm::new())?;
        Ok(Self {
            registry: Registry::new(settings.terms()),
            settings,
            listener,
            _only: only,
            members,
            house,
            untaken: Vec::new(),
            connections: BTreeMap::new(),
            count: 0,
            alone_since: clock::now(),
            alarm,
        })
    }

    /// Serves until nobody has been there for a while.
    ///
    /// # Errors
    ///
    /// What the kernel says of waiting.
    pub fn serve(mut self) -> Result<(), CoordinatorError> {
        // Whoever started it may have been real-time, and on that very processor.
        let own = Tid::current();
        let _ = sched::set_policy(own, Policy::Other { nice: 0 });
        let _ = sched::allow_all(own);
        while let Some(heard) = self.hear()? {
            self.answer(heard);
        }
        Ok(())
    }

    /// Waits until there is something to do; `None` at its end.
    ///
    /// # Errors
    ///
    /// What the kernel says of waiting.
    pub fn hear(&mut self) -> Result<Option<Heard>, CoordinatorError> {
        let now = clock::now();
        let is_alone = self.connections.is_empty() && self.registry.is_empty();
        let ends = self
            .alone_since
            .checked_add(self.settings.linger)
            .unwrap_or(Instant::MAX);
        if !is_alone {
            self.alone_since = now;
        } else if ends <= now {
            return Ok(None);
        }
        let waits = !self.registry.over(now).is_empty() || !self.registry.awaited().is_empty();
        let looks = waits || self.house.is_none();
        let until = [
            is_alone.then_some(ends),
            self.registry.next(),
            looks.then(|| now + LOOK_EVERY),
        ];
        let until = until.into_iter().flatten().min();
        let mut waited = vec![self.listener.as_fd()];
        for connection in self.connections.values() {
            waited.extend([connection.wire.as_fd(), connection.process.as_fd()]);
        }
        let path = self.settings.at.path("sock");
        let ready = at(&path, descriptor::wait(&waited, &self.alarm, until))?;
        let mut heard = Vec::new();
        for ((id, connection), ready) in self.connections.iter().zip(ready[1..].chunks(2)) {
            if ready[0] != 0 {
                match connection.wire.receive_at_once() {
                    Ok(packet) => heard.push((*id, packet)),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => heard.push((*id, None)),
                }
            } else if ready[1] != 0 {
                heard.push((*id, None));
            }
        }
        if ready[0] != 0 {
            self.accept();
        }
        Ok(Some(Heard(heard)))
    }

    /// Somebody may be new. Who cannot be known, or has enough connections, is not let in.
    fn accept(&mut self) {
        let Ok(wire) = Wire::accept(&self.listener) else {
            return;
        };
        let Ok(Some(who)) = wire.peer() else {
            return;
        };
        let process = Pid::from_raw(who.process.cast_signed());
        let process = process.map(|process| pidfd_open(process, PidfdFlags::empty()));
        let own = self
            .connections
            .values()
            .filter(|one| one.who.user == who.user);
        let has_room = own.count() < OF_ONE_USER && self.connections.len() < OF_ALL;
        if let Some(Ok(process)) = process.filter(|_| has_room) {
            let seat = None;
            self.connections.insert(
                self.count,
                Connection {
                    wire,
                    process,
                    who,
                    seat,
                },
            );
            self.count += 1;
        }
    }

    /// Does what was heard, and what it is time for.
    pub fn answer(&mut self, heard: Heard) {
        for (id, packet) in heard.0 {
            match packet {
                Some(packet) => self.told(id, packet),
                None => self.ended(id),
            }
        }
        self.tidy(clock::now());
    }

    fn told(&mut self, id: u64, (bytes, with): Packet) {
        let Some(Connection { who, seat, .. }) = self.connections.get(&id) else {
            return;
        };
        let (who, seat) = (*who, *seat);
        let answer = match Ask::decode(&bytes) {
            Ok(Ask::Join { name }) if seat.is_none() => self.joins(id, who, name),
            Ok(Ask::Resume {
                name,
                seat: own,
                items,
            }) if seat.is_none() => {
                let resumed = self.has_seat(own, who, &with).and_then(|()| {
                    let resumed = self.registry.resumes(own, who, name, items);
                    resumed.inspect_err(|_| self.ends_seat(own))
                });
                match resumed {
                    Ok(()) => {
                        self.seats(id, own, who);
                        Answer::Held(Vec::new())
                    }
                    Err(reason) => Answer::Refused(reason),
                }
            }
            Ok(Ask::Hold { items, keep }) => match seat {
                Some(seat) => self.registry.holds(seat, items, keep),
                None => Answer::Refused("whoever asks has no seat".to_owned()),
            },
            Ok(Ask::Settled(gone)) => {
                if let Some(seat) = seat {
                    self.registry.settles(seat, gone);
                }
                return;
            }
            Ok(Ask::List(from)) => {
                let mut all = self.registry.list().into_iter();
                let next = all.find(|told| told.seat >= from);
                next.map_or(Answer::End, |told| Answer::Process(self.seen(told)))
            }
            Ok(Ask::Join { .. } | Ask::Resume { .. }) => {
                Answer::Refused("whoever asks has a seat already".to_owned())
            }
            Err(garbled) => Answer::Refused(garbled.to_string()),
        };
        self.says(id, &answer);
    }

    /// With whether it is stopped, by a signal or a debugger.
    fn seen(&self, mut told: Told) -> Told {
        let house = self.house.as_ref();
        let thread = house.and_then(|house| house.region.thread(told.seat));
        let state = thread.map(|thread| stat_of(Tid(thread.cast_signed()), 3));
        if told.presence == Presence::Here && matches!(state, Some(Ok('T' | 't'))) {
            told.presence = Presence::Stopped;
        }
        told
    }

    /// Who does not take it is not waited for.
    fn says(&self, id: u64, answer: &Answer) {
        let Some(Connection { wire, .. }) = self.connections.get(&id) else {
            return;
        };
        let house = self
            .house
            .as_ref()
            .filter(|_| matches!(answer, Answer::Welcome { .. }));
        let with = house.map(|house| [house.region.as_fd(), self.members.as_fd()]);
        let with: &[BorrowedFd<'_>] = with.as_ref().map_or(&[], |with| with);
        let _ = wire.send_at_once(&answer.encode(), with);
    }

    fn seats(&mut self, id: u64, seat: u16, who: Who) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.seat = Some(seat);
        }
        if let Some(house) = &self.house {
            house.guard.gave(seat, who.process);
        }
    }

    fn joins(&mut self, id: u64, who: Who, name: String) -> Answer {
        let Some(house) = &self.house else {
            let reason = "processes have seats from the coordinator before this one, and none of them has come back yet";
            return Answer::NotYet(reason.to_owned());
        };
        if let Err(answer) = self.registry.may_join(who) {
            return answer;
        }
        let Some(given) = house.guard.give(who.process) else {
            return Answer::Refused(format!("all {SEATS} seats are taken"));
        };
        self.registry.joins(given.number, who, name);
        self.seats(id, given.number, who);
        Answer::Welcome {
            seat: given.number,
            priority: self.settings.watch.map_or(0, |watch| watch.executors),
        }
    }

    /// A connection has come to its end, or its process has.
    fn ended(&mut self, id: u64) {
        let Some(connection) = self.connections.remove(&id) else {
            return;
        };
        let Some(seat) = connection.seat else {
            return;
        };
        let told = self.registry.goes(seat, clock::now());
        let process = connection.who.process;
        let is_told = |one: &Connection| one.seat.is_some_and(|seat| told.contains(&seat));
        let all = self.connections.iter().filter(|(_, one)| is_told(one));
        let all: Vec<u64> = all.map(|(id, _)| *id).collect();
        for id in all {
            self.says(id, &Answer::Gone { seat, process });
        }
    }

    /// Seats of those who have gone are free, once their threads have gone too.
    fn tidy(&mut self, now: Instant) {
        let Some(house) = &self.house else {
            return self.begins_anew();
        };
        for (seat, _) in self.registry.awaited() {
            if !house.guard.lives(seat) {
                self.registry.goes(seat, now);
            }
        }
        for (seat, _) in self.registry.over(now) {
            if !house.guard.lives(seat) {
                house.guard.vacate(seat);
                self.registry.frees(seat);
            } else if !matches!(
                house.region.standing(seat),
                Some(Standing::Left | Standing::Removed)
            ) {
                // It has no seat without its connection, and as an ordinary thread it takes nothing from others.
                house.guard.remove(seat);
                self.registry.holds(seat, Vec::new(), true);
            }
        }
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.settings.at.path("sock"));
    }
}

impl House {
    fn open(region: Region, settings: &Settings) -> Result<Self, CoordinatorError> {
        let guard = match settings.watch {
            Some(watch) => guard(&region, settings.at.processor, watch)?,
            None => Guard::without_threads(&region),
        };
        let memory = settings.watch.and_then(|_| MemoryLock::all().ok());
        Ok(Self {
            region,
            guard,
            _memory: memory,
        })
    }
}
