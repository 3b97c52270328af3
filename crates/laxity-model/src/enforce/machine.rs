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
    #[must_use]
    pub fn points(&self) -> &[(u32, Span)] {
        &self.points
    }

    /// The span that this share of all values does not exceed; zero if the distribution is empty. O(log n).
    #[must_use]
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
    #[must_use]
    pub fn median(&self) -> Span {
        self.at(500_000)
    }
}

/// A machine as it was measured. Every span is what is lost on the processor where it happens, unless it says otherwise.
///
/// The figures add up to what a thread sees: one that sleeps until an instant takes `timer` and a `context_switch` before the next runs;
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
    /// What a tick takes from a thread that computes.
    pub tick: Quantiles,
    /// From one real-time thread to another on the same processor: the switch alone, without the call that led to it.
    pub context_switch: Quantiles,
    /// From the instant a sleeping real-time thread asked for to its first instruction, on a processor that ordinary threads keep busy.
    pub wakeup: Quantiles,
    /// The same on a processor that is idle and has to be roused.
    pub wakeup_idle: Quantiles,
    /// What a wake-up takes from the thread that computed: from its last instruction to the first of the one woken. More than `wakeup` where a
    /// hypervisor takes the processor before the timer is due, and waits for the instant itself.
    pub preemption: Quantiles,
    /// From a semaphore's signal to the first instruction of the real-time thread that waited, on the same processor.
    pub handover: Quantiles,
    /// The system call by which a thread waits for a semaphore, until the next thread's first instruction, less the switch.
    pub block: Quantiles,
    /// The system call that gives another thread a policy.
    pub policy_change: Quantiles,
    /// The system call that sleeps until an instant, without the sleep: until the next thread's first instruction, less the switch.
    pub timer: Quantiles,
    /// What a thread loses after another one of some size has run: the time it takes to load its working set again.
    pub cache_reload: Quantiles,
    /// How much longer than its budget `SCHED_DEADLINE` lets a thread run. It owes that: the next budgets are less, or come later.
    pub deadline_overrun: Quantiles,
    /// From the instant at which `SCHED_DEADLINE` gives a thread a new budget to the thread's first instruction. Where there are several
    /// processors, Linux 6.18 pushes the thread to another one with nearly every new budget, if an ordinary thread runs where it was.
    pub deadline_replenish: Quantiles,
    /// How early the dispatcher of time slots wakes before a slot. The rest of the time it spins.
    pub slot_lead: Span,
    /// What the beginning of a slot takes from a thread that computes, the lead included: from the dispatcher's wake-up until it sleeps.
    pub slot_begin: Quantiles,
    /// What a slot's edge takes without the lead, as its end does: the dispatcher wakes, changes a policy and sleeps.
    pub slot_edge: Quantiles,
    /// From the dispatcher's decision that a slot begins until its holder runs. It decides the upper quartile of this before the edge.
    pub slot_entering: Quantiles,
    /// From the instant for which the dispatcher set its timer to end a slot, until the holder has lost the processor. It sets the timer
    /// the median of this before the edge. Zero where the timer is early.
    pub slot_leaving: Quantiles,
    /// The reverse: from the holder's last instruction to that instant, where a hypervisor takes the processor before the timer is due. What
    /// a slot loses so the dispatcher gives it at its beginning: it decides the median of this earlier. Zero where the timer is late.
    pub slot_cut: Quantiles,
}

/// One of a machine's distributions, by the name of its field.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Figure {
    /// [`Machine::tick`].
    Tick,
    /// [`Machine::context_switch`].
    ContextSwitch,
    /// [`Machine::wakeup`].
    Wakeup,
    /// [`Machine::wakeup_idle`].
    WakeupIdle,
    /// [`Machine::preemption`].
    Preemption,
    /// [`Machine::handover`].
    Handover,
    /// [`Machine::block`].
    Block,
    /// [`Machine::policy_change`].
    PolicyChange,
    /// [`Machine::timer`].
    Timer,
    /// [`Machine::cache_reload`].
    CacheReload,
    /// [`Machine::deadline_overrun`].
    DeadlineOverrun,
    /// [`Machine::deadline_replenish`].
    DeadlineReplenish,
    /// [`Machine::slot_begin`].
    SlotBegin,
    /// [`Machine::slot_edge`].
    SlotEdge,
    /// [`Machine::slot_entering`].
    SlotEntering,
    /// [`Machine::slot_leaving`].
    SlotLeaving,
    /// [`Machine::slot_cut`].
    SlotCut,
}

impl Figure {
    /// All, in the order of the fields.
    pub const ALL: [Self; 17] = [
        Self::Tick,
        Self::ContextSwitch,
        Self::Wakeup,
        Self::WakeupIdle,
        Self::Preemption,
        Self::Handover,
        Self::Block,
        Self::PolicyChange,
        Self::Timer,
        Self::CacheReload,
        Self::DeadlineOverrun,
        Self::DeadlineReplenish,
        Self::SlotBegin,
        Self::SlotEdge,
        Self::SlotEntering,
        Self::SlotLeaving,
        Self::SlotCut,
    ];

    /// The name of the field.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tick => "tick",
            Self::ContextSwitch => "context_switch",
            Self::Wakeup => "wakeup",
            Self::WakeupIdle => "wakeup_idle",
            Self::Preemption => "preemption",
            Self::Handover => "handover",
            Self::Block => "block",
            Self::PolicyChange => "policy_change",
            Self::Timer => "timer",
            Self::CacheReload => "cache_reload",
            Self::DeadlineOverrun => "deadline_overrun",
            Self::DeadlineReplenish => "deadline_replenish",
            Self::SlotBegin => "slot_begin",
            Self::SlotEdge => "slot_edge",
            Self::SlotEntering => "slot_entering",
            Self::SlotLeaving => "slot_leaving",
            Self::SlotCut => "slot_cut",
        }
    }
}

impl Machine {
    /// A machine without any cost, whose tick comes this often: to be filled.
    #[must_use]
    pub fn without_costs(tick_hz: u32) -> Self {
        let nothing = || Quantiles::constant(Span::ZERO);
        Self {
            description: String::new(),
            provenance: String::new(),
            tick_hz,
            tick: nothing(),
            context_switch: nothing(),
            wakeup: nothing(),
            wakeup_idle: nothing(),
            preemption: nothing(),
            handover: nothing(),
            block: nothing(),
            policy_change: nothing(),
            timer: nothing(),
            cache_reload: nothing(),
            deadline_overrun: nothing(),
            deadline_replenish: nothing(),
            slot_lead: Span::ZERO,
            slot_begin: nothing(),
            slot_edge: nothing(),
            slot_entering: nothing(),
            slot_leaving: nothing(),
            slot_cut: nothing(),
        }
    }

    /// One of the distributions.
    #[must_use]
    pub const fn figure(&self, figure: Figure) -> &Quantiles {
        match figure {
            Figure::Tick => &self.tick,
            Figure::ContextSwitch => &self.context_switch,
            Figure::Wakeup => &self.wakeup,
            Figure::WakeupIdle => &self.wakeup_idle,
            Figure::Preemption => &self.preemption,
            Figure::Handover => &self.handover,
            Figure::Block => &self.block,
            Figure::PolicyChange => &self.policy_change,
            Figure::Timer => &self.timer,
            Figure::CacheReload => &self.cache_reload,
            Figure::DeadlineOverrun => &self.deadline_overrun,
            Figure::DeadlineReplenish => &self.deadline_replenish,
            Figure::SlotBegin => &self.slot_begin,
            Figure::SlotEdge => &self.slot_edge,
            Figure::SlotEntering => &self.slot_entering,
            Figure::SlotLeaving => &self.slot_leaving,
            Figure::SlotCut => &self.slot_cut,
        }
    }

    /// One of the distributions, to be replaced.
    #[must_use]
    pub const fn figure_mut(&mut self, figure: Figure) -> &mut Quantiles {
        match figure {
            Figure::Tick => &mut self.tick,
            Figure::ContextSwitch => &mut self.context_switch,
            Figure::Wakeup => &mut self.wakeup,
            Figure::WakeupIdle => &mut self.wakeup_idle,
            Figure::Preemption => &mut self.preemption,
            Figure::Handover => &mut self.handover,
            Figure::Block => &mut self.block,
            Figure::PolicyChange => &mut self.policy_change,
            Figure::Timer => &mut self.timer,
            Figure::CacheReload => &mut self.cache_reload,
            Figure::DeadlineOverrun => &mut self.deadline_overrun,
            Figure::DeadlineReplenish => &mut self.deadline_replenish,
            Figure::SlotBegin => &mut self.slot_begin,
            Figure::SlotEdge => &mut self.slot_edge,
            Figure::SlotEntering => &mut self.slot_entering,
            Figure::SlotLeaving => &mut self.slot_leaving,
            Figure::SlotCut => &mut self.slot_cut,
        }
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
