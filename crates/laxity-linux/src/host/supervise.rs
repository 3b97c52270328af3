//! Starts a run's threads, waits for its end, ends it, and restores everything.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use laxity_model::base::ring::{self, Producer};
use laxity_model::enforce::{
    Switching, Witness, above, longest_own_hold, ranks, slots as model_slots,
};
use laxity_model::request::Work;
use laxity_model::{
    Activity, ActivityId, Enforcer, Grade, HostError, Instant, Placement, PortId, ProcessorId,
    Program, RunEnd, RunRecord, Span, Usage, Whereabouts,
};

use super::LiveConfig;
use super::admit::{Admitted, ProcessorSlots};
use super::beside::Beside;
use super::collector::{self, Collection};
use super::conclude::{Conclusion, Evidence, Granted, conclude};
use super::lookout::{self, Seen};
use super::thread::{self, Outcome, Start};
use super::unready::await_all;
use crate::enforce::holding::Place;
use crate::enforce::slots::{
    self, Dispatched, DispatcherStart, Doorbell, Pace, ParkSignal, SlotReport,
};
use crate::enforce::witness;
use crate::os::clock;
use crate::os::memory::MemoryLock;
use crate::os::proc;
use crate::os::sched::{self, Policy, Restore, SchedError, Tid};
use crate::os::schedstat::Account;
use crate::os::signals::{self, Watch};
use crate::run::port::Ports;
use crate::run::{self, Run, Thread, raises};

/// From the moment all threads are ready until the common start.
const LEAD_IN: Span = Span::from_millis(2);
/// How often threads that have not ended are looked for.
const LOOK_EVERY: Span = Span::from_millis(2);

/// The threads of a run.
#[derive(Default)]
struct Threads {
    /// By activity; those on an executor have none.
    activities: Vec<Option<Thread<Outcome>>>,
    dispatchers: Vec<Thread<Dispatched>>,
    doorbells: Vec<Arc<Doorbell>>,
    witnesses: Vec<Thread<u64>>,
    collector: Option<Thread<Collection>>,
    raiser: Option<Thread<()>>,
    lookout: Option<Thread<Seen>>,
}

/// Everything that a run begins with.
pub(super) struct Prepared {
    pub(super) program: Program,
    /// What feeds its ports from outside.
    pub(super) feeds: Vec<(PortId, OwnedFd)>,
    /// What runs beside it.
    pub(super) beside: Vec<Beside>,
    /// By activity.
    pub(super) places: Vec<Place>,
    pub(super) slots: Vec<(ProcessorSlots, Switching)>,
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
    let run = Run::new(program.activities.len(), threads_of(program), ports);
    let run = Arc::new(run.raising(program.raises()));
    let admitted = Admitted::of_all(program, std::mem::take(&mut prepared.grades), config);
    let cpus: Vec<usize> = config.all_processors().collect();
    let may_hold = may_hold((program, &prepared.beside), &cpus, clock::tick());
    let witnesses = witnesses(config, program, &prepared.beside);
    let ran = program.activities.iter().map(Whereabouts::of).collect();
    let above = above(program);
    let steal_before = proc::steal(&cpus);
    let mut threads = Threads::default();
    let started = spawn_all(config, prepared, &run, &mut threads);
    let span = started.and_then(|expected| supervise(&run, &watch, expected, length));
    // From then on nobody is served any more: who is owed something is owed it until then. The threads see it at their next look.
    let end = run.end_was_wanted().unwrap_or_else(clock::now);
    let ended = end_all(&run, threads);

    let ended_by = span?;
    if let Some(error) = run.failure() {
        return Err(error);
    }
    let steal = proc::steal(&cpus).zip(steal_before);
    let what = What {
        admitted,
        may_hold,
        witnesses,
        ran,
        above,
        end,
        ended_by,
        steal: steal.map(|(after, before)| after.saturating_sub(before)),
    };
    Ok(conclude_run(config, &run, ended, what))
}

/// What is known of a run besides what its threads handed back.
struct What {
    admitted: Vec<Option<Admitted>>,
    /// Of each processor, for how long the program itself may hold it.
    may_hold: Vec<Span>,
    witnesses: Vec<Witness>,
    /// Where each activity may run.
    ran: Vec<Whereabouts>,
    /// What goes first there.
    above: Vec<Vec<Work>>,
    end: Instant,
    ended_by: RunEnd,
    steal: Option<Span>,
}

/// The record of a run.
fn conclude_run(
    config: &LiveConfig,
    run: &Run,
    ended: Ended,
    what: What,
) -> (RunRecord, Vec<SlotReport>) {
    let Ended {
        outcomes,
        reports,
        wakeups,
        collection,
        seen,
    } = ended;
    let (mut events, events_lost) = collection.finish();
    let evidence = Evidence {
        start: run.start(),
        cpus: config.all_processors().collect(),
        with_slots: config.processors.len(),
        witnesses: what.witnesses,
        before: &[],
        own: what.may_hold,
        tells: config
            .witnesses
            .first()
            .map(|_| Account::of_current().is_some()),
        unfound: &[],
        held: &[],
        // The last look begins at the end: who is seen then was there.
        over: None,
        seen: &seen,
    };
    let conclusion = conclude(&mut events, &evidence);
    let granted = what.admitted.iter().flatten().map(Admitted::granted);
    let granted: Vec<Granted> = granted.collect();
    let used = outcomes.into_iter().zip(what.admitted);
    let used = used.map(|(outcome, admitted)| used_by(outcome, admitted, &conclusion));
    let used = used.zip(what.ran.into_iter().zip(what.above));
    let used = used.map(|(usage, (ran, above))| Usage {
        ran,
        above,
        ..usage
    });
    let record = RunRecord {
        start: run.start(),
        end: what.end,
        ended_by: what.ended_by,
        events,
        events_lost,
        usage: used.collect(),
        ports: run.ports.usage(),
        disturbances: conclusion.disturbances.clone(),
        crawled: conclusion.crawled.clone(),
        doubts: conclusion.doubts.clone(),
        witness_wakeups: wakeups,
        unwatched: wakeups == 0,
        steal: what.steal,
        outranked: conclusion.outranked(&granted),
        notices: run
            .may_sleep()
            .map(str::to_owned)
            .into_iter()
            .chain(conclusion.notices(&granted))
            .collect(),
    };
    (record, reports)
}

/// What an activity used, and what it was granted.
fn used_by(outcome: Outcome, admitted: Option<Admitted>, conclusion: &Conclusion) -> Usage {
    let held = admitted.zip(outcome.reservation);
    let grant =
        held.map(|(admitted, held)| admitted.concluded((held, outcome.has_begun), conclusion));
    let mut usage = outcome.usage;
    usage.grant = grant;
    usage
}

/// How many threads a program has: those on an executor have none of their own.
fn threads_of(program: &Program) -> usize {
    let has_thread = |activity: &&Activity| !matches!(activity.placement, Placement::On { .. });
    program.activities.iter().filter(has_thread).count()
}

/// Of each processor, for how long the [program itself](longest_own_hold) may hold it, or what runs beside it: any time, if somebody is there whom the
/// dispatcher does not outrank.
fn may_hold((program, beside): (&Program, &[Beside]), cpus: &[usize], grain: Span) -> Vec<Span> {
    let each = (0..).map(ProcessorId).zip(cpus);
    let most = each.map(|(processor, cpu)| {
        let budgets = beside.iter().filter_map(Beside::reservation);
        match beside.iter().any(|one| one.crowds(*cpu)) {
            true => Span::MAX,
            false => longest_own_hold(program, processor, budgets, grain),
        }
    });
    most.collect()
}

/// A dispatcher of these slots, which makes up for what others take from them.
pub(super) fn dispatcher(
    slots: ProcessorSlots,
    measured: Switching,
    witness: Option<Witness>,
    ring: Producer,
) -> DispatcherStart {
    let pace = Pace::Followed {
        measured,
        costs: slots.plan.costs,
        told: 0,
    };
    DispatcherStart {
        cpu: slots.cpu,
        processor: slots.plan.processor,
        table: slots.plan.table.clone(),
        changes: Some((slots.changes, slots.plan)),
        bindings: slots.bindings,
        doorbell: slots.doorbell,
        pace,
        witness,
        ring,
    }
}

/// The witnesses of a run, who tolerate what outranks them.
fn witnesses(config: &LiveConfig, program: &Program, beside: &[Beside]) -> Vec<Witness> {
    let own = program.askers(Enforcer::Deadline);
    let own = own.map(|(_, _, held)| held);
    let above = own.chain(beside.iter().filter_map(Beside::reservation));
    let above: Vec<_> = above.collect();
    let all = Witness::all(&config.witnesses, config.count(), !above.is_empty());
    let tolerant = |witness: Witness| witness.outranked_by(above.iter().copied(), clock::tick());
    all.into_iter().map(tolerant).collect()
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
        beside,
        places,
        slots,
        ..
    } = prepared;
    let marks = program.marks.len();
    let witnesses = witnesses(config, &program, &beside);
    for (slots, measured) in slots {
        threads.doorbells.push(Arc::clone(&slots.doorbell));
        let start = dispatcher(slots, measured, witnesses.first().copied(), ring());
        let dispatcher = slots::spawn(start, Arc::clone(run))?;
        threads.dispatchers.push(dispatcher);
    }
    let cpu = |witness: &Witness| config.all_processors().nth(witness.processor.index());
    let watched: Vec<usize> = witnesses.iter().filter_map(cpu).collect();
    for witness in witnesses {
        let cpu = cpu(&witness);
        let nowhere = || HostError::CannotRun("the witness's processor does not exist".into());
        let cpu = cpu.ok_or_else(nowhere)?;
        let witness = witness::spawn(witness, cpu, ring(), Arc::clone(run))?;
        threads.witnesses.push(witness);
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
    threads.raiser = raises::start(config.external, run)?;
    let collector = collector::spawn(consumers, config, Arc::clone(run))?;
    threads.collector = Some(collector);
    // Where nothing is watched nobody need be looked for, unless it is the program's own.
    let cpus = config.processors.iter().copied().chain(watched).collect();
    let lookout = lookout::spawn((cpus, beside), config.external, Arc::clone(run))?;
    threads.lookout = Some(lookout);
    // The lookout waits for the start too, as it is to know all the others.
    let others = threads.dispatchers.len() + threads.witnesses.len() + 1;
    Ok(threads.activities.iter().flatten().count() + others)
}

/// Waits until all are ready, lets them go, and waits for a reason to end.
fn supervise(run: &Run, watch: &Watch, expected: usize, length: Span) -> Result<RunEnd, HostError> {
    let are_ready = |until| wait_for(run, watch, until, || run.ready() >= expected);
    await_all(expected, || run.ready(), are_ready)?;
    let start = model_slots::start_after(clock::now() + LEAD_IN);
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
    reports: Vec<SlotReport>,
    /// Of the witness.
    wakeups: u64,
    collection: Collection,
    seen: Seen,
}

/// Ends the run and waits for its threads. A starved one is raised, and may use other processors too, so that it ends at once instead of when somebody lets it.
fn end_all(run: &Run, threads: Threads) -> Ended {
    run.finish();
    for doorbell in &threads.doorbells {
        doorbell.ring();
    }
    let reports = threads.dispatchers.into_iter().filter_map(run::join);
    let reports = reports.map(|dispatched| dispatched.report).collect();
    while !(threads.activities.iter().flatten()).all(Thread::is_finished) {
        for tid in run.unfinished() {
            // A thread that has ended meanwhile cannot be raised and need not be.
            let _ = sched::set_policy(tid, Policy::Fifo(ranks::DISPATCHER));
        }
        let activities = threads.activities.iter().flatten();
        activities.for_each(Thread::let_loose);
        let doorbell = signals::doorbell();
        if run.alive() > 0 {
            signals::wait(doorbell, Some(clock::now() + LOOK_EVERY));
        } else {
            clock::sleep_until(clock::now() + Span::from_micros(50));
        }
    }
    if let Some(raiser) = threads.raiser {
        run::join(raiser);
    }
    // An activity on an executor has no thread, and nothing of its own.
    let outcome = |thread: Option<Thread<Outcome>>| thread.and_then(run::join).unwrap_or_default();
    let wakeups = threads
        .witnesses
        .into_iter()
        .map(|witness| run::join(witness).unwrap_or_default());
    let woke_most = wakeups.max();
    Ended {
        outcomes: threads.activities.into_iter().map(outcome).collect(),
        reports,
        wakeups: woke_most.unwrap_or_default(),
        collection: threads.collector.and_then(run::join).unwrap_or_default(),
        seen: threads.lookout.and_then(run::join).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
