//! Points in time, spans of time, and processor time received: three types that do not mix by accident.
//!
//! All are unsigned 64-bit nanoseconds, which last 584 years. An [`Instant`] counts from its host's own epoch, so instants of two
//! hosts do not compare. The operators panic on overflow (a bug); the `checked_` forms are for values that come from outside.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Rem, Sub};

use derive_more::{Add, AddAssign, Sub, SubAssign, Sum};

const NANOS_PER_MICRO: u64 = 1_000;
const NANOS_PER_MILLI: u64 = 1_000_000;
const NANOS_PER_SEC: u64 = 1_000_000_000;

/// A point in time: nanoseconds since the epoch of the host it was read on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

macro_rules! quantity {
    ($name:ident) => {
        impl $name {
            /// The zero value.
            pub const ZERO: Self = Self(0);
            /// The largest value that can be represented.
            pub const MAX: Self = Self(u64::MAX);

            /// From nanoseconds.
            #[must_use]
            pub const fn from_nanos(nanos: u64) -> Self {
                Self(nanos)
            }

            /// From microseconds. Panics on overflow.
            #[must_use]
            pub const fn from_micros(micros: u64) -> Self {
                Self(micros * NANOS_PER_MICRO)
            }

            /// From milliseconds. Panics on overflow.
            #[must_use]
            pub const fn from_millis(millis: u64) -> Self {
                Self(millis * NANOS_PER_MILLI)
            }

            /// From seconds. Panics on overflow.
            #[must_use]
            pub const fn from_secs(secs: u64) -> Self {
                Self(secs * NANOS_PER_SEC)
            }

            /// In nanoseconds.
            pub const fn as_nanos(self) -> u64 {
                self.0
            }

            /// In whole microseconds, rounded down.
            pub const fn as_micros(self) -> u64 {
                self.0 / NANOS_PER_MICRO
            }

            /// Whether this is the zero value.
            pub const fn is_zero(self) -> bool {
                self.0 == 0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_nanos(self.0, f)
            }
        }
    };
}

macro_rules! additive {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[derive(Add, AddAssign, Sub, SubAssign, Sum)]
        pub struct $name(u64);

        impl $name {
            /// The sum, or `None` on overflow.
            #[must_use]
            pub fn checked_add(self, other: Self) -> Option<Self> {
                self.0.checked_add(other.0).map(Self)
            }

            /// The difference, or zero where it would be negative.
            #[must_use]
            pub const fn saturating_sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }

            /// `n` times this, or `None` on overflow.
            #[must_use]
            pub fn checked_mul(self, n: u64) -> Option<Self> {
                self.0.checked_mul(n).map(Self)
            }

            /// The nearest multiple of a grain, which is more than zero.
            #[must_use]
            pub fn rounded(self, grain: Self) -> Self {
                (self + grain / 2).rounded_down(grain)
            }

            /// The first multiple of a grain, which is more than zero, that is not less.
            #[must_use]
            pub const fn rounded_up(self, grain: Self) -> Self {
                Self(self.0.next_multiple_of(grain.0))
            }

            /// The last one that is not more.
            #[must_use]
            pub const fn rounded_down(self, grain: Self) -> Self {
                Self(self.0 - self.0 % grain.0)
            }

            /// For people, in a sentence that compares the two: as it prints, but to the last digit where the other is not the same and would not be
            /// told from it.
            ///
            #[doc = concat!("```\nuse laxity_model::", stringify!($name), ";\n\n")]
            #[doc = concat!("let [one, other] = [1_120_003, 1_120_900].map(", stringify!($name), "::from_nanos);")]
            /// assert_eq!(one.to_string(), other.to_string());
            /// assert_eq!(one.beside(other).to_string(), "1.120003ms");
            /// assert_eq!(other.beside(one).to_string(), "1.120900ms");
            /// ```
            #[must_use]
            pub const fn beside(self, other: Self) -> Beside {
                Beside {
                    nanos: self.0,
                    exact: false,
                }
                .and(other.0)
            }

            /// For people who are to write just that: as it prints, but to the last digit where there is more than is printed.
            #[must_use]
            pub const fn exactly(self) -> Beside {
                Beside {
                    nanos: self.0,
                    exact: shown(self.0) != self.0,
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_nanos(self.0, f)
            }
        }

        impl Mul<u64> for $name {
            type Output = Self;
            fn mul(self, n: u64) -> Self {
                Self(self.0 * n)
            }
        }

        impl Div<u64> for $name {
            type Output = Self;
            fn div(self, n: u64) -> Self {
                Self(self.0 / n)
            }
        }

        impl Div for $name {
            type Output = u64;
            fn div(self, other: Self) -> u64 {
                self.0 / other.0
            }
        }

        impl Rem for $name {
            type Output = Self;
            fn rem(self, other: Self) -> Self {
                Self(self.0 % other.0)
            }
        }
    };
}

quantity!(Instant);
quantity!(Span);
quantity!(Service);
additive! {
    /// A length of time that passes on the wall, in nanoseconds; never negative.
    Span
}
additive! {
    /// Processor time received by one activity, in nanoseconds. Not a [`Span`]: 2 ms of service may take 8 ms to arrive.
    Service
}

impl Instant {
    /// This instant moved later, or `None` past the end of time.
    #[must_use]
    pub fn checked_add(self, span: Span) -> Option<Self> {
        self.0.checked_add(span.0).map(Self)
    }

    /// This instant moved earlier, or the epoch if that is later.
    #[must_use]
    pub const fn saturating_sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }

    /// The span since `earlier`, or zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// The span from the host's epoch to this instant.
    pub const fn since_epoch(self) -> Span {
        Span(self.0)
    }
}

impl Span {
    /// The service that a dedicated processor gives in this span.
    pub const fn as_full_service(self) -> Service {
        Service(self.0)
    }
}

impl Service {
    /// The span that a dedicated processor takes to give this service.
    pub const fn as_dedicated_span(self) -> Span {
        Span(self.0)
    }
}

impl Add<Span> for Instant {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0 + span.0)
    }
}

impl AddAssign<Span> for Instant {
    fn add_assign(&mut self, span: Span) {
        self.0 += span.0;
    }
}

impl Sub<Span> for Instant {
    type Output = Self;
    fn sub(self, span: Span) -> Self {
        Self(self.0 - span.0)
    }
}

impl Sub for Instant {
    type Output = Span;
    fn sub(self, earlier: Self) -> Span {
        Span(self.0 - earlier.0)
    }
}

/// A time as it prints [beside](Span::beside) another, or [exactly](Span::exactly).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Beside {
    nanos: u64,
    exact: bool,
}

impl Beside {
    /// And beside another one still, in nanoseconds.
    #[must_use]
    pub const fn and(self, nanos: u64) -> Self {
        let would_look_alike = shown(self.nanos) == shown(nanos) && self.nanos != nanos;
        Self {
            exact: self.exact || would_look_alike,
            ..self
        }
    }
}

impl fmt::Display for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.exact {
            return write_nanos(self.nanos, f);
        }
        // Below a millisecond all digits are shown in any case.
        let (millis, rest) = (self.nanos / NANOS_PER_MILLI, self.nanos % NANOS_PER_MILLI);
        write!(f, "{millis}.{rest:06}ms")
    }
}

/// The largest unit of which this is one or more.
const fn unit(nanos: u64) -> (u64, &'static str) {
    match nanos {
        0..NANOS_PER_MICRO => (1, "ns"),
        NANOS_PER_MICRO..NANOS_PER_MILLI => (NANOS_PER_MICRO, "us"),
        NANOS_PER_MILLI..NANOS_PER_SEC => (NANOS_PER_MILLI, "ms"),
        _ => (NANOS_PER_SEC, "s"),
    }
}

/// What is left of a time where it is printed, in nanoseconds: three decimals.
const fn shown(nanos: u64) -> u64 {
    let (unit, _) = unit(nanos);
    let grain = if unit == 1 { 1 } else { unit / 1_000 };
    nanos - nanos % grain
}

/// Writes nanoseconds in the largest unit that shows them exactly to three decimals, e.g. `2ms`, `12.500ms`, `310ns`.
fn write_nanos(nanos: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (unit, name) = unit(nanos);
    let (whole, rest) = (nanos / unit, nanos % unit);
    if rest == 0 {
        write!(f, "{whole}{name}")
    } else {
        write!(f, "{whole}.{:03}{name}", rest * 1_000 / unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use proptest::prelude::*;

    #[test]
    fn spans_print_in_their_natural_unit() {
        assert_eq!(Span::from_millis(2).to_string(), "2ms");
        assert_eq!(Span::from_micros(12_500).to_string(), "12.500ms");
        assert_eq!(Span::from_nanos(310).to_string(), "310ns");
        assert_eq!(Span::from_nanos(1_000_001).to_string(), "1.000ms");
    }

    /// What a printed time says, in nanoseconds.
    fn read(printed: &str) -> u64 {
        let end = printed.find(char::is_alphabetic).unwrap();
        let (number, name) = printed.split_at(end);
        let (whole, rest) = number.split_once('.').unwrap_or((number, "0"));
        let unit = [
            ("ns", 1),
            ("us", 1_000),
            ("ms", 1_000_000),
            ("s", 1_000_000_000),
        ];
        let (_, unit) = unit.into_iter().find(|(known, _)| *known == name).unwrap();
        let ten = 10_u64.pow(u32::try_from(rest.len()).unwrap());
        whole.parse::<u64>().unwrap() * unit + rest.parse::<u64>().unwrap() * unit / ten
    }

    proptest! {
        #[test]
        fn times_that_differ_print_apart_and_in_their_order(
            one in 0..u64::MAX / 2,
            small in 0..3_000_000_000_u64,
            by in 0..2_000_u64,
        ) {
            for (one, other) in [(one, one + by), (small, small + by), (one, small)] {
                let printed = |nanos: u64, other: u64| {
                    let [nanos, other] = [nanos, other].map(Span::from_nanos);
                    nanos.beside(other).to_string()
                };
                let (one_says, other_says) = (printed(one, other), printed(other, one));
                prop_assert_eq!(read(&one_says).cmp(&read(&other_says)), one.cmp(&other), "{} {}", one_says, other_says);
                prop_assert_eq!(printed(one, one), Span::from_nanos(one).to_string());
            }
        }
    }

    #[test]
    fn what_is_to_be_written_is_printed_to_the_last_digit() {
        for (nanos, printed) in [
            (7_812_500, "7.812500ms"),
            (7_812_000, "7.812ms"),
            (488_281, "488.281us"),
            (2_000_000, "2ms"),
        ] {
            assert_eq!(Span::from_nanos(nanos).exactly().to_string(), printed);
        }
    }

    #[test]
    fn a_millisecond_and_a_little_more_are_told_apart() {
        let [one, more] = [1_000_000, 1_000_001].map(Span::from_nanos);
        assert_eq!(more.beside(one).to_string(), "1.000001ms");
        assert_eq!(one.beside(more).to_string(), "1.000000ms");
        assert_eq!(
            one.beside(one * 2).and(more.as_nanos()).to_string(),
            "1.000000ms"
        );
        assert_eq!(one.beside(one * 2).to_string(), "1ms");
    }

    #[test]
    fn checked_forms_refuse_overflow() {
        assert_eq!(Instant::MAX.checked_add(Span::from_nanos(1)), None);
        assert_eq!(Span::MAX.checked_mul(2), None);
        assert_eq!(
            Service::from_nanos(1).saturating_sub(Service::from_nanos(2)),
            Service::ZERO
        );
    }
}
