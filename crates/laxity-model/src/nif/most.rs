//! How many packets a driver takes at the most, so that what it takes of a processor can be charged to whoever is below it.
//!
//! A packet that arrives, a frame that leaves, and a look that finds neither are one each: whatever the driver is called for, it takes no longer than an interrupt and a packet for each of
//! them. In no interval of the stated length are there more than the stated number, however it lies: so the driver is a task of that many such pieces in each, and
//! needs no look at what comes. What comes beyond waits in the interface, and is lost there if it has no room.

use alloc::collections::VecDeque;
use core::num::NonZeroU16;

use crate::analysis::Task;
use crate::request::Work;
use crate::{Instant, Service, Span};

/// A bound on what a driver takes from its interface and hands to it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Most {
    packets: NonZeroU16,
    every: Span,
}

/// What a driver takes of its processor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Costs {
    /// Each time that it is called, at the most.
    pub interrupt: Service,
    /// And each packet then, whichever way it goes: finding whose it is, and the client's call.
    pub packet: Service,
    /// And each byte of them, in picoseconds.
    pub byte_ps: u64,
}

impl Costs {
    /// The same for one packet of so many bytes, with an interrupt of its own.
    #[must_use]
    pub fn each(self, bytes: u32) -> Service {
        self.of(1, bytes.into())
    }

    /// To be called once, for so many packets of so many bytes together. What is longer than can be counted is the longest.
    #[must_use]
    pub fn of(self, packets: u64, bytes: u64) -> Service {
        let nanos = (u128::from(bytes) * u128::from(self.byte_ps)).div_ceil(1_000);
        let bytes = Service::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let packets = self.packet.checked_mul(packets);
        let all = packets.and_then(|all| all.checked_add(bytes)?.checked_add(self.interrupt));
        all.unwrap_or(Service::MAX)
    }
}

impl Most {
    /// So many packets in each interval of this length, however it lies; `None` where either is zero, or more than 65,535 packets are said.
    #[must_use]
    pub fn new(packets: u32, every: Span) -> Option<Self> {
        let packets = NonZeroU16::new(u16::try_from(packets).ok()?)?;
        (!every.is_zero()).then_some(Self { packets, every })
    }

    /// How many.
    #[must_use]
    pub const fn packets(self) -> u16 {
        self.packets.get()
    }

    /// In how long a time.
    #[must_use]
    pub const fn every(self) -> Span {
        self.every
    }

    /// What a driver with these costs takes of packets of so many bytes: all of them at once, as soon as it may.
    #[must_use]
    pub fn work(self, costs: Costs, bytes: u32) -> Work {
        Work {
            service: self.all(costs.each(bytes)),
            period: self.every,
        }
    }

    /// The same of whoever takes so long over each of them; `None` where that is nothing.
    #[must_use]
    pub fn task(self, each: Service) -> Option<Task> {
        Task::new(self.all(each), self.every).ok()
    }

    fn all(self, each: Service) -> Service {
        let all = each.checked_mul(self.packets.get().into());
        all.unwrap_or(Service::MAX)
    }

    /// Behind so many others in the interface, the driver has come to a packet after so long, if it is delayed by nothing but this bound: where frames wait to be sent they have half of what may be
    /// taken, and before the first of these intervals another one may have been used up. Each may begin so much `late`.
    #[must_use]
    pub fn longest_wait(self, others: u32, late: Span) -> Span {
        let packets = u64::from(self.packets.get());
        // Of one at a time every second one.
        let (taken, intervals) = match packets {
            1 => (1, 2),
            packets => (packets / 2, 1),
        };
        let all = (u64::from(others) + 1).div_ceil(taken) * intervals;
        let every = self.every.checked_add(late).unwrap_or(Span::MAX);
        let all = every.as_nanos().checked_mul(all + 1);
        Span::from_nanos(all.unwrap_or(u64::MAX))
    }
}

/// Keeps a driver to such a bound. It allocates when it is made, and not afterwards.
#[derive(Clone, Debug)]
pub struct Pace {
    most: Option<Most>,
    /// When how many were taken, of those that still count.
    taken: VecDeque<(Instant, u32)>,
    count: u32,
    /// How many were taken in all.
    all: u64,
}

impl Pace {
    /// To this, or to nothing.
    #[must_use]
    pub fn new(most: Option<Most>) -> Self {
        let room = most.map_or(0, |most| usize::from(most.packets()));
        Self {
            most,
            taken: VecDeque::with_capacity(room),
            count: 0,
            all: 0,
        }
    }

    /// How many may be taken now: [`usize::MAX`] where there is no bound.
    pub fn left(&mut self, now: Instant) -> usize {
        let Some(most) = self.most else {
            return usize::MAX;
        };
        while let Some((at, count)) = self.taken.front().copied() {
            if at.checked_add(most.every).is_none_or(|over| over > now) {
                break;
            }
            self.taken.pop_front();
            self.count -= count;
        }
        u32::from(most.packets()).saturating_sub(self.count) as usize
    }

    /// Until when the driver has to rest, where all that may be taken now has been.
    pub fn rests_until(&mut self, now: Instant) -> Option<Instant> {
        let every = self.most?.every;
        if self.left(now) > 0 {
            return None;
        }
        let (oldest, _) = self.taken.front()?;
        Some(oldest.checked_add(every).unwrap_or(Instant::MAX))
    }

    /// The driver has looked, and taken so many: one at least, since a look takes its time, too.
    pub fn took(&mut self, now: Instant, packets: usize) {
        if self.most.is_none() {
            return;
        }
        let packets = u32::try_from(packets.max(1)).unwrap_or(u32::MAX);
        self.count = self.count.saturating_add(packets);
        self.all += u64::from(packets);
        match self.taken.back_mut() {
            // A clock that went back gives nothing back.
            Some((at, count)) if *at >= now => *count = count.saturating_add(packets),
            _ => self.taken.push_back((now, packets)),
        }
    }

    /// What all that was taken is charged, where each of them is charged so much; nothing where there is no bound.
    #[must_use]
    pub fn charged(&self, each: Service) -> Service {
        each.checked_mul(self.all).unwrap_or(Service::MAX)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::base::random::SplitMix64;

    const US: Span = Span::from_micros(1);

    fn most(packets: u32, every_us: u64) -> Most {
        Most::new(packets, US * every_us).expect("more than nothing")
    }

    #[test]
    fn a_bound_is_of_something() {
        assert_eq!(Most::new(0, US), None);
        assert_eq!(Most::new(1, Span::ZERO), None);
        assert_eq!(Most::new(65_536, US), None);
        assert_eq!(most(65_535, 1).packets(), 65_535);
    }

    /// Whoever asks whenever, and takes whatever may be taken: in no interval are there more, and what may be taken is taken in each.
    #[test]
    fn no_interval_has_more_and_a_flood_has_all() {
        for seed in 0..50 {
            let mut random = SplitMix64::new(seed);
            let bound = most(1 + (random.draw() % 7) as u32, 100);
            let mut pace = Pace::new(Some(bound));
            let (mut now, mut taken) = (Instant::ZERO, Vec::new());
            let mut is_flood = seed.is_multiple_of(2);
            for _ in 0..2_000 {
                is_flood ^= random.draw().is_multiple_of(50);
                if let Some(until) = pace.rests_until(now) {
                    assert!(until > now);
                    now = until;
                    continue;
                }
                let left = pace.left(now);
                let wanted = (random.draw() % 4) as usize;
                let packets = wanted.min(left);
                pace.took(now, packets);
                taken.extend((0..packets.max(1)).map(|_| now));
                now += if is_flood {
                    US
                } else {
                    US * (random.draw() % 90)
                };
            }
            let packets = usize::from(bound.packets());
            let apart = |pair: &[Instant]| pair[packets].saturating_since(pair[0]);
            let closest = taken.windows(packets + 1).map(apart).min();
            assert_eq!(closest, Some(bound.every()), "seed {seed}");
            let each = Service::from_nanos(3);
            let charged = Service::from_nanos(3 * taken.len() as u64);
            assert_eq!(pace.charged(each), charged);
        }
    }

    #[test]
    fn no_bound_is_none() {
        let mut pace = Pace::new(None);
        pace.took(Instant::ZERO, 1 << 20);
        assert_eq!(pace.left(Instant::ZERO), usize::MAX);
        assert_eq!(pace.rests_until(Instant::ZERO), None);
    }

    #[test]
    fn each_is_charged_an_interrupt_of_its_own() {
        let costs = Costs {
            interrupt: Service::from_micros(3),
            packet: Service::from_micros(2),
            byte_ps: 1_001,
        };
        let work = most(8, 100).work(costs, 0);
        assert_eq!(work.service, Service::from_micros(40));
        assert_eq!(work.period, US * 100);
        // 1,001 ns and a picosecond begun.
        assert_eq!(costs.each(1_001).as_nanos(), 5_000 + 1_003);
        assert_eq!(costs.of(3, 1_000).as_nanos(), 3_000 + 6_000 + 1_001);
        let far = Costs {
            interrupt: Service::MAX,
            ..costs
        };
        assert_eq!(most(8, 100).work(far, 0).service, Service::MAX);
    }

    #[test]
    fn who_waits_behind_others_waits_for_half_of_what_may_be_taken() {
        assert_eq!(most(8, 100).longest_wait(0, Span::ZERO), US * 200);
        assert_eq!(most(8, 100).longest_wait(3, Span::ZERO), US * 200);
        assert_eq!(most(8, 100).longest_wait(4, US), US * 303);
        assert_eq!(most(1, 100).longest_wait(1, Span::ZERO), US * 500);
    }
}
