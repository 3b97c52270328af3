//! Interrupts by level, deferred calls, and the devices behind them.

mod common;

use common::*;
use laxity_model::{
    Context, EventKind, Instant, InterruptLevel, Placement, Program, SemaphoreId, Service, Span,
    Step,
};
use laxity_sim::{Costs, Profile};

fn interrupt(level: u8) -> Placement {
    Placement::Interrupt(InterruptLevel(level))
}

/// A handler that is raised once, at an instant, and works.
fn once(at: Instant, service: Service) -> impl FnMut(&mut dyn Context) -> Step + Send {
    script(&[Step::SleepUntil(at), Step::Charge(service)])
}

#[test]
fn a_higher_level_interrupts_a_handler_and_a_lower_or_equal_one_waits() {
    let mut program = Program::new(1);
    program.add("middle", CPU, interrupt(5), once(ms(1), work(2_000)));
    program.add("higher", CPU, interrupt(9), once(ms(2), work(500)));
    program.add("equal", CPU, interrupt(5), once(ms(2), work(100)));
    program.add("lower", CPU, interrupt(3), once(ms(1), work(100)));
    let record = run(Profile::IDEAL, program, 100);
    let after_arming = |kind| -> Vec<_> {
        let all = occurrences(&record, kind).into_iter();
        all.filter(|(at, _)| *at > 0).collect()
    };
    let entered = [(1_000, 0), (2_000, 1), (3_500, 2), (3_600, 3)];
    assert_eq!(after_arming(EventKind::InterruptEnter), entered);
    let left = [(2_500, 1), (3_500, 0), (3_600, 2), (3_700, 3)];
    assert_eq!(after_arming(EventKind::InterruptExit), left);
    // The lower one was raised at 1 ms, and says so when it is accepted.
    let raised_at: Vec<u64> = record
        .events
        .iter()
        .filter(|e| e.kind == EventKind::InterruptEnter && e.activity.0 == 3)
        .map(|e| e.args[0])
        .collect();
    assert_eq!(raised_at, [0, 1_000_000]);
    assert_eq!(record.usage[0].service, work(2_000));
}

/// A device raises its line three times while a higher handler keeps the deferred call off the processor: it is queued
/// once, runs once, and finds all three in the semaphore's count.
#[test]
fn a_deferred_call_is_queued_once_and_serves_all_that_was_counted() {
    let mut program = Program::new(1);
    let count = program.semaphore(0);
    let served = program.mark("served");
    let mut raised = 0;
    program.add(
        "device",
        CPU,
        interrupt(9),
        move |context: &mut dyn Context| {
            if raised > 0 {
                context.signal(count);
            }
            raised += 1;
            if raised > 3 {
                Step::Finish
            } else {
                Step::SleepUntil(ms(raised))
            }
        },
    );
    program.add(
        "long",
        CPU,
        interrupt(3),
        once(Instant::from_micros(500), work(4_000)),
    );
    let serves = times(u32::MAX, Step::Wait(count), move |c| c.mark(served, [0; 2]));
    program.add("deferred", CPU, Placement::Deferred, serves);
    let record = run(Profile::IDEAL, program, 100);
    let entered = occurrences(&record, EventKind::DeferredEnter);
    assert_eq!(entered, [(0, 2), (4_500, 2)]);
    assert_eq!(
        occurrences(&record, EventKind::Mark(served)),
        [(4_500, 2); 3]
    );
    assert_eq!(
        occurrences(&record, EventKind::DeferredExit),
        [(0, 2), (4_500, 2)]
    );
    let exits = record
        .events
        .iter()
        .filter(|event| event.kind == EventKind::DeferredExit);
    let further: Vec<u64> = exits.map(|event| event.args[1]).collect();
    assert_eq!(further, [0, 2], "how many it served besides");
}

#[test]
fn deferred_calls_are_served_in_order_and_before_any_thread_and_below_any_interrupt() {
    let mut program = Program::new(1);
    let (first, second) = (program.semaphore(0), program.semaphore(0));
    let device = script_then(&[Step::SleepUntil(ms(1))], move |context| {
        context.signal(second);
        context.signal(first);
    });
    program.add("device", CPU, interrupt(3), device);
    let deferred = |semaphore| script(&[Step::Wait(semaphore), Step::Charge(work(1_000))]);
    program.add("first", CPU, Placement::Deferred, deferred(first));
    program.add("second", CPU, Placement::Deferred, deferred(second));
    program.add(
        "late",
        CPU,
        interrupt(3),
        once(Instant::from_micros(1_500), work(250)),
    );
    program.add(
        "thread",
        CPU,
        thread(31),
        script(&[Step::Charge(work(2_000))]),
    );
    let record = run(Profile::IDEAL, program, 100);
    let finished = occurrences(&record, EventKind::Finish);
    assert_eq!(
        finished,
        [(1_000, 0), (1_750, 3), (2_250, 2), (3_250, 1), (4_250, 4)]
    );
    // The thread was interrupted, not preempted.
    assert_eq!(occurrences(&record, EventKind::Preempt), []);
    assert_eq!(record.usage[4].involuntary_switches, 0);
}

#[test]
fn the_way_into_and_out_of_a_handler_costs_what_the_profile_says() {
    let costs = Costs {
        interrupt_entry: Span::from_micros(20),
        interrupt_exit: Span::from_micros(10),
        deferred_dispatch: Span::from_micros(5),
        ..Costs::NONE
    };
    let profile = Profile {
        costs,
        ..Profile::IDEAL
    };
    let mut program = Program::new(1);
    let queue = program.semaphore(0);
    let steps = [Step::SleepUntil(ms(1)), Step::Charge(work(100))];
    let device = script_then(&steps, move |context| context.signal(queue));
    program.add("device", CPU, interrupt(3), device);
    let body = script(&[Step::Wait(queue), Step::Charge(work(50))]);
    program.add("deferred", CPU, Placement::Deferred, body);
    program.add(
        "thread",
        CPU,
        thread(8),
        script(&[Step::Charge(work(2_000))]),
    );
    let record = run(profile, program, 100);
    // In at 1000, 20 to enter, 100 of work; 10 to leave, 5 to dispatch, 50 of work.
    let finished = occurrences(&record, EventKind::Finish);
    // The thread loses 35 µs to the arming of the two at the start, and 185 µs here.
    assert_eq!(finished, [(1_120, 0), (1_185, 1), (2_220, 2)]);
    let service: Vec<_> = record.usage.iter().map(|usage| usage.service).collect();
    assert_eq!(service, [work(100), work(50), work(2_000)]);
}

#[test]
fn a_handler_that_is_late_for_its_device_is_raised_again_at_once() {
    let mut program = Program::new(1);
    let mut next = Instant::ZERO;
    let mut working = false;
    program.add("device", CPU, interrupt(3), move |_: &mut dyn Context| {
        working = !working;
        if working && next == ms(1) {
            return Step::Charge(work(2_500));
        }
        working = false;
        next += Span::from_millis(1);
        Step::SleepUntil(next)
    });
    let record = run(Profile::IDEAL, program, 6);
    let entered = occurrences(&record, EventKind::InterruptEnter);
    let at: Vec<u64> = entered.into_iter().map(|(at, _)| at).collect();
    // Those of 2 and 3 ms come late, one after the other.
    assert_eq!(at, [0, 1_000, 3_500, 3_500, 4_000, 5_000]);
}

#[test]
fn external_activities_take_time_but_no_processor() {
    let mut program = Program::new(1);
    let line = program.semaphore(0);
    program.add("spinner", CPU, thread(31), spinner());
    let blocks = times(3, Step::Charge(work(1_250)), move |c| c.signal(line));
    program.add("card", CPU, Placement::External, blocks);
    program.add("handler", CPU, interrupt(3), move |_: &mut dyn Context| {
        Step::Wait(line)
    });
    let record = run(Profile::IDEAL, program, 10);
    let entered = occurrences(&record, EventKind::InterruptEnter);
    assert_eq!(entered, [(0, 2), (1_250, 2), (2_500, 2), (3_750, 2)]);
    assert_eq!(record.usage[0].service, Service::from_millis(10));
    assert_eq!(record.usage[1].service, Service::ZERO);
}

/// When a wait until an instant for a semaphore of this count was over, and whether by time; `more` puts who signals beside the waiter.
fn wait_until(
    (count, until): (u32, Instant),
    more: impl FnOnce(&mut Program, SemaphoreId),
) -> Option<(Instant, bool)> {
    let mut program = Program::new(1);
    let semaphore = program.semaphore(count);
    let outcome = program.mark("outcome");
    let mut waited = false;
    let waiter = move |context: &mut dyn Context| {
        if waited {
            context.mark(outcome, [u64::from(context.timed_out()), 7]);
            return Step::EndRun;
        }
        waited = true;
        Step::WaitUntil(semaphore, until)
    };
    program.add("waiter", CPU, thread(8), waiter);
    more(&mut program, semaphore);
    let record = run(Profile::IDEAL, program, 10);
    let mut marks = record.events.iter();
    let mark = marks.find(|e| e.kind == EventKind::Mark(outcome));
    mark.map(|e| (e.at, e.args[0] == 1))
}

#[test]
fn a_signal_at_the_very_instant_beats_the_time_out() {
    for (signal_at, timed_out) in [(4, false), (5, false), (6, true)] {
        let over = wait_until((0, ms(5)), |program, semaphore| {
            let mut worked = false;
            let signaller = move |context: &mut dyn Context| {
                if worked {
                    context.signal(semaphore);
                    return Step::Finish;
                }
                worked = true;
                Step::Charge(Service::from_millis(signal_at))
            };
            program.add("signaller", CPU, thread(7), signaller);
        });
        assert_eq!(over, Some((ms(signal_at.min(5)), timed_out)));
    }
}

#[test]
fn a_wait_whose_time_is_past_is_over_at_once_unless_the_count_helps() {
    for (count, timed_out) in [(0, true), (1, false)] {
        let over = wait_until((count, Instant::ZERO), |_, _| {});
        assert_eq!(over, Some((ms(0), timed_out)));
    }
}

/// `Context::service` is what the activity has received by now, whoever else ran meanwhile.
#[test]
fn a_body_can_ask_for_the_service_it_has_received() {
    let mut program = Program::new(1);
    let seen = program.mark("seen");
    program.add("storm", CPU, interrupt(3), once(ms(1), work(2_000)));
    let mut steps = 0;
    program.add(
        "thread",
        CPU,
        thread(8),
        move |context: &mut dyn Context| {
            context.mark(
                seen,
                [context.service().as_nanos(), context.now().as_nanos()],
            );
            steps += 1;
            if steps > 2 {
                Step::Finish
            } else {
                Step::Charge(work(1_500))
            }
        },
    );
    let record = run(Profile::IDEAL, program, 10);
    let of_kind = record
        .events
        .iter()
        .filter(|e| e.kind == EventKind::Mark(seen));
    let seen: Vec<_> = of_kind.map(|e| e.args).collect();
    assert_eq!(
        seen,
        [[0, 0], [1_500_000, 3_500_000], [3_000_000, 5_000_000]]
    );
}
