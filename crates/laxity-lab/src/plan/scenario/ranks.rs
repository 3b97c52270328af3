//! In which order those who take a processor's time go first: threads by priority at every fourth rank, what runs in slots and what others made more urgent
//! than that between them, then deferred calls, interrupts, the clock.

use laxity_model::analysis::Task;
use laxity_model::enforce::ranks::{self, LOWEST_REAL_TIME};
use laxity_model::{Priority, ProcessorId, ReservationRequest, Scheduling};

use crate::runner::machine::Machine;
use crate::runner::served::beside;
use crate::scenario::{Rank, ResolvedVariant, TaskKind};

pub(super) const DEFERRED: u16 = 140;
pub(super) const INTERRUPTS: u16 = 160;
pub(super) const CLOCK: u16 = 200;

pub(super) const fn thread_rank(priority: Priority) -> u16 {
    4 * priority.level() as u16
}

pub(super) fn slot_rank(machine: &Machine) -> u16 {
    let above = machine.threads_above;
    above.map_or(DEFERRED - 1, |priority| {
        thread_rank(priority).saturating_sub(2)
    })
}

pub(super) const fn is_thread(rank: u16) -> bool {
    rank < DEFERRED
}

/// Of whoever has a reservation: that of slots, or that at which it competes outside them.
pub(super) fn holder_rank(machine: &Machine, request: ReservationRequest, placed: Priority) -> u16 {
    let beside = rank_beside(request, placed).unwrap_or(0);
    beside.max(slot_rank(machine))
}

/// The rank that a holder of slots never falls below, if it has one.
pub(super) fn rank_beside(request: ReservationRequest, placed: Priority) -> Option<u16> {
    beside(request, placed).map(thread_rank)
}

/// Of one to whom somebody outside gave this `SCHED_FIFO` priority: where the kernel has it among all others.
pub(super) fn foreign_rank(machine: &Machine, fifo: u8) -> u16 {
    match fifo {
        ranks::DISPATCHER.. => return CLOCK,
        ranks::INTERRUPT => return INTERRUPTS,
        ranks::DEFERRED => return DEFERRED,
        ranks::HIGHEST_THREAD => return thread_rank(Priority::HIGHEST),
        _ if Scheduling::Fifo(fifo).outranks_slots() => return slot_rank(machine) + 1,
        _ => {}
    }
    // From one level to the next there are as many ranks as from it to the next but one of the kernel's.
    let above = u16::from(fifo.max(LOWEST_REAL_TIME - 1)) * 2 + thread_rank(Priority::REAL_TIME);
    let among_threads = above - u16::from(LOWEST_REAL_TIME) * 2;
    among_threads.min(slot_rank(machine).saturating_sub(1))
}

/// Those of a processor to whom somebody outside gave such a priority that a slot's occupant does not preempt them, as the scenario says of them. No
/// grant counts them, as nobody keeps them to it.
pub(super) fn above_slots(
    variant: &ResolvedVariant,
    on: ProcessorId,
) -> impl Iterator<Item = Task> {
    let here = variant
        .tasks
        .iter()
        .filter(move |task| task.processor == on);
    here.filter_map(|task| match &task.kind {
        TaskKind::Rogue {
            burst,
            every,
            rank: Rank::Foreign { fifo },
            ..
        } if Scheduling::Fifo(*fifo).outranks_slots() => Task::new(*burst, *every).ok(),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use laxity_model::enforce::ranks::of_thread;

    use super::*;
    use crate::runner::machine::Charged;

    #[test]
    fn a_foreign_priority_ranks_among_threads_as_the_kernel_has_it_and_above_slots_from_theirs_on()
    {
        let live = Machine::live((None, Charged::Largest), None, None);
        for level in Priority::REAL_TIME.level()..Priority::HIGHEST.level() {
            let priority = Priority::new(level).expect("a priority");
            let fifo = of_thread(priority).real_time().expect("a real-time thread");
            assert_eq!(foreign_rank(&live, fifo), thread_rank(priority), "{level}");
        }
        let below = thread_rank(Priority::REAL_TIME) - 2;
        assert_eq!([1, 49].map(|fifo| foreign_rank(&live, fifo)), [below; 2]);
        let highest = thread_rank(Priority::HIGHEST);
        let order = [79, 80, 94].map(|fifo| foreign_rank(&live, fifo));
        assert!(order[0] < slot_rank(&live) && slot_rank(&live) < order[1]);
        assert!(order[1] == order[2] && order[2] < highest);
        let order = [95, 96, 97, 98, 99].map(|fifo| foreign_rank(&live, fifo));
        assert_eq!(order, [highest, DEFERRED, INTERRUPTS, CLOCK, CLOCK]);
    }
}
