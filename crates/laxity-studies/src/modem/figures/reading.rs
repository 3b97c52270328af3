//! A number that is read from the runs of a figure.

use std::collections::BTreeMap;

use laxity_devices::modem::{Outcome, Phase};
use laxity_lab::bench::Said;
use laxity_lab::report::Value;
use laxity_model::Span;
use laxity_model::base::number::median;
use serde::Deserialize;
use serde::de::Error as _;
use serde_json::{Map, Value as Json};

use super::readings::{Point, Readings, Series};

/// Width of a histogram's buckets (§6.3.1).
pub(super) const BUCKET: Span = Span::from_micros(50);
/// The steady state of figure 3: the last of the trace (§6.2.3).
const STEADY: Span = Span::from_secs(5);

/// What was seen on one host, by the name of the run: one of each dial-up, several of each callback.
pub(super) type Runs<'a> = BTreeMap<&'static str, Vec<&'a Readings>>;

/// What these runs say of themselves, all together.
pub(super) fn said<'r>(runs: impl IntoIterator<Item = &'r Readings>) -> Said {
    let runs = runs.into_iter();
    runs.fold(Said::default(), |all, run| all.and(&run.said))
}

/// How many numbers become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Statistic {
    Median,
    /// Rounded down.
    Mean,
    Most,
    Sum,
    Count,
    /// Of all values those in the range, in parts per million.
    Share,
    /// The median of what each run has at most.
    MedianOfMost,
    /// How many are one bucket from the usual one, which is a tick or a millisecond, on either side.
    OneBucketOff,
    /// The share of the processor in the last seconds of a connected modem, in parts per million.
    SteadyShare,
    /// No number: how the call ended, in words.
    Ending,
}

/// Which values are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Which {
    /// Those that nothing disturbed.
    #[default]
    Undisturbed,
    /// The others.
    Disturbed,
    All,
}

/// What is read from the runs of one scene.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Measure {
    pub(super) series: Series,
    /// In these phases of the call, by what began in them; none: in all.
    #[serde(default)]
    phases: Vec<String>,
    /// Values from here to there.
    within: Option<[u64; 2]>,
    /// Values in none of these ranges.
    #[serde(default)]
    outside: Vec<[u64; 2]>,
    #[serde(default)]
    which: Which,
    statistic: Statistic,
}

impl Measure {
    /// `None` if there is nothing that it could be read from: of no calls none lost a sample, and that says nothing.
    pub(super) fn of(&self, runs: &[&Readings]) -> Option<u64> {
        if runs.iter().all(|run| run.points(self.series).is_empty()) {
            return None;
        }
        let by_run: Vec<Vec<u64>> = runs.iter().map(|run| self.values(run)).collect();
        let all = by_run.concat();
        let chosen: Vec<u64> = all
            .iter()
            .copied()
            .filter(|value| self.is_in(*value))
            .collect();
        let count = chosen.len() as u64;
        let sum = || chosen.iter().sum::<u64>();
        match self.statistic {
            Statistic::Median => median(chosen.into_iter()),
            Statistic::Mean => sum().checked_div(count),
            Statistic::Most => chosen.into_iter().max(),
            Statistic::Sum => Some(sum()),
            Statistic::Count => Some(count),
            Statistic::Share => (count * 1_000_000).checked_div(all.len() as u64),
            Statistic::MedianOfMost => {
                let most = by_run.into_iter().filter_map(|run| run.into_iter().max());
                median(most)
            }
            Statistic::OneBucketOff => Some(one_bucket_off(&chosen)),
            Statistic::SteadyShare => steady_share(runs.first()?),
            Statistic::Ending => None,
        }
    }

    fn values(&self, run: &Readings) -> Vec<u64> {
        let is_asked_for = |point: &&Point| {
            let phase = run.phase_at(point.from).name();
            let in_phase = self.phases.is_empty() || self.phases.iter().any(|of| of == phase);
            in_phase
                && match self.which {
                    Which::Undisturbed => !point.disturbed,
                    Which::Disturbed => point.disturbed,
                    Which::All => true,
                }
        };
        let points = run.points(self.series).iter().filter(is_asked_for);
        points.map(|point| point.value).collect()
    }

    fn is_in(&self, value: u64) -> bool {
        let lies_in = |[from, to]: &[u64; 2]| (*from..=*to).contains(&value);
        self.within.as_ref().is_none_or(lies_in) && !self.outside.iter().any(lies_in)
    }

    /// Such a number with its unit.
    pub(super) fn value(&self, number: u64) -> Value {
        match (self.statistic, self.series) {
            (Statistic::Count | Statistic::Sum | Statistic::OneBucketOff, _)
            | (_, Series::Pending | Series::Damage | Series::Overwritten | Series::Underrun) => {
                Value::Count(number)
            }
            (Statistic::Share | Statistic::SteadyShare, _) => Value::share(number),
            _ => Value::Span(Span::from_nanos(number)),
        }
    }
}

fn one_bucket_off(gaps: &[u64]) -> u64 {
    let usual = median(gaps.iter().copied()).unwrap_or(0);
    let half = BUCKET.as_nanos() / 2;
    let off = gaps
        .iter()
        .filter(|gap| (half..3 * half).contains(&gap.abs_diff(usual)));
    off.count() as u64
}

fn steady_share(run: &Readings) -> Option<u64> {
    let connected = run.began(Phase::Connected).unwrap_or(run.length);
    let from = run.length.saturating_sub(STEADY).max(connected);
    let handler = run.points(Series::Handler).iter();
    let used: u64 = handler
        .filter(|run| run.at > from)
        .map(|run| run.value)
        .sum();
    (used * 1_000_000).checked_div(run.length.saturating_sub(from).as_nanos())
}

/// How a call ended, in words.
fn ending(run: &Readings) -> String {
    match &run.outcome {
        Some(Outcome::Failed { result, reason }) => format!("{result}: {reason}"),
        Some(Outcome::Done(_)) => "the transfer ended".into(),
        None if run.began(Phase::Connected).is_some() => "connected".into(),
        None if run.began(Phase::Training).is_some() => "the other end answered".into(),
        None => "never past dialing".into(),
    }
}

/// What is read of one scene, perhaps against another's. Its keys and those of its measure stand together.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Map<String, Json>")]
pub(super) struct Reading {
    /// The runs, by name.
    run: String,
    measure: Measure,
    /// By how much longer it is than this.
    less: Option<Box<Self>>,
    /// How many times this it is, in thousandths.
    per: Option<Box<Self>>,
}

impl TryFrom<Map<String, Json>> for Reading {
    type Error = serde_json::Error;

    fn try_from(mut keys: Map<String, Json>) -> Result<Self, Self::Error> {
        let run = keys.remove("run");
        let run = run.ok_or_else(|| Self::Error::missing_field("run"))?;
        let mut other = |key| keys.remove(key).map(Self::deserialize).transpose();
        let [less, per] = [other("less")?, other("per")?].map(|of| of.map(Box::new));
        Ok(Self {
            run: String::deserialize(run)?,
            measure: Measure::deserialize(Json::Object(keys))?,
            less,
            per,
        })
    }
}

impl Reading {
    /// What is read of its own scene.
    fn own(&self, runs: &Runs<'_>) -> Option<u64> {
        self.measure.of(runs.get(self.run.as_str())?)
    }

    /// `None` if there is no such run, or nothing was seen in it; and where it is to be longer than another and is [shorter](Self::shorter).
    pub(super) fn number(&self, runs: &Runs<'_>) -> Option<u64> {
        let own = self.own(runs)?;
        match (&self.less, &self.per) {
            (Some(less), _) => own.checked_sub(less.number(runs)?),
            (None, Some(per)) => (own * 1_000).checked_div(per.number(runs)?),
            (None, None) => Some(own),
        }
    }

    /// By how much it is shorter than what it was to be longer than, in words; `None` if it is not.
    pub(super) fn shorter(&self, runs: &Runs<'_>) -> Option<String> {
        let longer = self.less.as_ref()?.number(runs)?;
        let by = longer.checked_sub(self.own(runs)?).filter(|by| *by > 0)?;
        Some(format!("{} shorter", Span::from_nanos(by)))
    }

    /// The same with its unit, or in words.
    pub(super) fn seen(&self, runs: &Runs<'_>) -> Option<Value> {
        match self.measure.statistic {
            Statistic::Ending => Some(ending(runs.get(self.run.as_str())?.first()?).into()),
            _ => match self.shorter(runs) {
                Some(words) => Some(words.into()),
                None => self.number(runs).map(|number| self.value(number)),
            },
        }
    }

    /// A number of this kind with its unit.
    pub(super) fn value(&self, number: u64) -> Value {
        match self.per {
            Some(_) => Value::Ratio(number),
            None => self.measure.value(number),
        }
    }

    /// The runs that it is read from.
    pub(super) fn runs(&self) -> Vec<&str> {
        let others = [&self.less, &self.per].into_iter().flatten();
        let mut runs: Vec<&str> = others.flat_map(|other| other.runs()).collect();
        runs.push(&self.run);
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bucket_off_is_25_to_75_us_from_the_usual_gap() {
        let mut gaps = vec![976_000; 10];
        assert_eq!(one_bucket_off(&gaps), 0);
        gaps.extend([952, 951, 901, 900, 1_000, 1_001, 1_050, 1_051].map(|us| us * 1_000));
        // 951 below, 1,001 and 1,050 above.
        assert_eq!(one_bucket_off(&gaps), 3);
    }
}
