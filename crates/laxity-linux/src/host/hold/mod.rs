//! Reservations of threads that no program of ours runs: the caller's own ([`ThreadHold`]), and those of other programs ([`ProgramHold`]).
//!
//! Who enforces is the same as in a run, and so is who admits. What a run's events tell is seen from outside here: by what the kernel counts
//! of a thread, and, with slots, by what dispatcher and witness record.

mod above;
mod closely;
mod follower;
mod groups;
mod guarded;
mod limits;
mod members;
mod places;
mod program;
mod seen;
mod slots;
mod subject;
mod watcher;

use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::sync::Arc;

use laxity_model::analysis::multiprocessor::{Bandwidth, DeadlineRequest};
use laxity_model::base::ring;
use laxity_model::verify::delivery::{Delivery, Held, Stretch};
use laxity_model::{ActivityId, Enforcer, Grade, HostError, Outside, Reservation};

use super::supply::kept_of_each;
use super::unready::await_all;
use crate::doctor::machine::usual_limits;
use crate::doctor::{self, Diagnosis, Machine};
use crate::enforce::deadline::{DeadlineError, ThreadReservation};
use crate::enforce::holding::Holding;
use crate::enforce::witness;
use crate::os::claim::{Claim, ClaimError};
use crate::os::clock;
use crate::os::cpuset::CpuSet;
use crate::os::fact::Fact;
use crate::os::fork;
use crate::os::limits::throttling;
use crate::os::proc::shows_own_numbers;
use crate::os::sched::{self, Policy, Restore, SchedError, Tid};
use crate::run::own::{Kept, Ought, Own, Role};
use crate::run::port::Ports;
use crate::run::{self, Run, Thread};
pub(super) use above::strangers;
pub use closely::CloseHold;
pub use program::{Choice, Confinement, ProgramHold, ProgramRequest, may_reserve};

use above::above;
pub use seen::Holders;
use seen::{Seen, unheld};
use slots::{RING_CAPACITY, SlotSession};
use subject::{OneThread, Subject};
use watcher::{BESIDE_KERNEL, BESIDE_SLOTS, IsHolders, Looks, Watcher, WatcherStart};

/// The only one to whom anything is granted here.
const HOLDER: ActivityId = ActivityId(0);

/// What is to be held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HoldRequest {
    /// Who asks, for messages.
    pub name: String,
    /// How much of what.
    pub reservation: Reservation,
    /// Who is to enforce it.
    pub enforcer: Enforcer,
    /// What becomes of the holder outside its slots; by `deadline` it has nothing outside.
    pub outside: Outside,
    /// The processor of the slots; one is chosen where none is named. By `deadline` the holder keeps to none.
    pub processor: Option<usize>,
}

/// Why a thread does not hold what it asked for. It is as it was.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HoldError {
    /// The kernel said no to what was asked for.
    #[error("{reservation} cannot be reserved: {diagnosis}")]
    Refused {
        /// What was asked for.
        reservation: Reservation,
        /// The one cause, and the remedy.
        diagnosis: Box<Diagnosis>,
        /// The call that failed, with its `errno`.
        source: DeadlineError,
    },
    /// A call failed that never should: one that only asks, or one that reported success without effect.
    #[error(transparent)]
    Deadline(#[from] DeadlineError),
    /// Admission did, or slots cannot be given here.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl HoldError {
    /// Why a thread did not get this from the kernel: found out under the conditions in which it was refused.
    fn of_kernel(reservation: Reservation, source: DeadlineError) -> Self {
        match doctor::why_refused(Policy::Deadline(reservation.into()), source.call()) {
            Some(diagnosis) => Self::Refused {
                reservation,
                diagnosis: Box::new(diagnosis),
                source,
            },
            None => source.into(),
        }
    }
}

impl From<SchedError> for HoldError {
    fn from(error: SchedError) -> Self {
        Self::Deadline(error.into())
    }
}

impl From<ClaimError> for HoldError {
    fn from(error: ClaimError) -> Self {
        let text = error.to_string();
        Self::Host(match error {
            ClaimError::Held(..) => HostError::Refused(text),
            ClaimError::Unknown(..) => HostError::CannotRun(text),
        })
    }
}

impl From<HoldError> for HostError {
    fn from(error: HoldError) -> Self {
        let text = error.to_string();
        match error {
            HoldError::Refused { diagnosis, .. } => diagnosis.as_of_host(text),
            HoldError::Deadline(error) => error.as_of_host(text),
            HoldError::Host(error) => error,
        }
    }
}

/// A reservation of the calling thread; given back, with policy and affinity as before, when dropped. It can be neither sent nor shared. A child that
/// the thread forks has nothing of it, and gives nothing back.
pub struct ThreadHold {
    /// With the claim, dropped last; where nobody can see whether the thread is held, nobody can adopt it either.
    held: Option<(By, Option<Claim>)>,
    generation: u32,
    observer: Observer,
    _not_send: PhantomData<*const ()>,
}

impl fmt::Debug for ThreadHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadHold")
            .field("observer", &self.observer)
            .finish_non_exhaustive()
    }
}

enum By {
    Deadline(ByDeadline),
    Slots(Box<BySlots>),
}

/// However it ends, what is seen afterwards is no fault of what was held.
impl Drop for ThreadHold {
    fn drop(&mut self) {
        if self.is_of_parent() {
            // Its threads are none of ours to wait for, and to unlock the claim would be to unlock it for the parent.
            mem::forget(self.held.take());
            return;
        }
        self.observer.seen.end();
    }
}

/// Dropped in this order: the reservation before its watcher, so that the last look is at what is over.
struct ByDeadline {
    _reserved: ThreadReservation,
    watch: Watch,
}

/// Dropped in this order: the thread leaves its slots, then these end, then it has its own processors again.
struct BySlots {
    _holding: Holding,
    session: SlotSession,
    _restore: Restore,
}

impl ThreadHold {
    /// Reserves for the calling thread.
    ///
    /// # Errors
    ///
    /// [`HoldError`]; nothing of the thread was changed.
    pub fn begin(request: &HoldRequest) -> Result<Self, HoldError> {
        let claim = match Claim::of(Tid::current()) {
            Err(error @ ClaimError::Held(..)) => return Err(error.into()),
            claim => claim.ok(),
        };
        let by = match request.enforcer {
            Enforcer::Deadline => By::Deadline(ByDeadline::begin(request)?),
            Enforcer::Slots => By::Slots(Box::new(BySlots::begin(request)?)),
        };
        let holder = Tid::current();
        let observer = match &by {
            By::Deadline(by) => Observer {
                holder,
                is_watched: false,
                seen: Arc::clone(&by.watch.seen),
                how: How::Deadline(request.reservation),
            },
            By::Slots(by) => by.session.observer(holder, false),
        };
        Ok(Self {
            held: Some((by, claim)),
            generation: fork::generation(),
            observer,
            _not_send: PhantomData,
        })
    }

    /// Whether this is a child that was forked, whose parent has it.
    pub fn is_of_parent(&self) -> bool {
        fork::generation() != self.generation
    }

    /// Tells what is received, to any thread.
    pub fn observer(&self) -> &Observer {
        &self.observer
    }
}

/// Tells what the holder of a reservation receives, and how firmly it is held: to any thread, and afterwards too; to a child that was forked nothing.
#[derive(Clone)]
pub struct Observer {
    holder: Tid,
    /// Whom strangers are looked for beside, the watcher alone knows.
    is_watched: bool,
    seen: Arc<Seen>,
    how: How,
}

#[derive(Clone)]
enum How {
    Deadline(Reservation),
    /// Of a program, whose threads may leave it as they like: the watcher knows them, and notes it.
    Threads,
    /// Slots on this processor, given in this run.
    Slots(usize, Arc<Run>),
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer")
            .field("holder", &self.holder)
            .field("processor", &self.processor())
            .finish_non_exhaustive()
    }
}

impl Observer {
    /// What was received, by the last look, which is at most three periods ago (or three milliseconds, by `deadline` 60); or why that cannot be seen here.
    /// By `deadline` several periods of less than 20 ms are seen together ([`Delivery::together`]): single periods are not told apart then. Of a wait the kernel does not count all: the
    /// largest gap is at most what is told.
    pub fn delivery(&self) -> Fact<Delivery> {
        self.seen.delivery()
    }

    /// What is kept of it.
    fn stretches(&self) -> Fact<Vec<Stretch>> {
        self.seen.stretches()
    }

    /// Whether anybody holds it yet: threads of certain names are awaited in a program that was started for it. Nothing is told of what they had before.
    pub fn holders(&self) -> Holders {
        self.seen.holders()
    }

    /// The names of which no thread has come to hold it, in order; of a program that ran before all are there when it begins.
    pub fn missing(&self) -> Vec<String> {
        self.seen.missing()
    }

    /// Whether a thread that is meant could not be held at some look: what it receives is not told.
    pub fn leaves_out(&self) -> bool {
        self.seen.leaves_out()
    }

    /// Whether that was so as the kernel had no bandwidth left for it: who reserves less, or for fewer threads, may have it.
    pub fn lacks_bandwidth(&self) -> bool {
        self.seen.lacks_bandwidth()
    }

    /// How firmly it is held, by the worst moment that was seen until now: by `deadline` the thread's policy is read back, since who has the
    /// right may change it at any time (those of a program's threads at each look); who outranks a slot is looked for every tenth of a second, and at once where the witness was held
    /// up. While it is held, whoever outranks a slot now could take it away; once it is over, only those count who were not seen to have
    /// slept all the time, and slots that were over before a period of them was seen are uncertain.
    pub fn grade(&self) -> Grade {
        let seen = self.seen.grade();
        if self.seen.is_over() || matches!(seen, Grade::Unenforced { .. }) {
            return seen;
        }
        let grade = self.grade_now();
        if grade == Grade::Enforced {
            return seen.and(&self.threat());
        }
        self.seen.note(grade.clone());
        grade
    }

    /// By what limit of its own (`RLIMIT_RTTIME`) the kernel may end the program for what it has in its slots, if it was last seen to have one.
    pub fn time_limit(&self) -> Option<String> {
        self.seen.time_limit()
    }

    /// Something else is known for which what is held is not enforced.
    pub fn note(&self, reason: String) {
        self.seen.note(Grade::Unenforced { reason });
    }

    /// The processor of the slots, by the kernel's number; by `deadline` there is none.
    pub fn processor(&self) -> Option<usize> {
        match self.how {
            How::Deadline(_) | How::Threads => None,
            How::Slots(cpu, _) => Some(cpu),
        }
    }

    fn grade_now(&self) -> Grade {
        let reason = match &self.how {
            How::Deadline(reservation) => match sched::policy(self.holder) {
                Ok(found) if found == Policy::Deadline((*reservation).into()) => {
                    return Grade::Enforced;
                }
                Ok(found) => format!("the thread was taken out of it and has {found}"),
                Err(error) => error.to_string(),
            },
            How::Threads => return Grade::Enforced,
            How::Slots(_, run) => match run.failure() {
                None => return Grade::Enforced,
                Some(error) => error.to_string(),
            },
        };
        unheld(reason)
    }

    /// As firmly as those allow who outrank slots now, whatever they did until now. Of a program's threads the watcher alone knows which they
    /// are.
    fn threat(&self) -> Grade {
        match self.how {
            How::Slots(cpu, _) if !self.is_watched => above(cpu, self.holder),
            _ => Grade::Enforced,
        }
    }
}

impl ByDeadline {
    fn begin(request: &HoldRequest) -> Result<Self, HoldError> {
        let watch = Watch::start(request, false, &CpuSet::default())?;
        let reserved = ThreadReservation::deadline(request.reservation)
            .map_err(|source| HoldError::of_kernel(request.reservation, source))?;
        let tid = Tid::current();
        let policy = Policy::Deadline(request.reservation.into());
        watch.run.register(Own {
            tid,
            who: format!("`{}`", request.name),
            role: Role::Activity(HOLDER),
            cpu: usize::MAX,
            may_wander: true,
            ought: Ought::Kept(Arc::new(Kept::new(tid, policy))),
        });
        watch.seen.observe(own_thread());
        // The first budget began just now, and so did the first period.
        watch.run.begin(clock::now());
        Ok(Self {
            _reserved: reserved,
            watch,
        })
    }
}

impl BySlots {
    fn begin(request: &HoldRequest) -> Result<Self, HoldError> {
        let own = Tid::current();
        let policy = sched::policy(own)?;
        let nobody_else: IsHolders = Box::new(|_| false);
        let session = SlotSession::begin(request, slots::placed(policy), (true, nobody_else))?;
        let restore = Restore::of(own)?;
        sched::pin(session.cpu)?;
        let mut holding = Holding::new(session.place.clone(), policy, session.cpu);
        session.register(holding.describe(HOLDER, &request.name, None));
        holding.begin()?;
        session.seen.observe(own_thread());
        Ok(Self {
            _holding: holding,
            session,
            _restore: restore,
        })
    }
}

/// The watcher of a reservation by `deadline`, and the witnesses where it is looked for halts. There is no other thread of ours.
struct Watch {
    run: Arc<Run>,
    watcher: Option<Thread<Option<Watcher>>>,
    witnesses: Vec<Thread<u64>>,
    seen: Arc<Seen>,
}

impl Watch {
    /// `closely`: it looks once a period, however short that is, and keeps what it sees. `witnessed`: the processors whose halts are looked for.
    fn start(request: &HoldRequest, closely: bool, witnessed: &CpuSet) -> Result<Self, HostError> {
        leaves_room(request.reservation)?;
        let run = Arc::new(Run::new(1, 0, Ports::default()));
        let no_promise = throttling().admits_all();
        let grade = no_promise.map_or(Grade::Enforced, |reason| Grade::Unenforced { reason });
        let seen = Seen::new(grade);
        let reservation = request.reservation;
        let (to_witnesses, consumers): (Vec<_>, Vec<_>) = witnessed
            .iter()
            .map(|_| ring::channel(RING_CAPACITY))
            .unzip();
        let start = WatcherStart {
            reservation,
            held: Held::ByKernel,
            stops: false,
            slots_on: None,
            is_holders: Box::new(|_| false),
            witnessed: witnessed.iter().collect(),
            cpu: None,
            keeps_stretches: closely,
            consumers,
        };
        // Between the end of a budget and the next one: a wait is counted when it is over, and at the edge of a period it may be that or not.
        let (used, period) = (
            reservation.service().as_dedicated_span(),
            reservation.period(),
        );
        let seldom = if closely { BESIDE_SLOTS } else { BESIDE_KERNEL };
        let looks = move |begin| Looks::new(begin + (used + period) / 2, period, seldom);
        let rules = start.witnesses();
        let watcher = watcher::spawn(start, looks, Arc::clone(&seen), Arc::clone(&run))?;
        let mut watch = Self {
            run,
            watcher: Some(watcher),
            witnesses: Vec::new(),
            seen,
        };
        for (rule, (cpu, ring)) in rules.zip(witnessed.iter().zip(to_witnesses)) {
            let run = Arc::clone(&watch.run);
            watch.witnesses.push(witness::spawn(rule, cpu, ring, run)?);
        }
        let expected = 1 + watch.witnesses.len();
        let run = &watch.run;
        let are_ready = |until| run.await_ready(expected, until);
        await_all(expected, || run.ready(), are_ready)?;
        Ok(watch)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.seen.note_failure(&self.run);
        self.run.finish();
        // What they saw the watcher hears.
        for witness in self.witnesses.drain(..) {
            let _ = run::join(witness);
        }
        let watcher = self.watcher.take().and_then(run::join).flatten();
        watcher.into_iter().for_each(Watcher::note_ends);
    }
}

/// The kernel lets in who asks for all of a processor, and takes from him what it keeps of each for ordinary threads all the same.
fn leaves_room(asked: Reservation) -> Result<(), HostError> {
    let needed = DeadlineRequest::from(asked).bandwidth();
    // No kernel keeps more by itself, and to look takes some milliseconds.
    if needed <= Bandwidth::ONE.saturating_sub(usual_limits(None).servers) {
        return Ok(());
    }
    let most = Bandwidth::ONE.saturating_sub(kept_of_each(&Machine::probe()));
    if needed <= most {
        return Ok(());
    }
    Err(HostError::Refused(format!(
        "{asked} by deadline is more than {:.1} % of a processor: the kernel keeps the rest of each for ordinary threads, and stops who has all of it for it (`laxity doctor`: servers)",
        most.ppm() as f64 / 10_000.0
    )))
}

fn own_thread() -> Fact<Box<dyn Subject>> {
    shows_own_numbers()?;
    Ok(Box::new(OneThread::new(Tid::current())?))
}

#[cfg(test)]
mod tests;
