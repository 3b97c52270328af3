//! Programs that are wrong: every host says so, and blames the program.

use crate::reservations::{asker, by_slots, reservation};
use crate::stage::{CPU, DEVICE, HIGH, LOW, NEVER, counted, done_or, level};
use crate::{Failure, Result, Tolerance, ensure};
use laxity_model::executor::edf::Edf;
use laxity_model::executor::fcfs::Fcfs;
use laxity_model::policy::Rank;
use laxity_model::policy::raise::Highest;
use laxity_model::{
    ActivityId, Context, ExecutorId, Host, HostError, Instant, InterruptLevel, Mark, Placement,
    ProcessorId, Program, SemaphoreId, Service, Span, Step, TimeConstraint,
};

fn is_bad(host: &mut dyn Host, what: &str, program: Program) -> Result {
    match host.admit_and_run(program, NEVER) {
        Err(HostError::BadProgram(reason)) => {
            ensure!(!reason.is_empty(), "{what}: no reason given");
            Ok(())
        }
        Err(other) => Err(Failure::Wrong(format!("{what}: {other}"))),
        Ok(record) => Err(Failure::Wrong(format!(
            "{what}: it ran, and ended by {:?}",
            record.ended_by
        ))),
    }
}

/// A program of one activity, whose first step is the mistake.
fn one(
    host: &mut dyn Host,
    what: &str,
    placement: Placement,
    mut mistake: impl FnMut(&mut dyn Context) -> Step + Send + 'static,
) -> Result {
    let mut program = Program::new(1);
    let body = counted(move |calls, context| match calls {
        0 => mistake(context),
        _ => Step::Finish,
    });
    program.add("mistaken", CPU, placement, body);
    is_bad(host, what, program)
}

/// An activity on a processor beyond the program's own is a bad program.
pub(crate) fn no_such_processor(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut program = Program::new(1);
    let elsewhere = counted(|_, _| Step::Finish);
    program.add("elsewhere", ProcessorId(1), LOW, elsewhere);
    is_bad(host, "processor 1 of 1", program)?;
    let mut program = Program::new(0);
    program.add("nowhere", CPU, LOW, counted(|_, _| Step::Finish));
    is_bad(host, "processor 0 of 0", program)
}

/// There are 32 interrupt levels.
pub(crate) fn no_such_level(host: &mut dyn Host, _: &Tolerance) -> Result {
    let placement = Placement::Interrupt(InterruptLevel(32));
    one(host, "interrupt level 32", placement, |_| Step::Finish)
}

/// Interrupt handlers, deferred calls and external activities hold no reservations.
pub(crate) fn reservation_of_no_thread(host: &mut dyn Host, _: &Tolerance) -> Result {
    for placement in [DEVICE, Placement::Deferred, Placement::External] {
        let mut program = Program::new(1);
        let request = by_slots(reservation([1_000, 10_000])?);
        program.push(asker(placement, request, counted(|_, _| Step::Finish)));
        is_bad(host, &format!("a reservation in {placement:?}"), program)?;
    }
    Ok(())
}

/// An executor that is absent, elsewhere, or takes a reservation is a bad program.
pub(crate) fn no_such_executor(host: &mut dyn Host, _: &Tolerance) -> Result {
    let on = |executor| Placement::On {
        executor,
        task: None,
    };
    one(host, "executor 3 of 0", on(ExecutorId(3)), |_| Step::Finish)?;
    let with_executor = || {
        let mut program = Program::new(1);
        let executor = program.executor("executor", (CPU, LOW), None, Fcfs::new());
        (program, executor)
    };
    let (mut program, executor) = with_executor();
    program.activities[0].placement = on(executor);
    is_bad(host, "an executor on itself", program)?;
    let (mut program, executor) = with_executor();
    let request = by_slots(reservation([1_000, 10_000])?);
    let finish = counted(|_, _| Step::Finish);
    program.push(asker(on(executor), request, finish));
    is_bad(host, "a reservation on an executor", program)
}

/// Waiting for it, with and without a time-out, and signalling it end the run.
pub(crate) fn no_such_semaphore(host: &mut dyn Host, _: &Tolerance) -> Result {
    const NONE: SemaphoreId = SemaphoreId(7);
    one(host, "a wait for semaphore 7 of 0", LOW, |_| {
        Step::Wait(NONE)
    })?;
    one(host, "a timed wait for semaphore 7 of 0", LOW, |context| {
        Step::WaitUntil(NONE, context.now() + Span::from_millis(1))
    })?;
    one(host, "a signal to semaphore 7 of 0", LOW, |context| {
        context.signal(NONE);
        Step::Burn(Service::from_millis(5))
    })
}

/// Recording a mark that the program does not name ends the run.
pub(crate) fn no_such_mark(host: &mut dyn Host, _: &Tolerance) -> Result {
    one(host, "mark 3 of 0", LOW, |context| {
        context.mark(Mark(3), [0; 2]);
        Step::Burn(Service::from_millis(5))
    })
}

/// A deferred call that sleeps, or waits with a time-out, ends the run.
pub(crate) fn deferred_sleeps(host: &mut dyn Host, _: &Tolerance) -> Result {
    let later = |context: &mut dyn Context| context.now() + Span::from_millis(1);
    let deferred = Placement::Deferred;
    one(host, "a sleeping deferred call", deferred, move |context| {
        Step::SleepUntil(later(context))
    })?;
    one(host, "a deferred sleep into the past", deferred, |_| {
        Step::SleepUntil(Instant::ZERO)
    })?;
    let mut program = Program::new(1);
    let semaphore = program.semaphore(0);
    let body = counted(move |calls, context| {
        done_or(calls > 0, Step::WaitUntil(semaphore, later(context)))
    });
    program.add("mistaken", CPU, deferred, body);
    is_bad(host, "a deferred call with a time-out", program)
}

/// Beginning or ending a reservation that an activity does not declare ends the run.
pub(crate) fn undeclared_reservation(host: &mut dyn Host, _: &Tolerance) -> Result {
    one(host, "a beginning", LOW, |_| Step::BeginReservation)?;
    one(host, "an end", LOW, |_| Step::EndReservation)?;
    let tenth = reservation([1_000, 10_000])?;
    one(host, "a change", LOW, move |_| {
        Step::ChangeReservation(tenth)
    })
}

/// Asking for a time constraint without a reservation or a declaration ends the run.
pub(crate) fn undeclared_constraint(host: &mut dyn Host, _: &Tolerance) -> Result {
    one(host, "a time constraint", LOW, |context| {
        let deadline = context.now() + Span::from_millis(10);
        TimeConstraint::new(context.now(), deadline, Service::from_millis(1))
            .map_or(Step::Finish, Step::BeginConstraint)
    })
}

/// Raising one that is not declared to be raised, or not like this, ends the run.
pub(crate) fn undeclared_raise(host: &mut dyn Host, _: &Tolerance) -> Result {
    let high = Rank::Priority(level(24));
    for (who, what) in [(0, "a raise"), (9, "a raise of activity 9 of 1")] {
        one(host, what, LOW, move |context| {
            context.raise(ActivityId(who), high, context.now());
            Step::Burn(Service::from_millis(5))
        })?;
    }
    let mut program = Program::new(1);
    let body = counted(|calls, context| {
        if calls == 0 {
            context.raise(ActivityId(0), Rank::Deadline(Instant::MAX), context.now());
        }
        done_or(calls > 0, Step::Burn(Service::from_millis(5)))
    });
    let who = program.add("mistaken", CPU, LOW, body);
    program.declare_raise(who, Highest::Priority(level(24)));
    is_bad(host, "a thread with a deadline", program)
}

/// Threads of the 32 priorities are raised by a priority, and only up; what is on an executor that goes by deadlines is by a deadline; nobody else is.
pub(crate) fn no_such_raise(host: &mut dyn Host, _: &Tolerance) -> Result {
    let [high, low] = [24, 19].map(|priority| Highest::Priority(level(priority)));
    let soon = Highest::Deadline(Span::from_millis(5));
    let finish = || counted(|_, _| Step::Finish);
    for (placement, highest) in [
        (DEVICE, high),
        (Placement::Deferred, high),
        (Placement::External, high),
        (LOW, low),
        (HIGH, soon),
    ] {
        let mut program = Program::new(1);
        let who = program.add("mistaken", CPU, placement, finish());
        program.declare_raise(who, highest);
        is_bad(host, &format!("{highest:?} in {placement:?}"), program)?;
    }
    for (is_edf, highest) in [(false, soon), (true, high)] {
        let mut program = Program::new(1);
        let at = (CPU, LOW);
        let executor = match is_edf {
            true => program.executor("executor", at, None, Edf::new()),
            false => program.executor("executor", at, None, Fcfs::new()),
        };
        let placement = Placement::On {
            executor,
            task: None,
        };
        let who = program.add("mistaken", CPU, placement, finish());
        program.declare_raise(who, highest);
        is_bad(host, &format!("{highest:?} on an executor"), program)?;
    }
    let mut program = Program::new(1);
    let request = by_slots(reservation([1_000, 10_000])?);
    let who = program.push(asker(LOW, request, finish()));
    program.declare_raise(who, high);
    is_bad(host, "the holder of a reservation", program)?;
    let mut program = Program::new(1);
    program.add("bystander", CPU, LOW, finish());
    program.declare_raise(ActivityId(3), high);
    is_bad(host, "activity 3 of 1", program)
}
