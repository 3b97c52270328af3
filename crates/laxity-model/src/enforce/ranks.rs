//! Which Linux policy stands for which placement. From the top: witness 99, dispatcher 98, interrupt 97, deferred 96, thread of
//! priority 31 95, slot occupant 80, other real-time threads below; ordinary threads in the fair class.

use crate::policy::classes::Scheduling;
use crate::{Placement, Priority};

/// `SCHED_FIFO` priority of the witness, and of the thread that starts and ends a run.
pub const WITNESS: u8 = 99;
/// `SCHED_FIFO` priority of the dispatcher of time slots.
pub const DISPATCHER: u8 = 98;
/// `SCHED_FIFO` priority of emulated interrupt handlers.
pub const INTERRUPT: u8 = 97;
/// `SCHED_FIFO` priority of emulated deferred procedure calls.
pub const DEFERRED: u8 = 96;
/// `SCHED_FIFO` priority of a thread of priority 31: the observer of the modem study, above all that is observed.
pub const HIGHEST_THREAD: u8 = 95;
/// `SCHED_FIFO` priority of the holder of a slot, inside it. A foreign thread at this rank or above makes the grant unenforced.
pub const OCCUPANT: u8 = 80;
/// `SCHED_FIFO` priority of what stands for hardware and far ends, on processors of its own.
pub const EXTERNAL: u8 = 45;
/// `SCHED_FIFO` priority of the thread that empties the event rings, on the processor of the external activities.
pub const COLLECTOR: u8 = 1;

/// How a thread of this priority is scheduled: 31 is [`HIGHEST_THREAD`]; 16 to 30 are FIFO 50, 52, … 78, all below a slot's
/// occupant; 1 to 15 are fair-class threads, two nice steps apart around 8 (an emulation: the fair class shares where the
/// study's host preempts); 0 is `SCHED_IDLE`.
pub const fn of_thread(priority: Priority) -> Scheduling {
    match priority.level() {
        31.. => Scheduling::Fifo(HIGHEST_THREAD),
        level @ 16..=30 => Scheduling::Fifo(50 + 2 * (level - 16)),
        0 => Scheduling::Idle,
        level => Scheduling::Fair {
            nice: 2 * (Priority::NORMAL.level() as i8 - level as i8),
        },
    }
}

/// How an activity of this placement is scheduled.
pub const fn of_placement(placement: Placement) -> Scheduling {
    match placement {
        Placement::Interrupt(_) => Scheduling::Fifo(INTERRUPT),
        Placement::Deferred => Scheduling::Fifo(DEFERRED),
        Placement::Thread(priority) => of_thread(priority),
        Placement::Linux(scheduling) => scheduling,
        // What is on an executor has no thread of its own.
        Placement::External | Placement::On { .. } => Scheduling::Fifo(EXTERNAL),
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// A number that grows with the kernel's preference.
    fn rank(level: u8) -> i32 {
        let priority = Priority::new(level).expect("a priority");
        match of_thread(priority) {
            Scheduling::Idle => -100,
            Scheduling::Fair { nice } => -i32::from(nice),
            Scheduling::Fifo(fifo) | Scheduling::RoundRobin(fifo) => 100 + i32::from(fifo),
        }
    }

    #[test]
    fn the_map_keeps_the_order_of_priorities() {
        let ranks: Vec<i32> = (0..32).map(rank).collect();
        assert!(ranks.windows(2).all(|pair| pair[0] < pair[1]), "{ranks:?}");
        assert_eq!(of_thread(Priority::NORMAL), Scheduling::Fair { nice: 0 });
    }

    #[test]
    fn a_slot_ranks_above_all_threads_but_the_observer() {
        let occupant = 100 + i32::from(OCCUPANT);
        assert!(rank(30) < occupant && occupant < rank(31));
        let order = [
            WITNESS,
            DISPATCHER,
            INTERRUPT,
            DEFERRED,
            HIGHEST_THREAD,
            OCCUPANT,
        ];
        assert!(order.windows(2).all(|pair| pair[0] > pair[1]));
    }
}
