//! Small tables in whole grains, filled one grain after the other: for what no slots that are strictly periodic keep.

use alloc::vec;
use alloc::vec::Vec;

use super::{PlanCosts, Slot, SlotTable};
use crate::base::number::gcd;
use crate::{Reservation, Span};

/// The longest cycle and the longest window, in grains.
const MOST_GRAINS: u64 = 32;
const MOST_REQUESTS: usize = 6;
/// The work that the cycles of one length may take, once with as few grains given away as can be, once with as many: some 10 ns each.
const WORK_A_FILL: u64 = 30_000;

/// What a request needs: of each window of so many grains, less than the cycle, so many; and so many of the cycle.
struct Need(u64, u64, u64);

/// A cycle that is being filled. The last owner is nobody.
struct Fill {
    grains: u64,
    needs: Vec<Need>,
    /// Of each owner the grains that are its own, a bit each.
    own: Vec<u64>,
    work: u64,
}

/// Tables in whole grains, the greatest common divisor of every X and Y, the shortest cycle first, until one is `found` good.
/// Only where a slot costs nothing and may be as short as a grain.
pub(super) fn tables(
    requests: &[Reservation],
    costs: &PlanCosts,
    work: &mut u64,
    mut found: impl FnMut(SlotTable) -> bool,
) {
    let pairs = (requests.iter()).map(|r| (r.service().as_nanos(), r.period().as_nanos()));
    let grain = (pairs.clone().flat_map(|(x, y)| [x, y]))
        .fold(0, gcd)
        .max(1);
    let asked: Vec<(u64, u64)> = pairs.map(|(x, y)| (x / grain, y / grain)).collect();
    let is_small = asked.len() <= MOST_REQUESTS && asked.iter().all(|(_, y)| *y <= MOST_GRAINS);
    if !is_small || !costs.per_slot.is_zero() || costs.granularity.as_nanos() > grain {
        return;
    }
    for grains in 1..=MOST_GRAINS {
        let least = asked.iter().map(|(x, y)| (x * grains).div_ceil(*y)).sum();
        let most = grains * costs.available_ppm() / 1_000_000;
        let few = (least <= most).then_some(least);
        let many = (least < most).then_some(most);
        for given in few.into_iter().chain(many) {
            let need = |&(x, y): &(u64, u64)| {
                let a_cycle = (x * grains).div_ceil(y);
                // At the most it has all that the others need not.
                let whole = y / grains * (given - least + a_cycle);
                Need(y % grains, x.saturating_sub(whole), a_cycle)
            };
            let nobody = Need(0, 0, grains - given);
            let needs: Vec<Need> = asked.iter().map(need).chain([nobody]).collect();
            let mut fill = Fill {
                grains,
                own: vec![0; needs.len()],
                needs,
                work: WORK_A_FILL.min(*work),
            };
            let before = fill.work;
            let is_found = fill.go_on(0, &mut |own| found(table(own, grains, grain)));
            *work -= before - fill.work;
            if is_found {
                return;
            }
        }
    }
}

impl Fill {
    /// Gives away this grain and all that follow; whether something was found.
    fn go_on(&mut self, at: u64, found: &mut impl FnMut(&[u64]) -> bool) -> bool {
        if at == self.grains {
            return found(&self.own);
        }
        // A cycle may begin anywhere, so with the first one's.
        let choices = if at == 0 { 1 } else { self.own.len() };
        for chosen in 0..choices {
            let Some(left) = self.work.checked_sub(4 * self.own.len() as u64) else {
                return false;
            };
            self.work = left;
            self.own[chosen] |= 1 << at;
            if self.is_hopeful(at + 1) && self.go_on(at + 1, found) {
                return true;
            }
            self.own[chosen] &= !(1 << at);
        }
        false
    }

    /// Whether each has what it needs if all grains from `next` on are its own, and there are enough of them for what is missing of the cycle.
    fn is_hopeful(&self, next: u64) -> bool {
        let open = (1_u64 << self.grains) - (1 << next);
        let mut missing = 0;
        let are_kept = self.needs.iter().zip(&self.own).all(|(need, own)| {
            let Need(window, least, a_cycle) = *need;
            missing += a_cycle.saturating_sub(own.count_ones().into());
            let twice = (own | open) | (own | open) << self.grains;
            let had = |from: u64| (twice >> from & ((1 << window) - 1)).count_ones();
            (0..self.grains).all(|from| u64::from(had(from)) >= least)
        });
        are_kept && missing <= self.grains - next
    }
}

/// The cycle written out: neighbouring grains of one owner are one slot.
fn table(own: &[u64], grains: u64, grain: u64) -> SlotTable {
    let (cycle, length) = (Span::from_nanos(grains * grain), Span::from_nanos(grain));
    let mut slots: Vec<Slot> = Vec::new();
    for at in 0..grains {
        let whose = own.iter().position(|own| own >> at & 1 == 1);
        let Some(owner) = whose.filter(|owner| *owner + 1 < own.len()) else {
            continue;
        };
        let start = length * at;
        match slots.last_mut() {
            Some(last) if (last.owner, last.start + last.length) == (owner, start) => {
                last.length += length;
            }
            _ => slots.push(Slot {
                start,
                length,
                owner,
            }),
        }
    }
    SlotTable { cycle, slots }
}
