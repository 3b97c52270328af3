//! Devices, sample by sample and tick by tick.

use std::collections::BTreeSet;

use laxity_model::analysis::devices::{Answer, Device, Limit, serves};
use laxity_model::analysis::supply::TableSupply;
use laxity_model::policy::slots::SlotTable;
use laxity_model::{Reservation, Span};
use proptest::prelude::*;

/// What goes wrong, if anything does, for a device that has the slots of owner 0 and begins at some tick of the table, with any of its blocks. It runs as long
/// as anything new can happen, or at least until the answer says that something will have.
pub(crate) fn outcome_on(device: &Device, table: &SlotTable, answer: &Answer) -> Option<Limit> {
    let (cycle, period) = (table.cycle().as_nanos(), device.period().as_nanos());
    let said = match answer {
        Answer::TooLate(late) => late.done.as_nanos(),
        _ => 0,
    };
    // Long enough for a debt to show: every phase is met, several times.
    let ticks = said.max(24 * cycle * period);
    let all = (0..cycle).flat_map(|from| [0, 1, 2].map(|first| (from, first)));
    let fails = all.filter_map(|begin| run(device, table, begin, ticks));
    // The one that goes wrong first.
    fails.min_by_key(|(when, _)| *when).map(|(_, limit)| limit)
}

/// In which ticks of its cycle a table gives service.
fn served(table: &SlotTable) -> Vec<bool> {
    let is_served = |tick: u64| {
        let mut slots = table.slots().iter();
        slots.any(|slot| (slot.start..slot.start + slot.length).contains(&Span::from_nanos(tick)))
    };
    (0..table.cycle().as_nanos()).map(is_served).collect()
}

/// Rings as counters, in steps of 1/B of a tick, so that samples come at whole steps, T apart.
fn run(
    device: &Device,
    table: &SlotTable,
    (from, first): (u64, u64),
    ticks: u64,
) -> Option<(u64, Limit)> {
    let (cycle, period, block) = (
        table.cycle().as_nanos(),
        device.period().as_nanos(),
        device.block(),
    );
    let served = served(table);
    let (pieces, piece_work) = (device.pieces(), device.work().as_nanos() / device.pieces());
    let size = |block: u64| device.blocks()[((first + block) % 3) as usize];
    let longest = device.blocks().into_iter().max().unwrap();
    // Beginning with a block that is just complete.
    let (mut unread, mut ahead) = (size(0), device.lead().unwrap_or(0) + longest - size(0));
    let (mut blocks, mut piece, mut samples) = (1, 0, 0);
    let (mut work, mut pause) = (piece_work, 0);
    for step in 0..ticks * block {
        if step % period == 0 {
            // At 0 the block's last sample was there already; the first sample to be sent is due.
            if step > 0 {
                unread += 1;
                samples += 1;
            }
            if samples == size(blocks) {
                samples = 0;
                blocks += 1;
            }
            if device.lead().is_some() {
                if ahead == 0 {
                    return Some((step, Limit::Output));
                }
                ahead -= 1;
            }
            if device.ring().is_some_and(|ring| unread >= ring) {
                return Some((step, Limit::Input));
            }
        }
        // The tick that ends with the next step.
        if (step + 1) % block == 0 && piece < blocks * pieces {
            let tick = step / block;
            if !served[((from + tick) % cycle) as usize] {
                pause += 1;
            } else {
                pause = 0;
                work -= 1;
                if work == 0 {
                    let own = size(piece / pieces);
                    let end_of = |part: u64| own * part / pieces;
                    let delivered = end_of(piece % pieces + 1) - end_of(piece % pieces);
                    work = piece_work;
                    piece += 1;
                    unread -= delivered;
                    ahead += delivered;
                }
            }
            if device
                .longest_pause()
                .is_some_and(|longest| pause > longest.as_nanos())
            {
                return Some((step, Limit::Calls));
            }
        }
    }
    None
}

/// Whoever decides when in each period, by its deadline, a reservation is served.
pub(crate) struct Adversary<'a> {
    device: &'a Device,
    service: u64,
    period: u64,
    deadline: u64,
}

/// At a tick: where in the period, what is left of its service, the time since the last interrupt, since the interrupt of the oldest
/// block that is not complete, with what is left of it, and since there was service.
type State = (u64, u64, u64, Option<(u64, u64)>, u64);

impl<'a> Adversary<'a> {
    pub(crate) fn new(device: &'a Device, reservation: Reservation, deadline: u64) -> Self {
        Self {
            device,
            service: reservation.service().as_nanos(),
            period: reservation.period().as_nanos(),
            deadline,
        }
    }

    /// Whether any course that keeps the promise lets the device fail, from wherever in a period it begins.
    pub(crate) fn can_fail(&self) -> bool {
        let work = self.device.work().as_nanos();
        let begin = |position: u64| {
            let least = self.service.saturating_sub(position);
            let most = self.service.min(self.deadline.saturating_sub(position));
            (least..=most).map(move |left| (position, left, 0, Some((0, work)), 0))
        };
        let mut open: Vec<State> = (0..self.period).flat_map(begin).collect();
        let mut seen: BTreeSet<State> = open.iter().copied().collect();
        while let Some(state) = open.pop() {
            for served in [false, true] {
                let Some(next) = self.next(state, served) else {
                    continue;
                };
                let Some(next) = next else {
                    return true;
                };
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
        false
    }

    /// What comes after a tick, if that may be: `Some(None)` if the device has failed.
    fn next(&self, state: State, served: bool) -> Option<Option<State>> {
        let (position, left, since, oldest, pause) = state;
        let may = if served {
            left > 0
        } else {
            left == 0 || left < self.deadline - position
        };
        if !may {
            return None;
        }
        let (left, position) = (left - u64::from(served), position + 1);
        let (position, left) = if position == self.period {
            (0, self.service)
        } else {
            (position, left)
        };
        let period = self.device.period().as_nanos();
        let since = (since + 1) % period;
        let Some((age, work)) = oldest else {
            let oldest = (since == 0).then(|| (0, self.device.work().as_nanos()));
            return Some(Some((position, left, since, oldest, 0)));
        };
        let (age, work) = (age + 1, work - u64::from(served));
        let pause = if served { 0 } else { pause + 1 };
        if self.is_lost(age) || self.is_missed(pause) {
            return Some(None);
        }
        let oldest = if work > 0 {
            Some((age, work))
        } else {
            let next = age.checked_sub(period);
            next.map(|age| (age, self.device.work().as_nanos()))
        };
        let pause = if self.device.longest_pause().is_some() && oldest.is_some() {
            pause
        } else {
            0
        };
        Some(Some((position, left, since, oldest, pause)))
    }

    /// Whether a block that was not complete just before this age has cost a sample.
    fn is_lost(&self, age: u64) -> bool {
        let (block, period) = (self.device.block(), self.device.period().as_nanos());
        // Samples come at T/B, 2T/B, …; those at the very instant are in time.
        let arrived = block + (age * block).div_ceil(period) - 1;
        let due = (age * block).div_ceil(period);
        self.device.ring().is_some_and(|ring| arrived >= ring)
            || self.device.lead().is_some_and(|lead| due > lead)
    }

    fn is_missed(&self, pause: u64) -> bool {
        let longest = self.device.longest_pause();
        longest.is_some_and(|longest| pause > longest.as_nanos())
    }
}

/// Whether the answer on a table is what counting samples finds there.
pub(crate) fn is_as_counted(device: &Device, table: &SlotTable) -> Result<(), TestCaseError> {
    let supply = TableSupply::new(table, 0).unwrap();
    let answer = serves(device, &supply).unwrap();
    let found = outcome_on(device, table, &answer);
    prop_assert_eq!(
        answer.is_served(),
        found.is_none(),
        "{}: {:?}",
        answer,
        found
    );
    if let (Answer::TooLate(late), Some(found)) = (answer, found) {
        prop_assert!(device.longest_pause().is_some() || late.limit == found);
    }
    Ok(())
}
