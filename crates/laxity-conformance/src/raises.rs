//! Activities that are raised: from when on, how far, and for how long.

use crate::executors::{executor, long_job, on};
use crate::reservations::{asker, by_slots, reservation};
use crate::stage::{
    CPU, DEVICE, HIGH, LOW, MIDDLE, NORMAL, Play, Stage, TOP, counted, done_or, level, micros,
    run_to,
};
use crate::{Failure, Result, Tolerance, ensure};
use laxity_model::executor::edf::Edf;
use laxity_model::policy::Rank;
use laxity_model::policy::raise::Highest;
use laxity_model::{
    ActivityId, Context, Grade, Host, Instant, Placement, Priority, Program, RunEnd, SemaphoreId,
    Span, Step,
};

/// What the one that is raised tells, and another one.
const RAISED: u64 = 1;
const OTHER: u64 = 2;

/// Up to [`HIGH`].
const TO_HIGH: Highest = Highest::Priority(level(24));

fn to(priority: u8) -> Rank {
    Rank::Priority(level(priority))
}

/// An actor that tells this at its cue, so many times.
fn teller(
    stage: &mut Stage,
    (placement, cue): (Placement, SemaphoreId),
    what: u64,
    times: u64,
) -> ActivityId {
    let story = stage.story();
    stage.actor(placement, cue, move |calls, context| {
        story.tell(context, what);
        done_or(calls + 1 == times, Step::Wait(cue))
    })
}

/// A device that raises somebody as this says, gives the two cues, and comes again after so long; as often as it says anything.
fn turns(
    stage: &mut Stage,
    who: ActivityId,
    cues: [SemaphoreId; 2],
    says: Vec<Vec<(u8, Span)>>,
) -> SemaphoreId {
    let device = stage.cue();
    let mut says = says.into_iter();
    let mut rests = false;
    stage.actor(DEVICE, device, move |_, context| {
        rests = !rests;
        if !rests {
            return Step::SleepUntil(context.now() + BETWEEN);
        }
        let Some(raises) = says.next() else {
            return Step::Finish;
        };
        for (priority, after) in raises {
            context.raise(who, to(priority), context.now() + after);
        }
        for cue in cues {
            context.signal(cue);
        }
        Step::Burn(micros(10))
    });
    device
}

/// From one turn to the next.
const BETWEEN: Span = Span::from_millis(20);
/// Longer than a turn, and over before the next.
const LATER: Span = Span::from_millis(10);
const NOW: Span = Span::ZERO;

/// A thread of this priority that may be raised to [`HIGH`], and one of the middle; they are given their cues at once, as often as the thread is raised like this.
fn beside_the_middle(
    host: &mut dyn Host,
    own: Placement,
    says: Vec<Vec<(u8, Span)>>,
) -> Result<Play> {
    let mut stage = Stage::new(1);
    let (cue, other) = (stage.cue(), stage.cue());
    let times = says.len() as u64;
    let who = teller(&mut stage, (own, cue), RAISED, times);
    stage.program.declare_raise(who, TO_HIGH);
    teller(&mut stage, (MIDDLE, other), OTHER, times);
    let device = turns(&mut stage, who, [cue, other], says);
    stage.play(host, &[device])
}

/// A thread that is raised comes before one that is above it otherwise.
pub(crate) fn at_once(host: &mut dyn Host, _: &Tolerance) -> Result {
    beside_the_middle(host, LOW, vec![vec![(24, NOW)]])?.expect(&[RAISED, OTHER])
}

/// Raised for one turn, it is what it was in the next; what was arranged for later in one turn does not happen in another.
pub(crate) fn over(host: &mut dyn Host, _: &Tolerance) -> Result {
    let says = vec![vec![(24, NOW)], vec![(24, LATER)], vec![]];
    let raised = beside_the_middle(host, LOW, says)?;
    raised.expect_in_time(&[RAISED, OTHER, OTHER, RAISED, OTHER, RAISED])
}

/// The last word holds; and down is a raise too, for as long.
pub(crate) fn lowered(host: &mut dyn Host, _: &Tolerance) -> Result {
    let says = vec![vec![(18, NOW)], vec![(18, NOW), (24, NOW)], vec![]];
    let lowered = beside_the_middle(host, HIGH, says)?;
    lowered.expect_in_time(&[OTHER, RAISED, RAISED, OTHER, RAISED, OTHER])
}

/// Whoever is raised to more than was declared is raised to that.
pub(crate) fn no_higher(host: &mut dyn Host, _: &Tolerance) -> Result {
    const HIGHEST: u64 = 3;
    let mut stage = Stage::new(1);
    let [low, middle, high, device] = [(); 4].map(|()| stage.cue());
    let who = teller(&mut stage, (LOW, low), RAISED, 1);
    let highest = Highest::Priority(level(23));
    stage.program.declare_raise(who, highest);
    stage.teller(MIDDLE, middle, OTHER);
    stage.teller(HIGH, high, HIGHEST);
    stage.actor(DEVICE, device, move |_, context| {
        context.raise(who, to(31), context.now());
        for cue in [low, middle, high] {
            context.signal(cue);
        }
        Step::Finish
    });
    let play = stage.play(host, &[device])?;
    play.expect(&[HIGHEST, RAISED, OTHER])
}

/// Whether what is told between the two was told in time, and not before this.
fn not_before(play: &Play, what: u64, instant: u64) -> Result {
    let not_told = || Failure::Wrong(format!("told {:?}", play.told));
    let told = play.when(what).ok_or_else(not_told)?;
    let raised = play.when(instant).ok_or_else(not_told)? + LATER;
    ensure!(
        told >= raised,
        "raised at {told:?}, which is before {raised:?}"
    );
    Ok(())
}

/// The device says from when on somebody is raised.
const SAYS: u64 = 5;

/// A thread that is ready and has to wait for another one goes on when it is raised, and not before its instant.
pub(crate) fn at_an_instant(host: &mut dyn Host, _: &Tolerance) -> Result {
    a_thread_at_an_instant(host, |context, who, at| context.raise(who, to(24), at))
}

/// The same, where this has a thread of level 20 be of level 24 from an instant on.
pub(crate) fn a_thread_at_an_instant(
    host: &mut dyn Host,
    mut raise: impl FnMut(&mut dyn Context, ActivityId, Instant) + Send + 'static,
) -> Result {
    const BEGAN: u64 = 10;
    let mut stage = Stage::new(1);
    let (story, low, middle, device) = (stage.story(), stage.cue(), stage.cue(), stage.cue());
    let who = teller(&mut stage, (LOW, low), RAISED, 1);
    stage.program.declare_raise(who, TO_HIGH);
    stage.actor(MIDDLE, middle, move |calls, context| {
        if calls == 0 {
            story.tell(context, BEGAN);
        } else if calls == 36 {
            story.tell(context, OTHER);
            return Step::Finish;
        }
        Step::Burn(micros(500))
    });
    stage.actor(DEVICE, device, move |_, context| {
        story.tell(context, SAYS);
        let at = context.now() + LATER;
        raise(context, who, at);
        for cue in [low, middle] {
            context.signal(cue);
        }
        Step::Finish
    });
    let play = stage.play(host, &[device])?;
    not_before(&play, RAISED, SAYS)?;
    play.expect_in_time(&[SAYS, BEGAN, RAISED, OTHER])
}

/// A thread is raised, and lowered again, by itself.
pub(crate) fn by_itself(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut stage = Stage::new(1);
    let (story, low, middle) = (stage.story(), stage.cue(), stage.cue());
    // It is the first activity.
    let own = ActivityId(0);
    let who = stage.actor(LOW, low, move |calls, context| {
        story.tell(context, 20 + calls);
        match calls {
            0 => {
                context.raise(own, to(24), context.now());
                context.signal(middle);
            }
            1 => context.raise(own, to(20), context.now()),
            _ => return Step::Finish,
        }
        Step::Burn(micros(200))
    });
    ensure!(who == own, "the first is {who}");
    stage.program.declare_raise(own, TO_HIGH);
    stage.teller(MIDDLE, middle, OTHER);
    stage.play(host, &[low])?.expect(&[20, 21, OTHER, 22])
}

/// On an executor, for three of whom something arrives at once, a raise makes one due sooner: no sooner than was declared, and not the next time.
pub(crate) fn sooner(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut stage = Stage::new(1);
    let story = stage.story();
    let executor = executor(&mut stage.program, Edf::new());
    let cues = [(); 3].map(|()| stage.cue());
    let ports = [(); 3].map(|()| stage.program.port(1));
    let mut who = None;
    for (number, deadline_ms) in [(0_u8, 500), (1, 400), (2, 100)] {
        let port = ports[usize::from(number)];
        let cue = cues[usize::from(number)];
        let id = stage.actor(on(executor, deadline_ms), cue, move |calls, context| {
            if calls > 0 {
                story.tell(context, number.into());
            }
            done_or(calls == 2, Step::Wait(port))
        });
        who = who.or(Some(id));
    }
    let Some(who) = who else { return Ok(()) };
    let soonest = Highest::Deadline(Span::from_millis(200));
    stage.program.declare_raise(who, soonest);
    let device = stage.cue();
    stage.actor(DEVICE, device, move |calls, context| {
        match calls {
            // They wait for their ports by then.
            0 | 2 => return Step::SleepUntil(context.now() + BETWEEN),
            1 => context.raise(who, Rank::Deadline(Instant::ZERO), context.now()),
            3 => {}
            _ => return Step::Finish,
        }
        for port in ports {
            context.put(port, [0; 2]);
        }
        Step::Burn(micros(10))
    });
    let mut order = cues.to_vec();
    order.push(device);
    let play = stage.play(host, &order)?;
    play.expect_in_time(&[2, 0, 1, 2, 1, 0])
}

/// A job that is raised when its instant comes goes before the one that runs, if that looks.
pub(crate) fn sooner_at_an_instant(host: &mut dyn Host, _: &Tolerance) -> Result {
    a_job_at_an_instant(host, |context, who, at| {
        context.raise(who, Rank::Deadline(Instant::MAX), context.now());
        context.raise(who, Rank::Deadline(at + Span::from_millis(6)), at);
    })
}

/// The same, where this has a job be due at the end of time until an instant, and 6 ms after it from then on.
pub(crate) fn a_job_at_an_instant(
    host: &mut dyn Host,
    mut raise: impl FnMut(&mut dyn Context, ActivityId, Instant) + Send + 'static,
) -> Result {
    let mut stage = Stage::new(1);
    let story = stage.story();
    let executor = executor(&mut stage.program, Edf::new());
    let [early, long, device] = [(); 3].map(|()| stage.cue());
    let port = stage.program.port(1);
    let who = stage.actor(on(executor, 900), early, move |calls, context| {
        if calls > 0 {
            story.tell(context, RAISED);
        }
        done_or(calls > 0, Step::Wait(port))
    });
    let soonest = Highest::Deadline(Span::from_millis(5));
    stage.program.declare_raise(who, soonest);
    stage.actor(on(executor, 400), long, long_job(story, true));
    stage.actor(DEVICE, device, move |calls, context| {
        if calls == 0 {
            // It waits for its port by then.
            return Step::SleepUntil(context.now() + BETWEEN);
        }
        story.tell(context, SAYS);
        let at = context.now() + LATER;
        raise(context, who, at);
        context.put(port, [0; 2]);
        context.signal(long);
        Step::Finish
    });
    let play = stage.play(host, &[early, device])?;
    not_before(&play, RAISED, SAYS)?;
    play.expect_in_time(&[SAYS, 10, 11, RAISED, 12, 13])
}

/// Slots are promised as if a thread that may be raised always were.
pub(crate) fn counts(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut is_named = |placement, highest: Option<Priority>| {
        let mut program = Program::new(1);
        let finish = || counted(|_, _| Step::Finish);
        let request = by_slots(reservation([2_000, 8_000])?);
        program.push(asker(NORMAL, request, finish()));
        let rogue = program.add("rogue", CPU, placement, finish());
        if let Some(highest) = highest {
            program.declare_raise(rogue, Highest::Priority(highest));
        }
        let record = run_to(RunEnd::AllFinished, host, program)?;
        let grant = record.usage.first().and_then(|usage| usage.grant.as_ref());
        let grade = grant.map(|grant| grant.grade.clone());
        Ok::<_, Failure>(
            matches!(grade, Some(Grade::Unenforced { reason }) if reason.contains("rogue")),
        )
    };
    let (above, may_be) = (
        is_named(TOP, None)?,
        is_named(LOW, Some(Priority::HIGHEST))?,
    );
    ensure!(
        may_be == above,
        "one above is named: {above}; one that may be: {may_be}"
    );
    let below = is_named(LOW, Some(level(24)))?;
    ensure!(!below, "one that stays below is named");
    Ok(())
}
