//! The longest non-preemptive regions.

use alloc::vec::Vec;

use super::deadlines::{Fate, fate};
use super::requests::requests_of;
use super::response::load_of;
use super::window::Window;
use crate::Service;
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Budget, Doubt, Result, Search, Task};
use crate::base::number::last_of;

/// For each task of a set that is given by priority, the highest first, no two alike, the longest floating region that all more urgent
/// tasks tolerate, and at most its whole job; [`Search::None`] if some task misses a deadline even without any regions, and
/// [`Search::Unknown`] if it is not known whether one does.
///
/// What regions the tasks have now does not matter, and a task's own region is not counted in its favour. All tasks may have their
/// longest regions at once: with [`Preemption::Floating`](crate::analysis::Preemption::Floating) of these lengths all deadlines are met.
/// The most urgent task may run its whole job; what is tolerated never grows from one task to the next.
///
/// With β the most service for which a task can be blocked without missing a deadline, the longest region of a less urgent task is the
/// least β of those above it, and one tick more, because a region that blocks began at least one tick before.
///
/// **Exact** on a supply that is [attained](SupplyBound::is_attained): where a region shorter than its job is one tick longer, a more
/// urgent job can miss its deadline; on other supplies the regions are safe. So they are where the busy window with some region in
/// it is too long to be searched (see [`response_times`](super::response_times)): what is not known to be tolerated is not. Deadlines
/// of any length and jitter are allowed.
///
/// **Cost**: a bisection of each β, some 30 response times a task at most.
///
/// **Source**: Yao, Buttazzo, Bertogna, "Bounding the maximum length of non-preemptive regions under fixed priority scheduling", RTCSA 2009,
/// which gives β = max over 0 < t ≤ D of t − C − Σ ⌈t/Tⱼ⌉ Cⱼ for D ≤ T (the oracle's way); bisecting the response time gives the same, and
/// holds for any deadline, jitter and supply, since a job's completion does not come earlier when it is blocked for longer.
///
/// ```
/// use laxity_model::analysis::{Search, Task, fixed_priority, supply::Dedicated};
/// use laxity_model::{Service, Span};
///
/// let task = |cost, period| Task::new(Service::from_nanos(cost), Span::from_nanos(period));
/// let tasks = [task(2, 5)?, task(2, 8)?, task(3, 30)?];
/// let longest = fixed_priority::longest_regions(&tasks, &Dedicated)?;
/// // The second tolerates being blocked for 2: 2 + 2 + 2 · 2 = 8. A region of 3 blocks for no more than that.
/// assert_eq!(longest, Search::Found([2, 2, 3].map(Service::from_nanos).to_vec()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn longest_regions<S: SupplyBound>(tasks: &[Task], supply: &S) -> Result<Search<Vec<Service>>> {
    let (requests, all) = requests_of(tasks, supply.rate())?;
    if all.is_gt() {
        return Ok(Search::nothing(supply.is_attained()));
    }
    let budget = Budget::default();
    let mut longest = Vec::with_capacity(tasks.len());
    // No region may block the tasks so far for more than this.
    let mut tolerated = Service::MAX;
    for (i, task) in tasks.iter().enumerate() {
        let region = task.cost().min(one_more(tolerated));
        longest.push(region);
        let costs = tasks[i + 1..].iter().map(Task::cost);
        let most = costs.max().map_or(Service::ZERO, one_less).min(tolerated);
        let requests = &requests[..=i];
        let load = load_of(requests, all, supply);
        let is_tolerated = |blocking: Service| {
            let regions = (blocking, Service::ZERO);
            let window = Window::new(requests, regions, (supply, load), 0, &budget);
            fate(window, task.deadline())
        };
        tolerated = match greatest(most, is_tolerated)? {
            Ok(most) => most,
            Err(Fate::TooLong) => return Ok(Search::Unknown(Doubt::TooLong)),
            Err(_) => return Ok(Search::nothing(supply.is_attained())),
        };
    }
    Ok(Search::Found(longest))
}

/// The greatest blocking from 0 to `most` with which all deadlines are known to be met, if they are with any shorter one; an error with
/// what is known of none at all, if they are not. Bisection.
fn greatest(
    most: Service,
    with: impl Fn(Service) -> Result<Fate>,
) -> Result<Result<Service, Fate>> {
    let found = with(most)?;
    if found.is_met() {
        return Ok(Ok(most));
    }
    let without = if most.is_zero() {
        found
    } else {
        with(Service::ZERO)?
    };
    if !without.is_met() {
        return Ok(Err(without));
    }
    let met = |blocking| Ok(with(Service::from_nanos(blocking))?.is_met());
    let greatest = last_of(0, most.as_nanos(), met)?;
    Ok(Ok(Service::from_nanos(greatest)))
}

/// The least number from `least` to `most`, which is so, that is so, if all more than one that is so are so too. Bisection.
pub(super) fn least(
    least: Service,
    most: Service,
    is_so: impl Fn(Service) -> Result<bool>,
) -> Result<Service> {
    if least == most || is_so(least)? {
        return Ok(least);
    }
    let is_not = |service| Ok(!is_so(Service::from_nanos(service))?);
    let last_not = last_of(least.as_nanos(), most.as_nanos(), is_not)?;
    Ok(Service::from_nanos(last_not + 1))
}

/// One tick more, if that is a number.
fn one_more(service: Service) -> Service {
    Service::from_nanos(service.as_nanos().saturating_add(1))
}

/// One tick less, or nothing.
pub(super) fn one_less(service: Service) -> Service {
    service.saturating_sub(Service::from_nanos(1))
}
