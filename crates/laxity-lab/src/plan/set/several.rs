//! A set on several processors, were all its tasks free to go on any of them: what the usual heuristics, global earliest deadline first and
//! the kernel's admission make of it.
//!
//! What is planned is what [`place`](super::place) decides; this stands below it, to compare.

use std::num::NonZeroU16;

use laxity_model::analysis::multiprocessor::{
    DeadlineRequest, Fit, KernelLimits, Order, Partitioning, Tardiness, edf_guarantee, global_edf,
    kernel_admits, partition, rate_monotonic_guarantee, tardiness,
};
use laxity_model::analysis::supply::SupplyBound;
use laxity_model::analysis::{Doubt, Fraction, Overflow, Task, Verdict};
use serde::Serialize;

use super::attempt::{Answer, Member, Method, accepts, is_whole, known, methods};
use super::place::{load_ppm_of, share};
use super::verdicts::{GLOBAL_EDF, KERNEL};
use super::{Scheduler, TestPlan};
use crate::import::Policy;

/// Each in decreasing order of utilization.
pub(super) const FITS: [(&str, Fit); 3] = [
    ("first fit", Fit::First),
    ("best fit", Fit::Best),
    ("worst fit", Fit::Worst),
];

/// A set on several processors, none of its tasks bound to one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SeveralPlan {
    /// How many.
    pub processors: u16,
    /// Σ C/T, in parts per million of one processor, rounded up.
    pub utilization_ppm: u64,
    /// What a processor was tested by: one of these must admit what is on it.
    pub tests: Vec<String>,
    /// Whether the file gives priorities or reservations that these tests do not ask for.
    pub ignores_policies: bool,
    /// What each heuristic finds, the most demanding tasks placed first.
    pub partitionings: Vec<PartitionPlan>,
    /// A set of the same kind with no more utilization than this is surely placed by each of the three, in parts per million of one
    /// processor, rounded down.
    pub guaranteed_ppm: Option<u64>,
    /// Whether this set has no more than that.
    pub is_guaranteed: bool,
    /// Why there is no guarantee.
    pub no_guarantee: Option<String>,
    /// Whether global earliest deadline first misses no deadline.
    pub global_edf: TestPlan,
    /// How long after their deadlines jobs are complete at most under global earliest deadline first, by task; empty if there is no bound.
    pub tardiness: Vec<TardinessPlan>,
    /// Why there is none.
    pub no_tardiness: Option<String>,
    /// Whether the kernel lets all reservations by deadline in: those of the file, or where it has none, one for each task.
    pub kernel: TestPlan,
    /// Who is not looked at, for nothing is known of its work.
    pub left_out: Vec<String>,
}

/// What a heuristic finds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PartitionPlan {
    /// Its name.
    pub heuristic: String,
    /// By processor, who is placed there. All of them, if there is no misfit.
    pub processors: Vec<Vec<String>>,
    /// The first task that fits nowhere.
    pub misfit: Option<MisfitPlan>,
}

/// A task that fits on no processor.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MisfitPlan {
    /// Whose name this is.
    pub task: String,
    /// Where most of it would fit; none if not even a nanosecond does.
    pub processor: Option<u16>,
    /// The largest C with which it fits there, in nanoseconds.
    pub largest_cost_ns: Option<u64>,
    /// How much less than its own that is, in nanoseconds.
    pub missing_ns: Option<u64>,
}

/// How late a task may be.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TardinessPlan {
    /// Whose jobs.
    pub task: String,
    /// After the deadline at most, in nanoseconds; zero: it is never missed.
    pub tardiness_ns: u64,
}

/// Looks at a set on so many processors; `None` if there is only one, or nothing is known of any task.
pub(super) fn plan(
    members: &[Member],
    processors: u16,
    scheduler: Scheduler,
    supply: &dyn SupplyBound,
) -> Result<Option<SeveralPlan>, Overflow> {
    let many = NonZeroU16::new(processors).filter(|count| count.get() > 1);
    let (indices, tasks) = known(members);
    let names = indices.iter().map(|index| members[*index].name.as_str());
    let names = names.collect();
    let Some(processors) = many.filter(|_| !tasks.is_empty()) else {
        return Ok(None);
    };
    let set = Set {
        members,
        names,
        tasks,
        processors,
        supply,
    };
    let (methods, ignores_policies) = blind_methods(members, scheduler);
    let mut partitionings = Vec::new();
    for (name, fit) in FITS {
        partitionings.push(set.partition(name, fit, &methods)?);
    }
    let guarantee = set.guarantee(&methods);
    let (tardiness, no_tardiness) = set.tardiness()?;
    let unknown = members.iter().filter(|member| member.work.is_err());
    Ok(Some(SeveralPlan {
        processors: processors.get(),
        utilization_ppm: utilization_ppm(&set.tasks),
        tests: methods.iter().map(|method| method.name().into()).collect(),
        ignores_policies,
        partitionings,
        guaranteed_ppm: guarantee.as_ref().ok().map(|bound| ppm_down(*bound)),
        is_guaranteed: guarantee
            .as_ref()
            .is_ok_and(|bound| bound.compare_sum(shares(&set.tasks)).is_le()),
        no_guarantee: guarantee.err().map(str::to_owned),
        global_edf: set.global_edf()?,
        tardiness,
        no_tardiness,
        kernel: set.kernel(),
        left_out: unknown.map(|member| member.name.clone()).collect(),
    }))
}

/// The tests for a processor. A heuristic sees tasks and nothing besides, so where the file gives priorities, those by deadline
/// stand for them; and where it has nothing but reservations by deadline, earliest deadline first. And whether that was so.
fn blind_methods(members: &[Member], scheduler: Scheduler) -> (Vec<Method>, bool) {
    let by_deadline = |member: &Member| matches!(member.policy, Policy::Deadline(_));
    match methods(members, scheduler).as_slice() {
        [Method::AsGiven] if members.iter().all(by_deadline) => (vec![Method::Edf], true),
        [Method::AsGiven] => (vec![Method::Monotonic], true),
        asked => (asked.to_vec(), false),
    }
}

struct Set<'a> {
    members: &'a [Member],
    /// Of those of whom something is known.
    names: Vec<&'a str>,
    /// Likewise.
    tasks: Vec<Task>,
    processors: NonZeroU16,
    supply: &'a dyn SupplyBound,
}

impl Set<'_> {
    fn partition(
        &self,
        heuristic: &str,
        fit: Fit,
        methods: &[Method],
    ) -> Result<PartitionPlan, Overflow> {
        let test = |tasks: &[Task]| {
            for method in methods {
                if accepts(*method, tasks, self.supply)? == Answer::Admits {
                    return Ok(Verdict::Schedulable);
                }
            }
            Ok(Verdict::Unknown(Doubt::Sufficient))
        };
        let found = partition(&self.tasks, self.processors, fit, Order::Decreasing, test)?;
        let (homes, misfit) = match found {
            Partitioning::Fits(homes) => (homes.into_iter().map(Some).collect(), None),
            Partitioning::DoesNotFit(misfit) => (misfit.placed.clone(), Some(misfit)),
        };
        let mut processors = vec![Vec::new(); usize::from(self.processors.get())];
        for (name, home) in self.names.iter().zip::<Vec<Option<u16>>>(homes) {
            if let Some(home) = home {
                processors[usize::from(home)].push((*name).to_owned());
            }
        }
        Ok(PartitionPlan {
            heuristic: heuristic.into(),
            processors,
            misfit: misfit.map(|misfit| MisfitPlan {
                task: self.names[misfit.task].into(),
                processor: misfit.nearest.map(|nearest| nearest.processor),
                largest_cost_ns: misfit.nearest.map(|nearest| nearest.cost.as_nanos()),
                missing_ns: misfit.nearest.map(|nearest| nearest.missing.as_nanos()),
            }),
        })
    }

    /// Up to which utilization a set surely fits, in decreasing order: the same for all three heuristics.
    fn guarantee(&self, methods: &[Method]) -> Result<Fraction, &'static str> {
        if !is_whole(self.supply) {
            return Err(OF_THEIR_OWN);
        }
        let simple = |task: &Task| {
            task.deadline() == task.period() && task.jitter().is_zero() && task.blocking().is_zero()
        };
        if !self.tasks.iter().all(simple) {
            return Err(
                "it is for tasks that are due by their periods, preemptible anywhere, without jitter",
            );
        }
        if shares(&self.tasks).any(|share| share > Fraction::ONE) {
            return Err("one task alone is more than a processor");
        }
        let of_each = FITS.map(|(_, fit)| {
            if methods.contains(&Method::Edf) {
                let largest = shares(&self.tasks).max().unwrap_or(Fraction::ONE);
                return Some(edf_guarantee(
                    fit,
                    Order::Decreasing,
                    self.processors,
                    largest,
                ));
            }
            let by_deadline = methods.contains(&Method::Monotonic);
            let count = self.tasks.len();
            rate_monotonic_guarantee(fit, Order::Decreasing, self.processors, count)
                .filter(|_| by_deadline)
        });
        // The least of the three, whatever they are.
        let least = of_each.into_iter().reduce(|a, b| Some(a?.min(b?)));
        least.flatten().ok_or("none is known for this test")
    }

    fn global_edf(&self) -> Result<TestPlan, Overflow> {
        let (verdict, detail) = if is_whole(self.supply) {
            match global_edf(&self.tasks, self.processors)? {
                Verdict::Schedulable => ("admits", "no deadline is missed"),
                Verdict::NotSchedulable(_) => ("refuses", ""),
                Verdict::Unknown(Doubt::OutOfScope) => (
                    "not applicable",
                    "it is for tasks that are due by their periods or before, preemptible anywhere, without jitter",
                ),
                Verdict::Unknown(_) => (
                    "cannot tell",
                    "the sum of C/D is more than m - (m - 1) times the largest; that need not mean that a deadline is missed",
                ),
            }
        } else {
            ("not applicable", OF_THEIR_OWN)
        };
        Ok(TestPlan::new(GLOBAL_EDF, verdict, detail))
    }

    fn tardiness(&self) -> Result<(Vec<TardinessPlan>, Option<String>), Overflow> {
        if !is_whole(self.supply) {
            return Ok((Vec::new(), Some(OF_THEIR_OWN.into())));
        }
        let none = |why: &str| Ok((Vec::new(), Some(why.to_owned())));
        match tardiness(&self.tasks, self.processors)? {
            Tardiness::Bounded(bounds) => {
                let pairs = self.names.iter().zip(bounds);
                let lines = pairs.map(|(name, bound)| TardinessPlan {
                    task: (*name).to_owned(),
                    tardiness_ns: bound.as_nanos(),
                });
                Ok((lines.collect(), None))
            }
            Tardiness::Unbounded => {
                none("the tasks ask for more than there is: jobs get later and later")
            }
            Tardiness::Unknown(_) => none(
                "the bound is for tasks that are due by their periods, preemptible anywhere, without jitter",
            ),
        }
    }

    /// The reservations of the file; if it has none, C every T for each task, due by the earlier of D and T.
    fn kernel(&self) -> TestPlan {
        let given = self.members.iter().filter_map(|member| {
            let request = member.policy.reservation()?;
            Some((member.name.as_str(), request))
        });
        let mut asking: Vec<(&str, DeadlineRequest)> = given.collect();
        let whose = if asking.is_empty() {
            let each = self.names.iter().zip(&self.tasks).map(|(name, task)| {
                let request = DeadlineRequest {
                    runtime: task.cost(),
                    deadline: task.deadline().min(task.period()),
                    period: task.period(),
                };
                (*name, request)
            });
            asking = each.collect();
            "a reservation of C every T for each task"
        } else {
            "the reservations of the file"
        };
        let requests: Vec<DeadlineRequest> = asking.iter().map(|(_, request)| *request).collect();
        let limits = KernelLimits::WITH_FAIR_SERVER;
        let (verdict, detail) = match kernel_admits(&requests, self.processors, &limits) {
            Ok(booked) => {
                let of = limits.capacity(self.processors);
                let of = of.map_or_else(String::new, |capacity| format!(" of {capacity}"));
                ("admits", format!("{whose}: {booked}{of} booked"))
            }
            Err((index, refusal)) => (
                "refuses",
                format!("{whose}: `{}` gets {refusal}", asking[index].0),
            ),
        };
        TestPlan::new(KERNEL, verdict, detail)
    }
}

const OF_THEIR_OWN: &str = "it is for processors of their own";

/// C/T of each.
fn shares(tasks: &[Task]) -> impl Iterator<Item = Fraction> + Clone {
    tasks.iter().map(share)
}

/// In parts per million, rounded down: for what is guaranteed.
fn ppm_down(fraction: Fraction) -> u64 {
    let ppm = u128::from(fraction.numerator()) * 1_000_000 / u128::from(fraction.denominator());
    u64::try_from(ppm).unwrap_or(u64::MAX)
}

fn utilization_ppm(tasks: &[Task]) -> u64 {
    let ppm = tasks.iter().map(load_ppm_of);
    ppm.fold(0, u64::saturating_add)
}
