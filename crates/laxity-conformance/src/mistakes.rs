//! Programs that are wrong: every host says so, and blames the program.

use crate::stage::{CPU, DEVICE, LOW, NEVER, ORDINARY, counted};
use crate::{Case, Failure, Tolerance, ensure};
use laxity_model::executor::fcfs::Fcfs;
use laxity_model::{
    Activity, Context, Enforcer, ExecutorId, Host, HostError, Instant, InterruptLevel, Mark,
    Placement, ProcessorId, Program, Reservation, ReservationRequest, SemaphoreId, Service, Span,
    Step, TimeConstraint,
};

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "mistake-a-processor-that-is-not-there",
        shows: "an activity on a processor beyond the program's own is a bad program",
        processors: 1,
        run: no_such_processor,
    },
    Case {
        name: "mistake-an-interrupt-level-beyond-the-highest",
        shows: "there are 32 interrupt levels",
        processors: 1,
        run: no_such_level,
    },
    Case {
        name: "mistake-a-reservation-outside-a-thread",
        shows: "interrupt handlers, deferred calls and external activities hold no reservations",
        processors: 1,
        run: reservation_of_no_thread,
    },
    Case {
        name: "mistake-a-place-on-no-executor",
        shows: "an activity on an executor that is not there, on another processor, or with a reservation is a bad program",
        processors: 1,
        run: no_such_executor,
    },
    Case {
        name: "mistake-a-semaphore-that-is-not-there",
        shows: "waiting for it, with and without a time-out, and signalling it end the run",
        processors: 1,
        run: no_such_semaphore,
    },
    Case {
        name: "mistake-a-mark-without-a-name",
        shows: "recording a mark that the program does not name ends the run",
        processors: 1,
        run: no_such_mark,
    },
    Case {
        name: "mistake-a-deferred-call-that-waits-for-time",
        shows: "a deferred call that sleeps, or waits with a time-out, ends the run",
        processors: 1,
        run: deferred_sleeps,
    },
    Case {
        name: "mistake-a-reservation-that-was-not-declared",
        shows: "beginning or ending a reservation that an activity does not declare ends the run",
        processors: 1,
        run: undeclared_reservation,
    },
    Case {
        name: "mistake-a-time-constraint-that-was-not-declared",
        shows: "asking for a time constraint with neither a reservation nor a word of it before ends the run",
        processors: 1,
        run: undeclared_constraint,
    },
];

fn is_bad(host: &mut dyn Host, what: &str, program: Program) -> Result<(), Failure> {
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
) -> Result<(), Failure> {
    let mut program = Program::new(1);
    let body = counted(move |calls, context| match calls {
        0 => mistake(context),
        _ => Step::Finish,
    });
    program.add("mistaken", CPU, placement, body);
    is_bad(host, what, program)
}

fn no_such_processor(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
    let mut program = Program::new(1);
    program.add(
        "elsewhere",
        ProcessorId(1),
        LOW,
        counted(|_, _| Step::Finish),
    );
    is_bad(host, "processor 1 of 1", program)?;
    let mut program = Program::new(0);
    program.add("nowhere", CPU, LOW, counted(|_, _| Step::Finish));
    is_bad(host, "processor 0 of 0", program)
}

fn no_such_level(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
    let placement = Placement::Interrupt(InterruptLevel(32));
    one(host, "interrupt level 32", placement, |_| Step::Finish)
}

fn reservation_of_no_thread(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
    for placement in [DEVICE, Placement::Deferred, Placement::External] {
        let (service, period) = (Service::from_millis(1), Span::from_millis(10));
        let Ok(reservation) = Reservation::new(service, period) else {
            ensure!(false, "{service} of {period} is a reservation");
            continue;
        };
        let mut program = Program::new(1);
        program.push(Activity {
            name: "holder".into(),
            processor: CPU,
            placement,
            reservation: Some(ReservationRequest {
                reservation,
                enforcer: Enforcer::Slots,
                outside: ORDINARY,
                begins_at_start: true,
            }),
            body: Box::new(counted(|_, _| Step::Finish)),
        });
        is_bad(host, &format!("a reservation in {placement:?}"), program)?;
    }
    Ok(())
}

fn no_such_executor(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
    let on = |executor| Placement::On {
        executor,
        task: None,
    };
    let finish = || counted(|_, _| Step::Finish);
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
    let reservation = Reservation::new(Service::from_millis(1), Span::from_millis(10));
    program.push(Activity {
        name: "holder".into(),
        processor: CPU,
        placement: on(executor),
        reservation: reservation.ok().map(|reservation| ReservationRequest {
            reservation,
            enforcer: Enforcer::Slots,
            outside: ORDINARY,
            begins_at_start: true,
        }),
        body: Box::new(finish()),
    });
    is_bad(host, "a reservation on an executor", program)
}

fn no_such_semaphore(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
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

fn no_such_mark(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
    one(host, "mark 3 of 0", LOW, |context| {
        context.mark(Mark(3), [0; 2]);
        Step::Burn(Service::from_millis(5))
    })
}

fn deferred_sleeps(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
    let later = |context: &mut dyn Context| context.now() + Span::from_millis(1);
    one(
        host,
        "a sleeping deferred call",
        Placement::Deferred,
        move |context| Step::SleepUntil(later(context)),
    )?;
    one(
        host,
        "a deferred call that sleeps into the past",
        Placement::Deferred,
        |_| Step::SleepUntil(Instant::ZERO),
    )?;
    let mut program = Program::new(1);
    let semaphore = program.semaphore(0);
    program.add(
        "mistaken",
        CPU,
        Placement::Deferred,
        counted(move |calls, context| {
            if calls > 0 {
                Step::Finish
            } else {
                Step::WaitUntil(semaphore, later(context))
            }
        }),
    );
    is_bad(host, "a deferred call with a time-out", program)
}

fn undeclared_reservation(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
    one(host, "a beginning", LOW, |_| Step::BeginReservation)?;
    one(host, "an end", LOW, |_| Step::EndReservation)?;
    one(host, "a change", LOW, |_| {
        let tenth = Reservation::new(Service::from_millis(1), Span::from_millis(10));
        tenth.map_or(Step::Finish, Step::ChangeReservation)
    })
}

fn undeclared_constraint(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
    one(host, "a time constraint", LOW, |context| {
        let deadline = context.now() + Span::from_millis(10);
        TimeConstraint::new(context.now(), deadline, Service::from_millis(1))
            .map_or(Step::Finish, Step::BeginConstraint)
    })
}
