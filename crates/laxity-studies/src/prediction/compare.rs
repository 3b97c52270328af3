//! Predicted beside measured.

use laxity_lab::report::{Compared, Origin, Value, Verdict};
use laxity_model::Span;

use super::seen::Account;

/// A median agrees within so many thousandths.
const MEDIAN: u64 = 100;
/// A 99th percentile agrees within so many.
const TAIL: u64 = 250;
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

/// A number of both, how it is shown, and how it is judged.
#[derive(Clone, Copy)]
struct Measure {
    quantity: &'static str,
    of: fn(&Account) -> Option<u64>,
    value: fn(u64) -> Value,
    kind: Kind,
    /// In thousandths.
    within: u64,
    /// So little does not matter, and what it is called. Of what is not counted one by one nothing is too little to matter.
    slack: (u64, &'static str),
}

impl Measure {
    const fn new(quantity: &'static str, of: fn(&Account) -> Option<u64>) -> Self {
        Self {
            quantity,
            of,
            value: |nanos| Span::from_nanos(nanos).into(),
            kind: Kind::Usual,
            within: MEDIAN,
            slack: (0, ""),
        }
    }

    const fn tail(self) -> Self {
        Self {
            kind: Kind::Tail,
            within: TAIL,
            ..self
        }
    }

    fn counted(self, slack: u64, called: &'static str) -> Self {
        Self {
            value: Value::Count,
            slack: (slack, called),
            ..self
        }
    }

    const fn put_in(self, is_put_in: bool) -> Self {
        let kind = if is_put_in { Kind::PutIn } else { self.kind };
        Self { kind, ..self }
    }

    /// Of samples.
    fn samples(self) -> Self {
        self.counted(2, "2 samples")
    }

    /// Of switches.
    fn rate(self) -> Self {
        self.counted(1, "1 a second")
    }
}

/// All rows of one program.
pub(super) fn rows(predicted: &Account, live: Option<&Account>, put_in: PutIn) -> Vec<Row> {
    let response = put_in.calls && put_in.unhindered;
    let new = Measure::new;
    let share = Measure {
        value: Value::share,
        ..new("modem's share of the processor", Account::modem_ppm)
    };
    let preemptions = "preemptions a second of processor time";
    let measures = [
        new("callback's gap, median", |a| a.gaps.percentile(P50)),
        new("callback's gap, p99", |a| a.gaps.percentile(P99)).tail(),
        new("modem's response time, median", |a| {
            a.responses.percentile(P50)
        })
        .put_in(response),
        new("modem's response time, p99", |a| {
            a.responses.percentile(P99)
        })
        .tail()
        .put_in(response),
        new("samples pending, median", |a| a.pending.percentile(P50)).samples(),
        new("samples pending, p99", |a| a.pending.percentile(P99))
            .tail()
            .samples(),
        share.put_in(put_in.calls),
        new("switches a second, driver", Account::driver_switches).rate(),
        new("switches a second, callback", Account::callback_switches).rate(),
        new(preemptions, Account::preemptions).rate(),
    ];
    let rows = measures.into_iter();
    rows.filter_map(|measure| {
        let of = measure.of;
        row(of(predicted), live.map(of), measure)
    })
    .collect()
}

/// One row; `None` if neither has it. `live` is `None` if nothing was measured, and `Some(None)` if this was not seen.
fn row(predicted: Option<u64>, live: Option<Option<u64>>, measure: Measure) -> Option<Row> {
    let seen = live.flatten();
    predicted.or(seen)?;
    let (verdict, outcome) = match live {
        Some(live) => {
            let (verdict, outcome) = judge(predicted, live, measure);
            (verdict, Some(outcome))
        }
        None => (Verdict::Alone, None),
    };
    Some(Row {
        compared: Compared {
            predicted: predicted.and_then(|number| Origin::Predicted.cell((measure.value)(number))),
            live: seen.and_then(|number| Origin::Measured.cell((measure.value)(number))),
            verdict,
            ..Compared::new(measure.quantity)
        },
        outcome,
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

    fn samples() -> Measure {
        Measure::new("calls", |_| None).samples()
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
            let (verdict, so) = judge(Some(predicted), Some(live), samples());
            assert_eq!(so, outcome, "{predicted} of {live}: {verdict:?}");
        }
        let few = judge(Some(3), Some(1), samples()).0;
        assert_eq!(few, Verdict::Agrees("within 2 samples".into()));
    }

    #[test]
    fn what_one_of_both_lacks_disagrees() {
        for (predicted, live) in [(Some(200), None), (None, Some(200))] {
            let row = row(predicted, Some(live), samples()).expect("one has it");
            assert_eq!(row.outcome, Some(Outcome::Off));
            assert!(matches!(row.compared.verdict, Verdict::Disagrees(_)));
        }
        // Nothing was measured at all: nothing to compare with.
        let alone = row(Some(200), None, samples()).expect("one has it");
        assert_eq!(
            (alone.outcome, alone.compared.verdict),
            (None, Verdict::Alone)
        );
        assert!(row(None, Some(None), samples()).is_none());
    }

    #[test]
    fn what_was_put_in_agrees_with_nothing() {
        let put_in = samples().put_in(true);
        let (verdict, outcome) = judge(Some(100), Some(100), put_in);
        assert_eq!(outcome, Outcome::Within);
        assert!(matches!(verdict, Verdict::Consistent(_)));
    }
}
