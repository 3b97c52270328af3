//! How the kernel schedules what stands at which placement: the same map as the live host's.

use laxity_model::policy::classes::Scheduling;
use laxity_model::{Placement, Priority};

/// The witness and the dispatcher of time slots stand above all that a program has.
pub(super) const WITNESS: Scheduling = Scheduling::Fifo(99);
pub(super) const DISPATCHER: Scheduling = Scheduling::Fifo(98);
const INTERRUPT: Scheduling = Scheduling::Fifo(97);
const DEFERRED: Scheduling = Scheduling::Fifo(96);
const HIGHEST_THREAD: Scheduling = Scheduling::Fifo(95);
/// The `SCHED_FIFO` priority of the holder of a slot, inside it.
pub(crate) const OCCUPANT_FIFO: u8 = 80;
pub(super) const OCCUPANT: Scheduling = Scheduling::Fifo(OCCUPANT_FIFO);
const EXTERNAL: Scheduling = Scheduling::Fifo(45);

/// How a thread of this priority is scheduled: 31 is FIFO 95; 16 to 30 are FIFO 50, 52, … 78; 1 to 15 are in the fair class, two nice
/// steps apart around 8; 0 is `SCHED_IDLE`.
pub(super) fn of_thread(priority: Priority) -> Scheduling {
    match priority.level() {
        31.. => HIGHEST_THREAD,
        level @ 16..=30 => Scheduling::Fifo(50 + 2 * (level - 16)),
        0 => Scheduling::Idle,
        level => Scheduling::Fair {
            nice: 2 * (Priority::NORMAL.level() as i8 - level as i8),
        },
    }
}

/// How an activity of this placement is scheduled.
pub(super) fn of_placement(placement: Placement) -> Scheduling {
    match placement {
        Placement::Interrupt(_) => INTERRUPT,
        Placement::Deferred => DEFERRED,
        Placement::Thread(priority) => of_thread(priority),
        Placement::Foreign { fifo } => Scheduling::Fifo(fifo),
        Placement::External => EXTERNAL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_keeps_the_order_of_priorities() {
        let rank = |level| match of_thread(Priority::new(level).unwrap()) {
            Scheduling::Idle => -100,
            Scheduling::Fair { nice } => -i32::from(nice),
            Scheduling::Fifo(priority) | Scheduling::RoundRobin(priority) => {
                100 + i32::from(priority)
            }
        };
        let ranks: Vec<i32> = (0..32).map(rank).collect();
        assert!(ranks.windows(2).all(|pair| pair[0] < pair[1]), "{ranks:?}");
        assert!(ranks[30] < 100 + i32::from(OCCUPANT_FIFO) && 180 < ranks[31]);
    }
}
