//! What the paper prints of tables 3 and 4, and what a number beside it says.

use laxity_lab::bench::Holes;
use laxity_lab::report::{Value, Verdict};
use laxity_model::Span;
use serde::Deserialize;

use super::TEXT;
use super::intervals::{Intervals, square};
use super::segment::FRAME_PERIOD;
use super::trial::Way;

/// A row of the paper's tables 3 and 4.
#[derive(Deserialize)]
pub(super) struct Quoted {
    pub(super) way: String,
    pub(super) streams: u64,
    pub(super) variance: u64,
    pub(super) longest_ms: u64,
    pub(super) shortest_ms: u64,
}

/// A number of a row.
pub(super) struct Number {
    /// What it is: by this it is named in the study's words.
    pub(super) what: &'static str,
    /// As printed.
    pub(super) paper: u64,
    /// As seen.
    pub(super) of: fn(&Intervals) -> Option<u64>,
    /// How it is written.
    pub(super) value: fn(u64) -> Value,
}

fn apart(span: Span) -> u64 {
    span.as_nanos().abs_diff(FRAME_PERIOD.as_nanos())
}

impl Quoted {
    /// All rows.
    pub(super) fn all() -> Vec<Self> {
        TEXT.quoted("tables")
    }

    /// The variance, and how far the longest and the shortest interval are from the period.
    pub(super) fn numbers(&self) -> [Number; 3] {
        let ms = |ms: u64| apart(Span::from_millis(ms));
        let span: fn(u64) -> Value = |nanos| Span::from_nanos(nanos).into();
        [
            Number {
                what: "variance",
                paper: self.variance * 1_000,
                of: Intervals::variance,
                value: |one| square(one).into(),
            },
            Number {
                what: "longest",
                paper: ms(self.longest_ms),
                of: |intervals| intervals.longest().map(apart),
                value: span,
            },
            Number {
                what: "shortest",
                paper: ms(self.shortest_ms),
                of: |intervals| intervals.shortest().map(apart),
                value: span,
            },
        ]
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
    /// What it says that this was seen. Where a constant `is_chosen` by it that shows only that nothing is broken.
    pub(super) fn verdict(&self, seen: Option<u64>, is_chosen: bool) -> Verdict {
        let paper = self.paper;
        let is_near = seen.map(|seen| seen <= 2 * paper && paper <= 2 * seen);
        let why = TEXT.say(if is_chosen { "chosen" } else { "factor" }, &[]);
        match is_near {
            None => Verdict::Inconclusive(TEXT.say("nothing-shown", &[])),
            Some(false) => Verdict::Disagrees(why),
            Some(true) if is_chosen => Verdict::Consistent(why),
            Some(true) => Verdict::Agrees(why),
        }
    }
}
