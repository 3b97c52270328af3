//! Sleeping, and waiting for no longer than an instant.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::stage::{HIGH, LOW, MIDDLE, Stage, TOP, at, done_or, of};
use crate::{Result, Tolerance, ensure};
use laxity_model::{EventKind, Host, Instant, Placement, Service, Span, Step};

const PERIOD: Span = Span::from_millis(4);
const RELEASES: u64 = 40;

/// A periodic thread whose job number `long` takes so much; returns its wake-ups after the first of them.
fn releases(host: &mut dyn Host, long: u64, work: Service) -> Result {
    let mut stage = Stage::new(1);
    let (story, cue) = (stage.story(), stage.cue());
    let mut release = Instant::ZERO;
    let mut works = false;
    let mut job = 0;
    let who = stage.actor(HIGH, cue, move |calls, context| {
        if calls == 0 {
            release = context.now();
        } else if job == long && !works {
            works = true;
            return Step::Burn(work);
        }
        story.tell(context, job);
        job += 1;
        release += PERIOD;
        done_or(job > RELEASES, Step::SleepUntil(release))
    });
    let play = stage.play(host, &[cue])?;
    let wakes = of(&play.record, who, EventKind::Wake);
    let expected: Vec<u64> = (0..=RELEASES).collect();
    play.expect(&expected)?;
    let grid = &wakes[wakes.len().saturating_sub(RELEASES as usize)..];
    let count = grid.len() as u64;
    ensure!(count == RELEASES, "{count} wake-ups of {RELEASES}");
    for pair in grid.windows(2) {
        let apart = at(pair[1].args[0]).saturating_since(at(pair[0].args[0]));
        ensure!(apart == PERIOD, "releases {apart} apart");
    }
    for wake in grid {
        let is_early = wake.at < at(wake.args[0]);
        ensure!(!is_early, "woke before its release: {wake:?}");
    }
    Ok(())
}

/// A periodic thread wakes once for each release, never early, and does not drift.
pub(crate) fn periodic(host: &mut dyn Host, _: &Tolerance) -> Result {
    releases(host, 0, Service::from_micros(10))
}

/// A job that takes several periods delays the following releases and drops none.
pub(crate) fn overrun(host: &mut dyn Host, _: &Tolerance) -> Result {
    releases(host, 10, Service::from_millis(14))
}

/// A sleep until an instant that is over leaves nothing to a lower priority.
pub(crate) fn past(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut stage = Stage::new(1);
    let (story, low, high) = (stage.story(), stage.cue(), stage.cue());
    stage.teller(LOW, low, 2);
    stage.actor(HIGH, high, move |calls, context| {
        if calls < 100 {
            return Step::SleepUntil(context.now());
        }
        story.tell(context, 1);
        Step::Finish
    });
    stage.play(host, &[low, high])?.expect(&[1, 2])
}

/// Of threads that ask in this order to sleep so many milliseconds from one instant on, each by its number: who wakes in which order.
fn sleepers(host: &mut dyn Host, sleepers: &[(Placement, u64)], expected: &[u64]) -> Result {
    let mut stage = Stage::new(1);
    let (story, begin) = (stage.story(), stage.cue());
    // The instant is that at which the first to run does so.
    let origin = Arc::new(AtomicU64::new(0));
    let mut cues = Vec::new();
    for (who, (placement, length_ms)) in (0..).zip(sleepers) {
        let (cue, length) = (stage.cue(), Span::from_millis(*length_ms));
        cues.push(cue);
        let origin = Arc::clone(&origin);
        stage.actor(*placement, cue, move |calls, context| {
            if calls == 0 {
                return Step::SleepUntil(at(origin.load(Ordering::SeqCst)) + length);
            }
            story.tell(context, who);
            Step::Finish
        });
    }
    stage.actor(TOP, begin, move |_, context| {
        origin.store(context.now().as_nanos(), Ordering::SeqCst);
        cues.iter().for_each(|cue| context.signal(*cue));
        Step::Finish
    });
    stage.play(host, &[begin])?.expect_in_time(expected)
}

/// Who sleeps until an earlier instant wakes earlier, whoever asked first.
pub(crate) fn order_of_instants(host: &mut dyn Host, _: &Tolerance) -> Result {
    // The latest asks first.
    let lengths_ms = [20, 17, 14, 11, 8];
    sleepers(
        host,
        &lengths_ms.map(|length| (MIDDLE, length)),
        &[4, 3, 2, 1, 0],
    )
}

/// Of threads that wake together the highest priority runs first.
pub(crate) fn same_instant(host: &mut dyn Host, _: &Tolerance) -> Result {
    sleepers(host, &[(LOW, 8), (HIGH, 8), (MIDDLE, 8)], &[1, 2, 0])
}

/// A wait without a signal ends at its instant, not before, and says so.
pub(crate) fn times_out(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut stage = Stage::new(1);
    let (story, cue, never) = (stage.story(), stage.cue(), stage.cue());
    let mut until = Instant::ZERO;
    stage.actor(HIGH, cue, move |calls, context| {
        if calls > 0 {
            story.tell_wait(context);
            let told = u64::from(context.now() >= until);
            story.tell(context, told);
        }
        until = context.now() + Span::from_millis(2);
        done_or(calls == 5, Step::WaitUntil(never, until))
    });
    stage.play(host, &[cue])?.expect(&[1; 10])
}

/// A wait that was signalled in time says so, and its timer does not come back.
pub(crate) fn does_not_time_out(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut stage = Stage::new(1);
    let (story, waiter, signal, ringer) = (stage.story(), stage.cue(), stage.cue(), stage.cue());
    let mut due = Instant::ZERO;
    stage.actor(HIGH, waiter, move |calls, context| match calls {
        0 => {
            context.signal(ringer);
            due = context.now() + Span::from_millis(50);
            Step::WaitUntil(signal, due)
        }
        1 => {
            story.tell_wait(context);
            // Across the instant of the timer that is not wanted any more.
            Step::SleepUntil(due + Span::from_millis(10))
        }
        _ => {
            let told = u64::from(context.now() >= due);
            story.tell(context, told);
            Step::Finish
        }
    });
    stage.actor(LOW, ringer, move |_, context| {
        context.signal(signal);
        Step::Finish
    });
    stage.play(host, &[waiter])?.expect_in_time(&[0, 1])
}

/// A timed wait whose instant is past takes a count if there is one, or times out.
pub(crate) fn past_time_out(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut stage = Stage::new(1);
    let (story, high, low) = (stage.story(), stage.cue(), stage.cue());
    let two = stage.program.semaphore(2);
    stage.actor(HIGH, high, move |calls, context| {
        if calls > 0 {
            story.tell_wait(context);
        }
        done_or(calls == 4, Step::WaitUntil(two, context.now()))
    });
    stage.teller(LOW, low, 9);
    stage.play(host, &[low, high])?.expect(&[0, 0, 1, 1, 9])
}
