//! What a machine can enforce.

use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroU16;

use crate::analysis::multiprocessor::{Bandwidth, KernelLimits};
use crate::policy::slots::PlanCosts;
use crate::request::{Strangers, Work};
use crate::{Priority, ProcessorId, Service, Span};

/// What a host found that its machine can do. Where something is missing, the text says why, and what would help.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Supply {
    /// Whose it is: what was admitted on it runs nowhere else. Begins as [`Host::describe`](crate::Host::describe) says it, and tells
    /// apart whatever has another supply.
    pub host: String,
    /// By processor.
    pub processors: Vec<ProcessorSupply>,
    /// The kernel's reservations; they are not kept to one processor.
    pub deadline: Result<DeadlineSupply, String>,
    /// Who waits for an instant wakes up to so much after it by the clock alone: some periods of a clock that ticks, zero of one that
    /// wakes at any instant.
    pub timer_grain: Span,
    /// Whether it has Linux's scheduling classes; if not, a clause that says who does not have them, and what to do instead.
    pub linux_classes: Result<(), String>,
}

/// `SCHED_DEADLINE` on a machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeadlineSupply {
    /// The processors that share the bandwidth (the root domain).
    pub processors: NonZeroU16,
    /// What the kernel is set to. A kernel without a limit lets in more than there is; admission does not.
    pub limits: KernelLimits,
    /// What its servers for ordinary threads may take of each processor: with what slower processors lack this is in `limits`, too.
    pub servers: Bandwidth,
    /// What it has booked for threads that are not ours, as far as these are seen.
    pub granted: Bandwidth,
    /// Why others may hold more than that; `None` where all are seen.
    pub unseen: Option<String>,
    /// The grain at which the kernel notices that a budget is used up: its tick, 4 ms at HZ = 250; zero where it has a timer for it.
    pub tick: Span,
}

/// One processor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessorSupply {
    /// Which of the program's.
    pub processor: ProcessorId,
    /// What the machine calls it: live, the kernel's number.
    pub number: usize,
    /// Time slots.
    pub slots: Result<SlotSupply, String>,
    /// Threads that are not ours and rank above a slot's occupant here.
    pub outranking: Strangers,
    /// Threads of the process that asks, which are no program's and rank above a slot's occupant here.
    pub drivers: Vec<Driver>,
}

/// A thread that serves something outside the machine, as the driver of an interface does, above whatever holds a slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Driver {
    /// How it is named in messages: `network driver of eth0`.
    pub name: String,
    /// What it takes at the most; `None`: nobody bounds it.
    pub work: Option<Work>,
}

/// Time slots on a processor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlotSupply {
    /// What slots and all work above them may take together, in parts per million: 940,000 live.
    pub max_share_ppm: u32,
    /// What of that is taken already by work that is not ours, in parts per million.
    pub used_ppm: u32,
    /// The dispatcher's processor time a slot, calibrated: at most 50 µs.
    pub per_slot: Service,
    /// The shortest slot that can be kept.
    pub shortest_slot: Span,
    /// How late an edge may be: 0.2 ms live, zero in the twin.
    pub jitter: Span,
    /// What a slot's holder pays to be given the processor, when its slot begins and when it wakes in it. Zero where slots make up for that, as
    /// live.
    pub switch: Service,
    /// What the machine's clock takes from whoever has the processor, where slots do not make up for it.
    pub clock: Option<Work>,
    /// Threads of this priority and above rank above a slot's occupant; `None`: none do.
    pub threads_above: Option<Priority>,
}

impl SlotSupply {
    /// The shortest period that is proposed to anybody: twenty of the shortest slots. At less a table is mostly edges, each of which costs up to as much
    /// as such a slot. (1 ms live)
    pub const fn shortest_period(&self) -> Span {
        Span::from_nanos(20 * self.shortest_slot.as_nanos())
    }

    /// The same on each of so many processors, with nobody above it.
    pub fn on_each(&self, processors: u16) -> Vec<ProcessorSupply> {
        let on = |processor| ProcessorSupply {
            processor: ProcessorId(processor),
            number: processor.into(),
            slots: Ok(self.clone()),
            outranking: Strangers::default(),
            drivers: Vec::new(),
        };
        (0..processors).map(on).collect()
    }

    /// What tables are planned by where so much of the processor, in parts per million, goes to work of the program above them.
    pub fn costs(&self, above_ppm: u64) -> PlanCosts {
        let above = u32::try_from(above_ppm).unwrap_or(u32::MAX);
        PlanCosts {
            per_slot: self.per_slot,
            max_share_ppm: self.max_share_ppm,
            other_ppm: self.used_ppm.saturating_add(above),
            granularity: self.shortest_slot,
        }
    }
}
