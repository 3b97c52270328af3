//! When one table may take the place of another, and at which point of its cycle.
//!
//! While a table holds, each of its reservations has its X in every window of Y; a window that begins under the old table and ends under
//! the new one is nobody's business but the mode change's (a *mode change* without an overlap; Real, Crespo, "Mode change protocols for
//! real-time systems", Real-Time Systems 26(2), 2004, on the problem). The rule:
//!
//! 1. The old table stops at the end of one of its slots, or between slots, at an instant s; no slot is cut.
//! 2. The new table is entered in front of one of its slots, whose switch comes at once: phase = start − cost of a switch.
//! 3. s is no earlier than the longest window after the mode change before, so that no window holds two.
//! 4. For each reservation the least service in the windows [T, T + Y] with T ≤ s ≤ T + Y is computed exactly. For one that does not
//!    change, (X, Y) must hold in all of them; for the one that changes X′/Y to X″/Z: min(X′, X″) in every window of max(Y, Z), and, where
//!    that can be had, in every window of min(Y, Z) too. Before s it has all of X′/Y, after s all of X″/Z.
//!
//! Among tables entered between slots this search misses nothing: entering the new one later, with the same first slot, only delays
//! every slot, and stopping the old one later between slots does the same; so every mode change has one of these that gives no window
//! less. The old table repeats, so one cycle of it is enough. Where there is none, [`super::AdmissionState`] looks for one by way of another table
//! of what is held now.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::policy::slots::{Calendar, SlotTable, phase_before};
use crate::{Instant, Reservation, Service, Span};

/// Edges that may be looked at in one search, which bounds it to some milliseconds.
const WORK: usize = 400_000;

/// What a window that holds the mode change must give its owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Promise {
    pub(super) owner: usize,
    pub(super) service: Service,
    pub(super) window: Span,
}

/// What must hold across a change from `before` to `after`: at least, and better.
pub(super) fn promises(
    before: &[Reservation],
    after: &[Reservation],
) -> (Vec<Promise>, Vec<Promise>) {
    let mut least = Vec::with_capacity(before.len());
    let mut better = Vec::with_capacity(before.len());
    for (owner, (old, new)) in before.iter().zip(after).enumerate() {
        let service = old.service().min(new.service());
        let promise = |window| Promise {
            owner,
            service,
            window,
        };
        least.push(promise(old.period().max(new.period())));
        if old.period() != new.period() {
            let shorter = old.period().min(new.period());
            // The reservation of the longer window may have gaps longer than the shorter one: this cannot always be had.
            better.push(promise(shorter));
        }
    }
    better.extend(least.iter().copied());
    (least, better)
}

/// Why no mode change was found, the lesser reason first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Missed {
    /// There is none within a cycle of the old table.
    Nowhere,
    /// The work for one search was used up before all candidates were looked at.
    Unfinished,
}

/// The calendar with `table` in force as soon as possible after `earliest`, all promises kept; `accept` has the last word on each
/// candidate, and may complete it. Looks for a cycle of the old table, in bounded work.
pub(super) fn find(
    calendar: &Calendar,
    table: &Arc<SlotTable>,
    promises: &[Promise],
    (earliest, cost): (Instant, Span),
    mut accept: impl FnMut(Calendar) -> Option<Calendar>,
) -> Result<(Instant, Calendar), Missed> {
    let mut work = WORK;
    for at in calendar.ends(earliest) {
        let starts = table.slots().iter();
        let mut phases: Vec<Span> = starts
            .map(|slot| phase_before(slot, cost, table.cycle()))
            .collect();
        if phases.is_empty() {
            phases.push(Span::ZERO);
        }
        for phase in phases {
            let candidate = calendar.then(at, Arc::clone(table), phase);
            let kept = promises
                .iter()
                .all(|promise| keeps(&candidate, at, promise, &mut work));
            if work == 0 {
                return Err(Missed::Unfinished);
            }
            if kept && let Some(accepted) = accept(candidate) {
                return Ok((at, accepted));
            }
        }
    }
    Err(Missed::Nowhere)
}

/// Whether every window that holds `at` gives what is promised.
fn keeps(candidate: &Calendar, at: Instant, promise: &Promise, work: &mut usize) -> bool {
    let window = promise.window;
    // Time before the epoch does not exist; what would have to be served there was.
    let before = window.min(at.since_epoch());
    let (from, to) = (at - before, at + window);
    let own = candidate.own(promise.owner, from, to);
    *work = work.saturating_sub(own.len() + candidate.pieces(from, to).count());
    least_within(&own, (before + window).as_nanos(), window.as_nanos())
        >= promise.service.as_nanos()
}

/// The least that `own`, stretches by time, gives in any window of this length within [0, length]. Linear: as
/// [`least_service`](crate::policy::slots::least_service), windows begin at the end of a stretch or end at the start of one, or lie at either end.
fn least_within(own: &[(u64, u64)], length: u64, window: u64) -> u64 {
    let last = length.saturating_sub(window);
    let ends = own.iter().map(|(_, end)| *end);
    let starts = own.iter().map(|(start, _)| start.saturating_sub(window));
    let begins = ends.chain(starts).chain([0, last]).filter(|b| *b <= last);
    let served = |begin: u64| {
        let first = own.partition_point(|(_, end)| *end <= begin);
        let within = own[first..]
            .iter()
            .take_while(|(start, _)| *start < begin + window);
        within
            .map(|(start, end)| (*end).min(begin + window) - (*start).max(begin))
            .sum::<u64>()
    };
    begins.map(served).min().unwrap_or(0)
}
