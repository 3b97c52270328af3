//! What is recorded: complete, in order, and consistent with itself.

use crate::reservations::{asker, by_slots, reservation};
use crate::stage::{CPU, DEVICE, HIGH, LOW, NORMAL, counted, done_or, marks, run_to};
use crate::{Result, Tolerance, ensure, ensure_in_time};
use laxity_model::{
    ActivityId, Context, Enforcer, Event, EventKind, Host, Instant, Placement, ProcessorId,
    Program, ReservationRequest, RunEnd, RunRecord, Service, Span, Step, Whereabouts,
};

/// A burst of marks arrives whole, in order, with both arguments.
pub(crate) fn marks_arrive(host: &mut dyn Host, _: &Tolerance) -> Result {
    const MARKS: u64 = 2_000;
    let mut program = Program::new(1);
    let (odd, even) = (program.mark("odd"), program.mark("even"));
    program.add(
        "marker",
        CPU,
        LOW,
        counted(move |_, context| {
            for n in 0..MARKS {
                let mark = if n % 2 == 1 { odd } else { even };
                context.mark(mark, [n, u64::MAX - n * n]);
            }
            Step::Finish
        }),
    );
    let record = run_to(RunEnd::AllFinished, host, program)?;
    for (first, mark) in [(1, odd), (0, even)] {
        let found = marks(&record, mark);
        let expected = (first..MARKS).step_by(2).map(|n| [n, u64::MAX - n * n]);
        ensure!(
            found.iter().copied().eq(expected),
            "mark {} out of order: {found:?}",
            mark.0
        );
    }
    Ok(())
}

/// Everything at once: a device that queues a deferred call, which wakes a thread, beside a periodic thread and a worker.
fn busy(host: &mut dyn Host) -> Result<(RunRecord, [ActivityId; 5])> {
    let mut program = Program::new(1);
    let (queued, served) = (program.semaphore(0), program.semaphore(0));
    let later = |context: &dyn Context| context.now() + Span::from_millis(2);
    let device = counted(move |calls, context| {
        if calls > 0 {
            context.signal(queued);
        }
        done_or(calls == 30, Step::SleepUntil(later(context)))
    });
    let deferred = counted(move |calls, context| {
        if calls % 2 == 1 {
            context.signal(served);
            return Step::Burn(Service::from_micros(50));
        }
        done_or(calls == 60, Step::Wait(queued))
    });
    let server = counted(move |calls, _| match calls {
        60 => Step::Finish,
        n if n % 2 == 1 => Step::Burn(Service::from_micros(100)),
        _ => Step::Wait(served),
    });
    let periodic =
        counted(move |calls, context| done_or(calls == 20, Step::SleepUntil(later(context))));
    let worker = counted(|calls, _| done_or(calls == 30, Step::Burn(Service::from_millis(1))));
    let who = [
        program.add("device", CPU, DEVICE, device),
        program.add("deferred", CPU, Placement::Deferred, deferred),
        program.add("server", CPU, HIGH, server),
        program.add("periodic", CPU, LOW, periodic),
        program.add("worker", CPU, NORMAL, worker),
    ];
    let record = run_to(RunEnd::AllFinished, host, program)?;
    Ok((record, who))
}

/// All events by time, none before the start or after the end, but for what was under way there.
pub(crate) fn sorted(host: &mut dyn Host, tolerance: &Tolerance) -> Result {
    let (record, _) = busy(host)?;
    for pair in record.events.windows(2) {
        ensure!(pair[0].at <= pair[1].at, "out of order: {pair:?}");
    }
    for event in &record.events {
        let within = record.start <= event.at && event.at <= record.end + tolerance.lateness;
        ensure_in_time!(
            within,
            "outside {:?} to {:?}: {event:?}",
            record.start,
            record.end
        );
    }
    Ok(())
}

/// Where everybody may have run: what a halt of a processor may excuse rests on it.
pub(crate) fn whereabouts(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut program = Program::new(2);
    let there = ProcessorId(1);
    let nothing = || |_: &mut dyn Context| Step::Finish;
    let placed = [
        (CPU, LOW, Whereabouts::On(CPU)),
        (there, LOW, Whereabouts::On(there)),
        (there, Placement::External, Whereabouts::Outside),
    ];
    let mut expected = placed.map(|(_, _, ran)| ran).to_vec();
    for (on, placement, _) in placed {
        program.add("placed", on, placement, nothing());
    }
    let request = by_slots(reservation([2_000, 10_000])?);
    let mut reserve = |enforcer, ran| {
        let asked = ReservationRequest {
            enforcer,
            ..request
        };
        program.push(asker(NORMAL, asked, nothing()));
        expected.push(ran);
    };
    reserve(Enforcer::Slots, Whereabouts::On(CPU));
    if host.supply(2)?.deadline.is_ok() {
        reserve(Enforcer::Deadline, Whereabouts::Anywhere);
    }
    let record = run_to(RunEnd::AllFinished, host, program)?;
    let told: Vec<Whereabouts> = record.usage.iter().map(|usage| usage.ran).collect();
    ensure!(told == expected, "told {told:?} of {expected:?}");
    Ok(())
}

/// What a thread is doing, as far as its events tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Ready,
    Running,
    Blocked,
    Finished,
}

/// The state after an event; `None` where the event cannot happen in the state.
fn next(state: State, event: &Event) -> Option<State> {
    match (state, event.kind) {
        (State::Finished, _) => None,
        (State::Ready | State::Blocked, EventKind::Wake) => Some(State::Ready),
        // A sleep into the past is over without a block; live the thread then says that it runs on.
        (State::Running, EventKind::Wake | EventKind::Dispatch) => Some(State::Running),
        (State::Ready, EventKind::Dispatch) => Some(State::Running),
        (State::Running, EventKind::Preempt) => Some(State::Ready),
        (State::Running, EventKind::Block) => Some(State::Blocked),
        (State::Running, EventKind::Finish) => Some(State::Finished),
        (State::Blocked, EventKind::Finish) => Some(State::Finished),
        (State::Ready | State::Blocked, _) => None,
        (State::Running, _) => Some(State::Running),
    }
}

/// Who blocks was running, is woken once, not early, and runs; a finish is the end.
pub(crate) fn thread_states(host: &mut dyn Host, _: &Tolerance) -> Result {
    let (record, [_, _, threads @ ..]) = busy(host)?;
    for who in threads {
        let mut state = State::Ready;
        for event in record.events.iter().filter(|event| event.activity == who) {
            let after = next(state, event);
            ensure!(
                after.is_some(),
                "activity {who} was {state:?}, and then: {event:?}"
            );
            state = after.unwrap_or(state);
            if event.kind == EventKind::Wake {
                let meant = Instant::from_nanos(event.args[0]);
                ensure!(event.at >= meant, "woke before time: {event:?}");
            }
        }
        ensure!(state == State::Finished, "activity {who} ended {state:?}");
    }
    Ok(())
}

/// Entries and exits of each handler and deferred call alternate.
pub(crate) fn handler_states(host: &mut dyn Host, _: &Tolerance) -> Result {
    let (record, [device, deferred, ..]) = busy(host)?;
    let ranks = [
        (device, EventKind::InterruptEnter, EventKind::InterruptExit),
        (deferred, EventKind::DeferredEnter, EventKind::DeferredExit),
    ];
    for (who, enter, exit) in ranks {
        let mut inside = false;
        let mut entries = 0;
        for event in record.events.iter().filter(|event| event.activity == who) {
            if event.kind == enter {
                ensure!(!inside, "activity {who} entered twice");
                ensure!(
                    event.at.as_nanos() >= event.args[0],
                    "entered before it was called: {event:?}"
                );
                (inside, entries) = (true, entries + 1);
            } else if event.kind == exit {
                ensure!(inside, "activity {who} left twice");
                inside = false;
            }
        }
        ensure!(!inside, "activity {who} never left");
        // The first call, and one for each of thirty instants, as they are too far apart to be served together.
        ensure_in_time!(entries == 31, "activity {who} entered {entries} times");
    }
    Ok(())
}

/// Every signal is an event with its semaphore's number.
pub(crate) fn signals(host: &mut dyn Host, _: &Tolerance) -> Result {
    let (record, [device, deferred, ..]) = busy(host)?;
    for (who, semaphore) in [(device, 0), (deferred, 1)] {
        let recorded = super::stage::of(&record, who, EventKind::Signal);
        ensure!(
            recorded.len() == 30,
            "{} signals of 30 by activity {who}",
            recorded.len()
        );
        let right = recorded.iter().all(|event| event.args[0] == semaphore);
        ensure!(right, "signals to another semaphore than {semaphore}");
    }
    Ok(())
}
