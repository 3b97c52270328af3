//! Which Linux policy stands for which placement. From the top: witness 99, dispatcher 98, interrupt 97, deferred 96, thread of
//! priority 31 95, slot occupant 80, other real-time threads below; ordinary threads in the fair class.

use laxity_model::{Placement, Priority};

use crate::os::sched::Policy;

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
/// `SCHED_FIFO` priority of the holder of a slot, inside it. A stranger at this rank or above makes the grant unenforced.
pub const OCCUPANT: u8 = 80;
/// `SCHED_FIFO` priority of what stands for hardware and far ends, on processors of its own.
pub const EXTERNAL: u8 = 45;
/// `SCHED_FIFO` priority of the thread that empties the event rings, on the processor of the external activities.
pub const COLLECTOR: u8 = 1;

/// The policy of a thread of this priority: 31 is [`HIGHEST_THREAD`]; 16 to 30 are FIFO 50, 52, … 78, all below a slot's
/// occupant; 1 to 15 are fair-class threads, two nice steps apart around 8 (an emulation: the fair class shares where the
/// study's host preempts); 0 is `SCHED_IDLE`.
#[must_use]
pub fn thread(priority: Priority) -> Policy {
    match priority.level() {
        31.. => Policy::Fifo(HIGHEST_THREAD),
        level @ 16..=30 => Policy::Fifo(50 + 2 * (level - 16)),
        0 => Policy::Idle,
        level => Policy::Other {
            nice: 2 * (i32::from(Priority::NORMAL.level()) - i32::from(level)),
        },
    }
}

/// The policy of a placement.
#[must_use]
pub fn placement(placement: Placement) -> Policy {
    match placement {
        Placement::Interrupt(_) => Policy::Fifo(INTERRUPT),
        Placement::Deferred => Policy::Fifo(DEFERRED),
        Placement::Thread(priority) => thread(priority),
        Placement::Foreign { fifo } => Policy::Fifo(fifo),
        Placement::External => Policy::Fifo(EXTERNAL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number that grows with the kernel's preference.
    fn rank(policy: Policy) -> i32 {
        match policy {
            Policy::Idle => -100,
            Policy::Other { nice } => -nice,
            Policy::Fifo(priority) => 100 + i32::from(priority),
            other => panic!("{other} is not in the map"),
        }
    }

    #[test]
    fn the_map_keeps_the_order_of_priorities() {
        let ranks: Vec<i32> = (0..32)
            .filter_map(Priority::new)
            .map(|priority| rank(thread(priority)))
            .collect();
        assert!(ranks.windows(2).all(|pair| pair[0] < pair[1]), "{ranks:?}");
        assert_eq!(thread(Priority::NORMAL), Policy::Other { nice: 0 });
    }

    #[test]
    fn a_slot_ranks_above_all_threads_but_the_observer() {
        for level in 0..31 {
            let priority = Priority::new(level).unwrap();
            assert!(rank(thread(priority)) < rank(Policy::Fifo(OCCUPANT)));
        }
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
