//! What a slot table really gives to one of its owners.

use alloc::vec::Vec;

use super::{SupplyBound, SupplyError};
use crate::analysis::{Fraction, Overflow, Result};
use crate::policy::slots::SlotTable;
use crate::{Service, Span};

/// The slots of one owner in an endlessly repeated table, the owner confined to them: time outside is not counted, even where the
/// owner may compete for it with others, for nothing is sure there.
///
/// Windows with the least service begin at the end of one of the owner's slots (any other can be moved there without gaining
/// service). From the end of slot i, c of service need c and the pauses up to the slot in which c is complete; the longest of that over
/// all i is kept as a staircase of pauses over service. So `least_service` and `window_for` are exact, O(log stairs); there are
/// at most (slots of the owner)² stairs, in practice some few times its slots.
///
/// Attained if one and the same slot is the worst to begin after for windows of every length: always with one slot a cycle.
///
/// ```
/// use laxity_model::analysis::supply::{SupplyBound, TableSupply};
/// use laxity_model::policy::slots::{PlanCosts, plan};
/// use laxity_model::{Reservation, Service, Span};
///
/// let costs = PlanCosts {
///     per_slot: Service::from_micros(50),
///     max_share_ppm: 940_000,
///     other_ppm: 0,
///     granularity: Span::from_micros(50),
/// };
/// let modem = Reservation::new(Service::from_millis(2), Span::from_millis(13)).unwrap();
/// let audio = Reservation::new(Service::from_millis(1), Span::from_millis(10)).unwrap();
/// let table = plan(&[modem, audio], &costs).unwrap();
/// let supply = TableSupply::new(&table, 0).unwrap();
/// assert!(supply.least_service(modem.period()) >= modem.service());
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableSupply {
    cycle_ns: u64,
    /// The service of a cycle.
    service_ns: u64,
    /// By service, from none to less than a cycle's: more than that much is reached only after so much of pauses.
    stairs: Vec<Stair>,
    delay: Span,
    is_attained: bool,
}

/// Once `after` is served, the next tick of service has `paused` of pauses before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stair {
    after_ns: u64,
    paused_ns: u64,
}

impl TableSupply {
    /// What `owner` gets by this table; an error if it has no slot.
    ///
    /// With n slots of the owner: O(n² log n) time, and memory for the stairs.
    pub fn new(table: &SlotTable, owner: usize) -> Result<Self, SupplyError> {
        let own = Course::of(table, owner).ok_or(SupplyError::NoSlot(owner))?;
        Ok(Self::along(&own, table.cycle()))
    }

    /// The same where each stretch of its slots loses so much at its beginning, by its length: to a switch, say. What loses all is no slot;
    /// an error if nothing is left.
    pub fn less(
        table: &SlotTable,
        owner: usize,
        lost: impl Fn(Span) -> Span,
    ) -> Result<Self, SupplyError> {
        let own = Course::of(table, owner).ok_or(SupplyError::NoSlot(owner))?;
        let left = own.less(lost).ok_or(SupplyError::NothingLeft)?;
        Ok(Self::along(&left, table.cycle()))
    }

    fn along(own: &Course, cycle: Span) -> Self {
        let stairs = own.worst_stairs();
        let cycle_ns = cycle.as_nanos();
        let service_ns = own.service_ns();
        let late = stairs.iter().map(|stair| {
            // At this stair's foot, the longest window with no more service than `after`.
            let at_rate = u128::from(stair.after_ns) * u128::from(cycle_ns);
            let at_rate = u64::try_from(at_rate / u128::from(service_ns)).unwrap_or(u64::MAX);
            (stair.after_ns + stair.paused_ns).saturating_sub(at_rate)
        });
        Self {
            cycle_ns,
            service_ns,
            delay: Span::from_nanos(late.max().unwrap_or(0)),
            is_attained: own.has_a_worst_slot(&stairs),
            stairs,
        }
    }

    /// The service of this many ticks, at most a cycle's, and the pauses before its last tick.
    fn paused_before(&self, service_ns: u64) -> u64 {
        let next = self.stairs.partition_point(|s| s.after_ns < service_ns);
        next.checked_sub(1).map_or(0, |i| self.stairs[i].paused_ns)
    }
}

impl SupplyBound for TableSupply {
    fn least_service(&self, window: Span) -> Service {
        let (cycles, rest) = (
            window.as_nanos() / self.cycle_ns,
            window.as_nanos() % self.cycle_ns,
        );
        let passed = self
            .stairs
            .partition_point(|s| s.after_ns + s.paused_ns < rest);
        let begun = passed.checked_sub(1).map_or(0, |i| {
            let next = self.stairs.get(passed);
            let most = next.map_or(self.service_ns, |next| next.after_ns);
            (rest - self.stairs[i].paused_ns).min(most)
        });
        Service::from_nanos(cycles * self.service_ns + begun)
    }

    fn window_for(&self, service: Service) -> Result<Span> {
        let Some(before) = service.as_nanos().checked_sub(1) else {
            return Ok(Span::ZERO);
        };
        let cycles = before / self.service_ns;
        let rest = service.as_nanos() - cycles * self.service_ns;
        let window = cycles.checked_mul(self.cycle_ns);
        window
            .and_then(|window| window.checked_add(rest + self.paused_before(rest)))
            .map(Span::from_nanos)
            .ok_or(Overflow("the window of a slot table's supply"))
    }

    fn rate(&self) -> Fraction {
        Fraction::new(self.service_ns, self.cycle_ns).unwrap_or(Fraction::ONE)
    }

    fn delay(&self) -> Span {
        self.delay
    }

    fn is_attained(&self) -> bool {
        self.is_attained
    }
}

/// The stretches of one owner around the cycle: none touches the next, but for a single one that fills the cycle.
struct Course {
    lengths_ns: Vec<u64>,
    /// Behind each stretch.
    pauses_ns: Vec<u64>,
}

impl Course {
    /// `None` without any slot.
    fn of(table: &SlotTable, owner: usize) -> Option<Self> {
        let own = || table.slots().iter().filter(|slot| slot.owner == owner);
        let first = own().next()?.start;
        let nexts = own().skip(1).map(|slot| Some(slot.start));
        let mut this = Self {
            lengths_ns: Vec::new(),
            pauses_ns: Vec::new(),
        };
        let mut joined = 0;
        for (slot, next) in own().zip(nexts.chain([None])) {
            joined += slot.length.as_nanos();
            let end = slot.start + slot.length;
            let pause = next.map_or_else(|| table.cycle() - end + first, |next| next - end);
            if !pause.is_zero() {
                this.lengths_ns.push(joined);
                this.pauses_ns.push(pause.as_nanos());
                joined = 0;
            }
        }
        // What touches the beginning of the next cycle belongs to its first stretch.
        match this.lengths_ns.first_mut() {
            Some(first) => *first += joined,
            None => {
                this.lengths_ns.push(joined);
                this.pauses_ns.push(0);
            }
        }
        Some(this)
    }

    /// The same with so much of each stretch lost at its beginning; `None` if that is all of them.
    fn less(&self, lost: impl Fn(Span) -> Span) -> Option<Self> {
        let mut left = Self {
            lengths_ns: Vec::new(),
            pauses_ns: Vec::new(),
        };
        let mut ahead = 0;
        for (length, pause) in self.lengths_ns.iter().zip(&self.pauses_ns) {
            let taken = lost(Span::from_nanos(*length)).as_nanos().min(*length);
            *left.pauses_ns.last_mut().unwrap_or(&mut ahead) += taken;
            if taken < *length {
                left.lengths_ns.push(length - taken);
                left.pauses_ns.push(*pause);
            } else {
                *left.pauses_ns.last_mut().unwrap_or(&mut ahead) += pause;
            }
        }
        *left.pauses_ns.last_mut()? += ahead;
        Some(left)
    }

    fn service_ns(&self) -> u64 {
        self.lengths_ns.iter().sum()
    }

    /// The staircase of a window that begins at the end of one stretch.
    fn stairs_after(&self, stretch: usize) -> impl Iterator<Item = Stair> {
        let count = self.lengths_ns.len();
        let mut stair = Stair {
            after_ns: 0,
            paused_ns: 0,
        };
        (stretch..stretch + count).map(move |i| {
            stair.paused_ns += self.pauses_ns[i % count];
            let this = stair;
            stair.after_ns += self.lengths_ns[(i + 1) % count];
            this
        })
    }

    /// The highest of all staircases.
    fn worst_stairs(&self) -> Vec<Stair> {
        let count = self.lengths_ns.len();
        let mut all: Vec<_> = (0..count).map(|i| self.stairs_after(i)).collect();
        let (mut level, mut worst) = (Vec::with_capacity(count), Vec::new());
        // Level by level, so that of n² stairs only those that count are ever kept.
        for _ in 0..count {
            level.extend(all.iter_mut().filter_map(Iterator::next));
            keep_highest(&mut level);
            worst.append(&mut level);
        }
        keep_highest(&mut worst);
        worst
    }

    /// Whether the windows that begin behind one of the stretches have the worst stairs all the way.
    fn has_a_worst_slot(&self, worst: &[Stair]) -> bool {
        (0..self.lengths_ns.len()).any(|stretch| {
            let mut own = self.stairs_after(stretch).peekable();
            let mut paused_ns = 0;
            worst.iter().all(|stair| {
                while let Some(passed) = own.next_if(|own| own.after_ns <= stair.after_ns) {
                    paused_ns = passed.paused_ns;
                }
                paused_ns == stair.paused_ns
            })
        })
    }
}

/// Sorts stairs by service, and leaves out those that are not higher than all before.
fn keep_highest(stairs: &mut Vec<Stair>) {
    stairs.sort_unstable_by_key(|stair| (stair.after_ns, u64::MAX - stair.paused_ns));
    let mut highest = None;
    stairs.retain(|stair| {
        let is_higher = highest.is_none_or(|highest| stair.paused_ns > highest);
        if is_higher {
            highest = Some(stair.paused_ns);
        }
        is_higher
    });
}
