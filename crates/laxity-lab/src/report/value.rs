//! Values as people read them: four digits that matter, and a unit. Integers only, so every machine writes the same.

use laxity_model::Span;

use super::{Attempts, Origin, Times, Value, Verdict};
use crate::layout::{TimeUnit, decimal, fixed, trimmed};

impl Origin {
    /// The letter that marks it in a table; its name, as JSON has it; and what it means.
    const fn described(self) -> (char, &'static str, &'static str) {
        match self {
            Self::Charged => ('C', "charged", "the twin was told"),
            Self::Simulated => ('S', "simulated", "came out of the twin"),
            Self::Measured => ('M', "measured", "on this machine"),
            Self::Calibrated => (
                'K',
                "calibrated",
                "chosen so that something else agrees, or assumed",
            ),
            Self::Predicted => (
                'P',
                "predicted",
                "said by an analysis, or by a twin of this machine that may be told its speed",
            ),
            Self::Quoted => ('Q', "quoted", "from a publication"),
        }
    }

    /// The letter that marks it in a table.
    pub const fn letter(self) -> char {
        self.described().0
    }

    /// Its name, as JSON has it.
    pub const fn name(self) -> &'static str {
        self.described().1
    }

    /// What it means.
    pub const fn meaning(self) -> &'static str {
        self.described().2
    }
}

impl Value {
    /// How much, in the unit that the kind of value says; none for words and attempts.
    pub(super) fn number(&self) -> Option<u64> {
        match self {
            Self::Span(span) => Some(span.as_nanos()),
            Self::Count(number) | Self::Ratio(number) | Self::BitRate(number) => Some(*number),
            Self::Share(ppm) => Some(u64::from(*ppm)),
            Self::Attempts(_) | Self::Text(_) => None,
        }
    }
}

impl Verdict {
    /// Its name, as JSON has it, and the reason given.
    pub fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::Agrees(why) => ("agrees", why),
            Self::Disagrees(why) => ("disagrees", why),
            Self::Consistent(why) => ("consistent", why),
            Self::Inconclusive(why) => ("inconclusive", why),
            Self::Alone => ("alone", ""),
        }
    }
}

/// A value in one line or two; counts in groups of three, parted by narrow spaces.
pub(super) fn lines(value: &Value) -> Vec<String> {
    match value {
        Value::Attempts(attempts) => lines_of_attempts(attempts),
        Value::Span(span) => vec![nanos(span.as_nanos())],
        Value::Count(n) => vec![count(*n)],
        Value::Share(ppm) => vec![share(u64::from(*ppm))],
        Value::Ratio(thousandths) => vec![format!("× {}", decimal(*thousandths, 1_000, 3))],
        Value::BitRate(rate) => vec![bit_rate(*rate)],
        Value::Text(text) => vec![text.clone()],
    }
}

/// The same of a value that comes from there: what a publication prints is shown as it is printed.
pub(super) fn lines_from(origin: Origin, value: &Value) -> Vec<String> {
    match (origin, value) {
        (Origin::Quoted, Value::Span(span)) => vec![printed(span.as_nanos())],
        _ => lines(value),
    }
}

fn lines_of_attempts(attempts: &Attempts) -> Vec<String> {
    let succeeded = format!("{}/{}", attempts.succeeded, attempts.made);
    let Some(times) = &attempts.times else {
        return vec![succeeded];
    };
    let Times {
        min,
        max,
        mean,
        deviation,
    } = times;
    let unit = TimeUnit::for_largest(max.as_nanos());
    let text = |span: &Span| four_digits(span.as_nanos(), unit, max.as_nanos());
    let name = unit.name();
    let first = format!("{} ± {} {name}", text(mean), text(deviation));
    if attempts.succeeded <= 1 {
        return vec![format!("{} {name}", text(mean)), succeeded];
    }
    let second = format!("{}…{} {name}, {succeeded}", text(min), text(max));
    vec![first, second]
}

/// With as many decimals as give the largest of several times four digits; zeros are kept, so that all stand in line.
fn four_digits(ns: u64, unit: TimeUnit, largest_ns: u64) -> String {
    let decimals = match largest_ns / unit.size() {
        _ if unit == TimeUnit::Nano => 0,
        0..10 => 3,
        10..100 => 2,
        100..1_000 => 1,
        _ => 0,
    };
    fixed(ns, unit.size(), decimals)
}

/// A time: `1.978 ms`, `12.5 ms`.
pub(super) fn nanos(ns: u64) -> String {
    let unit = TimeUnit::for_largest(ns);
    let text = four_digits(ns, unit, ns);
    format!("{} {}", trimmed(&text), unit.name())
}

/// The same of what may not be known.
pub(super) fn known_nanos(ns: Option<u64>) -> String {
    ns.map_or_else(|| "unknown".to_owned(), nanos)
}

/// A time that a publication prints, with as many digits as it has there: `13.125 ms`.
fn printed(ns: u64) -> String {
    let unit = TimeUnit::for_largest(ns);
    match unit != TimeUnit::Nano && ns.is_multiple_of(unit.size() / 1_000) {
        true => format!("{} {}", trimmed(&fixed(ns, unit.size(), 3)), unit.name()),
        false => nanos(ns),
    }
}

/// A part of a whole, given in parts per million: `14.29 %`.
pub(super) fn share(ppm: u64) -> String {
    let decimals = if ppm < 10_000 { 4 } else { 2 };
    format!("{} %", decimal(ppm, 10_000, decimals))
}

fn bit_rate(rate: u64) -> String {
    match rate {
        0..10_000 => format!("{rate} bit/s"),
        10_000..10_000_000 => format!("{} kbit/s", decimal(rate, 1_000, 1)),
        _ => format!("{} Mbit/s", decimal(rate, 1_000_000, 1)),
    }
}

/// A count in groups of three: `1 234 567`; four digits stand together.
pub(crate) fn count(count: u64) -> String {
    let digits = count.to_string();
    if digits.len() <= 4 {
        return digits;
    }
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempts(succeeded: u32, times: Option<[u64; 4]>) -> Value {
        let times = times.map(|ms| {
            let [min, max, mean, deviation] = ms.map(Span::from_millis);
            Times {
                min,
                max,
                mean,
                deviation,
            }
        });
        Value::Attempts(Attempts {
            made: 10,
            succeeded,
            times,
        })
    }

    #[test]
    fn four_digits_matter_and_the_rest_is_rounded() {
        for (ns, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_978_000, "1.978 ms"),
            (12_500_000, "12.5 ms"),
            (13_125_499, "13.13 ms"),
            (36_384_000_000, "36.38 s"),
            (999_999_999, "1000 ms"),
            (u64::MAX, "18446744074 s"),
        ] {
            assert_eq!(nanos(ns), text);
        }
        // A study's own digits are not rounded: 13.13 is not what it prints.
        let of = |origin, ns| lines_from(origin, &Value::Span(Span::from_nanos(ns)));
        assert_eq!(of(Origin::Quoted, 13_125_000), ["13.125 ms"]);
        assert_eq!(of(Origin::Quoted, 12_500_000), ["12.5 ms"]);
        assert_eq!(of(Origin::Quoted, 13_125_499), ["13.13 ms"]);
        assert_eq!(of(Origin::Quoted, 310), ["310 ns"]);
        assert_eq!(of(Origin::Simulated, 13_125_000), ["13.13 ms"]);
        assert_eq!(share(147_000), "14.7 %");
        assert_eq!(share(142_857), "14.29 %");
        assert_eq!(share(9), "0.0009 %");
        assert_eq!(lines(&Value::Ratio(1_050)), ["× 1.05"]);
        assert_eq!(lines(&Value::BitRate(50_600)), ["50.6 kbit/s"]);
        assert_eq!(
            (count(9_999), count(30_000)),
            ("9999".into(), "30\u{202f}000".into())
        );
    }

    #[test]
    fn attempts_are_told_as_far_as_there_are_any() {
        let all = attempts(10, Some([36_319, 36_475, 36_384, 56]));
        assert_eq!(lines(&all), ["36.38 ± 0.06 s", "36.32…36.48 s, 10/10"]);
        assert_eq!(lines(&attempts(0, None)), ["0/10"]);
        let one = attempts(1, Some([36_319, 36_319, 36_319, 0]));
        assert_eq!(lines(&one), ["36.32 s", "1/10"]);
    }
}
