//! Which reservations Linux lets in: `sched_setattr(2)` with `SCHED_DEADLINE`, computed as the kernel computes it.
//!
//! Linux, `kernel/sched/deadline.c` (`__checkparam_dl`, `sched_dl_overflow`, `__dl_overflow`) and `core.c` (`to_ratio`). What is let in need
//! not meet its deadlines: see [`tardiness`](super::tardiness) for how late it may be.

use alloc::string::ToString;
use core::fmt;
use core::num::NonZeroU16;

use crate::{Reservation, Service, Span};

/// A share of one processor as the kernel counts it: in units of 2⁻²⁰, each share rounded down.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Bandwidth(u64);

/// What is asked of the kernel: the three numbers of `struct sched_attr`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DeadlineRequest {
    /// `sched_runtime`.
    pub runtime: Service,
    /// `sched_deadline`.
    pub deadline: Span,
    /// `sched_period`; zero: as the deadline.
    pub period: Span,
}

/// What a kernel is set to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelLimits {
    /// `kernel.sched_rt_runtime_us`: for all real-time work, of every `rt_period`; `None` for −1, no limit.
    pub rt_runtime: Option<Service>,
    /// `kernel.sched_rt_period_us`.
    pub rt_period: Span,
    /// `kernel.sched_deadline_period_min_us`.
    pub shortest_period: Span,
    /// `kernel.sched_deadline_period_max_us`.
    pub longest_period: Span,
    /// What the kernel keeps on each processor for others, in reservations of its own (`/sys/kernel/debug/sched/fair_server/`).
    pub servers: Bandwidth,
}

/// Why the kernel refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum KernelRefusal {
    /// The runtime is too short.
    #[error("EINVAL: a runtime of {} is less than the kernel's {}", runtime.beside(*shortest), shortest.beside(*runtime))]
    Runtime {
        /// The runtime.
        runtime: Service,
        /// The shortest.
        shortest: Service,
    },
    /// Not runtime ≤ deadline ≤ period, or the deadline is zero, or the highest bit is used.
    #[error(
        "EINVAL: the runtime {} must be no more than the deadline {}, and that no more than the period {}, below 2^63 ns",
        runtime.beside(deadline.as_full_service()),
        deadline.beside(*period).and(runtime.as_nanos()),
        period.beside(*deadline)
    )]
    Order {
        /// The runtime.
        runtime: Service,
        /// The deadline.
        deadline: Span,
        /// The period.
        period: Span,
    },
    /// The period is out of the sysctl's range.
    #[error(
        "EINVAL: a period of {} is not from {} to {}",
        period.beside(*shortest).and(longest.as_nanos()), shortest.beside(*period), longest.beside(*period)
    )]
    Period {
        /// The period.
        period: Span,
        /// The shortest.
        shortest: Span,
        /// The longest.
        longest: Span,
    },
    /// `kernel.sched_rt_runtime_us` is 0.
    #[error("EPERM: kernel.sched_rt_runtime_us leaves nothing to deadline threads")]
    Disabled,
    /// Too little is left in the root domain.
    #[error(
        "EBUSY: {needed:.digits$} of a processor is more than the {free:.digits$} that are left",
        digits = needed.digits_beside(*free)
    )]
    Bandwidth {
        /// What it takes.
        needed: Bandwidth,
        /// What is left.
        free: Bandwidth,
    },
}

impl Bandwidth {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// A whole processor.
    pub const ONE: Self = Self(1 << Self::SHIFT);

    const SHIFT: u32 = 20;

    /// Of a runtime in every period, as the kernel's `to_ratio`: rounded down, zero of a period of zero.
    ///
    /// ```
    /// use laxity_model::analysis::multiprocessor::Bandwidth;
    /// use laxity_model::{Service, Span};
    ///
    /// let tenth = Bandwidth::of(Service::from_millis(1), Span::from_millis(10));
    /// assert_eq!(tenth.units(), 104_857); // 104,857.6
    /// ```
    #[must_use]
    pub const fn of(runtime: Service, period: Span) -> Self {
        if period.is_zero() {
            return Self::ZERO;
        }
        let units = ((runtime.as_nanos() as u128) << Self::SHIFT) / period.as_nanos() as u128;
        if units > u64::MAX as u128 {
            Self(u64::MAX)
        } else {
            Self(units as u64)
        }
    }

    /// From units of 2⁻²⁰ of a processor.
    #[must_use]
    pub const fn from_units(units: u64) -> Self {
        Self(units)
    }

    /// In units of 2⁻²⁰ of a processor.
    pub const fn units(self) -> u64 {
        self.0
    }

    /// In parts per million, rounded down.
    pub fn ppm(self) -> u64 {
        let ppm = (u128::from(self.0) * 1_000_000) >> Self::SHIFT;
        u64::try_from(ppm).unwrap_or(u64::MAX)
    }

    /// The longest runtime in every period that books no more than this; it may be longer than the period.
    ///
    /// ```
    /// use laxity_model::analysis::multiprocessor::Bandwidth;
    /// use laxity_model::{Service, Span};
    ///
    /// let period = Span::from_millis(10);
    /// let tenth = Bandwidth::of(Service::from_millis(1), period);
    /// let longest = tenth.longest_runtime(period);
    /// assert_eq!(longest.as_nanos(), 1_000_003); // 104,857.9
    /// assert_eq!(Bandwidth::of(longest, period), tenth);
    /// ```
    pub fn longest_runtime(self, period: Span) -> Service {
        // ⌊r·2²⁰/p⌋ ≤ b: r·2²⁰ < (b + 1)p.
        let beyond = (u128::from(self.0) + 1) * u128::from(period.as_nanos());
        let longest = beyond.div_ceil(1 << Self::SHIFT).saturating_sub(1);
        Service::from_nanos(u64::try_from(longest).unwrap_or(u64::MAX))
    }

    /// The shortest period in which this runtime books no more than this; it may be shorter than the runtime.
    ///
    /// ```
    /// use laxity_model::analysis::multiprocessor::Bandwidth;
    /// use laxity_model::{Service, Span};
    ///
    /// let runtime = Service::from_millis(1);
    /// let tenth = Bandwidth::of(runtime, Span::from_millis(10));
    /// let shortest = tenth.shortest_period(runtime);
    /// assert_eq!(shortest.as_nanos(), 9_999_962); // 104,857.998
    /// assert_eq!(Bandwidth::of(runtime, shortest), tenth);
    /// ```
    pub fn shortest_period(self, runtime: Service) -> Span {
        // ⌊r·2²⁰/p⌋ ≤ b: p > r·2²⁰/(b + 1).
        let scaled = u128::from(runtime.as_nanos()) << Self::SHIFT;
        let shortest = scaled / (u128::from(self.0) + 1) + 1;
        Span::from_nanos(u64::try_from(shortest).unwrap_or(u64::MAX))
    }

    /// The difference, or `None` if `other` is more.
    #[must_use]
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    /// The difference, or nothing if `other` is more.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// This share of a processor of a lower capacity, where 1024 is the fastest kind's, as the kernel's `cap_scale`; the sum of several
    /// processors' capacities will do too. It saturates.
    ///
    /// ```
    /// use laxity_model::analysis::multiprocessor::Bandwidth;
    /// use laxity_model::{Service, Span};
    ///
    /// let limit = Bandwidth::of(Service::from_millis(950), Span::from_secs(1));
    /// assert_eq!(format!("{:.3}", limit.of_capacity(2 * 1024)), "1.900");
    /// ```
    #[must_use]
    pub const fn of_capacity(self, capacity: u64) -> Self {
        Self(self.0.saturating_mul(capacity) >> 10)
    }

    /// Whether it is nothing.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// How many digits tell this from another one, six at least: as many as it is printed with, unless the two would look the same.
    fn digits_beside(self, other: Self) -> usize {
        let look_alike = self != other && self.to_string() == other.to_string();
        if look_alike { 7 } else { 6 }
    }

    /// So many times this.
    const fn times(self, count: NonZeroU16) -> Self {
        Self(self.0.saturating_mul(count.get() as u64))
    }
}

/// In processors: to a millionth, or to as many digits as the format asks for (`{:.3}`), up to nine.
impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().map_or(6, |digits| digits.min(9));
        let scale = 10_u128.pow(digits as u32);
        let parts = (u128::from(self.0) * scale + (1 << (Self::SHIFT - 1))) >> Self::SHIFT;
        write!(f, "{}", parts / scale)?;
        if digits > 0 {
            write!(f, ".{:0digits$}", parts % scale)?;
        }
        Ok(())
    }
}

impl core::iter::Sum for Bandwidth {
    /// What is booked for several; it saturates.
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, |sum, share| Self(sum.0.saturating_add(share.0)))
    }
}

impl From<Reservation> for DeadlineRequest {
    /// Runtime X, deadline and period Y.
    fn from(reservation: Reservation) -> Self {
        Self {
            runtime: reservation.service(),
            deadline: reservation.period(),
            period: reservation.period(),
        }
    }
}

impl DeadlineRequest {
    /// The period that counts.
    pub const fn period(&self) -> Span {
        if self.period.is_zero() {
            self.deadline
        } else {
            self.period
        }
    }

    /// What the kernel books for it.
    pub const fn bandwidth(&self) -> Bandwidth {
        Bandwidth::of(self.runtime, self.period())
    }
}

impl KernelLimits {
    /// The shortest runtime: the kernel drops the 10 lowest bits of runtimes (`DL_SCALE`).
    pub const SHORTEST_RUNTIME: Service = Service::from_nanos(1 << 10);

    /// Why the yes of a kernel without a limit is no promise.
    pub const UNLIMITED: &str =
        "the kernel admits more reservations than it has processors for (sched_rt_runtime_us = -1)";

    /// As Linux comes before 6.12: 0.95 s of every 1 s, periods from 100 µs to 2²² µs (4.19 s).
    pub const WITHOUT_FAIR_SERVER: Self = Self {
        rt_runtime: Some(Service::from_millis(950)),
        rt_period: Span::from_secs(1),
        shortest_period: Span::from_micros(100),
        longest_period: Span::from_micros(1 << 22),
        servers: Bandwidth::ZERO,
    };

    /// As Linux comes since 6.12: 50 ms of every 1 s of each processor are booked for the fair class.
    pub const WITH_FAIR_SERVER: Self = Self {
        servers: Bandwidth::of(Service::from_millis(50), Span::from_secs(1)),
        ..Self::WITHOUT_FAIR_SERVER
    };

    /// What all reservations in a root domain of so many equally fast processors may take together; `None`: there is no limit.
    ///
    /// ```
    /// use core::num::NonZeroU16;
    /// use laxity_model::analysis::multiprocessor::KernelLimits;
    ///
    /// let two = NonZeroU16::new(2).expect("two");
    /// let free = KernelLimits::WITH_FAIR_SERVER.capacity(two).expect("a limit");
    /// assert_eq!(free.to_string(), "1.800001"); // 2 (0.95 − 0.05), each share rounded down
    /// ```
    pub fn capacity(&self, processors: NonZeroU16) -> Option<Bandwidth> {
        let all = self.all(processors)?;
        Some(all.saturating_sub(self.servers.times(processors)))
    }

    /// The kernel's servers included.
    fn all(&self, processors: NonZeroU16) -> Option<Bandwidth> {
        let each = Bandwidth::of(self.rt_runtime?, self.rt_period);
        Some(each.times(processors))
    }

    /// What of it is left beside what is granted.
    pub fn free(&self, processors: NonZeroU16, granted: Bandwidth) -> Option<Bandwidth> {
        let capacity = self.capacity(processors)?;
        Some(capacity.saturating_sub(granted))
    }

    /// The same, but a kernel without a limit is taken to have that of whole processors: it lets in more than there is, which nobody
    /// can enforce.
    #[must_use]
    pub const fn up_to_whole_processors(self) -> Self {
        match self.rt_runtime {
            Some(_) => self,
            None => Self {
                rt_runtime: Some(self.rt_period.as_full_service()),
                ..self
            },
        }
    }

    /// Whether the kernel takes one more request where `granted` is booked already (the sum of what it booked for others), and what it
    /// books for it.
    ///
    /// Cost: O(1). Errors: what `sched_setattr(2)` would answer, parameters first.
    ///
    /// ```
    /// use core::num::NonZeroU16;
    /// use laxity_model::analysis::multiprocessor::{Bandwidth, KernelLimits};
    /// use laxity_model::{Reservation, Service, Span};
    ///
    /// let (limits, two) = (KernelLimits::WITH_FAIR_SERVER, NonZeroU16::new(2).expect("two"));
    /// let period = Span::from_millis(8);
    /// let quarter = Reservation::new(Service::from_millis(2), period)?.into();
    /// let granted: Bandwidth = [Bandwidth::ONE, limits.check(two, Bandwidth::ZERO, quarter)?].into_iter().sum();
    /// // 1.8 − 1.25 of a processor are left: 4.4 ms of every 8, but no more 0.1 ms than in 181.9 µs.
    /// assert_eq!(limits.longest_runtime(two, granted, period).map(Service::as_micros), Some(4_400));
    /// let shortest = limits.shortest_period(two, granted, Service::from_micros(100));
    /// assert_eq!(shortest.map(Span::as_nanos), Some(181_818));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check(
        &self,
        processors: NonZeroU16,
        granted: Bandwidth,
        request: DeadlineRequest,
    ) -> Result<Bandwidth, KernelRefusal> {
        self.check_parameters(request)?;
        let needed = request.bandwidth();
        let (Some(all), Some(free)) = (self.all(processors), self.free(processors, granted)) else {
            return Ok(needed);
        };
        if self.rt_runtime.is_some_and(Service::is_zero) {
            return Err(KernelRefusal::Disabled);
        }
        // What books nothing is refused too where more is booked than there is.
        let servers = self.servers.times(processors);
        if [servers, granted, needed].into_iter().sum::<Bandwidth>() > all {
            return Err(KernelRefusal::Bandwidth { needed, free });
        }
        Ok(needed)
    }

    /// The longest runtime in every period that the kernel takes beside what is granted, with the deadline at the period's end; `None` if
    /// it takes none.
    pub fn longest_runtime(
        &self,
        processors: NonZeroU16,
        granted: Bandwidth,
        period: Span,
    ) -> Option<Service> {
        let whole = period.as_full_service();
        let free = self.free(processors, granted);
        let runtime = free.map_or(whole, |free| free.longest_runtime(period).min(whole));
        self.check(processors, granted, request(runtime, period))
            .ok()
            .map(|_| runtime)
    }

    /// The shortest period in which the kernel takes this runtime beside what is granted, with the deadline at the period's end; `None` if
    /// there is none.
    pub fn shortest_period(
        &self,
        processors: NonZeroU16,
        granted: Bandwidth,
        runtime: Service,
    ) -> Option<Span> {
        let free = self.free(processors, granted);
        let least = free.map_or(Span::ZERO, |free| free.shortest_period(runtime));
        let period = least
            .max(runtime.as_dedicated_span())
            .max(self.shortest_period);
        self.check(processors, granted, request(runtime, period))
            .ok()
            .map(|_| period)
    }

    /// The kernel's conditions on the three numbers alone.
    fn check_parameters(&self, request: DeadlineRequest) -> Result<(), KernelRefusal> {
        const HIGHEST_BIT: u64 = 1 << 63;
        let (runtime, deadline, period) = (request.runtime, request.deadline, request.period());
        if runtime < Self::SHORTEST_RUNTIME {
            return Err(KernelRefusal::Runtime {
                runtime,
                shortest: Self::SHORTEST_RUNTIME,
            });
        }
        if runtime.as_dedicated_span() > deadline
            || deadline > period
            || period.as_nanos() >= HIGHEST_BIT
        {
            return Err(KernelRefusal::Order {
                runtime,
                deadline,
                period,
            });
        }
        if period < self.shortest_period || period > self.longest_period {
            return Err(KernelRefusal::Period {
                period,
                shortest: self.shortest_period,
                longest: self.longest_period,
            });
        }
        Ok(())
    }
}

const fn request(runtime: Service, period: Span) -> DeadlineRequest {
    DeadlineRequest {
        runtime,
        deadline: period,
        period,
    }
}

/// Whether the kernel lets in all these, one after the other, into a root domain of so many equally fast processors where nothing is
/// granted yet, and what it books in sum; else the first one that it refuses, and why.
///
/// Every thread must be allowed on all processors of the root domain (else EPERM), and the caller must have the right to ask.
/// Processors of different speeds count as their capacities sum up: take as many as that is. Cost: O(n).
///
/// ```
/// use core::num::NonZeroU16;
/// use laxity_model::analysis::multiprocessor::{KernelLimits, KernelRefusal, kernel_admits};
/// use laxity_model::{Reservation, Service, Span};
///
/// let two = NonZeroU16::new(2).expect("two");
/// let out_of_ten = |ms| Reservation::new(Service::from_millis(ms), Span::from_millis(10)).map(Into::into);
/// let limits = KernelLimits::WITH_FAIR_SERVER;
/// assert!(kernel_admits(&[out_of_ten(9)?, out_of_ten(9)?], two, &limits).is_ok());
/// let (index, refusal) = kernel_admits(&[out_of_ten(9)?, out_of_ten(9)?, out_of_ten(1)?], two, &limits).unwrap_err();
/// assert_eq!(index, 2);
/// assert_eq!(refusal.to_string(), "EBUSY: 0.099999 of a processor is more than the 0.000002 that are left");
/// # Ok::<(), laxity_model::ReservationError>(())
/// ```
pub fn kernel_admits(
    requests: &[DeadlineRequest],
    processors: NonZeroU16,
    limits: &KernelLimits,
) -> Result<Bandwidth, (usize, KernelRefusal)> {
    let mut granted = Bandwidth::ZERO;
    for (index, request) in requests.iter().enumerate() {
        let booked = limits
            .check(processors, granted, *request)
            .map_err(|refusal| (index, refusal))?;
        granted = [granted, booked].into_iter().sum();
    }
    Ok(granted)
}
