//! What kind of machine the twin is.

use laxity_model::policy::bands::BandsConfig;
use laxity_model::request::Work;
use laxity_model::{Instant, Priority, Span};

/// What the machine itself takes, on the processor where it happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Costs {
    /// From a device's request to the first instruction of its handler.
    pub interrupt_entry: Span,
    /// From the last instruction of a handler to what it interrupted.
    pub interrupt_exit: Span,
    /// Taking a deferred procedure call from the queue and calling it.
    pub deferred_dispatch: Span,
    /// Giving the processor to another thread than before.
    pub context_switch: Span,
    /// One interrupt of the clock, on every processor.
    pub clock_tick: Span,
}

impl Costs {
    /// Nothing costs anything.
    pub const NONE: Self = Self {
        interrupt_entry: Span::ZERO,
        interrupt_exit: Span::ZERO,
        deferred_dispatch: Span::ZERO,
        context_switch: Span::ZERO,
        clock_tick: Span::ZERO,
    };
}

/// A kind of machine: its clock, its costs, its scheduler's parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Profile {
    /// Its name in reports and scenario files.
    pub name: &'static str,
    /// How often a second the clock that wakes threads interrupts; `None`: threads wake exactly when they ask to.
    pub tick_hz: Option<u32>,
    /// What the machine itself takes.
    pub costs: Costs,
    /// The priority scheduler.
    pub bands: BandsConfig,
    /// Threads of this priority and above preempt the holder of a slot; `None`: none do.
    pub threads_above: Option<Priority>,
}

impl Profile {
    /// The modem study's host: Windows 2000 on one 450 MHz Pentium II (Jones, Saroiu §3.1, §2.2).
    ///
    /// * Clock: *quoted*, 1024 Hz, 976 µs (§6.3.1). Tick *k* is at ⌊*k* · 10⁹ / 1024⌋ ns.
    ///   The clock interrupts every handler, and whom a tick wakes runs when handlers and deferred calls are over.
    /// * Reservations: above all threads but those of priority 31. *Our reading* of figure 16: a callback of that priority is not delayed
    ///   by a reserved modem. The live host ranks them the same way.
    /// * Scheduler: [`BandsConfig::WINDOWS_2000`], but for two values *calibrated* to figure 7, where a modem thread of priority 8 beside one
    ///   spinner of priority 8 lets 512 samples pile up: 64 to 71 ms at 7.2 to 8 kHz. So the spinner's quantum must be longer than that: 120 ms
    ///   of true time, not of this clock's ticks. Windows 2000 documents 12 intervals of its clock as the longer of two quanta: 120 ms where an
    ///   interval is 10 ms, 187.5 ms where it is 15.6 ms, as with a clock of 1024 Hz. So it is no documented quantum of this host. And the signal
    ///   must not lift the modem thread past the spinner: no boost, which is a driver's to choose when it releases a semaphore.
    /// * Costs: the study prints none. They are of the order that such a machine allows (450 cycles a microsecond): 1.5 µs into and 0.7 µs
    ///   out of an interrupt, 1 µs for a deferred call, 4 µs for a thread switch with its cold caches, 2 µs for a clock tick. *Calibrated* in that
    ///   together they stay below the 25 µs by which figure 10's longest gap (1978 µs) exceeds two ticks (1953 µs). What the study did measure, a
    ///   handler's own 5.4 µs (§6.2.4) and the signal processing, is charged by the driver's code.
    pub const WIN2000_PII450: Self = Self {
        name: "win2000-pii450",
        tick_hz: Some(1024),
        costs: Costs {
            interrupt_entry: Span::from_nanos(1_500),
            interrupt_exit: Span::from_nanos(700),
            deferred_dispatch: Span::from_nanos(1_000),
            context_switch: Span::from_nanos(4_000),
            clock_tick: Span::from_nanos(2_000),
        },
        threads_above: Some(Priority::HIGHEST),
        bands: BandsConfig {
            quantum: Span::from_millis(120),
            signal_boost: 0,
            ..BandsConfig::WINDOWS_2000
        },
    };

    /// A machine that costs nothing and wakes threads to the nanosecond; no boosts. For tests, benches and theory.
    pub const IDEAL: Self = Self {
        name: "ideal",
        tick_hz: None,
        costs: Costs::NONE,
        bands: BandsConfig::PLAIN,
        threads_above: None,
    };

    /// When a thread wakes that asked for `wanted`: the first tick at or after it.
    pub(crate) fn wake_at(&self, wanted: Instant) -> Instant {
        match self.tick_hz {
            Some(hz) => first_tick_from(wanted, u64::from(hz)),
            None => wanted,
        }
    }

    /// What its clock takes from whoever has a processor, if it takes something.
    pub fn clock(&self) -> Option<Work> {
        let work = Work {
            service: self.costs.clock_tick.as_full_service(),
            period: Span::from_nanos(NANOS_PER_SEC / u64::from(self.tick_hz?)),
        };
        Some(work).filter(|work| !work.service.is_zero())
    }

    /// How long after an instant who waits for it wakes at the latest: at the next tick.
    pub(crate) fn timer_grain(&self) -> Span {
        self.tick_hz.map_or(Span::ZERO, |hz| {
            Span::from_nanos(1_000_000_000_u64.div_ceil(u64::from(hz)))
        })
    }
}

/// The ticks of a clock that costs something, one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticks {
    /// The next one; the end of time where there are none.
    pub(crate) next: Instant,
    hz: u64,
    /// Whole nanoseconds from one to the next, and how many `hz`-ths are left over each time.
    apart: (u64, u64),
    left_over: u64,
}

impl Ticks {
    pub(crate) fn of(profile: &Profile) -> Self {
        let costly = profile
            .tick_hz
            .filter(|_| !profile.costs.clock_tick.is_zero());
        let hz = costly.map_or(1, u64::from);
        let mut ticks = Self {
            next: Instant::ZERO,
            hz,
            apart: (NANOS_PER_SEC / hz, NANOS_PER_SEC % hz),
            left_over: 0,
        };
        match costly {
            Some(_) => ticks.pass(),
            None => ticks.next = Instant::MAX,
        }
        ticks
    }

    /// On to the one after the next. Divisions would take longer than all else that a tick does here.
    pub(crate) fn pass(&mut self) {
        let (whole, rest) = self.apart;
        self.left_over += rest;
        let carry = self.left_over >= self.hz;
        if carry {
            self.left_over -= self.hz;
        }
        let apart = Span::from_nanos(whole + u64::from(carry));
        self.next = self.next.checked_add(apart).unwrap_or(Instant::MAX);
    }
}

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// The first tick at or after `wanted`; the end of time if it is beyond. Tick *k* is at *k* / `hz` seconds, rounded down to the nanosecond.
fn first_tick_from(wanted: Instant, hz: u64) -> Instant {
    // Whole seconds are ticks, so that only the rest has to be multiplied.
    let (seconds, rest) = (
        wanted.as_nanos() / NANOS_PER_SEC,
        wanted.as_nanos() % NANOS_PER_SEC,
    );
    let ticks = (rest * hz).div_ceil(NANOS_PER_SEC);
    let tick = ticks * NANOS_PER_SEC / hz;
    let nanos = (seconds * NANOS_PER_SEC).checked_add(tick);
    nanos.map_or(Instant::MAX, Instant::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_wake_at_the_first_tick_at_or_after() {
        let profile = Profile::WIN2000_PII450;
        let wake = |ns| profile.wake_at(Instant::from_nanos(ns)).as_nanos();
        assert_eq!(wake(0), 0);
        assert_eq!(wake(1), 976_562);
        assert_eq!(wake(976_562), 976_562);
        assert_eq!(wake(976_563), 1_953_125);
        assert_eq!(wake(999_999_999), 1_000_000_000);
        assert_eq!(wake(u64::MAX), u64::MAX);
    }

    #[test]
    fn ticks_follow_each_other_where_threads_wake() {
        let profile = Profile::WIN2000_PII450;
        let mut ticks = Ticks::of(&profile);
        let mut now = Instant::ZERO;
        for _ in 0..3 * 1024 {
            assert_eq!(ticks.next, profile.wake_at(now + Span::from_nanos(1)));
            now = ticks.next;
            ticks.pass();
        }
        assert_eq!(now, Instant::from_secs(3));
        assert_eq!(Ticks::of(&Profile::IDEAL).next, Instant::MAX);
    }
}
