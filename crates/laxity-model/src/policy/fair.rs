//! The fair class: earliest eligible virtual deadline first (Stoica, Abdel-Wahab 1995), as Linux has had it since 6.6.
//!
//! A thread's virtual time grows as it runs, the slower the heavier it is. Eligible is who is not ahead of the average; of those, the one whose
//! virtual deadline (virtual time plus a slice) comes first runs, and keeps the processor until its slice is used up. Who wakes while
//! another has not used up its slice waits for that.
//!
//! Simplified: one group, no load tracking, no buddies, all slices equal. A thread that sleeps while it is ahead of the average keeps its place in
//! virtual time until the average has caught up (the kernel keeps it queued until then); one that is behind keeps what it lacks.

use alloc::vec::Vec;

use super::{Decision, Policy};
use crate::{Instant, Span};

/// What a nice value weighs; a nice step is a factor of about 1.25.
const WEIGHTS: [u32; 40] = [
    88_761, 71_755, 56_483, 46_273, 36_291, 29_154, 23_254, 18_705, 14_949, 11_916, 9_548, 7_620,
    6_100, 4_904, 3_906, 3_121, 2_501, 1_991, 1_586, 1_277, 1_024, 820, 655, 526, 423, 335, 272,
    215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
];
/// The weight of nice 0: its virtual time is real time.
const UNIT: u32 = 1_024;
/// The weight of `SCHED_IDLE`.
const IDLE: u32 = 3;

/// How a thread of the fair class competes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Weight {
    shares: u32,
    /// Whether it gives way at once to everybody who is not idle.
    idle: bool,
}

impl Weight {
    /// `SCHED_IDLE`.
    pub const IDLE: Self = Self {
        shares: IDLE,
        idle: true,
    };

    /// Of this nice value; those beyond −20 and 19 count as these.
    #[must_use]
    pub fn of_nice(nice: i8) -> Self {
        let place = usize::from((nice.clamp(-20, 19) + 20).unsigned_abs());
        Self {
            shares: WEIGHTS[place],
            idle: false,
        }
    }

    /// Virtual time for real time.
    fn virtual_ns(self, real: Span) -> i64 {
        let scaled = u128::from(real.as_nanos()) * u128::from(UNIT) / u128::from(self.shares);
        i64::try_from(scaled).unwrap_or(i64::MAX / 4)
    }

    /// Real time for virtual time, rounded up.
    fn real(self, virtual_ns: i64) -> Span {
        let virtual_ns = u128::from(virtual_ns.max(0).unsigned_abs());
        let real = (virtual_ns * u128::from(self.shares)).div_ceil(u128::from(UNIT));
        Span::from_nanos(u64::try_from(real).unwrap_or(u64::MAX))
    }
}

#[derive(Clone, Copy, Debug)]
struct Entity {
    weight: Weight,
    /// Virtual time, in nanoseconds of a thread of nice 0.
    runtime: i64,
    deadline: i64,
    /// How far it was behind the average when it left.
    lag: i64,
}

/// The ready threads of the fair class on one processor.
#[derive(Clone, Debug)]
pub struct Fair {
    slice: Span,
    /// The most that somebody keeps of what he lacks, as real time.
    most_lag: Span,
    entities: Vec<Entity>,
    ready: Vec<u32>,
    current: Option<u32>,
    /// Until when the one that runs has been charged.
    since: Instant,
    /// Whether to choose anew although somebody runs.
    anew: bool,
    /// The average when somebody was last there.
    average: i64,
}

impl Fair {
    /// So many threads of nice 0, none of them ready, in slices of `slice`. Nobody keeps more of what he lacks than two slices, or a tick if
    /// that is more.
    #[must_use]
    pub fn new(threads: usize, slice: Span, tick: Span) -> Self {
        let entity = Entity {
            weight: Weight::of_nice(0),
            runtime: 0,
            deadline: 0,
            lag: 0,
        };
        Self {
            slice,
            most_lag: (slice * 2).max(tick),
            entities: alloc::vec![entity; threads],
            ready: Vec::with_capacity(threads),
            current: None,
            since: Instant::ZERO,
            anew: false,
            average: 0,
        }
    }

    /// Whether the thread is ready here.
    pub(super) fn contains(&self, who: u32) -> bool {
        self.ready.contains(&who)
    }

    /// Gives a thread that is not ready a weight.
    pub fn weigh(&mut self, who: u32, weight: Weight) {
        self.entities[who as usize].weight = weight;
    }

    /// Charges the one that runs until now, and gives it its next slice if this one is used up: then others may go first.
    pub(super) fn settle(&mut self, now: Instant) {
        let ran = now.saturating_since(self.since);
        self.since = now;
        let Some(current) = self.current.filter(|_| !ran.is_zero()) else {
            return;
        };
        let slice = self.slice;
        let entity = &mut self.entities[current as usize];
        entity.runtime += entity.weight.virtual_ns(ran);
        if entity.runtime >= entity.deadline {
            entity.deadline = entity.runtime + entity.weight.virtual_ns(slice);
            self.anew = true;
        }
    }

    /// The eligible thread whose virtual deadline comes first; among equals the one that has waited here longest.
    fn first(&self) -> Option<u32> {
        let average = self.weighted_average()?;
        let eligible = self.ready.iter().copied();
        let eligible = eligible.filter(|thread| self.entity(*thread).runtime <= average);
        eligible.min_by_key(|thread| self.entity(*thread).deadline)
    }

    /// The average of virtual times by weight, rounded down; the least is never above it.
    fn weighted_average(&self) -> Option<i64> {
        let base = self.entity(*self.ready.first()?).runtime;
        let (mut sum, mut load) = (0_i128, 0_i128);
        for thread in &self.ready {
            let shares = i128::from(self.shares(*thread));
            sum += i128::from(self.entity(*thread).runtime - base) * shares;
            load += shares;
        }
        i64::try_from(sum.div_euclid(load))
            .ok()
            .map(|off| base + off)
    }

    fn update_average(&mut self) -> i64 {
        if let Some(average) = self.weighted_average() {
            self.average = average;
        }
        self.average
    }

    fn entity(&self, who: u32) -> &Entity {
        &self.entities[who as usize]
    }

    fn shares(&self, who: u32) -> i64 {
        i64::from(self.entity(who).weight.shares)
    }
}

impl Policy for Fair {
    type Entry = ();

    /// Gives way at once only who is idle to who is not.
    fn enter(&mut self, who: u32, (): (), now: Instant) {
        self.settle(now);
        debug_assert!(!self.ready.contains(&who), "nobody is in two places");
        let average = self.update_average();
        let load: i64 = self.ready.iter().map(|other| self.shares(*other)).sum();
        let slice = self.slice;
        let entity = &mut self.entities[who as usize];
        entity.runtime = if entity.lag < 0 {
            entity.runtime.max(average)
        } else if load == 0 {
            average
        } else {
            // The average moves towards who joins: what he lacks is stretched, so that he has it afterwards.
            let shares = i64::from(entity.weight.shares);
            average - entity.lag * (load + shares) / load
        };
        entity.deadline = entity.runtime + entity.weight.virtual_ns(slice);
        let idle = entity.weight.idle;
        self.ready.push(who);
        let current = self.current.map(|current| self.entity(current).weight.idle);
        self.anew |= current == Some(true) && !idle;
    }

    fn leave(&mut self, who: u32, now: Instant) {
        self.settle(now);
        if !self.ready.contains(&who) {
            return;
        }
        let average = self.update_average();
        self.ready.retain(|other| *other != who);
        if self.current == Some(who) {
            self.current = None;
        }
        let most_lag = self.most_lag;
        let entity = &mut self.entities[who as usize];
        let most = entity.weight.virtual_ns(most_lag);
        entity.lag = (average - entity.runtime).clamp(-most, most);
    }

    /// The rest of its slice is skipped.
    fn yield_now(&mut self, who: u32, now: Instant) {
        self.settle(now);
        let slice = self.slice;
        let entity = &mut self.entities[who as usize];
        entity.runtime = entity.runtime.max(entity.deadline);
        entity.deadline = entity.runtime + entity.weight.virtual_ns(slice);
        self.anew = true;
    }

    /// Who had the processor competes again with all others.
    fn pause(&mut self, now: Instant) {
        self.settle(now);
        self.current = None;
    }

    fn decide(&mut self, now: Instant) -> Decision {
        self.settle(now);
        if core::mem::take(&mut self.anew) || self.current.is_none() {
            self.current = self.first();
        }
        debug_assert!(self.current.is_none_or(|who| self.ready.contains(&who)));
        let shared = self.current.filter(|_| self.ready.len() > 1);
        let until = shared.and_then(|who| {
            let Entity {
                weight,
                runtime,
                deadline,
                ..
            } = *self.entity(who);
            now.checked_add(weight.real(deadline.saturating_sub(runtime)))
        });
        Decision {
            who: self.current,
            until: until.unwrap_or(Instant::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Asked again only when it said so, the class gives everybody his share of the time to within a slice.
        #[test]
        fn shares_are_kept_to_within_a_slice(nices in prop::collection::vec(-10..11_i8, 1..6)) {
            let slice = Span::from_micros(1_400);
            let mut fair = Fair::new(nices.len(), slice, slice);
            for (who, nice) in (0..).zip(&nices) {
                fair.weigh(who, Weight::of_nice(*nice));
                fair.enter(who, (), Instant::ZERO);
            }
            let length = Instant::from_millis(500);
            let mut received = alloc::vec![0_u64; nices.len()];
            let mut now = Instant::ZERO;
            while now < length {
                let decision = fair.decide(now);
                let until = decision.until.min(length);
                prop_assert!(until > now, "a decision must hold for some time");
                let who = decision.who.expect("somebody is ready");
                received[who as usize] += (until - now).as_nanos();
                now = until;
            }
            let load: u64 = nices.iter().map(|nice| u64::from(Weight::of_nice(*nice).shares)).sum();
            for (nice, received) in nices.iter().zip(received) {
                let ideal = length.as_nanos() * u64::from(Weight::of_nice(*nice).shares) / load;
                prop_assert!(received.abs_diff(ideal) <= 2 * slice.as_nanos(), "{received} instead of {ideal}");
            }
        }
    }
}
