//! A thread that drives one body outside of any program: an executor whose handlers come and go as an application likes.
//!
//! Nothing is recorded, so nothing grows however long it lasts. What may be put into its ports by other threads goes through an [`Inbox`].

mod inbox;
pub mod served;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use laxity_model::base::port::Arrival;
use laxity_model::program::together::{Others, Terms};
use laxity_model::{
    ActivityId, Body, Context, EventKind, Grade, HostError, Instant, PortId, Refused, SemaphoreId,
    Service, Span, Step,
};

use super::hold::{HoldError, HoldRequest, Observer, ThreadHold};
use super::together::{Feeder, Finishes, Place, Sitting};
use crate::doctor::{self, Diagnosis, probe};
use crate::os::clock;
use crate::os::cpuset::CpuSet;
use crate::os::fact::Unknown;
use crate::os::idle::Awake;
use crate::os::memory::{MemoryLock, STACK_BYTES, prefault_stack};
use crate::os::sched::{self, Policy, SchedError, Tid};
use crate::os::signals;
use crate::run::ours::Ours;
use crate::run::port::Ports;
use crate::run::semaphore::{Semaphore, Taken};

use self::inbox::{Feed, Feeds};

pub use self::inbox::Inbox;
pub use super::together::FeedError;
pub use crate::run::bell::{Bell, Futex};

/// How a thread is scheduled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rank {
    /// Real-time, at this priority (1 to 99), on one processor or wherever the kernel lets it run.
    Fifo {
        /// The priority.
        priority: u8,
        /// The processor, by the kernel's number.
        processor: Option<usize>,
    },
    /// With a reservation.
    Reserved(HoldRequest),
    /// As an ordinary thread: nothing is promised.
    Fair,
}

impl Rank {
    /// Of a thread that is to run while one of this rank is at work. Beside a reservation it is an ordinary one.
    pub(super) const fn above(&self) -> Self {
        match self {
            Self::Fifo {
                priority,
                processor,
            } => Self::Fifo {
                priority: if *priority < 99 { *priority + 1 } else { 99 },
                processor: *processor,
            },
            Self::Reserved(_) | Self::Fair => Self::Fair,
        }
    }
}

/// Why the thread was not started.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StartError {
    /// It lacks a right: the one cause, and the remedy.
    #[error("{0}")]
    Lacks(Diagnosis),
    /// Its reservation was refused.
    #[error(transparent)]
    Hold(#[from] HoldError),
    /// A call failed that never should.
    #[error(transparent)]
    Sched(#[from] SchedError),
    /// Its seat among other processes is not its own.
    #[error("the seat among other processes was not given to this executor, or is taken")]
    NoSeat,
    /// Those who guard its seat count on another priority or processor.
    #[error(
        "executors in this seat are to be at FIFO priority {} on processor {} alone, between those who guard them; this one is at {policy} on {on}",
        terms.priority, terms.processor
    )]
    NotOnTerms {
        /// What they count on.
        terms: Terms,
        /// What the executor's thread is.
        policy: Policy,
        /// Where it may run.
        on: CpuSet,
    },
    /// Who guards a seat could not see that a handler does not come back: what threads receive is not counted here, or cannot be read.
    #[error("a handler that does not come back would not be seen: {0}")]
    Uncounted(Unknown),
    /// There is no thread to be had.
    #[error("no thread can be started: {0}")]
    NoThread(String),
}

/// What keeps a thread at its rank, to be dropped at its end by itself.
pub(super) struct Ranked {
    _hold: Option<ThreadHold>,
    /// Or why idle processors may sleep as they like, which only makes it late.
    _awake: Option<Awake>,
    /// The same of memory that may be fetched while it works.
    _memory: Option<MemoryLock>,
    firmly: Firmly,
}

impl Drop for Ranked {
    fn drop(&mut self) {
        if let Firmly::Kept { thread, .. } = self.firmly {
            // To give a rank up needs no right.
            let _ = sched::set_policy(thread, Policy::Other { nice: 0 });
        }
    }
}

/// How firmly the rank is held.
#[derive(Clone)]
enum Firmly {
    Hold(Observer),
    /// This policy, and where it may run, as long as nobody takes them away.
    Kept {
        thread: Tid,
        policy: Policy,
        on: CpuSet,
    },
    Not,
}

/// What somebody has made of a thread that is to keep this.
fn changed(thread: Tid, policy: Policy, on: &CpuSet) -> Result<Option<String>, SchedError> {
    let found = sched::policy(thread)?;
    if found != policy {
        return Ok(Some(format!("somebody gave the thread {found}")));
    }
    let found = sched::affinity(thread)?;
    // The kernel leaves out what is not online, for which nobody moved the thread.
    let is_all_that_is_online = || probe::online().is_ok_and(|online| found == on.both(&online));
    let is_kept = found == *on || is_all_that_is_online();
    let what = || format!("somebody lets the thread run on processors {found}, and not {on}");
    Ok((!is_kept).then(what))
}

impl Ranked {
    /// Gives the calling thread its rank.
    pub(super) fn begin(rank: &Rank) -> Result<Self, StartError> {
        clock::use_exact_timers();
        prefault_stack();
        let ranked = |hold, firmly| Self {
            _hold: hold,
            _awake: Awake::ask().ok(),
            _memory: (*rank != Rank::Fair)
                .then(MemoryLock::all)
                .and_then(Result::ok),
            firmly,
        };
        match rank {
            Rank::Fair => Ok(ranked(None, Firmly::Not)),
            Rank::Reserved(request) => {
                let hold = ThreadHold::begin(request)?;
                let firmly = Firmly::Hold(hold.observer().clone());
                Ok(ranked(Some(hold), firmly))
            }
            Rank::Fifo {
                priority,
                processor,
            } => {
                doctor::can_be_fifo(*priority).map_err(StartError::Lacks)?;
                if let Some(processor) = processor {
                    sched::pin(*processor)?;
                }
                let (thread, policy) = (Tid::current(), Policy::Fifo(*priority));
                let on = sched::affinity(thread)?;
                sched::set_policy(thread, policy).map_err(|error| {
                    let why = doctor::why_refused(policy, &error);
                    why.map_or(StartError::Sched(error), StartError::Lacks)
                })?;
                let firmly = Firmly::Kept { thread, policy, on };
                Ok(ranked(None, firmly))
            }
        }
    }
}

/// A thread that drives a body. It goes on until the body finishes or its inbox is closed.
pub struct Alone {
    thread: Mutex<Option<JoinHandle<()>>>,
    firmly: Firmly,
    /// Where it takes turns with other processes.
    place: Option<Arc<Place>>,
    failure: Arc<Mutex<Option<HostError>>>,
}

impl Alone {
    /// Starts a thread of this name and rank. The body is made in it before it has that, and dropped there; so is `over`, when nothing of it runs any more.
    ///
    /// # Errors
    ///
    /// [`StartError`]; then there is no thread.
    pub fn start<O: Send + 'static>(
        name: &str,
        rank: Rank,
        inbox: &Inbox,
        (body, over): (impl FnOnce() -> Box<dyn Body> + Send + 'static, O),
    ) -> Result<Self, StartError> {
        let failure = Arc::new(Mutex::new(None));
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        let (inbox, failed) = (inbox.clone(), Arc::clone(&failure));
        let place = inbox.place.clone();
        // The kernel keeps 15 bytes of a thread's name.
        let short: String = name.chars().filter(|c| *c != '\0').take(15).collect();
        let builder = thread::Builder::new().name(short).stack_size(STACK_BYTES);
        let started = signals::start_deaf(builder, move || {
            let _over = over;
            let _ours = Ours::enter();
            let _feeder = inbox.feeder.clone().map(Finishes);
            let mut body = body();
            let begun = Ranked::begin(&rank).and_then(|ranked| {
                let sitting = inbox.place.as_ref().map(Sitting::begin);
                Ok((ranked, sitting.transpose()?))
            });
            let (ranked, sitting) = match begun {
                Ok(begun) => begun,
                Err(error) => return drop(tell.send(Err(error))),
            };
            let _ = tell.send(Ok(ranked.firmly.clone()));
            drop(tell);
            if let Err(error) = drive(&mut *body, &inbox, sitting) {
                *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
            // What the body still has is dropped by an ordinary thread, which is in nobody's way.
            drop(ranked);
        });
        let thread = started.map_err(|error| StartError::NoThread(error.to_string()))?;
        // One that panicked before it told said so on standard error.
        let told = told.recv();
        let told = told.unwrap_or_else(|_| Err(StartError::NoThread("it panicked".to_owned())));
        Ok(Self {
            firmly: told?,
            place,
            thread: Mutex::new(Some(thread)),
            failure,
        })
    }

    fn thread(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it has the rank that was asked for until now, and where, and those who guard its seat look, if it has one that is guarded. A few system calls; with a seat a millisecond where nobody has worked for a tenth of a second, and such a
    /// tenth where nobody looks.
    pub fn grade(&self) -> Grade {
        let reason = match &self.firmly {
            Firmly::Hold(observer) => return observer.grade(),
            Firmly::Not => "it is an ordinary thread, as was asked for".to_owned(),
            Firmly::Kept { thread, policy, on } => match changed(*thread, *policy, on) {
                Ok(None) => match self.place.as_deref().and_then(Place::doubt) {
                    None => return Grade::Enforced,
                    Some(why) => why.to_owned(),
                },
                Ok(Some(what)) => what,
                Err(error) => error.to_string(),
            },
        };
        Grade::Unenforced { reason }
    }

    /// Why the body was stopped, if it did not end by itself.
    pub fn failure(&self) -> Option<HostError> {
        let failure = self.failure.lock();
        failure.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the thread was neither joined nor left.
    pub fn is_there(&self) -> bool {
        self.thread().is_some()
    }

    /// Takes the rank of a thread that does not end away from it, so that it is in nobody's way. One with a reservation keeps that, and gets no more.
    pub fn demote(&self) {
        if let Firmly::Kept { thread, .. } = self.firmly
            && self.thread().as_ref().is_some_and(|it| !it.is_finished())
        {
            // It may end just now.
            let _ = sched::set_policy(thread, Policy::Other { nice: 0 });
        }
    }

    /// Leaves the thread behind, which ends when it will.
    pub fn leave(&self) {
        drop(self.thread().take());
    }

    /// Forgets the thread, in a child of the process that has it: there it is not.
    pub fn forget(&self) {
        std::mem::forget(self.thread().take());
    }

    /// Waits until the thread has ended. What the body is told to end by is the caller's affair.
    pub fn join(&self) {
        let thread = self.thread().take();
        // A panic said so on standard error.
        let _ = thread.map(JoinHandle::join);
    }
}

/// The [`Context`] of the one body.
struct Solitary<'a> {
    ports: &'a Ports,
    feeds: &'a Feeds,
    /// In a seat.
    feeder: Option<&'a Feeder>,
    sitting: Option<Sitting>,
    /// Those that are known, and after how many changes.
    fed: Vec<Feed>,
    known: u64,
    arrival: Option<Arrival>,
    timed_out: bool,
    failure: Option<HostError>,
}

impl Solitary<'_> {
    fn mistake(&mut self, what: String) {
        self.failure.get_or_insert(HostError::BadProgram(what));
    }

    /// Looks at what feeds the ports, unless somebody changes that just now: then there is a wait after that.
    fn look_at_feeds(&mut self) {
        let changes = self.feeds.changes.load(Ordering::SeqCst);
        if changes != self.known
            && let Ok(all) = self.feeds.all.try_lock()
        {
            self.fed.clone_from(&all);
            self.known = changes;
        }
    }

    fn wait(&mut self, port: PortId, until: Option<Instant>) -> Result<Taken, HostError> {
        let ports = self.ports;
        if let Some(sitting) = &mut self.sitting {
            let permits = ports.get(port).map(|port| &port.permits);
            let is_closed = || permits.is_none_or(Semaphore::is_closed);
            sitting.wait(is_closed)?;
            return Ok(match is_closed() {
                true => Taken::Closed,
                false => Taken::TimedOut,
            });
        }
        self.look_at_feeds();
        let taken = ports.wait_with(port, until, &self.fed);
        // So that those are closed that nobody else has.
        self.look_at_feeds();
        taken
    }
}

impl Context for Solitary<'_> {
    fn now(&self) -> Instant {
        clock::now()
    }

    fn put(&mut self, port: PortId, payload: [u64; 2]) -> bool {
        let at = clock::now();
        self.ports.put(port, Arrival { at, payload }) == Some(true)
    }

    fn take(&mut self, port: PortId) -> Option<Arrival> {
        let found = self.ports.get(port)?;
        let taken = found.permits.try_take() == Some(Taken::One);
        taken.then(|| {
            found.awaits_no_more();
            found.arrival(false)
        })
    }

    fn arrival(&self) -> Option<Arrival> {
        self.arrival
    }

    fn ring(&mut self, port: PortId, doorbell: SemaphoreId) -> bool {
        if self.ports.ring(port, doorbell).is_none() {
            self.mistake(format!("port {port} or doorbell {doorbell} does not exist"));
        }
        if let Some(feeder) = self.feeder {
            // What cannot be waited for can be read, or tells so.
            if let Some(events) = feeder.look(port) {
                self.put(port, [events, 0]);
            }
            return false;
        }
        self.look_at_feeds();
        self.fed.iter().any(|(fed, _)| *fed == port)
    }

    fn awaits_no_more(&mut self, port: PortId) {
        if let Some(found) = self.ports.get(port) {
            found.awaits_no_more();
        }
    }

    fn others(&mut self) -> Option<&mut dyn Others> {
        self.sitting.as_mut()?.others()
    }

    fn record_of(&mut self, _: ActivityId, _: EventKind, _: [u64; 2]) {}

    fn fail(&mut self, what: &'static str) {
        self.mistake(what.to_owned());
    }

    fn record(&mut self, _: EventKind, _: [u64; 2]) {}

    fn timed_out(&self) -> bool {
        self.timed_out
    }

    fn answer(&self) -> Result<Instant, Refused> {
        Err(Refused::NothingAsked)
    }

    fn service(&self) -> Service {
        clock::thread_service()
    }

    fn stood(&self) -> Span {
        self.sitting.as_ref().map_or(Span::ZERO, Sitting::stood)
    }
}

/// Steps of the body on the calling thread, until it finishes or the inbox is closed.
fn drive(body: &mut dyn Body, inbox: &Inbox, sitting: Option<Sitting>) -> Result<(), HostError> {
    let mut context = Solitary {
        ports: &inbox.ports,
        feeds: &inbox.feeds,
        feeder: inbox.feeder.as_deref(),
        sitting,
        fed: Vec::new(),
        known: 0,
        arrival: None,
        timed_out: false,
        failure: None,
    };
    loop {
        let step = body.step(&mut context);
        if let Some(failure) = context.failure.take() {
            return Err(failure);
        }
        let waited = match step {
            Step::Charge(_) => {
                if let Some(sitting) = &context.sitting {
                    sitting.give_way();
                }
                continue;
            }
            Step::Burn(service) => {
                let goal = clock::thread_service() + service;
                while clock::thread_service() < goal {}
                continue;
            }
            Step::SleepUntil(until) => {
                clock::sleep_until(until);
                continue;
            }
            Step::Yield => {
                thread::yield_now();
                continue;
            }
            Step::Wait(port) => (port, None),
            Step::WaitUntil(port, until) => (port, Some(until)),
            Step::Finish | Step::EndRun => return Ok(()),
            _ => {
                let what =
                    "what runs alone has its rank from the beginning, and changes nothing of it";
                return Err(HostError::BadProgram(what.to_owned()));
            }
        };
        let (port, until) = waited;
        let taken = context.wait(port, until)?;
        context.timed_out = taken == Taken::TimedOut;
        let found = context.ports.get(port).filter(|_| taken == Taken::One);
        context.arrival = found.map(|found| found.arrival(true));
        if taken == Taken::Closed {
            return Ok(());
        }
    }
}
