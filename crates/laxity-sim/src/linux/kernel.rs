//! The machine under Linux: its state, and the loop that goes from instant to instant.

use std::collections::VecDeque;

use laxity_model::admission::changes::AdmissionState;
use laxity_model::enforce::Dispatcher;
use laxity_model::enforce::machine::Machine;
use laxity_model::policy::classes::RunQueue;
use laxity_model::{
    ActivityId, Body, Disturbance, Event, EventKind, Instant, ProcessorId, RunEnd, RunRecord,
    Service, Span, Usage,
};

use super::draws::Draws;
use super::task::{Role, Task};
use super::{CLOCK, Enforcement, TICK, WITNESS_ACTIVITY, Witness};
use crate::activity::Class;
use crate::fault::Fault;
use crate::processor::later;
use crate::record::Recorder;
use crate::timers::Timers;

#[derive(Debug)]
pub(super) struct Semaphore {
    pub(super) count: u32,
    pub(super) waiters: VecDeque<u16>,
}

/// What leaving a processor takes from it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Leaving {
    /// A system call of this length, and then a switch.
    By(Span),
    /// All of it.
    Taking(Span),
}

/// What an edge of a slot table still has to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pending {
    pub(super) from: Option<usize>,
    pub(super) to: Option<usize>,
    pub(super) edge: Instant,
}

/// The slot table of one processor as it is carried out.
#[derive(Debug)]
pub(super) struct Slots {
    pub(super) dispatcher: Dispatcher,
    /// What is held and granted; its calendar is what the dispatcher carries out.
    pub(super) admission: AdmissionState,
    /// The dispatcher's own thread.
    pub(super) thread: u16,
    /// The activity of each owner in the table.
    pub(super) owners: Vec<u16>,
    /// How far its clock is ahead, so that it ends slots so much early.
    pub(super) ahead: Span,
    /// The slot under way: by the table, and what its holder had received before.
    pub(super) begun: Option<(Instant, Service)>,
    /// The end of a slot that is being prolonged.
    pub(super) prolonged: Option<Pending>,
    /// When it wanted to be where it is.
    pub(super) due: Option<Instant>,
    /// The timer that ends the slot under way.
    pub(super) end_timer: Option<Instant>,
    /// What going to sleep takes after an edge; `None`: what it takes everybody.
    pub(super) edge_cost: Option<Span>,
}

#[derive(Debug)]
pub(super) struct Processor {
    pub(super) queue: RunQueue,
    /// The `SCHED_DEADLINE` thread that has it.
    pub(super) deadline: Option<u16>,
    /// Who has it.
    pub(super) running: Option<u16>,
    pub(super) work_ends: Instant,
    pub(super) working_since: Instant,
    pub(super) cost_until: Instant,
    pub(super) leaving: Option<Leaving>,
    pub(super) undecided: bool,
    /// Of all its threads, by what they asked for.
    pub(super) timers: Timers,
    /// When the clock's interrupt is there for the earliest of them.
    pub(super) interrupt_at: Instant,
    pub(super) tick_at: Instant,
    /// When the budget of the deadline thread is found used up, where the kernel has a timer for it.
    pub(super) budget_ends: Instant,
    pub(super) due: Instant,
    pub(super) slots: Option<Slots>,
}

impl Processor {
    pub(super) fn new(
        queue: RunQueue,
        tasks: usize,
        tick_at: Instant,
        slots: Option<Slots>,
    ) -> Self {
        Self {
            queue,
            deadline: None,
            running: None,
            work_ends: Instant::MAX,
            working_since: Instant::ZERO,
            cost_until: Instant::ZERO,
            leaving: None,
            undecided: false,
            timers: Timers::new(tasks),
            interrupt_at: Instant::MAX,
            tick_at,
            budget_ends: Instant::MAX,
            due: Instant::MAX,
            slots,
        }
    }

    /// When this processor is next due, by what it knows. An idle one does not tick.
    pub(super) fn set_due(&mut self) {
        let clock = if self.interrupt_at == Instant::MAX {
            self.timers.next()
        } else {
            self.interrupt_at
        };
        self.due = match self.running {
            Some(_) => {
                let busy = self.work_ends.min(self.tick_at).min(self.budget_ends);
                clock.min(busy)
            }
            None => clock,
        };
    }
}

pub(super) struct Kernel {
    pub(super) now: Instant,
    pub(super) start: Instant,
    /// The activities, and then the host's own.
    pub(super) tasks: Vec<Task>,
    pub(super) activities: usize,
    pub(super) processors: Vec<Processor>,
    pub(super) semaphores: Vec<Semaphore>,
    /// Of what is outside the machine.
    pub(super) externals: Timers,
    /// When throttled threads get their next budget.
    pub(super) budgets: Timers,
    pub(super) recorder: Recorder,
    pub(super) machine: Machine,
    pub(super) tick: Span,
    pub(super) enforcement: Enforcement,
    pub(super) witness: Option<Witness>,
    pub(super) seed: u64,
    pub(super) marks: usize,
    pub(super) fault: Option<(u16, Fault)>,
    pub(super) alive: usize,
    pub(super) ended: bool,
    pub(super) steps: u32,
    /// Who runs by `SCHED_DEADLINE`, and where, is to be decided.
    pub(super) unassigned: bool,
    pub(super) disturbances: Vec<Disturbance>,
    pub(super) witness_wakeups: u64,
}

impl Kernel {
    /// Runs until just before `end`, or until the program ends.
    pub(super) fn run(
        &mut self,
        bodies: &mut [Box<dyn Body>],
        end: Instant,
    ) -> Result<RunEnd, (u16, Fault)> {
        self.begin();
        if self.alive == 0 {
            return Ok(RunEnd::AllFinished);
        }
        let ended_by = loop {
            let due = self.next_due();
            if due >= end {
                self.now = end;
                break RunEnd::Length;
            }
            if due > self.now {
                self.now = due;
                self.steps = 0;
            }
            self.round(bodies);
            if let Some(fault) = self.fault {
                return Err(fault);
            }
            if self.ended {
                break RunEnd::EndRun;
            }
            if self.alive == 0 {
                break RunEnd::AllFinished;
            }
        };
        for processor in 0..self.processors.len() {
            self.settle(processor);
        }
        Ok(ended_by)
    }

    pub(super) fn into_record(self, ended_by: RunEnd) -> RunRecord {
        let activities = self.tasks.iter().take(self.activities);
        RunRecord {
            start: self.start,
            end: self.now,
            ended_by,
            events: self.recorder.events,
            events_lost: self.recorder.lost,
            usage: activities.map(usage).collect(),
            disturbances: self.disturbances,
            witness_wakeups: self.witness_wakeups,
            steal: None,
        }
    }

    /// The dispatchers are there before the rest: a slot that is under way at the start is given at once.
    fn begin(&mut self) {
        for activity in 0..self.activities as u16 {
            let held = self.task(activity).held.as_ref();
            if held.is_some_and(|held| held.request.begins_at_start) {
                self.enforce(activity);
            }
        }
        for processor in 0..self.processors.len() {
            if self.processors[processor].slots.is_some() {
                self.dispatch(processor);
            }
        }
        let start = self.start;
        for task in 0..self.tasks.len() as u16 {
            match (self.task(task).role, self.task(task).class) {
                (Role::Dispatcher, _) => {}
                (_, Class::External) => self.externals.set(task, start),
                _ => self.set_timer(task, start),
            }
        }
    }

    fn next_due(&self) -> Instant {
        let first = self.externals.next().min(self.budgets.next());
        let processors = self.processors.iter().map(|processor| processor.due);
        processors.fold(first, Instant::min)
    }

    fn round(&mut self, bodies: &mut [Box<dyn Body>]) {
        for processor in 0..self.processors.len() {
            if self.processors[processor].due <= self.now {
                self.serve(processor, bodies);
            }
            if self.ended {
                return;
            }
        }
        while let Some(activity) = self.externals.pop_due(self.now) {
            self.external_due(activity, bodies);
            if self.ended {
                return;
            }
        }
        while let Some(task) = self.budgets.pop_due(self.now) {
            self.replenish(task);
        }
        if std::mem::take(&mut self.unassigned) {
            self.assign_deadlines();
        }
        for processor in 0..self.processors.len() {
            if self.processors[processor].undecided {
                self.decide(processor);
            }
        }
    }

    /// What is due on a processor: the tick, work that ends, the clock's interrupt.
    fn serve(&mut self, processor: usize, bodies: &mut [Box<dyn Body>]) {
        let now = self.now;
        if self.processors[processor].running.is_some() {
            if self.processors[processor].tick_at <= now {
                self.tick(processor);
            }
            if self.processors[processor].work_ends <= now {
                self.settle(processor);
                self.work_ended(processor, bodies);
                if self.ended {
                    return;
                }
            }
            if self.processors[processor].budget_ends <= now {
                self.look_at_budget(processor);
            }
        }
        if self.processors[processor].interrupt_at <= now {
            self.interrupt(processor);
        } else if self.processors[processor].interrupt_at == Instant::MAX
            && self.processors[processor].timers.next() <= now
        {
            self.arm(processor);
        }
        self.processors[processor].set_due();
    }

    fn work_ended(&mut self, processor: usize, bodies: &mut [Box<dyn Body>]) {
        let Some(task) = self.processors[processor].running else {
            return;
        };
        match self.task(task).role {
            Role::Activity => {
                self.first_instruction(task);
                self.step(task, bodies);
            }
            Role::Witness => self.bear_witness(task),
            Role::Dispatcher => {
                if self.on_time(processor) {
                    self.dispatch(processor);
                }
            }
        }
    }

    /// The kernel's tick: takes a moment from who runs, and ends slices and budgets.
    fn tick(&mut self, processor: usize) {
        self.settle(processor);
        let (now, tick) = (self.now, self.tick);
        let cost = Draws::at(self.seed, TICK, processor, now).span(&self.machine.tick);
        let place = &mut self.processors[processor];
        place.tick_at = later(place.tick_at, tick);
        place.queue.tick(now);
        place.undecided = true;
        if let Some(running) = place.running {
            let task = &mut self.tasks[usize::from(running)];
            if task.charging {
                task.work += cost.as_full_service();
            }
        }
        self.go_on(processor);
        if self.enforcement == Enforcement::Tick {
            self.look_at_budget(processor);
        }
    }

    /// The clock's interrupt for the earliest timer will be there after the machine's latency.
    fn arm(&mut self, processor: usize) {
        let machine = &self.machine;
        let mut draws = Draws::at(self.seed, CLOCK, processor, self.now);
        let place = &mut self.processors[processor];
        let ends_slot = place
            .slots
            .as_ref()
            .is_some_and(|slots| slots.end_timer == Some(self.now));
        let latency = match place.running {
            Some(_) if ends_slot => draws.span(&machine.slot_leaving),
            Some(_) => {
                let taken = machine.preemption.median();
                draws.span(&machine.wakeup).saturating_sub(taken)
            }
            None => {
                let taken = machine.context_switch.median();
                draws.span(&machine.wakeup_idle).saturating_sub(taken)
            }
        };
        place.interrupt_at = later(self.now, latency);
    }

    /// Credits who runs on the processor with the service it has received up to now.
    pub(super) fn settle(&mut self, processor: usize) {
        let place = &mut self.processors[processor];
        let Some(running) = place.running else {
            return;
        };
        let received = self.now.saturating_since(place.working_since);
        if !received.is_zero() {
            place.working_since = self.now;
            let received = received.as_full_service();
            self.tasks[usize::from(running)].receive(received, received);
        }
    }

    /// Who runs on the processor goes on with the work it has, once costs are paid.
    pub(super) fn go_on(&mut self, processor: usize) {
        let place = &mut self.processors[processor];
        place.work_ends = match place.running {
            Some(running) => {
                place.working_since = self.now.max(place.cost_until);
                let work = self.tasks[usize::from(running)].work;
                later(place.working_since, work.as_dedicated_span())
            }
            None => Instant::MAX,
        };
        place.set_due();
    }

    #[inline]
    pub(super) fn record(&mut self, kind: EventKind, task: u16, args: [u64; 2]) {
        let own = usize::from(task) < self.activities;
        self.recorder.record(Event {
            at: self.now,
            kind,
            processor: ProcessorId(self.task(task).home as u16),
            activity: if own {
                ActivityId(task)
            } else {
                WITNESS_ACTIVITY
            },
            args,
        });
    }

    pub(super) fn task(&self, task: u16) -> &Task {
        &self.tasks[usize::from(task)]
    }

    pub(super) fn task_mut(&mut self, task: u16) -> &mut Task {
        &mut self.tasks[usize::from(task)]
    }
}

fn usage(task: &Task) -> Usage {
    Usage {
        service: match task.class {
            Class::External => Service::ZERO,
            _ => task.received,
        },
        voluntary_switches: task.voluntary_switches,
        involuntary_switches: task.involuntary_switches,
        page_faults: 0,
        grant: task.held.as_ref().map(|held| laxity_model::Grant {
            reservation: held.request.reservation,
            enforcer: held.request.enforcer,
            grade: held.grade.clone(),
        }),
    }
}
