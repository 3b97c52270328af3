//! What a real machine costs: the figures that a twin of it needs, as `laxity calibrate` measures them.

use alloc::string::String;
use alloc::vec::Vec;

use crate::Span;

/// A distribution of spans by its quantiles.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Quantiles {
    /// Parts per million of all values, and the span that so many do not exceed; both rising. Between two points values are spread
    /// evenly; nothing lies outside the first and the last.
    points: Vec<(u32, Span)>,
}

/// Why points are no distribution.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum QuantilesError {
    /// There is none.
    #[error("a distribution needs a quantile at least")]
    Empty,
    /// A share or a span falls.
    #[error("quantile {index} falls below the one before it")]
    Falls {
        /// Which.
        index: usize,
    },
    /// A share above one million.
    #[error("quantile {index} is beyond 1000000 parts per million")]
    Beyond {
        /// Which.
        index: usize,
    },
}

impl Quantiles {
    /// A distribution from its points: parts per million, rising, and spans, not falling.
    ///
    /// # Errors
    ///
    /// See [`QuantilesError`].
    pub fn new(points: Vec<(u32, Span)>) -> Result<Self, QuantilesError> {
        if points.is_empty() {
            return Err(QuantilesError::Empty);
        }
        for (index, pair) in points.windows(2).enumerate() {
            if pair[1].0 <= pair[0].0 || pair[1].1 < pair[0].1 {
                return Err(QuantilesError::Falls { index: index + 1 });
            }
        }
        match points.iter().position(|(ppm, _)| *ppm > 1_000_000) {
            Some(index) => Err(QuantilesError::Beyond { index }),
            None => Ok(Self { points }),
        }
    }

    /// Always the same span.
    #[must_use]
    pub fn constant(span: Span) -> Self {
        Self {
            points: [(0, span)].into(),
        }
    }

    /// The distribution of these values, at [`Self::SHARES`]; `None` if there is none. Sorts them.
    ///
    /// Each point is the least value that so many do not exceed (the nearest rank), so every span of it has been seen.
    #[must_use]
    pub fn of(values: &mut [Span]) -> Option<Self> {
        values.sort_unstable();
        let count = values.len() as u64;
        let last = values.len().checked_sub(1)?;
        let point = |ppm: u32| {
            let rank = (u64::from(ppm) * count).div_ceil(1_000_000) as usize;
            (ppm, values[rank.saturating_sub(1).min(last)])
        };
        Some(Self {
            points: Self::SHARES.into_iter().map(point).collect(),
        })
    }

    /// The shares at which [`Self::of`] looks: from the least to the greatest, closer together towards the greatest, as latencies need.
    pub const SHARES: [u32; 13] = [
        0, 10_000, 50_000, 100_000, 250_000, 500_000, 750_000, 900_000, 950_000, 980_000, 990_000,
        999_000, 1_000_000,
    ];

    /// The points.
    pub fn points(&self) -> &[(u32, Span)] {
        &self.points
    }

    /// The span that this share of all values does not exceed; zero if the distribution is empty. O(log n).
    pub fn at(&self, ppm: u32) -> Span {
        let after = self.points.partition_point(|(share, _)| *share < ppm);
        let Some((share, high)) = self.points.get(after).copied() else {
            return self.points.last().map_or(Span::ZERO, |(_, span)| *span);
        };
        let Some((below, low)) = after.checked_sub(1).map(|before| self.points[before]) else {
            return high;
        };
        let rise = u128::from((high - low).as_nanos());
        let part = rise * u128::from(ppm - below) / u128::from(share - below);
        low + Span::from_nanos(part as u64)
    }

    /// The median.
    pub fn median(&self) -> Span {
        self.at(500_000)
    }
}

/// A machine as it was measured. Every span is what is lost on the processor where it happens, unless it says otherwise.
///
/// The figures add up to what a thread sees: one that sleeps until an instant takes [`Figure::Timer`] and a [`Figure::ContextSwitch`] before the next runs;
/// one that waits for a semaphore `block` and a `context_switch`; one that is woken by a timer runs `wakeup` after its instant, and the
/// thread below loses `preemption`, which ends then; one that is woken by a signal runs `handover` after it, all of which its processor loses.
/// Threads are of one process, so that no switch changes the address space.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Machine {
    /// Processor, kernel, hypervisor: for reports.
    pub description: String,
    /// When and how it was measured: for reports.
    pub provenance: String,
    /// How often a second the kernel's tick interrupts.
    pub tick_hz: u32,
    /// How early the dispatcher of time slots wakes before a slot. The rest of the time it spins.
    pub slot_lead: Span,
    figures: [Quantiles; Figure::NAMED.len()],
}

/// One of a machine's distributions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Figure {
    /// What a tick takes from a thread that computes.
    Tick,
    /// From one real-time thread to another on the same processor: the switch alone, without the call that led to it.
    ContextSwitch,
    /// From the instant a sleeping real-time thread asked for to its first instruction, on a processor that ordinary threads keep busy.
    Wakeup,
    /// The same on a processor that is idle and has to be roused.
    WakeupIdle,
    /// What a wake-up takes from the thread that computed: from its last instruction to the first of the one woken. More than [`Self::Wakeup`] where a
    /// hypervisor takes the processor before the timer is due, and waits for the instant itself.
    Preemption,
    /// From a semaphore's signal to the first instruction of the real-time thread that waited, on the same processor.
    Handover,
    /// The system call by which a thread waits for a semaphore, until the next thread's first instruction, less the switch.
    Block,
    /// The system call that gives another thread a policy.
    PolicyChange,
    /// The system call that sleeps until an instant, without the sleep: until the next thread's first instruction, less the switch.
    Timer,
    /// What a thread loses after another one of some size has run: the time it takes to load its working set again.
    CacheReload,
    /// How much longer than its budget `SCHED_DEADLINE` lets a thread run. It owes that: the next budgets are less, or come later.
    DeadlineOverrun,
    /// From the instant at which `SCHED_DEADLINE` gives a thread a new budget to the thread's first instruction. Where there are several
    /// processors, Linux 6.18 pushes the thread to another one with nearly every new budget, if an ordinary thread runs where it was.
    DeadlineReplenish,
    /// What the beginning of a slot takes from a thread that computes, the lead included: from the dispatcher's wake-up until it sleeps.
    SlotBegin,
    /// What a slot's edge takes without the lead, as its end does: the dispatcher wakes, changes a policy and sleeps.
    SlotEdge,
    /// From the dispatcher's decision that a slot begins until its holder runs. It decides the upper quartile of this before the edge.
    SlotEntering,
    /// From the instant for which the dispatcher set its timer to end a slot, until the holder has lost the processor. It sets the timer
    /// the median of this before the edge. Zero where the timer is early.
    SlotLeaving,
    /// The reverse: from the holder's last instruction to that instant, where a hypervisor takes the processor before the timer is due. What
    /// a slot loses so the dispatcher gives it at its beginning: it decides the median of this earlier. Zero where the timer is late.
    SlotCut,
}

impl Figure {
    /// Each at its place, with its name.
    const NAMED: [(Self, &'static str); 17] = [
        (Self::Tick, "tick"),
        (Self::ContextSwitch, "context_switch"),
        (Self::Wakeup, "wakeup"),
        (Self::WakeupIdle, "wakeup_idle"),
        (Self::Preemption, "preemption"),
        (Self::Handover, "handover"),
        (Self::Block, "block"),
        (Self::PolicyChange, "policy_change"),
        (Self::Timer, "timer"),
        (Self::CacheReload, "cache_reload"),
        (Self::DeadlineOverrun, "deadline_overrun"),
        (Self::DeadlineReplenish, "deadline_replenish"),
        (Self::SlotBegin, "slot_begin"),
        (Self::SlotEdge, "slot_edge"),
        (Self::SlotEntering, "slot_entering"),
        (Self::SlotLeaving, "slot_leaving"),
        (Self::SlotCut, "slot_cut"),
    ];

    /// All, in the order in which they are told.
    pub const ALL: [Self; Self::NAMED.len()] = {
        let mut all = [Self::Tick; Self::NAMED.len()];
        let mut place = 0;
        while place < all.len() {
            all[place] = Self::NAMED[place].0;
            place += 1;
        }
        all
    };

    /// What it is called in a file: `context_switch`.
    pub const fn name(self) -> &'static str {
        Self::NAMED[self as usize].1
    }
}

impl Machine {
    /// A machine without any cost, whose tick comes this often: to be filled.
    #[must_use]
    pub fn without_costs(tick_hz: u32) -> Self {
        Self {
            description: String::new(),
            provenance: String::new(),
            tick_hz,
            slot_lead: Span::ZERO,
            figures: Figure::ALL.map(|_| Quantiles::constant(Span::ZERO)),
        }
    }

    /// One of the distributions.
    #[inline]
    pub const fn figure(&self, figure: Figure) -> &Quantiles {
        &self.figures[figure as usize]
    }

    /// The same machine, but for these distributions.
    #[must_use]
    pub fn with(mut self, figures: impl IntoIterator<Item = (Figure, Quantiles)>) -> Self {
        for (figure, quantiles) in figures {
            *self.figure_mut(figure) = quantiles;
        }
        self
    }

    /// One of the distributions, to be replaced.
    pub const fn figure_mut(&mut self, figure: Figure) -> &mut Quantiles {
        &mut self.figures[figure as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_read_between_their_points() {
        let us = Span::from_micros;
        let some = Quantiles::new([(0, us(10)), (500_000, us(20)), (1_000_000, us(120))].into());
        let some = some.unwrap();
        assert_eq!(some.at(0), us(10));
        assert_eq!(some.at(250_000), us(15));
        assert_eq!(some.median(), us(20));
        assert_eq!(some.at(990_000), us(118));
        assert_eq!(some.at(1_000_000), us(120));
        assert_eq!(Quantiles::constant(us(7)).at(123), us(7));
    }

    #[test]
    fn the_distribution_of_values_has_only_values_that_were_seen() {
        let us = Span::from_micros;
        let mut values: Vec<Span> = (1..=1_000).rev().map(us).collect();
        let all = Quantiles::of(&mut values).unwrap();
        assert_eq!(Quantiles::new(all.points().into()).as_ref(), Ok(&all));
        let looked = [0, 10_000, 500_000, 990_000, 999_000, 1_000_000].map(|ppm| all.at(ppm));
        assert_eq!(looked, [1, 10, 500, 990, 999, 1_000].map(us));
        let one = Quantiles::of(&mut [us(3)]).unwrap();
        assert!(one.points().iter().all(|(_, span)| *span == us(3)));
        assert_eq!(Quantiles::of(&mut []), None);
    }

    #[test]
    fn every_figure_has_a_field_and_a_name_of_its_own() {
        let mut machine = Machine::without_costs(250);
        for (number, figure) in (1..).zip(Figure::ALL) {
            *machine.figure_mut(figure) = Quantiles::constant(Span::from_micros(number));
        }
        for (number, figure) in (1..).zip(Figure::ALL) {
            assert_eq!(machine.figure(figure).median(), Span::from_micros(number));
        }
        let mut names: Vec<_> = Figure::ALL.map(Figure::name).into();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Figure::ALL.len());
    }

    #[test]
    fn what_falls_is_refused() {
        let us = Span::from_micros;
        let falls = Quantiles::new([(0, us(10)), (500_000, us(9))].into());
        assert_eq!(falls, Err(QuantilesError::Falls { index: 1 }));
        assert_eq!(Quantiles::new(Vec::new()), Err(QuantilesError::Empty));
        let beyond = Quantiles::new([(1_000_001, us(1))].into());
        assert_eq!(beyond, Err(QuantilesError::Beyond { index: 0 }));
    }
}
