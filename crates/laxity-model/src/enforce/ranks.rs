//! Which Linux policy stands for which placement. From the top: witness 99, dispatcher 98, interrupt 97, deferred 96, thread of
//! priority 31 95, channels' node 91, executors of upcalls 90 between their guards, slot occupant 80, other real-time threads below; ordinary threads in the fair class.

use crate::policy::classes::Scheduling;
pub use crate::policy::classes::{
    BELOW_OCCUPANT, HIGHEST_THREAD, LOWEST_REAL_TIME, OCCUPANT, of_thread,
};
use crate::{Placement, Priority};

/// `SCHED_FIFO` priority of the witness, and of the thread that starts and ends a run.
pub const WITNESS: u8 = 99;
/// `SCHED_FIFO` priority of the dispatcher of time slots.
pub const DISPATCHER: u8 = 98;
/// `SCHED_FIFO` priority of emulated interrupt handlers.
pub const INTERRUPT: u8 = 97;
/// `SCHED_FIFO` priority of emulated deferred procedure calls.
pub const DEFERRED: u8 = 96;
/// `SCHED_FIFO` priority of a node of real-time channels: above upcalls, below drivers.
pub const CHANNELS: u8 = 91;
/// `SCHED_FIFO` priority of an executor of upcalls, unless another is asked for. Admission charges its upcalls to the slots below it.
pub const EXECUTOR: u8 = 90;
/// `SCHED_FIFO` priority of what stands for hardware and far ends, on processors of its own.
pub const EXTERNAL: u8 = 45;
/// `SCHED_FIFO` priority of threads that read what a run leaves: below all of its threads of real time.
pub const COLLECTOR: u8 = 1;
/// That of the one that empties the event rings where no program runs on its processor: above what stands for far ends, as one that never rests would keep it from them until they overflow.
pub const COLLECTOR_ALONE: u8 = EXTERNAL + 1;

/// The highest priority of a thread that the holder of a slot preempts.
pub const HIGHEST_BELOW_SLOTS: Priority = Priority::new(30).expect("there are 32");

/// `SCHED_FIFO` priority of the guard just below executors of this one that take turns: it runs when none of them does.
pub const fn sentinel(executors: u8) -> u8 {
    executors.saturating_sub(1)
}

/// `SCHED_FIFO` priority of the guard just above executors of this one: it takes their rank from who does not come back.
pub const fn watchdog(executors: u8) -> u8 {
    executors.saturating_add(1)
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

    /// Who has the rank of a slot's holder, and runs, is not preempted by it.
    #[test]
    fn a_slot_is_outranked_from_its_own_rank_on() {
        assert!(!Scheduling::Fifo(79).outranks_slots());
        assert!(Scheduling::Fifo(80).outranks_slots());
        assert!(Scheduling::RoundRobin(80).outranks_slots());
        let ordinary = [Scheduling::Fair { nice: -20 }, Scheduling::Idle];
        assert!(!ordinary.into_iter().any(Scheduling::outranks_slots));
    }

    #[test]
    fn a_slot_ranks_above_all_threads_but_the_observer() {
        let [below, above] = [HIGHEST_BELOW_SLOTS, Priority::HIGHEST].map(of_thread);
        assert!(!below.outranks_slots() && above.outranks_slots());
        assert_eq!(HIGHEST_BELOW_SLOTS.level() + 1, Priority::HIGHEST.level());
        assert_eq!(
            of_thread(Priority::REAL_TIME).real_time(),
            Some(LOWEST_REAL_TIME)
        );
        let order = [
            WITNESS,
            DISPATCHER,
            INTERRUPT,
            DEFERRED,
            HIGHEST_THREAD,
            watchdog(EXECUTOR),
            EXECUTOR,
            sentinel(EXECUTOR),
            OCCUPANT,
        ];
        assert!(order.windows(2).all(|pair| pair[0] > pair[1]));
    }
}
