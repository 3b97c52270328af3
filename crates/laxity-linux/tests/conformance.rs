//! The live host does what every host must do.
//!
//! Needs the rights of a live host and two processors; about half a minute. Everything is judged by order, counts and service, and
//! reservations apart from what the witness saw disturbed.

mod common;

use laxity_conformance::{Case, Failure, GHOSTS, Ghost, Tolerance, cases, notices};
use laxity_linux::doctor::rights::{self, Right};
use laxity_linux::{LiveConfig, LiveHost};
use laxity_model::admission::{Admitted, Supply};
use laxity_model::enforce::Witness;
use laxity_model::verify::contract::{RunFacts, is_too_much};
use laxity_model::{Host, HostError, ProcessorId, RunRecord, Service, Span};
use libtest_mimic::{Arguments, Trial};

const PROCESSORS: u16 = 2;

/// By design, and not by how a machine happens to do:
///
/// * a run ends when its threads have seen that it is over, which the slowest step decides;
/// * a slot is kept within 5 %, and a piece of work may be cut by two switches;
/// * one period in five may miss something that no witness saw: it wakes once a millisecond and reports from 100 µs, and less than that takes
///   a whole slot of 100 µs. What a quiet machine reaches is measured elsewhere; a slot that is short or late by rule fails every period;
/// * over all undisturbed periods together that costs a reservation no more than 2 % of its service;
/// * the kernel counts up to 12 % more as a holder's than it had for itself: some 15 µs each time that somebody comes in between, and 20 for a tick;
/// * half of the periods may be disturbed, as one stall spoils three of them; the rest still shows how the host keeps its promises;
/// * what is untimely where more than 1 % of a run was disturbed, as everywhere, may be the machine's doing: it is told and convicts nobody. No halt makes a
///   wrong count, or a wrong order where no instant decides it.
fn tolerance() -> Tolerance {
    Tolerance {
        processors: PROCESSORS,
        lateness: Span::from_millis(500),
        service_ppm: 50_000,
        service_each: Service::from_micros(20),
        kept_ppm: 800_000,
        service_kept_ppm: 980_000,
        unseen_ppm: 120_000,
        makes_up: true,
        disturbed_ppm: 500_000,
    }
}

/// The live host, and how much of what it ran was disturbed.
struct Watched {
    host: LiveHost,
    /// The share of the worst run, in parts per million.
    disturbed_ppm: u32,
}

impl Watched {
    fn new(processors: u16) -> Self {
        let config = LiveConfig::detect(processors).expect("so many processors may be used");
        let host = LiveHost::new(LiveConfig {
            witnesses: vec![Witness::new(ProcessorId(0))],
            ..config
        });
        Self {
            host,
            disturbed_ppm: 0,
        }
    }
}

impl Host for Watched {
    fn describe(&self) -> String {
        self.host.describe()
    }

    fn supply(&mut self, processors: u16) -> Result<Supply, HostError> {
        self.host.supply(processors)
    }

    fn run(&mut self, admitted: Admitted, length: Span) -> Result<RunRecord, HostError> {
        let record = self.host.run(admitted, length)?;
        let disturbed = RunFacts::of([&record]).disturbed_ppm;
        self.disturbed_ppm = self.disturbed_ppm.max(disturbed);
        Ok(record)
    }
}

/// A case by itself, once it is its turn.
fn trial(case: Case) -> Trial {
    Trial::test(format!("linux::{}", case.name), move || {
        let wanted = [Right::RealTime, Right::Processors(usize::from(PROCESSORS))];
        let Some(_turn) = rights::require(&wanted) else {
            return Ok(());
        };
        let mut host = Watched::new(case.processors);
        let Err(failure) = (case.run)(&mut host, &tolerance()) else {
            return Ok(());
        };
        match excuse(&failure, host.disturbed_ppm) {
            Some(excuse) => {
                rights::skip(&format!("{}: {excuse}", case.name));
                Ok(())
            }
            None => Err(failure.to_string().into()),
        }
    })
}

/// The same of a host that records more than happened: what goes on after an end is noticed.
fn haunted(ghost: Ghost) -> Trial {
    Trial::test(format!("noticed::{}", ghost.noticed), move || {
        let wanted = [Right::RealTime, Right::Processors(usize::from(PROCESSORS))];
        let Some(_turn) = rights::require(&wanted) else {
            return Ok(());
        };
        Ok(notices(ghost, &mut Watched::new(1), &tolerance())?)
    })
}

/// Why a failure tells nothing of the host, where so much was disturbed, in parts per million.
fn excuse(failure: &Failure, disturbed_ppm: u32) -> Option<String> {
    match failure {
        // So little was left; or nobody knows what was granted.
        Failure::Disturbed { .. }
        | Failure::Uncertain(_)
        | Failure::Host(HostError::Disturbed(_)) => Some(failure.to_string()),
        Failure::Untimely(wrong) if is_too_much(disturbed_ppm) => {
            let percent = disturbed_ppm / 10_000;
            Some(format!("{percent} % of it was disturbed: {wrong}"))
        }
        _ => None,
    }
}

/// Needs no rights.
fn halts_excuse_amounts_and_no_orders() -> Result<(), libtest_mimic::Failed> {
    let [untimely, wrong] = [Failure::Untimely, Failure::Wrong].map(|of| of("off".to_owned()));
    for (failure, disturbed_ppm, is_excused) in [
        (&untimely, 10_001, true),
        (&untimely, 10_000, false),
        (&wrong, 900_000, false),
    ] {
        let excuse = excuse(failure, disturbed_ppm);
        assert_eq!(excuse.is_some(), is_excused, "{disturbed_ppm}: {excuse:?}");
    }
    Ok(())
}

fn main() {
    let mut arguments = Arguments::from_args();
    // Cases would disturb each other.
    arguments.test_threads = Some(1);
    let excuses = Trial::test(
        "halts_excuse_amounts_and_no_orders",
        halts_excuse_amounts_and_no_orders,
    );
    let trials = cases(PROCESSORS).into_iter().map(trial);
    let trials = trials.chain(GHOSTS.map(haunted));
    libtest_mimic::run(&arguments, trials.chain([excuses]).collect()).exit();
}
