//! The twin as a host: a program in, a record out.

use laxity_model::admission::{Admitted, Launch, SlotPlan, Supply};
use laxity_model::enforce::machine::Machine as MeasuredMachine;
use laxity_model::enforce::slots::SUPPLY;
use laxity_model::enforce::{Dispatcher, Witness};
use laxity_model::policy::bands::Bands;
use laxity_model::policy::slots::PlanCosts;
use laxity_model::{Grade, Host, HostError, Instant, Priority, Program, RunRecord, Span};

use crate::core::{Core, Loaded, Machine, Recording};
use crate::linux::Linux;
use crate::study::{self, Carried, Processor, Profile, Slots, Stack, Study};

/// A machine in virtual time, with as many processors as the program is written for.
///
/// Runs are independent: nothing is kept from one to the next, and twins on several threads do not influence each other.
///
/// ```
/// use laxity_model::{Context, Host, Placement, Priority, ProcessorId, Program, Service, Span, Step};
/// use laxity_sim::{Profile, Twin};
///
/// let mut program = Program::new(1);
/// let thread = Placement::Thread(Priority::NORMAL);
/// program.add("spinner", ProcessorId(0), thread, |_: &mut dyn Context| {
///     Step::Burn(Service::from_millis(1))
/// });
/// let record = Twin::new(Profile::IDEAL).admit_and_run(program, Span::from_millis(20))?;
/// assert_eq!(record.usage[0].service, Service::from_millis(20));
/// # Ok::<(), laxity_model::HostError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Twin {
    kind: Machinery,
    recording: Recording,
}

/// What schedules in a twin.
#[derive(Clone, Debug)]
enum Machinery {
    /// The study's host: interrupts, deferred calls, reservations, priority bands.
    Study(Profile),
    /// Linux on a machine that was measured.
    Linux(Box<Linux>),
}

impl Twin {
    /// A machine of this kind that records every event.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        Self {
            kind: Machinery::Study(profile),
            recording: Recording::ALL,
        }
    }

    /// A twin of a machine that was measured, under Linux (the module `linux` tells how). Everything random follows from the seed. It has one
    /// processor more than a program needs, for what is external, and no witness.
    #[must_use]
    pub fn linux(machine: &MeasuredMachine, seed: u64) -> Self {
        Self {
            kind: Machinery::Linux(Box::new(Linux::new(machine, seed))),
            recording: Recording::ALL,
        }
    }

    /// The same Linux machine with so many processors; fewer than a program needs count as so many. Changes nothing of the study's host.
    #[must_use]
    pub fn on_processors(self, processors: u16) -> Self {
        self.with_linux(|linux| linux.on_processors(processors))
    }

    /// The same Linux machine with a witness, as a live host is configured with one. Changes nothing of the study's host.
    #[must_use]
    pub fn watched_by(self, witness: Witness) -> Self {
        self.with_linux(|linux| linux.watched_by(Some(witness)))
    }

    /// The same Linux machine, whose costs turn into those of another one so long after a run's start, as those of a virtual machine do with what
    /// else its host does. What is known of it beforehand, and its tick, stay what they were. Changes nothing of the study's host.
    #[must_use]
    pub fn turning_into(self, machine: &MeasuredMachine, after: Span) -> Self {
        self.with_linux(|linux| linux.turning_into(machine, after))
    }

    fn with_linux(self, change: impl FnOnce(Linux) -> Linux) -> Self {
        match self.kind {
            Machinery::Linux(linux) => Self {
                kind: Machinery::Linux(Box::new(change(*linux))),
                ..self
            },
            Machinery::Study(_) => self,
        }
    }

    /// What this machine can enforce, with so many processors.
    fn enforceable(&self, processors: u16) -> Supply {
        match &self.kind {
            Machinery::Study(profile) => profile.supply(self.identity(processors), processors),
            Machinery::Linux(linux) => linux.supply(self.identity(processors), processors),
        }
    }

    /// The machine on which a program for so many processors is admitted: another one has another supply.
    fn identity(&self, processors: u16) -> String {
        let name = self.describe();
        match &self.kind {
            Machinery::Study(_) => name,
            Machinery::Linux(linux) => format!("{name} ({})", linux.identity(processors)),
        }
    }

    /// What slot tables are planned by here, if nothing of a program runs above them.
    pub fn plan_costs(&self) -> PlanCosts {
        match &self.kind {
            Machinery::Study(profile) => profile.slot_supply().costs(0),
            Machinery::Linux(_) => SUPPLY.costs(0),
        }
    }

    /// Begins what was admitted, without going on: whoever holds the machine takes it from instant to instant.
    ///
    /// # Errors
    /// What [`Host::run`] says before anything has run.
    pub fn load(&self, admitted: Admitted, length: Span) -> Result<Machine, HostError> {
        let here = self.identity(admitted.program.processors);
        let launch = admitted.launch(&here)?;
        let profile = match &self.kind {
            Machinery::Study(profile) => *profile,
            Machinery::Linux(linux) => return linux.load(self.recording, launch, length),
        };
        let Launch {
            program,
            slots,
            grades,
            ..
        } = launch;
        let machine = build(profile, self.recording, &program, (slots, grades));
        Ok(Loaded::begin(machine, program, length))
    }

    /// The same machine, recording something else.
    #[must_use]
    pub fn recording(self, recording: Recording) -> Self {
        Self { recording, ..self }
    }
}

impl Host for Twin {
    fn describe(&self) -> String {
        match &self.kind {
            Machinery::Study(profile) => format!("twin {}", profile.name),
            Machinery::Linux(_) => "twin linux".into(),
        }
    }

    fn supply(&mut self, processors: u16) -> Result<Supply, HostError> {
        Ok(self.enforceable(processors))
    }

    fn run(&mut self, admitted: Admitted, length: Span) -> Result<RunRecord, HostError> {
        self.load(admitted, length)?.finish()
    }
}

/// The slots of a processor as the study's host carries them out: its dispatcher is part of the machine, and has what is granted at once.
fn slots(profile: &Profile, plan: SlotPlan) -> Slots {
    let switch = profile.costs.context_switch;
    Slots {
        dispatcher: Dispatcher::new(plan.table.clone(), Instant::ZERO, switch, switch),
        owners: plan.owners.iter().map(|owner| owner.0.into()).collect(),
        admission: plan.begin(Instant::ZERO, Span::ZERO),
        carried: Carried::NOTHING,
    }
}

fn build(
    profile: Profile,
    recording: Recording,
    program: &Program,
    (plans, grades): (Vec<SlotPlan>, Vec<Option<Grade>>),
) -> study::Machine {
    let placements = program.activities.iter().map(|activity| activity.placement);
    let priorities: Vec<Priority> = placements.map(study::priority).collect();
    let mut plans = plans.into_iter().peekable();
    let processors = (0..program.processors).map(|processor| {
        let plan = plans.next_if(|plan| plan.processor.0 == processor);
        let bands = Bands::new(profile.bands, &priorities);
        let slots = plan.map(|plan| slots(&profile, plan));
        Processor::new(Stack::new(bands, priorities.len()), slots)
    });
    let processors = processors.collect();
    let activities = (0..).zip(program.activities.iter().zip(grades));
    let activities =
        activities.map(|(number, (activity, grade))| study::activity(number, activity, grade));
    let when = (Instant::ZERO, recording);
    // It has no `SCHED_DEADLINE`, and nobody is admitted with it.
    let study = Study::new(profile);
    Core::new(
        study,
        (program, None),
        when,
        activities.collect(),
        processors,
    )
}
