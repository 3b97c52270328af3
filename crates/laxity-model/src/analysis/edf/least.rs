//! The least deadline that a newcomer can have beside others.

use core::cmp::Ordering;

use super::horizon::horizon;
use super::set::{Item, Set, least_service, window_for};
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Budget, Doubt, Overflow, Result, Search, Task};
use crate::{Service, Span};

/// The least deadline with which a newcomer, and all that are there, meet their deadlines under earliest deadline first, beside somebody who is never due and may block
/// for so long: with it [`test_beside`](super::test_beside) says that they are schedulable, and with one tick less that they are not. The deadline that the newcomer has does not
/// matter. [`Search::None`] where no deadline will do: the load is more than the rate, or its region is longer than what
/// somebody can wait for; or where those that are there do not meet theirs.
///
/// # Why it is exact
///
/// At a time t the others leave m(t) = ⌊(sbf(t) − dbf(t) − B(t)) / C⌋ jobs of the newcomer, of which ⌊(t − E)/T⌋ + b are due with E = D − J, if E ≤ t. So E must be
/// more than t − (m(t) − b + 1)·T, and more than t where m(t) < b. Where E is more than t already, the newcomer blocks, which costs no more there than to be due:
/// a region is no longer than a job. So what is met with one deadline is met with any later one, and a search for overloads from
/// late to early times need not look again at what lies behind it when E is raised.
///
/// # Cost
///
/// That of [`test_beside`](super::test_beside), and a step more each time that E is raised. [`Doubt::TooLong`] as there.
///
/// ```
/// use laxity_model::analysis::supply::Dedicated;
/// use laxity_model::analysis::{Preemption, Search, Task, edf};
/// use laxity_model::{Service, Span};
///
/// let task = |cost, period| Task::new(Service::from_micros(cost), Span::from_micros(period));
/// let control = task(10, 1_000)?.with_preemption(Preemption::Never)?;
/// let others = [control.with_deadline(Span::from_micros(200))?];
/// // Somebody's packet of 117 us may be on the wire, and the other one is due before it, or first.
/// let least = edf::least_deadline(&others, &control, Service::from_micros(117), &Dedicated)?;
/// assert_eq!(least, Search::Found(Span::from_micros(127)));
/// let video = task(1_679, 33_333)?.with_preemption(Preemption::Floating { longest: Service::from_micros(117) })?;
/// let least = edf::least_deadline(&others, &video, Service::from_micros(117), &Dedicated)?;
/// // It waits for one more of the other's each millisecond.
/// assert_eq!(least, Search::Found(Span::from_micros(1_679 + 117 + 2 * 10)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn least_deadline<S: SupplyBound>(
    tasks: &[Task],
    newcomer: &Task,
    never_due: Service,
    supply: &S,
) -> Result<Search<Span>> {
    least_deadline_within(tasks, newcomer, never_due, supply, &Budget::of(u64::MAX))
}

/// The same, as one of several questions for which all together there is this budget: [`Doubt::TooLong`] where that is not enough.
pub(crate) fn least_deadline_within<S: SupplyBound>(
    tasks: &[Task],
    newcomer: &Task,
    never_due: Service,
    supply: &S,
    budget: &Budget,
) -> Result<Search<Span>> {
    let set = Set::with_whole_regions(tasks)?.beside(never_due);
    let mut set = set.within(budget);
    if set.shift > 0 {
        return Ok(Search::nothing(supply.is_attained()));
    }
    let mut own = Set::with_whole_regions(&[due_after_jitter(newcomer)?])?.items[0];
    let first = u64::try_from(u128::from(own.burst) * u128::from(own.cost)).ok();
    let first = first.and_then(|first| first.checked_add(never_due.as_nanos()));
    own.due = window_for(supply, first.ok_or(Overflow("a burst"))?)?;
    set.items.push(own);
    let load = set.load();
    let Some(ordering) = set.compare(load, supply.rate()) else {
        return Ok(Search::Unknown(Doubt::TooLong));
    };
    if ordering == Ordering::Greater {
        return Ok(Search::nothing(supply.is_attained()));
    }
    let Some(until) = horizon(&set, supply, load, ordering)? else {
        return Ok(Search::Unknown(Doubt::TooLong));
    };
    search(set, own, newcomer.jitter(), supply, until)
}

/// The same, where more is known: that the newcomer can have no deadline that is shorter than its own, and that with this one, or a longer one, nobody misses a deadline that is later than `until`. So only those are told
/// who are due by then; the regions of all others are in `blocking`. There is no jitter.
pub(crate) fn least_deadline_until<S: SupplyBound>(
    tasks: &[Task],
    newcomer: &Task,
    blocking: Service,
    supply: &S,
    (until, budget): (Span, &Budget),
) -> Result<Search<Span>> {
    let set = Set::with_whole_regions(tasks)?.beside(blocking);
    let mut set = set.within(budget);
    let own = Set::with_whole_regions(&[*newcomer])?.items[0];
    set.items.push(own);
    search(set, own, Span::ZERO, supply, until.as_nanos())
}

/// The newcomer, which is the last of the set, is due as early as it can be.
fn search<S: SupplyBound>(
    mut set: Set<'_>,
    mut own: Item,
    jitter: Span,
    supply: &S,
    until: u64,
) -> Result<Search<Span>> {
    set.demand_fits(until)?;
    set.items.pop();
    let (mut time, set) = (until, set.by_deadline());
    for _ in 0..set.budget() {
        if !set.allows_step() {
            break;
        }
        let (demand, blocking) = set.demand_and_blocking(time);
        let asked = match time.checked_sub(own.due) {
            Some(since) => {
                let jobs = own.period.divide(since).0.wrapping_add(own.burst);
                (demand.wrapping_add(blocking)).wrapping_add(jobs.wrapping_mul(own.cost))
            }
            None if demand == 0 => return Ok(found(own.due, jitter)),
            None => demand.wrapping_add(blocking.max(own.blocking)),
        };
        let met = window_for(supply, asked)?;
        if met <= 1 {
            return Ok(found(own.due, jitter));
        }
        if met <= time {
            time = met - 1;
            continue;
        }
        let slack = least_service(supply, time).checked_sub(demand.wrapping_add(blocking));
        let (Some(slack), true) = (slack, time >= own.due) else {
            return Ok(Search::nothing(supply.is_attained()));
        };
        own.due = match (slack / own.cost).checked_sub(own.burst) {
            Some(more) => time - (more + 1) * own.period.get() + 1,
            None => time + 1,
        };
    }
    Ok(Search::Unknown(Doubt::TooLong))
}

fn found(due: u64, jitter: Span) -> Search<Span> {
    let deadline = jitter.checked_add(Span::from_nanos(due));
    deadline.map_or(Search::Unknown(Doubt::TooLong), Search::Found)
}

/// The same task, not late as it is released.
fn due_after_jitter(task: &Task) -> Result<Task> {
    let deadline = task.jitter().checked_add(task.period());
    let task = deadline.and_then(|deadline| task.with_deadline(deadline).ok());
    task.ok_or(Overflow("a deadline"))
}
