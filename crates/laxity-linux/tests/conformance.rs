//! The live host does what every host must do.
//!
//! Needs the rights of a live host and two processors; about half a minute. Everything is judged by order, counts and service, and
//! reservations apart from what the witness saw disturbed.

mod common;

use std::sync::atomic::{AtomicU32, Ordering};

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
    /// Something was granted in one of them.
    has_granted: bool,
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
            has_granted: false,
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
        self.has_granted |= record.usage.iter().any(|usage| usage.grant.is_some());
        Ok(record)
    }
}

/// So many cases in which something was granted told something of the host, and so many nothing, for what the machine did.
static TOLD: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];

/// Whether a quarter of them told something. By the tolerances a machine that halts twice a second leaves most; where fewer are left a host passes that is never
/// certain.
fn is_enough([told, untold]: [u32; 2]) -> bool {
    told * 3 >= untold
}

fn enough_of_them_told() -> Result<(), libtest_mimic::Failed> {
    let [told, untold] = [0, 1].map(|which: usize| TOLD[which].load(Ordering::Relaxed));
    if !is_enough([told, untold]) {
        let all = told + untold;
        rights::lacks(&format!(
            "{untold} of {all} cases with a grant told nothing"
        ));
    }
    Ok(())
}

/// A case by itself, once it is its turn.
fn trial(case: Case) -> Trial {
    Trial::test(format!("linux::{}", case.name), move || {
        let wanted = [Right::RealTime, Right::Processors(usize::from(PROCESSORS))];
        let Some(_turn) = rights::require(&wanted) else {
            return Ok(());
        };
        let mut host = Watched::new(case.processors);
        let count = |which: usize| TOLD[which].fetch_add(1, Ordering::Relaxed);
        let Err(failure) = (case.run)(&mut host, &tolerance()) else {
            host.has_granted.then(|| count(0));
            return Ok(());
        };
        match excuse(&failure, host.disturbed_ppm) {
            Some(excuse) => {
                // What is not even begun for what the machine does is slots.
                let is_of_grants = host.has_granted || matches!(failure, Failure::Host(_));
                is_of_grants.then(|| count(1));
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

/// What a live host says of a grant for what a machine may do that no witness sees as a halt: it held the processor of those who look, or one with slots.
const MAY_BE_THE_MACHINE: [&str; 3] = [
    "nobody looked for ",
    "nobody was found who could",
    "somebody stopped laxity itself",
];

/// Why a failure tells nothing of the host, where so much was disturbed, in parts per million.
fn excuse(failure: &Failure, disturbed_ppm: u32) -> Option<String> {
    let is_said = |why: &String| MAY_BE_THE_MACHINE.iter().any(|part| why.contains(part));
    match failure {
        // So little was left, of what the witness saw disturbed; or it could not even be begun.
        Failure::Disturbed { periods: 1.., .. } if disturbed_ppm > 0 => Some(failure.to_string()),
        // That another laxity gives slots is the doing of one.
        Failure::Host(HostError::Disturbed(why)) if why.contains("is disturbed") => {
            Some(failure.to_string())
        }
        // Nobody knows what was granted.
        Failure::Uncertain(why) if is_said(why) || is_too_much(disturbed_ppm) => {
            Some(failure.to_string())
        }
        Failure::Untimely(wrong) if is_too_much(disturbed_ppm) => {
            let percent = disturbed_ppm / 10_000;
            Some(format!("{percent} % of it was disturbed: {wrong}"))
        }
        _ => None,
    }
}

/// Needs no rights.
fn halts_excuse_amounts_and_no_orders() -> Result<(), libtest_mimic::Failed> {
    let off = || "off".to_owned();
    let held = "who outranks the slot may have gone unseen: nobody looked for 120ms".to_owned();
    let host = |why: &str| Failure::Host(HostError::Disturbed(why.to_owned()));
    let disturbed = |periods| Failure::Disturbed {
        disturbed: periods,
        periods,
    };
    for (failure, disturbed_ppm, is_excused) in [
        (Failure::Untimely(off()), 10_001, true),
        (Failure::Untimely(off()), 10_000, false),
        (Failure::Wrong(off()), 900_000, false),
        (Failure::Uncertain(off()), 10_001, true),
        (Failure::Uncertain(off()), 10_000, false),
        (Failure::Uncertain(held), 0, true),
        (disturbed(60), 1, true),
        (disturbed(60), 0, false),
        (disturbed(0), 900_000, false),
        (
            host("processor 0 is disturbed: it cannot be measured"),
            0,
            true,
        ),
        (
            host("there are slots already, of another laxity"),
            900_000,
            false,
        ),
    ] {
        let excuse = excuse(&failure, disturbed_ppm);
        assert_eq!(excuse.is_some(), is_excused, "{failure}, {disturbed_ppm}");
    }
    let enough = [[0, 0], [1, 3], [1, 4], [0, 1]].map(is_enough);
    assert_eq!(enough, [true, true, false, false]);
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
    // After all of them, which come one after the other.
    let enough = Trial::test("enough_of_them_told", enough_of_them_told);
    libtest_mimic::run(&arguments, trials.chain([excuses, enough]).collect()).exit();
}
