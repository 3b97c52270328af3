//! What the paper prints of tables 3 and 4, and what a number beside it says.

use laxity_lab::bench::Holes;
use laxity_lab::report::{Cell, Origin, Value, Verdict, fixed};
use laxity_model::Span;
use serde::Deserialize;

use super::TEXT;
use super::intervals::{Intervals, square};
use super::segment::FRAME_PERIOD;
use super::trial::Way;
use crate::spread::Spread;

/// A row of the paper's tables 3 and 4.
#[derive(Deserialize)]
pub(super) struct Quoted {
    pub(super) way: String,
    pub(super) streams: u64,
    pub(super) variance: u64,
    pub(super) longest_ms: u64,
    pub(super) shortest_ms: u64,
    /// So many times less the variance is than with one queue, in tenths: the last row of table 4.
    #[serde(default)]
    pub(super) improvement_tenths: Option<u64>,
}

/// A number of a row.
pub(super) struct Number {
    /// What it is: by this it is named in the study's words.
    pub(super) what: &'static str,
    /// As printed.
    pub(super) paper: u64,
    /// As seen in a run, beside which the same was run with one queue.
    pub(super) of: fn(&Intervals, &Intervals) -> Option<u64>,
    /// How it is written.
    pub(super) value: fn(u64) -> Value,
    /// And in words.
    pub(super) word: fn(u64) -> String,
    /// Where it shows only that nothing is broken: why, by its key in the study's words.
    chosen: Option<&'static str>,
}

fn apart(span: Span) -> u64 {
    span.as_nanos().abs_diff(FRAME_PERIOD.as_nanos())
}

impl Quoted {
    /// All rows.
    pub(super) fn all() -> Vec<Self> {
        TEXT.quoted("tables")
    }

    /// The variance, how far the longest and the shortest interval are from the period, and the improvement. With TCP (`tcp`) other constants were chosen by other numbers.
    pub(super) fn numbers(&self, tcp: bool) -> Vec<Number> {
        let ms = |ms: u64| apart(Span::from_millis(ms));
        let number = |what, paper, of| Number {
            what,
            paper,
            of,
            value: |nanos| Span::from_nanos(nanos).into(),
            word: |nanos| Span::from_nanos(nanos).to_string(),
            chosen: self.chosen(what, tcp),
        };
        let variance = Number {
            value: |one| square(one).into(),
            word: square,
            ..number("variance", self.variance * 1_000, |own, _| own.variance())
        };
        let longest = number("longest", ms(self.longest_ms), |own, _| {
            own.longest().map(apart)
        });
        let shortest = number("shortest", ms(self.shortest_ms), |own, _| {
            own.shortest().map(apart)
        });
        let improvement = self.improvement_tenths.map(|tenths| Number {
            value: Value::Ratio,
            word: |thousandths| format!("× {}", fixed(thousandths, 1_000, 1)),
            ..number("improvement", tenths * 100, |own, late| {
                (late.variance()? * 1_000).checked_div(own.variance()?)
            })
        });
        let all = [variance, longest, shortest].into_iter();
        all.chain(improvement).collect()
    }

    /// What constants were chosen by: the variance beside none and one, and, without TCP, the longest interval beside one. Beside none nothing is seen but what the sender was given.
    fn chosen(&self, what: &str, tcp: bool) -> Option<&'static str> {
        let is_late = self.way == Way::Late.key();
        match (self.streams, what) {
            (0, "variance") if is_late => Some("chosen"),
            (0, _) => Some("follows"),
            (1, "variance") if is_late => Some("chosen"),
            (1, "longest") if is_late && !tcp => Some("chosen"),
            _ => None,
        }
    }

    /// What a number of this row is called.
    pub(super) fn name(&self, number: &Number) -> String {
        let way = TEXT.say(&self.way, &[]);
        let holes: Holes<'_> = &[("way", &way), ("streams", &self.streams)];
        TEXT.say(&format!("compared-{}", number.what), holes)
    }

    /// Whether it is of this way beside so many streams.
    pub(super) fn is_of(&self, way: Way, streams: u64) -> bool {
        self.way == way.key() && self.streams == streams
    }
}

impl Number {
    /// What it says that this was seen in each of some runs: their median has to be near, of which it is told in how many it was.
    pub(super) fn verdict(&self, seen: &[Option<u64>]) -> Verdict {
        let Some(spread) = Spread::of(seen.iter().copied()) else {
            return Verdict::Inconclusive(TEXT.say("nothing-shown", &[]));
        };
        let paper = self.paper;
        let is_near = |seen: u64| seen <= 2 * paper && paper <= 2 * seen;
        let mut why = TEXT.say(self.chosen.unwrap_or("factor"), &[]);
        if seen.len() > 1 {
            let near = seen.iter().flatten().filter(|seen| is_near(**seen));
            let holes: Holes<'_> = &[
                ("why", &why),
                ("near", &near.count()),
                ("runs", &seen.len()),
            ];
            why = TEXT.say("median", holes);
        }
        match is_near(spread.median) {
            false => Verdict::Disagrees(why),
            true if self.chosen.is_some() => Verdict::Consistent(why),
            true => Verdict::Agrees(why),
        }
    }

    /// What was seen in some runs: of several the median, and between what they lie.
    pub(super) fn cell(&self, origin: Origin, seen: &[Option<u64>]) -> Option<Cell> {
        let spread = Spread::of(seen.iter().copied())?;
        match spread.least == spread.most {
            true => origin.cell((self.value)(spread.median)),
            false => origin.cell(spread.words(self.word)),
        }
    }
}
