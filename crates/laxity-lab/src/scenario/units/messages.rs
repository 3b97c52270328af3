//! How fast messages come, as people write it: `30/s`, `29.97/s`, `3 every 100ms`.

use laxity_model::Span;
use laxity_model::channels::fit::Rate;

use super::{Decimal, UnitError, exact, span};
use crate::scenario::reader::shortened;

/// A second, in nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// So many messages a second, or in each time of this length: `30/s`, `29.97/s`, `3 every 100ms`. Of more than zero; the amount is of 32 bits.
pub fn messages(text: &str) -> Result<Rate, UnitError> {
    let remedy =
        "write how many in how long a time, such as \"30/s\", \"29.97/s\" or \"3 every 100ms\"";
    let text = text.trim();
    let wrong = || {
        UnitError::new(
            format!("`{}` is no rate of messages", shortened(text)),
            remedy,
        )
    };
    let (amount, period) = match (text.split_once('/'), text.split_once(" every ")) {
        (Some((amount, unit)), _) if unit.trim() == "s" => {
            let amount = Decimal::parse(amount.trim()).ok_or_else(wrong)?;
            let amount = amount.map_err(|_| wrong())?;
            // No more decimals than nanoseconds have, so that the period is no longer than they count.
            let parts = 10_u64
                .checked_pow(amount.decimals)
                .filter(|parts| *parts <= SECOND);
            let parts = parts.ok_or_else(wrong)?;
            let amount = u64::try_from(amount.mantissa).map_err(|_| wrong())?;
            (amount, Span::from_nanos(parts * SECOND))
        }
        (_, Some((amount, every))) => {
            let amount = amount.trim().parse().map_err(|_| wrong())?;
            let every = span(every).map_err(|UnitError { cause, remedy }| {
                let cause = format!("`{}` is no rate of messages: {cause}", shortened(text));
                UnitError::new(cause, remedy)
            })?;
            (amount, every)
        }
        _ => return Err(wrong()),
    };
    let rate = Rate::new(amount, period).filter(|_| (1..=u64::from(u32::MAX)).contains(&amount));
    rate.ok_or_else(|| {
        let cause = format!("`{}` is out of range", shortened(text));
        UnitError::new(
            cause,
            "write more than zero, of no more than nine digits, in a time of more than zero",
        )
    })
}

/// Messages a second, rounded up to five digits at least, or to nine decimals: [`messages`] reads back what is no less than the rate.
pub fn format_messages(rate: Rate) -> String {
    let scaled = |decimals: u32| {
        let parts = u128::from(SECOND) * 10_u128.pow(decimals);
        let nanos = u128::from(rate.period().as_nanos());
        // More than 64 bits no rate has that can be told of a recording.
        u64::try_from((u128::from(rate.amount()) * parts).div_ceil(nanos)).unwrap_or(u64::MAX)
    };
    let decimals = (0..9).find(|decimals| scaled(*decimals) >= 10_000);
    let decimals = decimals.unwrap_or(9);
    format!("{}/s", exact(scaled(decimals), 10_u64.pow(decimals)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(amount: u64, period: u64) -> Rate {
        Rate::new(amount, Span::from_nanos(period)).unwrap()
    }

    #[test]
    fn a_rate_of_messages_is_read_as_it_is_written() {
        for (text, amount, period) in [
            ("30/s", 30, SECOND),
            (" 29.97 / s ", 2_997, 100 * SECOND),
            ("0.5/s", 5, 10 * SECOND),
            ("3 every 100ms", 3, SECOND / 10),
        ] {
            assert_eq!(messages(text), Ok(rate(amount, period)), "{text}");
        }
        for wrong in [
            "",
            "30",
            "30/",
            "30/ms",
            "x/s",
            "-1/s",
            "0/s",
            "1e3/s",
            "0.0000000001/s",
            "5000000000/s",
            "3 every",
            "3 every 0ms",
            "3 every 100",
            "0 every 1s",
            "3.5 every 1s",
            "3 messages every 1s",
            "99999999999999999999999999999999/s",
        ] {
            assert!(messages(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_rate_is_written_no_lower_and_by_no_more_than_a_part_in_ten_thousand_higher() {
        for (amount, period, text) in [
            (30, SECOND, "30/s"),
            (1, 33_366_701, "29.97/s"),
            (1, 33_333_333, "30.001/s"),
            (1, 1_001_000, "999.01/s"),
            (123_456_789, SECOND, "123456789/s"),
            (1, 3_600 * SECOND, "0.00027778/s"),
            (0, 1, "0/s"),
        ] {
            let rate = rate(amount, period);
            let written = format_messages(rate);
            assert_eq!(written, text, "{amount} {period}");
            if let Ok(read) = messages(&written) {
                assert!(read >= rate, "{text}");
                let above = Rate::new(amount * 10_001, Span::from_nanos(period * 10_000));
                assert!(read <= above.unwrap(), "{text}");
            }
        }
    }
}
