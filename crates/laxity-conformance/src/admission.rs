//! Yes or no before anything runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::deadline::by_deadline;
use crate::reservations::{asker, by_slots, expect_enforced, holder};
use crate::stage::{CPU, DEVICE, NORMAL, ORDINARY, cannot_run, counted, run_to};
use crate::{Failure, Result, Tolerance, ensure};
use laxity_model::request::Work;
use laxity_model::{
    ActivityId, Body, Context, Enforcer, Host, HostError, Outside, Program, Reservation, RunEnd,
    Service, Span, Step,
};

const PERIOD: Span = Span::from_millis(20);
const FIRST: Service = Service::from_millis(5);

/// Two holders that finish at once; the second has what the first leaves, and so much more.
fn pair(host: &mut dyn Host, more: Service, calls: &Arc<AtomicU32>) -> Result<Program> {
    pair_below(host, 0, more, calls)
}

/// The same where so much of the processor goes to what ranks above them.
fn pair_below(
    host: &mut dyn Host,
    above_ppm: u64,
    more: Service,
    calls: &Arc<AtomicU32>,
) -> Result<Program> {
    let supply = host.supply(1)?;
    let slots = supply.processors.first().map(|first| first.slots.as_ref());
    let Some(Ok(slots)) = slots else {
        return Err(Failure::Wrong("the host has no slots".into()));
    };
    let available = PERIOD.as_nanos() * slots.costs(above_ppm).available_ppm() / 1_000_000;
    let taken = FIRST + slots.per_slot * 2;
    let rest = Service::from_nanos(available).saturating_sub(taken) + more;
    let mut program = Program::new(1);
    for service in [FIRST, rest] {
        let reservation = Reservation::new(service, PERIOD)
            .map_err(|error| Failure::Wrong(format!("the case is wrong: {error}")))?;
        program.push(asker(NORMAL, by_slots(reservation), finisher(calls)));
    }
    Ok(program)
}

/// Counts that it was called, and finishes.
fn finisher(calls: &Arc<AtomicU32>) -> impl Body + 'static {
    let calls = Arc::clone(calls);
    move |_: &mut dyn Context| {
        calls.fetch_add(1, Ordering::SeqCst);
        Step::Finish
    }
}

const LENGTH: Span = Span::from_secs(5);

fn refused(host: &mut dyn Host, program: Program, calls: &Arc<AtomicU32>) -> Result {
    let before = calls.load(Ordering::SeqCst);
    match host.admit_and_run(program, LENGTH) {
        Err(HostError::Refused(reason)) => ensure!(!reason.is_empty(), "no reason given"),
        Err(other) => return Err(other.into()),
        Ok(_) => ensure!(false, "granted although it does not fit"),
    }
    let called = calls.load(Ordering::SeqCst) - before;
    ensure!(
        called == 0,
        "{called} bodies of what was refused were called"
    );
    Ok(())
}

fn accepted(host: &mut dyn Host, program: Program) -> Result {
    run_to(RunEnd::AllFinished, host, program).map(drop)
}

/// What is too much together is refused with a reason, and no body is called.
pub(crate) fn too_much(host: &mut dyn Host, _: &Tolerance) -> Result {
    let calls = Arc::new(AtomicU32::new(0));
    let mut program = Program::new(1);
    for numbers in [[6_000, 10_000], [10_000, 20_000]] {
        let body = finisher(&calls);
        holder(&mut program, numbers, Outside::Confined, true, body)?;
    }
    refused(host, program, &calls)
}

/// Two reservations that leave nothing are granted; a microsecond more is refused.
pub(crate) fn exactly(host: &mut dyn Host, _: &Tolerance) -> Result {
    let calls = Arc::new(AtomicU32::new(0));
    let whole = pair(host, Service::ZERO, &calls)?;
    accepted(host, whole)?;
    let more = pair(host, Service::from_micros(1), &calls)?;
    refused(host, more, &calls)
}

/// What a device takes is not left for slots, to the microsecond.
pub(crate) fn charged(host: &mut dyn Host, _: &Tolerance) -> Result {
    let work = Work {
        service: Service::from_millis(1),
        period: PERIOD,
    };
    let calls = Arc::new(AtomicU32::new(0));
    let mut below_a_device = |more| {
        let mut program = pair_below(host, work.share_ppm(), more, &calls)?;
        let device = program.add("device", CPU, DEVICE, counted(|_, _| Step::Finish));
        program.work.push((device, work));
        Ok::<_, Failure>(program)
    };
    let whole = below_a_device(Service::ZERO)?;
    let more = below_a_device(Service::from_micros(1))?;
    accepted(host, whole)?;
    refused(host, more, &calls)
}

/// More SCHED_DEADLINE than there is is refused, and all of it where there is none.
pub(crate) fn bandwidth(host: &mut dyn Host, _: &Tolerance) -> Result {
    let deadline = host.supply(1)?.deadline;
    let calls = Arc::new(AtomicU32::new(0));
    let holders = |count: u16, service| {
        let reservation = Reservation::new(service, PERIOD)
            .map_err(|error| Failure::Wrong(format!("the case is wrong: {error}")))?;
        let mut program = Program::new(1);
        for _ in 0..count {
            program.push(by_deadline(reservation, false, finisher(&calls)));
        }
        Ok::<_, Failure>(program)
    };
    let little = holders(1, Service::from_millis(1))?;
    let processors = match deadline {
        Ok(supply) => {
            accepted(host, little)?;
            supply.processors.get()
        }
        Err(why) => return cannot_run(host, little, &why),
    };
    let almost_all = PERIOD.as_full_service() / 100 * 99;
    refused(host, holders(processors + 1, almost_all)?, &calls)
}

/// After a refusal, and after a run, the whole capacity is there again.
pub(crate) fn nothing_behind(host: &mut dyn Host, _: &Tolerance) -> Result {
    let calls = Arc::new(AtomicU32::new(0));
    for _ in 0..3 {
        let more = pair(host, Service::from_millis(1), &calls)?;
        refused(host, more, &calls)?;
        let whole = pair(host, Service::ZERO, &calls)?;
        accepted(host, whole)?;
    }
    let called = calls.load(Ordering::SeqCst);
    ensure!(called == 6, "{called} bodies of 6 were called");
    Ok(())
}

/// Who asked finds in the record the grant, by whom, and enforced; nobody else does.
pub(crate) fn grants(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut program = Program::new(1);
    let finish = || counted(|_, _| Step::Finish);
    let numbers = [2_000, 8_000];
    let (who, reservation) = holder(&mut program, numbers, Outside::Confined, true, finish())?;
    // It never asks to have it enforced.
    let (later, _) = holder(&mut program, [1_000, 8_000], ORDINARY, false, finish())?;
    let other = program.add("other", CPU, NORMAL, finish());
    let record = host.admit_and_run(program, LENGTH)?;
    expect_enforced(&record)?;
    let grant = record.usage[who.index()].grant.as_ref();
    let granted = grant.map(|grant| (grant.reservation, grant.enforcer));
    ensure!(
        granted == Some((reservation, Enforcer::Slots)),
        "granted {granted:?} instead of {reservation} by slots"
    );
    let begun = |who: ActivityId| {
        record.usage[who.index()]
            .grant
            .as_ref()
            .map(|grant| grant.has_begun)
    };
    ensure!(
        begun(who) == Some(true) && begun(later) == Some(false),
        "who began is not who is said to have"
    );
    ensure!(
        record.usage[other.index()].grant.is_none(),
        "a grant for who did not ask"
    );
    Ok(())
}
