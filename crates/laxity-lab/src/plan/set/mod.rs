//! What would become of a task set: besides its lines, what each test says, how much could be added, and for a set that is refused the nearest
//! ones that are not.
//!
//! [`plan`] does all of that for a [`TaskSet`]; [`render`] is for people, the plan's own fields for programs.
//!
//! * `place`: which processor a task goes to, and `search`: the same to the end; `several`: what else could be done with several; `attempt`: one processor under one scheduler;
//!   `budgets`: what it has by `SCHED_DEADLINE`; `global`: threads of `SCHED_DEADLINE`, which are on all processors.
//! * `verdicts`: what each test of the library says; `advice`: margins, and the nearest sets that are admitted; `most`: the search for them; `effort`: how much is
//!   looked at.
//! * `observe`: the set in the twin; `reservations`: which would do.

mod advice;
mod attempt;
mod budgets;
mod by_turns;
mod effort;
mod global;
mod most;
mod observe;
mod place;
mod processor;
mod render;
mod reservations;
mod search;
mod several;
mod verdicts;

pub use render::render;
pub use several::{MisfitPlan, PartitionPlan, SeveralPlan, TardinessPlan};

use laxity_model::analysis::Overflow;
use laxity_model::analysis::supply::{Dedicated, ExplicitDeadline, KernelDeadline, SupplyBound};
use laxity_model::{Reservation, Span};
use serde::Serialize;

use super::{Bottleneck, Deadline, FILE_VERSION, Line, Proposal, enforced};
use crate::import::{Policy, SetTask, TaskSet};
use attempt::Member;
use global::Global;

/// Who is to schedule a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Scheduler {
    /// As the file says; where it does not, the first that admits the set of: priorities by deadline, the best priorities, earliest
    /// deadline first.
    #[default]
    Auto,
    /// Fixed priorities: those of the file, where it gives all; else the first that admits the set of: by deadline, the best.
    FixedPriority,
    /// Earliest deadline first.
    Edf,
    /// Rate monotonic with delayed preemption (Gopalakrishnan, Parulkar, "Real-time Upcalls", §5), admitted as an executor of that policy does.
    Rmdp,
}

/// What a set runs on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Supply {
    /// A processor of its own.
    #[default]
    Dedicated,
    /// A reservation by slots on each processor: X at any distance of Y.
    Slots(Reservation),
    /// A reservation by `SCHED_DEADLINE` on each processor, whose budgets the kernel looks at so often; zero: at once.
    Deadline(Reservation, Span),
}

/// How to plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Who schedules.
    pub scheduler: Scheduler,
    /// What the set runs on.
    pub supply: Supply,
    /// How many processors there are; `None`: as many as the file names, at least one.
    pub processors: Option<u16>,
    /// Whether to look in the twin.
    pub observe: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            scheduler: Scheduler::Auto,
            supply: Supply::Dedicated,
            processors: None,
            observe: true,
        }
    }
}

/// Why there is no plan.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PlanError {
    /// Numbers too large.
    #[error("{0}")]
    Overflow(#[from] Overflow),
    /// A task is on a processor that there is not.
    #[error("`{task}` is on processor {processor}, and there are {processors}; the first is 0")]
    NoSuchProcessor {
        /// Whose.
        task: String,
        /// Where.
        processor: u16,
        /// How many there are.
        processors: u16,
    },
}

/// What would become of a task set.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SetPlan {
    /// The version of this format.
    pub file_version: u32,
    /// The file's name.
    pub file: String,
    /// `CSV` or `rt-app`.
    pub format: String,
    /// What it runs on, in words.
    pub supply: String,
    /// Whether all processors admit what is on them: all deadlines are met, but for those of [`ProcessorPlan::unpromised`].
    pub admitted: bool,
    /// Whether that cannot be told, and nothing is refused: see [`ProcessorPlan::unknown`]. Left out of the JSON if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unknown: bool,
    /// Whether the file has timesharing tasks alone, and this is what they would have in real time: as they are, nothing is promised to any, and
    /// [`ProcessorPlan::unpromised`] has all of those that are admitted. Left out of the JSON if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub as_if_real_time: bool,
    /// By processor.
    pub processors: Vec<ProcessorPlan>,
    /// On several processors: what other ways of using them would give, were all tasks free to go on any.
    pub on_several: Option<SeveralPlan>,
    /// What else is to be known, each a sentence.
    pub notes: Vec<String>,
}

impl SetPlan {
    /// Whether the twin showed what a bound rules out.
    pub fn is_contradicted(&self) -> bool {
        let mut lines = self.processors.iter().flat_map(|one| &one.lines);
        lines.any(Line::is_contradicted)
    }
}

/// What would become of one processor's tasks.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct ProcessorPlan {
    /// Which; none: all of them, for threads of `SCHED_DEADLINE`, which the kernel binds to none.
    pub processor: Option<u16>,
    /// Σ C/T, in parts per million of a processor, rounded up; of a reservation by deadline, what is reserved.
    pub utilization_ppm: u64,
    /// Whether they are admitted. On one processor: whether all that are promised something meet their deadlines; on all of them: whether the
    /// kernel lets the reservations in, and all responses have a bound, which may be beyond the deadline (see [`Line::slack_ns`]).
    pub admitted: bool,
    /// Of tasks that are admitted, those that are not of real time, and so are promised nothing: that none of them is surely late is all that is
    /// known. Left out of the JSON if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unpromised: Vec<String>,
    /// Whether that cannot be told: the file does not say what some tasks do, and those of which it does would be admitted without them; or
    /// what would have to be searched is too long. Left out of the JSON if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unknown: bool,
    /// By which test; the one that was tried first if by none.
    pub test: String,
    /// The tasks, the most urgent first where priorities are fixed.
    pub lines: Vec<Line>,
    /// What each test says.
    pub tests: Vec<TestPlan>,
    /// Whose work the tests know nothing of: what they say is of the others. Left out of the JSON if they know of all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tests_without: Vec<String>,
    /// Whom the set fails on, or would first.
    pub bottleneck: Option<Bottleneck>,
    /// All costs times this, in parts per million, rounded down to 0.1 %, are admitted, each task's own reservation as it is. `None` if no such
    /// factor was found.
    pub scale_ppm: Option<u64>,
    /// Whether the next larger factor, by 0.1 %, is not admitted; else it was not searched to the end.
    pub scale_is_exact: bool,
    /// The test by which that factor and the largest costs are admitted, and larger ones are not, where another test that would be asked then might
    /// admit them. Left out of the JSON where there is no other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margins_by: Option<String>,
    /// What was looked for in vain or not at all: margins, sets that would be admitted, regions; each a phrase.
    pub left_out: Vec<String>,
    /// For a set that is refused, the nearest ones that are not; each was tested.
    pub nearest: Vec<Change>,
    /// On a reservation: the least ones of its kind that admit these tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservations: Option<ReservationsPlan>,
    /// How the twin was looked at, or why not.
    pub observed: String,
}

impl ProcessorPlan {
    /// Takes back what is said of tasks that are not of real time, as if they were.
    fn promise_nothing(&mut self) {
        if self.admitted {
            let names = self.lines.iter().map(|line| line.name.clone());
            self.unpromised = names.collect();
        }
        for line in &mut self.lines {
            if line.deadline == Some(Deadline::Met) {
                line.deadline = Some(Deadline::NotKnown);
                if line.bound_ns.is_none() {
                    line.no_bound = Some("it is timesharing: nothing is promised to it".to_owned());
                }
            }
        }
    }

    /// Where it cannot be told whether a set is admitted, a bound beyond a deadline does not tell either; and where all would be admitted of whom
    /// something is known, nobody knows how much could be added to the whole.
    fn doubt(&mut self) {
        if !self.unknown {
            return;
        }
        let has_margins = self.scale_ppm.is_some_and(|scale| scale >= 1_000_000);
        for line in &mut self.lines {
            if line.deadline == Some(Deadline::CanBeMissed) {
                line.deadline = Some(Deadline::NotKnown);
            }
            if has_margins {
                (line.largest_cost_ns, line.largest_cost_is_exact) = (None, false);
                line.longest_region_ns = None;
            }
        }
        if has_margins {
            (self.scale_ppm, self.scale_is_exact) = (None, false);
            self.margins_by = None;
            let why = "margins: there are none of tasks of which not all is known";
            self.left_out.push(why.into());
        }
    }
}

/// The least reservations that admit a processor's tasks, X in multiples of 0.05 ms; each was tested.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct ReservationsPlan {
    /// The period that was asked about, in nanoseconds.
    pub period_ns: u64,
    /// The least X at that, in nanoseconds; none if no X was found that does.
    pub least_service_ns: Option<u64>,
    /// The one with the least share of a processor, that period and those of whole milliseconds up to 32 considered.
    pub cheapest: Option<Proposal>,
}

/// What a test says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TestPlan {
    /// Its name.
    pub test: String,
    /// `admits`, `refuses`, `cannot tell`, or `not applicable`.
    pub verdict: String,
    /// Why, or whom it fails on.
    pub detail: String,
}

impl TestPlan {
    fn new(test: &str, verdict: &str, detail: impl Into<String>) -> Self {
        Self {
            test: test.into(),
            verdict: verdict.into(),
            detail: detail.into(),
        }
    }
}

/// A change after which a set is admitted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Change {
    /// What to change, as a sentence. What a task reserves itself is cut along, and the sentence says so.
    pub text: String,
    /// All tasks of which something is known, as they then are.
    pub tasks: Vec<ChangedTask>,
    /// The test that then admits them.
    pub test: String,
}

/// A task of a changed set, all of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ChangedTask {
    /// Its name.
    pub name: String,
    /// C, in nanoseconds.
    pub cost_ns: u64,
    /// T, in nanoseconds.
    pub period_ns: u64,
    /// D after the arrival, in nanoseconds.
    pub deadline_ns: u64,
    /// J, in nanoseconds.
    pub jitter_ns: u64,
    /// Its longest non-preemptive region, in nanoseconds; none if it can be preempted anywhere.
    pub region_ns: Option<u64>,
    /// The region after its last preemption point, in nanoseconds; none if that can lie anywhere.
    pub last_region_ns: Option<u64>,
    /// What it reserves by `SCHED_DEADLINE`, if it does.
    pub reservation: Option<ReservationPlan>,
}

/// A reservation by `SCHED_DEADLINE`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct ReservationPlan {
    /// So much in each period, in nanoseconds.
    pub runtime_ns: u64,
    /// The period, in nanoseconds.
    pub period_ns: u64,
    /// Within this after the period's beginning, in nanoseconds.
    pub deadline_ns: u64,
}

/// Plans a set.
///
/// # Errors
///
/// See [`PlanError`].
pub fn plan(set: &TaskSet, options: &Options) -> Result<SetPlan, PlanError> {
    let supply = options.supply.bound()?;
    let count = place::count(set, options)?;
    let members = place::members(set, count);
    let mut notes = set.notes.clone();
    let as_if_real_time = all_timesharing(set);
    notes.extend(as_if_real_time.then(|| AS_IF.to_owned()));
    let on_several = several::plan(&members, count, options.scheduler, &*supply)?;
    let global = global::plan(&members, count, options, &*supply)?;
    notes.extend(pinned(set, global.is_some()));
    notes.extend(budgets::without_margin(&members));
    let left: &dyn SupplyBound = match &global {
        Some(Global { left: Ok(left), .. }) => left,
        _ => &*supply,
    };
    let is_global = |member: &Member| global::is_global(member, options.scheduler, count);
    let placed = place::place(set, &members, (count, options.scheduler), is_global, left)?;
    notes.extend(placed.notes);
    let mut processors: Vec<ProcessorPlan> =
        global.iter().map(|global| global.plan.clone()).collect();
    let below = Options {
        observe: options.observe && global.is_none(),
        ..*options
    };
    for (number, mut members) in (0_u16..).zip(placed.processors) {
        if members.is_empty() {
            continue;
        }
        if let Some(Err(why)) = global.as_ref().map(|global| &global.left) {
            no_bounds(&mut members, why);
        }
        let mut found = processor::plan(number, &members, &below, left)?;
        if let Some(global) = &global {
            found.observed.clone_from(&global.plan.observed);
            // That nothing is left for them is no gap in the file.
            found.unknown &= global.left.is_ok();
        }
        found.unknown |= placed.is_open && !found.admitted;
        processors.push(found);
    }
    processors.iter_mut().for_each(ProcessorPlan::doubt);
    if as_if_real_time {
        processors
            .iter_mut()
            .for_each(ProcessorPlan::promise_nothing);
    }
    let admitted = processors.iter().all(|processor| processor.admitted);
    let mut all = processors.iter();
    Ok(SetPlan {
        file_version: FILE_VERSION,
        file: set.file.clone(),
        format: set.format.name().into(),
        supply: options.supply.words(processors.len()),
        admitted,
        unknown: !admitted && all.all(|processor| processor.admitted || processor.unknown),
        as_if_real_time,
        processors,
        on_several,
        notes,
    })
}

/// That a file binds threads of `SCHED_DEADLINE` to a processor, which the kernel does not.
fn pinned(set: &TaskSet, is_global: bool) -> Option<String> {
    let is_pinned =
        |task: &&SetTask| matches!(task.policy, Policy::Deadline(_)) && task.processor().is_some();
    let task = set.tasks.iter().find(is_pinned)?;
    let taken = if is_global {
        "it is taken to run on any"
    } else {
        "this plan is for a root domain of that processor alone: a machine with no other, or an exclusive cpuset"
    };
    Some(format!(
        "`{}` is bound to a processor, and the kernel refuses SCHED_DEADLINE (EPERM) to a thread that may not run on all processors of its root domain; {taken}",
        task.name
    ))
}

/// That nothing is known of those that threads without bounds may delay.
fn no_bounds(members: &mut [Member], why: &str) {
    for member in members {
        if member.policy != Policy::Timesharing && member.work.is_ok() {
            member.work = Err(why.to_owned());
        }
    }
}

const AS_IF: &str = "all tasks are timesharing: as they are, nothing is promised to them; this is what they would have in real time";

/// Whether a file gives no task any right.
fn all_timesharing(set: &TaskSet) -> bool {
    set.tasks
        .iter()
        .all(|task| task.policy == Policy::Timesharing)
}

impl Supply {
    fn bound(self) -> Result<Box<dyn SupplyBound>, PlanError> {
        Ok(match self {
            Self::Dedicated => Box::new(Dedicated),
            Self::Slots(reservation) => Box::new(ExplicitDeadline::continuous(reservation)),
            Self::Deadline(reservation, tick) => {
                Box::new(KernelDeadline::among_others(reservation, tick)?)
            }
        })
    }

    /// What another reservation of this kind is worth; `None` where there is none.
    fn of(self, reservation: Reservation) -> Option<Box<dyn SupplyBound>> {
        let other = match self {
            Self::Dedicated => return None,
            Self::Slots(_) => Self::Slots(reservation),
            Self::Deadline(_, tick) => Self::Deadline(reservation, tick),
        };
        other.bound().ok()
    }

    const fn reservation(self) -> Option<Reservation> {
        match self {
            Self::Dedicated => None,
            Self::Slots(reservation) | Self::Deadline(reservation, _) => Some(reservation),
        }
    }

    /// On so many processors.
    fn words(self, processors: usize) -> String {
        match self {
            Self::Dedicated if processors > 1 => format!("{processors} processors of its own"),
            Self::Dedicated => "a processor of its own".into(),
            Self::Slots(reservation) => format!("{reservation} by slots"),
            Self::Deadline(reservation, tick) => {
                format!("{reservation} by deadline, {}", enforced(tick))
            }
        }
    }
}
