//! From what was admitted to a machine that runs it.

use std::num::NonZeroU16;

use laxity_model::admission::{DeadlineState, DeadlineSupply, Launch, SlotPlan, Supply};
use laxity_model::analysis::multiprocessor::{Bandwidth, KernelLimits};
use laxity_model::enforce::machine::Figure;
use laxity_model::enforce::{Dispatcher, Switching, Ticks, slots};
use laxity_model::policy::classes::{RunQueue, Scheduling, Slices};
use laxity_model::{Enforcer, Grade, HostError, Instant, ProcessorId, Program, Span};

use super::dispatch::Timing;
use super::draws::Draws;
use super::kernel::{Kernel, Place, System};
use super::task::{self, Role, Task};
use super::{CLOCK, Linux, PHASE_OF_TICK};
use crate::core::{Core, Loaded, Machine, Processor, Recording, Slots, Timers};

/// From an answer until the dispatcher has surely heard of it, as on the live host.
const NOTICE: Span = Span::from_micros(500);

impl Linux {
    /// What this machine can enforce on so many processors.
    pub(crate) fn supply(&self, host: String, processors: u16) -> Supply {
        Supply {
            host,
            processors: slots::SUPPLY.on_each(processors),
            deadline: Ok(DeadlineSupply {
                processors: self.all_processors(processors),
                limits: KernelLimits::WITH_FAIR_SERVER,
                servers: KernelLimits::WITH_FAIR_SERVER.servers,
                granted: Bandwidth::ZERO,
                unseen: None,
                tick: if self.has_budget_timer() {
                    Span::ZERO
                } else {
                    self.tick()
                },
            }),
            timer_grain: Span::ZERO,
            linux_classes: Ok(()),
        }
    }

    /// What tells such a machine from others whose supply is another.
    pub(crate) fn identity(&self, processors: u16) -> String {
        let (all, tick) = (self.all_processors(processors), self.tick());
        let timer = if self.has_budget_timer() {
            "a timer for budgets"
        } else {
            "no timer for budgets"
        };
        format!("processors: {all}, tick: {tick}, {timer}")
    }

    /// The machine's processors, for a program of so many: one more for what is external, unless it is known how many there are.
    fn all_processors(&self, program: u16) -> NonZeroU16 {
        let all = self.processors.unwrap_or(program.saturating_add(1));
        NonZeroU16::new(all.max(program)).unwrap_or(NonZeroU16::MIN)
    }

    pub(crate) fn load(
        &self,
        recording: Recording,
        launch: Launch,
        length: Span,
    ) -> Result<Machine, HostError> {
        let Launch {
            program,
            slots,
            deadline,
            grades,
        } = launch;
        if let Some(witness) = self.witness
            && witness.processor.0 >= program.processors
        {
            let text = "the witness's processor does not exist";
            return Err(HostError::CannotRun(text.into()));
        }
        let system = self.build(&program, (slots, deadline, grades), recording);
        Ok(Loaded::begin(system, program, length))
    }

    fn build(
        &self,
        program: &Program,
        (plans, deadline, grades): (Vec<SlotPlan>, Option<DeadlineState>, Vec<Option<Grade>>),
        recording: Recording,
    ) -> System {
        let start = start(&plans);
        let all = usize::from(self.all_processors(program.processors).get());
        let mut tasks = self.tasks(program, grades, start);
        let first_dispatcher = tasks.len() as u32;
        for plan in &plans {
            tasks.push(self.host_task(Role::Dispatcher, plan.processor, start));
        }
        let policies: Vec<Scheduling> = tasks.iter().map(|task| task.own.scheduling).collect();
        let slices = Slices::usual(self.tick(), all as u16);
        let mut plans = plans.into_iter().zip(first_dispatcher..).peekable();
        let processors = (0..all).map(|number| {
            let first_tick = self.first_tick(number, start);
            let queue = RunQueue::new(slices, &policies);
            let plan = plans.next_if(|(plan, _)| plan.processor.index() == number);
            let slots = plan.map(|(plan, thread)| self.slots(plan, thread, (start, first_tick)));
            let place = Place::new(queue, tasks.len(), first_tick);
            Processor::new(place, slots)
        });
        let processors = processors.collect();
        let kernel = Kernel {
            machine: self.machine.clone(),
            later: self
                .later
                .iter()
                .rev()
                .map(|(after, machine)| (start + *after, machine.clone()))
                .collect(),
            tick: self.tick(),
            has_budget_timer: self.has_budget_timer(),
            witness: self.witness.map(|witness| {
                let above = program.askers(Enforcer::Deadline);
                witness.outranked_by(above.map(|(_, _, held)| held), self.tick())
            }),
            seed: self.seed,
            budgets: Timers::new(tasks.len()),
            unassigned: false,
        };
        let when = (start, recording);
        Core::new(kernel, (program, deadline), when, tasks, processors)
    }

    /// The threads of the program, and the witness.
    fn tasks(&self, program: &Program, grades: Vec<Option<Grade>>, start: Instant) -> Vec<Task> {
        let graded = program.activities.iter().zip(grades);
        let mut tasks: Vec<Task> = (0..)
            .zip(graded)
            .map(|(number, (activity, grade))| {
                let draws = self.draws(usize::from(number));
                task::of_activity(number, activity, grade, start, draws)
            })
            .collect();
        if let Some(witness) = self.witness {
            tasks.push(self.host_task(Role::Witness, witness.processor, start));
        }
        tasks
    }

    /// A thread of the host's own.
    fn host_task(&self, role: Role, processor: ProcessorId, start: Instant) -> Task {
        // Numbers of their own, so that a program with one activity more draws the same for all others.
        let number =
            usize::from(u16::MAX) + 2 * processor.index() + usize::from(role == Role::Witness);
        task::of_host(role, processor.0, start, self.draws(number))
    }

    fn draws(&self, number: usize) -> Draws {
        Draws::new(self.seed ^ CLOCK, number as u64)
    }

    /// The dispatcher of a table, which knows what the live one would have measured.
    fn slots(
        &self,
        plan: SlotPlan,
        thread: u32,
        (start, first_tick): (Instant, Instant),
    ) -> Slots<Timing> {
        let origin = slots::origin(start, &plan.table);
        let (table, owners) = (plan.table.clone(), plan.owners.len());
        let measured = self.switching(first_tick);
        Slots {
            dispatcher: Dispatcher::following(table, origin, owners, measured, plan.costs),
            owners: plan.owners.iter().map(|owner| owner.0.into()).collect(),
            admission: plan.begin(origin, NOTICE),
            carried: Timing::new(thread),
        }
    }

    /// What going to sleep takes, until another thread runs.
    fn resuming(&self) -> Span {
        let median = |figure| self.machine.figure(figure).median();
        median(Figure::Timer) + median(Figure::ContextSwitch)
    }

    fn first_tick(&self, processor: usize, start: Instant) -> Instant {
        let mut draws = Draws::at(self.seed, PHASE_OF_TICK, processor, Instant::ZERO);
        start + slots::phase_of_tick(draws.below(self.tick()))
    }

    fn switching(&self, first_tick: Instant) -> Switching {
        let median = |figure| self.machine.figure(figure).median();
        let nanos = |figure| median(figure).as_nanos() as i64;
        let (entering, way) = (median(Figure::SlotEntering), median(Figure::Preemption));
        Switching {
            lead: self.machine.slot_lead,
            entering,
            resuming: self.resuming(),
            leaving_ns: nanos(Figure::SlotLeaving) - nanos(Figure::SlotCut),
            waking: median(Figure::SlotLeaving) + way,
            unseen_each: way,
            unseen_ppm: 0,
            ticks: Some(Ticks {
                first: Instant::ZERO + first_tick.since_epoch() % self.tick(),
                every: self.tick(),
                each: median(Figure::Tick),
            }),
            nobodys: Span::ZERO,
        }
    }
}

/// When a run begins: so late that every table can have gone round once before.
fn start(plans: &[SlotPlan]) -> Instant {
    let cycles = plans.iter().map(|plan| plan.table.cycle());
    let longest = cycles.max().unwrap_or(Span::ZERO).as_nanos();
    Instant::from_secs(longest.div_ceil(1_000_000_000))
}
