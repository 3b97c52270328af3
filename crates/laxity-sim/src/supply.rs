//! What admission is told about the study's host.

use laxity_model::Span;
use laxity_model::admission::{SlotSupply, Supply};
use laxity_model::enforce::slots::SUPPLY;

use crate::study::Profile;

/// No slot is planned that is shorter: below it, a table is all edges.
const SHORTEST_SLOT: Span = Span::from_micros(10);

impl Profile {
    /// Slots above all threads but the highest, no `SCHED_DEADLINE`, and no threads of others.
    pub(crate) fn supply(&self, host: String, processors: u16) -> Supply {
        Supply {
            host,
            processors: self.slot_supply().on_each(processors),
            deadline: Err("the study's host has no SCHED_DEADLINE; `slots` enforces there".into()),
            timer_grain: self.timer_grain(),
            linux_classes: Err("the study's host does not have: give it one of the 32 priorities, or run it on Linux or on the twin of a Linux machine".into()),
        }
    }

    /// A slot costs one thread switch, kept free before it. All of a processor may be given away: what interrupts and deferred calls of which
    /// nobody says how much they do take from a slot is not admission's to know; it shows in what is measured.
    pub fn slot_supply(&self) -> SlotSupply {
        SlotSupply {
            max_share_ppm: 1_000_000,
            per_slot: self.costs.context_switch.as_full_service(),
            shortest_slot: SHORTEST_SLOT,
            jitter: Span::ZERO,
            switch: self.costs.context_switch.as_full_service(),
            clock: self.clock(),
            // Nothing foreign runs that could outrank its occupant.
            threads_above: self.threads_above,
            ..SUPPLY
        }
    }
}
