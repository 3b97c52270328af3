//! What admission is told about a twin.

use laxity_model::ProcessorId;
use laxity_model::Span;
use laxity_model::admission::{ProcessorSupply, SlotSupply, Supply};

use crate::twin::{SHORTEST_SLOT, Twin};

/// The rank that a slot's occupant has live; in the twin nothing foreign runs that could outrank it.
const OCCUPANT_FIFO: u8 = 80;

impl Twin {
    /// What this machine can enforce, with so many processors. The study's: slots above all threads, and no `SCHED_DEADLINE`.
    #[must_use]
    pub fn supply(&self, processors: u16) -> Supply {
        if let Some(linux) = self.as_linux() {
            return linux.supply(processors);
        }
        let costs = self.plan_costs();
        let slots = SlotSupply {
            max_share_ppm: costs.max_share_ppm,
            used_ppm: 0,
            per_slot: costs.per_slot,
            shortest_slot: SHORTEST_SLOT,
            jitter: Span::ZERO,
            occupant_fifo: OCCUPANT_FIFO,
            threads_above: self.threads_above(),
        };
        let processors = (0..processors).map(|processor| ProcessorSupply {
            processor: ProcessorId(processor),
            slots: Ok(slots.clone()),
            outranking: Vec::new(),
        });
        Supply {
            processors: processors.collect(),
            deadline: Err("the study's host has no SCHED_DEADLINE; `slots` enforces there".into()),
        }
    }
}
