//! Numbers for people: three digits that matter, and a unit.

use laxity_model::verify::contract::Expectation;

use crate::evidence::subjects::Transfer;

/// How a transfer ended: seconds, `dead` for a line that was given up, `slow` for one whose time was over, `-` where there was none.
pub(super) fn transfer(transfer: &Transfer) -> String {
    match (transfer.duration_ns, &transfer.failure) {
        (Some(duration), _) if transfer.completed => format!("{:.2}", duration as f64 / 1e9),
        (_, Some(failure)) if failure.starts_with("NO ") || failure.starts_with("BUSY") => {
            "dead".into()
        }
        (_, Some(_)) => "slow".into(),
        _ => "-".into(),
    }
}

/// What a scenario expects, as it writes it.
pub(super) const fn expectation(expected: Expectation) -> &'static str {
    match expected {
        Expectation::Met => "met",
        Expectation::Violated => "violated",
        Expectation::Inconclusive => "inconclusive",
        Expectation::Any => "any",
    }
}

/// A time: `1.84 ms`.
pub(super) fn nanos(nanos: u64) -> String {
    let (unit, name) = match nanos {
        0..1_000 => return format!("{nanos} ns"),
        1_000..1_000_000 => (1e3, "µs"),
        1_000_000..1_000_000_000 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{} {name}", three_digits(nanos as f64 / unit))
}

/// A time in milliseconds without its unit: `1.840`.
pub(super) fn millis(nanos: u64) -> String {
    format!("{:.3}", nanos as f64 / 1e6)
}

/// A value in the unit that a histogram names.
pub(super) fn value(value: u64, unit: &str) -> String {
    match unit {
        "ns" => nanos(value),
        unit => format!("{value} {unit}"),
    }
}

fn three_digits(value: f64) -> String {
    let decimals = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// A ratio given in millionths: `1.02`.
pub(super) fn ratio(ppm: u64) -> String {
    format!("{:.2}", ppm as f64 / 1e6)
}

/// A part of a whole: `14.7 %`.
pub(super) fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// A count with thin groups of three: `1 234 567`.
pub(super) fn count(count: u64) -> String {
    let digits = count.to_string();
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

    #[test]
    fn three_digits_matter() {
        let texts = [999, 1_840, 12_500_000, 313_100_000, 36_400_000_000].map(nanos);
        assert_eq!(texts, ["999 ns", "1.84 µs", "12.5 ms", "313 ms", "36.4 s"]);
        assert_eq!(nanos(9_999_999), "10.0 ms");
        assert_eq!(
            (ratio(1_049_999), percent(0.147)),
            ("1.05".into(), "14.7 %".into())
        );
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
    }
}
