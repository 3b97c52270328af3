//! The threads that see to it that the baton goes on: the sentinel just below the executors, and the watchdog just above them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use laxity_model::enforce::ranks;
use laxity_model::program::together::{Occupant, SEATS, Sentinel, Terms, Vigil, Watchdog};
use laxity_model::{Instant, Service, Span};

use super::sitting::{wake, wake_guards};
use super::{Region, Seat};
use crate::host::alone::{Rank, Ranked, StartError};
use crate::os::fact::{Fact, Unknown};
use crate::os::memory::STACK_BYTES;
use crate::os::sched::{self, Policy, Tid};
use crate::os::schedstat::{Account, PROC};
use crate::os::{clock, futex, signals};
use crate::run::ours::Ours;

/// What a region is guarded against.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Watch {
    /// The priority of the executors.
    pub executors: u8,
    /// The longest that a handler may work without a look: a longer quantum is admitted in no process. One that takes more than twice as much, and an eighth, has lost its seat.
    pub longest: Service,
    /// So much more than its process was [held to](Guard::hold) a handler may take, as the machine itself may keep the processor meanwhile.
    pub tolerance: Service,
    /// So long after a release it is looked for who does not attend to it.
    pub grace: Span,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            executors: ranks::EXECUTOR,
            longest: Service::from_micros(500),
            tolerance: Service::from_micros(250),
            grace: Span::from_micros(50),
        }
    }
}

/// What the guarding threads share.
struct Post {
    region: Region,
    /// Where the kernel tells what threads receive.
    proc: PathBuf,
    ends: AtomicBool,
    /// The process of each seat; 0 if it was given to none.
    processes: [AtomicU32; SEATS],
    /// Whether the seat was taken away from that process.
    taken: [AtomicBool; SEATS],
    /// For how long each may be at work without a look; here, where nobody who has a seat writes.
    limits_ns: [AtomicU64; SEATS],
    /// Whose seat was taken away, and what stood in the way of making the thread an ordinary one.
    removed: Mutex<Vec<(u16, Option<String>)>>,
}

/// Guards a region until this is dropped.
pub struct Guard {
    post: Arc<Post>,
    threads: Vec<JoinHandle<()>>,
}

/// Guards a region whose executors are on this processor, by its number of the kernel. From then on one that is elsewhere, or not at their priority, takes no seat.
///
/// # Errors
///
/// A thread lacks its rank, with the one cause and the remedy; or [what threads receive](StartError::Uncounted) cannot be read.
pub fn guard(region: &Region, processor: usize, watch: Watch) -> Result<Guard, StartError> {
    guard_by(Path::new(PROC), region, processor, watch)
}

fn guard_by(
    proc: &Path,
    region: &Region,
    processor: usize,
    watch: Watch,
) -> Result<Guard, StartError> {
    is_counted(proc, Tid::current()).map_err(StartError::Uncounted)?;
    region.limit(Terms {
        priority: watch.executors.into(),
        processor: processor as u32,
        longest: watch.longest,
        tolerance: watch.tolerance,
    });
    let mut guard = Guard::by(proc, region);
    let (sentinel, watchdog) = (Arc::clone(&guard.post), Arc::clone(&guard.post));
    let rank = |priority| Rank::Fifo {
        priority,
        processor: Some(processor),
    };
    let below = rank(ranks::sentinel(watch.executors));
    let above = rank(ranks::watchdog(watch.executors));
    guard.start("sentinel", below, move || stand(&sentinel, watch.grace))?;
    guard.start("watchdog", above, move || {
        watch_over(&watchdog, watch.longest);
    })?;
    Ok(guard)
}

/// Whether it can be read what a thread has received, which has run.
fn is_counted(proc: &Path, thread: Tid) -> Fact<()> {
    match Account::within(proc, thread)?.read()?.turns {
        0 => Err(Unknown("the kernel counts nothing of it".to_owned())),
        _ => Ok(()),
    }
}

/// Starts a thread of laxity's own that has this rank and does this.
pub(super) fn start(
    name: &str,
    rank: Rank,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, StartError> {
    let (tell, told) = mpsc::sync_channel(1);
    let builder = thread::Builder::new().name(name.to_owned());
    let started = signals::start_deaf(builder.stack_size(STACK_BYTES), move || {
        let _ours = Ours::enter();
        match Ranked::begin(&rank) {
            Ok(_ranked) => {
                let _ = tell.send(Ok(()));
                work();
            }
            Err(error) => drop(tell.send(Err(error))),
        }
    });
    let started = started.map_err(|error| StartError::NoThread(error.to_string()))?;
    let told = told.recv();
    told.unwrap_or_else(|_| Err(StartError::NoThread("it panicked".to_owned())))?;
    Ok(started)
}

impl Guard {
    /// Of ordinary threads: it knows whose the seats are, and nobody sees to it that the baton goes on.
    #[must_use]
    pub fn without_threads(region: &Region) -> Self {
        Self::by(Path::new(PROC), region)
    }

    fn by(proc: &Path, region: &Region) -> Self {
        Self {
            post: Arc::new(Post {
                region: region.clone(),
                proc: proc.to_owned(),
                ends: AtomicBool::new(false),
                processes: [const { AtomicU32::new(0) }; SEATS],
                taken: [const { AtomicBool::new(false) }; SEATS],
                limits_ns: [const { AtomicU64::new(u64::MAX) }; SEATS],
                removed: Mutex::default(),
            }),
            threads: Vec::new(),
        }
    }

    fn start(
        &mut self,
        name: &str,
        rank: Rank,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<(), StartError> {
        self.threads.push(start(name, rank, work)?);
        Ok(())
    }

    /// A seat for an executor of this process; `None` if there is none left. Which are taken is known here, whatever is written.
    pub fn give(&self, process: u32) -> Option<Seat> {
        let is_free = |process: &AtomicU32| process.load(Ordering::SeqCst) == 0;
        let number = self.post.processes.iter().position(is_free)? as u16;
        let region = self.post.region.clone();
        region.gives(number);
        self.gave(number, process);
        Some(Seat { region, number })
    }

    /// This seat is of this process; 0: of none.
    pub(crate) fn gave(&self, seat: u16, process: u32) {
        let post = &self.post;
        let place = usize::from(seat);
        if let Some((given, taken)) = post.processes.get(place).zip(post.taken.get(place)) {
            taken.store(false, Ordering::SeqCst);
            self.hold(seat, Service::MAX);
            given.store(process, Ordering::SeqCst);
        }
    }

    /// The executor in this seat is at work for no longer than this without a look, as it was admitted, and never for longer than [anybody](Watch::longest) may be.
    pub fn hold(&self, seat: u16, limit: Service) {
        if let Some(held) = self.post.limits_ns.get(usize::from(seat)) {
            held.store(limit.as_nanos(), Ordering::SeqCst);
        }
    }

    /// The process of this seat has gone: it may be given to another. Never while the executor's thread lives.
    pub fn vacate(&self, seat: u16) {
        self.gave(seat, 0);
        if let Some(next) = self.post.region.vacate(seat, clock::now()) {
            wake(&self.post.region, next);
        }
    }

    /// Whether it would be seen that a handler of this process does not come back, where anybody watches; or why not.
    pub(crate) fn can_watch(&self, process: u32) -> Fact<()> {
        match self.threads.is_empty() {
            true => Ok(()),
            false => is_counted(&self.post.proc, Tid(process.cast_signed())),
        }
    }

    /// Whether the executor's thread of this seat lives.
    pub(crate) fn lives(&self, seat: u16) -> bool {
        self.post.thread(seat).is_some()
    }

    /// This seat is taken away from its process.
    pub(crate) fn remove(&self, seat: u16) {
        self.post.remove(seat, None);
    }

    /// Whose seats were taken away since a handler did not come back, and why the thread has its rank still, if it has.
    pub fn removed(&self) -> Vec<(u16, Option<String>)> {
        let removed = self.post.removed.lock();
        removed.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.post.ends.store(true, Ordering::SeqCst);
        for word in self.post.region.guards() {
            // Any other value than they wait for.
            word.store(2, Ordering::SeqCst);
            futex::wake_among(word, 1);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Post {
    fn ends(&self) -> bool {
        self.ends.load(Ordering::SeqCst)
    }

    fn sleep(&self, on: &AtomicU32, word: u32, until: Instant) {
        // What ends it is said first, and then the word is another.
        if !self.ends() {
            futex::wait_among(on, word, (until != Instant::MAX).then_some(until));
        }
    }

    /// Who has a seat, as far as it was given and taken here.
    fn occupant(&self, seat: u16) -> Occupant {
        let place = usize::from(seat);
        let Some((process, taken)) = self.processes.get(place).zip(self.taken.get(place)) else {
            return Occupant::Unknown;
        };
        if process.load(Ordering::SeqCst) == 0 {
            Occupant::Unknown
        } else if taken.load(Ordering::SeqCst) {
            Occupant::Removed
        } else {
            Occupant::Present(None)
        }
    }

    /// The thread of a seat, if it is one of the process that the seat was given to.
    fn thread(&self, seat: u16) -> Option<Tid> {
        let process = self
            .processes
            .get(usize::from(seat))?
            .load(Ordering::SeqCst);
        let thread = Tid(self.region.thread(seat)?.cast_signed());
        signals::has_thread(process, thread).then_some(thread)
    }

    /// The first thread of the process that a seat was given to, if it has the executors' rank.
    fn first_of(&self, seat: u16) -> Option<Tid> {
        let process = self.processes.get(usize::from(seat))?;
        let process = process.load(Ordering::SeqCst);
        let first = Tid(process.cast_signed());
        let rank = self.region.terms()?.priority;
        let is_there = process > 0 && signals::has_thread(process, first);
        let has_rank =
            matches!(sched::policy(first), Ok(Policy::Fifo(own)) if u32::from(own) == rank);
        (is_there && has_rank).then_some(first)
    }

    /// A handler does not come back; its thread, as far as it was known before.
    fn remove(&self, seat: u16, known: Option<Tid>) {
        let ordinary = |thread| {
            let made = sched::set_policy(thread, Policy::Other { nice: 0 });
            made.map_err(|error| error.to_string())
        };
        let made_ordinary = match known.or_else(|| self.thread(seat)) {
            Some(thread) => ordinary(thread),
            None => Err("it is no thread of the process that has the seat".to_owned()),
        };
        // A thread that executes a program goes on with it as the first of its process.
        let made_ordinary = made_ordinary.or_else(|why| match self.first_of(seat) {
            Some(first) => ordinary(first),
            None => Err(why),
        });
        if let Some(next) = self.region.remove(seat, clock::now()) {
            wake(&self.region, next);
        }
        let taken = self.taken.get(usize::from(seat));
        if taken.is_some_and(|taken| !taken.swap(true, Ordering::SeqCst)) {
            let mut removed = self.removed.lock().unwrap_or_else(PoisonError::into_inner);
            removed.push((seat, made_ordinary.err()));
        }
    }
}

/// The threads of those who were seen at work, and what counts their service: kept as long as they are there, whatever is written meanwhile.
#[derive(Default)]
struct Clocks(BTreeMap<u16, (Tid, Account)>);

impl Clocks {
    fn thread(&self, seat: u16) -> Option<Tid> {
        self.0.get(&seat).map(|(thread, _)| *thread)
    }

    fn read(&mut self, post: &Post, seat: u16) -> Occupant {
        let known = self.0.get(&seat);
        if let Some(service) = known.and_then(|(_, account)| account.service()) {
            return Occupant::Present(Some(service));
        }
        self.0.remove(&seat);
        let Some(thread) = post.thread(seat) else {
            return Occupant::Gone;
        };
        let Ok(account) = Account::within(&post.proc, thread) else {
            return Occupant::Present(None);
        };
        let service = account.service();
        self.0.insert(seat, (thread, account));
        Occupant::Present(service)
    }
}

/// The sentinel.
fn stand(post: &Post, grace: Span) {
    let mut sentinel = Sentinel::new(post.region.clone(), grace);
    while !post.ends() {
        match sentinel.look(clock::now()) {
            Vigil::Sleep { word, until } => post.sleep(post.region.guards()[0], word, until),
            Vigil::Wake(seat) => {
                wake(&post.region, seat);
                wake_guards(&post.region);
            }
            Vigil::Again | Vigil::Remove(_) => {}
        }
    }
}

/// The watchdog.
fn watch_over(post: &Post, longest: Service) {
    let mut watchdog: Watchdog<_, SEATS> = Watchdog::new(post.region.clone(), longest);
    let mut clocks = Clocks::default();
    // Opened here, as looking is to take no more than it must.
    let own = Account::of_current();
    while !post.ends() {
        for (number, limit) in (0..).zip(&post.limits_ns) {
            let limit = Service::from_nanos(limit.load(Ordering::SeqCst));
            watchdog.hold(number, limit.min(longest));
        }
        if let Some(Ok(counted)) = own.as_ref().map(Account::read) {
            watchdog.has_waited(counted.waited);
        }
        let now = clock::now();
        post.region.looks(now);
        let look = watchdog.look(now, |seat, interrupted| match post.occupant(seat) {
            Occupant::Present(_) if interrupted => clocks.read(post, seat),
            other => other,
        });
        match look {
            Vigil::Sleep { word, until } => post.sleep(post.region.guards()[1], word, until),
            Vigil::Remove(seat) => post.remove(seat, clocks.thread(seat)),
            Vigil::Wake(seat) => wake(&post.region, seat),
            Vigil::Again => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process;

    use laxity_model::program::together::Member;

    use super::*;

    /// A kernel that counts nothing.
    const NOWHERE: &str = "/nowhere";

    #[test]
    fn where_nobody_would_be_seen_nobody_guards() {
        let region = Region::create().unwrap();
        let refused = guard_by(Path::new(NOWHERE), &region, 0, Watch::default());
        assert!(matches!(refused, Err(StartError::Uncounted(_))));
        assert_eq!(region.terms(), None);
    }

    #[test]
    fn who_cannot_be_seen_has_not_gone() {
        let region = Region::create().unwrap();
        for proc in [PROC, NOWHERE] {
            let guard = Guard::by(Path::new(proc), &region);
            let seat = guard.give(process::id()).unwrap().number;
            let own = Tid::current().0.cast_unsigned();
            let member = Member::sit(region.clone(), seat, own);
            assert!(member.is_some());
            let read = || Clocks::default().read(&guard.post, seat);
            let is_counted = matches!(read(), Occupant::Present(Some(_)));
            assert_eq!(is_counted, proc == PROC);
            assert!(is_counted || read() == Occupant::Present(None));
            assert!(guard.lives(seat));
            // A process that has no such thread, as there is none of this number.
            guard.gave(seat, i32::MAX as u32);
            assert_eq!(read(), Occupant::Gone);
            assert!(!guard.lives(seat));
            guard.vacate(seat);
        }
        // Nobody has taken this one.
        let guard = Guard::without_threads(&region);
        let seat = guard.give(process::id()).unwrap().number;
        assert!(!guard.lives(seat));
    }
}
