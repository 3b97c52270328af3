//! Who runs among threads of real-time priorities.

use crate::stage::{HIGH, LOW, MIDDLE, Stage, TOP, done_or, level, micros};
use crate::{Result, Tolerance};
use laxity_model::{Host, Placement, Service, Span, Step};

/// A signal to a higher priority takes the processor before the signaller goes on.
pub(crate) fn higher_preempts(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut stage = Stage::new(1);
    let (story, low, high) = (stage.story(), stage.cue(), stage.cue());
    stage.actor(LOW, low, move |calls, context| {
        story.tell(context, 10 + calls);
        if calls == 3 {
            return Step::Finish;
        }
        context.signal(high);
        Step::Burn(micros(50))
    });
    stage.actor(HIGH, high, move |calls, context| {
        story.tell(context, 20 + calls);
        done_or(calls == 2, Step::Wait(high))
    });
    let play = stage.play(host, &[low])?;
    play.expect(&[10, 20, 11, 21, 12, 22, 13])
}

/// A sleeper of higher priority does not wait until a lower one has done its work.
pub(crate) fn timer_preempts(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut stage = Stage::new(1);
    let (story, low, high) = (stage.story(), stage.cue(), stage.cue());
    stage.actor(LOW, low, move |calls, context| {
        story.tell(context, [1, 3][calls.min(1) as usize]);
        if calls == 0 {
            context.signal(high);
            Step::Burn(Service::from_millis(18))
        } else {
            Step::Finish
        }
    });
    stage.actor(HIGH, high, move |calls, context| {
        if calls == 0 {
            return Step::SleepUntil(context.now() + Span::from_millis(3));
        }
        story.tell(context, 2);
        Step::Finish
    });
    stage.play(host, &[low])?.expect_in_time(&[1, 2, 3])
}

/// A signal to a lower priority takes effect when the higher one gives way.
pub(crate) fn lower_waits(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut stage = Stage::new(1);
    let (story, low, high) = (stage.story(), stage.cue(), stage.cue());
    stage.actor(HIGH, high, move |calls, context| {
        story.tell(context, calls);
        if calls == 5 {
            return Step::Finish;
        }
        context.signal(low);
        Step::Burn(micros(500))
    });
    stage.teller(LOW, low, 100);
    let play = stage.play(host, &[high])?;
    play.expect(&[0, 1, 2, 3, 4, 5, 100])
}

/// Sixteen threads woken from the lowest up run from the highest down.
pub(crate) fn all_in_order(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut stage = Stage::new(1);
    let story = stage.story();
    let cues: Vec<_> = (16..32)
        .map(|priority: u8| {
            let cue = stage.cue();
            let placement = Placement::Thread(level(priority));
            stage.actor(placement, cue, move |calls, context| {
                if calls == 0 {
                    story.tell(context, u64::from(priority));
                    return Step::Burn(micros(50));
                }
                Step::Finish
            });
            cue
        })
        .collect();
    let expected: Vec<u64> = (16..32).rev().collect();
    stage.play(host, &cues)?.expect(&expected)
}

/// Equal real-time priorities run first come, first served, each until it is done.
pub(crate) fn equals_in_order(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut stage = Stage::new(1);
    let story = stage.story();
    let cues = [(); 4].map(|()| stage.cue());
    for (who, cue) in (0..).zip(cues) {
        stage.actor(MIDDLE, cue, move |calls, context| {
            story.tell(context, 10 * who + calls);
            done_or(calls == 2, Step::Burn(micros(300)))
        });
    }
    let play = stage.play(host, &[cues[2], cues[0], cues[3], cues[1]])?;
    play.expect(&[20, 21, 22, 0, 1, 2, 30, 31, 32, 10, 11, 12])
}

/// Yielding equals take turns.
pub(crate) fn yield_takes_turns(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut stage = Stage::new(1);
    let story = stage.story();
    let cues = [(); 3].map(|()| stage.cue());
    for (who, cue) in (0..).zip(cues) {
        stage.actor(MIDDLE, cue, move |calls, context| {
            story.tell(context, 10 * calls + who);
            done_or(calls == 3, Step::Yield)
        });
    }
    let play = stage.play(host, &cues)?;
    play.expect(&[0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32])
}

/// A thread that yields with no equal ready goes on.
pub(crate) fn yield_alone(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut stage = Stage::new(1);
    let (story, low, high) = (stage.story(), stage.cue(), stage.cue());
    stage.teller(LOW, low, 2);
    stage.actor(HIGH, high, move |calls, context| {
        if calls < 100 {
            return Step::Yield;
        }
        story.tell(context, 1);
        Step::Finish
    });
    stage.play(host, &[low, high])?.expect(&[1, 2])
}

/// Preemption costs no turn.
pub(crate) fn preempted_resumes(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut stage = Stage::new(1);
    let story = stage.story();
    let (first, second, top) = (stage.cue(), stage.cue(), stage.cue());
    stage.actor(MIDDLE, first, move |calls, context| {
        story.tell(context, [1, 3][calls.min(1) as usize]);
        if calls == 1 {
            return Step::Finish;
        }
        context.signal(second);
        context.signal(top);
        Step::Burn(micros(200))
    });
    stage.teller(MIDDLE, second, 4);
    stage.teller(TOP, top, 2);
    stage.play(host, &[first])?.expect(&[1, 2, 3, 4])
}
