//! Executors: turns among handlers inside one thread.

use crate::reservations::{by_slots, reservation};
use crate::stage::{CPU, DEVICE, LOW, Stage, Story, counted, done_or, micros, of, run_to};
use crate::{Failure, Result, Tolerance, ensure, ensure_in_time};
use laxity_model::analysis::Task;
use laxity_model::executor::ExecutorPolicy;
use laxity_model::executor::edf::Edf;
use laxity_model::executor::fcfs::Fcfs;
use laxity_model::executor::multiclass_edf::MulticlassEdf;
use laxity_model::executor::rmdp::Rmdp;
use laxity_model::policy::raise::Highest;
use laxity_model::policy::three_classes::{By, Early};
use laxity_model::{
    Context, EventKind, ExecutorId, Host, HostError, Instant, Placement, PortId, Program,
    ReservationRequest, RunEnd, SemaphoreId, Service, Span, Step,
};

/// An executor in a thread of real-time priority.
pub(crate) fn executor(program: &mut Program, policy: impl ExecutorPolicy + 'static) -> ExecutorId {
    program.executor("executor", (CPU, LOW), None, policy)
}

/// A place on it, for jobs that are due so many milliseconds after their release.
pub(crate) fn on(executor: ExecutorId, deadline_ms: u64) -> Placement {
    let period = Span::from_secs(1);
    let task = Task::new(Service::from_millis(1), period).ok();
    let task = task.and_then(|task| task.with_deadline(Span::from_millis(deadline_ms)).ok());
    Placement::On { executor, task }
}

/// A device that puts something into one port after the other, so far apart that no two arrive at one instant.
fn one_after_the_other(stage: &mut Stage, ports: Vec<PortId>) -> SemaphoreId {
    let cue = stage.cue();
    stage.actor(DEVICE, cue, move |calls, context| {
        match ports.get(calls as usize) {
            Some(port) => {
                context.put(*port, [calls, 0]);
                Step::Burn(micros(50))
            }
            None => Step::Finish,
        }
    });
    cue
}

/// Three handlers, for which something arrives in this order; each tells at its beginning and after some work.
fn in_order(
    host: &mut dyn Host,
    policy: impl ExecutorPolicy + 'static,
    deadlines_ms: [u64; 3],
    expected: &[u64],
) -> Result {
    let mut stage = Stage::new(1);
    let story = stage.story();
    let executor = executor(&mut stage.program, policy);
    let ports = [(); 3].map(|()| stage.program.port(1));
    let cues = [(); 3].map(|()| stage.cue());
    for (who, ((port, cue), deadline_ms)) in
        (0..).zip(ports.into_iter().zip(cues).zip(deadlines_ms))
    {
        stage.actor(on(executor, deadline_ms), cue, move |calls, context| {
            match calls {
                0 => return Step::Wait(port),
                1 => story.tell(context, who),
                _ => {
                    story.tell(context, who);
                    return Step::Finish;
                }
            }
            Step::Burn(micros(300))
        });
    }
    let device = one_after_the_other(&mut stage, vec![ports[2], ports[0], ports[1]]);
    let mut order = cues.to_vec();
    // The device's cue comes last: by then the handlers wait for their ports, or will when the device has gone.
    order.push(device);
    stage.play(host, &order)?.expect(expected)
}

/// Handlers run in the order in which something arrived for them, each to its end.
pub(crate) fn first_come_first_served(host: &mut dyn Host, _: &Tolerance) -> Result {
    in_order(host, Fcfs::new(), [500, 400, 300], &[2, 2, 0, 0, 1, 1])
}

/// Of those for whom something arrived, the one that is due first runs first.
pub(crate) fn earliest_deadline_first(host: &mut dyn Host, _: &Tolerance) -> Result {
    in_order(host, Edf::new(), [500, 100, 300], &[1, 1, 2, 2, 0, 0])
}

/// Of those for whom something arrived, the one that has the least time runs first, though another is due before.
pub(crate) fn rate_monotonic(host: &mut dyn Host, _: &Tolerance) -> Result {
    in_order(host, Rmdp::new(), [500, 100, 300], &[1, 1, 2, 2, 0, 0])
}

/// What a long job tells: that it began, that it was told to yield, that it was resumed, that it is over; and the other handler.
const BEGAN: u64 = 10;
const ASKED: u64 = 11;
const RESUMED: u64 = 12;
const OVER: u64 = 13;
const URGENT: u64 = 20;

/// Works for 12 ms in pieces of 0.5 ms, and yields when it is told to, if it looks.
pub(crate) fn long_job(
    story: Story,
    looks: bool,
) -> impl FnMut(u64, &mut dyn Context) -> Step + Send {
    let mut pieces = 0;
    let mut yielded = false;
    move |calls, context| {
        if calls == 0 {
            story.tell(context, BEGAN);
        }
        if std::mem::take(&mut yielded) {
            story.tell(context, RESUMED);
        } else if looks && context.should_yield() {
            story.tell(context, ASKED);
            yielded = true;
            return Step::Yield;
        }
        pieces += 1;
        if pieces > 24 {
            story.tell(context, OVER);
            return Step::Finish;
        }
        Step::Burn(micros(500))
    }
}

/// A long job that is due late, and one for which something comes 4 ms after it began, at an instant or at a port.
fn beside_a_long_job(
    host: &mut dyn Host,
    policy: impl ExecutorPolicy + 'static,
    (other_ms, looks, by_port): (u64, bool, bool),
    expected: &[u64],
) -> Result {
    let mut stage = Stage::new(1);
    let story = stage.story();
    let executor = executor(&mut stage.program, policy);
    let (other, long, device) = (stage.cue(), stage.cue(), stage.cue());
    let port = stage.program.port(1);
    stage.actor(on(executor, other_ms), other, move |calls, context| {
        if calls > 0 {
            story.tell(context, URGENT);
            return Step::Finish;
        }
        if by_port {
            Step::Wait(port)
        } else {
            Step::SleepUntil(context.now() + Span::from_millis(4))
        }
    });
    stage.actor(on(executor, 400), long, long_job(story, looks));
    stage.actor(DEVICE, device, move |calls, context| match calls {
        0 => Step::SleepUntil(context.now() + Span::from_millis(4)),
        _ => {
            context.put(port, [0; 2]);
            Step::Finish
        }
    });
    stage
        .play(host, &[other, long, device])?
        .expect_in_time(expected)
}

const YIELDS: &[u64] = &[BEGAN, ASKED, URGENT, RESUMED, OVER];
const DOES_NOT: &[u64] = &[BEGAN, OVER, URGENT];

/// A job yields when a more urgent handler's instant has come, and resumes after it.
pub(crate) fn yields_to_an_instant(host: &mut dyn Host, _: &Tolerance) -> Result {
    beside_a_long_job(host, Edf::new(), (20, true, false), YIELDS)?;
    beside_a_long_job(host, Rmdp::new(), (20, true, false), YIELDS)
}

/// The same when something arrives at the port that a more urgent handler waits for.
pub(crate) fn yields_to_an_arrival(host: &mut dyn Host, _: &Tolerance) -> Result {
    beside_a_long_job(host, Edf::new(), (20, true, true), YIELDS)?;
    beside_a_long_job(host, Rmdp::new(), (20, true, true), YIELDS)
}

/// Of three classes current jobs go by deadline; one that inherits what is early goes behind best effort, or before it, until that is current.
pub(crate) fn in_three_classes(host: &mut dyn Host, _: &Tolerance) -> Result {
    let policy = |early| MulticlassEdf::new(early, By::Deadline);
    in_order(
        host,
        policy(Early::Last),
        [500, 100, 300],
        &[1, 1, 2, 2, 0, 0],
    )?;
    beside_a_long_job(host, policy(Early::Last), (20, true, false), YIELDS)?;
    beside_a_long_job(host, policy(Early::Last), (20, true, true), YIELDS)?;
    early_beside_best_effort(host, policy(Early::Last), 400, YIELDS)?;
    early_beside_best_effort(host, policy(Early::BeforeBestEffort), 400, DOES_NOT)?;
    early_beside_best_effort(host, policy(Early::Last), 0, DOES_NOT)
}

/// A long job of what is current so much after it began, and best effort for which something comes meanwhile.
fn early_beside_best_effort(
    host: &mut dyn Host,
    policy: MulticlassEdf,
    logical_ms: u64,
    expected: &[u64],
) -> Result {
    let mut stage = Stage::new(1);
    let story = stage.story();
    let executor = executor(&mut stage.program, policy);
    let (other, long) = (stage.cue(), stage.cue());
    let never = Placement::On {
        executor,
        task: None,
    };
    stage.actor(never, other, move |calls, context| {
        if calls > 0 {
            story.tell(context, URGENT);
            return Step::Finish;
        }
        Step::SleepUntil(context.now() + Span::from_millis(4))
    });
    let mut work = long_job(story, true);
    stage.actor(on(executor, 400), long, move |calls, context| {
        let now = context.now();
        match calls {
            // By then the other one sleeps.
            0 => return Step::SleepUntil(now + Span::from_millis(1)),
            1 => {
                let logical = now + Span::from_millis(logical_ms);
                context.inherit(logical, logical + Span::from_millis(400));
            }
            _ => {}
        }
        work(calls - 1, context)
    });
    stage.play(host, &[other, long])?.expect_in_time(expected)
}

/// What is left of a job that yielded goes on in its turn: before another of its rate that was released meanwhile.
pub(crate) fn goes_on_in_its_turn(host: &mut dyn Host, _: &Tolerance) -> Result {
    const EQUAL: u64 = 30;
    let mut stage = Stage::new(1);
    let story = stage.story();
    let executor = executor(&mut stage.program, Rmdp::new());
    let mut order = Vec::new();
    // The equal comes first: by the time that the other has the long job yield, it is released.
    for (word, deadline_ms, after_ms) in [(EQUAL, 400, 3), (URGENT, 20, 4)] {
        let cue = stage.cue();
        order.push(cue);
        stage.actor(on(executor, deadline_ms), cue, move |calls, context| {
            if calls > 0 {
                story.tell(context, word);
                return Step::Finish;
            }
            Step::SleepUntil(context.now() + Span::from_millis(after_ms))
        });
    }
    let long = stage.cue();
    order.push(long);
    stage.actor(on(executor, 400), long, long_job(story, true));
    let expected = [BEGAN, ASKED, URGENT, RESUMED, OVER, EQUAL];
    stage.play(host, &order)?.expect(&expected)
}

/// Nobody is told to yield first come, first served, nor for a later deadline, nor to an equal.
pub(crate) fn does_not_yield(host: &mut dyn Host, _: &Tolerance) -> Result {
    for by_port in [false, true] {
        beside_a_long_job(host, Fcfs::new(), (20, true, by_port), DOES_NOT)?;
        beside_a_long_job(host, Edf::new(), (900, true, by_port), DOES_NOT)?;
        beside_a_long_job(host, Rmdp::new(), (400, true, by_port), DOES_NOT)?;
    }
    Ok(())
}

/// A more urgent handler waits until the running job is over.
pub(crate) fn is_not_interrupted(host: &mut dyn Host, _: &Tolerance) -> Result {
    beside_a_long_job(host, Edf::new(), (20, false, false), DOES_NOT)?;
    beside_a_long_job(host, Edf::new(), (20, false, true), DOES_NOT)
}

/// A handler makes another, which runs when something arrives for it, and ends it.
pub(crate) fn made_and_ended(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut stage = Stage::new(1);
    let (story, maker, giver) = (stage.story(), stage.cue(), stage.cue());
    let executor = executor(&mut stage.program, Edf::new());
    let (port, end) = (stage.program.port(8), stage.program.semaphore(0));
    let mut made = None;
    stage.actor(
        on(executor, 500),
        maker,
        move |calls, context| match calls {
            0 => {
                let handler = counted(move |calls, context| {
                    if calls > 0 {
                        let number = context.arrival().map_or(99, |arrival| arrival.payload[0]);
                        story.tell(context, number);
                    }
                    Step::Wait(port)
                });
                made = context
                    .make_handler(Some(Span::from_millis(1)), Box::new(handler))
                    .ok();
                story.tell(context, 100 + u64::from(made.is_some()));
                Step::Wait(end)
            }
            _ => {
                let Some(handler) = made else {
                    return Step::Finish;
                };
                let ended = context.end_handler(handler).is_ok();
                let again = context.end_handler(handler).is_ok();
                story.tell(context, 110 + u64::from(ended) + 2 * u64::from(again));
                Step::Finish
            }
        },
    );
    // A thread below the executor: what it puts is served before it goes on.
    stage.actor(
        crate::stage::NORMAL,
        giver,
        move |calls, context| match calls {
            0..3 => {
                context.put(port, [calls, 0]);
                Step::Burn(micros(100))
            }
            3 => {
                context.signal(end);
                Step::Burn(micros(100))
            }
            _ => {
                context.put(port, [calls, 0]);
                Step::Finish
            }
        },
    );
    let play = stage.play(host, &[maker, giver])?;
    play.expect(&[101, 0, 1, 2, 111])?;
    let usage = play.record.ports[port.index()];
    ensure!(
        (usage.taken, usage.queued) == (3, 1),
        "three were for the handler, one came after its end: {usage:?}"
    );
    Ok(())
}

/// Whichever comes first releases its job, and it can tell which.
pub(crate) fn port_or_instant(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut stage = Stage::new(1);
    let (story, cue) = (stage.story(), stage.cue());
    let executor = executor(&mut stage.program, Fcfs::new());
    let port = stage.program.port(1);
    stage.actor(on(executor, 100), cue, move |calls, context| {
        if calls > 0 {
            story.tell_wait(context);
        }
        if calls == 1 {
            context.put(port, [7, 0]);
        }
        let until = context.now() + Span::from_millis(2);
        done_or(calls == 3, Step::WaitUntil(port, until))
    });
    stage.play(host, &[cue])?.expect(&[1, 70, 1])
}

/// Tasks that may miss a deadline are refused by the bottleneck's name; others run.
pub(crate) fn refused(host: &mut dyn Host, _: &Tolerance) -> Result {
    // Each works for 1 ms, and does not say that it looks; a clock that ticks may be late by two ticks.
    refuses_to_hurry(host, None, [4, 1])
}

/// The same of an executor with a reservation: between two slots of 2 ms in 8 nobody on it runs.
pub(crate) fn in_reservation(host: &mut dyn Host, _: &Tolerance) -> Result {
    refuses_to_hurry(host, Some(by_slots(reservation([2_000, 8_000])?)), [30, 5])
}

/// A task that is due so many milliseconds after its release is admitted, and the same due sooner refused by its name.
fn refuses_to_hurry(
    host: &mut dyn Host,
    request: Option<ReservationRequest>,
    [late_ms, soon_ms]: [u64; 2],
) -> Result {
    let with_deadline = |deadline_ms, soonest_ms: Option<u64>| {
        let mut program = Program::new(1);
        let executor = program.executor("executor", (CPU, LOW), request, Edf::new());
        for (name, deadline_ms) in [("easy", 900), ("hurried", deadline_ms)] {
            let body = counted(|_, _| Step::Finish);
            let who = program.add(name, CPU, on(executor, deadline_ms), body);
            if let Some(ms) = soonest_ms.filter(|_| name == "hurried") {
                program.declare_raise(who, Highest::Deadline(Span::from_millis(ms)));
            }
        }
        program
    };
    host.admit_and_run(with_deadline(late_ms, None), crate::stage::NEVER)?;
    // One that may be raised counts as if it were.
    let raised = host.admit_and_run(with_deadline(late_ms, Some(soon_ms)), crate::stage::NEVER);
    ensure!(
        matches!(raised, Err(HostError::Refused(_))),
        "who may be due too soon is not refused: {raised:?}"
    );
    match host.admit_and_run(with_deadline(soon_ms, None), crate::stage::NEVER) {
        Err(HostError::Refused(why)) => {
            ensure!(
                why.contains("`hurried`"),
                "the bottleneck is not named: {why}"
            );
            Ok(())
        }
        other => Err(Failure::Wrong(format!("it was not refused: {other:?}"))),
    }
}

/// Releases, beginnings and ends are events of the handler's own activity.
pub(crate) fn recorded(host: &mut dyn Host, _: &Tolerance) -> Result {
    const PERIOD: Span = Span::from_millis(2);
    let mut program = Program::new(1);
    let executor = executor(&mut program, Edf::new());
    let mark = program.mark("job");
    let mut next: Option<Instant> = None;
    let body = counted(move |calls, context| {
        let at = next.unwrap_or(context.now()) + PERIOD;
        if calls % 2 == 1 {
            next = Some(at);
            return done_or(calls == 21, Step::SleepUntil(at));
        }
        context.mark(mark, [calls, 0]);
        Step::Burn(micros(100))
    });
    let handler = program.add("handler", CPU, on(executor, 4), body);
    let record = run_to(RunEnd::AllFinished, host, program)?;
    let count = |kind| of(&record, handler, kind).len();
    let counts = [
        EventKind::Dispatch,
        EventKind::Wake,
        EventKind::Block,
        EventKind::Finish,
    ]
    .map(count);
    ensure_in_time!(
        counts == [11, 10, 10, 1],
        "eleven jobs were recorded as {counts:?}"
    );
    ensure!(
        count(EventKind::Mark(mark)) == 11,
        "its marks are not its own: {}",
        count(EventKind::Mark(mark))
    );
    let meant: Vec<u64> = of(&record, handler, EventKind::Wake)
        .iter()
        .map(|wake| wake.args[0])
        .collect();
    ensure!(
        meant
            .windows(2)
            .all(|pair| pair[1] - pair[0] == PERIOD.as_nanos()),
        "releases are not on the grid: {meant:?}"
    );
    Ok(())
}
