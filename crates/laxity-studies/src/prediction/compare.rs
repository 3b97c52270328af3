//! Predicted beside measured.

use laxity_lab::report::{Cell, Compared, Origin, Value, Verdict};
use laxity_model::Span;
use serde::Deserialize;

use super::TEXT;
use super::seen::{Account, Of};

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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    /// A median, a share or a rate.
    Usual,
    /// A 99th percentile.
    Tail,
    /// It follows from what a call was measured to take, or from the callback's period, which the twin was told.
    PutIn,
}

/// A row, and how it came out; `None` if there was nothing to compare with.
pub(super) struct Row {
    pub(super) compared: Compared,
    pub(super) outcome: Option<Outcome>,
    pub(super) kind: Kind,
    /// Why it is not judged, where there would be something to judge.
    pub(super) doubt: Option<String>,
}

/// How a row is read and judged.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Measure {
    quantity: String,
    of: Of,
    /// Of a distribution: which percentile, in parts per million.
    #[serde(default)]
    ppm: u32,
    kind: Kind,
    /// In thousandths.
    within: u64,
    /// So little does not matter, and what it is called. Of what is not counted one by one nothing is too little to matter.
    #[serde(default)]
    slack: (u64, String),
    /// What the callback's period makes of it where nothing keeps the callback waiting.
    period: Option<u64>,
}

impl Measure {
    /// Whether what the twin says is no more than the period that it was told, to a hundredth.
    fn is_period(&self, predicted: Option<u64>) -> bool {
        let both = self.period.zip(predicted);
        both.is_some_and(|(period, said)| period.abs_diff(said) * 100 <= period)
    }

    fn cell(&self, origin: Origin, number: Option<u64>) -> Option<Cell> {
        let value: Value = match self.of {
            Of::Gaps | Of::Responses | Of::Calls => Span::from_nanos(number?).into(),
            Of::Share => Value::share(number?),
            Of::Pending | Of::Driver | Of::Callback | Of::Preemptions => number?.into(),
        };
        origin.cell(value)
    }
}

/// All rows of one program, which are not judged where there is a doubt of what was seen. `put_in` is what the twin was told of what it is asked.
pub(super) fn rows(
    predicted: &Account,
    (live, doubt): (Option<&Account>, Option<&str>),
    put_in: &[Of],
) -> Vec<Row> {
    let measures: Vec<Measure> = TEXT.quoted("rows");
    let rows = measures.into_iter().filter_map(|mut measure| {
        if put_in.contains(&measure.of) {
            measure.kind = Kind::PutIn;
        }
        let number = |account: &Account| account.number(measure.of, measure.ppm);
        let tells = |account: &Account| account.tells(measure.of);
        let is_judged = tells(predicted) && live.is_some_and(tells);
        let values = (number(predicted), live.and_then(number));
        if measure.is_period(values.0) {
            measure.kind = Kind::PutIn;
        }
        let mut row = row(values, is_judged, &measure)?;
        if let (Some(why), Some(_)) = (doubt, row.outcome) {
            row.outcome = None;
            row.compared.verdict = Verdict::Inconclusive(why.into());
            row.doubt = Some(why.into());
        }
        Some(row)
    });
    rows.collect()
}

/// One row; `None` if neither has it. Where there is nothing to judge it has no verdict.
fn row(
    (predicted, seen): (Option<u64>, Option<u64>),
    is_judged: bool,
    measure: &Measure,
) -> Option<Row> {
    predicted.or(seen)?;
    let judged = is_judged.then(|| judge(predicted, seen, measure));
    let (verdict, outcome) = judged.unzip();
    Some(Row {
        compared: Compared {
            predicted: measure.cell(Origin::Predicted, predicted),
            live: measure.cell(Origin::Measured, seen),
            verdict: verdict.unwrap_or(Verdict::Alone),
            ..Compared::new(&measure.quantity)
        },
        outcome,
        kind: measure.kind,
        doubt: None,
    })
}

fn judge(predicted: Option<u64>, live: Option<u64>, measure: &Measure) -> (Verdict, Outcome) {
    let (predicted, live) = match (predicted, live) {
        (Some(predicted), Some(live)) => (predicted, live),
        (Some(_), None) => return off("predicted, but not seen".into()),
        _ => return off("seen, but not predicted".into()),
    };
    let apart = predicted.abs_diff(live);
    let percent = measure.within / 10;
    let (slack, called) = &measure.slack;
    let (outcome, words) =
        if u128::from(apart) * 1_000 <= u128::from(live) * u128::from(measure.within) {
            (Outcome::Within, format!("within {percent} %"))
        } else if apart <= *slack {
            (Outcome::Few, format!("within {called}"))
        } else {
            let direction = if predicted > live { "more" } else { "less" };
            let off_by = (live > 0).then(|| (u128::from(apart) * 100).div_ceil(u128::from(live)));
            let off_by = off_by.map_or_else(|| "much".to_owned(), |off| format!("{off} %"));
            return off(format!(
                "predicted {off_by} {direction}; {percent} % aimed at"
            ));
        };
    let verdict = match measure.kind {
        Kind::PutIn if measure.period.is_some() => {
            Verdict::Consistent(format!("{words}; the period is put in"))
        }
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
    use laxity_model::Service;

    fn samples() -> Measure {
        let mut rows = TEXT.quoted::<Vec<Measure>>("rows").into_iter();
        let samples = rows.find(|row| row.quantity == "samples pending, median");
        samples.expect("it is compared")
    }

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
            let (verdict, so) = judge(Some(predicted), Some(live), &samples());
            assert_eq!(so, outcome, "{predicted} of {live}: {verdict:?}");
        }
        let few = judge(Some(3), Some(1), &samples()).0;
        assert_eq!(few, Verdict::Agrees("within 2 samples".into()));
    }

    #[test]
    fn what_one_of_both_lacks_disagrees() {
        for (predicted, live) in [(Some(200), None), (None, Some(200))] {
            let row = row((predicted, live), true, &samples()).expect("one has it");
            assert_eq!(row.outcome, Some(Outcome::Off));
            assert!(matches!(row.compared.verdict, Verdict::Disagrees(_)));
        }
        // Nothing was measured at all: nothing to compare with.
        let alone = row((Some(200), None), false, &samples()).expect("one has it");
        assert_eq!(
            (alone.outcome, alone.compared.verdict),
            (None, Verdict::Alone)
        );
        assert!(row((None, None), true, &samples()).is_none());
    }

    /// In the twin the callback takes no time, and beside nobody it loses none: live it takes some, and there is no rate to compare with.
    #[test]
    fn nothing_is_said_of_who_takes_no_time() {
        let live = Account::of_usage(Service::from_millis(20), 0);
        let [row] = &rows(&Account::default(), (Some(&live), None), &[])[..] else {
            panic!("one row");
        };
        assert_eq!(
            (row.outcome, &row.compared.verdict),
            (None, &Verdict::Alone)
        );
        assert!(row.compared.live.is_some() && row.compared.predicted.is_none());
        let busy = Account::of_usage(Service::from_millis(20), 3);
        let [row] = &rows(&busy, (Some(&live), None), &[])[..] else {
            panic!("one row");
        };
        assert_eq!(row.outcome, Some(Outcome::Off));
        let [row] = &rows(&busy, (Some(&live), Some("noise")), &[])[..] else {
            panic!("one row");
        };
        assert_eq!(row.outcome, None);
        assert_eq!(row.compared.verdict, Verdict::Inconclusive("noise".into()));
    }

    /// A gap of 1.004 ms is the millisecond that the callback asked for, in any twin; one of 2.9 ms is not.
    #[test]
    fn a_period_that_comes_out_again_is_not_predicted() {
        let measures = TEXT.quoted::<Vec<Measure>>("rows").into_iter();
        let of_period: Vec<Measure> = measures.filter(|of| of.period.is_some()).collect();
        let [gap, switches] = &of_period[..] else {
            panic!("the callback's gap and switches: {of_period:?}");
        };
        assert_eq!((gap.of, gap.ppm), (Of::Gaps, 500_000));
        assert_eq!(switches.of, Of::Callback);
        assert!(gap.is_period(Some(1_004_000)) && !gap.is_period(Some(1_011_000)));
        assert!(switches.is_period(Some(1_000)) && !switches.is_period(Some(921)));
        assert!(!gap.is_period(None) && !samples().is_period(Some(1_000)));
        let mut predicted = Account::default();
        for (number, kind) in [(1_000, Kind::PutIn), (921, Kind::Usual)] {
            predicted.set_callback(number);
            let rows = rows(&predicted, (Some(&predicted), None), &[]);
            let kinds: Vec<Kind> = rows.iter().map(|row| row.kind).collect();
            assert_eq!(kinds, [kind], "{number}");
            let verdict = &rows[0].compared.verdict;
            let is_consistent = matches!(verdict, Verdict::Consistent(_));
            assert_eq!(is_consistent, kind == Kind::PutIn, "{verdict:?}");
        }
    }

    #[test]
    fn what_was_put_in_agrees_with_nothing() {
        let put_in = Measure {
            kind: Kind::PutIn,
            ..samples()
        };
        let (verdict, outcome) = judge(Some(100), Some(100), &put_in);
        assert_eq!(outcome, Outcome::Within);
        assert!(matches!(verdict, Verdict::Consistent(_)));
    }
}
