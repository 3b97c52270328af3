//! Who of a run is raised: [`Raises`] says so, and the kernel does it.
//!
//! Whoever raises does it at once, in his own thread: one system call of the other's number. What is arranged for later a thread of the host's does, which sleeps until then. All that is
//! one at a time, under a turn whose holder is as urgent as whoever waits for it, so that an interrupt's handler waits no longer than one of these calls takes.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use laxity_model::enforce::ranks;
use laxity_model::policy::Rank;
use laxity_model::policy::raise::{Effect, NotRaised, Raises};
use laxity_model::{ActivityId, HostError, Instant, PortId, Priority};

use super::{Run, Thread, spawn};
use crate::os::clock;
use crate::os::futex::{self, Taken, Turn};
use crate::os::sched::{self, Attributes, Policy, SchedError, Tid};

/// Those of a run who may be raised.
#[derive(Debug, Default)]
pub(crate) struct Raiser {
    turn: Turn,
    state: Mutex<State>,
    /// Rung when there is something new to wait for.
    changed: AtomicU32,
}

#[derive(Debug, Default)]
struct State {
    raises: Raises,
    /// The threads of those of them who have begun and not ended.
    threads: Vec<(ActivityId, Tid)>,
}

impl State {
    /// The thread has this priority from now on, if there is one. About a microsecond.
    fn carry_out(&self, who: ActivityId, priority: Priority) -> Result<(), SchedError> {
        let mut threads = self.threads.iter();
        let Some((_, thread)) = threads.find(|(id, _)| *id == who) else {
            return Ok(());
        };
        let policy = Policy::from(ranks::of_thread(priority));
        Attributes::new(policy, policy.is_real_time()).apply_unchecked(*thread)
    }
}

/// The state, and whose turn it is: given back in this order.
struct Held<'a> {
    state: MutexGuard<'a, State>,
    _turn: Taken<'a>,
}

/// Why nobody was raised.
#[derive(Debug)]
pub(crate) enum Failed {
    /// He may not be.
    Refused(NotRaised),
    /// The kernel said no.
    Kernel(SchedError),
}

impl Raiser {
    pub(crate) fn new(raises: Raises) -> Self {
        let threads = Vec::with_capacity(raises.len());
        Self {
            state: Mutex::new(State { raises, threads }),
            ..Self::default()
        }
    }

    fn held(&self) -> Held<'_> {
        let turn = self.turn.take();
        // Nobody waits for this one, who has the turn.
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Held { state, _turn: turn }
    }

    /// Nobody of the run has a thread that may be raised.
    fn is_idle(&self) -> bool {
        !self.held().state.raises.has_threads()
    }

    /// The highest priority that the activity's thread may have; `None` if it may not be raised.
    pub(crate) fn highest(&self, who: ActivityId) -> Option<Priority> {
        self.held().state.raises.highest(who)
    }

    /// Raises somebody, or arranges that; what is to be put into which port, where his executor is to be told.
    pub(crate) fn raise(
        &self,
        who: ActivityId,
        rank: Rank,
        at: Instant,
    ) -> Result<Option<(PortId, [u64; 2])>, Failed> {
        let mut held = self.held();
        let before = held.state.raises.next();
        let effect = held.state.raises.raise(who, rank, at, clock::now());
        let done = match effect.map_err(Failed::Refused)? {
            Effect::Nothing => Ok(()),
            Effect::Becomes(priority) => held.state.carry_out(who, priority),
            Effect::Tell(port, payload) => return Ok(Some((port, payload))),
        };
        let is_sooner = held.state.raises.next() < before;
        drop(held);
        if is_sooner {
            self.ring();
        }
        done.map(|()| None).map_err(Failed::Kernel)
    }

    /// The calling thread is this activity's, and has its own policy; it is raised if it was before. It can be until what is handed back is dropped.
    pub(crate) fn begin(&self, who: ActivityId) -> Result<Raised<'_>, SchedError> {
        let begun = Raised { raiser: self, who };
        let mut held = self.held();
        held.state.threads.push((who, Tid::current()));
        let raised = held.state.raises.raised(who);
        let done = raised.map_or(Ok(()), |priority| held.state.carry_out(who, priority));
        drop(held);
        done.map(|()| begun)
    }

    /// Does what was arranged until now, and tells when the next is.
    fn pass(&self) -> Result<Instant, SchedError> {
        let Held { state, .. } = &mut self.held();
        while let Some((who, priority)) = state.raises.pass(clock::now()) {
            state.carry_out(who, priority)?;
        }
        Ok(state.raises.next())
    }

    /// Whoever waits for the next instant looks again.
    pub(crate) fn ring(&self) {
        self.changed.fetch_add(1, Ordering::SeqCst);
        futex::wake_all(&self.changed);
    }
}

/// The calling thread, which may be raised.
pub(crate) struct Raised<'a> {
    raiser: &'a Raiser,
    who: ActivityId,
}

impl Raised<'_> {
    /// It is about to wait: it is what it was placed as.
    pub(crate) fn over(&self) -> Result<(), SchedError> {
        let Held { state, .. } = &mut self.raiser.held();
        let own = state.raises.over(self.who);
        own.map_or(Ok(()), |own| state.carry_out(self.who, own))
    }
}

impl Drop for Raised<'_> {
    /// Its number may be somebody else's soon.
    fn drop(&mut self) {
        let Held { state, .. } = &mut self.raiser.held();
        state.threads.retain(|(who, _)| *who != self.who);
        state.raises.over(self.who);
    }
}

/// Starts the thread that does what is arranged for later, on the processor of the external activities, if anybody's thread may be raised. It ends with the run.
pub(crate) fn start(cpu: usize, run: &Arc<Run>) -> Result<Option<Thread<()>>, HostError> {
    if run.raises.is_idle() {
        return Ok(None);
    }
    let failed = |error: SchedError| HostError::Failed(format!("who raises others: {error}"));
    let thread = spawn("raiser".to_owned(), Arc::clone(run), move |run| {
        let rank = Policy::Fifo(ranks::INTERRUPT);
        let settled = sched::pin(cpu).and_then(|()| sched::set_policy(Tid::current(), rank));
        settled.map_err(failed)?;
        clock::use_exact_timers();
        loop {
            // In this order: what is said after that rings again.
            let seen = run.raises.changed.load(Ordering::SeqCst);
            if run.ended() {
                return Ok(());
            }
            let next = run.raises.pass().map_err(failed)?;
            futex::wait(
                &run.raises.changed,
                seen,
                (next < Instant::MAX).then_some(next),
            );
        }
    });
    thread.map(Some)
}
