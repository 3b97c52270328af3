//! The coordinator.

mod takeover;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use laxity_model::Instant;
use laxity_model::program::coordinator::{Answer, Ask, Item, Presence, Registry, Told, Who};
use laxity_model::program::together::{SEATS, Standing};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use self::takeover::Awaited;
use super::{CoordinatorError, Settings};
use crate::doctor::probe;
use crate::host::alone::StartError;
use crate::host::callers::wire::Packet;
use crate::host::callers::{self, Caller, Callers, LOOK_EVERY, Limits};
use crate::host::together::{Guard, Region, guard};
use crate::os::clock;
use crate::os::memory::MemoryLock;
use crate::os::proc::stat_of;
use crate::os::sched::{self, Policy, Tid};

/// So many connections of one user: one for each seat, and a few that only ask.
const OF_ONE_USER: usize = SEATS + 4;

/// The seat of a process that is connected.
type Seated = Option<u16>;

/// Who has no seat, and is let go when nothing more can be understood of him.
const fn has_none(one: &Caller<Seated>) -> bool {
    one.has.is_none()
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
pub struct Heard(Vec<(u64, Packet)>);

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
    /// Can be read once it is to end, whoever is there.
    told_to_end: Option<OwnedFd>,
    /// Locked as long as this serves. Says which memory it is that all share.
    only: File,
    /// `None` until one of those has come back who have seats from the coordinator before.
    house: Option<House>,
    /// Why there is none, where nobody has a seat.
    unfounded: Option<CoordinatorError>,
    registry: Registry,
    /// The seats that the coordinator before has given, of those who have not come back yet.
    awaited: BTreeMap<u16, Awaited>,
    callers: Callers<Seated>,
    /// Since when nobody is there.
    alone_since: Instant,
}

fn at<T>(path: &Path, result: Result<T, impl Into<io::Error>>) -> Result<T, CoordinatorError> {
    result.map_err(|error| CoordinatorError::File(path.to_owned(), error.into()))
}

/// The file that is locked by the one that serves; never passed to anybody.
fn only(settings: &Settings) -> Result<File, CoordinatorError> {
    let path = settings.at.path("lock");
    let mut options = File::options();
    let options = options.read(true).write(true).create(true).mode(0o600);
    let file = at(&path, options.custom_flags(libc::O_NOFOLLOW).open(&path))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => Err(CoordinatorError::Served(settings.at.processor)),
        Err(error) => at(&path, Err(error)),
    }
}

impl Coordinator {
    /// Becomes that of a processor, and can be reached then.
    ///
    /// # Errors
    ///
    /// [`CoordinatorError::Served`]: another one is; [`CoordinatorError::Shared`]: others might become it; [`CoordinatorError::NoProcessor`]; a missing right of its guards;
    /// or what the kernel says of a file.
    pub fn open(settings: Settings) -> Result<Self, CoordinatorError> {
        let processor = settings.at.processor;
        if probe::online().is_ok_and(|online| !online.contains(processor)) {
            return Err(CoordinatorError::NoProcessor(processor));
        }
        // What a coordinator decides rests on files there.
        let directory = &settings.at.directory;
        if !at(directory, callers::directory(directory, settings.everyone))? {
            return Err(CoordinatorError::Shared(directory.clone()));
        }
        let only = only(&settings)?;
        let path = settings.at.path("sock");
        let limits = Limits {
            of_one_user: OF_ONE_USER,
            of_all: 4 * OF_ONE_USER,
            silence: settings.silence,
        };
        let callers = Callers::new(&path, settings.everyone, limits);
        let mut coordinator = Self {
            registry: Registry::new(settings.terms()),
            awaited: BTreeMap::new(),
            house: None,
            unfounded: None,
            only,
            callers: at(&path, callers)?,
            told_to_end: None,
            alone_since: clock::now(),
            settings,
        };
        coordinator.finds_seats()?;
        if coordinator.registry.is_empty() {
            coordinator.founds()?;
        }
        Ok(coordinator)
    }

    /// The same, which ends too when this can be read, whoever is there: they go on, and their next coordinator is told what they have.
    #[must_use]
    pub fn ends_by(mut self, told: OwnedFd) -> Self {
        self.told_to_end = Some(told);
        self
    }

    /// Serves until nobody has been there for a while, or until it is [told to end](Self::ends_by).
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
        let is_alone = self.callers.is_empty() && self.registry.is_empty();
        let ends = self
            .alone_since
            .checked_add(self.settings.linger)
            .unwrap_or(Instant::MAX);
        if !is_alone {
            self.alone_since = now;
        } else if ends <= now {
            return Ok(None);
        }
        let until = self.next(now, is_alone.then_some(ends));
        let takes = |bytes: &[u8]| matches!(Ask::decode(bytes), Ok(Ask::Resume { .. }));
        let heard = self.callers.hear(self.told_to_end.as_ref(), until, takes);
        Ok(at(&self.settings.at.path("sock"), heard)?.map(Heard))
    }

    /// When there is something to do at the latest, though nobody says anything.
    fn next(&self, now: Instant, ends: Option<Instant>) -> Option<Instant> {
        let waits = !self.registry.over(now).is_empty() || !self.awaited.is_empty();
        let looks = waits || self.house.is_none();
        let others = [
            ends,
            self.registry.next(),
            looks.then(|| now + LOOK_EVERY),
            self.callers.next(now, has_none),
        ];
        others.into_iter().flatten().min()
    }

    /// Does what was heard, and what it is time for.
    pub fn answer(&mut self, heard: Heard) {
        for (id, (bytes, with)) in heard.0 {
            let user = self.callers.get(id).map(|one| one.who.user);
            match bytes {
                Some(bytes) => self.told(id, &bytes, &with),
                None => self.ended(id),
            }
            self.callers.closes_of(user, with);
        }
        self.tidy(clock::now());
    }

    fn told(&mut self, id: u64, bytes: &[u8], with: &[OwnedFd]) {
        let ask = Ask::decode(bytes);
        let Some(caller) = self.callers.get_mut(id) else {
            return;
        };
        if ask.is_ok() {
            caller.heard_at = clock::now();
        }
        let (who, seat) = (caller.who, caller.has);
        let answer = match ask {
            Ok(Ask::Join { name }) if seat.is_none() => match self.joins(id, who, &name) {
                Ok(()) => return,
                Err(answer) => answer,
            },
            Ok(Ask::Resume {
                name,
                seat: own,
                items,
            }) if seat.is_none() => match self.comes_back(own, with) {
                Ok(()) => self.resumes(id, (own, who), &name, items),
                Err(reason) => Answer::Refused(reason),
            },
            Ok(Ask::Hold { items, keep }) => match seat {
                Some(seat) => self.holds(seat, items, keep),
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
        self.says(id, &answer, &[]);
    }

    /// Whoever has more is held to that before it is told so.
    fn holds(&mut self, seat: u16, items: Vec<Item>, keep: bool) -> Answer {
        let answer = self.registry.holds(seat, items, keep);
        self.hold_all();
        answer
    }

    /// The guard holds each to what it was admitted with.
    fn hold_all(&self) {
        if let Some(house) = &self.house {
            for (seat, limit) in self.registry.limits() {
                house.guard.hold(seat, limit);
            }
        }
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
    fn says(&self, id: u64, answer: &Answer, with: &[BorrowedFd<'_>]) {
        self.callers.says(id, &answer.encode(), with);
    }

    fn seats(&mut self, id: u64, seat: u16) {
        if let Some(caller) = self.callers.get_mut(id) {
            caller.has = Some(seat);
        }
    }

    /// It has a seat now and is told so; else the answer.
    fn joins(&mut self, id: u64, who: Who, name: &str) -> Result<(), Answer> {
        let Some(house) = &self.house else {
            let reason = match &self.unfounded {
                Some(error) => error.to_string(),
                None => "processes have seats from the coordinator before this one, and none of them has come back yet".to_owned(),
            };
            return Err(Answer::NotYet(reason));
        };
        self.registry.may_join(who)?;
        if let Err(unknown) = house.guard.can_watch(who.process) {
            let unseen = StartError::Uncounted(unknown);
            return Err(Answer::Refused(unseen.to_string()));
        }
        let Some(given) = house.guard.give(who.process) else {
            return Err(Answer::Refused(format!("all {SEATS} seats are taken")));
        };
        let seat = given.number;
        let lock = self.lends(seat, who).map_err(|error| {
            house.guard.vacate(seat);
            Answer::Refused(error.to_string())
        })?;
        let welcome = Answer::Welcome {
            seat,
            priority: self.settings.watch.map_or(0, |watch| watch.executors),
        };
        self.says(id, &welcome, &[given.region.as_fd(), lock.as_fd()]);
        self.registry.joins(seat, who, name);
        self.seats(id, seat);
        Ok(())
    }

    /// A connection has come to its end, or its process has.
    fn ended(&mut self, id: u64) {
        let Some((who, Some(seat))) = self.callers.ends(id) else {
            return;
        };
        let told = self.registry.goes(seat, clock::now());
        let process = who.process;
        let is_told = |one: &Caller<Seated>| one.has.is_some_and(|seat| told.contains(&seat));
        let all = self.callers.iter().filter(|(_, one)| is_told(one));
        let all: Vec<u64> = all.map(|(id, _)| id).collect();
        for id in all {
            self.says(id, &Answer::Gone { seat, process }, &[]);
        }
    }

    /// Seats of those who have gone are free, once their threads have gone too; and who is silent is let go.
    fn tidy(&mut self, now: Instant) {
        let silent = self.callers.tidy(now, has_none);
        silent.into_iter().for_each(|id| self.ended(id));
        self.misses(now);
        for (seat, _) in self.registry.over(now) {
            let Some(house) = &self.house else {
                self.frees(seat);
                continue;
            };
            if !house.guard.lives(seat) {
                house.guard.vacate(seat);
                self.frees(seat);
            } else if !matches!(
                house.region.standing(seat),
                Some(Standing::Left | Standing::Removed)
            ) {
                // It has no seat without its connection, and as an ordinary thread it takes nothing from others.
                house.guard.remove(seat);
                self.registry.holds(seat, Vec::new(), true);
            }
        }
        if self.house.is_none() && self.registry.is_empty() {
            // Where that cannot be, it is tried again at the next look, and who joins until then is told why.
            self.unfounded = self.founds().err();
        }
        self.hold_all();
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
