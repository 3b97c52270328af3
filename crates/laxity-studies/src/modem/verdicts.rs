//! How each row of the study's tables came out in the study, and in the twin.

use laxity_lab::report::{Attempts, Compared, Origin, Value, Verdict};
use laxity_model::Span;

use super::calibration::took_part;
use super::tables::{QuotedTable, Row, full_speed};
use super::transfers::{Attempt, statistics};

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

/// A row: the study's attempts and the twin's, each in a class.
pub(super) struct Judged<'a> {
    row: &'a Row,
    paper: Attempts,
    twin: Attempts,
    classes: [Class; 2],
}

/// Puts each row into its class. `undisturbed`: what the twin's INT makes of the same file.
pub(super) fn judge<'a>(
    quoted: &'a QuotedTable,
    by_row: &[&[Attempt]],
    undisturbed: &[Attempt],
) -> Vec<Judged<'a>> {
    let int = statistics(undisturbed).times;
    let int = int.map_or(Span::ZERO, |times| times.mean);
    let rows = quoted.rows.iter().zip(by_row).map(|(row, seen)| {
        let (paper, twin) = (row.attempts(), statistics(seen));
        Judged {
            row,
            paper,
            twin,
            classes: [Class::of(&paper, full_speed(quoted)), Class::of(&twin, int)],
        }
    });
    rows.collect()
}

impl Judged<'_> {
    fn took_part(&self) -> bool {
        took_part(self.row.place.name())
    }

    /// As the report shows it.
    pub(super) fn compared(&self) -> Compared {
        let origin = match self.took_part() {
            true => Origin::Calibrated,
            false => Origin::Simulated,
        };
        Compared {
            paper: Origin::Quoted.cell(Value::Attempts(self.paper)),
            twin: origin.cell(Value::Attempts(self.twin)),
            verdict: verdict(self.took_part(), self.classes, &self.paper, &self.twin),
            ..Compared::new(self.row.place.name())
        }
    }
}

/// What is claimed: of the rows that no constant was chosen by, what is at full speed in the study is so in the twin, and what never gets through
/// never does. Nothing is claimed of what is slow.
pub(super) fn agreement(judged: &[Judged<'_>]) -> (bool, String) {
    let clear = judged
        .iter()
        .filter(|row| row.classes[0] != Class::Marginal && !row.took_part());
    let (right, wrong): (Vec<_>, Vec<_>) = clear.partition(|row| row.classes[0] == row.classes[1]);
    let told = |row: &&Judged<'_>| format!("{} {}", row.row.place.name(), row.classes[1].name());
    let seen = match wrong.is_empty() {
        true => format!("all {} rows", right.len()),
        false => wrong.iter().map(told).collect::<Vec<_>>().join(", "),
    };
    (wrong.is_empty() && !right.is_empty(), seen)
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

#[cfg(test)]
mod tests {
    use super::super::tables::{TABLES, table_3};
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
        let table = table_3();
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
            agreement(&judge(table, &by_row, &int)).0
        };
        assert!(check(""));
        assert!(check("RES 2/13"));
        assert!(!check("RES 4/16"));
        assert!(!check("RES 2/15"));
    }

    #[test]
    fn a_row_that_a_constant_was_chosen_by_never_agrees() {
        for table in [&TABLES[0], &TABLES[2]] {
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
            for row in judge(table, &by_row, &after(&[Some(37)])) {
                let row = row.compared();
                let agrees = matches!(row.verdict, Verdict::Agrees(_));
                assert_eq!(agrees, !took_part(&row.quantity), "{row:?}");
            }
        }
    }

    #[test]
    fn the_studys_own_rows_fall_into_the_classes_it_names() {
        let table = table_3();
        let int = full_speed(table);
        let class = |index: usize| {
            let row: &Row = &table.rows[index];
            (row.place.name(), Class::of(&row.attempts(), int))
        };
        assert_eq!(class(0), ("RES 1/7", Class::Sufficient));
        assert_eq!(class(1), ("RES 1/8", Class::Insufficient));
        assert_eq!(class(3), ("RES 2/14", Class::Marginal));
        assert_eq!(class(6), ("RES 3/16", Class::Marginal));
        let marginal = (0..12).filter(|index| class(*index).1 == Class::Marginal);
        assert_eq!(marginal.count(), 2);
    }
}
