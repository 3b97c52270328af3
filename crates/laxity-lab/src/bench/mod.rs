//! An experiment that leaves a [`Sheet`]: what it is asked, and how it is found by its name.

use laxity_model::enforce::machine::Machine;

use crate::runner::{Progress, RunError};
use crate::sheet::Sheet;

/// What is asked of an experiment.
#[derive(Clone, Debug)]
pub struct Request {
    /// The figures and tables wanted, by their keys; empty: all.
    pub figures: Vec<String>,
    /// Whether to measure on this machine. The twin is always run: it is what is compared with.
    pub live: bool,
    /// Threads for the twin; 0: one a processor. Makes no difference to the results.
    pub threads: usize,
    /// Everything random follows from it.
    pub seed: u64,
    /// How often what is repeated is repeated (the study's transfers: ten); `None`: as often as its source did.
    pub repeats: Option<u32>,
    /// This machine as `laxity calibrate` found it, for predictions; `None`: no predictions.
    pub machine: Option<Machine>,
}

impl Request {
    /// Whether the figure of this key is wanted.
    #[must_use]
    pub fn wants(&self, key: &str) -> bool {
        self.figures.is_empty() || self.figures.iter().any(|figure| figure == key)
    }
}

/// An experiment.
#[derive(Clone, Copy, Debug)]
pub struct Study {
    /// What the command line calls it.
    pub name: &'static str,
    /// What it shows, in one line.
    pub summary: &'static str,
    /// Its figures and tables: key, and what each shows. May be empty if it has no parts.
    pub figures: &'static [(&'static str, &'static str)],
    /// Runs it. Deterministic but for what is measured live.
    pub run: fn(&Request, &mut dyn Progress) -> Result<Sheet, RunError>,
}
