//! Scenarios, and what comes of them: read, admitted, run on either host, judged, and reported.
//!
//! * [`scenario`]: the TOML file, with errors that point at the line.
//! * [`runner`]: from a scenario to runs, observations and verdicts.
//! * [`evidence`]: histograms, results, JSON and traces.
//! * [`report`]: the table on the terminal and the HTML page.
#![forbid(unsafe_code)]

pub mod evidence;
pub mod report;
pub mod runner;
pub mod scenario;
