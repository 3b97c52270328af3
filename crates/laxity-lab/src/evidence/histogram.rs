//! Histograms, as a program reads them.

use laxity_model::base::histogram::Histogram;
use laxity_model::verify::contract::Observed;
use serde::{Deserialize, Serialize};

/// A histogram.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct HistogramJson {
    /// The values' unit: `ns`, `samples`, `count`.
    pub unit: String,
    /// How many values there are.
    pub count: u64,
    /// The smallest; like all that follow, none if there are no values.
    pub min: Option<u64>,
    /// The largest.
    pub max: Option<u64>,
    /// The mean, rounded down.
    pub mean: Option<u64>,
    /// The median, by nearest rank.
    pub p50: Option<u64>,
    /// The 90th percentile.
    pub p90: Option<u64>,
    /// The 99th percentile.
    pub p99: Option<u64>,
    /// The 99.9th percentile.
    pub p999: Option<u64>,
    /// Values too large for any bucket.
    pub overflow: u64,
    /// Smallest value and count of each bucket that holds any, ascending.
    pub buckets: Vec<(u64, u64)>,
    /// Of those values alone that no disturbance overlaps, by which contracts judge; none where that is all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undisturbed: Option<Undisturbed>,
    /// What one had come to that was not over at the end, or had no beginning: so it was that at the least, and none of those above. None where some that is judged is as large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<u64>,
}

/// What is judged of a histogram in which there is more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Undisturbed {
    /// How many values there are.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
    /// The smallest; like all that follow, none if there are no values.
    #[serde(default)]
    pub min: Option<u64>,
    /// The median.
    pub p50: Option<u64>,
    /// The 99th percentile.
    pub p99: Option<u64>,
    /// The 99.9th percentile.
    pub p999: Option<u64>,
    /// The largest.
    pub max: Option<u64>,
}

impl Undisturbed {
    fn of(histogram: &Histogram) -> Self {
        Self {
            count: histogram.count(),
            sum: u64::try_from(histogram.sum()).unwrap_or(u64::MAX),
            min: histogram.min(),
            p50: histogram.percentile(500_000),
            p99: histogram.percentile(990_000),
            p999: histogram.percentile(999_000),
            max: histogram.max(),
        }
    }
}

impl HistogramJson {
    /// A histogram of values in this unit.
    #[must_use]
    pub fn new(unit: &str, histogram: &Histogram) -> Self {
        Self {
            unit: unit.into(),
            count: histogram.count(),
            min: histogram.min(),
            max: histogram.max(),
            mean: histogram.mean(),
            p50: histogram.percentile(500_000),
            p90: histogram.percentile(900_000),
            p99: histogram.percentile(990_000),
            p999: histogram.percentile(999_000),
            // A log-linear histogram has a bucket for every value.
            overflow: 0,
            buckets: histogram.buckets().map(|b| (b.low, b.count)).collect(),
            undisturbed: None,
            unfinished: None,
        }
    }

    /// All values that were observed, in this unit.
    #[must_use]
    pub fn of(unit: &str, observed: &Observed) -> Self {
        let is_disturbed = !observed.disturbed.is_empty();
        let unfinished = observed.unfinished.max();
        Self {
            unfinished: unfinished.filter(|_| unfinished > observed.undisturbed.max()),
            undisturbed: is_disturbed.then(|| Undisturbed::of(&observed.undisturbed)),
            ..Self::new(unit, &observed.raw())
        }
    }

    /// How many values are judged.
    pub(crate) fn judged(&self) -> u64 {
        self.undisturbed.map_or(self.count, |own| own.count)
    }

    /// The median of what is judged.
    pub(crate) fn told_p50(&self) -> Option<u64> {
        self.undisturbed.map_or(self.p50, |own| own.p50)
    }

    /// The 99th percentile of what is judged, if there are values enough for it to be another than the largest.
    pub(crate) fn told_p99(&self) -> Option<u64> {
        let p99 = self.undisturbed.map_or(self.p99, |own| own.p99);
        p99.filter(|_| self.judged() >= 100)
    }

    /// The 99.9th percentile of what is judged, if there are values enough for it to be another than the largest.
    pub(crate) fn told_p999(&self) -> Option<u64> {
        let p999 = self.undisturbed.map_or(self.p999, |own| own.p999);
        p999.filter(|_| self.judged() >= 1_000)
    }

    /// The smallest that is judged.
    pub(crate) fn told_min(&self) -> Option<u64> {
        self.undisturbed.map_or(self.min, |own| own.min)
    }

    /// The largest that is judged, or what one that was not over had come to.
    pub(crate) fn told_max(&self) -> Option<u64> {
        let judged = self.undisturbed.map_or(self.max, |own| own.max);
        judged.max(self.unfinished)
    }

    /// The largest of all, where that is not judged.
    pub(crate) fn disturbed_max(&self) -> Option<u64> {
        self.max.filter(|_| self.max > self.told_max())
    }
}

/// Gaps between wake-ups.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GapJson {
    /// All of them.
    #[serde(flatten)]
    pub all: HistogramJson,
    /// The largest that no disturbance overlaps.
    pub undisturbed_max: Option<u64>,
}

impl GapJson {
    /// All gaps in nanoseconds, and the largest undisturbed one.
    #[must_use]
    pub fn of(gaps: &Observed) -> Self {
        Self {
            all: HistogramJson::of("ns", gaps),
            undisturbed_max: gaps.undisturbed.max(),
        }
    }
}
