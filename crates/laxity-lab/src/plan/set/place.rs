//! Which processor a task goes to.

use std::cmp::Reverse;

use laxity_model::analysis::multiprocessor::Fit;
use laxity_model::analysis::supply::SupplyBound;
use laxity_model::analysis::{Fraction, Task};

use super::attempt::{Answer, Member, admits, budget, methods};
use super::several::FITS;
use super::{Options, PlanError, Scheduler, all_timesharing};
use crate::import::{Policy, SetTask, TaskSet};

/// Who is where.
pub(super) struct Placed {
    /// By processor, in the order of the file.
    pub(super) processors: Vec<Vec<Member>>,
    /// What was decided.
    pub(super) notes: Vec<String>,
}

/// How many processors there are.
pub(super) fn count(set: &TaskSet, options: &Options) -> Result<u16, PlanError> {
    let named = set.tasks.iter();
    let named = named.flat_map(|task| task.processor.iter().chain(&task.may_be_on).copied());
    let named = named.max();
    let processors = options
        .processors
        .unwrap_or_else(|| named.map_or(1, |most| most.saturating_add(1)));
    for task in &set.tasks {
        let least = task.processor.or(task.may_be_on.first().copied());
        if let Some(processor) = least.filter(|number| *number >= processors) {
            return Err(PlanError::NoSuchProcessor {
                task: task.name.clone(),
                processor,
                processors,
            });
        }
    }
    Ok(processors)
}

/// All tasks, in the order of the file.
pub(super) fn members(set: &TaskSet) -> Vec<Member> {
    let unsaid = all_timesharing(set);
    set.tasks.iter().map(|task| member(task, unsaid)).collect()
}

/// Places the tasks that are on no processor yet: the most demanding first, each on the first processor that then still admits all it
/// has (*first fit, decreasing*); where one fits nowhere so, on the fullest such (*best fit*), or the emptiest (*worst fit*). The way in which the fewest
/// fit nowhere is taken; each of those is on the least loaded, where it is refused, or not known to fit.
///
/// Where no task is bound to a processor, no policy is given and all fit, this is what
/// [`partition`](laxity_model::analysis::multiprocessor::partition) finds, to which [`several`](super::several) compares. It cannot be
/// made of that: `partition` begins with empty processors, its test sees tasks without policies, and it ends with the first that fits nowhere.
///
/// Those that `is_global` names are on all processors and placed nowhere. Who changes, and is bound to no processor, may be on any, and so is told of on each.
pub(super) fn place(
    set: &TaskSet,
    members: &[Member],
    (processors, scheduler): (u16, Scheduler),
    is_global: impl Fn(&Member) -> bool,
    supply: &dyn SupplyBound,
) -> Result<Placed, PlanError> {
    let own = |(task, member): (&SetTask, &Member)| task.processor.filter(|_| !is_global(member));
    let homes: Vec<Option<u16>> = set.tasks.iter().zip(members).map(own).collect();
    let is_anywhere = |index: usize| {
        set.tasks[index].processor.is_none() && matches!(members[index].policy, Policy::Changing(_))
    };
    let is_open = |index: &usize| {
        homes[*index].is_none() && !is_global(&members[*index]) && !is_anywhere(*index)
    };
    let mut open: Vec<usize> = (0..homes.len()).filter(is_open).collect();
    // What is not known counts as nothing.
    let load = |index: usize| members[index].work.as_ref().ok().map(share);
    open.sort_by_key(|index| Reverse(load(*index)));
    let placing = Placing {
        set,
        members,
        processors,
        scheduler,
        supply,
    };
    let (homes, fit) = placing.all(homes, &open)?;
    let mut notes = Vec::new();
    if processors > 1 && !open.is_empty() {
        notes.push(format!(
            "{} of {} tasks are on no processor of their own: placed by {fit}, the most demanding first",
            open.len(),
            homes.len()
        ));
    }
    let on = |processor: u16| {
        let may_be_here = |index: usize| {
            let named = &set.tasks[index].may_be_on;
            is_anywhere(index) && (named.is_empty() || named.contains(&processor))
        };
        let is_here = |index: &usize| homes[*index] == Some(processor) || may_be_here(*index);
        let here = (0..members.len()).filter(is_here);
        here.map(|index| members[index].clone()).collect()
    };
    Ok(Placed {
        processors: (0..processors).map(on).collect(),
        notes,
    })
}

fn member(task: &SetTask, unsaid: bool) -> Member {
    Member {
        name: task.name.clone(),
        policy: if unsaid { Policy::Unsaid } else { task.policy },
        work: task.work.clone(),
        asks_less: task.asks_less,
        own_deadline: task.own_deadline,
    }
}

fn of<'m>(
    processor: u16,
    members: &'m [Member],
    homes: &'m [Option<u16>],
) -> impl Iterator<Item = &'m Member> {
    let pairs = members.iter().zip(homes);
    let here = pairs.filter(move |(_, home)| **home == Some(processor));
    here.map(|(member, _)| member)
}

/// C/T in parts per million, or what is reserved, where that is more; what is not known counts as nothing.
pub(super) fn load_ppm(member: &Member) -> u64 {
    let work = member.work.as_ref().map_or(0, load_ppm_of);
    work.max(budget(member.policy).as_ref().map_or(0, load_ppm_of))
}

/// C/T; no period is zero.
pub(super) fn share(task: &Task) -> Fraction {
    let share = Fraction::new(task.cost().as_nanos(), task.period().as_nanos());
    share.unwrap_or(Fraction::ONE)
}

/// C/T of a task in parts per million, rounded up.
pub(super) fn load_ppm_of(task: &Task) -> u64 {
    share(task).ppm()
}

/// What members load a processor with together, as [`load_ppm`] has it, in parts per million: rounded up once, from a sum that is less
/// than 10⁻¹² low for each, so that three thirds are one.
pub(super) fn sum_ppm(members: &[Member]) -> u64 {
    let share = |task: &Task| {
        let cost = u128::from(task.cost().as_nanos()) * 1_000_000_000_000;
        cost / u128::from(task.period().as_nanos())
    };
    let loads = members.iter().map(|member| {
        let work = member.work.as_ref().map_or(0, share);
        work.max(budget(member.policy).as_ref().map_or(0, share))
    });
    u64::try_from(loads.sum::<u128>().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// Places tasks one after the other.
struct Placing<'a> {
    set: &'a TaskSet,
    members: &'a [Member],
    processors: u16,
    scheduler: Scheduler,
    supply: &'a dyn SupplyBound,
}

impl Placing<'_> {
    /// A home for each that has none yet, and by which heuristic.
    fn all(
        &self,
        homes: Vec<Option<u16>>,
        open: &[usize],
    ) -> Result<(Vec<Option<u16>>, &'static str), PlanError> {
        let mut best: Option<(usize, Vec<Option<u16>>, &'static str)> = None;
        for (name, fit) in FITS {
            let (mut homes, mut misfits) = (homes.clone(), 0);
            for index in open {
                let found = self.home(*index, &homes, fit)?;
                misfits += usize::from(found.is_none());
                homes[*index] = Some(found.unwrap_or_else(|| self.emptiest(*index, &homes)));
            }
            if best.as_ref().is_none_or(|(least, ..)| misfits < *least) {
                best = Some((misfits, homes, name));
            }
            if misfits == 0 || self.processors == 1 {
                break;
            }
        }
        Ok(best.map_or((homes, FITS[0].0), |(_, homes, name)| (homes, name)))
    }

    /// Where a task may be.
    fn allowed(&self, index: usize) -> impl Iterator<Item = u16> + use<'_> {
        let named = &self.set.tasks[index].may_be_on;
        (0..self.processors).filter(|number| named.is_empty() || named.contains(number))
    }

    /// The first, fullest or emptiest that still admits all it has.
    fn home(
        &self,
        index: usize,
        homes: &[Option<u16>],
        fit: Fit,
    ) -> Result<Option<u16>, PlanError> {
        let mut fitting = Vec::new();
        for processor in self.allowed(index).filter(|_| self.processors > 1) {
            let mut homes = homes.to_vec();
            homes[index] = Some(processor);
            if self.admits(processor, &homes)? {
                fitting.push(processor);
                if fit == Fit::First {
                    break;
                }
            }
        }
        Ok(match fit {
            Fit::First => fitting.first().copied(),
            Fit::Best => fitting
                .into_iter()
                .rev()
                .max_by_key(|one| self.load(*one, homes)),
            Fit::Worst => fitting.into_iter().min_by_key(|one| self.load(*one, homes)),
        })
    }

    fn admits(&self, processor: u16, homes: &[Option<u16>]) -> Result<bool, PlanError> {
        let with: Vec<Member> = of(processor, self.members, homes).cloned().collect();
        for method in methods(&with, self.scheduler) {
            if admits(method, &with, self.supply)? == Answer::Admits {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn load(&self, processor: u16, homes: &[Option<u16>]) -> u64 {
        let loads = of(processor, self.members, homes).map(load_ppm);
        loads.fold(0, u64::saturating_add)
    }

    fn emptiest(&self, index: usize, homes: &[Option<u16>]) -> u16 {
        let allowed = self.allowed(index);
        allowed
            .min_by_key(|one| self.load(*one, homes))
            .unwrap_or(0)
    }
}
