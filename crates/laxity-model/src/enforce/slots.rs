//! The numbers of the dispatcher of time slots on Linux: what admission charges, and where slots lie in time.

use crate::admission::SlotSupply;
use crate::policy::slots::SlotTable;
use crate::{Instant, Priority, Service, Span};

/// How early the dispatcher wakes at first, before it has seen how late it wakes here.
pub const EARLY: Span = Span::from_micros(40);
/// Where in a millisecond of the run its slot tables begin. The witness and most periodic threads wake at whole milliseconds; a
/// slot of 0.1 ms that began there too would lose a tenth to them.
const PHASE: Span = Span::from_micros(250);
/// Real-time threads and slots may take this much of a processor together: above it the kernel's server for ordinary threads
/// steps in, and gaps of 50 ms appear.
pub const MOST_SHARE_PPM: u32 = 940_000;
/// With what is made up for slots they may take so much: what that server leaves to real-time threads.
pub const MOST_IN_ALL_PPM: u32 = 950_000;

/// What the dispatcher can do on each processor.
pub const SUPPLY: SlotSupply = SlotSupply {
    max_share_ppm: MOST_SHARE_PPM,
    used_ppm: 0,
    per_slot: Service::from_micros(50),
    shortest_slot: Span::from_micros(50),
    // It keeps this in all but one of a thousand undisturbed periods.
    jitter: Span::from_micros(200),
    // What switches cost is followed and made up for, and what a tick takes with it.
    switch: Service::ZERO,
    clock: None,
    threads_above: Some(Priority::HIGHEST),
};

/// The tick of the kernel comes so long after a millisecond of the run has begun: after the witness, and before a slot.
const TICK_PHASE: Span = Span::from_micros(125);

/// When a run begins that is ready at this instant: a millisecond later at most.
///
/// Since Linux 6.4 the ticks of all processors lie at whole multiples of their distance on the monotonic clock, the runs of older kernels are as
/// well off as they happen to be: a tick takes a fifth of a slot of 0.1 ms, and more from one in eight of them.
pub fn start_after(ready: Instant) -> Instant {
    let whole = Span::from_millis(1);
    let before = (ready + TICK_PHASE).since_epoch() % whole;
    let missing = (whole - before) % whole;
    ready + missing
}

/// How long after a run's start, of which [`start_after`] says when it is, the first tick comes: what was drawn, but at such a phase.
pub fn phase_of_tick(drawn: Span) -> Span {
    let whole = Span::from_millis(1);
    whole * (drawn / whole) + TICK_PHASE
}

/// When the first cycle of a table begins in a run that starts then. The table has been going round before the run began, so that the
/// first window is served as every other; but where the machine has been up for less than a cycle, and no clock tells of a time before that: there the run's first is the table's.
pub fn origin(start: Instant, table: &SlotTable) -> Instant {
    let first = start + PHASE;
    match first.since_epoch() >= table.cycle() {
        true => first - table.cycle(),
        false => first,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_begins_an_eighth_before_a_whole_millisecond() {
        let begins = |ready_us| start_after(Instant::from_micros(ready_us)).as_nanos() / 1_000;
        let found = [0, 874, 875, 876, 1_000, 7_900].map(begins);
        assert_eq!(found, [875, 875, 875, 1_875, 1_875, 8_875]);
    }

    /// A minute's table on a machine that has been up for twenty seconds.
    #[test]
    fn a_table_may_be_longer_than_the_machine_has_been_up() {
        let slots = |cycle| {
            let slot = crate::policy::slots::Slot {
                owner: 0,
                start: Span::ZERO,
                length: Span::from_secs(1),
            };
            SlotTable::new(cycle, alloc::vec![slot]).expect("a table")
        };
        let start = Instant::from_secs(20);
        let first = start + PHASE;
        assert_eq!(origin(start, &slots(Span::from_secs(60))), first);
        let before = origin(start, &slots(Span::from_secs(5)));
        assert_eq!(first.saturating_since(before), Span::from_secs(5));
    }
}
