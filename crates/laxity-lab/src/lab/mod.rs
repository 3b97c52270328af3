//! Experiments that need no scenario: each makes its own input from a seed, and leaves a table, JSON and an HTML page.
//!
//! * [`acceptance`]: how many random task sets each schedulability test accepts.

pub mod acceptance;

/// An experiment by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Experiment {
    /// What the command line calls it.
    pub name: &'static str,
    /// What it shows, in one line.
    pub summary: &'static str,
}

/// All there are.
pub const EXPERIMENTS: [Experiment; 1] = [Experiment {
    name: "acceptance",
    summary: "the share of random task sets that each schedulability test accepts, over utilization, region length and period range",
}];
