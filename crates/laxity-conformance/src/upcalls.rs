//! Upcalls: batches of units at the releases of a grid, and a look for a yield after each quantum.

use std::num::NonZeroU32;
use std::sync::Arc;

use crate::executors::{executor, on};
use crate::stage::{Stage, Story, marks, micros};
use crate::{Result, Tolerance, ensure};
use laxity_model::executor::account::Account;
use laxity_model::executor::pacing::OnOverrun;
use laxity_model::executor::rmdp::Rmdp;
use laxity_model::executor::share::Share;
use laxity_model::program::Links;
use laxity_model::program::upcall::{Call, First, Timing, Upcall};
use laxity_model::{
    Body, Context, ExecutorId, Host, Instant, Mark, PortId, SemaphoreId, Service, Span, Step,
};

/// Its own deadline on the executor, that of its equal, and that of who is more urgent, in milliseconds.
const LONG_MS: u64 = 400;
const SHORT_MS: u64 = 20;

/// What those tell who are put something by an upcall.
const URGENT: u64 = 100;
const EQUAL: u64 = 200;

/// From one release or budget to the next, where it is held to what a unit is declared to take.
const TENTH: Span = Span::from_millis(100);
const DECLARED: Service = Service::from_millis(4);

/// What a handler does in a quantum.
type Work = Box<dyn FnMut(&mut dyn Context, &mut Call) -> Step + Send>;

pub(crate) const fn units(units: u32) -> NonZeroU32 {
    match NonZeroU32::new(units) {
        Some(units) => units,
        None => panic!("a batch and a quantum are one unit at least"),
    }
}

/// An upcall that begins at its cue and has so many calls, or fewer where it is suspended or ends before.
pub(crate) fn upcall(
    stage: &mut Stage,
    (executor, deadline_ms): (ExecutorId, u64),
    (timing, calls): (Timing, u64),
    work: impl FnMut(&mut dyn Context, &mut Call) -> Step + Send + 'static,
) -> (SemaphoreId, Mark) {
    let begins = stage.program.mark("begins");
    let cue = acts(
        stage,
        (executor, deadline_ms),
        Upcall::new(timing, begins, work),
        calls,
    );
    (cue, begins)
}

/// It begins at its cue, and has so many waits for an instant or an arrival.
fn acts(
    stage: &mut Stage,
    (executor, deadline_ms): (ExecutorId, u64),
    mut body: impl Body + 'static,
    calls: u64,
) -> SemaphoreId {
    let (cue, mut waits) = (stage.cue(), 0);
    stage.actor(on(executor, deadline_ms), cue, move |_, context| {
        let step = body.step(context);
        waits += u64::from(matches!(step, Step::SleepUntil(_) | Step::Wait(_)));
        match step {
            Step::SleepUntil(Instant::MAX) => Step::Finish,
            Step::SleepUntil(_) | Step::Wait(_) if waits > calls => Step::Finish,
            step => step,
        }
    });
    cue
}

/// Tells this each time that something arrives at its port, so many times.
fn told_by_port(
    stage: &mut Stage,
    (executor, deadline_ms): (ExecutorId, u64),
    (what, times): (u64, u64),
) -> (SemaphoreId, PortId) {
    let (story, cue, port) = (stage.story(), stage.cue(), stage.program.port(4));
    stage.actor(on(executor, deadline_ms), cue, move |calls, context| {
        if calls > 0 {
            story.tell(context, what);
        }
        match calls < times {
            true => Step::Wait(port),
            false => Step::Finish,
        }
    });
    (cue, port)
}

/// One call, a tenth of a second after it begins, of twelve units.
fn one_call(quantum: u32) -> Timing {
    Timing {
        batch: units(12),
        quantum: units(quantum),
        ..Timing::each(Span::from_millis(100))
    }
}

/// Tells how many units are done, works, and has something arrive at these ports while it is at work on the unit of this number.
fn putting(
    story: Story,
    ports: Vec<(u32, PortId)>,
) -> impl FnMut(&mut dyn Context, &mut Call) -> Step + Send {
    move |context, call| {
        story.tell(context, call.done().into());
        let now = call.done()..call.done() + call.now();
        for (_, port) in ports.iter().filter(|(unit, _)| now.contains(unit)) {
            context.put(*port, [0; 2]);
        }
        Step::Burn(micros(100) * u64::from(call.now()))
    }
}

/// Somebody more urgent goes first when the quantum is done during which it was released, and no sooner; in the last, when the call is over.
pub(crate) fn looks_after_each_quantum(host: &mut dyn Host, _: &Tolerance) -> Result {
    for (quantum, expected) in [
        (5, vec![0, URGENT, 5, 10, URGENT]),
        (12, vec![0, URGENT, URGENT]),
        (100, vec![0, URGENT, URGENT]),
        (4, vec![0, URGENT, 4, 8, URGENT]),
    ] {
        let mut stage = Stage::new(1);
        let story = stage.story();
        let executor = executor(&mut stage.program, Rmdp::new());
        let (urgent, port) = told_by_port(&mut stage, (executor, SHORT_MS), (URGENT, 2));
        let work = putting(story, vec![(1, port), (11, port)]);
        let (long, _) = upcall(
            &mut stage,
            (executor, LONG_MS),
            (one_call(quantum), 1),
            work,
        );
        stage.play(host, &[urgent, long])?.expect(&expected)?;
    }
    Ok(())
}

/// What is left of a batch goes on where it was: before an equal that was released meanwhile, and after all who are more urgent.
pub(crate) fn goes_on_in_its_turn(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut stage = Stage::new(1);
    let story = stage.story();
    let executor = executor(&mut stage.program, Rmdp::new());
    let (equal, second) = told_by_port(&mut stage, (executor, LONG_MS), (EQUAL, 1));
    let (urgent, first) = told_by_port(&mut stage, (executor, SHORT_MS), (URGENT, 2));
    let work = putting(story, vec![(0, second), (1, first), (9, first)]);
    let (long, _) = upcall(&mut stage, (executor, LONG_MS), (one_call(4), 1), work);
    let play = stage.play(host, &[equal, urgent, long])?;
    play.expect(&[0, URGENT, 4, 8, URGENT, EQUAL])
}

/// What each call tells: its release on the grid, how many before it came to nothing, whether the call before overran; and of a long one, at its
/// second unit, whether it does.
const OVERRUNS: u64 = 1_000;
const OFF_THE_GRID: u64 = 9_999;

/// The first call takes two periods and a half of two units, whatever was to become of the releases meanwhile: all are told on the grid.
pub(crate) fn overrun(host: &mut dyn Host, _: &Tolerance) -> Result {
    let catch_up = |at_most| OnOverrun::CatchUp { at_most };
    let (first, long) = (0, [OVERRUNS + 1, OVERRUNS]);
    for (on_overrun, calls, rest) in [
        (OnOverrun::SKIP, 3, vec![321, 400]),
        (OnOverrun::ONCE_LATE, 4, vec![211, 300, 400]),
        (catch_up(5), 5, vec![101, 201, 300, 400]),
        (OnOverrun::Suspend, 3, vec![]),
        (OnOverrun::End, 3, vec![]),
    ] {
        let mut stage = Stage::new(1);
        let story = stage.story();
        let executor = executor(&mut stage.program, Rmdp::new());
        let period = Span::from_millis(12);
        let timing = Timing {
            on_overrun,
            batch: units(2),
            ..Timing::each(period)
        };
        let mut origin = None;
        let (cue, _) = upcall(
            &mut stage,
            (executor, 12),
            (timing, calls),
            move |context, call| {
                let since = call
                    .paced
                    .release
                    .saturating_since(*origin.get_or_insert(call.paced.release));
                let (release, off) = (
                    since.as_nanos() / period.as_nanos(),
                    since.as_nanos() % period.as_nanos(),
                );
                if call.done() == 0 {
                    let told =
                        100 * release + 10 * call.paced.missed + u64::from(call.paced.overrun);
                    story.tell(context, if off == 0 { told } else { OFF_THE_GRID });
                }
                if release > 0 {
                    call.finish();
                    return Step::Burn(micros(500));
                }
                story.tell(context, OVERRUNS + u64::from(!call.overruns));
                let millis = if call.done() == 0 { 15 } else { 14 };
                Step::Burn(Service::from_millis(millis))
            },
        );
        let expected: Vec<u64> = [first].into_iter().chain(long).chain(rest).collect();
        stage.play(host, &[cue])?.expect_in_time(&expected)?;
    }
    Ok(())
}

/// Of a budget of 10 ms every tenth of a second the first unit takes 9, where 4 are declared: the rest of its call waits for the next tenth.
pub(crate) fn charged(host: &mut dyn Host, _: &Tolerance) -> Result {
    let share = Share::new(Service::from_millis(10), TENTH, Instant::ZERO).map(Arc::new);
    ensure!(share.is_some(), "10 ms of 100 are a budget");
    // One for its release, and one for the budget.
    takes_more(host, 2, |body| body.declared(DECLARED, share))
}

/// Where the same is held to 4 ms for each call, the rest goes behind all others.
pub(crate) fn made_up(host: &mut dyn Host, _: &Tolerance) -> Result {
    let account = Account::new(DECLARED, TENTH, Service::ZERO, Service::from_millis(100));
    ensure!(account.is_some(), "4 ms of 100 are a budget");
    let account = account.map(Arc::new);
    takes_more(host, 1, |body| {
        body.declared(DECLARED, None).held_to(account)
    })
}

/// The first unit of a call takes 9 ms, and has something arrive for who is less urgent: that one goes before the rest of the call, which has so many waits.
fn takes_more(
    host: &mut dyn Host,
    waits: u64,
    held: impl FnOnce(Upcall<Work>) -> Upcall<Work>,
) -> Result {
    let mut stage = Stage::new(1);
    let story = stage.story();
    let executor = executor(&mut stage.program, Rmdp::new());
    let (other, port) = told_by_port(&mut stage, (executor, LONG_MS), (EQUAL, 1));
    let timing = Timing {
        // On the grid of a budget.
        first: First::At(Instant::ZERO),
        batch: units(3),
        ..Timing::each(TENTH)
    };
    let begins = stage.program.mark("begins");
    let work: Work = Box::new(move |context: &mut dyn Context, call: &mut Call| {
        story.tell(context, call.done().into());
        if call.done() > 0 {
            return Step::Burn(micros(100));
        }
        context.put(port, [0; 2]);
        Step::Burn(Service::from_millis(9))
    });
    let body = held(Upcall::new(timing, begins, work));
    let member = acts(&mut stage, (executor, SHORT_MS), body, waits);
    let play = stage.play(host, &[other, member])?;
    play.expect_in_time(&[0, EQUAL, 1, 2])
}

/// Those that have one first release are called in the order of their rates, however they were made, and are released in one instant.
pub(crate) fn begin_together(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut stage = Stage::new(1);
    let story = stage.story();
    let executor = executor(&mut stage.program, Rmdp::new());
    let (mut cues, mut begun) = (Vec::new(), Vec::new());
    for period_ms in [90, 40, 60] {
        let timing = Timing {
            first: First::After(stage.program.epoch.clone(), Span::from_millis(10)),
            ..Timing::each(Span::from_millis(period_ms))
        };
        let place = (executor, period_ms);
        let (cue, begins) = upcall(&mut stage, place, (timing, 1), move |context, _| {
            story.tell(context, period_ms);
            Step::Burn(micros(200))
        });
        cues.push(cue);
        begun.push(begins);
    }
    let play = stage.play(host, &cues)?;
    play.expect(&[40, 60, 90])?;
    let releases = begun.iter().flat_map(|begins| marks(&play.record, *begins));
    let releases: Vec<u64> = releases.map(|[release, _]| release).collect();
    let same = releases.windows(2).all(|pair| pair[0] == pair[1]);
    ensure!(same && releases.len() == 3, "released at {releases:?}");
    Ok(())
}

/// The end of a call releases who comes after it, and nobody sooner; somebody more urgent goes between its quanta; and each knows when the first of all was released.
pub(crate) fn chain(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut stage = Stage::new(1);
    let story = stage.story();
    let executor = executor(&mut stage.program, Rmdp::new());
    let (urgent, port) = told_by_port(&mut stage, (executor, SHORT_MS), (URGENT, 1));
    let ends = [(); 2].map(|()| stage.program.port(1));
    let (mut cues, mut begun) = (vec![urgent], Vec::new());
    // Who comes last waits first.
    for place in (0..3_usize).rev() {
        let links = Links {
            after: place.checked_sub(1).map(|before| ends[before]),
            before: ends.get(place).copied().into_iter().collect(),
            group: None,
        };
        let timing = Timing {
            batch: units(2),
            ..Timing::each(Span::from_millis(100))
        };
        let begins = stage.program.mark("begins");
        let work = move |context: &mut dyn Context, call: &mut Call| {
            story.tell(context, 10 * place as u64 + u64::from(call.done()));
            if (place, call.done()) == (1, 0) {
                context.put(port, [0; 2]);
            }
            Step::Burn(micros(100))
        };
        let body = Upcall::new(timing, begins, work).linked(micros(100), &links, None);
        cues.push(acts(&mut stage, (executor, LONG_MS), body, 1));
        begun.push(begins);
    }
    let play = stage.play(host, &cues)?;
    play.expect(&[0, 1, 10, URGENT, 11, 20, 21])?;
    let origins = begun.iter().flat_map(|begins| marks(&play.record, *begins));
    let origins: Vec<u64> = origins.map(|[origin, _]| origin).collect();
    let same = origins.windows(2).all(|pair| pair[0] == pair[1]);
    ensure!(
        same && origins.len() == 3,
        "their first was released at {origins:?}"
    );
    Ok(())
}
