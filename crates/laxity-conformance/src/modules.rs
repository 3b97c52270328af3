//! Modules that set priorities and deadlines by what clients report: what a module says reaches the thread or the handler.

use crate::executors::{executor, on};
use crate::raises::{a_job_at_an_instant, a_thread_at_an_instant};
use crate::stage::{DEVICE, LOW, MIDDLE, Play, Stage, level};
use crate::{Failure, Result, Tolerance};
use laxity_model::executor::edf::Edf;
use laxity_model::nif::qos::{
    AtArrival, LeastLaxity, Module, Moment, Ranks, Reported, Standing, Terms,
};
use laxity_model::nif::urgency::{Stated, Unit};
use laxity_model::policy::raise::Highest;
use laxity_model::{
    ActivityId, Context, Host, Instant, Placement, PortId, Priority, SemaphoreId, Service, Span,
    Step,
};

/// Above all that is critical of a group of so few is what none of them has.
const CRITICAL: Priority = level(27);
const THREAD: Ranks = Ranks::Thread {
    critical: CRITICAL,
    workahead: level(20),
};

/// A client of one packet a minute, which is due so long after its logical arrival, and takes so long.
fn terms(activity: ActivityId, ranks: Ranks, (delay, work): (u64, u64)) -> Result<Terms> {
    let stated = Stated::new(1, Span::from_secs(60), 1, Span::from_millis(delay));
    Ok(Terms {
        stated: stated.map_err(|error| Failure::Wrong(error.to_string()))?,
        unit: Unit::Packets,
        packet: Service::from_millis(work),
        activity,
        ranks,
    })
}

/// One of these clients reports its first packet, which counts already.
fn report(
    module: &dyn Module,
    (all, who): (&[Standing], usize),
    now: Instant,
    context: &mut dyn Context,
) {
    let reported = Reported {
        all,
        who,
        moment: Moment::Arrival,
        now,
    };
    module.decide(&reported, &mut |activity, rank, at| {
        context.raise(activity, rank, at);
    });
}

/// A client for itself, whose packet has come before its time.
fn before_its_time(
    ranks: Ranks,
    delay: u64,
) -> impl FnMut(&mut dyn Context, ActivityId, Instant) + Send {
    move |context, activity, logical| {
        let now = context.now();
        if let Ok(terms) = terms(activity, ranks, (delay, 0)) {
            let own = Standing::of(&terms, 1, logical, now);
            report(&AtArrival, (&[own], 0), now, context);
        }
    }
}

/// Whose packet has come before its time waits for whoever is above workahead, and goes on when that has come.
pub(crate) fn critical_at_its_time(host: &mut dyn Host, _: &Tolerance) -> Result {
    let ranks = Ranks::Thread {
        critical: level(24),
        workahead: level(20),
    };
    a_thread_at_an_instant(host, before_its_time(ranks, 6))
}

/// The same on an executor, by the deadline of the packet.
pub(crate) fn due_at_its_time(host: &mut dyn Host, _: &Tolerance) -> Result {
    a_job_at_an_instant(host, before_its_time(Ranks::Handler, 6))
}

/// In milliseconds, when each of a group is due, and what it has to do until then: neither who came first nor who is due first has the least to spare. The first has come long before its time.
const GROUP: [(u64, u64); 4] = [(400, 399), (3_000, 1), (1_000, 1), (2_000, 1_500)];
const EARLY: Span = Span::from_secs(30);
/// In which order they go, then.
const FIRST_TO_LAST: [u64; 4] = [3, 2, 1, 0];

/// A device that says after a while that something has come for each of these, one after the other, and gives the further cue.
fn all_come(
    stage: &mut Stage,
    terms: Vec<Terms>,
    ports: [PortId; 4],
    further: Option<SemaphoreId>,
) -> SemaphoreId {
    let device = stage.cue();
    stage.actor(DEVICE, device, move |calls, context| {
        if calls == 0 {
            // They wait for their ports by then.
            return Step::SleepUntil(context.now() + Span::from_millis(20));
        }
        let now = context.now();
        let mut all: Vec<_> = terms
            .iter()
            .map(|terms| Standing::of(terms, 0, Instant::ZERO, now))
            .collect();
        for (who, (terms, port)) in terms.iter().zip(ports).enumerate() {
            let logical = if who == 0 { now + EARLY } else { now };
            all[who] = Standing::of(terms, 1, logical, now);
            report(&LeastLaxity, (&all, who), now, context);
            context.put(port, [0; 2]);
        }
        if let Some(cue) = further {
            context.signal(cue);
        }
        Step::Finish
    });
    device
}

/// Four clients of one group who are placed so, each of whom tells who he is when something comes; and another one beside them, if there is a cue for him.
fn of_a_group(
    host: &mut dyn Host,
    (mut stage, placement): (Stage, Placement),
    (ranks, highest): (Ranks, Highest),
    beside: Option<SemaphoreId>,
) -> Result<Play> {
    let story = stage.story();
    let ports = [(); 4].map(|()| stage.program.port(1));
    let mut cues = Vec::new();
    let mut all = Vec::new();
    for ((who, port), of) in (0..).zip(ports).zip(GROUP) {
        let cue = stage.cue();
        cues.push(cue);
        let activity = stage.actor(placement, cue, move |calls, context| {
            if calls == 0 {
                return Step::Wait(port);
            }
            story.tell(context, who);
            Step::Finish
        });
        stage.program.declare_raise(activity, highest);
        all.push(terms(activity, ranks, of)?);
    }
    cues.push(all_come(&mut stage, all, ports, beside));
    stage.play(host, &cues)
}

/// Of threads of a group whoever has the least laxity goes first, all of them before one in the middle; what has come before its time waits for that one.
pub(crate) fn least_laxity_first(host: &mut dyn Host, _: &Tolerance) -> Result {
    const BESIDE: u64 = 9;
    let mut stage = Stage::new(1);
    let cue = stage.cue();
    stage.teller(MIDDLE, cue, BESIDE);
    let ranks = (THREAD, Highest::Priority(CRITICAL));
    let [third, second, first, early] = FIRST_TO_LAST;
    let play = of_a_group(host, (stage, LOW), ranks, Some(cue))?;
    play.expect(&[third, second, first, BESIDE, early])
}

/// The same of handlers.
pub(crate) fn least_laxity_first_on_an_executor(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut stage = Stage::new(1);
    let executor = executor(&mut stage.program, Edf::new());
    let soonest = Highest::Deadline(Span::from_millis(20));
    let ranks = (Ranks::Handler, soonest);
    of_a_group(host, (stage, on(executor, 400)), ranks, None)?.expect_in_time(&FIRST_TO_LAST)
}
