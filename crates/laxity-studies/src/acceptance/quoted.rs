//! Figures of an earlier measurement, which this study must reproduce.

/// Where they are from.
pub const SOURCE: &str = "the baseline taken before this library was written, with another implementation (2,000 sets of 10 tasks a row, T from 10 to \
100 ms, rate monotonic, D = T; seed and distribution of the periods are not recorded)";

/// Sets a row.
pub const SETS: u32 = 2_000;
/// Tasks of each set.
pub const TASKS: usize = 10;

/// A row of it: q as a part of C, the utilization, and percentages of accepted sets by test.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Row {
    /// q/C.
    pub region: f64,
    /// U.
    pub utilization: f64,
    /// Key of the test, percent.
    pub percent: [(&'static str, f64); 6],
}

const fn row(region: f64, utilization: f64, percent: [f64; 6]) -> Row {
    Row {
        region,
        utilization,
        percent: [
            ("blocking_per_task", percent[0]),
            ("rmdp", percent[1]),
            ("hyperbolic_with_blocking", percent[2]),
            ("fp_floating", percent[3]),
            ("fp_last_region", percent[4]),
            ("edf_floating", percent[5]),
        ],
    }
}

/// All rows.
pub const ROWS: [Row; 4] = [
    row(0.25, 0.60, [100.0, 43.0, 100.0, 100.0, 100.0, 100.0]),
    row(0.25, 0.75, [0.0, 0.0, 11.4, 100.0, 100.0, 100.0]),
    row(0.25, 0.90, [0.0, 0.0, 0.0, 37.0, 56.2, 99.9]),
    row(1.0, 0.80, [0.0, 0.0, 0.1, 38.2, 48.1, 56.5]),
];
