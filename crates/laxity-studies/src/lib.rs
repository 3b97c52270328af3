//! Experiments that need no scenario: each makes its own input from a seed, and leaves a table, JSON and an HTML page.
//!
//! * [`acceptance`]: how many random task sets each schedulability test accepts.
//! * [`laxity_lab::bench`], [`laxity_lab::sheet`]: what all others are asked, and what they leave behind.
//! * [`modem`]: the soft-modem study; [`prediction`]: what a twin of this machine says of it.
//! * [`devices`], [`processors`], [`constraints`], [`adaptive`], [`on_hook`], [`fault`]: what that study left open.
#![forbid(unsafe_code)]

pub mod acceptance;
pub mod adaptive;
pub mod constraints;
pub mod devices;
pub mod fault;
pub mod modem;
pub mod on_hook;
pub mod prediction;
pub mod processors;
use laxity_lab::bench::Study;

/// An experiment by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Experiment {
    /// What the command line calls it.
    pub name: &'static str,
    /// What it shows, in one line.
    pub summary: &'static str,
}

/// The study of schedulability tests; all others are [`STUDIES`].
pub const ACCEPTANCE: Experiment = Experiment {
    name: "acceptance",
    summary: "the share of random task sets that each schedulability test accepts, over utilization, region length and period range",
};

/// All experiments that leave a [`laxity_lab::sheet::Sheet`].
pub const STUDIES: [Study; 8] = [
    modem::STUDY,
    prediction::STUDY,
    devices::STUDY,
    processors::STUDY,
    constraints::STUDY,
    adaptive::STUDY,
    on_hook::STUDY,
    fault::STUDY,
];
