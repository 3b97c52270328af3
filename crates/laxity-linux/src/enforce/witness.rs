//! The witness: a thread above all others that wakes at fixed instants, and so sees when the machine itself stands still.
//!
//! A virtual machine may stop for 20 ms without counting steal time. Whatever overlaps a late wake-up of the witness was
//! disturbed from outside, and is judged apart. Where slots are dispatched, the dispatcher records too what was late at its
//! own instants. A witness cannot serve beside `SCHED_DEADLINE`, which outranks it.

use std::sync::Arc;

use laxity_model::base::ring::Producer;
use laxity_model::enforce::{WITNESS_ACTIVITY, Witness, ranks};
use laxity_model::{Disturbance, Event, EventKind, HostError, ProcessorId};

use crate::os::clock;
use crate::os::memory::prefault_stack;
use crate::os::sched::{self, Policy, SchedError, Tid};
use crate::run::{self, Run, Thread};

/// The most disturbances that are kept; a machine that has more in one run is no place to measure.
const MOST: usize = 100_000;

/// How a disturbance is recorded.
pub(crate) fn event(disturbance: Disturbance, processor: ProcessorId) -> Event {
    let Disturbance { from, to } = disturbance;
    Event {
        at: to,
        kind: EventKind::Disturbed,
        processor,
        activity: WITNESS_ACTIVITY,
        args: [from.as_nanos(), to.as_nanos()],
    }
}

/// What a witness saw.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Observed {
    /// How often it woke.
    pub wakeups: u64,
    /// When it was late.
    pub disturbances: Vec<Disturbance>,
}

pub(crate) fn spawn(
    config: Witness,
    cpu: usize,
    mut ring: Producer,
    run: Arc<Run>,
) -> Result<Thread<Observed>, HostError> {
    run::spawn(format!("witness/{cpu}"), run, move |run| {
        let observed = watch(config, cpu, &mut ring, run);
        observed.map_err(|error| HostError::Failed(format!("the witness: {error}")))
    })
}

fn watch(
    config: Witness,
    cpu: usize,
    ring: &mut Producer,
    run: &Run,
) -> Result<Observed, SchedError> {
    clock::use_exact_timers();
    prefault_stack();
    ring.prefault();
    let mut observed = Observed {
        wakeups: 0,
        disturbances: Vec::with_capacity(1_024),
    };
    sched::pin(cpu)?;
    sched::set_policy(Tid::current(), Policy::Fifo(ranks::WITNESS))?;
    let Some(mut due) = run.wait_for_start() else {
        return Ok(observed);
    };
    while run.sleep_until(due) {
        let now = clock::now();
        observed.wakeups += 1;
        if let Some(disturbance) = config.late(due, now) {
            ring.push(event(disturbance, config.processor));
            if observed.disturbances.len() < MOST {
                observed.disturbances.push(disturbance);
            }
        }
        due = config.next(due, now);
    }
    Ok(observed)
}
