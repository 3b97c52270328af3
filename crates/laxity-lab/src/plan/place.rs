//! Which processor a task goes to.

use std::cmp::Reverse;

use laxity_model::analysis::supply::SupplyBound;

use super::attempt::{Member, admits, methods};
use super::{Options, PlanError, Scheduler, all_timesharing};
use crate::import::{Policy, SetTask, TaskSet};

/// Who is where.
pub(super) struct Placed {
    /// By processor, in the order of the file.
    pub(super) processors: Vec<Vec<Member>>,
    /// What was decided.
    pub(super) notes: Vec<String>,
}

/// Places the tasks that are on no processor yet: the most demanding first, each on the first processor that then still admits all it
/// has (*first fit, decreasing*); one that fits nowhere on the least loaded, where it is refused.
pub(super) fn place(
    set: &TaskSet,
    options: &Options,
    supply: &dyn SupplyBound,
) -> Result<Placed, PlanError> {
    let named = set.tasks.iter().filter_map(|task| task.processor).max();
    let processors = options
        .processors
        .unwrap_or_else(|| named.map_or(1, |most| most + 1));
    for task in &set.tasks {
        if let Some(processor) = task.processor.filter(|number| *number >= processors) {
            return Err(PlanError::NoSuchProcessor {
                task: task.name.clone(),
                processor,
                processors,
            });
        }
    }
    let unsaid = all_timesharing(set);
    let members: Vec<Member> = set.tasks.iter().map(|task| member(task, unsaid)).collect();
    let mut homes: Vec<Option<u16>> = set.tasks.iter().map(|task| task.processor).collect();
    let mut open: Vec<usize> = (0..homes.len())
        .filter(|index| homes[*index].is_none())
        .collect();
    open.sort_by_key(|index| Reverse(load_ppm(&members[*index])));
    let mut notes = Vec::new();
    if processors > 1 && !open.is_empty() {
        notes.push(format!(
            "{} of {} tasks are on no processor of their own: placed by first fit, the most demanding first",
            open.len(),
            homes.len()
        ));
    }
    for index in open {
        homes[index] = Some(home(
            index,
            &members,
            &homes,
            (processors, options.scheduler),
            supply,
        )?);
    }
    let on = |processor: u16| of(processor, &members, &homes).cloned().collect();
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
    }
}

fn of<'m>(
    processor: u16,
    members: &'m [Member],
    homes: &'m [Option<u16>],
) -> impl Iterator<Item = &'m Member> {
    let pairs = members.iter().zip(homes);
    pairs
        .filter(move |(_, home)| **home == Some(processor))
        .map(|(member, _)| member)
}

/// C/T in parts per million; what is not known counts as nothing.
pub(super) fn load_ppm(member: &Member) -> u64 {
    let Ok(task) = &member.work else {
        return 0;
    };
    let ppm = u128::from(task.cost().as_nanos()) * 1_000_000;
    let ppm = ppm.div_ceil(u128::from(task.period().as_nanos()));
    u64::try_from(ppm).unwrap_or(u64::MAX)
}

fn home(
    index: usize,
    members: &[Member],
    homes: &[Option<u16>],
    (processors, scheduler): (u16, Scheduler),
    supply: &dyn SupplyBound,
) -> Result<u16, PlanError> {
    for processor in 0..processors {
        if processors == 1 {
            break;
        }
        let mut with: Vec<Member> = of(processor, members, homes).cloned().collect();
        with.push(members[index].clone());
        for method in methods(&with, scheduler) {
            if admits(method, &with, supply)? {
                return Ok(processor);
            }
        }
    }
    let load = |processor: &u16| -> u64 {
        let loads = of(*processor, members, homes).map(load_ppm);
        loads.fold(0, u64::saturating_add)
    };
    Ok((0..processors).min_by_key(load).unwrap_or(0))
}
