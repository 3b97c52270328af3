//! Machines that are taken from instant to instant do what they do alone.

mod common;

use common::*;
use laxity_model::enforce::machine::Machine as Measured;
use laxity_model::{
    Context, Host, HostError, Instant, InterruptLevel, Placement, Program, RunEnd, RunRecord,
    Service, Span, Step,
};
use laxity_sim::{Machine, Profile, Twin};
use proptest::prelude::*;

const LENGTH: Span = Span::from_millis(200);

/// A device that signals a thread every period, beside a spinner of the same priority.
fn program(period_us: u64, work_us: u64) -> Program {
    let mut program = Program::new(1);
    let line = program.semaphore(0);
    let mut release = Instant::ZERO;
    let device = move |context: &mut dyn Context| {
        context.signal(line);
        release += Span::from_micros(period_us);
        Step::SleepUntil(release)
    };
    let level = Placement::Interrupt(InterruptLevel(7));
    program.add("device", CPU, level, device);
    let mut working = true;
    let worker = move |_: &mut dyn Context| {
        working = !working;
        if working {
            Step::Charge(Service::from_micros(work_us))
        } else {
            Step::Wait(line)
        }
    };
    program.add("worker", CPU, thread(8), worker);
    program.add("spinner", CPU, thread(8), spinner());
    program
}

fn twins() -> [Twin; 3] {
    let measured = Measured::without_costs(250);
    [
        Twin::new(Profile::WIN2000_PII450),
        Twin::new(Profile::IDEAL),
        Twin::linux(&measured, 3),
    ]
}

/// Whoever is due first goes first, to the end of that instant.
fn in_turn(mut machines: Vec<Machine>) -> Result<Vec<RunRecord>, HostError> {
    let nanosecond = Span::from_nanos(1);
    while let Some(first) = machines.iter().filter_map(Machine::next_due).min() {
        for machine in &mut machines {
            machine.advance(first + nanosecond)?;
        }
    }
    machines.into_iter().map(Machine::finish).collect()
}

fn load(mut twin: Twin, program: Program) -> Result<Machine, HostError> {
    let admitted = twin.admit(program)?;
    twin.load(admitted, LENGTH)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Stepped in turn on one calendar, machines of all kinds leave the records that they leave alone.
    #[test]
    fn machines_on_one_calendar_do_what_they_do_alone(
        loads in prop::collection::vec((300..9_000_u64, 10..5_000_u64), 2..5),
    ) {
        let pairs = || loads.iter().flat_map(|load| twins().map(|twin| (twin, *load)));
        let alone: Result<Vec<RunRecord>, HostError> = pairs()
            .map(|(mut twin, (period, work))| twin.admit_and_run(program(period, work), LENGTH))
            .collect();
        let machines: Result<Vec<Machine>, HostError> = pairs()
            .map(|(twin, (period, work))| load(twin, program(period, work)))
            .collect();
        prop_assert_eq!(in_turn(machines?)?, alone?);
    }
}

#[test]
fn a_machine_goes_as_far_as_it_is_told_and_no_further_than_its_end() -> Result<(), HostError> {
    for twin in twins() {
        let mut machine = load(twin, program(1_000, 100))?;
        let begun = machine.next_due().expect("the program begins");
        let middle = begun + Span::from_millis(50);
        machine.advance(middle)?;
        assert!(machine.next_due() >= Some(middle));
        machine.advance(begun)?;
        assert!(machine.next_due() >= Some(middle), "time does not go back");
        machine.advance(Instant::MAX)?;
        assert_eq!(machine.next_due(), None);
        let record = machine.finish()?;
        assert_eq!(record.ended_by, RunEnd::Length);
        assert_eq!(record.end - record.start, LENGTH);
    }
    Ok(())
}

#[test]
fn what_a_body_did_wrong_ends_its_machine_where_it_happened() {
    let mut wrong = program(1_000, 100);
    wrong.add("stray", CPU, thread(9), |context: &mut dyn Context| {
        if context.now() < Instant::from_millis(20) {
            return Step::SleepUntil(Instant::from_millis(20));
        }
        Step::Wait(laxity_model::SemaphoreId(7))
    });
    let machine = load(Twin::new(Profile::IDEAL), wrong);
    let mut machine = machine.expect("nothing is wrong yet");
    assert_eq!(machine.advance(Instant::from_millis(20)), Ok(()));
    for until in [21, 22] {
        let error = machine.advance(Instant::from_millis(until));
        assert!(matches!(error, Err(HostError::BadProgram(_))), "{error:?}");
    }
    assert!(machine.finish().is_err());
}
