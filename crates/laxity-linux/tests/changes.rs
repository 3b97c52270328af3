//! Reservations that change while they run, by the kernel's enforcer. Those by slots are in the conformance suite.

mod common;

use laxity_linux::rights::{self, Right};
use laxity_linux::{LiveConfig, LiveHost};
use laxity_model::{
    Activity, ActivityId, Context, Enforcer, EventKind, Host, HostError, Mark, Outside, Placement,
    Priority, ProcessorId, Program, Refused, Reservation, ReservationRequest, Service, Span, Step,
};

fn ms(service: u64, period: u64) -> Reservation {
    Reservation::new(Service::from_millis(service), Span::from_millis(period)).unwrap()
}

/// A thread under `SCHED_DEADLINE`.
fn holder(
    program: &mut Program,
    reservation: Reservation,
    body: impl FnMut(&mut dyn Context) -> Step + Send + 'static,
) -> ActivityId {
    program.push(Activity {
        name: "holder".into(),
        processor: ProcessorId(0),
        placement: Placement::Thread(Priority::NORMAL),
        reservation: Some(ReservationRequest {
            reservation,
            enforcer: Enforcer::Deadline,
            outside: Outside::Timesharing(Priority::NORMAL),
            begins_at_start: true,
        }),
        body: Box::new(body),
    })
}

/// Asks for `asked` of a reservation of 1 ms in 10 while two others hold so much each; tells whether it was granted, and what it holds.
fn change(asked: Reservation, others: Reservation) -> Result<(bool, bool, Reservation), HostError> {
    let mut program = Program::new(1);
    let answer: Mark = program.mark("answer");
    for _ in 0..2 {
        let never = program.semaphore(0);
        holder(&mut program, others, move |_| Step::Wait(never));
    }
    let mut calls = 0;
    let who = holder(&mut program, ms(1, 10), move |context| {
        calls += 1;
        match calls {
            // The others have theirs by then.
            1 => Step::SleepUntil(context.now() + Span::from_millis(50)),
            2 => Step::ChangeReservation(asked),
            3 => {
                let short = matches!(context.answer(), Err(Refused::DeadlineBandwidth { .. }));
                context.mark(answer, [u64::from(context.granted()), u64::from(short)]);
                Step::Burn(Service::from_micros(500))
            }
            _ => Step::EndRun,
        }
    });
    let mut host = LiveHost::new(LiveConfig::detect(1)?);
    let record = host.run(program, Span::from_secs(5))?;
    let told = record.events.iter();
    let told = told
        .filter(|e| e.kind == EventKind::Mark(answer))
        .map(|e| e.args);
    let told: Vec<[u64; 2]> = told.collect();
    assert_eq!(told.len(), 1, "it was answered once");
    let grant = record.usage[who.index()].grant.as_ref().unwrap();
    Ok((told[0][0] == 1, told[0][1] == 1, grant.reservation))
}

#[test]
fn the_kernel_changes_a_reservation_or_says_that_there_is_no_bandwidth() {
    let _lock = common::live_lock();
    let Some(_turn) = rights::require(&[Right::Deadline, Right::Processors(2)]) else {
        return;
    };
    assert_eq!(change(ms(3, 10), ms(1, 10)), Ok((true, false, ms(3, 10))));
    // Two processors give at most 1.9, whatever the kernel is set to keep back.
    let much = Reservation::new(Service::from_millis(8), Span::from_millis(10)).unwrap();
    assert_eq!(change(ms(9, 10), much), Ok((false, true, ms(1, 10))));
}
