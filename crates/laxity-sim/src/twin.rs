//! The twin as a host: a program in, a record out.

use laxity_model::bands::Bands;
use laxity_model::slots::{Dispatcher, PlanCosts, plan};
use laxity_model::{
    Host, HostError, Instant, Placement, Priority, Program, Reservation, RunRecord, Span,
};

use crate::activity::ActivityState;
use crate::machine::{Machine, Semaphore};
use crate::processor::{Processor, Slots};
use crate::profile::Profile;
use crate::queue::{Links, Queue};
use crate::record::{Recorder, Recording};
use crate::timers::Timers;
use crate::validate::validate;

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
    profile: Profile,
    recording: Recording,
}

impl Twin {
    /// A machine of this kind that records every event.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            recording: Recording::ALL,
        }
    }

    /// The same machine, recording something else.
    #[must_use]
    pub fn recording(self, recording: Recording) -> Self {
        Self { recording, ..self }
    }

    /// Threads of this priority and above preempt the holder of a slot.
    pub(crate) fn threads_above(&self) -> Option<Priority> {
        self.profile.threads_above
    }

    /// What admission is told about carrying slot tables out here.
    ///
    /// A slot costs one thread switch, kept free before it. All of a processor may be given away: what interrupts, deferred calls and the clock
    /// take from a slot is not admission's to know in the twin, and shows in what is measured.
    #[must_use]
    pub fn plan_costs(&self) -> PlanCosts {
        PlanCosts {
            per_slot: self.profile.costs.context_switch.as_full_service(),
            max_share_ppm: 1_000_000,
            other_ppm: 0,
            granularity: SHORTEST_SLOT,
        }
    }

    /// Makes the slot table of a processor from the reservations that the program declares for it.
    fn admit(&self, program: &Program, processor: u16) -> Result<Option<Slots>, HostError> {
        let mut owners: Vec<u16> = Vec::new();
        let mut requests: Vec<Reservation> = Vec::new();
        for (index, activity) in program.activities.iter().enumerate() {
            if let Some(request) = activity.reservation
                && activity.processor.0 == processor
            {
                owners.push(index as u16);
                requests.push(request.reservation);
            }
        }
        if requests.is_empty() {
            return Ok(None);
        }
        let table = plan(&requests, &self.plan_costs()).map_err(|refusal| {
            let asking = owners.get(refusal.request).map_or("", |owner| {
                program.activities[usize::from(*owner)].name.as_str()
            });
            HostError::Refused(format!("`{asking}` on processor {processor}: {refusal}"))
        })?;
        let switch = self.profile.costs.context_switch;
        Ok(Some(Slots {
            dispatcher: Dispatcher::new(table, Instant::ZERO, switch, switch),
            owners,
            owner: None,
            poll_at: Instant::ZERO,
        }))
    }

    fn build(&self, program: &Program) -> Result<Machine, HostError> {
        let priorities: Vec<Priority> = program
            .activities
            .iter()
            .map(|activity| match activity.placement {
                Placement::Thread(priority) => priority,
                _ => Priority::IDLE,
            })
            .collect();
        let processors = (0..program.processors)
            .map(|processor| {
                let slots = self.admit(program, processor)?;
                let bands = Bands::new(self.profile.bands, &priorities);
                Ok(Processor::new(bands, slots))
            })
            .collect::<Result<Vec<_>, HostError>>()?;
        let activities: Vec<_> = program.activities.iter().map(ActivityState::new).collect();
        let semaphores = program.semaphores.iter().map(|count| Semaphore {
            count: *count,
            waiters: Queue::EMPTY,
        });
        Ok(Machine {
            now: Instant::ZERO,
            processors,
            semaphores: semaphores.collect(),
            timers: Timers::new(activities.len()),
            links: Links::new(activities.len()),
            recorder: Recorder::new(self.recording),
            profile: self.profile,
            marks: program.marks.len(),
            fault: None,
            alive: activities.len(),
            ended: false,
            steps: 0,
            next_tick: self.profile.costly_tick_after(Instant::ZERO),
            activities,
        })
    }
}

/// No slot is planned that is shorter: below it, a table is all edges.
pub(crate) const SHORTEST_SLOT: Span = Span::from_micros(10);

impl Host for Twin {
    fn describe(&self) -> String {
        format!("twin {}", self.profile.name)
    }

    fn run(&mut self, program: Program, length: Span) -> Result<RunRecord, HostError> {
        validate(&program, self.profile.name)?;
        let mut machine = self.build(&program)?;
        let (mut bodies, names): (Vec<_>, Vec<_>) = program
            .activities
            .into_iter()
            .map(|activity| (activity.body, activity.name))
            .unzip();
        let end = Instant::ZERO.checked_add(length).unwrap_or(Instant::MAX);
        match machine.run(&mut bodies, end) {
            Ok(ended_by) => Ok(machine.into_record(ended_by)),
            Err((culprit, fault)) => Err(fault.by(&names[usize::from(culprit)])),
        }
    }
}
