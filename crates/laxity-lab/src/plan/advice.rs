//! How much could be added to a set that is admitted, and the nearest sets that are to one that is not. Whatever is found was tested.

use laxity_model::analysis::supply::SupplyBound;
use laxity_model::analysis::{Fraction, Overflow, Preemption, Task};
use laxity_model::{Service, Span};

use super::Change;
use super::attempt::{Member, Method, admits};
use crate::import::Policy;

/// In larger sets no task is asked about alone: that takes some twenty tests of the set for each, and with fixed priorities a test takes time by the
/// square of its size (200 tasks: up to a second and a half; 500: up to half a minute).
pub(super) const MOST_MEMBERS: usize = 200;

/// Next to a full processor, tests take long: fuller than this, in parts per million of it, no set is proposed.
const FULLEST_PPM: u128 = 999_900;

/// Factors are tried up to this.
const LARGEST_FACTOR: u64 = 1_000;

/// Asks about sets like one.
pub(super) struct Advisor<'a> {
    pub(super) members: &'a [Member],
    pub(super) methods: &'a [Method],
    pub(super) supply: &'a dyn SupplyBound,
}

impl Advisor<'_> {
    /// Whether every task can be asked about alone.
    pub(super) fn is_small(&self) -> bool {
        self.members.len() <= MOST_MEMBERS
    }

    /// The first method that admits these.
    fn admitted(&self, members: &[Member]) -> Result<Option<Method>, Overflow> {
        if self.is_too_full(members) {
            return Ok(None);
        }
        for method in self.methods {
            if admits(*method, members, self.supply)? {
                return Ok(Some(*method));
            }
        }
        Ok(None)
    }

    fn is_too_full(&self, members: &[Member]) -> bool {
        let tasks = members
            .iter()
            .filter_map(|member| member.work.as_ref().ok());
        let loads = tasks.map(|task| {
            let (cost, period) = (task.cost().as_nanos(), task.period().as_nanos());
            u128::from(cost) * 1_000_000_000_000 / u128::from(period)
        });
        let rate = self.supply.rate();
        let rate =
            u128::from(rate.numerator()) * FULLEST_PPM * 1_000_000 / u128::from(rate.denominator());
        loads.sum::<u128>() > rate
    }

    fn with(&self, index: usize, task: Task) -> Vec<Member> {
        let mut members = self.members.to_vec();
        change_to(&mut members[index], task);
        members
    }

    fn task(&self, index: usize) -> Option<Task> {
        self.members[index].work.clone().ok()
    }

    /// The largest factor in thousandths by which all costs can be multiplied, and who admits that.
    pub(super) fn scale(&self) -> Result<Option<(u64, Method)>, Overflow> {
        let test = |permille: u64| match self.scaled(permille) {
            Some(members) => self.admitted(&members),
            None => Ok(None),
        };
        largest(1, LARGEST_FACTOR * 1_000, 1_000, test)
    }

    fn scaled(&self, permille: u64) -> Option<Vec<Member>> {
        let mut members = self.members.to_vec();
        for member in &mut members {
            if let Ok(task) = member.work.clone() {
                let cost = u128::from(task.cost().as_nanos()) * u128::from(permille);
                let cost = u64::try_from(cost.div_ceil(1_000)).ok()?;
                change_to(member, with_cost(task, cost)?);
            }
        }
        Some(members)
    }

    /// The largest C of a member, in three digits, and who admits that.
    pub(super) fn largest_cost(&self, index: usize) -> Result<Option<(u64, Method)>, Overflow> {
        let Some(task) = self.task(index) else {
            return Ok(None);
        };
        let cost = task.cost().as_nanos();
        let grain = grain(cost);
        let test = |steps: u64| match steps
            .checked_mul(grain)
            .and_then(|cost| with_cost(task, cost))
        {
            Some(task) => self.admitted(&self.with(index, task)),
            None => Ok(None),
        };
        let found = largest(1, u64::MAX / grain, cost / grain, test)?;
        let found = found.map(|(steps, method)| (steps * grain, method));
        // What it has is a cost, in however many digits.
        if found.is_none_or(|(most, _)| most < cost)
            && let Some(method) = self.admitted(self.members)?
        {
            return Ok(Some((cost, method)));
        }
        Ok(found)
    }

    /// The shortest T of a member, in three digits, and who admits that.
    fn shortest_period(&self, index: usize) -> Result<Option<(u64, Method)>, Overflow> {
        let Some(task) = self.task(index) else {
            return Ok(None);
        };
        let period = task.period().as_nanos();
        let grain = grain(period);
        let most = period.div_ceil(grain).saturating_mul(LARGEST_FACTOR);
        // The largest step down from a period that is too long.
        let test = |down: u64| match (most - down)
            .checked_mul(grain)
            .and_then(|period| with_period(task, period))
        {
            Some(task) => self.admitted(&self.with(index, task)),
            None => Ok(None),
        };
        let found = bisect(0, most - 1, test)?;
        Ok(found.map(|(down, method)| ((most - down) * grain, method)))
    }

    /// The nearest sets that are admitted where this one fails on `offender`.
    pub(super) fn nearest(&self, offender: usize) -> Result<Vec<Change>, Overflow> {
        let mut changes = Vec::new();
        changes.extend(self.another_scheduler()?);
        let name = &self.members[offender].name;
        let task = self.task(offender);
        if let (Some((cost, method)), Some(task)) = (self.largest_cost(offender)?, task)
            && let Some(changed) = with_cost(task, cost)
        {
            let text = format!(
                "`{name}` at most {} every {}",
                changed.cost(),
                task.period()
            );
            changes.push(change(text, &self.with(offender, changed), method));
        }
        if let (Some((period, method)), Some(task)) = (self.shortest_period(offender)?, task)
            && let Some(changed) = with_period(task, period)
        {
            let text = format!(
                "`{name}` every {}, with its {}",
                changed.period(),
                task.cost()
            );
            changes.push(change(text, &self.with(offender, changed), method));
        }
        if self.is_small() {
            changes.extend(self.another_gives_up(offender)?);
        }
        if let Some((permille, method)) = self.scale()?
            && let Some(scaled) = self.scaled(permille)
        {
            let text = format!(
                "all costs times {}.{:03}",
                permille / 1_000,
                permille % 1_000
            );
            changes.push(change(text, &scaled, method));
        }
        Ok(changes)
    }

    /// As it is, under a scheduler that was not asked for.
    fn another_scheduler(&self) -> Result<Option<Change>, Overflow> {
        // Of what is not known, no other scheduler knows more; but timesharing stays where it is.
        let is_unknown =
            |member: &Member| member.work.is_err() && member.policy != Policy::Timesharing;
        if self.members.iter().any(is_unknown) {
            return Ok(None);
        }
        for method in [Method::Monotonic, Method::BestOrder, Method::Edf] {
            if !self.methods.contains(&method) && admits(method, self.members, self.supply)? {
                let text = match method {
                    Method::Edf => "as it is, under earliest deadline first",
                    Method::BestOrder => "as it is, with other priorities (see Audsley's test)",
                    _ => "as it is, with priorities by deadline, the shortest first",
                };
                return Ok(Some(change(text.into(), self.members, method)));
            }
        }
        Ok(None)
    }

    /// Who else would have to give up the least share of its cost.
    fn another_gives_up(&self, offender: usize) -> Result<Option<Change>, Overflow> {
        let mut best: Option<(u64, usize, u64, Method)> = None;
        for index in (0..self.members.len()).filter(|index| *index != offender) {
            let Some(task) = self.task(index) else {
                continue;
            };
            if let Some((cost, method)) = self.largest_cost(index)? {
                let kept = Fraction::new(cost, task.cost().as_nanos()).map_or(0, Fraction::ppm);
                let candidate = (kept, index, cost, method);
                if best.is_none_or(|(most, ..)| kept > most) {
                    best = Some(candidate);
                }
            }
        }
        let found = best.and_then(|(_, index, cost, method)| {
            let task = self.task(index)?;
            let changed = with_cost(task, cost)?;
            let given = Service::from_nanos(task.cost().as_nanos().saturating_sub(cost));
            let name = &self.members[index].name;
            let text = format!(
                "`{name}` gives up {given}: at most {} every {}",
                changed.cost(),
                task.period()
            );
            Some(change(text, &self.with(index, changed), method))
        });
        Ok(found)
    }
}

fn change(text: String, members: &[Member], method: Method) -> Change {
    let tasks = members
        .iter()
        .filter_map(|member| member.work.as_ref().ok());
    Change {
        text,
        costs_ns: tasks.clone().map(|task| task.cost().as_nanos()).collect(),
        periods_ns: tasks.map(|task| task.period().as_nanos()).collect(),
        test: method.name().into(),
    }
}

/// Gives a member other work; a reservation of its own is then just that.
fn change_to(member: &mut Member, task: Task) {
    let former = member.work.as_ref().ok().map(Task::period);
    if let Policy::Deadline {
        runtime,
        period,
        deadline,
    } = &mut member.policy
    {
        *runtime = task.cost();
        if former == Some(*period) {
            if *deadline == *period {
                *deadline = task.period();
            }
            *period = task.period();
        }
    }
    member.work = Ok(task);
}

/// Three digits of a number.
fn grain(number: u64) -> u64 {
    10_u64.pow(number.max(1).ilog10().saturating_sub(2))
}

type Test<'t> = dyn Fn(u64) -> Result<Option<Method>, Overflow> + 't;

/// The largest number from `least` to `most` that passes, if those below it do too; looked for from `near` on upwards, by doubling.
fn largest(
    least: u64,
    most: u64,
    near: u64,
    test: impl Fn(u64) -> Result<Option<Method>, Overflow>,
) -> Result<Option<(u64, Method)>, Overflow> {
    let mut high = near.clamp(least, most);
    let mut low = least;
    while high < most && test(high)?.is_some() {
        low = high;
        high = high.saturating_mul(2).min(most);
    }
    bisect(low, high, test)
}

/// The largest number from `low` to `high` that passes, if those below it do too.
fn bisect(
    low: u64,
    high: u64,
    test: impl Fn(u64) -> Result<Option<Method>, Overflow>,
) -> Result<Option<(u64, Method)>, Overflow> {
    let test: &Test<'_> = &test;
    let Some(method) = test(low)? else {
        return Ok(None);
    };
    let mut best = (low, method);
    let mut high = high;
    while best.0 < high {
        let middle = high - (high - best.0) / 2;
        match test(middle)? {
            Some(method) => best = (middle, method),
            None => high = middle - 1,
        }
    }
    Ok(Some(best))
}

/// The same with another cost; its regions are no longer than that.
fn with_cost(task: Task, cost_ns: u64) -> Option<Task> {
    let cost = Service::from_nanos(cost_ns);
    let preemption = match task.preemption() {
        Preemption::Floating { longest } => Preemption::Floating {
            longest: longest.min(cost),
        },
        Preemption::Fixed { longest, last } => Preemption::Fixed {
            longest: longest.min(cost),
            last: last.min(cost),
        },
        other => other,
    };
    let changed = Task::new(cost, task.period()).ok()?;
    let changed = changed.with_deadline(task.deadline()).ok()?;
    changed
        .with_jitter(task.jitter())
        .with_preemption(preemption)
        .ok()
}

/// The same with another period; a deadline that was the period still is.
fn with_period(task: Task, period_ns: u64) -> Option<Task> {
    let period = Span::from_nanos(period_ns);
    let deadline = if task.deadline() == task.period() {
        period
    } else {
        task.deadline()
    };
    let changed = Task::new(task.cost(), period).ok()?;
    let changed = changed.with_deadline(deadline).ok()?;
    changed
        .with_jitter(task.jitter())
        .with_preemption(task.preemption())
        .ok()
}
