//! The study's tables beside the twin's.

use laxity_model::Span;

use super::calibration::took_part;
use super::quoted_tables::{self, QuotedTable, Row};
use super::transfers::{Attempt, Place, statistics};
use laxity_lab::report::{Attempts, Cell, Check, Compared, Origin, Value, Verdict};

/// How a row came out, in the study's three classes (§6.6, figure 17). What is full speed is our criterion.
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

/// A table, row by row: the study's attempts and the twin's, each in a class.
pub(super) struct Judged<'a> {
    rows: Vec<(&'a Row, Attempts, Attempts, [Class; 2])>,
}

/// Puts each row into its class. `undisturbed`: what the twin's INT makes of the same file.
pub(super) fn judge<'a>(
    quoted: &'a QuotedTable,
    by_row: &[&[Attempt]],
    undisturbed: &[Attempt],
) -> Judged<'a> {
    let mean = |attempts: &Attempts| attempts.times.map_or(Span::ZERO, |times| times.mean);
    let twin_int = mean(&statistics(undisturbed));
    let paper_int = mean(&quoted_int(quoted));
    let rows = quoted.rows.iter().zip(by_row).map(|(row, seen)| {
        let (paper, twin) = (row.attempts(), statistics(seen));
        let classes = [Class::of(&paper, paper_int), Class::of(&twin, twin_int)];
        (row, paper, twin, classes)
    });
    Judged {
        rows: rows.collect(),
    }
}

/// The study's INT row; table 3 has none, but was made as table 2.
fn quoted_int(quoted: &QuotedTable) -> Attempts {
    let of = |table: &QuotedTable| {
        let int = table.rows.iter().find(|row| row.place == Place::Interrupt);
        int.map(Row::attempts)
    };
    let int = of(quoted).or_else(|| of(&quoted_tables::table_2()));
    int.unwrap_or(Attempts {
        made: 0,
        succeeded: 0,
        times: None,
    })
}

impl Judged<'_> {
    /// As the report shows them.
    pub(super) fn compared(&self) -> Vec<Compared> {
        let rows = self.rows.iter().map(|(row, paper, twin, classes)| {
            let name = row.place.name();
            let origin = match took_part(&name) {
                true => Origin::Calibrated,
                false => Origin::Simulated,
            };
            let cell = |value, origin| {
                Some(Cell {
                    value: Value::Attempts(value),
                    origin,
                })
            };
            Compared {
                paper: cell(*paper, Origin::Quoted),
                twin: cell(*twin, origin),
                predicted: None,
                live: None,
                verdict: verdict(took_part(&name), *classes, paper, twin),
                quantity: name,
            }
        });
        rows.collect()
    }

    /// What is claimed: of the rows that no constant was chosen by, what is at full speed in the study is so in the twin, and what never gets through
    /// never does. Nothing is claimed of what is slow.
    pub(super) fn check(&self, table: &str) -> Check {
        let clear = self.rows.iter().filter(|(row, _, _, [paper, _])| {
            *paper != Class::Marginal && !took_part(&row.place.name())
        });
        let (mut right, mut wrong) = (0_u32, Vec::new());
        for (row, _, _, [paper, twin]) in clear {
            if paper == twin {
                right += 1;
            } else {
                wrong.push(format!("{} {}", row.place.name(), twin.name()));
            }
        }
        let seen = match wrong.is_empty() {
            true => format!("all {right} rows"),
            false => wrong.join(", "),
        };
        Check {
            claim: format!(
                "twin, {table}: what is at full speed in the study is so, and what never gets through never does; rows that a constant was chosen by left out"
            ),
            held: wrong.is_empty() && right > 0,
            seen,
        }
    }
}

fn verdict(
    calibrated: bool,
    [paper, twin]: [Class; 2],
    quoted: &Attempts,
    seen: &Attempts,
) -> Verdict {
    if paper != twin {
        let words = format!("the study: {}; the twin: {}", paper.name(), twin.name());
        return match calibrated {
            true => Verdict::Disagrees(format!("{words}, although a constant was chosen by it")),
            false => Verdict::Disagrees(words),
        };
    }
    let near = |percent| match (quoted.times, seen.times) {
        (Some(quoted), Some(seen)) => within(quoted.mean, seen.mean, percent),
        _ => false,
    };
    let words = match paper {
        Class::Insufficient => "both never",
        Class::Sufficient if near(105) => {
            "both at full speed; that the means are within 5 % follows from the line's rate, which is put in"
        }
        Class::Marginal if near(200) => {
            "both slow or not always, means within a factor of 2 (our criterion)"
        }
        _ => return Verdict::Disagrees(format!("both {}, but the means differ", paper.name())),
    };
    match calibrated {
        true => Verdict::Consistent(format!(
            "{words}; a constant was chosen by this reservation"
        )),
        false => Verdict::Agrees(words.into()),
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
            "The study's INT row is shown as printed: its shortest time lies above its longest and above its mean. It is not clear which of them is \
             misprinted; only the mean is compared.",
            "THR 8 without a spinner took 60 s in the study, and 37 s in table 2: something else of normal priority ran on that machine, \
             which the twin does not have.",
            "1/8 and 2/16 live on what they get beside their reservation. The twin's spinner has a quantum of 120 ms (calibrated to figure 7), \
             longer than the lead lasts; with a shorter one 1/8 works, as the table of quanta shows. The study does not say what quantum its host had.",
            "What the study's network added, 0.86 s, is more than any delay of 200,000 bytes on a switched network explains. The twin's adds milliseconds, and \
             the faster upstream makes up for them.",
        ],
        "table-2" => &[
            "2/16 connects now and then in the study. In the twin its gap of 14 ticks, 13.67 ms, spoils a block in thirteen, and no training ends well.",
            "1/8 never gets through with the twin's quantum, which was chosen by figure 7; with a shorter one it does, as the table of quanta shows.",
        ],
        _ => &[
            "Six of the twelve rows took part in choosing constants: 1/7, 2/13, 2/14, 3/16, 4/17, 7/20. The output lead was taken from the study's line of \
             gaps in figure 17, which the study drew through these same rows; so that 2/15, 3/15, 3/17, 4/16 and 8/20 fall on its right sides shows that one lead \
             suffices, not where it lies.",
            "3/16, 4/17 and 7/20 have the same gap, 13 ticks, 12.70 ms: 0.20 ms longer than the lead. In the study 3/16 is slow and the other two never work. \
             The twin shows why: 16 ticks are 15.625 ms, and 12 of them are 15 blocks to the nanosecond. So the card's interrupts keep \
             their places in the period of 3/16, and only the drift of two crystals brings one of them into the 0.20 ms that are too late, \
             for some seconds of each minute. Periods of 17 and 20 ticks meet them all the time.",
            "1/7 and 2/14 have the same share, 14.29 %, less than the study's own 14.72 %. They work if a call costs no more than 12.5 ms / 7 = 1.786 ms. \
             Charged with the study's 1.84 ms, which is elapsed time on a kernel that logs, both fail in the twin. At 1.778 ms, chosen so, their load is just their share; \
             the gap of 1/7 leaves 6.6 ms of the lead to even out what cannot be avoided, that of 2/14 0.8 ms, so 1/7 works and 2/14 retrains. For 2/14 that is \
             a knife's edge: see the table of costs.",
        ],
    };
    words.iter().map(|text| (*text).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(took: &[Option<u64>]) -> Vec<Attempt> {
        let attempt = |seconds: &Option<u64>| Attempt {
            took: seconds.map(Span::from_secs),
            ..Attempt::default()
        };
        took.iter().map(attempt).collect()
    }

    #[test]
    fn the_claim_fails_with_a_row_that_no_constant_was_chosen_by_and_with_no_other() {
        let table = quoted_tables::table_3();
        let int = after(&[Some(37)]);
        let check = |wrong: &str| {
            let seen: Vec<Vec<Attempt>> = table
                .rows
                .iter()
                .map(|row| {
                    let served = row.attempts().succeeded == 10;
                    after(&[(served != (row.place.name() == wrong)).then_some(37)])
                })
                .collect();
            let by_row: Vec<&[Attempt]> = seen.iter().map(Vec::as_slice).collect();
            judge(&table, &by_row, &int).check("table 3")
        };
        assert!(check("").held, "{:?}", check(""));
        assert!(check("RES 2/13").held);
        assert!(!check("RES 4/16").held);
        assert!(!check("RES 2/15").held);
    }

    #[test]
    fn a_row_that_a_constant_was_chosen_by_never_agrees() {
        for table in [quoted_tables::table_1(), quoted_tables::table_3()] {
            // The twin that does just what the study prints.
            let seen: Vec<Vec<Attempt>> = table
                .rows
                .iter()
                .map(|row| {
                    let printed = row.attempts();
                    let mean = printed.times.map(|times| times.mean);
                    let attempt = |n| Attempt {
                        took: mean.filter(|_| n < printed.succeeded),
                        ..Attempt::default()
                    };
                    (0..printed.made).map(attempt).collect()
                })
                .collect();
            let by_row: Vec<&[Attempt]> = seen.iter().map(Vec::as_slice).collect();
            for row in judge(&table, &by_row, &after(&[Some(37)])).compared() {
                let agrees = matches!(row.verdict, Verdict::Agrees(_));
                assert_eq!(agrees, !took_part(&row.quantity), "{row:?}");
            }
        }
    }

    #[test]
    fn the_studys_own_rows_fall_into_the_classes_it_names() {
        let table = quoted_tables::table_3();
        let int = quoted_int(&table).times.unwrap().mean;
        assert_eq!(int, Span::from_millis(36_367), "that of table 2");
        let class = |index: usize| {
            let row: &Row = &table.rows[index];
            (row.place.name(), Class::of(&row.attempts(), int))
        };
        assert_eq!(class(0), ("RES 1/7".into(), Class::Sufficient));
        assert_eq!(class(1), ("RES 1/8".into(), Class::Insufficient));
        assert_eq!(class(3), ("RES 2/14".into(), Class::Marginal));
        assert_eq!(class(6), ("RES 3/16".into(), Class::Marginal));
        let marginal = (0..12).filter(|index| class(*index).1 == Class::Marginal);
        assert_eq!(marginal.count(), 2);
    }
}
