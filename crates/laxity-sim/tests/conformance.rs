//! The twin does what every host must do; and what only a twin can promise: the same again, to the byte.

mod common;

use laxity_conformance::{Case, Failure, GHOSTS, Tolerance, cases, notices};
use laxity_model::admission::{Admitted, Supply};
use laxity_model::{Host, HostError, Program, RunRecord, Service, Span};
use laxity_sim::{Profile, Twin};
use libtest_mimic::{Arguments, Trial};

/// The twin has as many processors as a program asks for.
const PROCESSORS: u16 = 2;

/// The study's machine: clock ticks, switches and interrupts take their time, so that threads are late by a tick and slots lack what is taken
/// from them: in 2 ms two ticks of 2 µs and a switch, in 0.1 ms the same.
fn win2000() -> Tolerance {
    Tolerance {
        lateness: Span::from_millis(1),
        service_ppm: 5_000,
        service_each: Service::from_micros(10),
        service_kept_ppm: 980_000,
        ..Tolerance::NONE
    }
}

/// A measured machine under Linux: what is asked of the live host but for what only a real machine's disturbances excuse. A slot is kept within
/// 5 %: it is prolonged by what its holder lacks and by a 64th, and its two edges vary by microseconds.
fn linux() -> Tolerance {
    Tolerance {
        processors: PROCESSORS,
        lateness: Span::from_millis(1),
        service_ppm: 50_000,
        service_each: Service::from_micros(20),
        kept_ppm: 980_000,
        service_kept_ppm: 980_000,
        makes_up: true,
        ..Tolerance::NONE
    }
}

fn the_suite_is_whole() {
    let mut names: Vec<&str> = cases(u16::MAX).iter().map(|case| case.name).collect();
    assert!(names.len() >= 20, "{} cases", names.len());
    assert!(cases(1).len() < names.len());
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), cases(u16::MAX).len(), "names are unique");
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

    fn supply(&mut self, processors: u16) -> Result<Supply, HostError> {
        self.twin.supply(processors)
    }

    fn run(&mut self, admitted: Admitted, length: Span) -> Result<RunRecord, HostError> {
        self.twin.run(admitted, length)
    }

    fn admit_and_run(&mut self, program: Program, length: Span) -> Result<RunRecord, HostError> {
        let record = self.twin.admit_and_run(program, length);
        self.records.push(record.clone());
        record
    }
}

fn the_same_program_twice_gives_equal_records() {
    let records_of = |twin: &Twin, tolerance: &Tolerance, case: &Case| {
        let (twin, records) = (twin.clone(), Vec::new());
        let mut recorder = Recorder { twin, records };
        // Whether it passes is asked elsewhere.
        let _ = (case.run)(&mut recorder, tolerance);
        recorder.records
    };
    let twins = [
        (Twin::new(Profile::WIN2000_PII450), win2000()),
        (Twin::linux(&common::linux_machine(), 1), linux()),
    ];
    for (twin, tolerance) in twins {
        for case in cases(PROCESSORS) {
            let records = records_of(&twin, &tolerance, &case);
            assert!(!records.is_empty(), "{} ran nothing", case.name);
            assert!(
                records == records_of(&twin, &tolerance, &case),
                "{} differs the second time",
                case.name
            );
        }
    }
}

/// A host that does nothing at all.
struct Idle;

impl Host for Idle {
    fn describe(&self) -> String {
        "idle".into()
    }

    fn supply(&mut self, _: u16) -> Result<Supply, HostError> {
        Err(HostError::CannotRun("it has nothing".into()))
    }

    fn run(&mut self, _: Admitted, _: Span) -> Result<RunRecord, HostError> {
        Err(HostError::CannotRun("it never does".into()))
    }
}

fn a_host_that_runs_nothing_passes_no_case() {
    for case in cases(u16::MAX) {
        let result = (case.run)(&mut Idle, &Tolerance::NONE);
        assert!(
            matches!(
                result,
                Err(Failure::Host(_) | Failure::Wrong(_) | Failure::Untimely(_))
            ),
            "{}",
            case.name
        );
    }
}

fn who_goes_on_after_the_end_is_noticed() {
    for mut host in [
        Twin::new(Profile::WIN2000_PII450),
        Twin::linux(&common::linux_machine(), 1),
    ] {
        for ghost in GHOSTS {
            notices(ghost, &mut host, &linux()).expect("the case notices");
        }
    }
}

/// Each case on each machine, as a test of its own: `MACHINE::CASE`.
fn trials_of(case: Case) -> [Trial; 3] {
    let trial = |machine: &str, hosts: Vec<Twin>, tolerance: Tolerance| {
        Trial::test(format!("{machine}::{}", case.name), move || {
            for (seed, mut host) in (1..).zip(hosts) {
                (case.run)(&mut host, &tolerance)
                    .map_err(|failure| format!("seed {seed}: {failure}"))?;
            }
            Ok(())
        })
    };
    let linux_seeds = (1..=3).map(|seed| Twin::linux(&common::linux_machine(), seed));
    [
        trial("ideal", vec![Twin::new(Profile::IDEAL)], Tolerance::NONE),
        trial("study", vec![Twin::new(Profile::WIN2000_PII450)], win2000()),
        trial("linux", linux_seeds.collect(), linux()),
    ]
}

fn main() {
    let alone: [(&str, fn()); 4] = [
        (
            "who_goes_on_after_the_end_is_noticed",
            who_goes_on_after_the_end_is_noticed,
        ),
        ("the_suite_is_whole", the_suite_is_whole),
        (
            "the_same_program_twice_gives_equal_records",
            the_same_program_twice_gives_equal_records,
        ),
        (
            "a_host_that_runs_nothing_passes_no_case",
            a_host_that_runs_nothing_passes_no_case,
        ),
    ];
    let alone = alone.map(|(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    });
    let trials = cases(PROCESSORS).into_iter().flat_map(trials_of);
    libtest_mimic::run(&Arguments::from_args(), trials.chain(alone).collect()).exit();
}
