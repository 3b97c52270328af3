//! What the library chooses, against everything that could be chosen: regions, orders, final regions.

use laxity_model::Service;
use laxity_model::analysis::supply::SupplyBound;
use laxity_model::analysis::{Search, Task, Verdict, edf, fixed_priority};

use crate::exhaustive::explore::Policy;
use crate::exhaustive::set::{Kind, Spec, tasks};
use crate::exhaustive::tally::Tally;

/// A set's tasks with these floating regions.
fn with_regions(specs: &[Spec], regions: &[u64]) -> Vec<Spec> {
    let with_region = |(spec, region): (&Spec, &u64)| Spec {
        kind: match u32::try_from(*region).unwrap_or(u32::MAX).min(spec.cost) {
            0 => Kind::Anywhere,
            longest => Kind::Floating { longest },
        },
        ..*spec
    };
    specs.iter().zip(regions).map(with_region).collect()
}

/// With the longest regions that a test names all deadlines are met; with one tick more of any of them, one is missed.
pub(crate) fn check_longest_regions<S: SupplyBound>(
    specs: &[Spec],
    supply: &S,
    tally: &mut Tally,
) -> Result<(), String> {
    let without: Vec<Spec> = specs
        .iter()
        .map(|spec| Spec {
            kind: Kind::Anywhere,
            ..*spec
        })
        .collect();
    let own = tasks(&without);
    for policy in [Policy::FixedPriority, Policy::EarliestDeadline] {
        let by_priority = policy == Policy::FixedPriority;
        let meets = |specs: &[Spec]| match by_priority {
            true => fixed_priority::test(&tasks(specs), supply),
            false => edf::test(&tasks(specs), supply),
        };
        let regions = match by_priority {
            true => fixed_priority::longest_regions(&own, supply),
            false => edf::longest_regions(&own, supply),
        };
        let regions = regions.map_err(|overflow| overflow.to_string())?;
        let feasible = meets(&without) == Ok(Verdict::Schedulable);
        let regions = match regions {
            Search::Found(regions) => regions,
            Search::None if !feasible => continue,
            nothing => {
                return Err(format!(
                    "{policy:?}: {nothing:?}; schedulable without regions: {feasible}"
                ));
            }
        };
        let regions: Vec<u64> = regions.iter().map(|region| region.as_nanos()).collect();
        let verdict = meets(&with_regions(&without, &regions));
        if !feasible || verdict != Ok(Verdict::Schedulable) {
            return Err(format!(
                "{policy:?}: longest regions {regions:?}: {verdict:?}"
            ));
        }
        for index in 0..specs.len() {
            let mut longer = regions.clone();
            if longer[index] >= u64::from(specs[index].cost) {
                continue;
            }
            longer[index] += 1;
            let verdict = meets(&with_regions(&without, &longer));
            if !matches!(verdict, Ok(Verdict::NotSchedulable(_))) {
                return Err(format!(
                    "{policy:?}: longest regions {regions:?}, but {longer:?}: {verdict:?}"
                ));
            }
            tally.regions += 1;
        }
    }
    Ok(())
}

/// All orders of so many tasks.
fn orders(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let mut out = Vec::new();
    for order in orders(count - 1) {
        for at in 0..=order.len() {
            let mut longer = order.clone();
            longer.insert(at, count - 1);
            out.push(longer);
        }
    }
    out
}

/// There is an order that meets all deadlines if and only if one is found.
pub(crate) fn check_orders<S: SupplyBound>(
    specs: &[Spec],
    supply: &S,
    tally: &mut Tally,
) -> Result<(), String> {
    let meets = |order: &[usize]| {
        let ordered: Vec<Task> = order.iter().map(|index| specs[*index].task()).collect();
        fixed_priority::test(&ordered, supply) == Ok(Verdict::Schedulable)
    };
    let possible = orders(specs.len()).iter().any(|order| meets(order));
    let found = fixed_priority::best_order(&tasks(specs), supply);
    match found.map_err(|overflow| overflow.to_string())? {
        Search::Found(order) => {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            if sorted != (0..specs.len()).collect::<Vec<_>>() || !meets(&order) {
                return Err(format!("best order {order:?} misses a deadline"));
            }
            tally.orders += 1;
        }
        Search::None if !possible => {}
        nothing => return Err(format!("{nothing:?}; there is an order: {possible}")),
    }
    Ok(())
}

/// There are an order and final regions that meet all deadlines if and only if some are found.
pub(crate) fn check_final_regions<S: SupplyBound>(
    specs: &[Spec],
    supply: &S,
    tally: &mut Tally,
) -> Result<(), String> {
    let meets = |order: &[(usize, Service)]| {
        let ordered = order.iter().map(|(index, last)| {
            let last = last.as_nanos() as u32;
            let kind = Kind::Fixed {
                longest: last,
                last,
            };
            Spec {
                kind,
                ..specs[*index]
            }
            .task()
        });
        fixed_priority::test(&ordered.collect::<Vec<_>>(), supply) == Ok(Verdict::Schedulable)
    };
    let possible = orders(specs.len()).iter().any(|order| {
        let mut lasts = vec![1_u64; specs.len()];
        loop {
            let regions = order.iter().zip(&lasts);
            let with: Vec<_> = regions
                .map(|(index, last)| (*index, Service::from_nanos(*last)))
                .collect();
            if meets(&with) {
                return true;
            }
            let at = (0..lasts.len()).find(|at| lasts[*at] < u64::from(specs[order[*at]].cost));
            let Some(at) = at else {
                return false;
            };
            lasts[at] += 1;
            lasts[..at].fill(1);
        }
    });
    let found = fixed_priority::best_order_with_final_regions(&tasks(specs), supply);
    match found.map_err(|overflow| overflow.to_string())? {
        Search::Found(order) if !meets(&order) => Err(format!("{order:?} misses a deadline")),
        Search::Found(_) => {
            tally.final_regions += 1;
            Ok(())
        }
        Search::None if !possible => Ok(()),
        nothing => Err(format!("{nothing:?}; final regions that do: {possible}")),
    }
}
