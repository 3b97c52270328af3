//! Time on Linux: `CLOCK_MONOTONIC` for everything that is decided, the processor's counter where only cheapness counts.
//!
//! Timers fire on `CLOCK_MONOTONIC`, whose rate the kernel steers; the processor's counter is not steered. A thread that sleeps
//! on the one and spins on the other would drift by tens of microseconds a minute, so [`now`] reads `CLOCK_MONOTONIC` through
//! the vDSO (no system call where the clock source is the counter), and [`ticks`] is for records that are converted afterwards.

use std::fs;
use std::num::NonZeroU64;
use std::sync::OnceLock;

use laxity_model::{Instant, Service, Span};
use rustix::fs::stat;
use rustix::io::Errno;
use rustix::thread::{clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::{ClockId, Timespec, clock_getres};

use crate::os::sched::Tid;

pub(crate) fn timespec(instant: Instant) -> Timespec {
    let nanos = instant.as_nanos();
    Timespec {
        tv_sec: (nanos / 1_000_000_000) as i64,
        tv_nsec: (nanos % 1_000_000_000) as i64,
    }
}

/// Reads a clock of the kernel, in nanoseconds. `None` for a clock that does not exist (a thread that is gone).
fn read(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place for the answer.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (result == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// The time now: nanoseconds of `CLOCK_MONOTONIC`. About 20 ns where the clock source is the processor's counter.
pub fn now() -> Instant {
    // CLOCK_MONOTONIC exists on every Linux.
    Instant::from_nanos(read(libc::CLOCK_MONOTONIC).unwrap_or(0))
}

/// The time now by a clock that nothing steers: the scheduler's own periods follow it, and drift against [`now`] by some ten microseconds
/// a second.
pub(crate) fn unsteered() -> Instant {
    // The clock exists on every supported Linux.
    Instant::from_nanos(read(libc::CLOCK_MONOTONIC_RAW).unwrap_or(0))
}

/// The processor time that the calling thread has received. A system call (about 0.2 µs).
pub fn thread_service() -> Service {
    Service::from_nanos(read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0))
}

/// The processor time that a thread of this process has received; `None` once it is gone. A system call (about 0.3 µs).
pub(crate) fn service_of(thread: Tid) -> Option<Service> {
    // The kernel's number for "processor time of this thread" (CPUCLOCK_PERTHREAD and CPUCLOCK_SCHED in its posix-timers.h).
    const PER_THREAD_SCHED: i32 = 4 | 2;
    read((!thread.0 << 3) | PER_THREAD_SCHED).map(Service::from_nanos)
}

/// The processor time that all threads of a process have received, of those that have ended too; `None` once it is gone.
pub(crate) fn service_of_process(process: u32) -> Option<Service> {
    // The kernel's number for "processor time of this process" (CPUCLOCK_SCHED in its posix-timers.h).
    const SCHED: i32 = 2;
    read((!(process as i32) << 3) | SCHED).map(Service::from_nanos)
}

/// By which clock this process tells instants: the number of its time namespace, each of which has an offset of its own to `CLOCK_MONOTONIC`; 0 where the kernel has no such namespaces.
///
/// # Errors
///
/// There is no `/proc`, or not one in which this process is.
pub(crate) fn namespace() -> rustix::io::Result<u64> {
    match stat("/proc/self/ns/time") {
        // Those of mounts have been there for longer.
        Err(Errno::NOENT) => stat("/proc/self/ns/mnt").map(|_| 0),
        found => found.map(|found| found.st_ino),
    }
}

/// The length of the kernel's tick: 1/HZ, which is the resolution of its coarse clock.
pub fn tick() -> Span {
    resolution(ClockId::MonotonicCoarse)
}

/// The resolution of a clock.
pub(crate) fn resolution(clock: ClockId) -> Span {
    let found = clock_getres(clock);
    Span::from_nanos(found.tv_sec as u64 * 1_000_000_000 + found.tv_nsec as u64)
}

/// Sleeps until the instant on an absolute timer; a signal handled meanwhile does not shorten it.
pub fn sleep_until(instant: Instant) {
    let until = timespec(instant);
    while clock_nanosleep_absolute(ClockId::Monotonic, &until) == Err(Errno::INTR) {}
}

/// Spins until the instant or until `stop` says so, reading the clock all the time. Returns the last reading.
pub(crate) fn spin_until(instant: Instant, stop: impl Fn() -> bool) -> Instant {
    loop {
        let now = now();
        if now >= instant || stop() {
            return now;
        }
        std::hint::spin_loop();
    }
}

/// Makes the calling thread's timers exact: by default the kernel may fire those of ordinary threads 50 µs late.
pub(crate) fn use_exact_timers() {
    // It cannot fail for this argument.
    let _ = set_current_timer_slack(Some(NonZeroU64::MIN));
}

/// What a clock reading costs on this machine now: the shortest of many distances between two readings.
pub(crate) fn reading_cost() -> Span {
    let shortest = (0..1_000)
        .map(|_| {
            let first = now();
            now().saturating_since(first)
        })
        .min();
    shortest.unwrap_or(Span::ZERO)
}

/// Whether the kernel itself keeps time by the processor's counter, which is then the same on all processors and never stops.
pub(crate) fn counter_is_clock() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let source =
            fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource")
                .unwrap_or_default();
        matches!(source.trim(), "tsc" | "arch_sys_counter")
    })
}

/// The processor's counter, or nanoseconds of [`now`] where the counter cannot be trusted.
#[inline]
pub fn ticks() -> u64 {
    if counter_is_clock() {
        counter()
    } else {
        now().as_nanos()
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn counter() -> u64 {
    // SAFETY: reads the time stamp counter, which Linux permits in user space wherever it is the clock source.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "aarch64")]
#[inline]
fn counter() -> u64 {
    let count: u64;
    // SAFETY: reads the virtual counter, which Linux permits in user space; touches no memory.
    unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack)) };
    count
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline]
fn counter() -> u64 {
    now().as_nanos()
}

/// The same moment on both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Anchor {
    ticks: u64,
    at: Instant,
}

impl Anchor {
    /// Reads both clocks, several times, and keeps the pair read closest together.
    #[must_use]
    pub fn take() -> Self {
        let pair = |_| {
            let before = ticks();
            let at = now();
            let after = ticks();
            (
                after.saturating_sub(before),
                Self {
                    ticks: before + after.saturating_sub(before) / 2,
                    at,
                },
            )
        };
        let best = (0..32).map(pair).min_by_key(|(distance, _)| *distance);
        best.map_or_else(|| pair(0).1, |(_, anchor)| anchor)
    }

    /// The instant at which the counter stood at `ticks`, on the line through this anchor and a later one.
    ///
    /// Exact to the steering of the clock between the two, well under a microsecond.
    pub fn instant(&self, later: &Self, ticks: u64) -> Instant {
        let span = u128::from(later.at.saturating_since(self.at).as_nanos());
        let distance = u128::from(later.ticks.saturating_sub(self.ticks)).max(1);
        let nanos = |ticks: u64| (u128::from(ticks) * span / distance) as u64;
        if ticks >= self.ticks {
            self.at + Span::from_nanos(nanos(ticks - self.ticks))
        } else {
            let before = nanos(self.ticks - ticks).min(self.at.as_nanos());
            self.at - Span::from_nanos(before)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_never_ends_early() {
        let until = now() + Span::from_millis(1);
        sleep_until(until);
        assert!(now() >= until);
    }

    #[test]
    fn ticks_convert_to_instants_between_the_readings_around_them() {
        let first = Anchor::take();
        let before = now();
        let tick = ticks();
        let after = now();
        sleep_until(now() + Span::from_millis(2));
        let last = Anchor::take();
        let slack = Span::from_micros(5);
        let at = first.instant(&last, tick);
        assert!(
            at + slack >= before && at <= after + slack,
            "{at:?} not in {before:?}..{after:?}"
        );
        assert!(
            first
                .instant(&last, first.ticks.saturating_sub(1_000_000))
                .as_nanos()
                < first.at.as_nanos()
        );
    }

    #[test]
    fn service_grows_with_work_and_not_with_sleep() {
        let start = thread_service();
        spin_until(now() + Span::from_millis(2), || false);
        let worked = thread_service();
        assert!(worked > start);
        sleep_until(now() + Span::from_millis(5));
        let slept = thread_service() - worked;
        assert!(slept < Service::from_millis(5), "{slept} while asleep");
    }
}
