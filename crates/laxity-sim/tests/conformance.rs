//! The twin does what every host must do; and what only a twin can promise: the same again, to the byte.

use laxity_model::conformance::{Case, Failure, Tolerance, cases};
use laxity_model::{Host, HostError, Program, RunRecord, Service, Span};
use laxity_sim::{Profile, Twin};

/// The twin has as many processors as a program asks for.
const PROCESSORS: u16 = 2;

/// Nothing may differ from what is written.
fn ideal() -> Tolerance {
    Tolerance {
        slots: Twin::new(Profile::IDEAL).plan_costs(),
        ..Tolerance::NONE
    }
}

/// The study's machine: clock ticks, switches and interrupts take their time, so that threads are late by a tick and slots lack what is taken
/// from them: in 2 ms two ticks of 2 µs and a switch, in 0.1 ms the same.
fn win2000() -> Tolerance {
    Tolerance {
        lateness: Span::from_millis(1),
        service_ppm: 5_000,
        service_each: Service::from_micros(10),
        slots: Twin::new(Profile::WIN2000_PII450).plan_costs(),
        ..Tolerance::NONE
    }
}

fn failures(profile: Profile, tolerance: &Tolerance) -> Vec<String> {
    let mut host = Twin::new(profile);
    let mut failed = |case: Case| {
        let failure = (case.run)(&mut host, tolerance).err()?;
        Some(format!("{} ({}): {failure}", case.name, case.shows))
    };
    cases(PROCESSORS)
        .into_iter()
        .filter_map(&mut failed)
        .collect()
}

#[test]
fn the_suite_is_whole() {
    let mut names: Vec<&str> = cases(u16::MAX).iter().map(|case| case.name).collect();
    assert!(names.len() >= 20, "{} cases", names.len());
    assert!(cases(1).len() < names.len());
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), cases(u16::MAX).len(), "names are unique");
}

#[test]
fn the_ideal_machine_conforms_without_tolerance() {
    let failures = failures(Profile::IDEAL, &ideal());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn the_machine_of_the_study_conforms() {
    let failures = failures(Profile::WIN2000_PII450, &win2000());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A host that keeps what another host records.
struct Recorder {
    twin: Twin,
    records: Vec<Result<RunRecord, HostError>>,
}

impl Host for Recorder {
    fn describe(&self) -> String {
        self.twin.describe()
    }

    fn run(&mut self, program: Program, length: Span) -> Result<RunRecord, HostError> {
        let record = self.twin.run(program, length);
        self.records.push(record.clone());
        record
    }
}

#[test]
fn the_same_program_twice_gives_equal_records() {
    let records_of = |case: &Case| {
        let twin = Twin::new(Profile::WIN2000_PII450);
        let records = Vec::new();
        let mut recorder = Recorder { twin, records };
        // Whether it passes is asked elsewhere.
        let _ = (case.run)(&mut recorder, &win2000());
        recorder.records
    };
    for case in cases(PROCESSORS) {
        let records = records_of(&case);
        assert!(!records.is_empty(), "{} ran nothing", case.name);
        assert!(
            records == records_of(&case),
            "{} differs the second time",
            case.name
        );
    }
}

/// A host that does nothing at all.
struct Idle;

impl Host for Idle {
    fn describe(&self) -> String {
        "idle".into()
    }

    fn run(&mut self, _: Program, _: Span) -> Result<RunRecord, HostError> {
        Err(HostError::CannotRun("it never does".into()))
    }
}

#[test]
fn a_host_that_runs_nothing_passes_no_case() {
    for case in cases(u16::MAX) {
        let result = (case.run)(&mut Idle, &Tolerance::NONE);
        assert!(
            matches!(result, Err(Failure::Host(_) | Failure::Wrong(_))),
            "{}",
            case.name
        );
    }
}
