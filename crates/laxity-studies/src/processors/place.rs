//! Which processor each device gets, and why.

use std::fmt;
use std::num::NonZeroU16;

use laxity_model::analysis::multiprocessor::{Fit, Misfit, Order, Partitioning, partition};
use laxity_model::analysis::{Doubt, Overflow, Task, Verdict};
use laxity_model::{ProcessorId, Reservation};

use crate::sets::demand::Ground;
use crate::sets::kind::Kind;

/// All kinds of one card.
const KINDS: [Kind; 5] = [
    Kind::Modem,
    Kind::GLite,
    Kind::FullRate,
    Kind::Radio,
    Kind::Audio,
];

/// A device with its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placed {
    /// What it is.
    pub kind: Kind,
    /// Where.
    pub processor: ProcessorId,
    /// Its reservation there.
    pub reservation: Reservation,
    /// Why there.
    pub why: String,
}

/// The answer to a set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Placing {
    /// In the order of the set.
    Found(Vec<Placed>),
    /// This device fits on no processor; how the others were placed when that was seen.
    NoRoom(Kind, Vec<Option<u16>>),
}

impl Default for Placing {
    fn default() -> Self {
        Self::Found(Vec::new())
    }
}

impl fmt::Display for Placing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found(placed) => {
                let each = placed
                    .iter()
                    .map(|placed| format!("{} on {}", placed.kind.name(), placed.processor));
                f.write_str(&each.collect::<Vec<_>>().join(", "))
            }
            Self::NoRoom(kind, _) => write!(f, "no room for the {}", kind.name()),
        }
    }
}

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
) -> Result<Placing, Overflow> {
    let tasks: Vec<Task> = kinds
        .iter()
        .filter_map(|kind| task(ground, *kind))
        .collect();
    let test = |tasks: &[Task]| {
        let kinds: Option<Vec<Kind>> = tasks.iter().map(|task| kind_of(ground, task)).collect();
        let fits = kinds.is_some_and(|kinds| ground.fit(&kinds).is_ok());
        Ok(if fits {
            Verdict::Schedulable
        } else {
            Verdict::Unknown(Doubt::Sufficient)
        })
    };
    Ok(match partition(&tasks, processors, fit, order, test)? {
        Partitioning::Fits(places) => Placing::Found(explain(ground, kinds, &places, (fit, order))),
        Partitioning::DoesNotFit(Misfit { task, placed, .. }) => {
            Placing::NoRoom(kinds[task], placed)
        }
    })
}

/// A device as a task: its work and its period, which tell the kinds apart.
fn task(ground: &Ground, kind: Kind) -> Option<Task> {
    Task::new(ground.work_of(kind), kind.period()).ok()
}

fn kind_of(ground: &Ground, wanted: &Task) -> Option<Kind> {
    KINDS.into_iter().find(|kind| {
        let same = |task: Task| task.cost() == wanted.cost() && task.period() == wanted.period();
        task(ground, *kind).is_some_and(same)
    })
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
) -> Vec<Placed> {
    let count = places.iter().max().map_or(0, |most| usize::from(*most) + 1);
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut whys = vec![String::new(); kinds.len()];
    for device in placing_order(ground, kinds, order) {
        let chosen = usize::from(places[device]);
        let mut words = Vec::new();
        for (passed, there) in members.iter().enumerate().take(chosen) {
            let mut together: Vec<Kind> = there.iter().map(|member| kinds[*member]).collect();
            together.push(kinds[device]);
            if let Err(unfit) = ground.fit(&together) {
                words.push(format!("not on {passed}: {unfit}"));
            }
        }
        words.push(match (members[chosen].len(), fit) {
            (0, _) => format!("{chosen} is empty"),
            (_, Fit::Worst) => format!("{chosen} is the emptiest"),
            (1, _) => format!("{chosen} has room beside one device"),
            (others, _) => format!("{chosen} has room beside {others} devices"),
        });
        whys[device] = words.join("; ");
        members[chosen].push(device);
    }
    let mut placed: Vec<Option<Placed>> = vec![None; kinds.len()];
    for (processor, mut there) in members.into_iter().enumerate() {
        there.sort_unstable();
        let together: Vec<Kind> = there.iter().map(|member| kinds[*member]).collect();
        let reservations = ground.fit(&together).unwrap_or_default();
        for (device, reservation) in there.into_iter().zip(reservations) {
            placed[device] = Some(Placed {
                kind: kinds[device],
                processor: ProcessorId(u16::try_from(processor).unwrap_or(u16::MAX)),
                reservation,
                why: std::mem::take(&mut whys[device]),
            });
        }
    }
    placed.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Kind::{Audio, FullRate, Modem};

    #[test]
    fn each_device_is_known_by_its_task() {
        let ground = Ground::twin();
        for kind in KINDS {
            assert_eq!(
                task(&ground, kind).and_then(|task| kind_of(&ground, &task)),
                Some(kind)
            );
        }
    }

    #[test]
    fn the_order_decides_whether_there_is_room() {
        let ground = Ground::twin();
        let two = NonZeroU16::new(2).unwrap();
        let set = [Audio, Modem, Modem, FullRate, FullRate];
        let given = place(&ground, &set, two, (Fit::First, Order::Given)).unwrap();
        assert!(matches!(given, Placing::NoRoom(FullRate, _)), "{given:?}");
        let decreasing = (Fit::First, Order::Decreasing);
        let Placing::Found(placed) = place(&ground, &set, two, decreasing).unwrap() else {
            panic!("two DSL lines first, the rest beside them");
        };
        let processors: Vec<u16> = placed.iter().map(|placed| placed.processor.0).collect();
        assert_ne!(processors[3], processors[4]);
        assert!(placed[4].why.starts_with("not on 0: "), "{}", placed[4].why);
    }
}
