//! Predicted beside measured.

use laxity_model::Span;
use laxity_model::base::histogram::Histogram;

use super::seen::Account;
use laxity_lab::report::{Cell, Compared, Origin, Value, Verdict};

/// A median agrees within so many thousandths.
const MEDIAN: u64 = 100;
/// A 99th percentile agrees within so many.
const TAIL: u64 = 250;
/// Of what is not counted one by one nothing is too little to matter.
const NONE: (u64, &str) = (0, "");
const P99: u32 = 990_000;
const P50: u32 = 500_000;

/// How a row came out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// Predicted as closely as is aimed at.
    Within,
    /// Not so closely, but what is apart is one or two of what is counted.
    Few,
    /// Not so, or only one of both has it.
    Off,
}

/// What kind of number a row compares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A median, a share or a rate.
    Usual,
    /// A 99th percentile.
    Tail,
    /// It follows from what a call was measured to take, which the twin was told.
    PutIn,
}

/// What the twin was told of what it is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PutIn {
    /// What a call takes was measured: so much for the modem's share.
    pub(super) calls: bool,
    /// And nothing but interrupts keeps a call from running through: so much for its response.
    pub(super) unhindered: bool,
}

/// A row, and how it came out; `None` if there was nothing to compare with.
pub(super) struct Row {
    pub(super) compared: Compared,
    pub(super) outcome: Option<Outcome>,
    pub(super) kind: Kind,
}

/// How two numbers of a row are shown and judged.
#[derive(Clone, Copy)]
struct Measure {
    value: fn(u64) -> Value,
    kind: Kind,
    /// In thousandths.
    within: u64,
    /// So little does not matter, and what it is called.
    slack: (u64, &'static str),
}

const SPAN: Measure = Measure {
    value: span,
    kind: Kind::Usual,
    within: MEDIAN,
    slack: NONE,
};
const SAMPLES: Measure = Measure {
    value: Value::Count,
    slack: (2, "2 samples"),
    ..SPAN
};

/// All rows of one program.
pub(super) fn rows(predicted: &Account, live: Option<&Account>, put_in: PutIn) -> Vec<Row> {
    let mut rows = distributions(predicted, live, put_in);
    let measured = live.map(Account::modem_ppm);
    let share = Measure {
        value: |ppm| Value::Share(u32::try_from(ppm).unwrap_or(u32::MAX)),
        kind: if put_in.calls {
            Kind::PutIn
        } else {
            Kind::Usual
        },
        within: MEDIAN,
        slack: NONE,
    };
    let quantity = "modem's share of the processor";
    rows.extend(row(quantity.into(), predicted.modem_ppm(), measured, share));
    let rate = Measure {
        value: Value::Count,
        kind: Kind::Usual,
        within: MEDIAN,
        slack: (1, "1 a second"),
    };
    let measured = live.map(Account::switches);
    for (index, (name, count)) in predicted.switches().into_iter().enumerate() {
        let measured = measured.map(|counts| counts[index].1);
        rows.extend(row(name.to_owned(), count, measured, rate));
    }
    rows
}

/// A quantity of which both have a distribution: its name, where it is found, and how its median is judged.
type Distribution = (&'static str, fn(&Account) -> &Histogram, Measure);

/// Median and 99th percentile of what is a distribution.
fn distributions(predicted: &Account, live: Option<&Account>, put_in: PutIn) -> Vec<Row> {
    let response = if put_in.calls && put_in.unhindered {
        Kind::PutIn
    } else {
        Kind::Usual
    };
    let response = Measure {
        kind: response,
        ..SPAN
    };
    let histograms: [Distribution; 3] = [
        ("callback's gap", |a| &a.gaps, SPAN),
        ("modem's response time", |a| &a.responses, response),
        ("samples pending", |a| &a.pending, SAMPLES),
    ];
    let mut rows = Vec::new();
    for (name, of, median) in histograms {
        let tail = Measure {
            kind: match median.kind {
                Kind::PutIn => Kind::PutIn,
                Kind::Usual | Kind::Tail => Kind::Tail,
            },
            within: TAIL,
            ..median
        };
        for (statistic, ppm, measure) in [("median", P50, median), ("p99", P99, tail)] {
            let at = |account: &Account| of(account).percentile(ppm);
            let quantity = format!("{name}, {statistic}");
            rows.extend(row(quantity, at(predicted), live.map(at), measure));
        }
    }
    rows
}

fn span(nanos: u64) -> Value {
    Value::Span(Span::from_nanos(nanos))
}

/// One row; `None` if neither has it. `live` is `None` if nothing was measured, and `Some(None)` if this was not seen.
fn row(
    quantity: String,
    predicted: Option<u64>,
    live: Option<Option<u64>>,
    measure: Measure,
) -> Option<Row> {
    let cell = |number: Option<u64>, origin| {
        number.map(|number| Cell {
            value: (measure.value)(number),
            origin,
        })
    };
    let seen = live.flatten();
    predicted.or(seen)?;
    let judged = live.map(|live| judge(predicted, live, measure));
    Some(Row {
        compared: Compared {
            quantity,
            paper: None,
            twin: None,
            predicted: cell(predicted, Origin::Predicted),
            live: cell(seen, Origin::Measured),
            verdict: judged
                .as_ref()
                .map_or(Verdict::Alone, |(verdict, _)| verdict.clone()),
        },
        outcome: judged.map(|(_, outcome)| outcome),
        kind: measure.kind,
    })
}

fn judge(predicted: Option<u64>, live: Option<u64>, measure: Measure) -> (Verdict, Outcome) {
    let (predicted, live) = match (predicted, live) {
        (Some(predicted), Some(live)) => (predicted, live),
        (Some(_), None) => return off("predicted, but not seen".into()),
        _ => return off("seen, but not predicted".into()),
    };
    let apart = predicted.abs_diff(live);
    let percent = measure.within / 10;
    let (slack, called) = measure.slack;
    let (outcome, words) =
        if u128::from(apart) * 1_000 <= u128::from(live) * u128::from(measure.within) {
            (Outcome::Within, format!("within {percent} %"))
        } else if apart <= slack {
            (Outcome::Few, format!("within {called}"))
        } else {
            let direction = if predicted > live { "more" } else { "less" };
            let off_by = (u128::from(apart) * 100).checked_div(u128::from(live));
            let off_by = off_by.map_or_else(|| "much".to_owned(), |off| format!("{off} %"));
            return off(format!(
                "predicted {off_by} {direction}; {percent} % aimed at"
            ));
        };
    let verdict = match measure.kind {
        Kind::PutIn => Verdict::Consistent(format!("{words}; what a call takes was measured")),
        Kind::Usual | Kind::Tail => Verdict::Agrees(words),
    };
    (verdict, outcome)
}

fn off(words: String) -> (Verdict, Outcome) {
    (Verdict::Disagrees(words), Outcome::Off)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agreement_is_relative_to_what_was_measured() {
        use Outcome::{Few, Off, Within};
        for (predicted, live, outcome) in [
            (1_090, 1_000, Within),
            (1_110, 1_000, Off),
            (905, 1_000, Within),
            (890, 1_000, Off),
            (3, 1, Few),
            (4, 1, Off),
            (5, 0, Off),
            (0, 0, Within),
        ] {
            let (verdict, so) = judge(Some(predicted), Some(live), SAMPLES);
            assert_eq!(so, outcome, "{predicted} of {live}: {verdict:?}");
        }
        let few = judge(Some(3), Some(1), SAMPLES).0;
        assert_eq!(few, Verdict::Agrees("within 2 samples".into()));
    }

    #[test]
    fn what_one_of_both_lacks_disagrees() {
        for (predicted, live) in [(Some(200), None), (None, Some(200))] {
            let row = row("calls".into(), predicted, Some(live), SAMPLES).expect("one has it");
            assert_eq!(row.outcome, Some(Outcome::Off));
            assert!(matches!(row.compared.verdict, Verdict::Disagrees(_)));
        }
        // Nothing was measured at all: nothing to compare with.
        let alone = row("calls".into(), Some(200), None, SAMPLES).expect("one has it");
        assert_eq!(
            (alone.outcome, alone.compared.verdict),
            (None, Verdict::Alone)
        );
        assert!(row("calls".into(), None, Some(None), SAMPLES).is_none());
    }

    #[test]
    fn what_was_put_in_agrees_with_nothing() {
        let put_in = Measure {
            kind: Kind::PutIn,
            ..SAMPLES
        };
        let (verdict, outcome) = judge(Some(100), Some(100), put_in);
        assert_eq!(outcome, Outcome::Within);
        assert!(matches!(verdict, Verdict::Consistent(_)));
    }
}
