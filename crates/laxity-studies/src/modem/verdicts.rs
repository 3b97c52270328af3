//! How each row of the study's tables came out in the study, and in the twin.

use laxity_lab::report::{Attempts, Compared, Origin, Times, Value, Verdict};
use laxity_model::Span;

use super::calibration::DecidedBy;
use super::tables::{QuotedTable, Row, full_speed};
use super::transfers::{Attempt, Place, statistics};

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

    pub(super) const fn name(self) -> &'static str {
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
    pub(super) paper: Attempts,
    pub(super) twin: Attempts,
    classes: [Class; 2],
    /// How long the study's and the twin's take at full speed.
    full_speed: [Span; 2],
    /// Whether it has its reservation and nothing besides.
    confined: bool,
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
        let full_speed = [full_speed(quoted), int];
        Judged {
            row,
            paper,
            twin,
            classes: [
                Class::of(&paper, full_speed[0]),
                Class::of(&twin, full_speed[1]),
            ],
            full_speed,
            confined: quoted.confined,
        }
    });
    rows.collect()
}

impl Judged<'_> {
    /// How far its transfers lie apart, where more than one got through in both, and where what is printed of it can be: of a row whose numbers exclude each
    /// other only the mean is compared.
    pub(super) fn deviation(&self) -> Option<Compared> {
        let several = |attempts: &Attempts| {
            let in_order = |times: &Times| (times.min..=times.max).contains(&times.mean);
            attempts
                .times
                .filter(in_order)
                .filter(|_| attempts.succeeded > 1)
        };
        let [paper, twin] =
            [several(&self.paper)?, several(&self.twin)?].map(|times| times.deviation);
        let quantity = format!("{}, standard deviation", self.row.place.name());
        Some(Compared {
            paper: Origin::Quoted.cell(paper),
            twin: self.origin().cell(twin),
            verdict: near(self.decided(), [paper, twin]),
            ..Compared::new(quantity)
        })
    }

    fn origin(&self) -> Origin {
        match self.is_chosen() {
            true => Origin::Calibrated,
            false => Origin::Simulated,
        }
    }

    fn decided(&self) -> Option<DecidedBy> {
        DecidedBy::of(&self.row.place, self.confined)
    }

    fn is_chosen(&self) -> bool {
        self.decided().is_some_and(DecidedBy::is_chosen)
    }

    /// If it was slow, or got through at times or never in the study, and what was put in, or chosen by it, leaves it open: its name, and how it came out where
    /// it did not come true, in class and, within a factor of two, in by how much it was slower than full speed.
    pub(super) fn degraded(&self) -> Option<(&str, Option<String>)> {
        let is_degraded = self.classes[0] != Class::Sufficient && self.decided().is_none();
        let missed = match self.verdict() {
            Verdict::Disagrees(how) => Some(how),
            _ => None,
        };
        is_degraded.then(|| (self.row.place.name(), missed))
    }

    fn verdict(&self) -> Verdict {
        let [paper, twin] = self.classes;
        let decided = self.decided();
        if paper != twin {
            let words = format!("the study: {}; the twin: {}", paper.name(), twin.name());
            return Verdict::Disagrees(match decided {
                Some(by) => format!("{words}, although {}", by.words()),
                None => words,
            });
        }
        let mean = |attempts: &Attempts| attempts.times.map(|times| times.mean);
        let means = mean(&self.paper).zip(mean(&self.twin));
        let words = match paper {
            Class::Insufficient => "both never",
            Class::Sufficient if means.is_some_and(|(a, b)| within(a, b, 105)) => {
                let words = "both at full speed, the means within 5 %";
                return resting(judged(decided, words.into()), Some(FULL_SPEED));
            }
            Class::Marginal if means.is_some_and(|means| self.is_as_slow(means)) => {
                "both slow or not always, by how much longer than at full speed within a factor of 2 (our criterion)"
            }
            _ => {
                return Verdict::Disagrees(format!("both {}, but the means differ", paper.name()));
            }
        };
        judged(decided, words.into())
    }

    /// Whether what a transfer takes longer than at full speed is alike: what it takes at full speed, the line's rate says of both.
    fn is_as_slow(&self, (paper, twin): (Span, Span)) -> bool {
        let [of_paper, of_twin] = self.full_speed;
        let longer = [paper.saturating_sub(of_paper), twin.saturating_sub(of_twin)];
        within(longer[0], longer[1], 200)
    }

    /// As the report shows it.
    pub(super) fn compared(&self) -> Compared {
        Compared {
            paper: Origin::Quoted.cell(Value::Attempts(self.paper)),
            twin: self.origin().cell(Value::Attempts(self.twin)),
            verdict: self.verdict(),
            ..Compared::new(self.row.place.name())
        }
    }
}

/// What is claimed: of the rows that no constant was chosen by, what is at full speed in the study is so in the twin; and, if the modem is `confined` to its
/// reservation, what never gets through never does. Beside its reservation that hangs on the spinner's quantum, which the study does not tell and the twin
/// draws. Nothing is claimed of what is slow. By each row of table 3 that is at full speed a constant was chosen, or by the line of gaps through it.
pub(super) fn agreement(judged: &[Judged<'_>], confined: bool) -> (bool, String) {
    let clear = judged.iter().filter(|row| match row.classes[0] {
        Class::Sufficient => !row.is_chosen(),
        Class::Insufficient => confined && !row.is_chosen(),
        Class::Marginal => false,
    });
    let (right, wrong): (Vec<_>, Vec<_>) = clear.partition(|row| row.classes[0] == row.classes[1]);
    let told = |row: &&Judged<'_>| format!("{} {}", row.row.place.name(), row.classes[1].name());
    let seen = match wrong.is_empty() {
        true => format!("all {} rows", right.len()),
        false => wrong.iter().map(told).collect::<Vec<_>>().join(", "),
    };
    (wrong.is_empty() && !right.is_empty(), seen)
}

/// What leaves a transfer at full speed no other time. That it is at full speed at all is judged where it could have been otherwise: as a point of figure 17.
const FULL_SPEED: &str =
    "how long a transfer takes at full speed follows from the line's rate, which is put in";

/// What could not have come out otherwise, by something that was put in, is consistent at best.
pub(super) fn resting(verdict: Verdict, on: Option<&str>) -> Verdict {
    match (verdict, on) {
        (Verdict::Agrees(words), Some(on)) => Verdict::Consistent(format!("{words}; {on}")),
        (verdict, _) => verdict,
    }
}

fn judged(decided: Option<DecidedBy>, words: String) -> Verdict {
    resting(Verdict::Agrees(words), decided.map(DecidedBy::words))
}

/// The class of a reservation in another figure, of modems that have nothing besides, against the table's.
pub(super) fn class_verdict(place: &Place, [paper, twin]: [Class; 2]) -> Verdict {
    match paper == twin {
        true => judged(DecidedBy::of(place, true), format!("both {}", paper.name())),
        false => Verdict::Disagrees(format!(
            "the study: {}; the twin: {}",
            paper.name(),
            twin.name()
        )),
    }
}

/// Whether one is within a factor of two of the other.
fn near(decided: Option<DecidedBy>, [paper, twin]: [Span; 2]) -> Verdict {
    let words = "within a factor of 2 (our criterion)";
    match within(paper, twin, 200) {
        true => judged(decided, words.into()),
        false => Verdict::Disagrees(format!("not {words}")),
    }
}

/// What the study finds of its two servers (§6.5.2), by rows of the tables of both: the dedicated one is faster by what the network takes, and
/// disconnects calls that the pool carries on.
pub(super) fn servers(pool: &[Judged<'_>], server: &[Judged<'_>]) -> Vec<Compared> {
    let both = || {
        pool.iter()
            .zip(server)
            .filter(|(one, other)| one.row.place == other.row.place)
    };
    let mut rows = Vec::from_iter(both().next().and_then(|(one, other)| faster(one, other)));
    let through = |row: &Judged<'_>, of: fn(&Judged<'_>) -> Attempts| {
        let attempts = of(row);
        format!("{} of {}", attempts.succeeded, attempts.made)
    };
    for (one, other) in both() {
        if one.paper.succeeded <= other.paper.succeeded {
            continue;
        }
        let told = |of: fn(&Judged<'_>) -> Attempts| {
            format!("{}, {}", through(one, of), through(other, of))
        };
        let words = "more get through to the pool than to the dedicated server";
        let verdict = match one.twin.succeeded > other.twin.succeeded {
            true => judged(one.decided(), words.into()),
            false => Verdict::Disagrees(format!("not so in the twin: {words}")),
        };
        let name = one.row.place.name();
        rows.push(Compared {
            paper: Origin::Quoted.cell(told(|row| row.paper)),
            twin: one.origin().cell(told(|row| row.twin)),
            verdict,
            ..Compared::new(format!(
                "{name}: through to the pool, and to the dedicated server"
            ))
        });
    }
    rows
}

/// By how much the dedicated server is faster in a row, or the slower in the twin.
fn faster(pool: &Judged<'_>, server: &Judged<'_>) -> Option<Compared> {
    let mean = |attempts: &Attempts| attempts.times.map(|times| times.mean);
    let [pool_paper, server_paper] = [mean(&pool.paper)?, mean(&server.paper)?];
    let [pool_twin, server_twin] = [mean(&pool.twin)?, mean(&server.twin)?];
    let paper = pool_paper.saturating_sub(server_paper);
    let twin = pool_twin.saturating_sub(server_twin);
    let slower = server_twin.saturating_sub(pool_twin);
    let (twin, verdict) = match slower.is_zero() {
        true => (twin.into(), near(None, [paper, twin])),
        false => {
            let slower = format!("{slower} slower");
            let verdict = Verdict::Disagrees(format!("in the twin it is {slower}"));
            (Value::Text(slower), verdict)
        }
    };
    let name = pool.row.place.name();
    Some(Compared {
        paper: Origin::Quoted.cell(paper),
        twin: Origin::Simulated.cell(twin),
        verdict,
        ..Compared::new(format!(
            "{name}: by how much the dedicated server is faster than the pool"
        ))
    })
}

/// Whether neither is more than so many percent of the other.
fn within(a: Span, b: Span, percent: u64) -> bool {
    let (a, b) = (a.as_nanos(), b.as_nanos());
    a * 100 <= b * percent && b * 100 <= a * percent
}

#[cfg(test)]
mod tests;
