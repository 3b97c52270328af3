//! What came of an admission: a program with everything that was found of it, and whether a host may run it.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Deref;

use super::executors::{advise, executors};
use super::{
    Advice, DeadlineState, Denial, ExecutorAdmission, RequestAdmission, Supply, Why, assess,
};
use crate::admission::changes::AdmissionState;
use crate::policy::slots::{Effort, PlanCosts, SlotTable};
use crate::{
    Activity, ActivityId, Enforcer, Grade, HostError, Instant, ProcessorId, Program, Reservation,
    ReservationRequest, Span,
};

/// The work that advice for all requests that are refused may take, and once more for all executors: some 10 ns each.
pub(super) const WORK_FOR_ADVICE: u64 = 20_000_000;

/// The slots of one processor: their table, and whose they are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlotPlan {
    /// Where.
    pub processor: ProcessorId,
    /// Planned for what is held.
    pub table: SlotTable,
    /// A slot's owner is an index into this list: the holders of reservations, then those who may only ask for time constraints.
    pub owners: Vec<ActivityId>,
    /// What each holder is granted, in their order.
    pub held: Vec<Reservation>,
    /// What the table was planned by, and what others will be that take its place.
    pub costs: PlanCosts,
}

impl SlotPlan {
    /// The state that answers whoever asks for a change from now on; the table's first cycle begins at `origin`, and no answer takes
    /// effect sooner than `notice` after it was asked for. Who holds what is known to it alone afterwards.
    pub fn begin(self, origin: Instant, notice: Span) -> AdmissionState {
        let guests = self.owners.len() - self.held.len();
        AdmissionState::new(
            (self.held, guests),
            (self.table, origin),
            self.costs,
            notice,
        )
    }
}

/// A program, and what admission found of each of its requests.
#[derive(Debug)]
pub struct Admission {
    /// What was looked at.
    pub program: Program,
    /// The slots that are granted, by processor; those without any are left out.
    pub slots: Vec<SlotPlan>,
    /// By activity, those that ask for a reservation.
    pub requests: Vec<RequestAdmission>,
    /// The executors on which tasks are declared.
    pub executors: Vec<ExecutorAdmission>,
    /// On what.
    supply: Supply,
}

/// A program that may run: every reservation that it asks for is granted by the enforcer that it asked. The only thing that a
/// [`Host`](crate::Host) runs, and made by [`admit`] alone.
#[derive(Debug)]
pub struct Admitted(Admission);

/// Why a program may not run.
#[derive(Debug, thiserror::Error)]
pub enum Rejected {
    /// It is wrong, or needs what there is not.
    #[error(transparent)]
    Impossible(#[from] HostError),
    /// Not everything that it reserves is granted. It is handed back, with what was found.
    #[error("not admitted: {}", .0.explain().join("; "))]
    Refused(Box<Admission>),
}

impl From<Rejected> for HostError {
    fn from(rejected: Rejected) -> Self {
        match rejected {
            Rejected::Impossible(error) => error,
            Rejected::Refused(admission) => admission.refusal(),
        }
    }
}

/// Decides whether a program may run on `supply`, and finds its slot tables.
///
/// Requests count in the order of their activities, also those that begin later; one that is refused leaves what it asked for to
/// those after it. The enforcer that was not asked for is assessed too, as if this one request went there. The advice of the first
/// refusal on each resource holds for the whole program: followed, that refusal is gone.
///
/// What it advises to an executor, or takes from one, is enough for the tasks there.
///
/// Cost: a slot plan for each request, some hundred for each refusal; for an executor's, some five admissions, and a dozen
/// questions of its policy for each. All that is done for advice is bounded by a count of steps, the same everywhere, of some 0.4 s: then it is
/// cut short, and says so.
///
/// # Errors
///
/// [`Rejected`], with the program where it is only refused.
pub fn admit(mut program: Program, supply: &Supply) -> Result<Admitted, Rejected> {
    super::check::check(&program, supply)?;
    let (slots, mut requests) = assess(&program, supply, &mut Effort::new(WORK_FOR_ADVICE));
    let mut executors = executors(&program, (&requests, &slots), supply);
    advise(&mut program, (&requests, &mut executors), supply);
    keep_what_is_enough(&mut program, &mut requests, supply);
    let admission = Admission {
        program,
        slots,
        requests,
        executors,
        supply: supply.clone(),
    };
    if admission.granted() {
        Ok(Admitted(admission))
    } else {
        Err(Rejected::Refused(Box::new(admission)))
    }
}

/// The slots that there would be if these activities reserved this instead of what they do, and whoever would be refused, as a reservation or as an
/// executor; one that has no reservation stays without. The program is left as it was. Cost: an admission without its advice.
///
/// # Errors
///
/// A program that is wrong, or that this supply's machine cannot run.
pub fn refused_with(
    program: &mut Program,
    instead: &[(ActivityId, Reservation)],
    supply: &Supply,
) -> Result<(Vec<SlotPlan>, Vec<ActivityId>), HostError> {
    super::check::check(program, supply)?;
    let (slots, requests, executors) = found_with(program, instead, supply, &mut Effort::new(0));
    let requests = requests.into_iter().filter(|found| found.asked.is_err());
    let executors = executors.into_iter().filter(|found| found.answer.is_err());
    let requests = requests.map(|found| found.activity);
    let refused = requests.chain(executors.map(|found| found.activity));
    Ok((slots, refused.collect()))
}

/// What would be found of a program that was checked if these activities reserved this instead. It is left as it was.
fn found_with(
    program: &mut Program,
    instead: &[(ActivityId, Reservation)],
    supply: &Supply,
    effort: &mut Effort,
) -> (Vec<SlotPlan>, Vec<RequestAdmission>, Vec<ExecutorAdmission>) {
    let activities = program.activities.iter();
    let before: Vec<_> = activities.map(|activity| activity.reservation).collect();
    for (activity, reservation) in instead {
        let own = &mut program.activities[activity.index()].reservation;
        *own = own.map(|asked| ReservationRequest {
            reservation: *reservation,
            ..asked
        });
    }
    let (slots, requests) = assess(program, supply, effort);
    let executors = executors(program, (&requests, &slots), supply);
    for (activity, before) in program.activities.iter_mut().zip(before) {
        activity.reservation = before;
    }
    (slots, requests, executors)
}

/// Of what is advised to those who are refused, takes away what is too little for the tasks on an executor whose reservation it is about.
fn keep_what_is_enough(program: &mut Program, requests: &mut [RequestAdmission], supply: &Supply) {
    let mut effort = Effort::new(0);
    for request in requests {
        let own = request.activity;
        let Err(denial) = &mut request.asked else {
            continue;
        };
        denial.nearest.retain(|advice| {
            let is_about = |who: ActivityId| {
                who == own || advice.requests.iter().any(|(changed, _)| *changed == who)
            };
            let has_tasks = program.executors().any(|(executor, holder)| {
                is_about(holder) && program.tasks_on(executor).next().is_some()
            });
            if !has_tasks {
                return true;
            }
            if effort.spent() >= WORK_FOR_ADVICE {
                denial.is_cut_short = true;
                return false;
            }
            let (_, _, found) = found_with(program, &advice.requests, supply, &mut effort);
            let mut refused = found.iter().filter(|found| found.answer.is_err());
            !refused.any(|found| is_about(found.activity))
        });
    }
}

/// What a host begins with.
#[derive(Debug)]
pub struct Launch {
    /// The bodies, and what each activity asked for.
    pub program: Program,
    /// The slots, by processor.
    pub slots: Vec<SlotPlan>,
    /// The kernel's reservations, where there are any to be had.
    pub deadline: Option<DeadlineState>,
    /// How firmly each activity's reservation is granted, by [`ActivityId`], if it asked for one: but for those of others who rank above, of
    /// whom the host sees what they do.
    pub grades: Vec<Option<Grade>>,
}

impl Admitted {
    /// Takes it apart, to be run by the host on whose supply it was admitted, which says here what it calls itself.
    ///
    /// # Errors
    ///
    /// [`HostError::BadProgram`] for any other host: what was granted does not hold there.
    pub fn launch(self, host: &str) -> Result<Launch, HostError> {
        let Admission {
            mut program,
            slots,
            requests,
            executors: _,
            supply,
        } = self.0;
        if supply.host != host {
            return Err(HostError::BadProgram(format!(
                "it was admitted on {}, which says nothing of {host}",
                supply.host
            )));
        }
        let held = program.askers(Enforcer::Deadline);
        let held = held.map(|(id, _, reservation)| (id, reservation)).collect();
        let deadline = supply.deadline.ok();
        let deadline = deadline.map(|supply| DeadlineState::new(supply, held));
        let mut grades: Vec<Option<Grade>> = program.activities.iter().map(|_| None).collect();
        for request in requests {
            grades[request.activity.index()] = request.asked.ok().map(|granted| granted.apart);
        }
        program.place_bodies();
        Ok(Launch {
            program,
            slots,
            deadline,
            grades,
        })
    }
}

impl Deref for Admitted {
    type Target = Admission;

    fn deref(&self) -> &Admission {
        &self.0
    }
}

impl Admission {
    /// On what it was looked at.
    pub const fn supply(&self) -> &Supply {
        &self.supply
    }

    /// What is said of a program that is not admitted: that this machine cannot run it, where it lacks what enforces a request.
    pub fn refusal(&self) -> HostError {
        let text = self.explain().join("; ");
        let missing = |denial: &Denial| matches!(denial.why, Why::Unavailable(_));
        if self.refusals().any(|(_, denial)| missing(denial)) {
            HostError::CannotRun(text)
        } else {
            HostError::Refused(text)
        }
    }

    /// Who asks, and for what.
    pub fn asker(&self, request: &RequestAdmission) -> (&Activity, ReservationRequest) {
        let activity = &self.program.activities[request.activity.index()];
        let asked = activity.reservation.expect("only those who ask are listed");
        (activity, asked)
    }

    /// Whether every request is granted by the enforcer it asked for, and every executor's policy admits the tasks on it.
    pub fn granted(&self) -> bool {
        self.refusals().next().is_none() && self.executors.iter().all(|e| e.answer.is_ok())
    }

    /// The requests that are not, with the reason.
    pub fn refusals(&self) -> impl Iterator<Item = (&RequestAdmission, &Denial)> {
        let requests = self.requests.iter();
        requests.filter_map(|request| Some((request, request.asked.as_ref().err()?)))
    }

    /// The refusals as sentences, activities by name; empty if all is granted.
    pub fn explain(&self) -> Vec<String> {
        let sentence = |(request, denial): (&RequestAdmission, &Denial)| {
            let (activity, asked) = self.asker(request);
            format!(
                "`{}` ({} by {} on processor {}): {}{}",
                activity.name,
                asked.reservation,
                asked.enforcer,
                self.number(activity.processor),
                denial.why,
                self.would_fit(&denial.nearest, denial.is_cut_short)
            )
        };
        let executor = |executor: &ExecutorAdmission| {
            let why = executor.answer.as_ref().err()?;
            let of = executor.bottleneck.as_ref();
            let of = of.map_or(String::new(), |name| format!(" (bottleneck: `{name}`)"));
            let would_fit = self.would_fit(&executor.nearest, executor.is_cut_short);
            let name = self.name(executor.activity);
            Some(format!("on `{name}`{of}: {why}{would_fit}"))
        };
        let executors = self.executors.iter().filter_map(executor);
        self.refusals().map(sentence).chain(executors).collect()
    }

    /// What the machine calls a processor of the program.
    fn number(&self, processor: ProcessorId) -> usize {
        let mut all = self.supply.processors.iter();
        let there = all.find(|one| one.processor == processor);
        there.map_or(processor.index(), |there| there.number)
    }

    fn name(&self, activity: ActivityId) -> &str {
        &self.program.activities[activity.index()].name
    }

    /// "; would fit: 2ms/8ms for `a`; or 1ms/8ms for `b`", behind every refusal of which it is known, and that this need not be all. What was tried is
    /// said to the last digit: a shorter period might not fit.
    fn would_fit(&self, nearest: &[Advice], is_cut_short: bool) -> String {
        let one = |advice: &Advice| {
            let requests = advice.requests.iter().map(|(activity, asked)| {
                let (service, period) = (asked.service().exactly(), asked.period().exactly());
                format!("{service}/{period} for `{}`", self.name(*activity))
            });
            requests.collect::<Vec<_>>().join(" and ")
        };
        let all = nearest.iter().map(one).collect::<Vec<_>>().join("; or ");
        let fits = if all.is_empty() { "" } else { "; would fit: " };
        let rest = match is_cut_short {
            true => "; not all that might fit was looked at",
            false => "",
        };
        format!("{fits}{all}{rest}")
    }
}
