//! What would become of a task set: which test admits it, how long each task's jobs take at most and how long they took in the twin, what is
//! short, how much could be added, and for a set that is refused the nearest ones that are not.
//!
//! [`plan`] does all of that for a [`TaskSet`]; [`render`] is for people, the plan's own fields for programs.
//!
//! * `place`: which processor a task goes to; `several`: what else could be done with several; `attempt`: one processor under one scheduler.
//! * `tests`: what each test of the library says; `advice`: margins, and the nearest sets that are admitted.
//! * `observe`: the set in the twin.

mod advice;
mod attempt;
mod observe;
mod place;
mod processor;
mod render;
mod several;
mod tests;

pub(crate) use attempt::why_unknown;
pub(crate) use processor::slack_ns;

pub use render::render;
pub use several::{MisfitPlan, PartitionPlan, SeveralPlan, TardinessPlan};

use laxity_model::analysis::Overflow;
use laxity_model::analysis::supply::{Continuous, Dedicated, KernelDeadline, SupplyBound};
use laxity_model::{Reservation, Span};
use serde::Serialize;

use crate::import::{Policy, TaskSet};

/// The version of the format of plans.
pub const FILE_VERSION: u32 = 2;

/// Who is to schedule a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Scheduler {
    /// As the file says; where it does not, the first that admits the set of: priorities by deadline, the best priorities, earliest
    /// deadline first.
    #[default]
    Auto,
    /// Fixed priorities: those of the file, or by deadline.
    FixedPriority,
    /// Earliest deadline first.
    Edf,
    /// Rate monotonic with delayed preemption, admitted by its paper's own test (Gopalakrishnan, Parulkar, "Real-time Upcalls", §5).
    Rmdp,
}

/// Who enforces the reservation in which a set runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Kind {
    /// Time slots: X in every window of Y.
    #[default]
    Slots,
    /// `SCHED_DEADLINE`: X in every period, and late by what the kernel's tick makes it.
    Deadline {
        /// How often the kernel looks at budgets; zero: at once.
        tick: Span,
    },
}

/// What a set runs on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Supply {
    /// A processor of its own.
    #[default]
    Dedicated,
    /// A reservation on each processor.
    Reserved(Reservation, Kind),
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
    /// Whether all processors admit what is on them.
    pub admitted: bool,
    /// By processor.
    pub processors: Vec<ProcessorPlan>,
    /// On several processors: what other ways of using them would give, were all tasks free to go on any.
    pub on_several: Option<SeveralPlan>,
    /// What else is to be known, each a sentence.
    pub notes: Vec<String>,
}

/// What would become of one processor's tasks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ProcessorPlan {
    /// Which.
    pub processor: u16,
    /// Σ C/T, in parts per million of the processor, rounded up.
    pub utilization_ppm: u64,
    /// Whether they are admitted.
    pub admitted: bool,
    /// By which test; the one that was tried first if by none.
    pub test: String,
    /// The tasks, the most urgent first where priorities are fixed.
    pub tasks: Vec<TaskPlan>,
    /// What each test says.
    pub tests: Vec<TestPlan>,
    /// Whom the set fails on, or would first.
    pub bottleneck: Option<Bottleneck>,
    /// All costs times this, in parts per million, rounded down to 0.1 %: the largest that is admitted. `None` if none is.
    pub scale_ppm: Option<u64>,
    /// Why margins are missing, of single tasks or all.
    pub no_margins: Option<String>,
    /// For a set that is refused, the nearest ones that are not; each was tested.
    pub nearest: Vec<Change>,
    /// How the twin was looked at, or why not.
    pub observed: String,
}

/// One task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TaskPlan {
    /// Its name.
    pub name: String,
    /// How it is scheduled, in words: `12`, `deadline 2ms/8ms`, `other`.
    pub priority: String,
    /// C, in nanoseconds; none where it cannot be told.
    pub cost_ns: Option<u64>,
    /// T, in nanoseconds.
    pub period_ns: Option<u64>,
    /// D after the arrival, in nanoseconds.
    pub deadline_ns: Option<u64>,
    /// C/T in parts per million, rounded up.
    pub utilization_ppm: Option<u64>,
    /// From arrival to completion at most, in nanoseconds.
    pub bound_ns: Option<u64>,
    /// Why there is no bound.
    pub no_bound: Option<String>,
    /// D less the bound, in nanoseconds; below zero if the deadline can be missed.
    pub slack_ns: Option<i64>,
    /// The longest seen in the twin, in nanoseconds.
    pub observed_max_ns: Option<u64>,
    /// So many jobs were seen complete.
    pub observed_jobs: u64,
    /// The largest C with which the set is admitted, all else as it is, in nanoseconds, rounded down to three digits.
    pub largest_cost_ns: Option<u64>,
    /// The longest non-preemptive region of this task that all others tolerate, all else as it is, in nanoseconds.
    pub longest_region_ns: Option<u64>,
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

/// Who is closest to its deadline, or furthest behind it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Bottleneck {
    /// Whose deadline.
    pub task: String,
    /// Who takes most of its time: another task, or itself.
    pub contributor: String,
    /// How much of it, in nanoseconds.
    pub contribution_ns: u64,
}

/// A change after which a set is admitted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Change {
    /// What to change, as a sentence.
    pub text: String,
    /// Every task's cost and period with it, in nanoseconds, in the order of [`ProcessorPlan::tasks`] without those of which nothing is known.
    pub costs_ns: Vec<u64>,
    /// See [`Self::costs_ns`].
    pub periods_ns: Vec<u64>,
    /// The test that then admits it.
    pub test: String,
}

/// Plans a set.
///
/// # Errors
///
/// See [`PlanError`].
pub fn plan(set: &TaskSet, options: &Options) -> Result<SetPlan, PlanError> {
    let supply = options.supply.bound()?;
    let placed = place::place(set, options, &*supply)?;
    let mut notes = set.notes.clone();
    if all_timesharing(set) {
        notes.push(
            "all tasks are timesharing: as they are, nothing is promised to them; this is what they would have in real time"
                .into(),
        );
    }
    notes.extend(placed.notes);
    let count = u16::try_from(placed.processors.len()).unwrap_or(u16::MAX);
    let on_several = several::plan(&placed.members, count, options.scheduler, &*supply)?;
    let mut processors = Vec::new();
    for (number, members) in (0_u16..).zip(placed.processors) {
        if !members.is_empty() {
            processors.push(processor::plan(number, &members, options, &*supply)?);
        }
    }
    Ok(SetPlan {
        file_version: FILE_VERSION,
        file: set.file.clone(),
        format: set.format.name().into(),
        supply: options.supply.words(),
        admitted: processors.iter().all(|processor| processor.admitted),
        processors,
        on_several,
        notes,
    })
}

/// Whether a file gives no task any right.
fn all_timesharing(set: &TaskSet) -> bool {
    set.tasks
        .iter()
        .all(|task| task.policy == Policy::Timesharing)
}

impl Supply {
    fn bound(self) -> Result<Box<dyn SupplyBound>, PlanError> {
        let Self::Reserved(reservation, kind) = self else {
            return Ok(Box::new(Dedicated));
        };
        match kind {
            Kind::Slots => Ok(Box::new(Continuous::new(reservation))),
            Kind::Deadline { tick } => {
                let supply = KernelDeadline::among_others(reservation, tick)?;
                Ok(Box::new(supply))
            }
        }
    }

    fn words(self) -> String {
        match self {
            Self::Dedicated => "a processor of its own".into(),
            Self::Reserved(reservation, Kind::Slots) => format!("{reservation} by slots"),
            Self::Reserved(reservation, Kind::Deadline { tick }) if tick.is_zero() => {
                format!("{reservation} by deadline, enforced at once")
            }
            Self::Reserved(reservation, Kind::Deadline { tick }) => {
                format!("{reservation} by deadline, enforced every {tick}")
            }
        }
    }
}
