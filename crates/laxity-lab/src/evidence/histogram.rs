//! Histograms, as a program reads them.

use laxity_model::base::histogram::Histogram;
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
        }
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
    pub fn new(gaps: &Histogram, undisturbed_max_ns: Option<u64>) -> Self {
        Self {
            all: HistogramJson::new("ns", gaps),
            undisturbed_max: undisturbed_max_ns,
        }
    }
}
