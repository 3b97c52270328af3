//! Interrupt handlers and deferred calls, above every thread.

use crate::stage::{DEVICE, LOW, Stage, Story, TOP, done_or, micros};
use crate::{Result, Tolerance, ensure, ensure_in_time};
use laxity_model::{Context, EventKind, Host, Placement, SemaphoreId, Service, Span, Step};

/// Told by what is interrupted, and between them by what interrupts.
const BEGIN: u64 = 1;
const BETWEEN: u64 = 2;
const END: u64 = 3;

/// Work that lets a device know when it begins.
fn long_work(
    story: Story,
    device: SemaphoreId,
) -> impl FnMut(u64, &mut dyn Context) -> Step + Send + 'static {
    move |calls, context| {
        if calls > 0 {
            story.tell(context, END);
            return Step::Finish;
        }
        story.tell(context, BEGIN);
        context.signal(device);
        Step::Burn(Service::from_millis(12))
    }
}

/// A device whose line goes up two milliseconds after it was told.
fn soon(story: Story) -> impl FnMut(u64, &mut dyn Context) -> Step + Send + 'static {
    move |calls, context| {
        if calls == 0 {
            return Step::SleepUntil(context.now() + Span::from_millis(2));
        }
        story.tell(context, BETWEEN);
        Step::Finish
    }
}

fn interrupts(host: &mut dyn Host, below: Placement) -> Result {
    let mut stage = Stage::new(1);
    let (story, work, device) = (stage.story(), stage.cue(), stage.cue());
    stage.actor(below, work, long_work(story, device));
    stage.actor(DEVICE, device, soon(story));
    stage
        .play(host, &[work])?
        .expect_in_time(&[BEGIN, BETWEEN, END])
}

/// A handler does not wait for a thread of the highest priority.
pub(crate) fn interrupt_above_thread(host: &mut dyn Host, _: &Tolerance) -> Result {
    interrupts(host, TOP)
}

/// A handler does not wait for a deferred call.
pub(crate) fn interrupt_above_deferred(host: &mut dyn Host, _: &Tolerance) -> Result {
    interrupts(host, Placement::Deferred)
}

/// Something signals others at its beginning, which then run in this order after its end.
fn completes(host: &mut dyn Host, who: Placement, others: &[Placement]) -> Result {
    let mut stage = Stage::new(1);
    let (story, first) = (stage.story(), stage.cue());
    let mut cues = Vec::new();
    for (number, placement) in (10..).zip(others) {
        let cue = stage.cue();
        cues.push(cue);
        stage.teller(*placement, cue, number);
    }
    let expected: Vec<u64> = [BEGIN, END]
        .into_iter()
        .chain((10..).take(cues.len()))
        .collect();
    // The lowest first, so that nothing but their rank makes their order.
    cues.reverse();
    stage.actor(who, first, move |calls, context| {
        if calls > 0 {
            story.tell(context, END);
            return Step::Finish;
        }
        story.tell(context, BEGIN);
        cues.iter().for_each(|cue| context.signal(*cue));
        Step::Burn(micros(600))
    });
    stage.play(host, &[first])?.expect(&expected)
}

/// A handler is over before deferred calls, threads and handlers of its level go on.
pub(crate) fn handler_to_completion(host: &mut dyn Host, _: &Tolerance) -> Result {
    completes(host, DEVICE, &[DEVICE, Placement::Deferred, TOP, LOW])
}

/// A deferred call is over before another one, or any thread, begins.
pub(crate) fn deferred_to_completion(host: &mut dyn Host, _: &Tolerance) -> Result {
    completes(host, Placement::Deferred, &[Placement::Deferred, TOP, LOW])
}

/// A deferred call queued after a thread became ready runs first.
pub(crate) fn deferred_above_thread(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut stage = Stage::new(1);
    let (thread, deferred) = (stage.cue(), stage.cue());
    for (what, placement, cue) in [(2, TOP, thread), (1, Placement::Deferred, deferred)] {
        stage.teller(placement, cue, what);
    }
    stage.play(host, &[thread, deferred])?.expect(&[1, 2])
}

/// The queue of deferred calls is first in, first out, round after round.
pub(crate) fn deferred_in_order(host: &mut dyn Host, _: &Tolerance) -> Result {
    const ROUNDS: u64 = 10;
    let mut stage = Stage::new(1);
    let (story, device) = (stage.story(), stage.cue());
    let cues = [(); 3].map(|()| stage.cue());
    for (who, cue) in (0..).zip(cues) {
        let mut rounds = 0;
        stage.actor(Placement::Deferred, cue, move |calls, context| {
            if calls % 2 == 0 {
                story.tell(context, who);
                return Step::Burn(micros(100));
            }
            rounds += 1;
            done_or(rounds == ROUNDS, Step::Wait(cue))
        });
    }
    let order = [1, 2, 0];
    stage.actor(DEVICE, device, move |calls, context| {
        for who in order {
            context.signal(cues[who as usize]);
        }
        done_or(
            calls + 1 == ROUNDS,
            Step::SleepUntil(context.now() + Span::from_millis(4)),
        )
    });
    let expected = order.repeat(ROUNDS as usize);
    stage.play(host, &[device])?.expect_in_time(&expected)
}

/// Signals to a deferred call that cannot run are counted, and each is served once.
pub(crate) fn deferred_counts(host: &mut dyn Host, _: &Tolerance) -> Result {
    const SIGNALS: u64 = 7;
    let mut stage = Stage::new(1);
    let (story, device, count) = (stage.story(), stage.cue(), stage.cue());
    stage.actor(DEVICE, device, move |calls, context| {
        if calls < SIGNALS {
            context.signal(count);
            return Step::Burn(micros(50));
        }
        story.tell(context, 100);
        Step::Finish
    });
    // After its last one it waits for ever, so that one too many would be told.
    stage.actor(Placement::Deferred, count, move |calls, context| {
        story.tell(context, calls);
        Step::Wait(count)
    });
    let end = stage.cue();
    stage.ender(LOW, end);
    let play = stage.play_until(laxity_model::RunEnd::EndRun, host, &[end, device])?;
    let expected: Vec<u64> = [100].into_iter().chain(0..SIGNALS).collect();
    play.expect(&expected)
}

/// A handler is entered once for each instant, never early, and knows the instant.
pub(crate) fn device_instants(host: &mut dyn Host, _: &Tolerance) -> Result {
    const INSTANTS: u64 = 25;
    const PERIOD: Span = Span::from_millis(2);
    let mut stage = Stage::new(1);
    let cue = stage.cue();
    let mut next = None;
    let who = stage.actor(DEVICE, cue, move |calls, context| {
        let due = next.unwrap_or_else(|| context.now()) + PERIOD;
        next = Some(due);
        done_or(calls == INSTANTS, Step::SleepUntil(due))
    });
    let play = stage.play(host, &[cue])?;
    let enters = super::stage::of(&play.record, who, EventKind::InterruptEnter);
    let exits = super::stage::of(&play.record, who, EventKind::InterruptExit);
    // Before its instants: the first call, and the cue.
    ensure_in_time!(
        enters.len() as u64 == INSTANTS + 2,
        "entered {} times instead of {}",
        enters.len(),
        INSTANTS + 2
    );
    ensure!(
        exits.len() == enters.len(),
        "{} exits of {} entries",
        exits.len(),
        enters.len()
    );
    for pair in enters[2..].windows(2) {
        let apart = pair[1].args[0] - pair[0].args[0];
        ensure!(apart == PERIOD.as_nanos(), "raised {apart} ns apart");
    }
    for enter in &enters {
        ensure!(
            enter.at.as_nanos() >= enter.args[0],
            "entered before it was raised: {enter:?}"
        );
    }
    Ok(())
}
