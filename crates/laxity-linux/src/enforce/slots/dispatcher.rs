//! The dispatcher's thread: carries out what the model's state machine says.

use std::mem;
use std::sync::Arc;

use laxity_model::admission::SlotPlan;
use laxity_model::base::ring::Producer;
use laxity_model::enforce::slots::{self, EARLY};
use laxity_model::enforce::{
    Command, Count, DISPATCHER_ACTIVITY, Dispatcher, Look, Switching, Witness, ranks,
};
use laxity_model::policy::slots::{PlanCosts, SlotTable};
use laxity_model::{Event, EventKind, HostError, Instant, ProcessorId, Service, Span};

use super::SlotReport;
use super::binding::{ServedBinding, SlotBinding};
use super::change_queue::ChangeQueue;
use super::doorbell::Doorbell;
use crate::enforce::witness::{self, Vigil};
use crate::os::clock;
use crate::os::futex;
use crate::os::futex::Woken;
use crate::os::memory::prefault_stack;
use crate::os::sched::{self, SchedError};
use crate::run::own::{Kept, Role};
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
    pub(crate) pace: Pace,
    /// By its rule the dispatcher too records when it wakes late.
    pub(crate) witness: Option<Witness>,
    pub(crate) ring: Producer,
}

/// How early edges are carried out.
pub(crate) enum Pace {
    /// At the table's edges, whatever switching costs: to measure that.
    Plain,
    /// By what switching costs, of a table that was planned by these costs.
    Followed {
        measured: Switching,
        costs: PlanCosts,
        /// So many slots are told of.
        told: usize,
    },
}

/// What a dispatcher hands back.
pub(crate) struct Dispatched {
    pub(crate) report: SlotReport,
    /// The first slots, as many as were asked for.
    pub(crate) told: Vec<Told>,
}

/// What was seen of a slot when its end had come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    /// When it was decided that it begins.
    pub(crate) decided: Instant,
    /// When the dispatcher was done with that.
    pub(crate) done: Instant,
    /// What the dispatcher itself took from then on until it slept, and from when it woke until now.
    pub(crate) own: Span,
    /// When it was to wake,
    pub(crate) due: Instant,
    /// and when it had,
    pub(crate) woke: Instant,
    /// and when it looked.
    pub(crate) looked: Instant,
    /// What the kernel counted as the holder's.
    pub(crate) received: Service,
    /// How often it was given the processor.
    pub(crate) turns: u64,
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
    pace: Pace,
    ring: Producer,
    run: &'a Run,
    slots: u64,
    /// The beginning of the slot under way.
    begun: Option<Begun>,
    /// When it was to wake and did, the last time.
    woken: (Instant, Instant),
    vigil: Option<Vigil>,
    told: Vec<Told>,
    followed: Vec<Switching>,
}

/// The beginning of a slot.
#[derive(Clone, Copy)]
struct Begun {
    decided: Instant,
    /// When all of it was done.
    done: Instant,
    /// What the dispatcher had taken itself.
    own: Service,
    before: Option<Count>,
    /// Whether it has slept since then, and done nothing else.
    alone: bool,
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
        let told = match &start.pace {
            Pace::Plain => 0,
            Pace::Followed { told, .. } => *told,
        };
        let owners = start.bindings.len();
        let mut worker = Worker {
            cpu: start.cpu,
            processor: start.processor,
            bindings: start.bindings.into_iter().map(SlotBinding::serve).collect(),
            doorbell: start.doorbell,
            changes,
            pace: start.pace,
            ring: start.ring,
            run,
            slots: 0,
            begun: None,
            woken: (Instant::ZERO, Instant::ZERO),
            vigil: start.witness.map(|witness| {
                let processor = start.processor;
                let rule = Witness {
                    processor,
                    ..witness
                };
                Vigil::new(rule, DISPATCHER_ACTIVITY)
            }),
            told: Vec::with_capacity(told),
            followed: Vec::with_capacity(owners),
        };
        let before = clock::thread_service();
        worker.work(start.table, plan)?;
        let report = SlotReport {
            cpu: worker.cpu,
            slots: worker.slots,
            spent: clock::thread_service().saturating_sub(before),
            followed: mem::take(&mut worker.followed),
        };
        Ok(Dispatched {
            report,
            told: mem::take(&mut worker.told),
        })
    }

    fn work(&mut self, table: SlotTable, plan: Option<SlotPlan>) -> Result<(), SchedError> {
        clock::use_exact_timers();
        prefault_stack();
        self.ring.prefault();
        sched::pin(self.cpu)?;
        let own = witness::settle(Role::Dispatcher, self.cpu, ranks::DISPATCHER, self.run)?;
        let Some(start) = self.run.wait_for_start() else {
            return Ok(());
        };
        let origin = slots::origin(start, &table);
        // From now on changes may be asked for: the run has not begun yet.
        if let Some((changes, plan)) = self.changes.as_ref().zip(plan) {
            changes.open(plan.begin(origin, Span::ZERO));
        }
        let mut machine = match &self.pace {
            Pace::Plain => Dispatcher::new(table, origin, EARLY, Span::ZERO),
            Pace::Followed {
                measured, costs, ..
            } => {
                let owners = self.bindings.len();
                Dispatcher::following(table, origin, owners, *measured, *costs)
            }
        };
        while !self.run.ended() {
            let rung = self.doorbell.number();
            self.answer(machine.current())?;
            if let Some(changes) = &self.changes {
                changes.collect(&mut machine);
            }
            let now = clock::now();
            match machine.poll(now) {
                Command::SleepUntil(due) => {
                    self.sleep(&mut machine, rung, due);
                    self.look_at(&own);
                }
                Command::SpinUntil(due) => {
                    let now = clock::spin_until(due, || false);
                    self.record_late(due, now);
                }
                Command::Look { owner } => {
                    let look = self.look(owner);
                    machine.looked(look.as_ref(), clock::now());
                }
                Command::Switch { from, to, edge } => {
                    self.switch((from, to), edge, now)?;
                    if let Some(begun) = &mut self.begun {
                        begun.done = clock::now();
                        machine.entered(edge, begun.before, begun.done);
                    }
                }
            }
        }
        let owners = 0..self.bindings.len();
        let followed = owners.filter_map(|owner| machine.switching(owner));
        self.followed.extend(followed);
        Ok(())
    }

    fn sleep(&mut self, machine: &mut Dispatcher, rung: u32, due: Instant) {
        if let Some(vigil) = &mut self.vigil {
            vigil.begin(due);
        }
        let woken = futex::wait(self.doorbell.word(), rung, Some(due));
        let now = clock::now();
        if woken == Woken::TimedOut {
            machine.woke(due, now);
        } else if let Some(begun) = &mut self.begun {
            begun.alone = false;
        }
        // Who was stopped until it was rung is late for its instant all the same; how late it is after the run's end nobody beside it would see.
        let until = self.run.ended_at().map_or(now, |end| end.min(now));
        self.record_late(due, until);
        self.woken = (due, now);
    }

    /// Who has made something else of this thread since it went to sleep may have undone that by the next look from outside.
    fn look_at(&self, own: &Kept) {
        if !self.run.ended() {
            own.look();
        }
    }

    /// What is seen of the slot whose end has come; `None` if nobody is bound to it, or was not when it began.
    fn look(&mut self, owner: usize) -> Option<Look> {
        let begun = self.begun.as_mut()?;
        let (before, count) = (begun.before?, self.bindings[owner].count()?);
        let own = clock::thread_service().saturating_sub(begun.own);
        let own = own.as_dedicated_span();
        let (due, woke) = self.woken;
        let is_alone = mem::replace(&mut begun.alone, false);
        if is_alone && self.told.len() < self.told.capacity() {
            let turns = count.turns.zip(before.turns);
            self.told.push(Told {
                decided: begun.decided,
                done: begun.done,
                own,
                due,
                woke,
                looked: clock::now(),
                received: count.service.saturating_sub(before.service),
                turns: turns.map_or(1, |(all, before)| all.saturating_sub(before)),
            });
        }
        Some(Look {
            count,
            woke,
            own: is_alone.then_some(own),
        })
    }

    /// Records a late wake-up, as the witness does; of the program only that ranks above.
    fn record_late(&mut self, due: Instant, now: Instant) {
        if let Some(vigil) = &self.vigil {
            vigil.end((due, now), &mut self.ring, self.run);
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
        decided: Instant,
    ) -> Result<(), SchedError> {
        if let Some(owner) = from {
            self.bindings[owner].leave()?;
        }
        self.begun = None;
        if let Some(owner) = to {
            let binding = &mut self.bindings[owner];
            self.begun = Some(Begun {
                decided,
                done: decided,
                own: clock::thread_service(),
                before: binding.count(),
                alone: true,
            });
            binding.enter()?;
            self.slots += 1;
        }
        // Recorded after both effects: what the record costs is nobody's delay.
        let now = clock::now();
        self.record(from, EventKind::SlotEnd, now, edge);
        self.record(to, EventKind::SlotBegin, now, edge);
        Ok(())
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
