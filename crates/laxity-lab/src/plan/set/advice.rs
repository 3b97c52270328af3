//! How much could be added to a set that is admitted, and the nearest sets that are to one that is not. Whatever is found was tested.

use std::cmp::Reverse;

use laxity_model::analysis::{Fraction, Overflow, Preemption, Task};
use laxity_model::{Service, Span};

use super::attempt::{Answer, Member, Method, admits};
use super::effort::Effort;
use super::most::{Found, Most, bisect, largest};
use super::{Change, ChangedTask, ReservationPlan};
use crate::import::Policy;

/// Factors are tried up to this.
const LARGEST_FACTOR: u64 = 1_000;

/// Asks about sets like one.
#[derive(Clone, Copy)]
pub(super) struct Advisor<'a> {
    pub(super) members: &'a [Member],
    pub(super) methods: &'a [Method],
    /// Who admits the set as it is.
    pub(super) admitted_by: Option<Method>,
    pub(super) effort: &'a Effort<'a>,
    /// Whether a reservation that has room for its task's job is no larger than that, whatever the job becomes; else all are as they are.
    pub(super) cuts_budgets: bool,
}

/// What it found.
pub(super) struct Advice {
    /// The largest factor in thousandths by which all costs can be multiplied.
    pub(super) scale: Option<Most>,
    /// By member, the largest C, to the nanosecond.
    pub(super) costs: Vec<Option<Most>>,
    pub(super) nearest: Vec<Change>,
    /// What was looked for in vain or not at all.
    pub(super) left_out: Vec<String>,
}

impl Advisor<'_> {
    /// All that can be said. A set that is not admitted fails on `offender`.
    pub(super) fn advise(self, offender: Option<usize>) -> Result<Advice, Overflow> {
        let refused = offender.filter(|_| self.admitted_by.is_none());
        // A margin is what reservations leave as they are; what is changed so that a set is admitted may be what it reserves.
        let changing = Self {
            cuts_budgets: refused.is_some() && self.reserves(),
            ..self
        };
        let another = refused.map(|_| self.another_scheduler());
        let another = another.transpose()?.flatten();
        let mut scale = changing.scale()?;
        let period = refused.map(|offender| changing.shortest_period(offender));
        let period = period.transpose()?.flatten();
        let (mut costs, mut unasked) = changing.largest_costs(refused)?;
        let mut nearest: Vec<Change> = another.into_iter().collect();
        if let Some(offender) = refused {
            let cost = costs[offender];
            nearest.extend(cost.and_then(|most| changing.cheaper(offender, most, false)));
            nearest.extend(period.and_then(|most| changing.rarer(offender, most)));
            nearest.extend(changing.another_gives_up(offender, &costs));
            nearest.extend(changing.all_give_up(scale));
        }
        if changing.cuts_budgets {
            scale = self.scale()?;
            (costs, unasked) = self.largest_costs(refused)?;
        }
        for (index, most) in costs.iter_mut().enumerate() {
            *most = self.exact_cost(index, *most)?;
        }
        let left_out = self.left_out(&nearest, scale, unasked);
        Ok(Advice {
            scale,
            costs,
            nearest,
            left_out,
        })
    }

    /// Whether somebody has a reservation of its own.
    fn reserves(&self) -> bool {
        let mut policies = self.members.iter().map(|member| member.policy);
        policies.any(|policy| policy.reservation().is_some())
    }

    /// By member, the largest C in three digits; and of how many it was not asked any more.
    fn largest_costs(
        &self,
        refused: Option<usize>,
    ) -> Result<(Vec<Option<Most>>, usize), Overflow> {
        let mut costs = vec![None; self.members.len()];
        // The offender first: who knows how far one gets.
        let others = (0..costs.len()).filter(|index| refused != Some(*index));
        let mut unasked = costs.len();
        for index in refused.into_iter().chain(others) {
            if self.effort.is_spent() {
                break;
            }
            if self.is_promised(index) {
                costs[index] = self.largest_cost(index)?;
            }
            unasked -= 1;
        }
        Ok((costs, unasked))
    }

    /// What was looked for in vain or not at all.
    fn left_out(&self, nearest: &[Change], scale: Option<Most>, unasked: usize) -> Vec<String> {
        let mut left_out = Vec::new();
        if self.admitted_by.is_none() && nearest.is_empty() {
            left_out.push(self.why_nothing());
        }
        if unasked > 0 {
            left_out.push(format!(
                "the largest costs of {unasked} of {} tasks: what is looked at for one plan is limited",
                self.members.len()
            ));
        }
        if self.admitted_by.is_some() && scale.is_none() {
            left_out.push(
                "the largest factor for all costs: of no task that is promised anything is its cost known"
                    .into(),
            );
        }
        left_out
    }

    fn why_nothing(&self) -> String {
        if self.effort.is_spent() {
            return "sets that would be admitted: what is looked at for one plan is limited, and none was found within that"
                .into();
        }
        "sets that would be admitted: none was found with one task's cost or period changed, nor with any factor for all costs"
            .into()
    }

    /// What the methods say of these.
    fn ask(&self, members: &[Member]) -> Result<Found, Overflow> {
        let mut found = Found::Refused;
        for method in self.methods {
            match self.effort.ask(|supply| admits(*method, members, supply))? {
                Answer::Admits => return Ok(Found::Admitted(*method)),
                Answer::TooLong => found = Found::TooLong,
                Answer::Refuses | Answer::CannotTell => {}
            }
        }
        Ok(found)
    }

    /// What they say where one member has other work, if there is such work.
    fn ask_with(&self, index: usize, task: Option<Task>) -> Result<Found, Overflow> {
        match task {
            Some(task) => self.ask(&self.with(index, task)),
            None => Ok(Found::Refused),
        }
    }

    fn with(&self, index: usize, task: Task) -> Vec<Member> {
        let mut members = self.members.to_vec();
        self.change_to(&mut members[index], task);
        members
    }

    /// Gives a member other work; where budgets are cut, a reservation of its own is then just that, unless it was too small for it: what is short
    /// does not grow along.
    fn change_to(&self, member: &mut Member, task: Task) {
        let former = member.work.as_ref().ok().copied();
        if self.cuts_budgets
            && let Policy::Deadline(request) = &mut member.policy
            && former.is_none_or(|former| fits(former, request.runtime, request.period))
        {
            request.runtime = task.cost();
            if former.is_some_and(|former| former.period() == request.period) {
                if request.deadline == request.period {
                    request.deadline = task.period();
                }
                request.period = task.period();
            }
        }
        // A job of who has a reservation is due when that says so, however rare it becomes.
        let due = member.policy.reservation().map(|request| request.deadline);
        let due = due.and_then(|due| task.with_deadline(due).ok());
        member.work = Ok(due.unwrap_or(task));
    }

    fn task(&self, index: usize) -> Option<Task> {
        self.members[index].work.clone().ok()
    }

    /// Whether one of the methods promises something to a member; of others no cost is too large.
    fn is_promised(&self, index: usize) -> bool {
        let policy = self.members[index].policy;
        self.methods.iter().any(|method| method.promises_to(policy))
    }

    /// The largest factor in thousandths by which all costs can be multiplied.
    fn scale(&self) -> Result<Option<Most>, Overflow> {
        let is_bound = |index: usize| self.is_promised(index) && self.members[index].work.is_ok();
        if !(0..self.members.len()).any(is_bound) {
            return Ok(None);
        }
        let test = |permille: u64| match (self.admitted_by, self.scaled(permille)) {
            (Some(method), _) if permille == 1_000 => Ok(Found::Admitted(method)),
            (_, Some(members)) => self.ask(&members),
            (_, None) => Ok(Found::Refused),
        };
        largest(1_000, LARGEST_FACTOR * 1_000, test)
    }

    fn scaled(&self, permille: u64) -> Option<Vec<Member>> {
        let mut members = self.members.to_vec();
        for member in &mut members {
            if let Ok(task) = member.work.clone() {
                let cost = u128::from(task.cost().as_nanos()) * u128::from(permille);
                let cost = u64::try_from(cost.div_ceil(1_000)).ok()?;
                self.change_to(member, with_cost(task, cost)?);
            }
        }
        Some(members)
    }

    /// The largest C of a member, in three digits; what it has, in however many, if that is admitted and the next is not.
    fn largest_cost(&self, index: usize) -> Result<Option<Most>, Overflow> {
        let Some(task) = self.task(index) else {
            return Ok(None);
        };
        let cost = task.cost().as_nanos();
        let grain = grain(cost);
        let test = |steps: u64| match (self.admitted_by, steps.checked_mul(grain)) {
            (Some(method), Some(other)) if other == cost => Ok(Found::Admitted(method)),
            (_, Some(other)) => self.ask_with(index, with_cost(task, other)),
            (_, None) => Ok(Found::Refused),
        };
        let found = largest(cost / grain, u64::MAX / grain, test)?.map(|most| Most {
            number: most.number * grain,
            ..most
        });
        Ok(match (found, self.admitted_by) {
            (Some(most), _) if most.number >= cost => Some(most),
            (_, Some(method)) => Some(Most {
                number: cost,
                method,
                is_exact: found.is_some_and(|most| most.is_exact),
            }),
            (found, None) => found,
        })
    }

    /// The largest C of a member where three digits of it are known.
    fn exact_cost(&self, index: usize, most: Option<Most>) -> Result<Option<Most>, Overflow> {
        let (Some(task), Some(most)) = (self.task(index), most) else {
            return Ok(None);
        };
        if !most.is_exact {
            return Ok(Some(most));
        }
        let grain = grain(task.cost().as_nanos());
        let refused = (most.number / grain + 1).saturating_mul(grain);
        let test = |other| self.ask_with(index, with_cost(task, other));
        bisect((most.number, most.method), (refused, true), test).map(Some)
    }

    /// A member's work with another period; a deadline that is the period because nobody gave one still is.
    fn with_period(&self, index: usize, period_ns: u64) -> Option<Task> {
        let task = self.task(index)?;
        let period = Span::from_nanos(period_ns);
        let follows = task.deadline() == task.period() && !self.members[index].own_deadline;
        let deadline = if follows { period } else { task.deadline() };
        let changed = Task::new(task.cost(), period).ok()?;
        let changed = changed.with_deadline(deadline).ok()?;
        changed
            .with_jitter(task.jitter())
            .with_preemption(task.preemption())
            .ok()
    }

    /// The shortest T of a member, in three digits.
    fn shortest_period(&self, index: usize) -> Result<Option<Most>, Overflow> {
        let Some(task) = self.task(index) else {
            return Ok(None);
        };
        let period = task.period().as_nanos();
        let grain = grain(period);
        let most = period.div_ceil(grain).saturating_mul(LARGEST_FACTOR);
        // The largest step down from a period that is too long.
        let test = |down: u64| {
            let period = (most - down).checked_mul(grain);
            self.ask_with(
                index,
                period.and_then(|period| self.with_period(index, period)),
            )
        };
        let Found::Admitted(method) = test(0)? else {
            return Ok(None);
        };
        let found = bisect((0, method), (most, true), test)?;
        Ok(Some(Most {
            number: (most - found.number) * grain,
            ..found
        }))
    }

    /// One task with a lesser cost; of one that is not at fault, also what it gives up.
    fn cheaper(&self, index: usize, most: Most, gives_up: bool) -> Option<Change> {
        let task = self.task(index)?;
        let changed = with_cost(task, most.number)?;
        let given = task.cost().saturating_sub(changed.cost());
        let members = self.with(index, changed);
        let mut reserving = self.cut_budget(index, &members);
        let mut every = task.period();
        let what = match gives_up {
            false => String::new(),
            // What it does may stay; what it reserves is less.
            true if given.is_zero() => {
                every = self.members[index].policy.reservation()?.period;
                reserving.clear();
                " reserves".to_owned()
            }
            true => format!(" gives up {given}:"),
        };
        let text = format!(
            "`{}`{what} at most {} every {}{reserving}{}",
            self.members[index].name,
            changed.cost(),
            every,
            cut_region(task, changed)
        );
        Some(change(text, &members, most.method))
    }

    /// One task with a longer period.
    fn rarer(&self, index: usize, most: Most) -> Option<Change> {
        let task = self.task(index)?;
        let changed = self.with_period(index, most.number)?;
        let (name, period) = (&self.members[index].name, changed.period());
        let members = self.with(index, changed);
        let reserving = self.cut_budget(index, &members);
        let text = format!(
            "`{name}` every {period}, with its {}{reserving}",
            task.cost()
        );
        Some(change(text, &members, most.method))
    }

    /// In words, what a member reserves of a changed set, if that is not what it did.
    fn cut_budget(&self, index: usize, changed: &[Member]) -> String {
        let now = changed[index].policy.reservation();
        match now.filter(|now| self.members[index].policy.reservation() != Some(*now)) {
            Some(now) => {
                let due = match self.members[index].policy.reservation() {
                    Some(former) if former.deadline != now.deadline => {
                        format!(", its deadline {}", now.deadline)
                    }
                    _ => String::new(),
                };
                format!(", reserving {}/{}{due}", now.runtime, now.period)
            }
            None => String::new(),
        }
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
            if self.methods.contains(&method) {
                continue;
            }
            let answer = self
                .effort
                .ask(|supply| admits(method, self.members, supply))?;
            if answer == Answer::Admits {
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
    fn another_gives_up(&self, offender: usize, costs: &[Option<Most>]) -> Option<Change> {
        let others = costs.iter().enumerate();
        let others = others.filter(|(index, _)| *index != offender);
        let kept = others.filter_map(|(index, most)| {
            let (task, most) = (self.task(index)?, (*most)?);
            let kept = Fraction::new(most.number, task.cost().as_nanos());
            Some((kept.map_or(0, Fraction::ppm), index, most))
        });
        let (_, index, most) = kept.min_by_key(|(kept, ..)| Reverse(*kept))?;
        self.cheaper(index, most, true)
    }

    fn all_give_up(&self, scale: Option<Most>) -> Option<Change> {
        let most = scale?;
        let scaled = self.scaled(most.number)?;
        let mut text = format!(
            "all costs times {}.{:03}",
            most.number / 1_000,
            most.number % 1_000
        );
        if (0..scaled.len()).any(|index| !self.cut_budget(index, &scaled).is_empty()) {
            text.push_str(", each reservation with room for a job cut to that job");
        }
        let mut pairs = self.members.iter().zip(&scaled);
        if pairs.any(|(member, changed)| match (&member.work, &changed.work) {
            (Ok(task), Ok(changed)) => !cut_region(*task, *changed).is_empty(),
            _ => false,
        }) {
            text.push_str(", and no region longer than its task's cost");
        }
        Some(change(text, &scaled, most.method))
    }
}

/// In words, that a region does not fit what is left of a cost.
fn cut_region(task: Task, changed: Task) -> String {
    let (former, now) = (regions(task).0, regions(changed).0);
    match now.filter(|now| former.is_some_and(|former| *now < former)) {
        Some(now) if task.preemption() != Preemption::Never => {
            format!(" and no region longer than {now}")
        }
        _ => String::new(),
    }
}

/// The longest region and the last, of those that a task is said to have.
fn regions(task: Task) -> (Option<Service>, Option<Service>) {
    match task.preemption() {
        Preemption::Anywhere => (None, None),
        Preemption::Floating { longest } => (Some(longest), None),
        Preemption::Fixed { longest, last } => (Some(longest), Some(last)),
        Preemption::Never => (Some(task.cost()), Some(task.cost())),
    }
}

fn change(text: String, members: &[Member], method: Method) -> Change {
    let tasks = members.iter().filter_map(|member| {
        let task = *member.work.as_ref().ok()?;
        let (longest, last) = regions(task);
        Some(ChangedTask {
            name: member.name.clone(),
            cost_ns: task.cost().as_nanos(),
            period_ns: task.period().as_nanos(),
            deadline_ns: task.deadline().as_nanos(),
            jitter_ns: task.jitter().as_nanos(),
            region_ns: longest.map(Service::as_nanos),
            last_region_ns: last.map(Service::as_nanos),
            reservation: member.policy.reservation().map(|asked| ReservationPlan {
                runtime_ns: asked.runtime.as_nanos(),
                period_ns: asked.period.as_nanos(),
                deadline_ns: asked.deadline.as_nanos(),
            }),
        })
    });
    Change {
        text,
        tasks: tasks.collect(),
        test: method.name().into(),
    }
}

/// Whether a budget has each job in one of its periods.
fn fits(task: Task, runtime: Service, period: Span) -> bool {
    task.cost() <= runtime && task.period() >= period
}

/// Three digits of a number.
fn grain(number: u64) -> u64 {
    10_u64.pow(number.max(1).ilog10().saturating_sub(2))
}

/// The same with another cost; its regions are no longer than that.
fn with_cost(task: Task, cost_ns: u64) -> Option<Task> {
    task.with_cost(Service::from_nanos(cost_ns)).ok()
}
