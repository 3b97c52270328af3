//! Predicted beside measured.

use laxity_model::Span;
use laxity_model::histogram::Histogram;

use super::seen::Account;
use crate::lab::sheet::{Cell, Compared, Origin, Value, Verdict};

/// A median agrees within so many thousandths.
const MEDIAN: u64 = 100;
/// A 99th percentile agrees within so many.
const TAIL: u64 = 250;
/// Samples are counted one by one, and one or two are the place of an interrupt among them.
const SAMPLES: u64 = 2;
const P99: u32 = 990_000;
const P50: u32 = 500_000;

/// A quantity of which both have a distribution: its name, where it is found, how it is shown, and what is too little to matter.
type Distribution = (
    &'static str,
    fn(&Account) -> &Histogram,
    fn(u64) -> Value,
    u64,
);

/// A row, and whether it agrees; `None` if there was nothing to compare with.
pub(super) struct Row {
    pub(super) compared: Compared,
    pub(super) agrees: Option<bool>,
    pub(super) tail: bool,
}

/// All rows of one program.
pub(super) fn rows(predicted: &Account, live: Option<&Account>) -> Vec<Row> {
    let mut rows = Vec::new();
    let histograms: [Distribution; 3] = [
        ("callback's gap", |account| &account.gaps, span, 0),
        (
            "modem's response time",
            |account| &account.responses,
            span,
            0,
        ),
        (
            "samples pending",
            |account| &account.pending,
            Value::Count,
            SAMPLES,
        ),
    ];
    for (name, of, value, slack) in histograms {
        for (statistic, ppm, within) in [("median", P50, MEDIAN), ("p99", P99, TAIL)] {
            let at = |account: &Account| of(account).percentile(ppm);
            let quantity = format!("{name}, {statistic}");
            let numbers = (at(predicted), live.and_then(at));
            rows.extend(row(quantity, numbers, value, (within, slack), ppm == P99));
        }
    }
    let share = |account: &Account| account.modem_ppm().map(u64::from);
    let value = |ppm| Value::Share(ppm as u32);
    let numbers = (share(predicted), live.and_then(share));
    let quantity = "modem's share of the processor".to_owned();
    rows.extend(row(quantity, numbers, value, (MEDIAN, 0), false));
    let measured = live.map(Account::switches);
    for (index, (name, count)) in predicted.switches().into_iter().enumerate() {
        let numbers = (count, measured.and_then(|counts| counts[index].1));
        rows.extend(row(
            name.to_owned(),
            numbers,
            Value::Count,
            (MEDIAN, 1),
            false,
        ));
    }
    rows
}

fn span(nanos: u64) -> Value {
    Value::Span(Span::from_nanos(nanos))
}

/// One row; `None` if neither has it.
fn row(
    quantity: String,
    (predicted, live): (Option<u64>, Option<u64>),
    value: fn(u64) -> Value,
    (within, slack): (u64, u64),
    tail: bool,
) -> Option<Row> {
    let cell = |number: Option<u64>, origin| {
        number.map(|number| Cell {
            value: value(number),
            origin,
        })
    };
    predicted.or(live)?;
    let (verdict, agrees) = match (predicted, live) {
        (Some(predicted), Some(live)) => {
            let (verdict, agrees) = judge(predicted, live, within, slack);
            (verdict, Some(agrees))
        }
        _ => (Verdict::Alone, None),
    };
    Some(Row {
        compared: Compared {
            quantity,
            paper: None,
            twin: None,
            predicted: cell(predicted, Origin::Predicted),
            live: cell(live, Origin::Measured),
            verdict,
        },
        agrees,
        tail,
    })
}

fn judge(predicted: u64, live: u64, within: u64, slack: u64) -> (Verdict, bool) {
    let apart = predicted.abs_diff(live);
    let percent = within / 10;
    if apart <= slack || u128::from(apart) * 1_000 <= u128::from(live) * u128::from(within) {
        return (Verdict::Agrees(format!("within {percent} %")), true);
    }
    let direction = if predicted > live { "more" } else { "less" };
    let off = (u128::from(apart) * 100).checked_div(u128::from(live));
    let off = off.map_or_else(|| "much".to_owned(), |off| format!("{off} %"));
    let text = format!("predicted {off} {direction}; {percent} % aimed at");
    (Verdict::Disagrees(text), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agreement_is_relative_to_what_was_measured() {
        for (predicted, live, agrees) in [
            (1_090, 1_000, true),
            (1_110, 1_000, false),
            (905, 1_000, true),
            (890, 1_000, false),
            (3, 1, true),
            (4, 1, false),
            (5, 0, false),
        ] {
            let (verdict, so) = judge(predicted, live, MEDIAN, SAMPLES);
            assert_eq!(so, agrees, "{predicted} of {live}: {verdict:?}");
        }
    }
}
