//! The dispatcher's thread: carries out what the model's state machine says.

use std::mem;
use std::sync::Arc;

use laxity_model::admission::SlotPlan;
use laxity_model::base::ring::Producer;
use laxity_model::enforce::slots::{self, EARLY};
use laxity_model::enforce::{Command, Dispatcher, MakingUp, Witness, ranks};
use laxity_model::policy::slots::SlotTable;
use laxity_model::{Disturbance, Event, EventKind, HostError, Instant, ProcessorId, Span};

use super::binding::{ServedBinding, SlotBinding};
use super::change_queue::ChangeQueue;
use super::doorbell::Doorbell;
use super::{SlotReport, Timing};
use crate::enforce::witness;
use crate::os::clock;
use crate::os::futex;
use crate::os::futex::Woken;
use crate::os::memory::prefault_stack;
use crate::os::sched::{self, Policy, SchedError, Tid};
use crate::run::{self, Run, Thread};

/// What a dispatcher needs to begin. The bindings are in the order of the table's owners.
pub(crate) struct DispatcherStart {
    pub(crate) cpu: usize,
    pub(crate) processor: ProcessorId,
    pub(crate) table: SlotTable,
    /// Where changes are asked for while it runs, and what they start from.
    pub(crate) changes: Option<(Arc<ChangeQueue>, SlotPlan)>,
    pub(crate) bindings: Vec<Arc<SlotBinding>>,
    pub(crate) doorbell: Arc<Doorbell>,
    pub(crate) timing: Timing,
    /// Whether it makes up for what others take from a slot.
    pub(crate) makes_up: bool,
    /// By its rule the dispatcher too records when it wakes late.
    pub(crate) witness: Option<Witness>,
    pub(crate) ring: Producer,
}

/// What a dispatcher hands back.
pub(crate) struct Dispatched {
    pub(crate) report: SlotReport,
    pub(crate) disturbances: Vec<Disturbance>,
}

/// Starts the dispatcher; it ends with the run.
pub(crate) fn spawn(
    start: DispatcherStart,
    run: Arc<Run>,
) -> Result<Thread<Dispatched>, HostError> {
    let cpu = start.cpu;
    run::spawn(format!("dispatcher/{cpu}"), run, move |run| {
        let done = Worker::live(start, run);
        let about =
            |error| HostError::Failed(format!("the dispatcher of processor {cpu}: {error}"));
        done.map_err(about)
    })
}

struct Worker<'a> {
    cpu: usize,
    processor: ProcessorId,
    bindings: Vec<ServedBinding>,
    doorbell: Arc<Doorbell>,
    changes: Option<Arc<ChangeQueue>>,
    timing: Timing,
    ring: Producer,
    run: &'a Run,
    slots: u64,
    /// The slot under way, and how it is prolonged; `None`: what others take from a slot is not made up for.
    making_up: Option<MakingUp>,
    witness: Option<Witness>,
    disturbances: Vec<Disturbance>,
}

/// However it ends, nobody waits for an answer any more.
impl Drop for Worker<'_> {
    fn drop(&mut self) {
        for binding in &mut self.bindings {
            binding.abandon();
        }
        if let Some(changes) = &self.changes {
            changes.close();
        }
    }
}

impl Worker<'_> {
    fn live(start: DispatcherStart, run: &Run) -> Result<Dispatched, SchedError> {
        let (changes, plan) = start.changes.unzip();
        let mut worker = Worker {
            cpu: start.cpu,
            processor: start.processor,
            bindings: start.bindings.into_iter().map(SlotBinding::serve).collect(),
            doorbell: start.doorbell,
            changes,
            timing: start.timing,
            ring: start.ring,
            run,
            slots: 0,
            making_up: start.makes_up.then(MakingUp::default),
            witness: start.witness,
            disturbances: Vec::with_capacity(1_024),
        };
        let before = clock::thread_service();
        worker.work(start.table, plan)?;
        let report = SlotReport {
            cpu: worker.cpu,
            slots: worker.slots,
            spent: clock::thread_service().saturating_sub(before),
            timing: worker.timing,
        };
        let disturbances = mem::take(&mut worker.disturbances);
        Ok(Dispatched {
            report,
            disturbances,
        })
    }

    fn work(&mut self, table: SlotTable, plan: Option<SlotPlan>) -> Result<(), SchedError> {
        clock::use_exact_timers();
        prefault_stack();
        self.ring.prefault();
        sched::pin(self.cpu)?;
        sched::set_policy(Tid::current(), Policy::Fifo(ranks::DISPATCHER))?;
        let Some(start) = self.run.wait_for_start() else {
            return Ok(());
        };
        let origin = slots::origin(start, &table);
        // The machine sees a clock that is fast by the cost of leaving, so that it ends slots that much early; what it would
        // begin early by the same is taken off what it compensates at beginnings.
        let ahead = self.timing.leaving;
        let compensation = self.timing.entering.saturating_sub(ahead);
        let lead = EARLY.saturating_sub(ahead);
        // From now on changes may be asked for: the run has not begun yet.
        if let Some((changes, plan)) = self.changes.as_ref().zip(plan) {
            changes.open(plan.begin(origin, Span::ZERO));
        }
        let mut machine = Dispatcher::new(table, origin, lead, compensation);
        while !self.run.ended() {
            let rung = self.doorbell.number();
            self.answer(machine.current())?;
            if let Some(changes) = &self.changes {
                changes.collect(&mut machine);
            }
            match machine.poll(clock::now() + ahead) {
                Command::SleepUntil(until) => {
                    let due = until - ahead;
                    if futex::wait(self.doorbell.word(), rung, Some(due)) == Woken::TimedOut {
                        self.record_late(due, clock::now());
                    }
                }
                Command::SpinUntil(until) => {
                    let due = until - ahead;
                    let now = clock::spin_until(due, || false);
                    self.record_late(due, now);
                }
                Command::Switch { from, to, edge } => {
                    let free_until = machine.calendar().at(edge).until;
                    self.switch((from, to), edge, free_until)?;
                }
            }
        }
        Ok(())
    }

    /// Records a late wake-up. Only the witness ranks above, and the machine itself: what kept the dispatcher from an edge was one of them.
    fn record_late(&mut self, due: Instant, now: Instant) {
        let late = self.witness.and_then(|witness| witness.late(due, now));
        if let Some(disturbance) = late {
            self.ring.push(witness::event(disturbance, self.processor));
            self.disturbances.push(disturbance);
        }
    }

    /// Binds and unbinds threads between edges; `current` is whose slot it is.
    fn answer(&mut self, current: Option<usize>) -> Result<(), SchedError> {
        for owner in 0..self.bindings.len() {
            let binding = &self.bindings[owner];
            let (in_slot, was_bound) = (binding.is_inside(), binding.is_bound());
            debug_assert_eq!(in_slot, current == Some(owner), "whose slot it is");
            if binding.wish_is_met() {
                continue;
            }
            let now = clock::now();
            // Recorded while the thread is bound: before it is unbound, after it was bound.
            if in_slot && was_bound {
                self.record(Some(owner), EventKind::SlotEnd, now, now);
            }
            self.bindings[owner].answer()?;
            if in_slot && !was_bound {
                self.record(Some(owner), EventKind::SlotBegin, now, now);
            }
        }
        Ok(())
    }

    fn switch(
        &mut self,
        (from, to): (Option<usize>, Option<usize>),
        edge: Instant,
        free_until: Instant,
    ) -> Result<(), SchedError> {
        if let Some(owner) = from {
            if to.is_none() {
                self.make_up(owner, edge, free_until);
            }
            self.bindings[owner].leave()?;
        }
        if let Some(making_up) = &mut self.making_up {
            making_up.end();
        }
        if let Some(owner) = to {
            let binding = &mut self.bindings[owner];
            if let (Some(making_up), Some(service)) = (&mut self.making_up, binding.service()) {
                making_up.begin(edge, service);
            }
            binding.enter()?;
            self.slots += 1;
        }
        // Recorded after both effects: what the record costs is nobody's delay.
        let now = clock::now();
        self.record(from, EventKind::SlotEnd, now, edge);
        self.record(to, EventKind::SlotBegin, now, edge);
        Ok(())
    }

    /// Prolongs a slot that nobody's follows, if that is worth it.
    fn make_up(&self, owner: usize, edge: Instant, free_until: Instant) {
        let (Some(making_up), Some(received)) = (&self.making_up, self.bindings[owner].service())
        else {
            return;
        };
        // Not into the time in which the next slot is prepared.
        let latest = free_until.saturating_sub(EARLY);
        if let Some(until) = making_up.until(edge, received, latest, clock::now()) {
            clock::sleep_until(until);
        }
    }

    fn record(&mut self, owner: Option<usize>, kind: EventKind, at: Instant, edge: Instant) {
        let Some(owner) = owner else { return };
        let binding = &self.bindings[owner];
        if binding.is_bound() {
            self.ring.push(Event {
                at,
                kind,
                processor: self.processor,
                activity: binding.activity(),
                args: [edge.as_nanos(), 0],
            });
        }
    }
}
