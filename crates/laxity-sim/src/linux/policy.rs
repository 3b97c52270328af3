//! The policies of Linux, and which of them stands for which placement: the same map as the live host's.

use laxity_model::{Placement, Priority};

/// How the kernel chooses a thread, `SCHED_DEADLINE` apart: that is a [`Server`](super::Server)'s business.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// `SCHED_FIFO` of this priority, 1 to 99.
    Fifo(u8),
    /// `SCHED_RR` of this priority, 1 to 99.
    RoundRobin(u8),
    /// `SCHED_OTHER` of this nice value, −20 to 19.
    Fair {
        /// The nice value.
        nice: i8,
    },
    /// `SCHED_IDLE`.
    Idle,
}

/// The witness and the dispatcher of time slots stand above all that a program has.
pub(super) const WITNESS: Policy = Policy::Fifo(99);
pub(super) const DISPATCHER: Policy = Policy::Fifo(98);
const INTERRUPT: Policy = Policy::Fifo(97);
const DEFERRED: Policy = Policy::Fifo(96);
const HIGHEST_THREAD: Policy = Policy::Fifo(95);
/// The `SCHED_FIFO` priority of the holder of a slot, inside it.
pub(crate) const OCCUPANT_FIFO: u8 = 80;
pub(super) const OCCUPANT: Policy = Policy::Fifo(OCCUPANT_FIFO);
const EXTERNAL: Policy = Policy::Fifo(45);

impl Policy {
    /// The policy of a thread of this priority: 31 is FIFO 95; 16 to 30 are FIFO 50, 52, … 78; 1 to 15 are in the fair class, two nice
    /// steps apart around 8; 0 is `SCHED_IDLE`.
    #[must_use]
    pub fn of_thread(priority: Priority) -> Self {
        match priority.level() {
            31.. => HIGHEST_THREAD,
            level @ 16..=30 => Self::Fifo(50 + 2 * (level - 16)),
            0 => Self::Idle,
            level => Self::Fair {
                nice: 2 * (Priority::NORMAL.level() as i8 - level as i8),
            },
        }
    }

    /// The policy of a placement.
    #[must_use]
    pub fn of_placement(placement: Placement) -> Self {
        match placement {
            Placement::Interrupt(_) => INTERRUPT,
            Placement::Deferred => DEFERRED,
            Placement::Thread(priority) => Self::of_thread(priority),
            Placement::Foreign { fifo } => Self::Fifo(fifo),
            Placement::External => EXTERNAL,
        }
    }

    /// Its real-time priority; `None` in the fair class.
    #[must_use]
    pub const fn real_time(self) -> Option<u8> {
        match self {
            Self::Fifo(priority) | Self::RoundRobin(priority) => Some(priority),
            Self::Fair { .. } | Self::Idle => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_keeps_the_order_of_priorities() {
        let rank = |level| match Policy::of_thread(Priority::new(level).unwrap()) {
            Policy::Idle => -100,
            Policy::Fair { nice } => -i32::from(nice),
            Policy::Fifo(priority) | Policy::RoundRobin(priority) => 100 + i32::from(priority),
        };
        let ranks: Vec<i32> = (0..32).map(rank).collect();
        assert!(ranks.windows(2).all(|pair| pair[0] < pair[1]), "{ranks:?}");
        assert!(ranks[30] < 100 + i32::from(OCCUPANT_FIFO) && 180 < ranks[31]);
    }
}
