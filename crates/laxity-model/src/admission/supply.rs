//! What a machine can enforce.

use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroU16;

use crate::analysis::multiprocessor::{Bandwidth, KernelLimits};
use crate::{Priority, ProcessorId, Service, Span};

/// What a host found that its machine can do. Where something is missing, the text says why, and what would help.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Supply {
    /// By processor.
    pub processors: Vec<ProcessorSupply>,
    /// The kernel's reservations; they are not kept to one processor.
    pub deadline: Result<DeadlineSupply, String>,
}

/// `SCHED_DEADLINE` on a machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeadlineSupply {
    /// The processors that share the bandwidth (the root domain).
    pub processors: NonZeroU16,
    /// What the kernel is set to. A kernel without a limit lets in more than there is; admission does not.
    pub limits: KernelLimits,
    /// What it has booked for threads that are not ours.
    pub granted: Bandwidth,
    /// The grain at which the kernel notices that a budget is used up: its tick, 4 ms at HZ = 250; zero where it has a timer for it.
    pub tick: Span,
}

/// One processor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessorSupply {
    /// Which.
    pub processor: ProcessorId,
    /// Time slots.
    pub slots: Result<SlotSupply, String>,
    /// Threads that are not ours and rank above a slot's occupant here, by name.
    pub outranking: Vec<String>,
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
    /// The `SCHED_FIFO` priority of a slot's occupant; a foreign thread of a higher one outranks it. (80)
    pub occupant_fifo: u8,
    /// Threads of this priority and above rank above a slot's occupant; `None`: none do.
    pub threads_above: Option<Priority>,
}
