//! What a twin's machine takes for itself, as work that an analysis knows.

use laxity::study::Profile;
use laxity_model::analysis::Task;
use laxity_model::{Service, Span};

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// A profile, asked for its worst cases.
#[derive(Clone, Copy)]
pub(super) struct Machine(pub(super) Profile);

impl Machine {
    /// Ticks are at least so far apart; `None` where threads wake exactly.
    pub(super) fn shortest_tick(self) -> Option<Span> {
        let hz = u64::from(self.0.tick_hz?);
        Some(Span::from_nanos(NANOS_PER_SEC / hz))
    }

    /// And at most so far.
    pub(super) fn longest_tick(self) -> Option<Span> {
        let hz = u64::from(self.0.tick_hz?);
        Some(Span::from_nanos(NANOS_PER_SEC.div_ceil(hz)))
    }

    /// The clock's own interrupts, where they cost something.
    pub(super) fn clock(self) -> Option<Task> {
        let cost = self.0.costs.clock_tick.as_full_service();
        Task::new(cost, self.shortest_tick()?).ok()
    }

    /// A handler's work with what it takes to get into and out of it.
    pub(super) fn handler(self, work: Service) -> Service {
        let costs = self.0.costs;
        work + (costs.interrupt_entry + costs.interrupt_exit).as_full_service()
    }

    /// A deferred call's work with what it takes to call it.
    pub(super) fn deferred(self, work: Service) -> Service {
        work + self.0.costs.deferred_dispatch.as_full_service()
    }

    /// A thread's work with the switch to it, and the one back to whom it took the processor from.
    pub(super) fn thread(self, work: Service) -> Service {
        work + (self.0.costs.context_switch * 2).as_full_service()
    }

    /// What one less urgent activity can have the processor pay just before: nothing interrupts that, and such costs add up.
    pub(super) fn one_cost(self) -> Service {
        let costs = self.0.costs;
        costs
            .context_switch
            .max(costs.deferred_dispatch)
            .max(costs.interrupt_entry + costs.interrupt_exit)
            .as_full_service()
    }
}
