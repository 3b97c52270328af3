//! Programs that are wrong are told so.

mod common;

use common::*;
use laxity_model::{
    Context, Host, HostError, InterruptLevel, Mark, Outside, Placement, ProcessorId, Program,
    Reservation, Scheduling, SemaphoreId, Service, Span, Step,
};
use laxity_sim::{Profile, Twin};

fn outcome(program: Program) -> Result<(), HostError> {
    let record = Twin::new(Profile::IDEAL).admit_and_run(program, Span::from_millis(10));
    record.map(|_| ())
}

fn is_bad(program: Program, names: &str) {
    match outcome(program) {
        Err(HostError::BadProgram(text)) => assert!(text.contains(names), "{text}"),
        other => panic!("not a bad program: {other:?}"),
    }
}

fn one(placement: Placement, steps: &[Step]) -> Program {
    let mut program = Program::new(1);
    program.add("faulty", CPU, placement, script(steps));
    program
}

#[test]
fn ids_that_do_not_exist_are_named() {
    let nowhere = SemaphoreId(3);
    is_bad(one(thread(8), &[Step::Wait(nowhere)]), "port 3");
    is_bad(one(thread(8), &[Step::WaitUntil(nowhere, ms(1))]), "port 3");
    let mut program = Program::new(1);
    program.add(
        "faulty",
        CPU,
        thread(8),
        move |context: &mut dyn Context| {
            context.signal(nowhere);
            Step::Finish
        },
    );
    is_bad(program, "`faulty`");
    let mut program = Program::new(1);
    program.add("faulty", CPU, thread(8), |context: &mut dyn Context| {
        context.mark(Mark(5), [0; 2]);
        Step::Finish
    });
    is_bad(program, "mark 5");
    let mut program = Program::new(1);
    program.add("faulty", ProcessorId(1), thread(8), spinner());
    is_bad(program, "processor 1");
    is_bad(Program::new(0), "processor");
    is_bad(
        one(Placement::Interrupt(InterruptLevel(32)), &[]),
        "level 32",
    );
}

#[test]
fn a_deferred_call_does_not_wait_for_time() {
    is_bad(
        one(Placement::Deferred, &[Step::SleepUntil(ms(1))]),
        "deferred",
    );
    let mut program = Program::new(1);
    let semaphore = program.semaphore(0);
    let body = script(&[Step::WaitUntil(semaphore, ms(1))]);
    program.add("faulty", CPU, Placement::Deferred, body);
    is_bad(program, "deferred");
}

#[test]
fn only_threads_hold_reservations_and_only_declared_ones_begin() {
    let mut program = Program::new(1);
    let half = Reservation::new(Service::from_millis(1), Span::from_millis(2)).expect("possible");
    let mut holder = reserved(8, half, Outside::Confined, spinner());
    holder.placement = Placement::Deferred;
    program.push(holder);
    is_bad(program, "only threads");
    is_bad(one(thread(8), &[Step::BeginReservation]), "declares none");
    is_bad(one(thread(8), &[Step::EndReservation]), "declares none");
}

#[test]
fn time_that_stands_still_is_noticed_wherever_it_does() {
    for placement in [
        thread(8),
        Placement::Deferred,
        Placement::External,
        Placement::Interrupt(InterruptLevel(1)),
    ] {
        for step in [Step::Yield, Step::Charge(Service::ZERO)] {
            let mut program = Program::new(1);
            program.add("faulty", CPU, placement, move |_: &mut dyn Context| step);
            is_bad(program, "time stands still");
        }
    }
    let mut program = Program::new(1);
    program.add("faulty", CPU, thread(8), |_: &mut dyn Context| {
        Step::SleepUntil(ms(0))
    });
    is_bad(program, "time stands still");
}

#[test]
fn foreign_threads_are_not_here() {
    let refused = outcome(one(Placement::Linux(Scheduling::Fifo(50)), &[]));
    assert!(matches!(refused, Err(HostError::CannotRun(text)) if text.contains("`faulty`")));
}
