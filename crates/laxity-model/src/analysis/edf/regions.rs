//! How long tasks may keep others waiting.

use alloc::vec;
use alloc::vec::Vec;

use super::qpa::test;
use super::set::{Set, least_service, window_for};
use crate::Service;
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Doubt, Result, Search, Task, Verdict};

/// For each task, the longest floating region such that all deadlines are met; [`Search::None`] if one is missed even without
/// regions, [`Search::Unknown`] if it is not known whether one is, or where the search takes too long. The regions that the
/// tasks have are ignored, those before known points and the last ones too.
///
/// Q = 1 + min {sbf(t) − dbf(t) : t < D − J}, where t runs over the times by which anything is due, and at most C; the one
/// tick is there because a region of q has begun one tick before it blocks. (Baruah, "The limited-preemption uniprocessor
/// scheduling of sporadic task systems", ECRTS 2005; Bertogna, Baruah, "Limited preemption EDF scheduling of sporadic task
/// systems", IEEE TII 6(4), 2010.) All may have them at once. Where [`test()`] is exact, so is this: one tick more, if C allows
/// it, and a deadline can be missed.
///
/// Cost: [`test()`]'s, and about as much for each different deadline.
///
/// ```
/// use laxity_model::analysis::supply::Dedicated;
/// use laxity_model::analysis::{Task, edf};
/// use laxity_model::{Service, Span};
///
/// let task = |cost, period| Task::new(Service::from_nanos(cost), Span::from_nanos(period)).unwrap();
/// let regions = edf::longest_regions(&[task(2, 5), task(4, 10)], &Dedicated).unwrap().found().unwrap();
/// // The first has nobody to block. The second may have begun one tick before the first, with 3 ticks to spare, is released.
/// assert_eq!(regions, [Service::from_nanos(2), Service::from_nanos(4)]);
/// ```
pub fn longest_regions<S: SupplyBound>(tasks: &[Task], supply: &S) -> Result<Search<Vec<Service>>> {
    let free: Vec<Task> = tasks.iter().map(Task::without_regions).collect();
    match test(&free, supply)? {
        Verdict::Schedulable => {}
        Verdict::NotSchedulable(_) => return Ok(Search::None),
        Verdict::Unknown(doubt) => return Ok(Search::Unknown(doubt)),
    }
    let set = Set::new(&free)?.by_deadline();
    // All jitters are less than the deadlines now.
    let first_due = |task: &usize| (tasks[*task].deadline() - tasks[*task].jitter()).as_nanos();
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(first_due);
    let mut regions = vec![Service::ZERO; tasks.len()];
    let last = order.last().map_or(0, first_due);
    set.demand_fits(last)?;
    let mut slack = set
        .items
        .iter()
        .map(|item| item.cost - 1)
        .max()
        .unwrap_or(0);
    let mut from = 0;
    let mut budget = set.budget();
    for task in order {
        let due = first_due(&task);
        if due > from {
            let found = least_slack(&set, supply, (from, due - 1), slack, &mut budget)?;
            let Some(found) = found else {
                return Ok(Search::Unknown(Doubt::TooLong));
            };
            slack = found;
            from = due;
        }
        regions[task] = Service::from_nanos(slack + 1).min(tasks[task].cost());
    }
    Ok(Search::Found(regions))
}

/// The least of sbf(t) − dbf(t) for `from` ≤ t ≤ `time` with anything due, and `slack`; `None` if the budget runs out.
///
/// As in the demand test: where dbf(t) + slack is given by some earlier time, nothing between has less.
fn least_slack<S: SupplyBound>(
    set: &Set<'_>,
    supply: &S,
    (from, mut time): (u64, u64),
    mut slack: u64,
    budget: &mut usize,
) -> Result<Option<u64>> {
    while *budget > 0 {
        *budget -= 1;
        let (demand, _) = set.demand_and_blocking(time);
        if demand == 0 || slack == 0 {
            return Ok(Some(slack));
        }
        let met = window_for(supply, demand.wrapping_add(slack))?;
        if met > time {
            // The least of all up to the last deadline before is smaller still: the demand is the same, the supply less.
            let deadline = set.last_due_by(time).max(from);
            slack = least_service(supply, deadline)
                .saturating_sub(demand)
                .min(slack);
            time = deadline;
        } else {
            time = met;
        }
        let Some(next) = time.checked_sub(1).filter(|next| *next >= from) else {
            return Ok(Some(slack));
        };
        time = next;
    }
    Ok(None)
}
