//! Reservations that change while they run, by the kernel's enforcer. Those by slots are in the conformance suite.

mod common;

use laxity_linux::doctor::rights::{self, Right};
use laxity_linux::{LiveConfig, LiveHost};
use laxity_model::{
    Activity, ActivityId, Context, Enforcer, Event, EventKind, Host, HostError, Instant, Mark,
    Outside, Placement, Priority, ProcessorId, Program, Refused, Reservation, ReservationRequest,
    Service, Span, Step,
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

/// For how long it is looked what a changed reservation gives.
const LENGTH: Span = Span::from_millis(100);

/// What became of a change.
struct Changed {
    granted: bool,
    /// For want of bandwidth.
    short: bool,
    /// What it holds in the end.
    held: Reservation,
    /// From its grant until it holds, and what came in [`LENGTH`] after that.
    holds: Option<(Span, Service)>,
}

/// Asks for another reservation when all hold theirs; marks the answer, and what it received in [`LENGTH`] from when that holds.
fn asker(
    asked: Reservation,
    [answer, received]: [Mark; 2],
) -> impl FnMut(&mut dyn Context) -> Step + Send {
    let mut calls = 0;
    let mut from = None;
    let mut begun = None;
    move |context| {
        calls += 1;
        match calls {
            // The others have theirs by then.
            1 => return Step::SleepUntil(context.now() + Span::from_millis(50)),
            2 => return Step::ChangeReservation(asked),
            3 => {
                let short = matches!(context.answer(), Err(Refused::DeadlineBandwidth { .. }));
                context.mark(answer, [u64::from(context.granted()), u64::from(short)]);
                from = context.answer().ok();
            }
            _ => {}
        }
        let (Some(from), now) = (from, context.now()) else {
            return Step::EndRun;
        };
        if now >= from {
            let service = context.service();
            let (since, before) = *begun.get_or_insert((now, service));
            if now >= since + LENGTH {
                context.mark(received, [(service - before).as_nanos(), 0]);
                return Step::EndRun;
            }
        }
        Step::Burn(Service::from_micros(100))
    }
}

/// Asks for `asked` of a reservation of 1 ms in 10 while two others hold so much each.
fn change(asked: Reservation, others: Reservation) -> Result<Changed, HostError> {
    let mut program = Program::new(1);
    let (answer, received): (Mark, Mark) = (program.mark("answer"), program.mark("received"));
    for _ in 0..2 {
        let never = program.semaphore(0);
        holder(&mut program, others, move |_| Step::Wait(never));
    }
    let body = asker(asked, [answer, received]);
    let who = holder(&mut program, ms(1, 10), body);
    let mut host = LiveHost::new(LiveConfig::detect(1)?);
    let record = host.admit_and_run(program, Span::from_secs(5))?;
    let all = |kind| {
        let of_kind = record.events.iter().filter(move |e| e.kind == kind);
        of_kind.copied().collect::<Vec<Event>>()
    };
    let told = all(EventKind::Mark(answer));
    assert_eq!(told.len(), 1, "it was answered once");
    let changes = all(EventKind::ReservationChange);
    let holds = all(EventKind::ReservationFrom);
    assert_eq!(changes.len(), holds.len(), "both are recorded, or neither");
    let holds = changes.first().zip(holds.first()).map(|(change, holds)| {
        let from = Instant::from_nanos(holds.args[0]);
        let received = all(EventKind::Mark(received));
        let received = received.first().map_or(0, |event| event.args[0]);
        (
            from.saturating_since(change.at),
            Service::from_nanos(received),
        )
    });
    Ok(Changed {
        granted: told[0].args[0] == 1,
        short: told[0].args[1] == 1,
        held: record.usage[who.index()]
            .grant
            .as_ref()
            .unwrap()
            .reservation,
        holds,
    })
}

#[test]
fn the_kernel_changes_a_reservation_or_says_that_there_is_no_bandwidth() {
    let Some(_turn) = rights::require(&[Right::Deadline, Right::Processors(2)]) else {
        return;
    };
    let done = change(ms(3, 10), ms(1, 10)).unwrap();
    assert_eq!(
        (done.granted, done.short, done.held),
        (true, false, ms(3, 10))
    );
    let (after, received) = done.holds.unwrap();
    // The budget under way has a deadline of its own; what the call took is off.
    assert!(after > Span::from_millis(9), "it holds after {after}");
    // Nine budgets of 3 ms, less what the last before may have overrun. The old reservation would give 10, and a tick.
    assert!(received >= Service::from_millis(20), "{received}");
    // Two processors give at most 1.9, whatever the kernel is set to keep back.
    let refused = change(ms(9, 10), ms(8, 10)).unwrap();
    assert_eq!(
        (refused.granted, refused.short, refused.held),
        (false, true, ms(1, 10))
    );
    assert_eq!(refused.holds, None);
}
