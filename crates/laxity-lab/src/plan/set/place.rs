//! Which processor a task goes to.

use std::cmp::Reverse;

use laxity_model::analysis::multiprocessor::Fit;
use laxity_model::analysis::supply::SupplyBound;
use laxity_model::analysis::{Fraction, Task};

use super::attempt::{Answer, Member, admits, methods};
use super::budgets::budget;
use super::search::Found;
use super::several::FITS;
use super::{Options, PlanError, Scheduler, all_timesharing};
use crate::import::{Policy, SetTask, TaskSet};

/// Who is where.
pub(super) struct Placed {
    /// By processor, in the order of the file.
    pub(super) processors: Vec<Vec<Member>>,
    /// Whether they do not all fit so, and may in another way.
    pub(super) is_open: bool,
    /// What was decided.
    pub(super) notes: Vec<String>,
}

/// How many processors there are.
pub(super) fn count(set: &TaskSet, options: &Options) -> Result<u16, PlanError> {
    let named = set.tasks.iter();
    let named = named.flat_map(|task| task.processors.iter().copied());
    let named = named.max();
    let processors = options
        .processors
        .unwrap_or_else(|| named.map_or(1, |most| most.saturating_add(1)));
    for task in &set.tasks {
        let least = task.processors.first().copied();
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

/// All tasks, in the order of the file, of a set on so many processors.
pub(super) fn members(set: &TaskSet, processors: u16) -> Vec<Member> {
    let unsaid = all_timesharing(set);
    let tasks = set.tasks.iter().map(|task| Member {
        name: task.name.clone(),
        policy: if unsaid { Policy::Unsaid } else { task.policy },
        work: task.work.clone(),
        asks_less: task.asks_less,
        sleeps: task.sleeps,
        takes_turns: task.takes_turns,
        own_deadline: task.own_deadline,
        is_bound: processors < 2 || task.processor().is_some(),
    });
    tasks.collect()
}

/// Places the tasks that are on no processor yet: the most demanding first, each on the first processor that then still admits all it
/// has (*first fit, decreasing*); where one fits nowhere so, on the fullest such (*best fit*), or the emptiest (*worst fit*). Where none of these places
/// all, [every way](Placing::search) is tried; after that the one in which the fewest fit nowhere is taken: each of those is on the least loaded, where it is
/// refused, or not known to fit.
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
    let own = |(task, member): (&SetTask, &Member)| task.processor().filter(|_| !is_global(member));
    let homes: Vec<Option<u16>> = set.tasks.iter().zip(members).map(own).collect();
    let is_anywhere = |index: usize| {
        set.tasks[index].processor().is_none()
            && matches!(members[index].policy, Policy::Changing(_))
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
    let (homes, how, is_open) = placing.all(homes, &open)?;
    let mut notes = Vec::new();
    if processors > 1 && !open.is_empty() {
        notes.push(format!(
            "{} of {} tasks are on no processor of their own: placed by {how}",
            open.len(),
            homes.len()
        ));
    }
    let on = |processor: u16| {
        let may_be_here = |index: usize| {
            let named = &set.tasks[index].processors;
            is_anywhere(index) && (named.is_empty() || named.contains(&processor))
        };
        let is_here = |index: &usize| homes[*index] == Some(processor) || may_be_here(*index);
        let here = (0..members.len()).filter(is_here);
        here.map(|index| members[index].clone()).collect()
    };
    Ok(Placed {
        processors: (0..processors).map(on).collect(),
        is_open,
        notes,
    })
}

/// Those on a processor.
pub(super) fn of<'m>(
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
pub(super) struct Placing<'a> {
    set: &'a TaskSet,
    pub(super) members: &'a [Member],
    pub(super) processors: u16,
    pub(super) scheduler: Scheduler,
    pub(super) supply: &'a dyn SupplyBound,
}

impl Placing<'_> {
    /// A home for each that has none yet, how they were found, and whether all may fit in another way.
    fn all(
        &self,
        fixed: Vec<Option<u16>>,
        open: &[usize],
    ) -> Result<(Vec<Option<u16>>, String, bool), PlanError> {
        let in_order = |name: &str| format!("{name}, the most demanding first");
        let mut best: Option<(usize, Vec<Option<u16>>, &'static str)> = None;
        for (name, fit) in FITS {
            let (homes, misfits) = self.in_turn(&fixed, open, fit)?;
            if misfits == 0 || self.processors == 1 {
                return Ok((homes, in_order(name), false));
            }
            if best.as_ref().is_none_or(|(least, ..)| misfits < *least) {
                best = Some((misfits, homes, name));
            }
        }
        let known: Vec<usize> = open
            .iter()
            .copied()
            .filter(|one| self.is_known(*one))
            .collect();
        let (found, (_, homes, name)) = match (self.search(&fixed, &known)?, best) {
            (Found::Way(homes), _) => {
                let (homes, _) = self.in_turn(&homes, &self.unknown(open), Fit::Worst)?;
                return Ok((homes, "looking for a way in which all fit".into(), false));
            }
            (found, Some(best)) => (found, best),
            (_, None) => return Ok((fixed, in_order(FITS[0].0), false)),
        };
        let is_open = matches!(found, Found::Open);
        let others = match is_open {
            true => "in another way all may fit: not each was looked at to the end",
            false => "there is no way in which all fit",
        };
        let how = format!("{}; {others}", in_order(name));
        Ok((homes, how, is_open))
    }

    /// A home for each that has none yet, one after the other, and how many of those of which something is known fit nowhere.
    fn in_turn(
        &self,
        fixed: &[Option<u16>],
        open: &[usize],
        fit: Fit,
    ) -> Result<(Vec<Option<u16>>, usize), PlanError> {
        let (mut homes, mut misfits) = (fixed.to_vec(), 0);
        for index in open {
            let found = self.home(*index, &homes, fit)?;
            misfits += usize::from(found.is_none() && self.is_known(*index));
            homes[*index] = Some(found.unwrap_or_else(|| self.emptiest(*index, &homes)));
        }
        Ok((homes, misfits))
    }

    fn is_known(&self, index: usize) -> bool {
        self.members[index].work.is_ok()
    }

    fn unknown(&self, open: &[usize]) -> Vec<usize> {
        let unknown = open.iter().copied().filter(|one| !self.is_known(*one));
        unknown.collect()
    }

    /// Whether everybody may be on any processor that he is not bound to.
    pub(super) fn are_alike(&self) -> bool {
        self.set.tasks.iter().all(|task| task.processors.len() < 2)
    }

    /// Where a task may be.
    pub(super) fn allowed(&self, index: usize) -> impl Iterator<Item = u16> + use<'_> {
        let named = &self.set.tasks[index].processors;
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
