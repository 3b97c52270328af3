//! Cases on this machine. Handlers and deferred calls are threads here, above all others, and no event tells of preemption; what the trace
//! can still tell is enough for culprits that are part of the program.

use laxity_linux::{LiveConfig, LiveHost, WitnessConfig};
use laxity_model::verify::attribution::{Declared, Rules};
use laxity_model::{Host, HostError, Priority, ProcessorId, Program, Service, Span};

use super::case::{Case, Kind, PERIOD, Part, Served};
use super::trial::{Staged, Verdict, judge, stage};
use laxity_lab::bench::bodies::Times;
use laxity_lab::runner::RunError;

/// How long each run is.
const LENGTH: Span = Span::from_secs(4);
/// What switches and ticks take from a job here, and the machine's host without the witness seeing it.
const SLACK: Span = Span::from_micros(300);

/// A case that was run here.
pub struct Tried {
    /// Which.
    pub case: Case,
    /// What the trace says.
    pub verdict: Verdict,
    /// Who is who.
    pub names: Vec<String>,
    /// The host.
    pub host: String,
}

/// A thread above the victim that takes over now and then; a device that keeps interrupts off; and nobody.
fn cases() -> [Case; 3] {
    let priority = Priority::new(28).unwrap_or(Priority::HIGHEST);
    let rare = Times::steady(Span::from_millis(211), Span::from_millis(450));
    let rogue = Part::Thread {
        priority,
        times: rare,
        work: Service::from_millis(25),
        declared: Declared::rank(priority),
    };
    let holds = Part::Device {
        level: 9,
        times: rare,
        handler: Service::from_millis(35),
        deferred: None,
    };
    let innocents = vec![
        Part::Device {
            level: 7,
            times: Times::steady(Span::from_millis(3), Span::from_micros(3_700)),
            handler: Service::from_micros(30),
            deferred: None,
        },
        Part::Spinner {
            priority: Priority::NORMAL,
        },
    ];
    let case = |kind, culprits| Case {
        kind,
        served: Served::Thread,
        innocents: innocents.clone(),
        culprits,
        overrun: None,
        victim: Times::steady(Span::from_millis(5), PERIOD),
    };
    [
        case(Kind::Rogue, vec![rogue]),
        case(Kind::InterruptsOff, vec![holds]),
        case(Kind::Nothing, Vec::new()),
    ]
}

/// Runs the cases, one after the other, each once: nothing of them is drawn.
///
/// # Errors
///
/// [`RunError::CannotRun`] without the rights for real-time threads, and what goes wrong on the way.
pub fn run() -> Result<Vec<Tried>, RunError> {
    let cannot = |error: HostError| RunError::CannotRun(error.to_string());
    let mut config = LiveConfig::detect(1).map_err(cannot)?;
    config.witness = Some(WitnessConfig::new(ProcessorId(0)));
    let mut host = LiveHost::new(config);
    cases()
        .into_iter()
        .map(|case| try_case(&mut host, case).map_err(cannot))
        .collect()
}

fn try_case(host: &mut LiveHost, case: Case) -> Result<Tried, HostError> {
    let everybody: Vec<usize> = (0..case.culprits.len()).collect();
    let mut staged = stage(&case, &everybody);
    let program = std::mem::replace(&mut staged.program, Program::new(1));
    let record = host.run(program, LENGTH)?;
    let rules = Rules {
        slack: SLACK,
        ..Rules::PC99
    };
    let verdict = judge(&record, &staged, rules);
    let Staged { names, .. } = staged;
    Ok(Tried {
        case,
        verdict,
        names,
        host: host.describe(),
    })
}
