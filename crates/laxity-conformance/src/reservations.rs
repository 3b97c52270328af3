//! Reservations by time slots: X in every window of Y, what is outside the slots, and what becomes of time that is not used.

use crate::meter::{expect_every_window, meter, readings, stretches};
use crate::stage::{
    CPU, LOW, NORMAL, ORDINARY, counted, expect_end, is_disturbed, of, run_to, spinner,
};
use crate::{Failure, Result, Tolerance, ensure, ensure_in_time};
use laxity_model::{
    Activity, ActivityId, Body, Disturbances, Enforcer, EventKind, Grade, Host, Instant, Mark,
    Outside, Placement, Program, Reservation, ReservationRequest, RunEnd, RunRecord, Service, Span,
    Step,
};

/// So many microseconds in every so many.
pub(crate) fn reservation([service_us, period_us]: [u64; 2]) -> Result<Reservation> {
    let period = Span::from_micros(period_us);
    Reservation::new(Service::from_micros(service_us), period)
        .map_err(|error| Failure::Wrong(format!("the case is wrong: {error}")))
}

/// A request for a reservation by slots, of who is ordinary outside them, from the start on.
pub(crate) fn by_slots(reservation: Reservation) -> ReservationRequest {
    ReservationRequest {
        reservation,
        enforcer: Enforcer::Slots,
        outside: ORDINARY,
        begins_at_start: true,
    }
}

/// An activity of the first processor that asks for a reservation.
pub(crate) fn asker(
    placement: Placement,
    request: ReservationRequest,
    body: impl Body + 'static,
) -> Activity {
    Activity {
        name: "holder".into(),
        processor: CPU,
        placement,
        reservation: Some(request),
        body: Box::new(body),
    }
}

/// Holds a reservation by slots.
pub(crate) fn holder(
    program: &mut Program,
    numbers: [u64; 2],
    outside: Outside,
    begins_at_start: bool,
    body: impl Body + 'static,
) -> Result<(ActivityId, Reservation)> {
    let reservation = reservation(numbers)?;
    let request = ReservationRequest {
        outside,
        begins_at_start,
        ..by_slots(reservation)
    };
    let who = program.push(asker(NORMAL, request, body));
    Ok((who, reservation))
}

/// So fine that a slot has twenty pieces, within what is worth measuring.
pub(crate) fn piece_of(reservation: Reservation) -> Service {
    let twentieth = reservation.service() / 20;
    twentieth.clamp(Service::from_micros(5), Service::from_micros(50))
}

/// A measured holder in a program, and its mark.
pub(crate) fn metered(
    program: &mut Program,
    numbers: [u64; 2],
    outside: Outside,
) -> Result<(ActivityId, Reservation, Mark)> {
    let mark = program.mark("service");
    let piece = piece_of(reservation(numbers)?);
    let (who, reservation) = holder(program, numbers, outside, true, meter(mark, piece))?;
    Ok((who, reservation, mark))
}

pub(crate) fn run(host: &mut dyn Host, program: Program, length: Span) -> Result<RunRecord> {
    let record = host.admit_and_run(program, length)?;
    expect_enforced(&record)?;
    expect_end(&record, RunEnd::Length)?;
    Ok(record)
}

/// Every grant is enforced: what is not is no promise, and need not be kept.
pub(crate) fn expect_enforced(record: &RunRecord) -> Result {
    let grants = record.usage.iter().filter_map(|usage| usage.grant.as_ref());
    for grant in grants {
        match &grant.grade {
            Grade::Enforced => {}
            Grade::Unenforced { reason } => return Err(Failure::Unenforced(reason.clone())),
            Grade::Uncertain { reason } => return Err(Failure::Uncertain(reason.clone())),
        }
    }
    Ok(())
}

/// How long a processor stood still, from before the run's end on, on which this one was, or may have been. Nobody worked, but it may be credited
/// with all of that: what it received is counted until its thread ends, a little later.
pub(crate) fn stood_still(record: &RunRecord, who: ActivityId) -> Service {
    let mut all = record.disturbances.clone();
    all.retain(|one| one.overlaps(record.start, record.end));
    let bearing = Disturbances::bearing_on(&all, record.ran([&who]));
    let within = bearing.within(record.start, Instant::MAX);
    within.map(Span::as_full_service).sum()
}

pub(crate) fn kept(
    record: &RunRecord,
    (_, reservation, mark): (ActivityId, Reservation, Mark),
    tolerance: &Tolerance,
) -> Result {
    let (readings, piece) = (readings(record, mark), piece_of(reservation));
    expect_every_window(record, &readings, reservation, piece, tolerance)
}

/// Periods that a case observes.
const PERIODS: u64 = 60;

pub(crate) fn alone(
    host: &mut dyn Host,
    tolerance: &Tolerance,
    numbers: [u64; 2],
    outside: Outside,
) -> Result {
    let mut program = Program::new(1);
    let own = metered(&mut program, numbers, outside)?;
    for _ in 0..4 {
        program.add("spinner", CPU, NORMAL, spinner());
    }
    let record = run(host, program, own.1.period() * PERIODS)?;
    kept(&record, own, tolerance)?;
    if outside == Outside::Confined {
        inside_only(&record, own, tolerance)?;
    }
    Ok(())
}

/// A confined holder's pieces end inside its slots, and their sum is no more than what the slots are.
fn inside_only(
    record: &RunRecord,
    (who, reservation, mark): (ActivityId, Reservation, Mark),
    tolerance: &Tolerance,
) -> Result {
    let slots = stretches(record, who, EventKind::SlotBegin, EventKind::SlotEnd);
    let pieces = readings(record, mark);
    let is_inside = |at| slots.iter().any(|(from, to)| *from <= at && at <= *to);
    let inside = pieces.iter().filter(|piece| is_inside(piece.at)).count();
    ensure_in_time!(
        tolerance.is_kept(inside, pieces.len()),
        "{inside} of {} pieces of work ended inside the slots",
        pieces.len()
    );
    let all = Service::from_nanos(reservation.service().as_nanos() * slots.len() as u64);
    let received = record.usage[who.index()].service;
    let most = all + tolerance.slack(all) + tolerance.unseen(all) + stood_still(record, who);
    ensure_in_time!(
        received <= most,
        "{received} received in {} slots of {reservation}",
        slots.len()
    );
    Ok(())
}

/// The holder, of this placement without its reservation, has its slots, and a rogue of a lower real-time priority all the rest.
pub(crate) fn beside_a_rogue(
    host: &mut dyn Host,
    tolerance: &Tolerance,
    placement: Placement,
) -> Result {
    let mut program = Program::new(1);
    let own = metered(&mut program, [2_000, 8_000], ORDINARY)?;
    program.activities[own.0.index()].placement = placement;
    let rogue = program.add("rogue", CPU, LOW, spinner());
    let record = run(host, program, Span::from_millis(320))?;
    kept(&record, own, tolerance)?;
    let received = record.usage[rogue.index()].service;
    // A quarter is reserved; the rogue has the rest, and keeps the holder from everything else.
    let whole = (record.end - record.start).as_full_service();
    let rest = whole / 4 * 3;
    let slack = tolerance.slack(whole) + stood_still(&record, rogue);
    // Slots last longer than promised by what the host counts as their holder's and it had not for itself.
    let least = rest.saturating_sub(slack + tolerance.unseen(whole / 4));
    ensure_in_time!(
        (least..=rest + slack).contains(&received),
        "the rogue received {received} of the {rest} outside the slots"
    );
    Ok(())
}

/// Two holders whose periods do not divide each other both get theirs.
pub(crate) fn two_at_once(host: &mut dyn Host, tolerance: &Tolerance) -> Result {
    let mut program = Program::new(1);
    let first = metered(&mut program, [2_000, 13_000], ORDINARY)?;
    let second = metered(&mut program, [400, 2_500], Outside::Confined)?;
    for _ in 0..2 {
        program.add("spinner", CPU, NORMAL, spinner());
    }
    let record = run(host, program, Span::from_millis(500))?;
    kept(&record, first, tolerance)?;
    kept(&record, second, tolerance)
}

/// On an idle processor too, a confined holder works inside its slots only.
pub(crate) fn confined_is_confined(host: &mut dyn Host, tolerance: &Tolerance) -> Result {
    let mut program = Program::new(1);
    let own = metered(&mut program, [2_000, 8_000], Outside::Confined)?;
    let record = run(host, program, Span::from_millis(320))?;
    kept(&record, own, tolerance)?;
    inside_only(&record, own, tolerance)
}

/// Outside its slots it is an ordinary thread.
pub(crate) fn timesharing_shares(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut program = Program::new(1);
    let own = metered(&mut program, [1_000, 10_000], ORDINARY)?;
    let record = run(host, program, Span::from_millis(320))?;
    let received = record.usage[own.0.index()].service;
    let slots = (record.end - record.start).as_full_service() / 10;
    // Others of the machine may be there; they leave it more than twice its slots unless there are a dozen.
    ensure_in_time!(
        received >= slots * 2,
        "{received} received, of which {slots} in slots"
    );
    Ok(())
}

/// Slots whose holder waits belong to whoever is ready.
pub(crate) fn unused_is_returned(host: &mut dyn Host, tolerance: &Tolerance) -> Result {
    let mut program = Program::new(1);
    let never = program.semaphore(0);
    let idle = counted(move |_, _| Step::Wait(never));
    holder(&mut program, [8_000, 16_000], Outside::Confined, true, idle)?;
    let other = program.add("spinner", CPU, LOW, spinner());
    let record = run(host, program, Span::from_millis(320))?;
    let received = record.usage[other.index()].service;
    let whole = (record.end - record.start).as_full_service();
    let least = whole.saturating_sub(tolerance.slack(whole) + stood_still(&record, other));
    ensure_in_time!(
        received >= least,
        "{received} of {whole} although the holder waits"
    );
    Ok(())
}

/// Slots are given from the holder's begin to its end, and neither before nor after.
pub(crate) fn on_request(host: &mut dyn Host, tolerance: &Tolerance) -> Result {
    /// What is burnt: so many slots, and more where not all of them is counted.
    const BURNT: Service = Service::from_millis(20);
    let mut program = Program::new(1);
    let body = counted(|calls, context| match calls {
        0 => Step::SleepUntil(context.now() + Span::from_millis(30)),
        1 => Step::BeginReservation,
        // Twenty slots and more: it has at least their service in that time.
        2 => Step::Burn(BURNT),
        3 => Step::SleepUntil(context.now() + Span::from_millis(100)),
        4 => Step::EndReservation,
        5 => Step::SleepUntil(context.now() + Span::from_millis(50)),
        _ => Step::EndRun,
    });
    let (who, reservation) = holder(&mut program, [1_000, 5_000], Outside::Confined, false, body)?;
    let record = run_to(RunEnd::EndRun, host, program)?;
    expect_enforced(&record)?;
    let begins = of(&record, who, EventKind::ReservationBegin);
    let ends = of(&record, who, EventKind::ReservationEnd);
    let ([begin], [end]) = (&begins[..], &ends[..]) else {
        ensure!(false, "{} begins and {} ends", begins.len(), ends.len());
        return Ok(());
    };
    let numbers = [
        reservation.service().as_nanos(),
        reservation.period().as_nanos(),
    ];
    ensure!(
        begin.args == numbers,
        "began {:?} instead of {reservation}",
        begin.args
    );
    let slots = stretches(&record, who, EventKind::SlotBegin, EventKind::SlotEnd);
    let is_between = |slot: &&(_, _)| slot.0 >= begin.at && slot.1 <= end.at;
    let between = slots.iter().filter(is_between).count();
    ensure!(
        between == slots.len(),
        "{between} of {} slots between begin and end",
        slots.len()
    );
    let expected = (end.at - begin.at) / reservation.period();
    // The host may count as the holder's what it had not for itself; twenty periods are slept through.
    let burnt = BURNT.saturating_sub(tolerance.unseen(BURNT));
    let least = burnt.as_nanos() / reservation.service().as_nanos() + 19;
    ensure_in_time!(
        slots.len() as u64 >= expected && expected >= least,
        "{} slots in {expected} periods",
        slots.len()
    );
    Ok(())
}

/// The slots of a reservation begin exactly a period apart, none too early.
pub(crate) fn grid(host: &mut dyn Host, tolerance: &Tolerance) -> Result {
    const PERIODS: usize = 30;
    let mut program = Program::new(1);
    let (who, reservation, _) = metered(&mut program, [700, 7_000], Outside::Confined)?;
    program.add("spinner", CPU, NORMAL, spinner());
    let period = reservation.period();
    let record = run(host, program, period * PERIODS as u64)?;
    let begins = of(&record, who, EventKind::SlotBegin);
    // Those for which the machine stood still, and those for which nobody did.
    let (mut excused, mut missing) = (0, 0);
    // The first may be one into which the holder came.
    for pair in begins.get(1..).unwrap_or_default().windows(2) {
        let apart = Span::from_nanos(pair[1].args[0].saturating_sub(pair[0].args[0]));
        let on_grid = !apart.is_zero() && (apart % period).is_zero();
        ensure!(on_grid, "slots {apart} apart");
        let left_out = ((apart / period) - 1) as usize;
        if is_disturbed(&record, pair[0].at, pair[1].at) {
            excused += left_out;
        } else {
            missing += left_out;
        }
    }
    let given = begins.len();
    ensure_in_time!(
        tolerance.is_kept(given, given + missing) && given + missing + excused >= PERIODS - 2,
        "{given} slots in {PERIODS} periods; {excused} were left out as the machine stood still"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    use laxity_model::{Disturbance, Event, ProcessorId, Usage, Whereabouts};

    /// Whether 8 ms of service are no more than a slot of 5 ms, in a run of 100 ms with this stretch on this processor, where the holder ran there.
    fn is_inside(ran: Whereabouts, processor: u16, ms: [u64; 2]) -> bool {
        let [from, to] = ms.map(Instant::from_millis);
        let slot = |kind, ms| Event {
            at: Instant::from_millis(ms),
            kind,
            processor: CPU,
            activity: ActivityId(0),
            args: [0; 2],
        };
        let record = RunRecord {
            events: vec![slot(EventKind::SlotBegin, 20), slot(EventKind::SlotEnd, 25)],
            usage: vec![Usage {
                ran,
                service: Service::from_millis(8),
                ..Usage::default()
            }],
            disturbances: vec![Disturbance {
                processor: ProcessorId(processor),
                from,
                to,
            }],
            ..RunRecord::empty(Instant::ZERO, Instant::from_millis(100))
        };
        let held = reservation([5_000, 100_000]).expect("it fits");
        inside_only(&record, (ActivityId(0), held, Mark(0)), &Tolerance::NONE).is_ok()
    }

    #[test]
    fn only_what_stood_still_or_crawled_under_the_holder_in_the_run_is_credited_to_it() {
        let own = Whereabouts::On(CPU);
        assert!(is_inside(own, 0, [50, 53]));
        assert!(!is_inside(own, 0, [50, 52]));
        assert!(!is_inside(own, 1, [50, 90]), "it ran on another");
        assert!(is_inside(own, 0, [98, 103]), "its thread went on");
        assert!(!is_inside(own, 0, [100, 130]), "the run was over");
        assert!(is_inside(Whereabouts::Anywhere, 1, [50, 53]));
    }
}
