//! The `linux` profile: a twin of a machine that was measured. It simulates the kernel's scheduling classes; what laxity itself decides
//! (slot tables, when an edge is due, admission) is decided by [`laxity_model`], as live.
//!
//! # What is modelled
//!
//! * **Placements and priorities** are scheduled as on the live host ([`ranks`](laxity_model::enforce::ranks)), one thread an activity.
//! * **Real-time classes** and the **fair class**: a [run queue](laxity_model::policy::classes) for each processor. Slices of the
//!   fair class end at the kernel's tick, when somebody wakes, or when who runs reads its own processor time, as one does that burns.
//! * **`SCHED_DEADLINE`**: a [server](laxity_model::policy::deadline) for each thread, earliest deadline first over all processors, above
//!   every other class. That a budget is used up is noticed at the tick; where the measured overrun is far below a tick, by a timer that
//!   is as late as was measured.
//! * **The dispatcher** of time slots: a FIFO-98 thread on the slots' processor, with the timing that the live one would have calibrated: it
//!   wakes early, spins, lets go, and prolongs slots of which others have taken some.
//! * **The witness**, if there is one: it takes its moment each period, and records when it is late.
//! * **The clock**: one interrupt for all timers of a processor that are due when it comes; its latency is drawn from the measured one, of a
//!   busy processor or of an idle one. So what sleeps until one instant wakes at one instant, and runs in the order of priorities.
//! * **Costs** of the way a thread gets its processor, as [`Machine`] describes them. What a tick takes, and the reloading of caches after a
//!   preemption, prolongs work that is charged; by the kernel's count, which bounds what is burnt, it is the thread's own time, and so is what
//!   an interrupt takes before the next thread runs.
//!
//! # What is simplified
//!
//! * External activities cost nothing and are exact; they and other processors reach a thread by an interrupt like the clock's.
//! * No load balancing, no groups, no throttling of real-time threads and no server for starved ordinary ones: admission leaves them 6 %.
//!   What else runs on the machine is in the measured distributions only.
//! * A `SCHED_DEADLINE` thread begins on its activity's processor, and moves only when there is a more urgent one. Live, it may begin on any:
//!   the kernel spreads the threads while they start.
//! * A semaphore is handed to its waiter; live, who comes in between may take it.
//! * Draws at different instants are independent; live, slow moments come together.
//! * A step costs nothing beyond what it charges, and so do the events that it records.
//!
//! # Random, and yet always the same
//!
//! All draws follow from the seed. The latency of a processor's interrupt follows from the instant alone, everything else from a stream of
//! each thread's own: no other thread's doing changes it.

mod build;
mod decide;
mod dispatch;
mod draws;
mod kernel;
mod reserve;
mod slice;
mod task;
mod wake;

use laxity_model::Span;
use laxity_model::enforce::Witness;
use laxity_model::enforce::machine::{Figure, Machine};

/// What draws are for, where they follow from the instant.
const CLOCK: u64 = 1;
const TICK: u64 = 2;
const PHASE_OF_TICK: u64 = 3;

/// A measured machine under Linux.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Linux {
    machine: Machine,
    seed: u64,
    processors: Option<u16>,
    witness: Option<Witness>,
    /// What it turns into, and how long after a run's start; by time.
    later: Vec<(Span, Machine)>,
}

impl Linux {
    pub(crate) fn new(machine: &Machine, seed: u64) -> Self {
        Self {
            machine: machine.clone(),
            seed,
            processors: None,
            witness: None,
            later: Vec::new(),
        }
    }

    pub(crate) fn turning_into(mut self, machine: &Machine, after: Span) -> Self {
        self.later.push((after, machine.clone()));
        self.later.sort_by_key(|(after, _)| *after);
        self
    }

    pub(crate) fn on_processors(self, processors: u16) -> Self {
        Self {
            processors: Some(processors),
            ..self
        }
    }

    pub(crate) fn watched_by(self, witness: Option<Witness>) -> Self {
        Self { witness, ..self }
    }

    fn tick(&self) -> Span {
        Span::from_nanos(1_000_000_000 / u64::from(self.machine.tick_hz.max(1)))
    }

    /// Whether the kernel notices by a timer that a budget is used up, or at its next tick: a timer's overruns are microseconds, a tick's
    /// are anything up to a tick.
    fn has_budget_timer(&self) -> bool {
        self.machine.figure(Figure::DeadlineOverrun).at(900_000) * 4 < self.tick()
    }
}
