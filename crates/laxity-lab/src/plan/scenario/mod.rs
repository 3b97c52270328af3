//! What would become of a whole scenario before anything runs: per variant, which enforcer can meet what and why, how long everything takes at
//! most, and how long it took in the twin.
//!
//! [`plan`] shows the same [`Admitted`](laxity_model::admission::Admitted) that [`run`](crate::runner::run) hands to a host, and
//! adds bounds, and what was observed.
//!
//! * `sources`: everything that takes a processor's time; `drivers`: of that, each device's own; `packets`: a network's.
//! * `flows`: what comes over a network.
//! * `device`: whether a reserved device gets what its rings need; `agreed`: that this and the bounds of its calls are one answer.
//! * `subjects`: whose response times are asked for; `bounds`: those, in the twin, by `ranks` and by what executors give (`promises`); `linux`: those on Linux; `costs`: what those prove; `observe`: the same, as seen.

mod agreed;
mod bounds;
mod costs;
#[cfg(test)]
mod costs_tests;
mod device;
mod drivers;
mod flows;
mod linux;
#[cfg(test)]
mod linux_tests;
mod observe;
mod packets;
mod promises;
mod ranks;
mod render;
mod sources;
mod subjects;

pub use super::Proposal;
pub use device::{DeviceMargins, DeviceNumbers, DevicePlan};
pub use render::render;

use laxity_model::admission::{Admission, Denial, ExecutorAdmission, Prediction, SlotPlan, Supply};
use laxity_model::analysis::Overflow;
use laxity_model::policy::slots::SlotTable;
use laxity_model::{ActivityId, Enforcer, Grade, Host, Program, Reservation, Span};
use serde::Serialize;

use super::{Bottleneck, FILE_VERSION, Line};
use crate::each_once::each_once;
use crate::machine_file::Known;
use crate::runner::admit::{FurtherReceivers, Ready, ready, ready_for_twin, supply};
use crate::runner::left::Left;
use crate::runner::schedule::{PlannedRun, schedule};
use crate::runner::{On, Progress, RunError, live, proposal, twin};
use crate::scenario::{Resolved, ResolvedVariant, Start};
use linux::Live;

/// What would become of a scenario.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Plan {
    /// The version of this format.
    pub file_version: u32,
    /// The scenario's title.
    pub scenario: String,
    /// What it was planned for.
    pub host: String,
    /// What its bounds count of the costs of the machine. Left out of the JSON where they count none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachinePlan>,
    /// What is to be known of that host, and of what is said for it.
    pub notes: Vec<String>,
    /// By variant.
    pub variants: Vec<VariantPlan>,
}

/// A machine that was measured, as bounds count what it costs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MachinePlan {
    /// Where the machine file has it from.
    pub provenance: String,
    /// That it was measured on another machine, or under another kernel, and in what they differ; none where it was this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<String>,
}

/// What would become of one variant.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct VariantPlan {
    /// Its name.
    pub name: String,
    /// Whether everything it reserves would be granted.
    pub admitted: bool,
    /// Why not: the resource, the amount missing, and what would fit.
    pub refusals: Vec<String>,
    /// What laxity proposes where a reservation is left open, and why: a sentence for each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub proposals: Vec<String>,
    /// The programs that would be executed beside it, as one would type them. Left out of the JSON if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// What comes over its network, and who takes it: a sentence for each flow. Left out of the JSON if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<String>,
    /// Every reservation that is asked for.
    pub requests: Vec<RequestPlan>,
    /// What the executors on which tasks take turns promise them.
    pub executors: Vec<ExecutorPlan>,
    /// Everything that recurs, with a bound, or why there is none: in the twin, where all costs are known, and while a call lasts; on Linux of
    /// what declares its work and has a reservation by the kernel.
    pub lines: Vec<Line>,
    /// Which of them has the least slack as a part of its deadline or is the furthest behind it, and who takes most of its time.
    pub bottleneck: Option<Bottleneck>,
    /// What the bounds rest on, where that is not all known; and what groups may get less than their budgets seem to give.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Whether each modem's reservation gives it what its rings need, of those that have one.
    pub devices: Vec<DevicePlan>,
}

/// What an executor promises to the tasks on it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ExecutorPlan {
    /// Its name.
    pub executor: String,
    /// Who takes turns, each with a deadline of its own.
    pub tasks: Vec<String>,
    /// Who takes turns within the budget of a group: nothing is promised of one of them alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub within_budgets: Vec<String>,
    /// How long each of no group takes at the longest, from the release of the first of its chain, in nanoseconds; none where its policy has no bounds.
    /// Where the grade is not `enforced`, what the machine and those above take of its time is not in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<(String, u64)>,
    /// How firmly its promise holds that all deadlines are met; none where it makes none.
    pub grade: Option<String>,
    /// Why it is not enforced, or not made.
    pub reason: Option<String>,
}

/// What would become of one reservation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RequestPlan {
    /// Who asks.
    pub activity: String,
    /// On which of the program's processors.
    pub processor: u16,
    /// X, in nanoseconds.
    pub service_ns: u64,
    /// Y, in nanoseconds.
    pub period_ns: u64,
    /// Of whom.
    pub enforcer: String,
    /// What each enforcer would make of it, the one that is asked first.
    pub offers: Vec<Offer>,
}

/// What an enforcer would make of a request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Offer {
    /// Who.
    pub enforcer: String,
    /// Whether it could be met.
    pub possible: bool,
    /// How literally X is kept, or why it is not possible.
    pub how: String,
    /// `enforced` or `unenforced`; none where it is not possible.
    pub grade: Option<String>,
    /// Why it would not be enforced: who interferes, or why that cannot be seen.
    pub grade_reason: Option<String>,
    /// The longest time without service that is promised to a holder that never blocks, in nanoseconds.
    pub promised_gap_ns: Option<u64>,
    /// The longest to expect on this machine, in nanoseconds; none where what runs above bounds none.
    pub longest_gap_ns: Option<u64>,
    /// What else is to be known.
    pub notes: Vec<String>,
}

impl Plan {
    /// Whether every variant would be admitted.
    pub fn admitted(&self) -> bool {
        self.variants.iter().all(|variant| variant.admitted)
    }

    /// Whether the twin showed what a bound rules out.
    pub fn is_contradicted(&self) -> bool {
        self.variants.iter().any(VariantPlan::is_contradicted)
    }
}

impl VariantPlan {
    fn is_contradicted(&self) -> bool {
        let firm = self.executors.iter().filter(|executor| executor.is_firm());
        let mut promised = firm.flat_map(|executor| &executor.bounds);
        let is_beyond = |(task, bound_ns): &(String, u64)| {
            let line = self.lines.iter().find(|line| line.name == *task);
            line.is_some_and(|line| line.observed_max_ns > Some(*bound_ns))
        };
        self.lines.iter().any(Line::is_contradicted) || promised.any(is_beyond)
    }
}

impl ExecutorPlan {
    /// Whether nobody can break its promise.
    fn is_firm(&self) -> bool {
        self.grade == Some(Grade::Enforced.to_string())
    }
}

/// Plans all variants that run on this host. To observe is to run each variant once, in the twin only, and to say what that showed of
/// everything that has a line in the plan. On Linux, bounds count what is `known` of the costs of this machine.
///
/// # Errors
///
/// [`RunError::CannotRun`] if the machine has fewer processors than the scenario needs; [`RunError::Nothing`] if no variant runs there;
/// [`RunError::Failed`] if a number is too large to be reckoned with; and where everything is run once, as [`run`](crate::runner::run).
pub fn plan(
    resolved: &Resolved,
    (on, observe): (On, bool),
    known: &Known,
    progress: &mut dyn Progress,
) -> Result<Plan, RunError> {
    let of = supply_of(resolved, on)?;
    plan_for(resolved, of, (on, observe), known, progress)
}

/// The same, for a host of this name that supplies so much.
fn plan_for(
    resolved: &Resolved,
    (host, supply): (String, Supply),
    (on, observe): (On, bool),
    known: &Known,
    progress: &mut dyn Progress,
) -> Result<Plan, RunError> {
    let settled = match on {
        On::Twin { .. } => twin::settled(resolved, &supply)?,
        On::Linux => proposal::settled(resolved, &supply, true, |_| None)?,
    };
    let resolved = &settled.resolved;
    let is_live = on == On::Linux;
    let first = schedule(resolved, is_live)?.into_iter();
    let observed = observe && !is_live;
    let live = is_live.then(|| Live::of(&supply, known));
    let mut variants = Vec::new();
    let (mut admitted, mut notes) = (Vec::new(), None);
    for run in first.filter(|run| run.repeat == 0) {
        if let Some(why) = settled.open.get(&run.variant) {
            variants.push(without_proposal(&resolved.variants[run.variant], why));
            continue;
        }
        // What a run is ahead of is admitted alike, and takes its time.
        let start = if observed { run.start } else { Start::OnHook };
        let run = PlannedRun { start, ..run };
        let ready = match on {
            On::Linux => ready(resolved, run, &FurtherReceivers::new(), &supply)?,
            On::Twin { .. } => ready_for_twin(resolved, run, &supply)?,
        };
        let variant = &resolved.variants[run.variant];
        let twin = on.twin(resolved);
        let mut plan = variant_plan(variant, &ready);
        let too_large = |error: Overflow| RunError::Failed {
            variant: variant.name.clone(),
            reason: error.to_string(),
        };
        let left = Left::of(resolved, run.variant, twin, &supply)?;
        let devices = device::of(&ready, variant, twin, (&supply, &left));
        plan.devices = devices.map_err(too_large)?;
        let bounded = bounds::of(resolved, variant, &ready, (live.as_ref(), &plan));
        (plan.lines, plan.bottleneck) = bounded.map_err(too_large)?;
        plan.heed_lines(twin.is_some());
        plan.proposals = proposal::said(variant);
        let unit = twin.and_then(|twin| twin.unit_of(&plan.refusals));
        let said = live.as_ref().and_then(|live| live.note(&plan));
        plan.notes.extend(unit.into_iter().chain(said));
        notes = notes.or(twin.and_then(|twin| twin.note_on(&ready.admission().program)));
        if observed && ready.answer.is_ok() {
            admitted.push((variants.len(), ready));
        }
        variants.push(plan);
    }
    if observed {
        observe::observe(&mut variants, resolved, admitted, progress)?;
    }
    Ok(Plan {
        file_version: FILE_VERSION,
        scenario: resolved.title.clone(),
        host,
        machine: live.as_ref().and_then(Live::machine_plan),
        notes: notes
            .into_iter()
            .chain(device::note(&variants, on.twin(resolved)))
            .chain(resolved.unused.iter().cloned())
            .collect(),
        variants,
    })
}

fn supply_of(resolved: &Resolved, on: On) -> Result<(String, Supply), RunError> {
    match on {
        On::Twin { .. } => {
            let host = format!("twin {}", resolved.host.profile.machine.name);
            Ok((host, supply(&mut twin::host(resolved), resolved)?))
        }
        On::Linux => {
            let mut host = live::host(resolved)?;
            Ok((host.describe(), supply(&mut host, resolved)?))
        }
    }
}

/// A variant that is not even asked about: what it would reserve is open.
fn without_proposal(variant: &ResolvedVariant, why: &str) -> VariantPlan {
    VariantPlan {
        name: variant.name.clone(),
        refusals: vec![why.to_owned()],
        commands: variant.commands().collect(),
        ..VariantPlan::default()
    }
}

fn variant_plan(variant: &ResolvedVariant, ready: &Ready) -> VariantPlan {
    let (admission, commands) = (ready.admission(), ready.commands());
    // A command is no thread of laxity's own, so that nobody else could reserve for it.
    let of_commands = commands.into_iter().flat_map(|asked| requests(asked, 1));
    let explained = commands.into_iter().flat_map(Admission::explain);
    let first_threads = commands.into_iter().flat_map(first_threads);
    let executors = admission.executors.iter();
    let executors = executors.map(|found| executor_plan(admission, found));
    VariantPlan {
        name: variant.name.clone(),
        admitted: admission.granted() && commands.is_none_or(Admission::granted),
        refusals: admission.explain().into_iter().chain(explained).collect(),
        commands: variant.commands().collect(),
        flows: flows::said(variant),
        requests: requests(admission, 2).chain(of_commands).collect(),
        executors: executors.collect(),
        notes: whole_quanta(&admission.program)
            .into_iter()
            .chain(first_threads)
            .chain(flows::note(variant))
            .collect(),
        ..VariantPlan::default()
    }
}

/// Of commands that reserve something, for whom.
fn first_threads(commands: &Admission) -> impl Iterator<Item = String> {
    let reserving = commands.requests.iter();
    reserving.map(move |request| {
        let name = &commands.asker(request).0.name;
        format!(
            "the reservation of `{name}` is its first thread's alone: what that starts has none"
        )
    })
}

/// Of groups whose budget is a whole number of quanta, that they may get one less.
fn whole_quanta(program: &Program) -> Vec<String> {
    let executors = program.executors();
    let tasks = executors.flat_map(|(executor, _)| program.tasks_on(executor));
    each_once(tasks.filter_map(|(activity, task)| {
        let (group, quantum) = (program.group_of(activity)?, task.longest_region());
        let (name, budget) = (&group.name, group.share.budget());
        let times = budget.as_nanos().checked_div(quantum.as_nanos())?;
        (quantum * times == budget).then(|| {
            format!(
                "the budget of the group `{name}`, {budget}, is {times} times a quantum of {quantum}: each takes a little more than is declared, so that a period may have one less; a little more budget is enough"
            )
        })
    }))
}

/// What is asked for, each with so many offers: of the enforcer that is asked, and of the other.
fn requests(admission: &Admission, offers: usize) -> impl Iterator<Item = RequestPlan> {
    admission.requests.iter().map(move |request| {
        let (activity, asked) = admission.asker(request);
        let both = [
            (asked.enforcer, &request.asked),
            (asked.enforcer.other(), &request.other),
        ];
        let both = both.into_iter().take(offers);
        RequestPlan {
            activity: activity.name.clone(),
            processor: activity.processor.0,
            service_ns: asked.reservation.service().as_nanos(),
            period_ns: asked.reservation.period().as_nanos(),
            enforcer: asked.enforcer.to_string(),
            offers: both
                .map(|(enforcer, answer)| offer(asked.reservation, enforcer, answer))
                .collect(),
        }
    })
}

/// What an enforcer would make of it.
fn offer(asked: Reservation, enforcer: Enforcer, answer: &Result<Prediction, Denial>) -> Offer {
    let found = answer.as_ref().ok();
    Offer {
        enforcer: enforcer.to_string(),
        possible: found.is_some(),
        how: match answer {
            Ok(found) => format!("{} {}", asked.service(), found.keeps),
            Err(denial) => denial.why.to_string(),
        },
        grade: found.map(|found| found.grade.to_string()),
        grade_reason: found.and_then(|found| found.grade.reason().map(str::to_owned)),
        promised_gap_ns: found.map(|found| found.promised_gap.as_nanos()),
        longest_gap_ns: found
            .map(|found| found.longest_gap)
            .filter(|gap| *gap != Span::MAX)
            .map(Span::as_nanos),
        notes: found.map_or_else(Vec::new, |found| found.notes.clone()),
    }
}

fn executor_plan(admission: &Admission, found: &ExecutorAdmission) -> ExecutorPlan {
    let name = |activity: ActivityId| admission.program.activities[activity.index()].name.clone();
    let tasks = admission.program.tasks_on(found.executor);
    let tasks = tasks.map(|(activity, _)| activity);
    let is_single = |activity: &ActivityId| admission.program.group_of(*activity).is_none();
    let (tasks, within_budgets): (Vec<_>, Vec<_>) = tasks.partition(is_single);
    let names = |tasks: Vec<ActivityId>| tasks.into_iter().map(name).collect();
    let bounds = found.bounds.iter();
    let bounds = bounds.map(|(task, bound)| (name(*task), bound.as_nanos()));
    ExecutorPlan {
        executor: name(found.activity),
        tasks: names(tasks),
        within_budgets: names(within_budgets),
        bounds: bounds.collect(),
        grade: found.answer.as_ref().ok().map(ToString::to_string),
        reason: match &found.answer {
            Ok(grade) => grade.reason().map(str::to_owned),
            Err(why) => Some(why.to_string()),
        },
    }
}

/// The table in which an activity has slots, and as which owner.
fn slots_of(plans: &[SlotPlan], holder: ActivityId) -> Option<(&SlotTable, usize)> {
    plans.iter().find_map(|plan| {
        let owner = plan.owners.iter().position(|owner| *owner == holder)?;
        Some((&plan.table, owner))
    })
}
