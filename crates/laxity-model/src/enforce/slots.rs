//! The numbers of the dispatcher of time slots on Linux: what admission charges, and where slots lie in time.

use super::ranks;
use crate::admission::SlotSupply;
use crate::policy::slots::SlotTable;
use crate::{Instant, Priority, Service, Span};

/// How far before a slot the dispatcher wakes; the rest of the time to the edge it spins.
pub const EARLY: Span = Span::from_micros(40);
/// Where in a millisecond of the run its slot tables begin. The witness and most periodic threads wake at whole milliseconds; a
/// slot of 0.1 ms that began there too would lose a tenth to them.
const PHASE: Span = Span::from_micros(250);
/// Real-time threads and slots may take this much of a processor together: above it the kernel's server for ordinary threads
/// steps in, and gaps of 50 ms appear.
pub const MOST_SHARE_PPM: u32 = 940_000;

/// What the dispatcher can do on each processor.
pub const SUPPLY: SlotSupply = SlotSupply {
    max_share_ppm: MOST_SHARE_PPM,
    used_ppm: 0,
    per_slot: Service::from_micros(50),
    shortest_slot: Span::from_micros(50),
    // It keeps this in all but one of a thousand undisturbed periods.
    jitter: Span::from_micros(200),
    occupant_fifo: ranks::OCCUPANT,
    threads_above: Some(Priority::HIGHEST),
};

/// When the first cycle of a table begins in a run that starts then. The table has been going round before the run began, so that the
/// first window is served as every other.
pub fn origin(start: Instant, table: &SlotTable) -> Instant {
    start + PHASE - table.cycle()
}
