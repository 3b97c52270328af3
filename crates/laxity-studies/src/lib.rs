//! Experiments that need no scenario: each makes its own input from a seed, and leaves a table, JSON and an HTML page.
//!
//! * [`laxity_lab::bench`]: how they are written, and what runs them.
//! * [`acceptance`]: how many random task sets each schedulability test accepts.
//! * [`modem`]: the soft-modem study; [`prediction`]: what a twin of this machine says of it.
//! * [`served`]: the calls of a driver;
//!   [`call`]: a modem's call, of which more than one study makes some; [`sets`]: soft devices served together, the same.
//! * [`devices`], [`processors`], [`constraints`], [`adaptive`], [`on_hook`], [`fault`]: what that study left open.
//! * `register`: the constants of a study, of which more than one shows them; `spread`: a number of several runs or sets; `peers`: processes that a study starts.
//! * [`upcalls`]: rate monotonic with delayed preemption; [`upcalls::udp`]: over sockets.
//! * [`nif`]: video beside bulk transfers, by which way packets find their threads.
//! * [`channels`]: real-time channels at their sender, beside best effort and one that sends too much; and what laxity's nodes and others do with a control loop and a camera beside best effort, on this machine.
#![forbid(unsafe_code)]

pub mod acceptance;
pub mod adaptive;
pub mod call;
pub mod channels;
pub mod constraints;
pub mod devices;
pub mod fault;
pub mod modem;
pub mod nif;
pub mod on_hook;
mod peers;
pub mod prediction;
pub mod processors;
mod register;
pub mod served;
pub mod sets;
mod spread;
pub mod upcalls;

/// All experiments that leave a [`laxity_lab::report::Report`].
pub static STUDIES: [&dyn laxity_lab::bench::Experiment; 13] = [
    &acceptance::Acceptance,
    &modem::Modem,
    &prediction::Prediction,
    &devices::DEVICES,
    &processors::PROCESSORS,
    &constraints::Constraints,
    &adaptive::Adaptive,
    &on_hook::OnHook,
    &fault::Whose,
    &upcalls::Upcalls,
    &upcalls::udp::Udp,
    &nif::Nif,
    &channels::Channels,
];

/// Does what a process of an experiment is to do, which has started it.
///
/// # Errors
///
/// What it lacks, or lost; or the experiment has none.
pub fn peer(experiment: &str, part: &str) -> Result<(), Box<dyn std::error::Error>> {
    match experiment {
        "upcalls" => upcalls::process::run(part),
        "upcalls-udp" => upcalls::udp::peer::run(part),
        "channels" => channels::flagship::part::run(part),
        _ => Err(format!("{experiment} has no processes").into()),
    }
}

/// What was seen, in words, or this one where nothing was.
fn or(seen: Option<impl std::fmt::Display>, nothing: &str) -> String {
    seen.map_or_else(|| nothing.to_owned(), |seen| seen.to_string())
}

/// A live run of a second on one processor, of which so much was disturbed, in parts per million, and which says nothing else of itself.
#[cfg(test)]
fn live_run(disturbed_ppm: u32) -> laxity_model::RunRecord {
    use laxity_model::{Disturbance, Instant, ProcessorId, RunRecord, Span};
    RunRecord {
        disturbances: vec![Disturbance {
            processor: ProcessorId(0),
            from: Instant::ZERO,
            to: Instant::ZERO + Span::from_micros(disturbed_ppm.into()),
        }],
        witness_wakeups: 2_000,
        ..RunRecord::empty(Instant::ZERO, Instant::from_millis(1_000))
    }
}

/// What such a run says of itself.
#[cfg(test)]
fn disturbed(ppm: u32) -> laxity_lab::bench::Said {
    laxity_lab::bench::Said::of(&live_run(ppm))
}

/// How many of a report's claims the evidence tells, and of how many it does not.
#[cfg(test)]
fn told_and_open(report: &laxity_lab::report::Report) -> (usize, usize) {
    let told = report.checks.iter().filter(|check| check.held.is_some());
    let told = told.count();
    (told, report.checks.len() - told)
}
