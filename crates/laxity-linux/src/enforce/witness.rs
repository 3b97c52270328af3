//! The witness: a thread above all others that wakes at fixed instants, and so sees when the machine itself stands still.
//!
//! A virtual machine may stop for 20 ms without counting steal time. Whatever overlaps a late wake-up of the witness was
//! disturbed from outside, and is judged apart. Where slots are dispatched, the dispatcher testifies too, to what was late at its
//! own instants. A witness cannot serve beside `SCHED_DEADLINE`, which outranks it.

use std::sync::Arc;
use std::thread;

use laxity_model::base::ring::Producer;
use laxity_model::{ActivityId, Disturbance, Event, EventKind, HostError, ProcessorId, Span};

use crate::host::map;
use crate::host::run::Run;
use crate::host::thread::prefault_stack;
use crate::os::clock;
use crate::os::sched::{self, CpuSet, Policy, SchedError, Tid};

/// The activity number under which the witness's events are recorded: no activity of any program.
pub const WITNESS_ACTIVITY: ActivityId = ActivityId(u16::MAX);
/// The most disturbances that are kept; a machine that has more in one run is no place to measure.
const MOST: usize = 100_000;

/// Where and how a witness watches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WitnessConfig {
    /// The processor it watches.
    pub processor: ProcessorId,
    /// It wakes at the run's start and every so much after it: at the instants of what is measured.
    pub period: Span,
    /// It was late when it woke more than this after its instant.
    pub tolerance: Span,
}

impl WitnessConfig {
    /// Every millisecond, 100 µs.
    #[must_use]
    pub const fn new(processor: ProcessorId) -> Self {
        Self {
            processor,
            period: Span::from_millis(1),
            tolerance: Span::from_micros(100),
        }
    }
}

/// What a witness saw.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Testimony {
    /// How often it woke.
    pub wakeups: u64,
    /// When it was late.
    pub disturbances: Vec<Disturbance>,
}

pub(crate) fn spawn(
    config: WitnessConfig,
    cpu: usize,
    mut ring: Producer,
    run: Arc<Run>,
) -> Result<thread::JoinHandle<Testimony>, HostError> {
    thread::Builder::new()
        .name(format!("witness/{cpu}"))
        .spawn(move || match watch(config, cpu, &mut ring, &run) {
            Ok(testimony) => testimony,
            Err(error) => {
                run.fail(HostError::Failed(format!("the witness: {error}")));
                Testimony::default()
            }
        })
        .map_err(|error| HostError::Failed(format!("cannot start the witness: {error}")))
}

fn watch(
    config: WitnessConfig,
    cpu: usize,
    ring: &mut Producer,
    run: &Run,
) -> Result<Testimony, SchedError> {
    clock::use_exact_timers();
    prefault_stack();
    ring.prefault();
    let mut testimony = Testimony {
        wakeups: 0,
        disturbances: Vec::with_capacity(1_024),
    };
    sched::set_affinity(Tid::current(), &CpuSet::single(cpu))?;
    sched::set_policy(Tid::current(), Policy::Fifo(map::WITNESS))?;
    let Some(mut due) = run.wait_for_start() else {
        return Ok(testimony);
    };
    while run.sleep_until(due) {
        let now = clock::now();
        testimony.wakeups += 1;
        if now.saturating_since(due) > config.tolerance {
            ring.push(Event {
                at: now,
                kind: EventKind::Disturbed,
                processor: config.processor,
                activity: WITNESS_ACTIVITY,
                args: [due.as_nanos(), now.as_nanos()],
            });
            if testimony.disturbances.len() < MOST {
                testimony
                    .disturbances
                    .push(Disturbance { from: due, to: now });
            }
        }
        // Instants that passed while the machine stood still are over: waking for each would disturb on.
        let missed = now.saturating_since(due) / config.period;
        due += config.period * (missed + 1);
    }
    Ok(testimony)
}
