//! Numbers with their unit, as people write them: `0.1ms`, `2ms/8ms`, `14.7 % ± 0.7`, `8 kB`, `52 dB`, `1.05 x control`.
//!
//! Decimals are read as integers and a power of ten, so `0.1ms` is 100,000 ns and not about that; what is no whole number of the
//! smallest unit is refused rather than rounded. No function here panics, whatever it is given.

mod messages;
mod packets;
mod reserved;

use std::cmp::Ordering;
use std::fmt;

use crate::layout::TimeUnit;
use crate::plain;
use laxity_model::{Service, Span};

pub use messages::{format_messages, messages};
pub use packets::{format_most, most};
pub(crate) use reserved::format_open;
pub use reserved::{Asked, asked, format_reservation, reservation};

/// Why a text is no such quantity, and what would do.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{cause}; {remedy}")]
pub struct UnitError {
    /// What is wrong.
    pub cause: String,
    /// What would be right.
    pub remedy: String,
}

impl UnitError {
    /// Both repeat what was written, on a command line, too, whose errors nobody makes plain afterwards.
    pub(crate) fn new(cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            cause: plain(&cause.into()).into_owned(),
            remedy: plain(&remedy.into()).into_owned(),
        }
    }
}

/// What is asked of a number: the names of its units, each with how many of the smallest unit it is.
pub(super) struct Scale {
    /// What the number is, with its article.
    pub(super) what: &'static str,
    /// Spellings and their size in the smallest unit.
    units: &'static [(&'static str, u64)],
    /// The smallest unit, in words.
    smallest: &'static str,
    /// A good one.
    pub(super) example: &'static str,
}

pub(super) const DURATION: Scale = Scale {
    what: "a duration",
    units: &[
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("μs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
    ],
    smallest: "nanosecond",
    example: "8ms",
};
pub(super) const SIZE: Scale = Scale {
    what: "a size",
    units: &[
        ("B", 1),
        ("kB", 1_000),
        ("KiB", 1_024),
        ("MB", 1_000_000),
        ("MiB", 1_048_576),
    ],
    smallest: "byte",
    example: "8 kB",
};
pub(super) const RATE: Scale = Scale {
    what: "a rate",
    units: &[
        ("bit/s", 1),
        ("kbit/s", 1_000),
        ("Mbit/s", 1_000_000),
        ("Gbit/s", 1_000_000_000),
    ],
    smallest: "bit a second",
    example: "10 Mbit/s",
};
pub(super) const SHARE: Scale = Scale {
    what: "a share",
    units: &[("%", 10_000)],
    smallest: "millionth",
    example: "14.7 %",
};
pub(super) const LEVEL: Scale = Scale {
    what: "a level",
    units: &[("dB", 1_000)],
    smallest: "thousandth of a decibel",
    example: "52 dB",
};
pub(super) const OFFSET: Scale = Scale {
    what: "a clock offset",
    units: &[("ppm", 1_000), ("ppb", 1)],
    smallest: "part per billion",
    example: "50 ppm",
};
pub(super) const FREQUENCY: Scale = Scale {
    what: "a frequency",
    units: &[("Hz", 1_000), ("mHz", 1), ("kHz", 1_000_000)],
    smallest: "millihertz",
    example: "0.5 Hz",
};
const FACTOR: Scale = Scale {
    what: "a factor",
    units: &[("", 1_000_000)],
    smallest: "millionth",
    example: "1.05",
};

/// A non-negative decimal: `mantissa / 10^decimals`.
#[derive(Clone, Copy)]
struct Decimal {
    mantissa: u128,
    decimals: u32,
}

/// No more digits than this are read: 10^28 times the largest unit still fits 128 bits.
const MAX_DIGITS: usize = 28;

impl Decimal {
    /// `digits` or `digits.digits`, nothing else.
    fn parse(text: &str) -> Option<Result<Self, TooLong>> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !is_number(whole) || !is_number(fraction) {
            return None;
        }
        let whole = whole.trim_start_matches('0');
        let fraction = fraction.trim_end_matches('0');
        if whole.len() + fraction.len() > MAX_DIGITS {
            return Some(Err(TooLong));
        }
        let digits = whole.bytes().chain(fraction.bytes());
        let mantissa = digits.fold(0, |sum: u128, b| sum * 10 + u128::from(b - b'0'));
        Some(Ok(Self {
            mantissa,
            decimals: fraction.len() as u32,
        }))
    }

    /// This many `unit`s, if that is a whole number that fits 64 bits.
    fn times(self, unit: u64) -> Result<u64, Inexact> {
        let product = self.mantissa * u128::from(unit);
        let divisor = 10_u128.pow(self.decimals);
        if !product.is_multiple_of(divisor) {
            return Err(Inexact::Fraction);
        }
        u64::try_from(product / divisor).map_err(|_| Inexact::Overflow)
    }
}

/// More digits than [`MAX_DIGITS`].
struct TooLong;

enum Inexact {
    Fraction,
    Overflow,
}

impl Scale {
    /// The quantity in its smallest unit.
    fn read(&self, text: &str) -> Result<u64, UnitError> {
        let text = text.trim();
        if let Some(rest) = text.strip_prefix(['-', '−']) {
            let negative = rest.trim_start().starts_with(|c: char| c.is_ascii_digit());
            if negative {
                return Err(UnitError::new(
                    format!("{} must not be negative, found `{text}`", self.what),
                    self.remedy(),
                ));
            }
        }
        let end = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        if let Some(fraction) = unit.strip_prefix(',')
            && fraction.starts_with(|c: char| c.is_ascii_digit())
        {
            let point = format!("write a point: \"{number}.{fraction}\"");
            return Err(UnitError::new(format!("`{text}` has a comma"), point));
        }
        let unit = unit.trim_start();
        let decimal = Decimal::parse(number).ok_or_else(|| {
            UnitError::new(
                format!("`{text}` does not begin with a number"),
                self.remedy(),
            )
        })?;
        let size = self.unit(text, number, unit)?;
        let overflow = || {
            UnitError::new(
                format!("`{text}` is larger than can be counted"),
                format!("at most {} {}s fit", u64::MAX, self.smallest),
            )
        };
        let decimal = decimal.map_err(|TooLong| overflow())?;
        decimal.times(size).map_err(|inexact| match inexact {
            Inexact::Overflow => overflow(),
            Inexact::Fraction => UnitError::new(
                format!("`{text}` is no whole number of {}s", self.smallest),
                format!("write fewer decimals, as in \"{}\"", self.example),
            ),
        })
    }

    fn unit(&self, text: &str, number: &str, unit: &str) -> Result<u64, UnitError> {
        if let Some((_, size)) = self.units.iter().find(|(name, _)| *name == unit) {
            return Ok(*size);
        }
        if unit.is_empty() {
            let name = self.units.iter().rev().nth(1).or(self.units.first());
            let name = name.map_or("", |(name, _)| *name);
            return Err(UnitError::new(
                format!("`{text}` has no unit"),
                format!(
                    "write {} with its unit ({}), such as \"{number}{name}\"",
                    self.what,
                    self.names()
                ),
            ));
        }
        Err(UnitError::new(
            format!("`{unit}` is no unit of {}", self.what),
            self.remedy(),
        ))
    }

    /// The spellings, the two Greek ones as one.
    fn names(&self) -> String {
        let names = self.units.iter().map(|(name, _)| *name);
        let names: Vec<_> = names.filter(|name| *name != "μs").collect();
        names.join(", ")
    }

    fn remedy(&self) -> String {
        if self.names().is_empty() {
            return format!("write {} such as \"{}\"", self.what, self.example);
        }
        format!(
            "write {} as a number and its unit ({}), such as \"{}\"",
            self.what,
            self.names(),
            self.example
        )
    }
}

/// A duration: `250ns`, `10us`, `10µs`, `0.1ms`, `2 s`. Zero is a duration; whether it makes sense is for the reader to say.
pub fn span(text: &str) -> Result<Span, UnitError> {
    DURATION.read(text).map(Span::from_nanos)
}

/// The same, for processor time.
pub fn service(text: &str) -> Result<Service, UnitError> {
    DURATION.read(text).map(Service::from_nanos)
}

/// A size in bytes: `8 kB`, `200000 B`, `1 MiB`.
pub fn bytes(text: &str) -> Result<u64, UnitError> {
    SIZE.read(text)
}

/// Bits a second: `10 Mbit/s`.
pub fn rate(text: &str) -> Result<u64, UnitError> {
    RATE.read(text)
}

/// In the largest unit of which it is a whole number.
pub fn format_rate(rate: u64) -> String {
    let mut units = RATE.units.iter().rev();
    let whole = units.find(|(_, size)| rate > 0 && rate.is_multiple_of(*size));
    let (unit, size) = whole.copied().unwrap_or(("bit/s", 1));
    format!("{} {unit}", rate / size)
}

/// A level in thousandths of a decibel: `52 dB`.
pub fn level_mdb(text: &str) -> Result<u64, UnitError> {
    LEVEL.read(text)
}

/// A clock offset in parts per billion, of either sign: `50 ppm`, `-20 ppm`.
pub fn offset_ppb(text: &str) -> Result<i64, UnitError> {
    signed(&OFFSET, text)
}

/// A frequency in millihertz, of either sign: `0.5 Hz`.
pub fn frequency_mhz(text: &str) -> Result<i64, UnitError> {
    signed(&FREQUENCY, text)
}

fn signed(scale: &Scale, text: &str) -> Result<i64, UnitError> {
    let text = text.trim();
    let (negative, rest) = match text.strip_prefix(['-', '−']) {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let size = i64::try_from(scale.read(rest)?).map_err(|_| {
        UnitError::new(
            format!("`{text}` is larger than can be counted"),
            scale.remedy(),
        )
    })?;
    Ok(if negative { -size } else { size })
}

/// A share of one processor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Share {
    /// In millionths of a processor.
    pub ppm: u32,
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", exact(u64::from(self.ppm), 10_000))
    }
}

/// A share from 0 to 100 %: `14.7 %`.
pub fn share(text: &str) -> Result<Share, UnitError> {
    let ppm = SHARE.read(text)?;
    match u32::try_from(ppm) {
        Ok(ppm) if ppm <= 1_000_000 => Ok(Share { ppm }),
        _ => Err(UnitError::new(
            format!("`{}` is more than one processor has", text.trim()),
            "write a share from 0 % to 100 %, such as \"14.7 %\"",
        )),
    }
}

/// A share in millionths, however large: `0.5 %` is 5,000.
pub fn millionths(text: &str) -> Result<u32, UnitError> {
    let ppm = SHARE.read(text)?;
    Ok(u32::try_from(ppm).unwrap_or(u32::MAX))
}

/// A share of so many millionths, as it is written.
pub fn format_share(ppm: u32) -> String {
    Share { ppm }.to_string()
}

/// A share that is to be hit within a tolerance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Load {
    /// The share wanted.
    pub share: Share,
    /// How far off it may be, either way.
    pub tolerance: Share,
}

impl Load {
    /// The work that takes this share of a processor, done in every period.
    pub fn work(&self, period: Span) -> Service {
        let share = u64::from(self.share.ppm);
        Service::from_nanos(period.as_nanos() * share / 1_000_000)
    }

    /// What a share is beside it, in parts per million: within the tolerance they are equal.
    pub fn beside(&self, share_ppm: u64) -> Ordering {
        let wanted = u64::from(self.share.ppm);
        match share_ppm.abs_diff(wanted) <= u64::from(self.tolerance.ppm) {
            true => Ordering::Equal,
            false => share_ppm.cmp(&wanted),
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ± {}", self.share, self.tolerance)
    }
}

/// The tolerance of a load that names none: 0.7 %, as of the study's 14.7 %.
const DEFAULT_TOLERANCE: Share = Share { ppm: 7_000 };

/// A load: `14.7 %`, `14.7 % ± 0.7`, `14.7 % +- 0.7 %`. The tolerance, named or not, is below a load above zero.
pub fn load(text: &str) -> Result<Load, UnitError> {
    let parts = text.split_once('±').or_else(|| text.split_once("+-"));
    let result = match parts {
        None => Load {
            share: share(text)?,
            tolerance: DEFAULT_TOLERANCE,
        },
        Some((main, tolerance)) => {
            let tolerance = tolerance.trim().trim_end_matches('%');
            Load {
                share: share(main)?,
                tolerance: share(&format!("{tolerance} %"))?,
            }
        }
    };
    // That a load is more than zero is for the reader to say, as with durations.
    if result.share.ppm > 0 && result.tolerance >= result.share {
        return Err(UnitError::new(
            format!("the tolerance of `{}` is as large as the load", text.trim()),
            "write a tolerance below the share, such as \"14.7 % ± 0.7\"",
        ));
    }
    Ok(result)
}

/// A factor in millionths: `1.05` is 1,050,000.
pub(super) fn factor_ppm(text: &str) -> Result<u64, UnitError> {
    FACTOR.read(text)
}

/// A duration so that [`span`] reads back exactly the same: the largest unit not above it, with all its decimals.
pub fn format_span(span: Span) -> String {
    let nanos = span.as_nanos();
    let unit = TimeUnit::for_largest(nanos);
    format!("{}{}", exact(nanos, unit.size()), unit.ascii())
}

/// `value / unit` with all its decimals; `unit` is a power of ten.
pub(super) fn exact(value: u64, unit: u64) -> String {
    let (whole, rest) = (value / unit, value % unit);
    if rest == 0 {
        return whole.to_string();
    }
    let width = unit.ilog10() as usize;
    let decimals = format!("{rest:0width$}");
    format!("{whole}.{}", decimals.trim_end_matches('0'))
}

#[cfg(test)]
mod tests;
