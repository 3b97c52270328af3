//! Sleeping, and waiting for no longer than an instant.

use crate::stage::{HIGH, LOW, MIDDLE, Stage, TOP, at, of};
use crate::{Case, Failure, Tolerance, ensure};
use laxity_model::{EventKind, Host, Instant, Service, Span, Step};

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "periodic-releases-keep-their-grid",
        shows: "a periodic thread wakes once for each release, never before it, and does not drift",
        processors: 1,
        run: periodic,
    },
    Case {
        name: "an-overrun-loses-no-release",
        shows: "a job that takes several periods delays the following releases and drops none",
        processors: 1,
        run: overrun,
    },
    Case {
        name: "sleeping-into-the-past-returns-at-once",
        shows: "a sleep until an instant that is over does not give the processor to a lower priority",
        processors: 1,
        run: past,
    },
    Case {
        name: "sleepers-wake-in-the-order-of-their-instants",
        shows: "who sleeps until an earlier instant wakes earlier, whoever asked first",
        processors: 1,
        run: order_of_instants,
    },
    Case {
        name: "sleepers-of-one-instant-run-by-priority",
        shows: "of threads that wake together the highest priority runs first",
        processors: 1,
        run: same_instant,
    },
    Case {
        name: "a-wait-ends-when-time-is-up",
        shows: "a wait without a signal ends at its instant, not before, and says that time was up",
        processors: 1,
        run: times_out,
    },
    Case {
        name: "a-signal-ends-a-timed-wait",
        shows: "a wait that was signalled in time says so, and its timer does not come back",
        processors: 1,
        run: does_not_time_out,
    },
    Case {
        name: "a-count-beats-a-time-that-is-over",
        shows: "a timed wait whose instant is past takes a count if there is one, and else times out at once",
        processors: 1,
        run: past_time_out,
    },
];

const PERIOD: Span = Span::from_millis(4);
const RELEASES: u64 = 40;

/// A periodic thread whose job number `long` takes so much; returns its wake-ups after the first of them.
fn releases(host: &mut dyn Host, long: u64, work: Service) -> Result<(), Failure> {
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
        if job > RELEASES {
            Step::Finish
        } else {
            Step::SleepUntil(release)
        }
    });
    let play = stage.play(host, &[cue])?;
    let wakes = of(&play.record, who, EventKind::Wake);
    let expected: Vec<u64> = (0..=RELEASES).collect();
    play.expect(&expected)?;
    let grid = &wakes[wakes.len().saturating_sub(RELEASES as usize)..];
    ensure!(
        grid.len() as u64 == RELEASES,
        "{} wake-ups of {RELEASES}",
        grid.len()
    );
    for pair in grid.windows(2) {
        let apart = at(pair[1].args[0]).saturating_since(at(pair[0].args[0]));
        ensure!(apart == PERIOD, "releases {apart} apart");
    }
    for wake in grid {
        ensure!(
            wake.at >= at(wake.args[0]),
            "woke before its release: {wake:?}"
        );
    }
    Ok(())
}

fn periodic(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
    releases(host, 0, Service::from_micros(10))
}

fn overrun(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
    releases(host, 10, Service::from_millis(14))
}

fn past(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
    let mut stage = Stage::new(1);
    let (story, low, high) = (stage.story(), stage.cue(), stage.cue());
    stage.actor(LOW, low, move |_, context| {
        story.tell(context, 2);
        Step::Finish
    });
    stage.actor(HIGH, high, move |calls, context| {
        if calls < 100 {
            return Step::SleepUntil(context.now());
        }
        story.tell(context, 1);
        Step::Finish
    });
    stage.play(host, &[low, high])?.expect(&[1, 2])
}

fn order_of_instants(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
    let mut stage = Stage::new(1);
    let story = stage.story();
    let cues = [(); 5].map(|()| stage.cue());
    let begin = stage.cue();
    // The latest asks first; all count from one instant, which the first to run takes.
    let origin = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    for (who, cue) in (0..).zip(cues) {
        let origin = std::sync::Arc::clone(&origin);
        stage.actor(MIDDLE, cue, move |calls, context| {
            if calls == 0 {
                let origin = at(origin.load(std::sync::atomic::Ordering::SeqCst));
                return Step::SleepUntil(origin + Span::from_millis(20 - 3 * who));
            }
            story.tell(context, who);
            Step::Finish
        });
    }
    stage.actor(TOP, begin, move |_, context| {
        origin.store(
            context.now().as_nanos(),
            std::sync::atomic::Ordering::SeqCst,
        );
        cues.iter().for_each(|cue| context.signal(*cue));
        Step::Finish
    });
    stage.play(host, &[begin])?.expect(&[4, 3, 2, 1, 0])
}

fn same_instant(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
    let mut stage = Stage::new(1);
    let (story, begin) = (stage.story(), stage.cue());
    let origin = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let mut cues = Vec::new();
    for (what, placement) in [(3, LOW), (1, HIGH), (2, MIDDLE)] {
        let cue = stage.cue();
        cues.push(cue);
        let origin = std::sync::Arc::clone(&origin);
        stage.actor(placement, cue, move |calls, context| {
            if calls == 0 {
                return Step::SleepUntil(at(origin.load(std::sync::atomic::Ordering::SeqCst)));
            }
            story.tell(context, what);
            // Long enough that a lower one would show if it began first.
            Step::Finish
        });
    }
    stage.actor(TOP, begin, move |_, context| {
        let instant = context.now() + Span::from_millis(8);
        origin.store(instant.as_nanos(), std::sync::atomic::Ordering::SeqCst);
        cues.iter().for_each(|cue| context.signal(*cue));
        Step::Finish
    });
    stage.play(host, &[begin])?.expect(&[1, 2, 3])
}

fn times_out(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
    let mut stage = Stage::new(1);
    let (story, cue, never) = (stage.story(), stage.cue(), stage.cue());
    let mut until = Instant::ZERO;
    stage.actor(HIGH, cue, move |calls, context| {
        if calls > 0 {
            let told = u64::from(context.timed_out());
            story.tell(context, told);
            let told = u64::from(context.now() >= until);
            story.tell(context, told);
        }
        if calls == 5 {
            return Step::Finish;
        }
        until = context.now() + Span::from_millis(2);
        Step::WaitUntil(never, until)
    });
    stage.play(host, &[cue])?.expect(&[1; 10])
}

fn does_not_time_out(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
    let mut stage = Stage::new(1);
    let (story, waiter, bell, ringer) = (stage.story(), stage.cue(), stage.cue(), stage.cue());
    let mut due = Instant::ZERO;
    stage.actor(HIGH, waiter, move |calls, context| match calls {
        0 => {
            context.signal(ringer);
            due = context.now() + Span::from_millis(50);
            Step::WaitUntil(bell, due)
        }
        1 => {
            let told = u64::from(context.timed_out());
            story.tell(context, told);
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
        context.signal(bell);
        Step::Finish
    });
    stage.play(host, &[waiter])?.expect(&[0, 1])
}

fn past_time_out(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
    let mut stage = Stage::new(1);
    let (story, high, low) = (stage.story(), stage.cue(), stage.cue());
    let two = stage.program.semaphore(2);
    stage.actor(HIGH, high, move |calls, context| {
        if calls > 0 {
            let told = u64::from(context.timed_out());
            story.tell(context, told);
        }
        if calls == 4 {
            Step::Finish
        } else {
            Step::WaitUntil(two, context.now())
        }
    });
    stage.actor(LOW, low, move |_, context| {
        story.tell(context, 9);
        Step::Finish
    });
    stage.play(host, &[low, high])?.expect(&[0, 0, 1, 1, 9])
}
