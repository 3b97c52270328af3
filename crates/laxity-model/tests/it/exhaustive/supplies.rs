//! The same tests on supplies of every kind, against all phasings on many courses of each.

use core::cmp::Ordering;

use laxity_model::Service;
use laxity_model::analysis::supply::{Dedicated, Residual, SupplyBound};
use laxity_model::analysis::{Fraction, Response, Verdict, fixed_priority};
use rand::SeedableRng;
use rand_pcg::Pcg64;

use crate::exhaustive::caught;
use crate::exhaustive::choices;
use crate::exhaustive::courses::{LENGTH, Supply, supply};
use crate::exhaustive::dedicated::answers;
use crate::exhaustive::explore::{Policy, Responses, sample, worst, worst_dedicated};
use crate::exhaustive::machine::Until;
use crate::exhaustive::set::{Kind, Spec, tasks};
use crate::exhaustive::tally::Tally;

/// Irregular runs of every set and course, by each policy.
const SAMPLES: usize = 2;

/// How the load of these compares with a rate.
fn compare(specs: &[Spec], rate: Fraction) -> Ordering {
    let terms = specs
        .iter()
        .map(|spec| Fraction::new(spec.cost.into(), spec.period.into()).expect("not zero"));
    rate.compare_sum(terms)
}

/// Checks a set on a supply that is made from the seed: no bound is optimistic, and where the supply is attained all are reached.
pub(crate) fn check(specs: &[Spec], seed: u64, tally: &mut Tally) -> Result<(), String> {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut on = supply(&mut rng);
    // An overloaded supply says little.
    for _ in 0..8 {
        if compare(specs, on.bound.rate()).is_lt() {
            break;
        }
        on = supply(&mut rng);
    }
    for policy in [Policy::FixedPriority, Policy::EarliestDeadline] {
        caught(|| check_policy(specs, policy, &on, &mut rng, tally))
            .map_err(|error| format!("{policy:?} on {}: {error}", on.name))?;
    }
    let bound = on.bound.as_ref();
    if bound.is_attained() && compare(specs, bound.rate()).is_lt() {
        choices::check_longest_regions(specs, &bound, tally)
            .and_then(|()| choices::check_orders(specs, &bound, tally))
            .map_err(|error| format!("on {}: {error}", on.name))?;
    }
    Ok(())
}

fn check_policy(
    specs: &[Spec],
    policy: Policy,
    on: &Supply,
    rng: &mut Pcg64,
    tally: &mut Tally,
) -> Result<(), String> {
    let tasks = tasks(specs);
    let bound = on.bound.as_ref();
    let (responses, verdict) = answers(&tasks, policy, &bound)?;
    let mut seen = Responses::default();
    for course in &on.courses {
        let supplied = |at: i32| course.get(at as usize).copied().unwrap_or(false);
        let until = Until {
            idle: true,
            horizon: LENGTH as i32 / 2,
        };
        include(&mut seen, &worst(specs, policy, supplied, until));
    }
    let exact = bound.is_attained() && compare(specs, bound.rate()).is_lt();
    check_verdict(specs, policy, &seen, (verdict, exact))?;
    compare_all(specs, (policy, bound.rate()), &seen, &responses, exact)?;
    for course in &on.courses {
        let supplied = |at: i32| course.get(at as usize).copied().unwrap_or(false);
        for _ in 0..SAMPLES {
            sample(specs, policy, rng, supplied, &mut seen);
        }
    }
    tally.supplies += 1;
    tally.supplies_reached += u64::from(exact);
    compare_all(specs, (policy, bound.rate()), &seen, &responses, false)
}

fn include(seen: &mut Responses, more: &Responses) {
    for (seen, more) in seen.iter_mut().zip(more) {
        seen.from_arrival = seen.from_arrival.max(more.from_arrival);
        seen.from_release = seen.from_release.max(more.from_release);
    }
}

fn compare_all(
    specs: &[Spec],
    (policy, rate): (Policy, Fraction),
    seen: &Responses,
    responses: &[Response],
    exact: bool,
) -> Result<(), String> {
    for (task, response) in responses.iter().enumerate() {
        let about = match policy {
            Policy::FixedPriority => &specs[..=task],
            Policy::EarliestDeadline | Policy::FirstReleased => specs,
        };
        let bound = match (response, compare(about, rate)) {
            (Response::Bounded(bound), Ordering::Less | Ordering::Equal) => bound,
            (Response::Unbounded, Ordering::Greater) | (Response::Unknown(_), Ordering::Equal) => {
                continue;
            }
            other => return Err(format!("task {task}: {other:?}")),
        };
        let bounds = (bound.from_arrival.as_nanos(), bound.from_release.as_nanos());
        let seen = (seen[task].from_arrival, seen[task].from_release);
        if seen.0 > bounds.0 || seen.1 > bounds.1 {
            return Err(format!(
                "task {task}: optimistic: seen {seen:?}, bounds {bounds:?}"
            ));
        }
        let tight = policy == Policy::FixedPriority || specs.iter().all(|spec| spec.jitter == 0);
        if exact && tight && seen != bounds {
            return Err(format!(
                "task {task}: not tight: seen {seen:?}, bounds {bounds:?}"
            ));
        }
    }
    Ok(())
}

fn check_verdict(
    specs: &[Spec],
    policy: Policy,
    seen: &Responses,
    (verdict, exact): (Verdict, bool),
) -> Result<(), String> {
    let missed = |task: usize| seen[task].from_arrival > u64::from(specs[task].deadline);
    let any = (0..specs.len()).any(missed);
    let tight = policy == Policy::FixedPriority || specs.iter().all(|spec| spec.jitter == 0);
    match verdict {
        Verdict::Schedulable if any => Err(format!("schedulable, but seen {seen:?}")),
        Verdict::NotSchedulable(witness) if exact => {
            let error = || format!("{witness:?} is not seen to miss: {seen:?}");
            missed(witness.task).then_some(()).ok_or_else(error)
        }
        Verdict::Unknown(doubt) if exact && tight => Err(format!("unknown: {doubt:?}")),
        _ => Ok(()),
    }
}

/// What is left below some tasks is at least what the tests take it for: a set's less urgent half, preemptible, on the residual supply.
pub(crate) fn check_residual(specs: &[Spec], tally: &mut Tally) -> Result<(), String> {
    let specs: Vec<Spec> = specs
        .iter()
        .map(|spec| Spec {
            kind: Kind::Anywhere,
            ..*spec
        })
        .collect();
    let (above, below) = specs.split_at(specs.len() / 2);
    let (above, below) = (tasks(above), tasks(below));
    if above.is_empty() || compare(&specs, Fraction::ONE).is_gt() {
        return Ok(());
    }
    let seen = worst_dedicated(&specs, Policy::FixedPriority);
    let left = match Residual::new(Dedicated, above.clone()) {
        Ok(left) => left,
        Err(error) => return Err(error.to_string()),
    };
    let responses =
        fixed_priority::response_times(&below, &left).map_err(|error| error.to_string())?;
    for (task, response) in responses.iter().enumerate() {
        let from_arrival = seen[above.len() + task].from_arrival;
        if response
            .bound()
            .is_some_and(|bound| bound.from_arrival.as_nanos() < from_arrival)
        {
            return Err(format!(
                "below: task {task}: {response:?}, seen {from_arrival}"
            ));
        }
        tally.supplies += u64::from(response.bound().is_some());
    }
    if left.least_service(laxity_model::Span::ZERO) != Service::ZERO {
        return Err("service in no time".into());
    }
    Ok(())
}
