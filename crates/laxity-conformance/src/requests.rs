//! What activities ask for while they run: another reservation, and time constraints.

use crate::meter::{Reading, expect_every_window, expect_kept, readings, stretches};
use crate::reservations::{expect_enforced, holder, kept, metered, piece_of, reservation, run};
use crate::stage::{CPU, HIGH, NEVER, NORMAL, ORDINARY, at, counted, marks, of, run_to, spinner};
use crate::{Failure, Result, Tolerance, ensure, ensure_in_time};
use laxity_model::{
    ActivityId, Body, Context, EventKind, Host, Instant, Mark, Outside, Program, Refused,
    Reservation, RunEnd, RunRecord, Service, Span, Step, TimeConstraint,
};

/// From when it holds, or nothing; the first number of a mark.
fn answered(context: &dyn Context) -> u64 {
    context.answer().map_or(0, Instant::as_nanos)
}

pub(crate) fn changes(
    host: &mut dyn Host,
    tolerance: &Tolerance,
    [before, after]: [[u64; 2]; 2],
) -> Result {
    const HALF: u64 = 300;
    let mut program = Program::new(1);
    let (service, answer) = (program.mark("service"), program.mark("answer"));
    let (old, new) = (reservation(before)?, reservation(after)?);
    let piece = piece_of(old).min(piece_of(new));
    let mut begun = None;
    let mut has_asked = false;
    let body = counted(move |calls, context: &mut dyn Context| {
        let begun = *begun.get_or_insert(context.now());
        if !has_asked && context.now() >= begun + Span::from_millis(HALF) {
            has_asked = true;
            return Step::ChangeReservation(new);
        }
        if has_asked && calls > 0 {
            context.mark(answer, [answered(context), 0]);
        }
        context.mark(service, [context.service().as_nanos(), 0]);
        Step::Burn(piece)
    });
    let (who, _) = holder(&mut program, before, Outside::Confined, true, body)?;
    let other = metered(&mut program, [1_000, 5_000], Outside::Confined)?;
    program.add("spinner", CPU, NORMAL, spinner());
    let record = run(host, program, Span::from_millis(2 * HALF + 60))?;
    kept(&record, other, tolerance)?;
    let grant = record.usage[who.index()].grant.as_ref();
    ensure!(
        grant.is_some_and(|grant| grant.reservation == new),
        "granted in the end: {grant:?}"
    );
    let Some([from, _]) = marks(&record, answer).first().copied() else {
        return Err(Failure::Untimely("it never asked".into()));
    };
    ensure!(from > 0, "{old} could not become {new}");
    let from = Instant::from_nanos(from);
    let told = of(&record, who, EventKind::ReservationChange);
    ensure!(told.len() == 1, "{} changes recorded", told.len());
    let holds = of(&record, who, EventKind::ReservationFrom);
    let holds: Vec<u64> = holds.iter().map(|event| event.args[0]).collect();
    ensure!(
        holds == [from.as_nanos()],
        "answered {from:?}, recorded {holds:?}"
    );
    let all = readings(&record, service);
    let cut = all.partition_point(|reading| reading.at < from);
    let until = RunRecord {
        end: from,
        ..record.clone()
    };
    expect_every_window(&until, &all[..cut], old, piece, tolerance)?;
    expect_every_window(&record, &all[cut..], new, piece, tolerance)
}

/// How often a case changes a reservation to and fro, and how long after the answer it asks again.
const CHANGES: u64 = 20;
const BETWEEN_CHANGES: Span = Span::from_millis(60);

/// A holder of the first of two reservations that asks for the other one now and then; the marks are of its service and of each answer.
fn changes_to_and_fro(
    [one, other]: [Reservation; 2],
    piece: Service,
    [service, answer]: [Mark; 2],
) -> impl Body + 'static {
    let (mut wanted, mut rest, mut asked) = (other, one, false);
    let mut due = None;
    move |context: &mut dyn Context| {
        if asked {
            asked = false;
            context.mark(answer, [answered(context), 0]);
            if context.granted() {
                core::mem::swap(&mut wanted, &mut rest);
            }
        }
        let now = context.now();
        if now >= *due.get_or_insert(now + BETWEEN_CHANGES) {
            due = Some(now + BETWEEN_CHANGES);
            asked = true;
            return Step::ChangeReservation(wanted);
        }
        context.mark(service, [context.service().as_nanos(), 0]);
        Step::Burn(piece)
    }
}

/// Across changes a holder has the lesser service in the longer window.
pub(crate) fn across_changes(host: &mut dyn Host, tolerance: &Tolerance) -> Result {
    let mut program = Program::new(1);
    let (service, answer) = (program.mark("service"), program.mark("answer"));
    let numbers = [[4_000, 20_000], [2_000, 10_000]];
    let [one, other] = [reservation(numbers[0])?, reservation(numbers[1])?];
    let piece = piece_of(one).min(piece_of(other));
    let body = changes_to_and_fro([one, other], piece, [service, answer]);
    holder(&mut program, numbers[0], Outside::Confined, true, body)?;
    let others = [
        metered(&mut program, [3_000, 10_000], Outside::Confined)?,
        metered(&mut program, [2_000, 10_000], Outside::Confined)?,
    ];
    program.add("spinner", CPU, NORMAL, spinner());
    let record = run(host, program, BETWEEN_CHANGES * (CHANGES + 3))?;
    let answers = marks(&record, answer);
    let granted = answers.iter().filter(|[from, _]| *from > 0);
    let granted: Vec<Instant> = granted.map(|[from, _]| at(*from)).collect();
    ensure_in_time!(
        granted.len() as u64 >= CHANGES / 2,
        "{} of {} changes were granted",
        granted.len(),
        answers.len()
    );
    let lesser = Promised {
        mark: service,
        service: one.service().min(other.service()),
        window: one.period().max(other.period()),
        piece,
    };
    let others = others.map(|(_, reservation, mark)| Promised {
        mark,
        service: reservation.service(),
        window: reservation.period(),
        piece: piece_of(reservation),
    });
    let promised = [&[lesser], &others[..]].concat();
    expect_across(&record, &granted, &promised, tolerance)
}

/// What every window must give a holder, who works in such pieces and marks each.
#[derive(Clone, Copy)]
struct Promised {
    mark: Mark,
    service: Service,
    window: Span,
    piece: Service,
}

impl Promised {
    /// Whether every window that holds this instant gives what is promised, but for what a host may always miss.
    fn is_kept_across(&self, change: Instant, all: &[Reading], tolerance: &Tolerance) -> bool {
        let enough = self
            .service
            .saturating_sub(self.piece + tolerance.slack(self.service));
        let first = all.partition_point(|reading| reading.at + self.window < change);
        let begins = all[first..]
            .iter()
            .take_while(|reading| reading.at <= change);
        let mut received = begins.map(|begin| {
            let until = all.partition_point(|reading| reading.at <= begin.at + self.window);
            all[until - 1].service.saturating_sub(begin.service)
        });
        let least = received.clone().min();
        received.next().is_some() && least >= Some(enough)
    }
}

/// Whether across each of these changes everybody has what is promised.
fn expect_across(
    record: &RunRecord,
    changes: &[Instant],
    promised: &[Promised],
    tolerance: &Tolerance,
) -> Result {
    let longest = promised.iter().map(|promised| promised.window);
    let longest = longest.max().unwrap_or_default();
    let observed = (changes.iter().copied()).filter(|change| *change + longest * 2 <= record.end);
    let observed: Vec<Instant> = observed.collect();
    let marked = promised.iter().map(|one| (one, readings(record, one.mark)));
    let marked: Vec<(&Promised, Vec<Reading>)> = marked.collect();
    let is_kept = |change: &Instant| {
        let mut all = marked.iter();
        all.all(|(promised, read)| promised.is_kept_across(*change, read, tolerance))
    };
    let window = |change: &Instant| (change.saturating_sub(longest), *change + longest);
    let what = "what is promised across changes";
    expect_kept(record, &observed, window, is_kept, tolerance, what)
}

/// It is refused with the reason, and what was held is held.
pub(crate) fn refused_change(host: &mut dyn Host, tolerance: &Tolerance) -> Result {
    let mut program = Program::new(1);
    let (service, answer) = (program.mark("service"), program.mark("answer"));
    let (held, asked) = (reservation([1_000, 10_000])?, reservation([9_000, 10_000])?);
    let piece = piece_of(held);
    let body = counted(move |calls, context: &mut dyn Context| {
        if calls == 100 {
            return Step::ChangeReservation(asked);
        }
        if calls == 101 {
            let why = u64::from(matches!(context.answer(), Err(Refused::Slots(_))));
            context.mark(answer, [u64::from(context.granted()), why]);
        }
        context.mark(service, [context.service().as_nanos(), 0]);
        Step::Burn(piece)
    });
    let numbers = [1_000, 10_000];
    let (who, _) = holder(&mut program, numbers, Outside::Confined, true, body)?;
    let other = metered(&mut program, [2_000, 5_000], Outside::Confined)?;
    let record = run(host, program, Span::from_millis(400))?;
    let answers = marks(&record, answer);
    ensure!(answers == [[0, 1]], "answered {answers:?}");
    let told = of(&record, who, EventKind::Refused);
    ensure!(told.len() == 1, "{} refusals recorded", told.len());
    let grant = record.usage[who.index()].grant.as_ref();
    ensure!(
        grant.is_some_and(|grant| grant.reservation == held),
        "granted in the end: {grant:?}"
    );
    kept(&record, other, tolerance)?;
    expect_every_window(&record, &readings(&record, service), held, piece, tolerance)
}

/// How often a case asks for a time constraint, and how often at least where an ordinary thread must wait long until it can.
const ASKED: u64 = 30;
const ASKED_LEAST: usize = 10;

/// Asks for so much service from now on within a span.
fn ask(context: &dyn Context, length: Span, service: Service) -> Step {
    let now = context.now();
    TimeConstraint::new(now, now + length, service).map_or(Step::EndRun, Step::BeginConstraint)
}

/// An ordinary thread that may ask for time constraints.
fn guest(program: &mut Program, body: impl Body + 'static) -> ActivityId {
    let guest = program.add("guest", CPU, NORMAL, body);
    program.constrained.push(guest);
    guest
}

/// Asks again and again for its work and some slack on top, and marks its deadline and when it was done.
fn constrained_work(done: Mark, length: Span, work: Service, slack: Service) -> impl Body {
    let mut deadline = Instant::ZERO;
    counted(move |calls, context: &mut dyn Context| match calls % 5 {
        0 => Step::SleepUntil(context.now() + Span::from_micros(7_300)),
        1 => {
            deadline = context.now() + length;
            ask(context, length, work + slack)
        }
        2 => Step::Burn(work),
        3 => {
            context.mark(done, [deadline.as_nanos(), context.now().as_nanos()]);
            Step::EndConstraint
        }
        _ if calls < 5 * ASKED => Step::Yield,
        _ => Step::EndRun,
    })
}

pub(crate) fn constrained(
    host: &mut dyn Host,
    tolerance: &Tolerance,
    held: Option<[u64; 2]>,
    [service_us, length_us]: [u64; 2],
) -> Result {
    let mut program = Program::new(1);
    let done = program.mark("done");
    let work = Service::from_micros(service_us);
    let length = Span::from_micros(length_us);
    // What a host may miss of service it is asked for on top.
    let body = constrained_work(done, length, work, tolerance.slack(work));
    let who = match held {
        Some(numbers) => holder(&mut program, numbers, Outside::Confined, true, body)?.0,
        None => guest(&mut program, body),
    };
    let other = metered(&mut program, [1_000, 5_000], ORDINARY)?;
    for _ in 0..4 {
        program.add("spinner", CPU, NORMAL, spinner());
    }
    let record = host.admit_and_run(program, NEVER)?;
    expect_enforced(&record)?;
    kept(&record, other, tolerance)?;
    let calls = marks(&record, done);
    let refused = of(&record, who, EventKind::Refused).len();
    ensure_in_time!(
        calls.len() >= ASKED_LEAST && refused == 0,
        "{} were done, {refused} refused",
        calls.len()
    );
    let window = |[deadline, _]: &[u64; 2]| (at(*deadline) - length, at(*deadline));
    let is_met = |[deadline, done]: &[u64; 2]| done <= deadline;
    let what = "time constraints";
    expect_kept(&record, &calls, window, is_met, tolerance, what)
}

/// So long after it was called somebody of a higher rank comes, a little later each time, and so long it works.
const COMES_LATER: Span = Span::from_micros(15);
const WORKS: Service = Service::from_millis(8);

/// While it waits for its answer, or just after, an ordinary thread loses the processor to somebody of a higher rank until after its deadline: what was
/// granted it has all the same.
pub(crate) fn constrained_beside_a_rogue(host: &mut dyn Host, tolerance: &Tolerance) -> Result {
    let mut program = Program::new(1);
    let (done, comes) = (program.mark("done"), program.semaphore(0));
    let (work, length) = (Service::from_millis(3), Span::from_millis(9));
    let asked = work + tolerance.slack(work);
    let (mut deadline, mut has) = (Instant::ZERO, false);
    let body = counted(move |calls, context: &mut dyn Context| match calls % 5 {
        0 => Step::SleepUntil(context.now() + Span::from_micros(17_300)),
        1 => {
            context.signal(comes);
            deadline = context.now() + length;
            ask(context, length, asked)
        }
        2 => {
            has = context.granted();
            Step::Burn(if has { work } else { Service::ZERO })
        }
        3 => {
            if has {
                context.mark(done, [deadline.as_nanos(), context.now().as_nanos()]);
            }
            Step::EndConstraint
        }
        _ if calls < 5 * ASKED => Step::Yield,
        _ => Step::EndRun,
    });
    guest(&mut program, body);
    let rogue = counted(move |calls, context: &mut dyn Context| match calls % 3 {
        0 => Step::Wait(comes),
        1 => Step::SleepUntil(context.now() + COMES_LATER * (calls / 3 % 16)),
        _ => Step::Burn(WORKS),
    });
    program.add("rogue", CPU, HIGH, rogue);
    let record = run_to(RunEnd::EndRun, host, program)?;
    let calls = marks(&record, done);
    ensure_in_time!(
        calls.len() >= ASKED_LEAST,
        "{} of {ASKED} were granted",
        calls.len()
    );
    let window = |[deadline, _]: &[u64; 2]| (at(*deadline) - length, at(*deadline));
    let is_met = |[deadline, done]: &[u64; 2]| done <= deadline;
    let what = "time constraints beside a rogue";
    expect_kept(&record, &calls, window, is_met, tolerance, what)
}

/// More than reservations leave is refused, and a second one; what fits is granted.
pub(crate) fn refused_constraints(host: &mut dyn Host, _: &Tolerance) -> Result {
    const LENGTH: Span = Span::from_millis(20);
    let mut program = Program::new(1);
    let answer = program.mark("answer");
    let tell = move |context: &mut dyn Context| {
        let why = match context.answer() {
            Ok(_) => 0,
            Err(Refused::Time { needed, available }) if available < needed => 1,
            Err(Refused::HasConstraint) => 2,
            Err(Refused::TooFarAhead { .. }) => 3,
            Err(_) => 4,
        };
        context.mark(answer, [why, 0]);
    };
    let body = counted(move |calls, context: &mut dyn Context| {
        if calls > 0 {
            tell(context);
        }
        match calls {
            // The reservation has 8 ms of every 16: at least 10 ms of 20 less what is at its edges.
            0 => ask(context, LENGTH, Service::from_millis(15)),
            1 => ask(context, LENGTH, Service::from_millis(4)),
            2 => ask(context, LENGTH, Service::from_millis(1)),
            3 => Step::EndConstraint,
            4 => ask(context, Span::from_secs(100), Service::from_millis(1)),
            _ => Step::EndRun,
        }
    });
    let guest = guest(&mut program, body);
    let never = program.semaphore(0);
    let idle = counted(move |_, _| Step::Wait(never));
    holder(&mut program, [8_000, 16_000], Outside::Confined, true, idle)?;
    let record = run_to(RunEnd::EndRun, host, program)?;
    let told: Vec<u64> = marks(&record, answer).iter().map(|[why, _]| *why).collect();
    ensure_in_time!(told == [1, 0, 2, 2, 3], "answered {told:?}");
    let counts = [
        (EventKind::ConstraintBegin, 1),
        (EventKind::ConstraintEnd, 1),
        (EventKind::Refused, 3),
    ];
    for (kind, expected) in counts {
        let found = of(&record, guest, kind).len();
        ensure_in_time!(found == expected, "{found} events {kind:?} of {expected}");
    }
    Ok(())
}

/// After the end of a constraint no slot of it begins.
pub(crate) fn given_back(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut program = Program::new(1);
    let body = counted(move |calls, context: &mut dyn Context| match calls {
        0 => ask(context, Span::from_millis(50), Service::from_millis(25)),
        1 if context.granted() => Step::Burn(Service::from_millis(4)),
        2 => Step::EndConstraint,
        3 => Step::Burn(Service::from_millis(4)),
        _ => Step::EndRun,
    });
    let guest = guest(&mut program, body);
    let other = metered(&mut program, [2_000, 8_000], Outside::Confined)?;
    program.add("spinner", CPU, NORMAL, spinner());
    let record = run_to(RunEnd::EndRun, host, program)?;
    let ends = of(&record, guest, EventKind::ConstraintEnd);
    let [end] = &ends[..] else {
        return Err(Failure::Untimely(format!("{} ends", ends.len())));
    };
    let slots = stretches(&record, guest, EventKind::SlotBegin, EventKind::SlotEnd);
    ensure_in_time!(!slots.is_empty(), "the constraint had no slot");
    let after = slots.iter().filter(|slot| slot.0 >= end.at).count();
    ensure!(after == 0, "{after} slots of {} after the end", slots.len());
    let others = of(&record, other.0, EventKind::SlotBegin);
    ensure_in_time!(!others.is_empty(), "the reservation had no slots");
    Ok(())
}
