//! What comes out of the study: made once, shown in three ways.

use serde::Serialize;

use super::compared::{ORDERS, TESTS};
use super::quoted::{self, Row};
use super::study::Settings;

/// The version of the JSON file.
const FILE_VERSION: u32 = 1;

/// Everything the study found. The same settings (but for the threads) give the same bytes.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Results {
    /// The version of this file's structure.
    pub file_version: u32,
    /// Which experiment.
    pub experiment: &'static str,
    /// Made by this version.
    pub laxity_version: &'static str,
    /// Sets at each point.
    pub sets: u32,
    /// Tasks of each set.
    pub tasks: usize,
    /// The seed.
    pub seed: u64,
    /// How sets are drawn.
    pub generator: String,
    /// Where the figures come from.
    pub provenance: Provenance,
    /// The tests, in the order of the counts.
    pub tests: Vec<TestJson>,
    /// The quoted table, beside the same sets of this study.
    pub comparison: Vec<Comparison>,
    /// The curves.
    pub sweeps: Vec<Sweep>,
    /// Which test can never accept what another rejects, and how often it did.
    pub orders: Vec<OrderJson>,
}

/// Where the figures come from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Provenance {
    /// Those of `comparison[].point` and `sweeps`.
    pub counted: String,
    /// Those of `comparison[].quoted_percent`.
    pub quoted: &'static str,
}

/// A test.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TestJson {
    /// Its name.
    pub key: &'static str,
    /// For people.
    pub label: &'static str,
    /// How it takes non-preemptive regions.
    pub regions: &'static str,
    /// Whose it is.
    pub source: &'static str,
}

/// How many sets each test accepts at one point.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Point {
    /// Where: the utilization, q/C, or Tmax/Tmin.
    pub value: f64,
    /// Sets accepted, by test.
    pub accepted: Vec<u32>,
    /// Sets that the test gave up or was not made for, by test; not accepted.
    pub undecided: Vec<u32>,
}

/// One row of the quoted table.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// q/C.
    pub region: f64,
    /// What is quoted, in percent, by test; `null` where nothing is, and for sets of another size than the quoted ones.
    pub quoted_percent: Vec<Option<f64>>,
    /// What was counted here, at this utilization.
    pub point: Point,
}

impl Comparison {
    pub(super) fn new(row: &Row, point: Point, tasks: usize) -> Self {
        let applies = tasks == quoted::TASKS;
        let quoted = |key| row.percent.iter().find(|(k, _)| applies && *k == key);
        Self {
            region: row.region,
            quoted_percent: TESTS
                .iter()
                .map(|test| quoted(test.key).map(|(_, percent)| *percent))
                .collect(),
            point,
        }
    }
}

/// A parameter that varies, all others fixed.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Sweep {
    /// Its name.
    pub key: &'static str,
    /// A heading.
    pub title: &'static str,
    /// What the values are.
    pub axis: &'static str,
    /// The other parameters.
    pub fixed: &'static str,
    /// Whether the values are better drawn on a logarithmic scale.
    #[serde(skip)]
    pub logarithmic: bool,
    /// Whether the table on the terminal has it; the page has all.
    #[serde(skip)]
    pub in_table: bool,
    /// By rising value.
    pub points: Vec<Point>,
}

/// An order among two tests, checked on every set of the study.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct OrderJson {
    /// What this accepts,
    pub weaker: &'static str,
    /// this accepts too.
    pub stronger: &'static str,
    /// Why it must be so.
    pub reason: &'static str,
    /// Sets that were looked at.
    pub sets: u32,
    /// Sets of which it was not so.
    pub counterexamples: u32,
}

impl Results {
    pub(super) fn new(
        settings: &Settings,
        comparison: Vec<Comparison>,
        sweeps: Vec<Sweep>,
        (sets, against): (u32, [u32; ORDERS.len()]),
    ) -> Self {
        let tests = TESTS.map(|test| TestJson {
            key: test.key,
            label: test.label,
            regions: test.model.label(),
            source: test.source,
        });
        let orders = ORDERS.iter().zip(against);
        let orders = orders.map(|(order, counterexamples)| OrderJson {
            weaker: order.weaker,
            stronger: order.stronger,
            reason: order.reason,
            sets,
            counterexamples,
        });
        let counted = format!(
            "computed, seed {}, {} sets a point, the same random numbers at every point",
            settings.seed, settings.sets
        );
        Self {
            file_version: FILE_VERSION,
            experiment: "acceptance",
            laxity_version: env!("CARGO_PKG_VERSION"),
            sets: settings.sets,
            tasks: settings.tasks,
            seed: settings.seed,
            generator: format!(
                "{} tasks; utilizations by UUniFast; periods log-uniform from 10 ms, multiples of 1 µs; D = T; priorities rate monotonic where \
                 the test does not choose; C rounded down to 1 ns; q rounded down, at least 1 ns",
                settings.tasks
            ),
            provenance: Provenance {
                counted,
                quoted: quoted::SOURCE,
            },
            tests: tests.to_vec(),
            comparison,
            sweeps,
            orders: orders.collect(),
        }
    }

    /// As JSON, ending in a newline.
    ///
    /// # Errors
    ///
    /// None are known: all keys are strings.
    pub fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Accepted sets in percent, and its binomial standard error √(p(1 − p)/N), also in percent.
    #[must_use]
    pub fn percent(&self, accepted: u32) -> (f64, f64) {
        let sets = f64::from(self.sets);
        let share = f64::from(accepted) / sets;
        (share * 100.0, (share * (1.0 - share) / sets).sqrt() * 100.0)
    }

    /// How many figures are quoted, and how far from one of them the figure counted here is at most, in standard errors of the
    /// difference of two samples; `None` if nothing is quoted for sets of this size.
    #[must_use]
    pub fn farthest_from_quoted(&self) -> Option<(usize, f64)> {
        let (here, there) = (f64::from(self.sets), f64::from(quoted::SETS));
        let differences = self.comparison.iter().flat_map(|row| {
            let counted = row.point.accepted.iter().zip(&row.quoted_percent);
            counted.filter_map(|(accepted, quoted)| Some((*accepted, (*quoted)?)))
        });
        let differences = differences.map(|(accepted, quoted)| {
            let (counted, quoted) = (f64::from(accepted) / here, quoted / 100.0);
            let joint = (counted * here + quoted * there) / (here + there);
            let error = (joint * (1.0 - joint) * (1.0 / here + 1.0 / there)).sqrt();
            // Both are 0 or both are 1.
            if error > 0.0 {
                (counted - quoted).abs() / error
            } else {
                0.0
            }
        });
        let differences: Vec<_> = differences.collect();
        let farthest = differences.iter().copied().fold(0.0, f64::max);
        (!differences.is_empty()).then_some((differences.len(), farthest))
    }

    /// How often an order was not kept, all orders together.
    #[must_use]
    pub fn counterexamples(&self) -> u32 {
        self.orders.iter().map(|order| order.counterexamples).sum()
    }

    /// Answers that no test gave, all tests and points together.
    #[must_use]
    pub fn undecided(&self) -> u32 {
        let sweeps = self.sweeps.iter().flat_map(|sweep| &sweep.points);
        let compared = self.comparison.iter().map(|row| &row.point);
        let points = sweeps.chain(compared);
        points.flat_map(|point| &point.undecided).sum()
    }
}
