//! Reservations by `SCHED_DEADLINE`: their service, and changes beside what begins later. A host that has none says so.

use crate::meter::{expect_the_sum, meter, readings};
use crate::reservations::{asker, by_slots, piece_of, reservation, run, stood_still};
use crate::stage::{CPU, LOW, NEVER, NORMAL, cannot_run, counted, expect_end, marks, spinner};
use crate::{Result, Tolerance, ensure, ensure_in_time};
use laxity_model::{
    Activity, Body, Context, Enforcer, Host, Program, Refused, Reservation, ReservationRequest,
    RunEnd, Step,
};

/// Who asks for a reservation by the kernel.
pub(crate) fn by_deadline(
    reservation: Reservation,
    begins_at_start: bool,
    body: impl Body + 'static,
) -> Activity {
    let request = ReservationRequest {
        enforcer: Enforcer::Deadline,
        begins_at_start,
        ..by_slots(reservation)
    };
    asker(NORMAL, request, body)
}

/// Below every real-time thread without it, the holder has its X every Y, and no more.
pub(crate) fn service(host: &mut dyn Host, tolerance: &Tolerance) -> Result {
    const PERIODS: u64 = 40;
    // So long that what a tick's overrun leaves owing at the end is little of the whole.
    let held = reservation([10_000, 50_000])?;
    let mut program = Program::new(1);
    let mark = program.mark("service");
    let piece = piece_of(held);
    let who = program.push(by_deadline(held, true, meter(mark, piece)));
    program.add("rogue", CPU, LOW, spinner());
    if let Err(why) = host.supply(1)?.deadline {
        return cannot_run(host, program, &why);
    }
    let record = run(host, program, held.period() * PERIODS)?;
    expect_the_sum(&record, &readings(&record, mark), held, piece, tolerance)?;
    let received = record.usage[who.index()].service;
    let all = held.service() * (PERIODS + 1);
    let most = all + tolerance.slack(all) + stood_still(&record, who);
    ensure_in_time!(
        received <= most,
        "{received} received in {PERIODS} periods of {held}"
    );
    Ok(())
}

/// What was granted to others counts before it begins: a change into their room is refused, and one beside it granted.
pub(crate) fn change_beside_later(host: &mut dyn Host, _: &Tolerance) -> Result {
    const PERIOD_US: u64 = 100_000;
    let deadline = host.supply(1)?.deadline;
    let processors = deadline
        .as_ref()
        .map_or(1, |supply| supply.processors.get());
    let mut program = Program::new(1);
    let answer = program.mark("answer");
    let [fits, does_not] = [10_000, 50_000].map(|service_us| [service_us, PERIOD_US]);
    let (fits, does_not) = (reservation(fits)?, reservation(does_not)?);
    let changing = counted(move |calls, context: &mut dyn Context| {
        if calls > 0 {
            let why = matches!(context.answer(), Err(Refused::DeadlineBandwidth { .. }));
            context.mark(answer, [u64::from(context.granted()), u64::from(why)]);
        }
        match calls {
            0 => Step::ChangeReservation(fits),
            1 => Step::ChangeReservation(does_not),
            _ => Step::EndRun,
        }
    });
    let changing = by_deadline(reservation([5_000, PERIOD_US])?, true, changing);
    let changing = program.push(changing);
    let never = program.semaphore(0);
    // All but a fifth of a processor of the nine tenths of each that a kernel gives at most.
    let all = PERIOD_US * 9 / 10 * u64::from(processors) - PERIOD_US / 5;
    for _ in 0..processors {
        let later = reservation([all / u64::from(processors), PERIOD_US])?;
        program.push(by_deadline(
            later,
            false,
            counted(move |_, _| Step::Wait(never)),
        ));
    }
    if let Err(why) = deadline {
        return cannot_run(host, program, &why);
    }
    let record = host.admit_and_run(program, NEVER)?;
    expect_end(&record, RunEnd::EndRun)?;
    let answers = marks(&record, answer);
    ensure!(answers == [[1, 0], [0, 1]], "answered {answers:?}");
    let grant = record.usage[changing.index()].grant.as_ref();
    ensure!(
        grant.is_some_and(|grant| grant.reservation == fits),
        "granted in the end: {grant:?}"
    );
    Ok(())
}
