//! Scenarios, and what comes of them: read, admitted, run on either host, judged, and reported.
//!
//! * [`capture_file`]: packets of pcap and pcapng.
//! * [`import`]: task sets from CSV and from rt-app.
//! * [`key_file`]: the private key of a host of a network.
//! * [`machine_file`]: what a machine costs, for a twin of it.
//! * [`plan`]: what would become of such a set.
//! * [`recorded`]: which rate and burst cover a flow that was recorded.
//! * [`scenario`]: the TOML file, with errors that point at the line.
//! * [`runner`]: from a scenario to runs and verdicts; [`observe`]: what is seen of each component of a run.
//! * [`evidence`]: histograms, results, JSON and traces; [`exit`]: how it came out, as an exit code.
//! * [`report`]: what is left behind: tables on the terminal, JSON, pages, drawings.
//! * [`workload`]: random task sets.
//! * [`mod@bench`]: what an experiment is, and what runs it.
#![forbid(unsafe_code)]

// What tests outside the crate share with those inside names it as they do.
#[cfg(test)]
extern crate self as laxity_lab;

pub mod bench;
pub mod capture_file;
mod each_once;
pub mod evidence;
pub mod exit;
pub mod import;
pub mod key_file;
mod layout;
pub mod machine_file;
pub mod observe;
mod plain;
pub mod plan;
pub mod recorded;
pub mod report;
pub mod runner;
pub mod scenario;
pub mod workload;

pub use plain::{command_line, plain, plain_lines};
