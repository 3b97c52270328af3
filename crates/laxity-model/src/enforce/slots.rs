//! The numbers of the dispatcher of time slots on Linux: what admission charges, and where slots lie in time.

use crate::policy::slots::SlotTable;
use crate::{Instant, Span};

/// How far before a slot the dispatcher wakes; the rest of the time to the edge it spins.
pub const EARLY: Span = Span::from_micros(40);
/// Where in a millisecond of the run its slot tables begin. The witness and most periodic threads wake at whole milliseconds; a
/// slot of 0.1 ms that began there too would lose a tenth to them.
const PHASE: Span = Span::from_micros(250);
/// What admission charges for a slot beside its length.
pub const CHARGE_PER_SLOT: Span = Span::from_micros(50);
/// The shortest slot that can be kept.
pub const SHORTEST_SLOT: Span = Span::from_micros(50);
/// Real-time threads and slots may take this much of a processor together: above it the kernel's server for ordinary threads
/// steps in, and gaps of 50 ms appear.
pub const MOST_SHARE_PPM: u32 = 940_000;

/// When the first cycle of a table begins in a run that starts then. The table has been going round before the run began, so that the
/// first window is served as every other.
#[must_use]
pub fn origin(start: Instant, table: &SlotTable) -> Instant {
    start + PHASE - table.cycle()
}
