//! From a program to a machine that runs it: admission by the model's planner and by the kernel's rule.

use std::num::NonZeroU16;

use laxity_model::admission::changes::AdmissionState;
use laxity_model::admission::{DeadlineSupply, ProcessorSupply, SlotSupply, Supply};
use laxity_model::analysis::multiprocessor::{Bandwidth, KernelLimits};
use laxity_model::enforce::Dispatcher;
use laxity_model::policy::classes::{RunQueue, Scheduling, Slices};
use laxity_model::policy::slots::{PlanCosts, SlotTable, plan};
use laxity_model::{
    Activity, Enforcer, Grade, HostError, Instant, Placement, Priority, ProcessorId, Program,
    Reservation, Span,
};

use super::dispatch::Timing;
use super::draws::Draws;
use super::kernel::{Kernel, Place, System};
use super::policy::{self, OCCUPANT_FIFO};
use super::task::{self, Role, Task};
use super::{CHARGE_PER_SLOT, Enforcement, Linux, MOST_SHARE_PPM, PHASE, PHASE_OF_TICK};
use super::{CLOCK, SHORTEST_SLOT, Witness};
use crate::core::{Core, Loaded, Machine, Processor, Recording, Slots, Timers};

/// From an answer until the dispatcher has surely heard of it, as on the live host.
const NOTICE: Span = Span::from_micros(500);
/// How late the edge of a slot may be, as the live host tells admission.
const EDGE_JITTER: Span = Span::from_micros(200);

impl Linux {
    pub(crate) fn plan_costs(&self) -> PlanCosts {
        PlanCosts {
            per_slot: CHARGE_PER_SLOT.as_full_service(),
            max_share_ppm: MOST_SHARE_PPM,
            other_ppm: 0,
            granularity: SHORTEST_SLOT,
        }
    }

    /// What this machine can enforce on so many processors.
    pub(crate) fn supply(&self, processors: u16) -> Supply {
        let costs = self.plan_costs();
        let slots = SlotSupply {
            max_share_ppm: costs.max_share_ppm,
            used_ppm: 0,
            per_slot: costs.per_slot,
            shortest_slot: costs.granularity,
            jitter: EDGE_JITTER,
            occupant_fifo: OCCUPANT_FIFO,
            threads_above: Some(Priority::HIGHEST),
        };
        let of_processor = |processor| ProcessorSupply {
            processor: ProcessorId(processor),
            slots: Ok(slots.clone()),
            outranking: Vec::new(),
        };
        Supply {
            processors: (0..processors).map(of_processor).collect(),
            deadline: Ok(DeadlineSupply {
                processors: self.all_processors(processors),
                limits: KernelLimits::WITH_FAIR_SERVER,
                granted: Bandwidth::ZERO,
                tick: match self.enforcement() {
                    Enforcement::Tick => self.tick(),
                    Enforcement::Timer => Span::ZERO,
                },
            }),
        }
    }

    /// The machine's processors, for a program of so many: one more for what is external, unless it is known how many there are.
    fn all_processors(&self, program: u16) -> NonZeroU16 {
        let all = self.processors.unwrap_or(program.saturating_add(1));
        NonZeroU16::new(all.max(program)).unwrap_or(NonZeroU16::MIN)
    }

    pub(crate) fn load(
        &self,
        recording: Recording,
        program: Program,
        length: Span,
    ) -> Result<Machine, HostError> {
        if let Some(witness) = self.witness
            && witness.processor.0 >= program.processors
        {
            let text = "the witness's processor does not exist";
            return Err(HostError::CannotRun(text.into()));
        }
        self.admit_deadlines(&program)?;
        let system = self.build(&program, recording)?;
        Ok(Loaded::begin(system, program, length))
    }

    /// The kernel's own test, of one request after the other.
    fn admit_deadlines(&self, program: &Program) -> Result<(), HostError> {
        let processors = self.all_processors(program.processors);
        let limits = KernelLimits::WITH_FAIR_SERVER;
        let mut granted = Bandwidth::ZERO;
        for (activity, reservation) in requests(program, Enforcer::Deadline) {
            let taken = limits
                .check(processors, granted, reservation.into())
                .map_err(|refusal| {
                    HostError::Refused(format!("`{}` by deadline: {refusal}", activity.name))
                })?;
            granted = [granted, taken].into_iter().sum();
        }
        Ok(())
    }

    fn build(&self, program: &Program, recording: Recording) -> Result<System, HostError> {
        let tables = (0..program.processors)
            .map(|processor| self.admit_slots(program, processor))
            .collect::<Result<Vec<_>, _>>()?;
        let start = start(&tables);
        let all = usize::from(self.all_processors(program.processors).get());
        let (tasks, dispatchers) = self.tasks(program, &tables, start);
        let policies: Vec<Scheduling> = tasks.iter().map(|task| task.own.scheduling).collect();
        let slices = Slices::usual(self.tick(), all as u16);
        let mut tables = tables.into_iter();
        let processors = (0..all).map(|number| {
            let phase = Draws::at(self.seed, PHASE_OF_TICK, number, Instant::ZERO)
                .below(self.tick())
                + Span::from_nanos(1);
            let queue = RunQueue::new(slices, &policies);
            let table = tables.next().flatten();
            let slots = table.zip(dispatchers[number]);
            let slots = slots.map(|(table, thread)| self.slots(program, table, thread, start));
            let place = Place::new(queue, tasks.len(), start + phase);
            Processor::new(place, slots)
        });
        let processors = processors.collect();
        let kernel = Kernel {
            machine: self.machine.clone(),
            tick: self.tick(),
            enforcement: self.enforcement(),
            witness: self.witness_of(program),
            seed: self.seed,
            budgets: Timers::new(tasks.len()),
            unassigned: false,
        };
        let when = (start, recording);
        Ok(Core::new(kernel, program, when, tasks, processors))
    }

    /// The witness, which deadline threads outrank: for all their budgets, each noticed as used up at the next tick only.
    fn witness_of(&self, program: &Program) -> Option<Witness> {
        let budgets = requests(program, Enforcer::Deadline);
        let outranked: Span = budgets
            .map(|(_, held)| held.service().as_dedicated_span() + self.tick())
            .sum();
        self.witness.map(|witness| Witness {
            tolerance: witness.tolerance + outranked,
            ..witness
        })
    }

    /// The threads: the program's, the witness, and a dispatcher for each processor with slots.
    fn tasks(
        &self,
        program: &Program,
        tables: &[Option<(SlotTable, Vec<u32>)>],
        start: Instant,
    ) -> (Vec<Task>, Vec<Option<u32>>) {
        let draws = |number: usize| Draws::new(self.seed ^ CLOCK, number as u64);
        let mut tasks: Vec<Task> = program
            .activities
            .iter()
            .enumerate()
            .map(|(number, activity)| {
                let grade = grade(program, activity);
                task::of_activity(number as u16, activity, grade, start, draws(number))
            })
            .collect();
        // Numbers of their own, so that a program with one activity more draws the same for all others.
        let host = |role: Role, processor: usize| {
            let number = usize::from(u16::MAX) + 2 * processor + usize::from(role == Role::Witness);
            task::of_host(role, processor as u16, start, draws(number))
        };
        if let Some(witness) = self.witness {
            tasks.push(host(Role::Witness, witness.processor.index()));
        }
        let all = usize::from(self.all_processors(program.processors).get());
        let mut dispatchers = vec![None; all];
        for (processor, table) in tables.iter().enumerate() {
            if table.is_some() {
                dispatchers[processor] = Some(tasks.len() as u32);
                tasks.push(host(Role::Dispatcher, processor));
            }
        }
        (tasks, dispatchers)
    }

    /// The slot table of a processor, and whose slots they are.
    fn admit_slots(
        &self,
        program: &Program,
        processor: u16,
    ) -> Result<Option<(SlotTable, Vec<u32>)>, HostError> {
        let here = |activity: &Activity| activity.processor.0 == processor;
        let holds = |activity: &Activity| {
            let request = activity.reservation;
            request.is_some_and(|request| request.enforcer == Enforcer::Slots)
        };
        let owners: Vec<u32> = (0..)
            .zip(&program.activities)
            .filter(|(_, activity)| here(activity) && holds(activity))
            .map(|(number, _)| number)
            .collect();
        let guests = program.constrained.iter().map(|guest| u32::from(guest.0));
        let guests = guests.filter(|guest| {
            let activity = &program.activities[*guest as usize];
            here(activity) && activity.reservation.is_none()
        });
        let owners: Vec<u32> = owners.into_iter().chain(guests).collect();
        if owners.is_empty() {
            return Ok(None);
        }
        let own = requests(program, Enforcer::Slots).filter(|(activity, _)| here(activity));
        let own: Vec<Reservation> = own.map(|(_, reservation)| reservation).collect();
        let costs = self.costs_beside_deadline(program);
        let table = plan(&own, &costs).map_err(|refusal| {
            HostError::Refused(format!("slots of processor {processor}: {refusal}"))
        })?;
        Ok(Some((table, owners)))
    }

    /// What slots are planned by: a deadline thread keeps to no processor, so each must have room for all of them.
    fn costs_beside_deadline(&self, program: &Program) -> PlanCosts {
        let shares = requests(program, Enforcer::Deadline).map(|(_, held)| held.share_ppm());
        PlanCosts {
            other_ppm: u32::try_from(shares.sum::<u64>()).unwrap_or(u32::MAX),
            ..self.plan_costs()
        }
    }

    /// The dispatcher of a table, with the timing that the live one calibrates: the upper quartile of beginnings, the median of ends.
    fn slots(
        &self,
        program: &Program,
        (table, owners): (SlotTable, Vec<u32>),
        thread: u32,
        start: Instant,
    ) -> Slots<Timing> {
        let ahead = self.machine.slot_leaving.median();
        // What slots lose at their ends is given at their beginnings.
        let entering = self.machine.slot_entering.at(750_000) + self.machine.slot_cut.median();
        let compensation = entering.saturating_sub(ahead);
        let lead = self.machine.slot_lead.saturating_sub(ahead);
        // The table has been going round before the run began, so that the first window is served as every other.
        let origin = start + PHASE - table.cycle();
        let owned = owners
            .iter()
            .map(|owner| &program.activities[*owner as usize]);
        let held = owned.filter_map(|owner| Some(owner.reservation?.reservation));
        let held: Vec<Reservation> = held.collect();
        let others = owners.len() - held.len();
        let costs = self.costs_beside_deadline(program);
        let begun = (table.clone(), origin);
        Slots {
            admission: AdmissionState::new((held, others), begun, costs, NOTICE),
            dispatcher: Dispatcher::new(table, origin, lead, compensation),
            owners,
            carried: Timing::new(thread, ahead),
        }
    }
}

/// When a run begins: so late that every table can have gone round once before.
fn start(tables: &[Option<(SlotTable, Vec<u32>)>]) -> Instant {
    let cycles = tables.iter().flatten().map(|(table, _)| table.cycle());
    let longest = cycles.max().unwrap_or(Span::ZERO).as_nanos();
    Instant::from_secs(longest.div_ceil(1_000_000_000))
}

fn requests(
    program: &Program,
    enforcer: Enforcer,
) -> impl Iterator<Item = (&Activity, Reservation)> {
    program.activities.iter().filter_map(move |activity| {
        let request = activity.reservation?;
        (request.enforcer == enforcer).then_some((activity, request.reservation))
    })
}

/// How firmly the activity's reservation is granted: what the program itself ranks above a slot is the study's; strangers are not.
fn grade(program: &Program, holder: &Activity) -> Option<Grade> {
    if holder.reservation?.enforcer == Enforcer::Deadline {
        return Some(Grade::Enforced);
    }
    let mut culprits = Vec::new();
    for activity in &program.activities {
        if let Placement::Foreign { fifo } = activity.placement
            && Scheduling::Fifo(fifo).real_time() >= policy::OCCUPANT.real_time()
            && activity.processor == holder.processor
        {
            culprits.push(format!("{} (SCHED_FIFO priority {fifo})", activity.name));
        }
    }
    for (activity, reservation) in requests(program, Enforcer::Deadline) {
        culprits.push(format!("{} (SCHED_DEADLINE {reservation})", activity.name));
    }
    if culprits.is_empty() {
        return Some(Grade::Enforced);
    }
    Some(Grade::Unenforced {
        reason: format!(
            "ranked above the slot on its processor: {}",
            culprits.join(", ")
        ),
    })
}
