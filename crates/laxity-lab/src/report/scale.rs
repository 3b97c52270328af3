//! Where values stand on an axis, and which of them are written beside it.

use super::value;
use super::{Axis, Unit};
use crate::layout::{TimeUnit, decimal};

/// An axis with a range, drawn between two places.
pub(super) struct Scale {
    unit: Unit,
    logarithmic: bool,
    low: f64,
    high: f64,
    /// Where the low end is drawn, and the high one.
    from: f64,
    to: f64,
}

impl Scale {
    /// The scale of an axis: its own range, else one that has room for `values`. `about` so many ticks are wanted. Bars and areas need
    /// `zero` in it.
    pub(super) fn new(
        axis: &Axis,
        values: &[i64],
        zero: bool,
        about: usize,
        (from, to): (f64, f64),
    ) -> Self {
        let mut low = values.iter().min().copied().unwrap_or(0);
        let mut high = values.iter().max().copied().unwrap_or(1);
        let given = axis.range.map(|(a, b)| (a.min(b), a.max(b)));
        if let Some(range) = given {
            (low, high) = range;
        }
        let (low, high) = if axis.logarithmic {
            let positive = values.iter().copied().filter(|value| *value > 0);
            let least = positive.min().unwrap_or(1);
            // Histograms are compared down to a single event.
            let counts = zero && given.is_none() && axis.unit == Unit::Count;
            let (low, least) = if counts { (1, 1) } else { (low, least) };
            logarithmic_range(low, high, least, given.is_some(), zero)
        } else {
            if zero || (given.is_none() && low > 0 && low <= high / 3) {
                (low, high) = (low.min(0), high.max(0));
            }
            if given.is_none() && zero {
                // What stands on zero ends below a tick.
                let step = step(low, high, about);
                high = high.saturating_add((step - high.rem_euclid(step)) % step);
            }
            let (low, high) = (low as f64, high as f64);
            // One value has no range, nor have two that are too large to be told apart.
            let room = 1.0 + low.abs() * 1e-6;
            (low, if high > low { high } else { low + room })
        };
        Self {
            unit: axis.unit,
            logarithmic: axis.logarithmic,
            low,
            high,
            from,
            to,
        }
    }

    /// Where a value stands; beyond the ends if it is beyond the range. What has no logarithm stands at the low end.
    pub(super) fn at(&self, value: i64) -> f64 {
        let value = value as f64;
        let part = if self.logarithmic {
            let value = if value > 0.0 { value } else { self.low };
            libm::log10(value / self.low) / libm::log10(self.high / self.low)
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + (self.to - self.from) * part
    }

    /// Whether a value is in the range; what has no logarithm is drawn on the edge.
    pub(super) fn holds(&self, value: i64) -> bool {
        let value = value as f64;
        value <= self.high && (value >= self.low || (self.logarithmic && value <= 0.0))
    }

    /// Where zero is drawn, or the low end if zero is not there: what bars stand on.
    pub(super) fn floor(&self) -> f64 {
        if self.logarithmic || self.low > 0.0 {
            self.from
        } else {
            self.at(0)
        }
    }

    /// Ticks: where, and what is written there.
    pub(super) fn ticks(&self, about: usize) -> Vec<(f64, String)> {
        let values = if self.logarithmic {
            self.powers(about)
        } else {
            let (low, high) = (libm::ceil(self.low) as i64, libm::floor(self.high) as i64);
            let step = step(low, high, about);
            let first = low.saturating_add((step - low.rem_euclid(step)) % step);
            let all = std::iter::successors(Some(first), |tick| tick.checked_add(step));
            all.take_while(|tick| *tick <= high).collect()
        };
        let text = |value: i64| {
            if self.logarithmic {
                alone(self.unit, value)
            } else {
                self.in_unit(value)
            }
        };
        let ticks = values.into_iter();
        ticks.map(|value| (self.at(value), text(value))).collect()
    }

    /// The unit that is written beside the axis' name; none where ticks have their own.
    pub(super) fn unit_name(&self) -> &'static str {
        match self.unit {
            Unit::Nanoseconds if !self.logarithmic => self.time_unit().name(),
            Unit::PartsPerMillion if !self.logarithmic => "%",
            _ => "",
        }
    }

    fn time_unit(&self) -> TimeUnit {
        TimeUnit::for_largest(self.low.abs().max(self.high.abs()) as u64)
    }

    fn in_unit(&self, value: i64) -> String {
        let sign = if value < 0 { "−" } else { "" };
        let size = value.unsigned_abs();
        let text = match self.unit {
            Unit::Nanoseconds => decimal(size, self.time_unit().size(), 9),
            Unit::PartsPerMillion => decimal(size, 10_000, 4),
            Unit::Count => value::count(size),
        };
        format!("{sign}{text}")
    }

    /// Powers of ten, every second or third where they are many, with 2 and 5 times them where they are few.
    fn powers(&self, about: usize) -> Vec<i64> {
        let is_in = |value: &i64| (self.low..=self.high).contains(&(*value as f64));
        let powers: Vec<i64> = (0..19).map(|exponent| 10_i64.pow(exponent)).collect();
        let there: Vec<i64> = powers.iter().copied().filter(is_in).collect();
        if there.len() * 3 <= about {
            let between = powers.iter().flat_map(|power| {
                let multiple = |n: i64| power.checked_mul(n);
                [Some(*power), multiple(2), multiple(5)]
            });
            return between.flatten().filter(is_in).collect();
        }
        let every = there.len().div_ceil(about.max(1)).max(1);
        there.into_iter().step_by(every).collect()
    }
}

/// A value with its unit.
pub(super) fn alone(unit: Unit, value: i64) -> String {
    let size = value.unsigned_abs();
    let text = match unit {
        Unit::Nanoseconds => value::nanos(size),
        Unit::PartsPerMillion => value::share(size),
        Unit::Count => value::count(size),
    };
    if value < 0 {
        format!("−{text}")
    } else {
        text
    }
}

/// Room for all that is positive; what stands on the low end needs height even where it is one.
fn logarithmic_range(low: i64, high: i64, least: i64, is_given: bool, stands: bool) -> (f64, f64) {
    let high = high.max(1) as f64;
    let low = if low > 0 { low } else { least } as f64;
    let low = if stands && !is_given { low * 0.5 } else { low };
    // A point at the edge would look like a zero.
    let (low, high) = if is_given {
        (low, high)
    } else {
        (low / 1.25, high * 1.25)
    };
    if high > low {
        (low, high)
    } else {
        (low / 2.0, low * 2.0)
    }
}

/// The next larger of 1, 2 and 5 times a power of ten that divides the range into at most `about` parts; at least 1.
pub(super) fn step(low: i64, high: i64, about: usize) -> i64 {
    let parts = about.max(1) as i128;
    let wanted = (i128::from(high) - i128::from(low) + parts - 1) / parts;
    let powers = (0..18).map(|exponent| 10_i64.pow(exponent));
    let mut steps = powers.flat_map(|power| [power, 2 * power, 5 * power]);
    let found = steps.find(|step| i128::from(*step) >= wanted);
    found.unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn axis(unit: Unit, logarithmic: bool) -> Axis {
        Axis {
            label: String::new(),
            unit,
            logarithmic,
            range: None,
        }
    }

    fn texts(scale: &Scale, about: usize) -> Vec<String> {
        scale
            .ticks(about)
            .into_iter()
            .map(|(_, text)| text)
            .collect()
    }

    #[test]
    fn ticks_are_round_and_in_one_unit() {
        let scale = |values: &[i64], unit, logarithmic, zero| {
            Scale::new(&axis(unit, logarithmic), values, zero, 6, (0.0, 100.0))
        };
        let gaps = scale(&[0, 5_313_000], Unit::Nanoseconds, false, false);
        assert_eq!(texts(&gaps, 6), ["0", "1", "2", "3", "4", "5"]);
        assert_eq!(gaps.unit_name(), "ms");
        let rate = scale(&[147_000], Unit::PartsPerMillion, false, true);
        assert_eq!(texts(&rate, 6), ["0", "5", "10", "15"]);
        let counts = scale(&[1, 30_000], Unit::Count, true, true);
        assert_eq!(
            texts(&counts, 6),
            ["1", "10", "100", "1000", "10\u{202f}000"]
        );
        let crowd = scale(&[4_000, 30_000], Unit::Count, true, true);
        assert_eq!(texts(&crowd, 6), texts(&counts, 6));
        let late = scale(&[900, 2_500_000], Unit::Nanoseconds, true, false);
        assert_eq!(texts(&late, 6), ["1 µs", "10 µs", "100 µs", "1 ms"]);
        let signed = scale(&[-40, 60], Unit::Count, false, false);
        assert_eq!(texts(&signed, 6), ["−40", "−20", "0", "20", "40", "60"]);
    }

    #[test]
    fn zeros_of_a_logarithmic_axis_stand_on_its_edge_and_one_above_it() {
        let scale = Scale::new(&axis(Unit::Count, true), &[0, 1, 99], true, 5, (100.0, 0.0));
        assert_eq!(scale.at(0), 100.0);
        assert!(scale.holds(0) && scale.at(1) < 95.0);
    }

    proptest! {
        #[test]
        fn every_value_is_in_its_own_range_and_ticks_are_few(
            values in prop::collection::vec(any::<i64>(), 1..9),
            small in prop::collection::vec(-30_i64..30, 1..9),
            logarithmic: bool,
            zero: bool,
            about in 2_usize..9,
        ) {
            for values in [values, small] {
                let scale = Scale::new(&axis(Unit::Count, logarithmic), &values, zero, about, (10.0, 90.0));
                for value in &values {
                    let place = scale.at(*value);
                    prop_assert!(logarithmic || scale.holds(*value));
                    prop_assert!(place > 9.999 && place < 90.001, "{value} at {place}");
                }
                let ticks = scale.ticks(about);
                prop_assert!(ticks.len() <= about + 2, "{ticks:?}");
                prop_assert!(ticks.iter().all(|(place, _)| *place > 9.999 && *place < 90.001));
            }
        }
    }
}
