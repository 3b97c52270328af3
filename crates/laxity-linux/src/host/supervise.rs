//! Starts a run's threads, waits for its end, ends it, and restores everything.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;

use laxity_model::base::ring::{self, Producer};
use laxity_model::enforce::{Witness, ranks};
use laxity_model::{
    Activity, ActivityId, Enforcer, Grade, HostError, Instant, Placement, PortId, Program, RunEnd,
    RunRecord, Span, Usage,
};

use super::LiveConfig;
use super::admit::{Granted, ProcessorSlots};
use super::collector::{self, Collection};
use super::thread::{self, Outcome, Start};
use crate::enforce::holding::Place;
use crate::enforce::slots::{
    self, Dispatched, DispatcherStart, Doorbell, ParkSignal, SlotReport, Timing,
};
use crate::enforce::witness::{self, Observed};
use crate::os::clock;
use crate::os::memory::MemoryLock;
use crate::os::proc;
use crate::os::sched::{self, Policy, Restore, SchedError, Tid};
use crate::os::signals::{self, Watch};
use crate::run::port::Ports;
use crate::run::{self, Run, Thread};

/// From the moment all threads are ready until the common start.
const LEAD_IN: Span = Span::from_millis(2);
/// No thread takes longer than this to get ready; one that does is starved by somebody above the starter.
const READY_WITHIN: Span = Span::from_secs(5);
/// How often threads that have not ended are looked for.
const LOOK_EVERY: Span = Span::from_millis(2);

/// The threads of a run.
#[derive(Default)]
struct Threads {
    /// By activity; those on an executor have none.
    activities: Vec<Option<Thread<Outcome>>>,
    dispatchers: Vec<Thread<Dispatched>>,
    doorbells: Vec<Arc<Doorbell>>,
    witness: Option<Thread<Observed>>,
    collector: Option<Thread<Collection>>,
}

/// Everything that a run begins with.
pub(super) struct Prepared {
    pub(super) program: Program,
    /// What feeds its ports from outside.
    pub(super) feeds: Vec<(PortId, OwnedFd)>,
    /// By activity.
    pub(super) places: Vec<Place>,
    pub(super) slots: Vec<(ProcessorSlots, Timing)>,
    /// By activity, if it asked for a reservation.
    pub(super) grades: Vec<Option<Grade>>,
}

/// Runs an admitted program to its end.
pub(super) fn run(
    config: &LiveConfig,
    mut prepared: Prepared,
    length: Span,
) -> Result<(RunRecord, Vec<SlotReport>), HostError> {
    let cannot = |error: SchedError| HostError::CannotRun(error.to_string());
    let own = Tid::current();
    // Dropped in reverse order, on every way out: the policy last, when all threads have gone.
    let watch = Watch::begin();
    let _restore = Restore::of(own).map_err(cannot)?;
    let _memory = config.lock_memory.then(MemoryLock::all);
    let _park = ParkSignal::install();

    // The policy before the processor: pinned first, it might starve there. The threads inherit both.
    sched::set_policy_inherited(own, thread::STARTER).map_err(cannot)?;
    sched::pin(config.external).map_err(cannot)?;

    let program = &prepared.program;
    let ports = Ports::new(&program.ports, std::mem::take(&mut prepared.feeds))?;
    // Those on an executor have no thread of their own.
    let has_thread = |activity: &&Activity| !matches!(activity.placement, Placement::On { .. });
    let own = program.activities.iter().filter(has_thread).count();
    let run = Arc::new(Run::new(program.activities.len(), own, ports));
    let graded = program.activities.iter().zip(prepared.grades.drain(..));
    let granted = graded.map(|(activity, grade)| Granted::of(activity, grade, config));
    let granted: Vec<Option<Granted>> = granted.collect();
    let steal_before = proc::steal(&config.processors);
    let mut threads = Threads::default();
    let started = spawn_all(config, prepared, &run, &mut threads);
    let span = started.and_then(|expected| supervise(&run, &watch, expected, length));
    let ended = end_all(&run, threads);
    // When nobody runs any more: until then service was received and events were recorded.
    let end = clock::now();

    let ended_by = span?;
    if let Some(error) = run.failure() {
        return Err(error);
    }
    let Ended {
        outcomes,
        dispatched,
        mut observed,
        collection,
    } = ended;
    let (events, events_lost) = collection.finish();
    let usage = outcomes.into_iter().zip(granted);
    let steal = proc::steal(&config.processors)
        .zip(steal_before)
        .map(|(after, before)| after.saturating_sub(before));
    let reports = gather(dispatched, &mut observed);
    let record = RunRecord {
        start: run.start(),
        end,
        ended_by,
        events,
        events_lost,
        usage: usage.map(used).collect(),
        ports: run.ports.usage(),
        disturbances: observed.disturbances,
        witness_wakeups: observed.wakeups,
        steal,
    };
    Ok((record, reports))
}

/// What an activity used, and what it was granted.
fn used((outcome, granted): (Outcome, Option<Granted>)) -> Usage {
    let held = granted.zip(outcome.reservation);
    Usage {
        grant: held.map(|(granted, held)| granted.of_reservation(held, outcome.has_begun)),
        ..outcome.usage
    }
}

/// What the dispatchers did; what they saw joins what the witness saw, by time.
fn gather(dispatched: Vec<Dispatched>, observed: &mut Observed) -> Vec<SlotReport> {
    let mut reports = Vec::new();
    for mut done in dispatched {
        observed.disturbances.append(&mut done.disturbances);
        reports.push(done.report);
    }
    observed.disturbances.sort_by_key(|halt| halt.from);
    reports
}

fn dispatcher(
    slots: ProcessorSlots,
    timing: Timing,
    witness: Option<Witness>,
    ring: Producer,
) -> DispatcherStart {
    DispatcherStart {
        cpu: slots.cpu,
        processor: slots.plan.processor,
        table: slots.plan.table.clone(),
        changes: Some((slots.changes, slots.plan)),
        bindings: slots.bindings,
        doorbell: slots.doorbell,
        timing,
        makes_up: true,
        witness,
        ring,
    }
}

/// Starts everything; returns how many threads will report ready.
fn spawn_all(
    config: &LiveConfig,
    prepared: Prepared,
    run: &Arc<Run>,
    threads: &mut Threads,
) -> Result<usize, HostError> {
    // Their reading ends are the collector's.
    let mut consumers = Vec::new();
    let mut ring = || {
        let (producer, consumer) = ring::channel(config.ring_capacity);
        consumers.push(consumer);
        producer
    };
    let Prepared {
        program,
        places,
        slots,
        ..
    } = prepared;
    let marks = program.marks.len();
    let witness = config.witness.map(|witness| {
        let above = program.askers(Enforcer::Deadline);
        witness.outranked_by(above.map(|(_, _, held)| held), clock::tick())
    });
    for (slots, timing) in slots {
        threads.doorbells.push(Arc::clone(&slots.doorbell));
        let start = dispatcher(slots, timing, witness, ring());
        let dispatcher = slots::spawn(start, Arc::clone(run))?;
        threads.dispatchers.push(dispatcher);
    }
    if let Some(witness) = witness {
        let cpu = config.processors.get(witness.processor.index());
        let nowhere = || HostError::CannotRun("the witness's processor does not exist".into());
        let cpu = *cpu.ok_or_else(nowhere)?;
        threads.witness = Some(witness::spawn(witness, cpu, ring(), Arc::clone(run))?);
    }
    for (index, (activity, place)) in program.activities.into_iter().zip(places).enumerate() {
        let cpu = match activity.placement {
            Placement::External => config.external,
            Placement::On { .. } => {
                threads.activities.push(None);
                continue;
            }
            _ => config.processors[activity.processor.index()],
        };
        let start = Start {
            id: ActivityId(index as u16),
            activity,
            cpu,
            ring: ring(),
            place,
            marks,
        };
        let thread = thread::spawn(start, Arc::clone(run))?;
        threads.activities.push(Some(thread));
    }
    let collector = collector::spawn(consumers, config.external, Arc::clone(run))?;
    threads.collector = Some(collector);
    let others = threads.dispatchers.len() + usize::from(threads.witness.is_some());
    Ok(threads.activities.iter().flatten().count() + others)
}

/// Waits until all are ready, lets them go, and waits for a reason to end.
fn supervise(run: &Run, watch: &Watch, expected: usize, length: Span) -> Result<RunEnd, HostError> {
    let give_up = clock::now() + READY_WITHIN;
    let all_ready = wait_for(run, watch, give_up, || run.ready() >= expected)?;
    if !all_ready {
        let ready = run.ready();
        return Err(HostError::Failed(format!(
            "only {ready} of {expected} threads were ready within {READY_WITHIN}"
        )));
    }
    let start = clock::now() + LEAD_IN;
    run.begin(start);
    let until = start
        .checked_add(length)
        .unwrap_or(Instant::from_nanos(u64::MAX >> 1));
    let mut reason = None;
    wait_for(run, watch, until, || {
        reason = run.reason_to_end();
        reason.is_some()
    })?;
    Ok(reason.unwrap_or(RunEnd::Length))
}

/// Waits for a condition until an instant; tells whether it came. Fails when a thread has failed or a signal came.
fn wait_for(
    run: &Run,
    watch: &Watch,
    until: Instant,
    mut condition: impl FnMut() -> bool,
) -> Result<bool, HostError> {
    loop {
        let doorbell = signals::doorbell();
        if let Some(error) = run.failure() {
            return Err(error);
        }
        if let Some(signal) = watch.caught() {
            return Err(HostError::Interrupted(signal));
        }
        if condition() {
            return Ok(true);
        }
        if clock::now() >= until {
            return Ok(false);
        }
        signals::wait(doorbell, Some(until));
    }
}

/// What the threads handed back; of one that failed, and the run with it, nothing.
struct Ended {
    outcomes: Vec<Outcome>,
    dispatched: Vec<Dispatched>,
    observed: Observed,
    collection: Collection,
}

/// Ends the run and waits for its threads. A starved one is raised, so that it ends at once instead of when somebody lets it.
fn end_all(run: &Run, threads: Threads) -> Ended {
    run.finish();
    for doorbell in &threads.doorbells {
        doorbell.ring();
    }
    let dispatched = threads.dispatchers.into_iter().filter_map(run::join);
    let dispatched = dispatched.collect();
    while !(threads.activities.iter().flatten()).all(JoinHandle::is_finished) {
        for tid in run.unfinished() {
            // A thread that has ended meanwhile cannot be raised and need not be.
            let _ = sched::set_policy(tid, Policy::Fifo(ranks::DISPATCHER));
        }
        let doorbell = signals::doorbell();
        if run.alive() > 0 {
            signals::wait(doorbell, Some(clock::now() + LOOK_EVERY));
        } else {
            clock::sleep_until(clock::now() + Span::from_micros(50));
        }
    }
    // An activity on an executor has no thread, and nothing of its own.
    let outcome = |thread: Option<Thread<Outcome>>| thread.and_then(run::join).unwrap_or_default();
    Ended {
        outcomes: threads.activities.into_iter().map(outcome).collect(),
        dispatched,
        observed: threads.witness.and_then(run::join).unwrap_or_default(),
        collection: threads.collector.and_then(run::join).unwrap_or_default(),
    }
}
