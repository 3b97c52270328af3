//! The twin as a host: a program in, a record out.

use laxity_model::admission::changes::AdmissionState;
use laxity_model::enforce::Dispatcher;
use laxity_model::enforce::machine::Machine as MeasuredMachine;
use laxity_model::policy::bands::Bands;
use laxity_model::policy::slots::{PlanCosts, plan};
use laxity_model::{Host, HostError, Instant, Priority, Program, Reservation, RunRecord, Span};

use crate::core::{Core, Loaded, Machine, Recording};
use crate::linux::{Linux, Witness};
use crate::study::{self, Carried, Processor, Profile, Slots, Stack, Study};
use crate::validate::{Kind, validate};

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
/// let record = Twin::new(Profile::IDEAL).run(program, Span::from_millis(20))?;
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

    /// A twin of a machine that was measured, under Linux ([`crate::linux`] tells how). Everything random follows from the seed. It has one
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

    fn with_linux(self, change: impl FnOnce(Linux) -> Linux) -> Self {
        match self.kind {
            Machinery::Linux(linux) => Self {
                kind: Machinery::Linux(Box::new(change(*linux))),
                ..self
            },
            Machinery::Study(_) => self,
        }
    }

    pub(crate) fn as_linux(&self) -> Option<&Linux> {
        match &self.kind {
            Machinery::Linux(linux) => Some(linux),
            Machinery::Study(_) => None,
        }
    }

    /// Admits a program and begins it, without going on: whoever holds the machine takes it from instant to instant.
    ///
    /// # Errors
    /// What [`Host::run`] says before anything has run.
    pub fn load(&self, mut program: Program, length: Span) -> Result<Machine, HostError> {
        program.seat().map_err(HostError::BadProgram)?;
        let profile = match &self.kind {
            Machinery::Study(profile) => *profile,
            Machinery::Linux(linux) => {
                validate(&program, Kind::Linux)?;
                return linux.load(self.recording, program, length);
            }
        };
        validate(&program, Kind::Study(profile.name))?;
        let machine = build(profile, self.recording, &program)?;
        Ok(Loaded::begin(machine, program, length))
    }

    /// The same machine, recording something else.
    #[must_use]
    pub fn recording(self, recording: Recording) -> Self {
        Self { recording, ..self }
    }

    /// Threads of this priority and above preempt the holder of a slot.
    pub(crate) fn threads_above(&self) -> Option<Priority> {
        match &self.kind {
            Machinery::Study(profile) => profile.threads_above,
            Machinery::Linux(_) => Some(Priority::HIGHEST),
        }
    }

    /// What admission is told about carrying slot tables out here.
    ///
    /// The study's host: a slot costs one thread switch, kept free before it. All of a processor may be given away: what interrupts, deferred
    /// calls and the clock take from a slot is not admission's to know there, and shows in what is measured. Linux: as on the live host.
    #[must_use]
    pub fn plan_costs(&self) -> PlanCosts {
        match &self.kind {
            Machinery::Study(profile) => study_costs(profile),
            Machinery::Linux(linux) => linux.plan_costs(),
        }
    }
}

/// No slot is planned that is shorter: below it, a table is all edges.
pub(crate) const SHORTEST_SLOT: Span = Span::from_micros(10);

impl Host for Twin {
    fn describe(&self) -> String {
        match &self.kind {
            Machinery::Study(profile) => format!("twin {}", profile.name),
            Machinery::Linux(_) => "twin linux".into(),
        }
    }

    fn run(&mut self, program: Program, length: Span) -> Result<RunRecord, HostError> {
        self.load(program, length)?.finish()
    }
}

/// What admission is told about carrying slot tables out on the study's host.
fn study_costs(profile: &Profile) -> PlanCosts {
    PlanCosts {
        per_slot: profile.costs.context_switch.as_full_service(),
        max_share_ppm: 1_000_000,
        other_ppm: 0,
        granularity: SHORTEST_SLOT,
    }
}

/// Makes the slot table of a processor from the reservations that the program declares for it.
fn admit(profile: &Profile, program: &Program, processor: u16) -> Result<Option<Slots>, HostError> {
    let mut owners: Vec<u32> = Vec::new();
    let mut requests: Vec<Reservation> = Vec::new();
    for (index, activity) in program.activities.iter().enumerate() {
        if let Some(request) = activity.reservation
            && activity.processor.0 == processor
        {
            owners.push(index as u32);
            requests.push(request.reservation);
        }
    }
    let holders = owners.len();
    let others = program
        .constrained
        .iter()
        .map(|activity| u32::from(activity.0));
    owners.extend(others.filter(|other| {
        let activity = &program.activities[*other as usize];
        activity.reservation.is_none() && activity.processor.0 == processor
    }));
    if owners.is_empty() {
        return Ok(None);
    }
    let table = plan(&requests, &study_costs(profile)).map_err(|refusal| {
        let asking = owners.get(refusal.request).map_or("", |owner| {
            program.activities[*owner as usize].name.as_str()
        });
        HostError::Refused(format!("`{asking}` on processor {processor}: {refusal}"))
    })?;
    let switch = profile.costs.context_switch;
    let admission = AdmissionState::new(
        (requests, owners.len() - holders),
        (table.clone(), Instant::ZERO),
        study_costs(profile),
        // The dispatcher is part of this machine: it has what is granted at once.
        Span::ZERO,
    );
    Ok(Some(Slots {
        dispatcher: Dispatcher::new(table, Instant::ZERO, switch, switch),
        admission,
        owners,
        carried: Carried::NOTHING,
    }))
}

fn build(
    profile: Profile,
    recording: Recording,
    program: &Program,
) -> Result<study::Machine, HostError> {
    let placements = program.activities.iter().map(|activity| activity.placement);
    let priorities: Vec<Priority> = placements.map(study::priority).collect();
    let processors = (0..program.processors)
        .map(|processor| {
            let slots = admit(&profile, program, processor)?;
            let bands = Bands::new(profile.bands, &priorities);
            Ok(Processor::new(Stack::new(bands, priorities.len()), slots))
        })
        .collect::<Result<Vec<_>, HostError>>()?;
    let activities = (0..).zip(&program.activities);
    let activities = activities.map(|(number, activity)| study::activity(number, activity));
    let when = (Instant::ZERO, recording);
    let study = Study::new(profile);
    Ok(Core::new(
        study,
        program,
        when,
        activities.collect(),
        processors,
    ))
}
