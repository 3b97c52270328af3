//! What a figure compares: what the study prints of a number, what the twin makes of it, and by which criterion they agree.

use std::collections::BTreeSet;

use laxity_lab::report::{Compared, Origin, Value, Verdict};
use laxity_lab::scenario::units::{Load, Share};
use laxity_model::base::time::Beside;
use serde::Deserialize;

use super::super::verdicts::resting;
use super::reading::{BUCKET, Reading, Runs, said};
use super::runs::SCENES;

/// As printed.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Printed {
    /// In the unit of what is read.
    Number(u64),
    Words(String),
}

/// When the twin agrees.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Criterion {
    /// It is within so many percent of what is printed, or of something else that the twin has.
    Within { percent: u64, of: Option<Reading> },
    /// Something is so.
    So(So),
    /// It is the load that the scenario of these runs asks for, as near as is asked there.
    AsSought,
}

/// It, or `of` in its stead, lies between two numbers; and above the first of the others, if it is to be `more`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct So {
    words: String,
    /// What was seen: `{seen}`, and of the others `{first}` and `{second}`.
    seen: String,
    of: Option<Reading>,
    least: Option<u64>,
    most: Option<u64>,
    #[serde(default)]
    more: bool,
    #[serde(default)]
    others: Vec<Reading>,
}

/// A row of a figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Quantity {
    pub(super) figure: String,
    name: String,
    of: Reading,
    paper: Option<Printed>,
    /// Where it is printed.
    source: Option<String>,
    /// Where the twin's comes from; `None`: it is not told.
    twin: Option<Origin>,
    /// What is this in the twin, to a bucket of a histogram, shows only what was put in.
    charged_if: Option<Reading>,
    #[serde(default = "measured")]
    live: Origin,
    /// What is put in and leaves the twin no other outcome, or none but by a draw, though the number itself comes out: then that it agrees shows nothing.
    rests_on: Option<String>,
    /// On this machine it is judged only where this is nought.
    live_if_none: Option<Reading>,
    judged: Option<Criterion>,
    /// What is remarked if they do not agree.
    otherwise: Option<String>,
}

const fn measured() -> Origin {
    Origin::Measured
}

impl Quantity {
    /// The runs that are made for it.
    pub(super) fn runs(&self) -> Vec<&str> {
        let besides = self.charged_if.iter().chain(&self.live_if_none);
        let besides = besides.flat_map(Reading::runs);
        self.read().into_iter().chain(besides).collect()
    }

    /// The runs that its verdict is read from, each once: a doubt of another is none of it.
    fn read(&self) -> BTreeSet<&str> {
        let others: Vec<&Reading> = match &self.judged {
            Some(Criterion::Within { of, .. }) => of.iter().collect(),
            Some(Criterion::So(so)) => so.of.iter().chain(&so.others).collect(),
            Some(Criterion::AsSought) | None => Vec::new(),
        };
        let all = others.into_iter().chain([&self.of]);
        all.flat_map(Reading::runs).collect()
    }

    /// The row; `None` where neither host has anything to tell. What was seen on this machine is judged by the same criterion as the twin's, beside it; what
    /// was put in there is not, and of a load that was sought there no more than that it was missed.
    pub(super) fn compared(&self, twin: &Runs<'_>, live: &Runs<'_>) -> Option<Compared> {
        let here = self.of.seen(live);
        if self.twin.is_none() && here.is_none() {
            return None;
        }
        let charged = self.charged_if.as_ref().and_then(|of| of.number(twin));
        let both = charged.zip(self.of.number(twin));
        let is_charged =
            both.is_some_and(|(charged, own)| charged.abs_diff(own) <= BUCKET.as_nanos());
        let origin = match is_charged {
            true => Some(Origin::Charged),
            false => self.twin,
        };
        let printed = self.paper.as_ref().map(|paper| match paper {
            Printed::Number(number) => self.of.value(*number),
            Printed::Words(words) => words.as_str().into(),
        });
        Some(Compared {
            paper: printed.and_then(|value| Origin::Quoted.cell(value)),
            twin: origin.and_then(|origin| origin.cell(self.of.seen(twin)?)),
            live_verdict: match here {
                Some(_) if self.is_judged_here(live) => self.verdict_here(live),
                _ => Verdict::Alone,
            },
            live: here.and_then(|value| self.live.cell(value)),
            verdict: origin.map_or(Verdict::Alone, |origin| {
                resting(self.verdict(twin, origin), self.rests_on.as_deref())
            }),
            ..Compared::new(&self.name)
        })
    }

    /// Whether what was seen on this machine is what the row is about.
    fn is_judged_here(&self, live: &Runs<'_>) -> bool {
        let none = self.live_if_none.as_ref();
        none.is_none_or(|none| none.number(live) == Some(0))
    }

    /// What is to be said where the twin does not agree.
    pub(super) fn remark(&self, row: &Compared) -> Option<String> {
        let seen = row
            .twin
            .as_ref()
            .map(|cell| words(&cell.value, std::iter::empty()))?;
        let disagrees = matches!(row.verdict, Verdict::Disagrees(_));
        let remark = self.otherwise.as_ref().filter(|_| disagrees)?;
        Some(remark.replace("{seen}", &seen))
    }

    /// What was seen on this machine, judged if enough of it was undisturbed.
    fn verdict_here(&self, live: &Runs<'_>) -> Verdict {
        let runs = self.read().into_iter().filter_map(|run| live.get(run));
        let doubt = said(runs.flatten().copied()).doubt();
        match (self.verdict(live, self.live), self.live, doubt) {
            (_, Origin::Measured, Some(why)) if self.judged.is_some() => Verdict::Inconclusive(why),
            (verdict, Origin::Measured, _) => verdict,
            (Verdict::Disagrees(how), Origin::Calibrated, _) => {
                Verdict::Inconclusive(format!("it is not the load that was sought: {how}"))
            }
            _ => Verdict::Alone,
        }
    }

    fn verdict(&self, twin: &Runs<'_>, origin: Origin) -> Verdict {
        let Some(criterion) = &self.judged else {
            return Verdict::Alone;
        };
        match criterion {
            Criterion::So(so) => so.judge(&self.of, twin, origin),
            Criterion::AsSought => as_sought(self.of.number(twin), origin),
            Criterion::Within { percent, of } => {
                let wanted = match (of, &self.paper) {
                    (Some(other), _) => other.number(twin),
                    (None, Some(Printed::Number(number))) => Some(*number),
                    (None, _) => None,
                };
                match (wanted.zip(self.of.number(twin)), self.of.shorter(twin)) {
                    (Some(both), _) => within(both, *percent, origin),
                    (None, Some(seen)) => {
                        judge(false, &format!("within {percent} %"), &seen, origin)
                    }
                    (None, None) => Verdict::Disagrees("never".into()),
                }
            }
        }
    }
}

/// Where the study prints what is compared of a figure: each place with what stands there.
pub(super) fn sources<'a>(quantities: impl Iterator<Item = &'a Quantity>) -> Option<String> {
    let mut places: Vec<(&str, Vec<&str>)> = Vec::new();
    for quantity in quantities {
        let Some(source) = &quantity.source else {
            continue;
        };
        match places.iter_mut().find(|(place, _)| place == source) {
            Some((_, names)) => names.push(&quantity.name),
            None => places.push((source, vec![&quantity.name])),
        }
    }
    let places = places.iter();
    let words = places.map(|(place, names)| format!("{} ({place})", names.join("; ")));
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| words.join("; "))
}

impl So {
    fn judge(&self, reading: &Reading, twin: &Runs<'_>, origin: Origin) -> Verdict {
        let beyond = self.others.first().filter(|_| self.more);
        let least = match beyond {
            Some(other) => other.number(twin).map(|number| number + 1),
            None => Some(self.least.unwrap_or(0)),
        };
        let number = self.of.as_ref().unwrap_or(reading).number(twin);
        let agrees = number.zip(least).is_some_and(|(number, least)| {
            (least..=self.most.unwrap_or(u64::MAX)).contains(&number)
        });
        let holes = ["{seen}", "{first}", "{second}"];
        let readings = [reading].into_iter().chain(&self.others);
        let values: Vec<Option<Value>> = readings.map(|reading| reading.seen(twin)).collect();
        let told = holes.into_iter().zip(&values);
        let told = told.fold(self.seen.clone(), |told, (hole, value)| {
            let seen = value
                .as_ref()
                .map(|value| words(value, values.iter().flatten()));
            told.replace(hole, seen.as_deref().unwrap_or("nothing"))
        });
        judge(agrees, &self.words, &told, origin)
    }
}

/// A value in the words of a verdict, told from the others there.
fn words<'v>(value: &Value, others: impl Iterator<Item = &'v Value>) -> String {
    match value {
        Value::Span(span) => {
            let others = others.filter_map(|other| match other {
                Value::Span(other) => Some(other.as_nanos()),
                _ => None,
            });
            others.fold(span.beside(*span), Beside::and).to_string()
        }
        Value::Text(words) => words.clone(),
        Value::Count(number) | Value::Ratio(number) | Value::BitRate(number) => number.to_string(),
        Value::Share(ppm) => ppm.to_string(),
        Value::Attempts(attempts) => attempts.succeeded.to_string(),
    }
}

/// Whether the twin's value is within so many percent of the one that is wanted.
fn within((wanted, twin): (u64, u64), percent: u64, origin: Origin) -> Verdict {
    let (wanted, twin) = (i128::from(wanted), i128::from(twin));
    let permille = (twin - wanted) * 1_000 / wanted.max(1);
    // What is off by less than is shown still has its side.
    let sign = if twin < wanted { '-' } else { '+' };
    let agrees = (twin - wanted).abs() * 100 <= wanted * i128::from(percent);
    // What is beyond the limit by less than is shown does not look like it.
    let hair = !agrees && permille.unsigned_abs() == u128::from(percent) * 10;
    let off = permille.unsigned_abs() + u128::from(hair);
    let difference = format!("{sign}{}.{} %", off / 10, off % 10);
    judge(agrees, &format!("within {percent} %"), &difference, origin)
}

/// Whether a share in parts per million is the load that was sought for these runs.
fn as_sought(ppm: Option<u64>, origin: Origin) -> Verdict {
    let mut devices = SCENES.variants.iter().flat_map(|scene| &scene.devices);
    let Some((ppm, device)) = ppm.zip(devices.next()) else {
        return Verdict::Disagrees("never".into());
    };
    let Load { share, tolerance } = device.load;
    let agrees = ppm.abs_diff(share.ppm.into()) <= u64::from(tolerance.ppm);
    let seen = Share {
        ppm: u32::try_from(ppm).unwrap_or(u32::MAX),
    };
    judge(agrees, &device.load.to_string(), &seen.to_string(), origin)
}

/// A verdict by any criterion, with what was seen. What was put in or chosen is consistent at best.
pub(super) fn judge(agrees: bool, criterion: &str, seen: &str, origin: Origin) -> Verdict {
    match (agrees, origin) {
        (false, _) => Verdict::Disagrees(format!("not {criterion}: {seen}")),
        (true, Origin::Charged) => Verdict::Consistent(format!("{criterion}: {seen}; put in")),
        (true, Origin::Calibrated) => Verdict::Consistent(format!("{criterion}: {seen}; chosen")),
        (true, _) => Verdict::Agrees(format!("{criterion}: {seen}")),
    }
}

#[cfg(test)]
mod tests;
