//! Blocking, waking and counting.

use crate::stage::{CPU, DEVICE, HIGH, LOW, MIDDLE, Stage, done_or};
use crate::{Result, Tolerance, ensure};
use laxity_model::{Host, ProcessorId, RunEnd, Span, Step};

const ROUNDS: u64 = 1_000;

fn rally(host: &mut dyn Host, processors: [ProcessorId; 2]) -> Result {
    let mut stage = Stage::new(processors[1].0 + 1);
    let story = stage.story();
    let cues = [stage.cue(), stage.cue()];
    for (who, processor) in (0..).zip(processors) {
        let (own, other) = (cues[who as usize], cues[1 - who as usize]);
        stage.actor_on(processor, MIDDLE, own, move |calls, context| {
            story.tell(context, 2 * calls + who);
            context.signal(other);
            done_or(calls + 1 == ROUNDS, Step::Wait(own))
        });
    }
    let expected: Vec<u64> = (0..2 * ROUNDS).collect();
    let play = stage.play(host, &cues[..1])?;
    ensure!(
        play.told == expected,
        "{} of {} strokes in order",
        in_order(&play.told),
        2 * ROUNDS
    );
    Ok(())
}

/// How many there are before the first that is out of order.
fn in_order(told: &[u64]) -> usize {
    let wrong = (0..)
        .zip(told)
        .position(|(expected, told)| expected != *told);
    wrong.unwrap_or(told.len())
}

/// Two threads that wake each other lose no wake-up in a thousand rounds.
pub(crate) fn ping_pong(host: &mut dyn Host, _: &Tolerance) -> Result {
    rally(host, [CPU, CPU])
}

/// The same, from one processor to another.
pub(crate) fn ping_pong_across(host: &mut dyn Host, _: &Tolerance) -> Result {
    rally(host, [CPU, ProcessorId(1)])
}

/// As many waits as the initial count go on at once, and the next one blocks.
pub(crate) fn initial_count(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut stage = Stage::new(1);
    let (story, taker, giver) = (stage.story(), stage.cue(), stage.cue());
    let three = stage.program.semaphore(3);
    stage.actor(HIGH, taker, move |calls, context| {
        story.tell(context, calls);
        done_or(calls == 4, Step::Wait(three))
    });
    stage.actor(LOW, giver, move |_, context| {
        story.tell(context, 100);
        context.signal(three);
        Step::Finish
    });
    let play = stage.play(host, &[giver, taker])?;
    play.expect(&[0, 1, 2, 3, 100, 4])
}

/// What was signalled while nobody waited is taken later, each once.
pub(crate) fn counts_are_kept(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut stage = Stage::new(1);
    let (story, giver, count) = (stage.story(), stage.cue(), stage.cue());
    let end = stage.cue();
    stage.actor(LOW, count, move |calls, context| {
        story.tell(context, calls);
        Step::Wait(count)
    });
    stage.actor(HIGH, giver, move |_, context| {
        for _ in 0..5 {
            context.signal(count);
        }
        context.signal(end);
        Step::Finish
    });
    // Late enough that a sixth would have been taken.
    stage.ender(LOW, end);
    let play = stage.play_until(RunEnd::EndRun, host, &[giver])?;
    play.expect(&[0, 1, 2, 3, 4])
}

/// Three signals wake three of five equal waiters, first come, first served.
pub(crate) fn one_signal_one_waiter(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut stage = Stage::new(1);
    let (story, signal, giver) = (stage.story(), stage.cue(), stage.cue());
    let cues = [(); 5].map(|()| stage.cue());
    for (who, cue) in (0..).zip(cues) {
        stage.actor(MIDDLE, cue, move |calls, context| {
            if calls == 0 {
                return Step::Wait(signal);
            }
            story.tell(context, who);
            Step::Finish
        });
    }
    stage.actor(LOW, giver, move |calls, context| match calls {
        0 => {
            for _ in 0..3 {
                context.signal(signal);
            }
            Step::SleepUntil(context.now() + Span::from_millis(5))
        }
        _ => Step::EndRun,
    });
    let arrivals = [cues[3], cues[1], cues[4], cues[0], cues[2], giver];
    let play = stage.play_until(RunEnd::EndRun, host, &arrivals)?;
    play.expect(&[3, 1, 4])
}

/// A waiter that has gone leaves the next signal to the others.
pub(crate) fn timeout_takes_nothing(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut stage = Stage::new(1);
    let (story, gone, stays, device) = (stage.story(), stage.cue(), stage.cue(), stage.cue());
    let signal = stage.cue();
    stage.actor(HIGH, gone, move |calls, context| match calls {
        0 => Step::WaitUntil(signal, context.now() + Span::from_millis(2)),
        1 => {
            let told = 10 + u64::from(context.timed_out());
            story.tell(context, told);
            context.signal(device);
            Step::SleepUntil(context.now() + Span::from_millis(5))
        }
        _ => Step::EndRun,
    });
    stage.actor(LOW, stays, move |calls, context| match calls {
        0 => Step::Wait(signal),
        _ => {
            story.tell(context, 20);
            Step::Finish
        }
    });
    stage.actor(DEVICE, device, move |_, context| {
        context.signal(signal);
        Step::Finish
    });
    let play = stage.play_until(RunEnd::EndRun, host, &[gone, stays])?;
    play.expect_in_time(&[11, 20])
}
