//! Starts a run's threads, waits for its end, ends it, and restores everything.

use std::sync::Arc;
use std::thread::JoinHandle;

use laxity_model::base::ring::{self, Consumer, Producer};
use laxity_model::{
    ActivityId, Enforcer, Grant, HostError, Instant, Program, Reservation, RunEnd, RunRecord, Span,
    Usage,
};

use super::admit::{self, Admitted, Member};
use super::collector::{self, Collection};
use super::run::Run;
use super::thread::{self, Outcome, Start};
use super::{LiveConfig, map};
use crate::enforce::slots::{
    self, Bell, Dispatched, DispatcherStart, ParkSignal, SlotReport, Timing,
};
use crate::enforce::witness::{self, Testimony};
use crate::os::clock;
use crate::os::memory::MemoryLock;
use crate::os::proc;
use crate::os::sched::{self, CpuSet, Policy, Restore, Tid};
use crate::os::signals::{self, Watch};

/// From the moment all threads are ready until the common start.
const LEAD_IN: Span = Span::from_millis(2);
/// No thread takes longer than this to get ready; one that does is starved by somebody above the starter.
const READY_WITHIN: Span = Span::from_secs(5);
/// How often threads that have not ended are looked for.
const LOOK_EVERY: Span = Span::from_millis(2);

/// The threads of a run.
#[derive(Default)]
struct Threads {
    activities: Vec<JoinHandle<Outcome>>,
    dispatchers: Vec<JoinHandle<Dispatched>>,
    bells: Vec<Arc<Bell>>,
    witness: Option<JoinHandle<Testimony>>,
    collector: Option<JoinHandle<Collection>>,
}

/// Hands out rings and keeps their reading ends.
struct Rings {
    capacity: usize,
    consumers: Vec<Consumer>,
}

impl Rings {
    fn next(&mut self) -> Producer {
        let (producer, consumer) = ring::channel(self.capacity);
        self.consumers.push(consumer);
        producer
    }
}

/// Runs an admitted program to its end.
pub(super) fn run(
    config: &LiveConfig,
    program: Program,
    admitted: Admitted,
    timings: &[Timing],
    length: Span,
) -> Result<(RunRecord, Vec<SlotReport>), HostError> {
    let cannot = |error: &dyn std::fmt::Display| HostError::CannotRun(error.to_string());
    let own = Tid::current();
    // Dropped in reverse order, on every way out: the policy last, when all threads have gone.
    let watch = Watch::begin();
    let _restore = Restore::of(own).map_err(|error| cannot(&error))?;
    let _memory = config.lock_memory.then(MemoryLock::all);
    let _park = ParkSignal::install();

    // The policy before the processor: pinned first, it might starve there. The threads inherit both.
    sched::set_policy_inherited(own, thread::STARTER).map_err(|error| cannot(&error))?;
    sched::set_affinity(own, &CpuSet::single(config.external)).map_err(|error| cannot(&error))?;

    let run = Arc::new(Run::new(program.activities.len(), &program.semaphores));
    let members = members(&program);
    let mut grants = admitted.grants.clone();
    let steal_before = proc::steal(&config.processors);
    let mut threads = Threads::default();
    let started = spawn_all(config, program, admitted, timings, &run, &mut threads);
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
        mut testimony,
        collection,
    } = ended?;
    grade_again(&mut grants, &members, config);
    let (events, events_lost) = collection.finish();
    let usage = outcomes
        .into_iter()
        .zip(grants)
        .map(|(outcome, grant)| Usage {
            service: outcome.usage.service,
            voluntary_switches: outcome.usage.voluntary_switches,
            involuntary_switches: outcome.usage.involuntary_switches,
            page_faults: outcome.usage.page_faults,
            grant: grant.map(|grant| held_last(grant, outcome.reservation)),
        })
        .collect();
    let steal = proc::steal(&config.processors)
        .zip(steal_before)
        .map(|(after, before)| after.saturating_sub(before));
    let reports = gather(dispatched, &mut testimony);
    let record = RunRecord {
        start: run.start(),
        end,
        ended_by,
        events,
        events_lost,
        usage,
        disturbances: testimony.disturbances,
        witness_wakeups: testimony.wakeups,
        steal,
    };
    Ok((record, reports))
}

/// Somebody may have come meanwhile: a grant is as good as its worst moment that was seen.
fn grade_again(grants: &mut [Option<Grant>], members: &[Member], config: &LiveConfig) {
    for (grant, later) in grants.iter_mut().zip(admit::grade_all(members, config)) {
        if let (Some(grant), Some(later)) = (grant, later)
            && grant.grade == laxity_model::Grade::Enforced
        {
            grant.grade = later.grade;
        }
    }
}

/// What the dispatchers did; what they saw joins what the witness saw, by time.
fn gather(dispatched: Vec<Dispatched>, testimony: &mut Testimony) -> Vec<SlotReport> {
    let mut reports = Vec::new();
    for mut done in dispatched {
        testimony.disturbances.append(&mut done.disturbances);
        reports.push(done.report);
    }
    testimony
        .disturbances
        .sort_by_key(|disturbance| disturbance.from);
    reports
}

/// The grant with the reservation that was changed to last.
fn held_last(grant: Grant, reservation: Option<Reservation>) -> Grant {
    Grant {
        reservation: reservation.unwrap_or(grant.reservation),
        ..grant
    }
}

fn members(program: &Program) -> Vec<Member> {
    program.activities.iter().map(Member::of).collect()
}

/// For how long `SCHED_DEADLINE` threads, which outrank even the witness, may have a processor in one piece: all their budgets, each
/// noticed as used up at the next tick only.
fn outranking(program: &Program) -> Span {
    let requests = program
        .activities
        .iter()
        .filter_map(|activity| activity.reservation);
    let budgets = requests.filter(|request| request.enforcer == Enforcer::Deadline);
    budgets
        .map(|request| request.reservation.service().as_dedicated_span() + clock::tick())
        .sum()
}

/// Starts everything; returns how many threads will report ready.
fn spawn_all(
    config: &LiveConfig,
    program: Program,
    admitted: Admitted,
    timings: &[Timing],
    run: &Arc<Run>,
    threads: &mut Threads,
) -> Result<usize, HostError> {
    let mut rings = Rings {
        capacity: config.ring_capacity,
        consumers: Vec::new(),
    };
    let marks = program.marks.len();
    let outranked_by = outranking(&program);
    for (slots, timing) in admitted.slots.into_iter().zip(timings) {
        threads.bells.push(Arc::clone(&slots.bell));
        threads.dispatchers.push(slots::spawn(DispatcherStart {
            cpu: slots.cpu,
            processor: slots.processor,
            table: slots.table,
            desk: Some((slots.desk, slots.costs)),
            seats: slots.seats,
            bell: slots.bell,
            timing: *timing,
            makes_up: true,
            tolerance: config.witness.map(|witness| witness.tolerance),
            ring: rings.next(),
            run: Arc::clone(run),
        })?);
    }
    if let Some(mut witness) = config.witness {
        witness.tolerance += outranked_by;
        let cpu = config
            .processors
            .get(witness.processor.index())
            .ok_or_else(|| {
                HostError::CannotRun("the witness's processor does not exist".to_owned())
            })?;
        threads.witness = Some(witness::spawn(
            witness,
            *cpu,
            rings.next(),
            Arc::clone(run),
        )?);
    }
    for (index, (activity, place)) in program
        .activities
        .into_iter()
        .zip(admitted.places)
        .enumerate()
    {
        let cpu = match activity.placement {
            laxity_model::Placement::External => config.external,
            _ => config.processors[activity.processor.index()],
        };
        threads.activities.push(thread::spawn(Start {
            id: ActivityId(index as u16),
            activity,
            cpu,
            run: Arc::clone(run),
            ring: rings.next(),
            place,
            marks,
        })?);
    }
    threads.collector = Some(collector::spawn(
        rings.consumers,
        config.external,
        Arc::clone(run),
    )?);
    let others = threads.dispatchers.len() + usize::from(threads.witness.is_some());
    Ok(threads.activities.len() + others)
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
        let bell = signals::bell();
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
        signals::wait(bell, Some(until));
    }
}

/// What the threads handed back.
struct Ended {
    outcomes: Vec<Outcome>,
    dispatched: Vec<Dispatched>,
    testimony: Testimony,
    collection: Collection,
}

/// Ends the run and waits for its threads. A starved one is raised, so that it ends at once instead of when somebody lets it.
fn end_all(run: &Run, threads: Threads) -> Result<Ended, HostError> {
    run.finish();
    for bell in &threads.bells {
        bell.ring();
    }
    let mut panicked = false;
    let mut dispatched = Vec::new();
    for dispatcher in threads.dispatchers {
        // They catch their own panics; a join can only fail by a bug in that.
        dispatcher
            .join()
            .map_or_else(|_| panicked = true, |done| dispatched.push(done));
    }
    let count = threads.activities.len();
    while !threads.activities.iter().all(JoinHandle::is_finished) {
        for tid in run.unfinished() {
            // A thread that has ended meanwhile cannot be raised and need not be.
            let _ = sched::set_policy(tid, Policy::Fifo(map::DISPATCHER));
        }
        let bell = signals::bell();
        if run.alive() > 0 {
            signals::wait(bell, Some(clock::now() + LOOK_EVERY));
        } else {
            clock::sleep_until(clock::now() + Span::from_micros(50));
        }
    }
    let outcomes: Vec<Outcome> = threads
        .activities
        .into_iter()
        .filter_map(|thread| thread.join().ok())
        .collect();
    panicked |= outcomes.len() != count;
    let testimony = threads.witness.map(JoinHandle::join).transpose();
    let collection = threads.collector.map(JoinHandle::join).transpose();
    match (testimony, collection) {
        (Ok(testimony), Ok(collection)) if !panicked => Ok(Ended {
            outcomes,
            dispatched,
            testimony: testimony.unwrap_or_default(),
            collection: collection.unwrap_or_default(),
        }),
        _ => Err(HostError::Failed(
            "a thread of the host panicked".to_owned(),
        )),
    }
}
