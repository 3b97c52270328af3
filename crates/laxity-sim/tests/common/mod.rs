//! Bodies and readings that the tests share.
#![allow(dead_code, reason = "each test program uses its own part")]

use laxity_model::enforce::machine::{Figure, Machine, Quantiles};
use laxity_model::{
    Activity, ActivityId, Context, Enforcer, Event, EventKind, Host, Instant, Mark, Outside,
    Placement, Priority, ProcessorId, Program, Reservation, ReservationRequest, RunRecord, Service,
    Span, Step,
};
use laxity_sim::{Profile, Twin};

pub(crate) const CPU: ProcessorId = ProcessorId(0);

pub(crate) fn thread(level: u8) -> Placement {
    Placement::Thread(Priority::new(level).expect("a level below 32"))
}

pub(crate) fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

pub(crate) fn work(micros: u64) -> Service {
    Service::from_micros(micros)
}

pub(crate) fn run(profile: Profile, program: Program, millis: u64) -> RunRecord {
    let record = Twin::new(profile).admit_and_run(program, Span::from_millis(millis));
    record.expect("the program is right")
}

/// Works for ever.
pub(crate) fn spinner() -> impl FnMut(&mut dyn Context) -> Step + Send {
    |_: &mut dyn Context| Step::Burn(Service::from_secs(1_000))
}

/// Does these steps, one after the other, and finishes.
pub(crate) fn script(steps: &[Step]) -> impl FnMut(&mut dyn Context) -> Step + Send + use<> {
    script_then(steps, |_| ())
}

/// The same, and acts before it finishes.
pub(crate) fn script_then<A: FnMut(&mut dyn Context) + Send>(
    steps: &[Step],
    mut act: A,
) -> impl FnMut(&mut dyn Context) -> Step + Send + use<A> {
    let mut steps = Vec::from(steps).into_iter();
    move |context: &mut dyn Context| {
        steps.next().unwrap_or_else(|| {
            act(context);
            Step::Finish
        })
    }
}

/// Does the step so often, and `act` after each; then it finishes.
pub(crate) fn times(
    mut count: u32,
    step: Step,
    mut act: impl FnMut(&mut dyn Context) + Send,
) -> impl FnMut(&mut dyn Context) -> Step + Send {
    let mut done = false;
    move |context: &mut dyn Context| {
        if done {
            act(context);
        }
        done = true;
        match count.checked_sub(1) {
            Some(left) => {
                count = left;
                step
            }
            None => Step::Finish,
        }
    }
}

/// Works every period, and marks the end of each job with its release and its response time.
pub(crate) fn periodic(
    period: Span,
    work: Service,
    done: Mark,
) -> impl FnMut(&mut dyn Context) -> Step + Send {
    let mut release = Instant::ZERO;
    let mut working = false;
    move |context: &mut dyn Context| {
        working = !working;
        if working {
            return Step::Charge(work);
        }
        let response = context.now() - release;
        context.mark(done, [release.as_nanos(), response.as_nanos()]);
        release += period;
        Step::SleepUntil(release)
    }
}

/// A thread with a reservation by slots that is in force from the start.
pub(crate) fn reserved(
    level: u8,
    reservation: Reservation,
    outside: Outside,
    body: impl FnMut(&mut dyn Context) -> Step + Send + 'static,
) -> Activity {
    Activity {
        name: "reserved".into(),
        processor: CPU,
        placement: thread(level),
        reservation: Some(ReservationRequest {
            reservation,
            enforcer: Enforcer::Slots,
            outside,
            begins_at_start: true,
        }),
        body: Box::new(body),
    }
}

/// Every event on a line of its own, in the units a person would use.
pub(crate) fn table(record: &RunRecord) -> String {
    let line = |event: &Event| {
        let args = match event.args {
            [0, 0] => String::new(),
            [first, 0] => format!(" {first}"),
            [first, second] => format!(" {first} {second}"),
        };
        let at = event.at.as_nanos();
        let (kind, who, cpu) = (event.kind, event.activity, event.processor);
        format!("{at:>9} cpu{cpu} #{who} {kind:?}{args}\n")
    };
    record.events.iter().map(line).collect()
}

/// The times and activities of all events of one kind.
pub(crate) fn occurrences(record: &RunRecord, kind: EventKind) -> Vec<(u64, u16)> {
    let of_kind = record.events.iter().filter(|event| event.kind == kind);
    of_kind
        .map(|event| (event.at.as_micros(), event.activity.0))
        .collect()
}

/// When a thread had its processor to itself: between `Dispatch` and `Preempt`, `Block` or `Finish`; interrupts not taken off.
pub(crate) fn stretches(record: &RunRecord, who: ActivityId) -> Vec<(Instant, Instant)> {
    let mut since = None;
    let mut out = Vec::new();
    for event in record.events.iter().filter(|event| event.activity == who) {
        match event.kind {
            EventKind::Dispatch => since = Some(event.at),
            EventKind::Preempt | EventKind::Block | EventKind::Finish => {
                out.extend(since.take().map(|since| (since, event.at)));
            }
            _ => {}
        }
    }
    out.extend(since.map(|since| (since, record.end)));
    out
}

fn micros(points: &[(u32, u64)]) -> Quantiles {
    let points = points
        .iter()
        .map(|(ppm, us)| (*ppm, Span::from_micros(*us)));
    Quantiles::new(points.collect()).expect("a distribution")
}

/// A machine of the order of a virtual one with two processors and a tick of 4 ms, its tails cut off.
pub(crate) fn linux_machine() -> Machine {
    let mut machine = Machine::without_costs(250).with([
        (
            Figure::Tick,
            micros(&[(0, 2), (500_000, 5), (1_000_000, 20)]),
        ),
        (Figure::ContextSwitch, micros(&[(0, 1), (1_000_000, 2)])),
        (
            Figure::Wakeup,
            micros(&[(0, 6), (500_000, 12), (990_000, 40), (1_000_000, 90)]),
        ),
        (
            Figure::WakeupIdle,
            micros(&[(0, 10), (500_000, 30), (1_000_000, 90)]),
        ),
        (
            Figure::Preemption,
            Quantiles::constant(Span::from_micros(4)),
        ),
        (Figure::Handover, micros(&[(0, 2), (1_000_000, 5)])),
        (Figure::Block, Quantiles::constant(Span::from_micros(1))),
        (
            Figure::PolicyChange,
            Quantiles::constant(Span::from_micros(1)),
        ),
        (Figure::Timer, Quantiles::constant(Span::from_micros(1))),
        (Figure::CacheReload, micros(&[(0, 0), (1_000_000, 3)])),
        (
            Figure::DeadlineOverrun,
            micros(&[(0, 0), (1_000_000, 4_000)]),
        ),
        (
            Figure::DeadlineReplenish,
            micros(&[(0, 10), (1_000_000, 40)]),
        ),
        (
            Figure::SlotBegin,
            Quantiles::constant(Span::from_micros(40)),
        ),
        (Figure::SlotEdge, micros(&[(0, 6), (1_000_000, 9)])),
        (Figure::SlotEntering, micros(&[(0, 5), (1_000_000, 9)])),
        (Figure::SlotLeaving, micros(&[(0, 4), (1_000_000, 12)])),
        (Figure::SlotCut, Quantiles::constant(Span::ZERO)),
    ]);
    machine.slot_lead = Span::from_micros(40);
    machine
}
