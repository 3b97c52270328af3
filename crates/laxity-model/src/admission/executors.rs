//! What the policies of executors say of those who are placed on them.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::above::Above;
use super::admitted::WORK_FOR_ADVICE;
use super::{
    Admission, Advice, Prediction, RequestAdmission, SlotPlan, SlotSupply, Supply, assess,
};
use crate::analysis::Task;
use crate::analysis::supply::{Dedicated, Delayed, Residual, least_reservation, reserved};
use crate::executor::Unschedulable;
use crate::policy::slots::{Change, Effort, grain, shortest_interval};
use crate::program::upcalls::Overhead;
use crate::{
    Activity, ActivityId, Enforcer, ExecutorId, Grade, Program, Reservation, ReservationRequest,
    Service, Span,
};

/// How often a period is halved in search of one at which something would do, or less would.
const HALVINGS: u32 = 4;
/// How often a proposal is corrected by how far apart its slots turned out to be.
const CORRECTIONS: u32 = 3;

/// What became of the tasks on one executor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExecutorAdmission {
    /// Which.
    pub executor: ExecutorId,
    /// The activity that it is.
    pub activity: ActivityId,
    /// How firmly its policy's promise to them holds, or why the policy makes none.
    pub answer: Result<Grade, Unschedulable>,
    /// The name of the bottleneck, a task or a group, where the policy names one.
    pub bottleneck: Option<String>,
    /// How long each task of no group takes at the longest, from the release of the first of its chain; none where the policy has no such bounds or makes no promise.
    pub bounds: Vec<(ActivityId, Span)>,
    /// Where its reservation is too little: the least that is enough at its period, or else at the longest shorter one that was tried, and
    /// the cheapest of all; beside each everything else is granted as before. Empty where there is none near.
    pub nearest: Vec<Advice>,
    /// Whether the search for that took as many steps as it may.
    pub is_cut_short: bool,
}

impl Admission {
    /// What the policy of an executor without a reservation promises, as an [`ExecutorAdmission`] has it of a processor of its own, where this work goes before its thread, which besides waits once for so long while nobody of these
    /// is at work, and each job is charged this overhead: the bounds of each task of no group, or none where the policy has no such bounds.
    ///
    /// # Errors
    ///
    /// Who may be late, or why nothing is known.
    pub fn promised_below(
        &self,
        executor: ExecutorId,
        (above, waits): (Vec<Task>, Span),
        overhead: Overhead,
    ) -> Result<Vec<(ActivityId, Span)>, Unschedulable> {
        let refused = |reason| Unschedulable {
            bottleneck: None,
            reason,
        };
        if let Some(other) = self.program.undeclared_on(executor).next() {
            return Err(refused(undeclared(other)));
        }
        let left = Residual::new(Delayed::new(Dedicated, waits), above);
        let left = left.map_err(|error| refused(error.to_string()))?;
        let bounds = self.program.admit_on(executor, &left, overhead)?;
        Ok(of_singles(&self.program, executor, &bounds))
    }
}

/// The bounds that a policy gave, each with whose it is.
fn of_singles(program: &Program, executor: ExecutorId, bounds: &[Span]) -> Vec<(ActivityId, Span)> {
    let members = program.members_on(executor);
    let singles = members.singles().map(|member| ActivityId(member.id as u16));
    singles.zip(bounds.iter().copied()).collect()
}

/// That nothing is sure where this one takes turns, too.
fn undeclared(other: &Activity) -> String {
    let name = &other.name;
    format!("`{name}` takes turns there too, and how much it takes is not declared")
}

/// What the policy of an executor is asked about: its tasks, in a reservation on a machine.
struct Ground<'a> {
    program: &'a Program,
    executor: ExecutorId,
    supply: &'a Supply,
    above: Above,
    slots: Option<&'a SlotSupply>,
}

impl<'a> Ground<'a> {
    fn of(
        program: &'a Program,
        (executor, activity): (ExecutorId, ActivityId),
        supply: &'a Supply,
    ) -> Self {
        let holder = &program.activities[activity.index()];
        let place = supply.processors.get(holder.processor.index());
        let slots = place.and_then(|place| Some((place, place.slots.as_ref().ok()?)));
        let above = slots.map_or(Above::nobody(), |(place, slots)| {
            Above::of(program, place, slots)
        });
        Self {
            program,
            executor,
            supply,
            above,
            slots: slots.map(|(_, slots)| slots),
        }
    }

    /// What the policy says if its activity has a processor.
    fn on_a_processor(&self) -> Result<Vec<Span>, Unschedulable> {
        let overhead = Overhead {
            late: self.supply.timer_grain,
            each: Service::ZERO,
            quantum: Service::ZERO,
        };
        self.program.admit_on(self.executor, &Dedicated, overhead)
    }

    /// What it says of a reservation whose slots, if it has any, begin so far apart at the least.
    fn reserved(
        &self,
        asked: ReservationRequest,
        apart: Option<Span>,
    ) -> Result<Vec<Span>, Unschedulable> {
        let jitter = self.slots.map_or(Span::ZERO, |slots| slots.jitter);
        let late = self.supply.timer_grain.checked_add(jitter);
        let by_slots = self.slots.filter(|_| asked.enforcer == Enforcer::Slots);
        let overhead = Overhead {
            late: late.unwrap_or(Span::MAX),
            each: by_slots.map_or(Service::ZERO, |slots| slots.switch),
            quantum: Service::ZERO,
        };
        let mut above_slots = self.above.tasks();
        let taken = by_slots.map(|slots| taken_from_slots(slots, apart));
        above_slots.extend(taken.into_iter().flatten());
        let refused = |reason| Unschedulable {
            bottleneck: None,
            reason,
        };
        let tick = match (&self.supply.deadline, asked.enforcer) {
            (Ok(deadline), _) => deadline.tick,
            (Err(_), Enforcer::Slots) => Span::ZERO,
            (Err(why), Enforcer::Deadline) => return Err(refused(why.clone())),
        };
        let bound = reserved((asked.reservation, asked.enforcer), tick, above_slots);
        let bound = bound.map_err(|error| refused(error.to_string()))?;
        self.program.admit_on(self.executor, &bound, overhead)
    }

    /// The shortest period that is proposed.
    fn shortest_period(&self) -> Span {
        self.slots.map_or(Span::ZERO, SlotSupply::shortest_period)
    }

    /// The least service every `period` with which the policy makes its promise, and which slots can be as short as.
    fn least(
        &self,
        asked: ReservationRequest,
        period: Span,
        apart: Option<Span>,
    ) -> Option<Reservation> {
        let shortest = self.slots.map_or(Span::ZERO, |slots| slots.shortest_slot);
        let does = |reservation: Reservation| {
            let with = ReservationRequest {
                reservation,
                ..asked
            };
            let is_a_slot = reservation.service().as_dedicated_span() >= shortest;
            Ok(is_a_slot && self.reserved(with, apart).is_ok())
        };
        least_reservation(period, Span::from_nanos(grain(period.as_nanos())), does).ok()?
    }
}

/// How far apart the slots of an activity begin at the least, where it has any.
fn apart(plans: &[SlotPlan], holder: ActivityId) -> Option<Span> {
    plans.iter().find_map(|plan| {
        let owner = plan.owners.iter().position(|owner| *owner == holder)?;
        shortest_interval(&plan.table, owner)
    })
}

/// Asks the policy of every executor on which tasks are declared.
pub(super) fn executors(
    program: &Program,
    (requests, plans): (&[RequestAdmission], &[SlotPlan]),
    supply: &Supply,
) -> Vec<ExecutorAdmission> {
    let declared = program.executors().filter_map(|(executor, activity)| {
        program.tasks_on(executor).next()?;
        let request = requests.iter().find(|r| r.activity == activity);
        let granted = request.and_then(|request| request.asked.as_ref().ok());
        let holder = &program.activities[activity.index()];
        let ground = Ground::of(program, (executor, activity), supply);
        let found = match (holder.reservation, granted) {
            (None, _) => ground.on_a_processor(),
            (Some(asked), Some(_)) => ground.reserved(asked, apart(plans, activity)),
            // That is refused itself, and said there.
            (Some(_), None) => return None,
        };
        let members = program.members_on(executor);
        let at = found.as_ref().err().and_then(|why| why.bottleneck);
        let name = at.and_then(|at| members.names().get(at).copied());
        let bounds = found.as_deref().unwrap_or_default();
        let grade = match holder.reservation.zip(granted) {
            None => without_reservation(holder),
            Some(granted) => with_reservation(program, executor, &ground.above, granted),
        };
        Some(ExecutorAdmission {
            executor,
            activity,
            bottleneck: name.map(ToString::to_string),
            bounds: of_singles(program, executor, bounds),
            answer: found.map(|_| grade),
            nearest: Vec::new(),
            is_cut_short: false,
        })
    });
    declared.collect()
}

/// Finds for each executor that is refused in its reservation what would do instead. The program is asked with it, and left as it was.
pub(super) fn advise(
    program: &mut Program,
    (requests, executors): (&[RequestAdmission], &mut [ExecutorAdmission]),
    supply: &Supply,
) {
    let before = refusals(requests, executors);
    // Nobody asks what those need who are refused meanwhile.
    let mut effort = Effort::new(0);
    for refused in executors.iter_mut().filter(|e| e.answer.is_err()) {
        let who = (refused.executor, refused.activity);
        let own = refused.activity.index();
        let Some(asked) = program.activities[own].reservation else {
            continue;
        };
        let period = asked.reservation.period().as_nanos();
        let periods = (0..=HALVINGS).map(|times| period >> times);
        let shortest = Ground::of(program, who, supply).shortest_period();
        let periods = periods.map(|period| Span::from_nanos(period - period % grain(period)));
        let (mut nearest, mut cheapest): (_, Option<Reservation>) = (None, None);
        for period in periods.filter(|period| *period >= shortest) {
            if effort.spent() >= WORK_FOR_ADVICE {
                refused.is_cut_short = true;
                break;
            }
            let asked = (asked, cheapest.map(Reservation::share_ppm));
            let found = least(
                program,
                (who, asked),
                (period, before),
                (supply, &mut effort),
            );
            nearest = nearest.or(found);
            cheapest = found.or(cheapest);
        }
        program.activities[own].reservation = Some(asked);
        let cheapest = cheapest.filter(|cheapest| nearest != Some(*cheapest));
        let both = nearest.into_iter().chain(cheapest);
        refused.nearest.extend(both.map(|reservation| Advice {
            change: Change::TasksNeed,
            requests: [(refused.activity, reservation)].into(),
        }));
    }
}

/// How many are refused.
fn refusals(requests: &[RequestAdmission], executors: &[ExecutorAdmission]) -> usize {
    let refused = requests.iter().filter(|request| request.asked.is_err());
    let unpromised = executors.iter().filter(|e| e.answer.is_err());
    refused.count() + unpromised.count()
}

/// The least reservation of this period with which the program has a refusal less than before: that of this executor. `None`, too, if it is not below a
/// share that does. The program is left asking for what was tried last.
fn least(
    program: &mut Program,
    (who, (asked, below)): ((ExecutorId, ActivityId), (ReservationRequest, Option<u64>)),
    (period, before): (Span, usize),
    (supply, effort): (&Supply, &mut Effort),
) -> Option<Reservation> {
    let (executor, activity) = who;
    // A slot comes once in a period, unless others are in its way.
    let mut between = Some(period);
    for _ in 0..CORRECTIONS {
        let reservation = Ground::of(program, who, supply).least(asked, period, between)?;
        if below.is_some_and(|below| reservation.share_ppm() >= below) {
            return None;
        }
        program.activities[activity.index()].reservation = Some(ReservationRequest {
            reservation,
            ..asked
        });
        let (plans, requests) = assess(program, supply, effort);
        let found = executors(program, (&requests, &plans), supply);
        let mut answers = found.iter();
        let own = answers.find(|found| found.executor == executor)?;
        if own.answer.is_ok() {
            return (refusals(&requests, &found) < before).then_some(reservation);
        }
        between = apart(&plans, activity);
    }
    None
}

/// A whole processor was not enough to refuse it; but it is not promised one.
fn without_reservation(holder: &Activity) -> Grade {
    let mut reason = String::from("`");
    reason.push_str(&holder.name);
    reason.push_str("` has no reservation: whatever ranks above it takes of its time");
    Grade::Unenforced { reason }
}

/// How firm the promise of the policy is on a reservation on which it makes one.
fn with_reservation(
    program: &Program,
    executor: ExecutorId,
    above: &Above,
    (asked, granted): (ReservationRequest, &Prediction),
) -> Grade {
    let unenforced = |reason: String| Grade::Unenforced { reason };
    if let Grade::Unenforced { .. } = granted.grade {
        return granted.grade.clone();
    }
    if let Some(other) = program.undeclared_on(executor).next() {
        return unenforced(undeclared(other));
    }
    if !asked.begins_at_start {
        return unenforced("its reservation begins only when it asks for it".into());
    }
    if asked.enforcer == Enforcer::Slots && above.is_unknown() {
        return unenforced("what ranks above its slots takes an amount that is not known".into());
    }
    granted.grade.clone()
}

/// What the machine takes from a holder's slots: the switch at the beginning of each, and its clock.
fn taken_from_slots(slots: &SlotSupply, apart: Option<Span>) -> impl Iterator<Item = Task> {
    let edges = apart.and_then(|apart| Task::new(slots.switch, apart).ok());
    let clock = slots
        .clock
        .and_then(|clock| Task::new(clock.service, clock.period).ok());
    edges.into_iter().chain(clock)
}
