//! Who runs among threads of real-time priorities.

use crate::stage::{HIGH, LOW, MIDDLE, Stage, TOP, level, micros};
use crate::{Case, Failure, Tolerance};
use laxity_model::{Host, Placement, Service, Span, Step};

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "a-woken-higher-priority-preempts-at-once",
        shows: "a signal to a higher priority takes the processor before the signaller's next step",
        processors: 1,
        run: higher_preempts,
    },
    Case {
        name: "a-timer-preempts-a-lower-priority",
        shows: "a sleeper of higher priority does not wait until a lower one has done its work",
        processors: 1,
        run: timer_preempts,
    },
    Case {
        name: "a-lower-priority-waits",
        shows: "a signal to a lower priority takes effect when the higher one gives the processor up",
        processors: 1,
        run: lower_waits,
    },
    Case {
        name: "all-real-time-priorities-in-order",
        shows: "sixteen threads woken from the lowest up run from the highest down",
        processors: 1,
        run: all_in_order,
    },
    Case {
        name: "equals-run-in-the-order-they-were-woken",
        shows: "equal real-time priorities run first come, first served, each until it is done",
        processors: 1,
        run: equals_in_order,
    },
    Case {
        name: "yield-lets-every-equal-go-once",
        shows: "yielding equals take turns",
        processors: 1,
        run: yield_takes_turns,
    },
    Case {
        name: "yield-does-not-help-a-lower-priority",
        shows: "a thread that yields with no equal ready goes on",
        processors: 1,
        run: yield_alone,
    },
    Case {
        name: "a-preempted-thread-resumes-before-its-equals",
        shows: "preemption costs no turn",
        processors: 1,
        run: preempted_resumes,
    },
];

fn higher_preempts(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
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
        if calls == 2 {
            Step::Finish
        } else {
            Step::Wait(high)
        }
    });
    let play = stage.play(host, &[low])?;
    play.expect(&[10, 20, 11, 21, 12, 22, 13])
}

fn timer_preempts(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
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
    stage.play(host, &[low])?.expect(&[1, 2, 3])
}

fn lower_waits(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
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
    stage.actor(LOW, low, move |_, context| {
        story.tell(context, 100);
        Step::Finish
    });
    let play = stage.play(host, &[high])?;
    play.expect(&[0, 1, 2, 3, 4, 5, 100])
}

fn all_in_order(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
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

fn equals_in_order(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
    let mut stage = Stage::new(1);
    let story = stage.story();
    let cues = [(); 4].map(|()| stage.cue());
    for (who, cue) in (0..).zip(cues) {
        stage.actor(MIDDLE, cue, move |calls, context| {
            story.tell(context, 10 * who + calls);
            if calls == 2 {
                Step::Finish
            } else {
                Step::Burn(micros(300))
            }
        });
    }
    let play = stage.play(host, &[cues[2], cues[0], cues[3], cues[1]])?;
    play.expect(&[20, 21, 22, 0, 1, 2, 30, 31, 32, 10, 11, 12])
}

fn yield_takes_turns(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
    let mut stage = Stage::new(1);
    let story = stage.story();
    let cues = [(); 3].map(|()| stage.cue());
    for (who, cue) in (0..).zip(cues) {
        stage.actor(MIDDLE, cue, move |calls, context| {
            story.tell(context, 10 * calls + who);
            if calls == 3 {
                Step::Finish
            } else {
                Step::Yield
            }
        });
    }
    let play = stage.play(host, &cues)?;
    play.expect(&[0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32])
}

fn yield_alone(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
    let mut stage = Stage::new(1);
    let (story, low, high) = (stage.story(), stage.cue(), stage.cue());
    stage.actor(LOW, low, move |_, context| {
        story.tell(context, 2);
        Step::Finish
    });
    stage.actor(HIGH, high, move |calls, context| {
        if calls < 100 {
            return Step::Yield;
        }
        story.tell(context, 1);
        Step::Finish
    });
    stage.play(host, &[low, high])?.expect(&[1, 2])
}

fn preempted_resumes(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
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
    stage.actor(MIDDLE, second, move |_, context| {
        story.tell(context, 4);
        Step::Finish
    });
    stage.actor(TOP, top, move |_, context| {
        story.tell(context, 2);
        Step::Finish
    });
    stage.play(host, &[first])?.expect(&[1, 2, 3, 4])
}
