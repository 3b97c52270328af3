//! The study's tables beside the twin's.

use laxity_model::Span;

use super::quoted_tables::{QuotedTable, Row};
use super::transfers::{Attempt, Place, statistics};
use crate::lab::sheet::{Attempts, Cell, Compared, Origin, Value, Verdict};

/// How a row came out, in the study's three classes (§6.6, figure 17).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    /// Every transfer, at full speed.
    Sufficient,
    /// Some transfers, or slow ones.
    Marginal,
    /// None.
    Insufficient,
}

impl Class {
    /// Slower than this, in percent of the table's INT row, is not full speed.
    const FULL_SPEED_PERCENT: u64 = 110;

    pub(super) fn of(attempts: &Attempts, undisturbed: Span) -> Self {
        let Some(times) = attempts.times else {
            return Self::Insufficient;
        };
        let fast = times.mean.as_nanos() * 100 <= undisturbed.as_nanos() * Self::FULL_SPEED_PERCENT;
        if attempts.succeeded == attempts.made && fast {
            Self::Sufficient
        } else {
            Self::Marginal
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Sufficient => "at full speed",
            Self::Marginal => "slow or not always",
            Self::Insufficient => "never",
        }
    }
}

/// Row by row.
pub(super) fn compare(quoted: &QuotedTable, by_row: &[&[Attempt]]) -> Vec<Compared> {
    let mean = |attempts: &Attempts| attempts.times.map_or(Span::ZERO, |times| times.mean);
    let undisturbed = quoted.rows.iter().zip(by_row);
    let mut undisturbed = undisturbed.filter(|(row, _)| row.place == Place::Interrupt);
    let (paper_int, twin_int) = undisturbed
        .next()
        .map_or((FASTEST, FASTEST), |(row, seen)| {
            (mean(&row.attempts()), mean(&statistics(seen)))
        });
    let rows = quoted.rows.iter().zip(by_row).map(|(row, seen)| {
        let (paper, twin) = (row.attempts(), statistics(seen));
        let classes = (Class::of(&paper, paper_int), Class::of(&twin, twin_int));
        let origin = if row.calibrated {
            Origin::Calibrated
        } else {
            Origin::Simulated
        };
        let cell = |value, origin| {
            Some(Cell {
                value: Value::Attempts(value),
                origin,
            })
        };
        Compared {
            quantity: row.place.name(),
            paper: cell(paper, Origin::Quoted),
            twin: cell(twin, origin),
            predicted: None,
            live: None,
            verdict: verdict(row, classes, mean(&paper), mean(&twin)),
        }
    });
    rows.collect()
}

/// The INT row of table 2, for table 3, which has none.
const FASTEST: Span = Span::from_millis(36_367);

fn verdict(row: &Row, (paper, twin): (Class, Class), quoted: Span, seen: Span) -> Verdict {
    if paper != twin {
        let words = format!("the study: {}; the twin: {}", paper.name(), twin.name());
        return match row.calibrated {
            true => Verdict::Disagrees(format!("{words}, although a constant was chosen by it")),
            false => Verdict::Disagrees(words),
        };
    }
    let words = match paper {
        Class::Insufficient => "both never".to_owned(),
        Class::Sufficient if within(quoted, seen, 105) => {
            "both at full speed, means within 5 %".to_owned()
        }
        Class::Marginal if within(quoted, seen, 200) => {
            "both slow or not always, means within a factor of 2".to_owned()
        }
        _ => return Verdict::Disagrees(format!("both {}, but the means differ", paper.name())),
    };
    match row.calibrated {
        true => Verdict::Consistent(format!("{words}; a constant was chosen by this row")),
        false => Verdict::Agrees(words),
    }
}

/// Whether neither is more than so many percent of the other.
fn within(a: Span, b: Span, percent: u64) -> bool {
    let (a, b) = (a.as_nanos(), b.as_nanos());
    a * 100 <= b * percent && b * 100 <= a * percent
}

/// Why rows differ.
pub(super) fn remarks(quoted: &QuotedTable) -> Vec<String> {
    let words: &[&str] = match quoted.key {
        "table-1" => &[
            "THR 8 without a spinner took 60 s in the study, and 37 s in table 2: something else of normal priority ran on that machine, \
             which the twin does not have.",
            "1/8 and 2/16 live on what they get beside their reservation. The twin's spinner has a quantum of 120 ms (calibrated to figure 7), \
             longer than the lead lasts; with a shorter one 1/8 works, as the table of quanta shows. The study does not say what quantum its host had.",
            "What the study's network added, 0.86 s, is more than any delay of 200,000 bytes on a switched network explains. The twin's adds milliseconds, and \
             the faster upstream makes up for them.",
        ],
        "table-2" => &[
            "2/16 connects now and then in the study. In the twin its gap of 14 ticks, 13.67 ms, spoils a block in thirteen, and no training ends well.",
        ],
        _ => &[
            "3/16, 4/17 and 7/20 have the same gap, 13 ticks, 12.70 ms: 0.20 ms longer than the lead. In the study 3/16 is slow and the other two never work. \
             The twin shows why: 16 ticks are 15.625 ms, and 12 of them are 15 blocks to the nanosecond. So the card's interrupts keep \
             their places in the period of 3/16, and only the drift of two crystals brings one of them into the 0.20 ms that are too late, \
             for some seconds of each minute. Periods of 17 and 20 ticks meet them all the time.",
            "1/7 and 2/14 have the same share, 14.29 %, less than the study's own 14.72 %. They work if a call costs no more than 12.5 ms / 7 = 1.786 ms: \
             see the table of costs. \
             Charged with the study's 1.84 ms, which is elapsed time on a kernel that logs, both fail in the twin. At 1.779 ms their load is just their share; \
             the gap of 1/7 leaves 6.6 ms of the lead to even out what cannot be avoided, that of 2/14 0.8 ms, so 1/7 works and 2/14 retrains.",
        ],
    };
    words.iter().map(|text| (*text).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::modem::quoted_tables;

    #[test]
    fn the_studys_own_rows_fall_into_the_classes_it_names() {
        let table = quoted_tables::table_3();
        let class = |index: usize| {
            let row: &Row = &table.rows[index];
            (row.place.name(), Class::of(&row.attempts(), FASTEST))
        };
        assert_eq!(class(0), ("RES 1/7".into(), Class::Sufficient));
        assert_eq!(class(1), ("RES 1/8".into(), Class::Insufficient));
        assert_eq!(class(3), ("RES 2/14".into(), Class::Marginal));
        assert_eq!(class(6), ("RES 3/16".into(), Class::Marginal));
        let marginal = (0..12).filter(|index| class(*index).1 == Class::Marginal);
        assert_eq!(marginal.count(), 2);
    }
}
