//! Which processor each device gets, and why.

use std::num::NonZeroU16;

use laxity_lab::runner::RunError;
use laxity_model::ProcessorId;
use laxity_model::analysis::multiprocessor::{Fit, Misfit, Order, Partitioning, partition};
use laxity_model::analysis::{Doubt, Overflow, Task, Verdict};

use crate::sets::demand::Ground;
use crate::sets::kind::Kind;
use crate::sets::run::Member;
use crate::sets::system::Placing;

/// Distributes devices over processors, a device fitting where the analysis names reservations for all that are there, with a slot
/// table that keeps them.
///
/// # Errors
///
/// Never for these devices: their numbers are small.
pub fn place(
    ground: &Ground,
    kinds: &[Kind],
    processors: NonZeroU16,
    (fit, order): (Fit, Order),
) -> Result<Placing, RunError> {
    let tasks: Vec<Task> = kinds.iter().map(|kind| task(ground, *kind)).collect();
    let kind_of = |wanted: &Task| {
        let place = tasks.iter().position(|task| task == wanted)?;
        Some(kinds[place])
    };
    let test = |tasks: &[Task]| {
        let kinds: Option<Vec<Kind>> = tasks.iter().map(kind_of).collect();
        let fits = kinds.is_some_and(|kinds| ground.fit(&kinds).is_ok());
        Ok(if fits {
            Verdict::Schedulable
        } else {
            Verdict::Unknown(Doubt::Sufficient)
        })
    };
    let found = partition(&tasks, processors, fit, order, test);
    Ok(match found.map_err(too_large)? {
        Partitioning::Fits(places) => Ok(explain(ground, kinds, &places, (fit, order))),
        Partitioning::DoesNotFit(Misfit { task, .. }) => {
            Err(format!("no room for the {}", kinds[task].name()))
        }
    })
}

/// The numbers of an analysis did not fit.
pub fn too_large(overflow: Overflow) -> RunError {
    RunError::Failed {
        variant: "placing".into(),
        reason: overflow.to_string(),
    }
}

/// A device as a task: its work and its period, which tell the kinds apart.
fn task(ground: &Ground, kind: Kind) -> Task {
    Task::new(ground.work_of(kind), kind.period()).expect("devices have work to do")
}

/// The order in which devices were placed.
fn placing_order(ground: &Ground, kinds: &[Kind], order: Order) -> Vec<usize> {
    let mut places: Vec<usize> = (0..kinds.len()).collect();
    if order == Order::Decreasing {
        let share = |kind: Kind| {
            let work = u128::from(ground.work_of(kind).as_nanos());
            (work << 32) / u128::from(kind.period().as_nanos())
        };
        places.sort_by_key(|place| std::cmp::Reverse(share(kinds[*place])));
    }
    places
}

/// Goes through the placing again, and says of each processor that was passed over why.
fn explain(
    ground: &Ground,
    kinds: &[Kind],
    places: &[u16],
    (fit, order): (Fit, Order),
) -> Vec<Member> {
    let all_on = |devices: &[usize], processor: u16| -> Vec<Kind> {
        let there = devices
            .iter()
            .filter(|device| places[**device] == processor);
        there.map(|device| kinds[*device]).collect()
    };
    let mut whys = vec![String::new(); kinds.len()];
    let order = placing_order(ground, kinds, order);
    for (number, device) in order.iter().enumerate() {
        let chosen = places[*device];
        let passed = (0..chosen).filter_map(|passed| {
            let mut together = all_on(&order[..number], passed);
            together.push(kinds[*device]);
            let unfit = ground.fit(&together).err()?;
            Some(format!("not on {passed}: {unfit}"))
        });
        let mut words: Vec<String> = passed.collect();
        words.push(match (all_on(&order[..number], chosen).len(), fit) {
            (0, _) => format!("{chosen} is empty"),
            (_, Fit::Worst) => format!("{chosen} is the emptiest"),
            (1, _) => format!("{chosen} has room beside one device"),
            (others, _) => format!("{chosen} has room beside {others} devices"),
        });
        whys[*device] = words.join("; ");
    }
    let all: Vec<usize> = (0..kinds.len()).collect();
    let processors = 0..=places.iter().copied().max().unwrap_or(0);
    let mut reservations = processors
        .map(|processor| {
            let there = ground.fit(&all_on(&all, processor));
            there.unwrap_or_default().into_iter()
        })
        .collect::<Vec<_>>();
    let members = kinds
        .iter()
        .zip(places)
        .zip(whys)
        .map(|((kind, processor), why)| Member {
            processor: ProcessorId(*processor),
            reservation: reservations[usize::from(*processor)].next(),
            why,
            ..Member::new(*kind)
        });
    members.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Kind::{Audio, FullRate, Modem};

    #[test]
    fn each_device_is_known_by_its_task() {
        let ground = Ground::twin();
        let kinds = [Modem, Kind::GLite, FullRate, Kind::Radio, Audio];
        let tasks = kinds.map(|kind| task(&ground, kind));
        for (number, task) in tasks.iter().enumerate() {
            assert!(!tasks[..number].contains(task), "{:?}", kinds[number]);
        }
    }

    #[test]
    fn the_order_decides_whether_there_is_room() {
        let ground = Ground::twin();
        let two = NonZeroU16::new(2).unwrap();
        let set = [Audio, Modem, Modem, FullRate, FullRate];
        let given = place(&ground, &set, two, (Fit::First, Order::Given)).unwrap();
        let no_room = format!("no room for the {}", FullRate.name());
        assert_eq!(given, Err(no_room));
        let decreasing = (Fit::First, Order::Decreasing);
        let placed = place(&ground, &set, two, decreasing).unwrap();
        let placed = placed.expect("two DSL lines first, the rest beside them");
        let processors: Vec<u16> = placed.iter().map(|placed| placed.processor.0).collect();
        assert_ne!(processors[3], processors[4]);
        assert!(placed[4].why.starts_with("not on 0: "), "{}", placed[4].why);
    }
}
