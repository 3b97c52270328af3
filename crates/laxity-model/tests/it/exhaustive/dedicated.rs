//! What the tests of fixed priorities and of earliest deadline first say of a dedicated processor, against all phasings.

use laxity_model::Span;
use laxity_model::analysis::supply::{Dedicated, SupplyBound};
use laxity_model::analysis::{
    Doubt, Response, Task, Verdict, Witness, edf, fixed_priority, utilization,
};
use rand::SeedableRng;
use rand_pcg::Pcg64;

use crate::exhaustive::explore::{
    Policy, Responses, dense, horizon, machine_against, misses, sample, worst_dedicated,
};
use crate::exhaustive::machine::{Machine, Seen, Until};
use crate::exhaustive::set::{MOST_TASKS, Spec, load, tasks};
use crate::exhaustive::tally::Tally;

/// Irregular runs of every set, by each policy.
const SAMPLES: u64 = 4;

/// What the tests of a policy say.
pub(crate) fn answers<S: SupplyBound>(
    tasks: &[Task],
    policy: Policy,
    supply: &S,
) -> Result<(Vec<Response>, Verdict), String> {
    let (responses, verdict) = match policy {
        Policy::FixedPriority => (
            fixed_priority::response_times(tasks, supply),
            fixed_priority::test(tasks, supply),
        ),
        Policy::EarliestDeadline => (edf::response_times(tasks, supply), edf::test(tasks, supply)),
        Policy::FirstReleased => return Err("there is no such test".into()),
    };
    let responses = responses.map_err(|overflow| overflow.to_string())?;
    let verdict = verdict.map_err(|overflow| overflow.to_string())?;
    Ok((responses, verdict))
}

/// Checks everything there is to be checked of a set.
pub(crate) fn check(specs: &[Spec], seed: u64, tally: &mut Tally) -> Result<(), String> {
    let tasks = tasks(specs);
    for policy in [Policy::FixedPriority, Policy::EarliestDeadline] {
        let mut seen = worst_dedicated(specs, policy);
        let (responses, verdict) = answers(&tasks, policy, &Dedicated)?;
        compare_responses(specs, policy, &seen, &responses, tally)?;
        compare_verdict(specs, policy, &seen, verdict, tally)?;
        let mut rng = Pcg64::seed_from_u64(seed);
        for _ in 0..SAMPLES {
            sample(specs, policy, &mut rng, |_| true, &mut seen);
        }
        compare_bounds(specs, policy, &seen, &responses)?;
        if policy == Policy::FixedPriority {
            one_by_one(&tasks, &responses)?;
            utilization_bounds(specs, &tasks, &seen, tally)?;
        }
        tally.runs += 1;
    }
    first_in_first_out(specs, &tasks, tally)
}

/// The bound for jobs that run in the order of their release is the longest response of any.
fn first_in_first_out(specs: &[Spec], tasks: &[Task], tally: &mut Tally) -> Result<(), String> {
    let response =
        fixed_priority::fifo(tasks, &Dedicated).map_err(|overflow| overflow.to_string())?;
    let seen = worst_dedicated(specs, Policy::FirstReleased);
    let from_release = seen.iter().map(|seen| seen.from_release).max();
    let (busy, common) = load(specs);
    match response {
        Response::Bounded(bound) if busy <= common => {
            let late = seen.iter().map(|seen| seen.from_arrival).max();
            if Some(bound.from_release.as_nanos()) != from_release
                || Some(bound.from_arrival.as_nanos()) < late
            {
                return Err(format!("fifo: seen {seen:?}, {bound:?}"));
            }
            tally.queues += 1;
            Ok(())
        }
        Response::Unbounded if busy > common => Ok(()),
        other => Err(format!("fifo: {other:?} at {busy}/{common}")),
    }
}

/// No response time that was seen is longer than its bound.
fn compare_bounds(
    specs: &[Spec],
    policy: Policy,
    seen: &Responses,
    responses: &[Response],
) -> Result<(), String> {
    for (task, response) in responses.iter().enumerate().take(specs.len()) {
        let Some(bound) = response.bound() else {
            continue;
        };
        let Seen {
            from_arrival,
            from_release,
        } = seen[task];
        let bounds = (bound.from_arrival.as_nanos(), bound.from_release.as_nanos());
        if from_arrival > bounds.0 || from_release > bounds.1 {
            return Err(format!(
                "{policy:?}, task {task}: optimistic: seen {from_arrival} from arrival, {from_release} from release; bounds {bounds:?}"
            ));
        }
    }
    Ok(())
}

/// All bounds hold, and where the test is exact they are reached.
fn compare_responses(
    specs: &[Spec],
    policy: Policy,
    seen: &Responses,
    responses: &[Response],
    tally: &mut Tally,
) -> Result<(), String> {
    compare_bounds(specs, policy, seen, responses)?;
    if responses.len() != specs.len() {
        return Err(format!("{policy:?}: {} responses", responses.len()));
    }
    for (task, response) in responses.iter().enumerate() {
        let about = match policy {
            Policy::FixedPriority => &specs[..=task],
            Policy::EarliestDeadline | Policy::FirstReleased => specs,
        };
        let (busy, common) = load(about);
        let bound = match response {
            Response::Bounded(bound) if busy <= common => bound,
            Response::Unbounded if busy > common => {
                tally.unbounded += 1;
                continue;
            }
            other => {
                return Err(format!(
                    "{policy:?}, task {task}: {other:?} at {busy}/{common}"
                ));
            }
        };
        let bounds = (bound.from_arrival.as_nanos(), bound.from_release.as_nanos());
        let reached = bounds == (seen[task].from_arrival, seen[task].from_release);
        let jitter = specs.iter().any(|spec| spec.jitter > 0);
        let overloaded = load(specs).0 > load(specs).1;
        let cut = specs.iter().any(Spec::is_cut);
        // A run that never ends is not looked at to its end.
        let unending = policy == Policy::EarliestDeadline && never_idle(specs);
        let exact = !(overloaded || unending || policy != Policy::FixedPriority && jitter && cut);
        tally.bound(policy, jitter || unending, reached);
        if exact && !reached {
            return Err(format!(
                "{policy:?}, task {task}: not tight: seen {:?}, bounds {bounds:?}",
                seen[task]
            ));
        }
    }
    Ok(())
}

/// Whether the processor may never be idle again: late jobs come before the work that fills it. Then there is no busy window that ends.
fn never_idle(specs: &[Spec]) -> bool {
    let (busy, common) = load(specs);
    busy == common && specs.iter().any(|spec| spec.jitter > 0 || spec.burst > 1)
}

/// The verdict says what happens, and the witness can be seen.
fn compare_verdict(
    specs: &[Spec],
    policy: Policy,
    seen: &Responses,
    verdict: Verdict,
    tally: &mut Tally,
) -> Result<(), String> {
    let missed = |task: usize| seen[task].from_arrival > u64::from(specs[task].deadline);
    let any = (0..specs.len()).any(missed);
    match verdict {
        Verdict::Schedulable if any => Err(format!("{policy:?}: schedulable, but seen {seen:?}")),
        Verdict::Schedulable => {
            tally.schedulable += 1;
            Ok(())
        }
        Verdict::NotSchedulable(witness) => {
            tally.not_schedulable += 1;
            if load(specs).0 > load(specs).1 {
                // An overload's first miss may come after the end of the runs.
                return Ok(());
            }
            if !missed(witness.task) {
                return Err(format!("{policy:?}: {witness:?} never misses: {seen:?}"));
            }
            if !witnessed(specs, policy, witness) {
                return Err(format!("{policy:?}: {witness:?} is not seen"));
            }
            tally.witnesses += 1;
            Ok(())
        }
        Verdict::Unknown(doubt) => {
            tally.unknown += 1;
            let understood = match doubt {
                Doubt::TooLong => never_idle(specs),
                Doubt::Sufficient | Doubt::OutOfScope => false,
            };
            if policy == Policy::EarliestDeadline && understood {
                Ok(())
            } else {
                Err(format!("{policy:?}: unknown: {doubt:?}, any miss: {any}"))
            }
        }
    }
}

/// Whether the witness is late in the worst case as it is described: those that delay it release a job at time 0 and from then on as
/// often as they may, and one that is less urgent perhaps began just before. Or it is released so late that nothing can help it.
fn witnessed(specs: &[Spec], policy: Policy, witness: Witness) -> bool {
    let own = specs[witness.task];
    let (jitter, slack) = (u64::from(own.jitter), witness.due.as_nanos());
    if witness.release.as_nanos() + u64::from(own.cost) > slack {
        return witness.release.as_nanos() + u64::from(own.deadline) <= slack + jitter;
    }
    let machine = machine_against(specs, policy, witness.task);
    let until = Until {
        idle: true,
        horizon: horizon(specs).min(1 << 12),
    };
    let at = |span: Span| i32::try_from(span.as_nanos()).expect("small");
    let (release, due) = (at(witness.release), at(witness.due));
    let less_urgent = match policy {
        Policy::FixedPriority => witness.task + 1..specs.len(),
        Policy::EarliestDeadline | Policy::FirstReleased => 0..specs.len(),
    };
    let blockers = less_urgent.filter(|task| *task != witness.task).map(Some);
    blockers.chain([None]).any(|blocker| {
        own_offsets(specs, policy, witness, release).any(|own| {
            critical(
                specs,
                &machine,
                until,
                blocker,
                (witness, own),
                (release, due),
            )
        })
    })
}

/// By earliest deadline the job's task may release its first job after the others.
fn own_offsets(
    specs: &[Spec],
    policy: Policy,
    witness: Witness,
    release: i32,
) -> impl Iterator<Item = i32> + use<> {
    let latest = match policy {
        Policy::FixedPriority | Policy::FirstReleased => 0,
        Policy::EarliestDeadline => release.min(specs[witness.task].period as i32),
    };
    0..=latest
}

fn critical(
    specs: &[Spec],
    machine: &Machine,
    until: Until,
    blocker: Option<usize>,
    (witness, own): (Witness, i32),
    (release, due): (i32, i32),
) -> bool {
    let start = i32::from(blocker.is_some());
    let mut offsets = [start; MOST_TASKS];
    offsets[witness.task] += own;
    if let Some(blocker) = blocker {
        offsets[blocker] = 0;
    }
    let mut releases = dense(specs, offsets);
    let begins = blocker.map_or(0, |blocker| specs[blocker].longest_begins());
    releases.skipping = blocker.map(|blocker| (blocker, begins));
    let lates = match own {
        0 => specs[witness.task].jitter..=specs[witness.task].jitter,
        _ => 0..=specs[witness.task].jitter,
    };
    lates.into_iter().any(|late| {
        releases.late[witness.task] = late as i32;
        let job = (release + start, due + start);
        misses(machine, &releases, until, witness.task, job)
    })
}

/// The test of one task says what the test of all says of it.
fn one_by_one(tasks: &[Task], responses: &[Response]) -> Result<(), String> {
    for (index, response) in responses.iter().enumerate() {
        let alone = fixed_priority::response_time(tasks, index, &Dedicated);
        if alone != Ok(*response) {
            return Err(format!(
                "task {index}: {alone:?} alone, {response:?} in the set"
            ));
        }
    }
    Ok(())
}

/// The tasks with deadlines and jitter in their periods, if all fit; else a set that nobody accepts.
fn implicit(tasks: &[Task]) -> Vec<Task> {
    let implicit: Option<Vec<Task>> = tasks.iter().map(utilization::implicit).collect();
    implicit.unwrap_or_else(|| vec![Spec::new(2, 1).task()])
}

/// A test that reads the set's tasks by priority.
type Bound = fn(&[Task]) -> Result<Verdict, laxity_model::analysis::Overflow>;

/// No bound on utilizations accepts a set with a miss, and none says more than it knows.
fn utilization_bounds(
    specs: &[Spec],
    tasks: &[Task],
    seen: &Responses,
    tally: &mut Tally,
) -> Result<(), String> {
    let bounds: [(&str, Bound); 8] = [
        ("liu_layland", utilization::liu_layland),
        ("hyperbolic", utilization::hyperbolic),
        ("blocking_per_task", utilization::blocking_per_task),
        ("blocking_summed", utilization::blocking_summed),
        (
            "hyperbolic_with_blocking",
            utilization::hyperbolic_with_blocking,
        ),
        ("rmdp", utilization::rmdp),
        ("hyperbolic of implicit tasks", |tasks| {
            utilization::hyperbolic(&implicit(tasks))
        }),
        ("hyperbolic with blocking of implicit tasks", |tasks| {
            utilization::hyperbolic_with_blocking(&implicit(tasks))
        }),
    ];
    let (busy, common) = load(specs);
    let any = specs
        .iter()
        .zip(seen)
        .any(|(spec, seen)| seen.from_arrival > u64::from(spec.deadline));
    for (name, bound) in bounds {
        match bound(tasks).map_err(|overflow| format!("{name}: {overflow}"))? {
            Verdict::Schedulable if any || busy > common => {
                return Err(format!("{name} accepts, but seen {seen:?}"));
            }
            Verdict::Schedulable => tally.accepted_by_bounds += 1,
            Verdict::NotSchedulable(witness)
                if busy <= common && !any && !name.contains("implicit") =>
            {
                return Err(format!("{name}: {witness:?}, but no task misses"));
            }
            Verdict::NotSchedulable(_) | Verdict::Unknown(_) => {}
        }
    }
    Ok(())
}
