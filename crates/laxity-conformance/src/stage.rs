//! A play: actors that all wait until the curtain rises, and then do as their scenes say.
//!
//! A host starts activities in an order of its own. So every actor says that it is there and waits for its cue; when all are there, a
//! device gives the first cues, in a known order, from above all of them.

use crate::{Failure, Result, ensure};
use laxity_model::{
    ActivityId, Body, Context, Event, EventKind, Host, HostError, Instant, InterruptLevel, Mark,
    Outside, Placement, Priority, ProcessorId, Program, RunEnd, RunRecord, SemaphoreId, Service,
    Span, Step,
};

pub(crate) const CPU: ProcessorId = ProcessorId(0);
pub(crate) const DEVICE: Placement = Placement::Interrupt(InterruptLevel(5));
/// Real-time priorities, from the bottom.
pub(crate) const LOW: Placement = Placement::Thread(level(20));
pub(crate) const MIDDLE: Placement = Placement::Thread(level(22));
pub(crate) const HIGH: Placement = Placement::Thread(level(24));
pub(crate) const TOP: Placement = Placement::Thread(Priority::HIGHEST);
/// An ordinary priority.
pub(crate) const NORMAL: Placement = Placement::Thread(Priority::NORMAL);
/// No play lasts so long unless its host has lost an actor.
pub(crate) const NEVER: Span = Span::from_secs(20);
/// From the last actor's word that it is there until it waits for its cue, a thousand times over.
const SETTLE: Span = Span::from_millis(5);

/// What most holders of reservations do outside them.
pub(crate) const ORDINARY: Outside = Outside::Timesharing(Priority::NORMAL);

/// A priority below 32.
pub(crate) const fn level(level: u8) -> Priority {
    match Priority::new(level) {
        Some(priority) => priority,
        None => panic!("there are 32 priorities"),
    }
}

pub(crate) const fn micros(micros: u64) -> Service {
    Service::from_micros(micros)
}

/// A body that is told how often it was called before.
pub(crate) fn counted(
    mut scene: impl FnMut(u64, &mut dyn Context) -> Step + Send + 'static,
) -> impl Body + 'static {
    let mut calls = 0;
    move |context: &mut dyn Context| {
        calls += 1;
        scene(calls - 1, context)
    }
}

/// Works for ever, in pieces of a millisecond.
pub(crate) fn spinner() -> impl Body + 'static {
    |_: &mut dyn Context| Step::Burn(Service::from_millis(1))
}

/// The last step of who is done, and this one of who is not.
pub(crate) fn done_or(is_done: bool, step: Step) -> Step {
    if is_done { Step::Finish } else { step }
}

/// Runs a program until it ends like this, which it must before long.
pub(crate) fn run_to(end: RunEnd, host: &mut dyn Host, program: Program) -> Result<RunRecord> {
    let record = host.admit_and_run(program, NEVER)?;
    expect_end(&record, end)?;
    Ok(record)
}

/// Whether a program that needs what the host lacks is answered with why it lacks it.
pub(crate) fn cannot_run(host: &mut dyn Host, program: Program, why: &str) -> Result {
    let ran = host.admit_and_run(program, NEVER);
    ensure!(
        matches!(&ran, Err(HostError::CannotRun(reason)) if reason.contains(why)),
        "it lacks what is asked for ({why}), and answered {ran:?}"
    );
    Ok(())
}

/// Whether a record is whole, and its run ended like this.
pub(crate) fn expect_end(record: &RunRecord, end: RunEnd) -> Result {
    let (lost, ended) = (record.events_lost, record.ended_by);
    ensure!(lost == 0, "{lost} events lost");
    ensure!(ended == end, "ended by {ended:?} instead of {end:?}");
    Ok(())
}

/// Whether the machine was disturbed between these instants.
pub(crate) fn is_disturbed(record: &RunRecord, from: Instant, to: Instant) -> bool {
    let mut disturbances = record.disturbances.iter();
    disturbances.any(|disturbance| disturbance.overlaps(from, to))
}

/// A program in the making.
pub(crate) struct Stage {
    pub(crate) program: Program,
    story: Mark,
    ready: SemaphoreId,
    actors: u32,
}

/// What was played.
pub(crate) struct Play {
    pub(crate) record: RunRecord,
    /// What was told, in order.
    pub(crate) told: Vec<u64>,
    story: Mark,
}

/// Tells the audience: what is told, in which order, is what a play is judged by.
#[derive(Clone, Copy)]
pub(crate) struct Story(Mark);

impl Story {
    pub(crate) fn tell(self, context: &mut dyn Context, what: u64) {
        context.mark(self.0, [what, 0]);
    }

    /// What a wait brought: ten times the first number of what arrived, if something did, and one more if time was up.
    pub(crate) fn tell_wait(self, context: &mut dyn Context) {
        let arrival = context.arrival().map_or(0, |arrival| arrival.payload[0]);
        let told = 10 * arrival + u64::from(context.timed_out());
        self.tell(context, told);
    }
}

impl Stage {
    pub(crate) fn new(processors: u16) -> Self {
        let mut program = Program::new(processors);
        let ready = program.semaphore(0);
        let story = program.mark("story");
        Self {
            program,
            story,
            ready,
            actors: 0,
        }
    }

    pub(crate) fn story(&self) -> Story {
        Story(self.story)
    }

    /// A cue: what an actor waits for.
    pub(crate) fn cue(&mut self) -> SemaphoreId {
        self.program.semaphore(0)
    }

    /// An actor on the first processor. Its scene is called after its cue, with the number of calls before.
    pub(crate) fn actor(
        &mut self,
        placement: Placement,
        cue: SemaphoreId,
        scene: impl FnMut(u64, &mut dyn Context) -> Step + Send + 'static,
    ) -> ActivityId {
        self.actor_on(CPU, placement, cue, scene)
    }

    pub(crate) fn actor_on(
        &mut self,
        processor: ProcessorId,
        placement: Placement,
        cue: SemaphoreId,
        mut scene: impl FnMut(u64, &mut dyn Context) -> Step + Send + 'static,
    ) -> ActivityId {
        self.actors += 1;
        let ready = self.ready;
        let body = counted(move |calls, context| match calls {
            0 => {
                context.signal(ready);
                Step::Wait(cue)
            }
            _ => scene(calls - 1, context),
        });
        self.program.add("actor", processor, placement, body)
    }

    /// An actor that tells this when its cue comes, and nothing else.
    pub(crate) fn teller(&mut self, placement: Placement, cue: SemaphoreId, what: u64) {
        let story = self.story();
        self.actor(placement, cue, move |_, context| {
            story.tell(context, what);
            Step::Finish
        });
    }

    /// An actor that ends the run some time after its cue.
    pub(crate) fn ender(&mut self, placement: Placement, cue: SemaphoreId) {
        self.actor(placement, cue, |calls, context| match calls {
            0 => Step::SleepUntil(context.now() + SETTLE),
            _ => Step::EndRun,
        });
    }

    /// Plays until all actors have finished; the device gives these cues in this order.
    pub(crate) fn play(self, host: &mut dyn Host, cues: &[SemaphoreId]) -> Result<Play> {
        self.play_until(RunEnd::AllFinished, host, cues)
    }

    pub(crate) fn play_until(
        mut self,
        end: RunEnd,
        host: &mut dyn Host,
        cues: &[SemaphoreId],
    ) -> Result<Play> {
        let (ready, actors) = (self.ready, u64::from(self.actors));
        let cues = cues.to_vec();
        let curtain = counted(move |calls, context| {
            if calls < actors {
                return Step::Wait(ready);
            }
            if calls == actors {
                return Step::SleepUntil(context.now() + SETTLE);
            }
            for cue in &cues {
                context.signal(*cue);
            }
            Step::Finish
        });
        self.program.add("curtain", CPU, DEVICE, curtain);
        let record = host.admit_and_run(self.program, NEVER)?;
        let told = marks(&record, self.story);
        let told: Vec<u64> = told.into_iter().map(|[what, _]| what).collect();
        let whole = expect_end(&record, end);
        whole.map_err(|failure| Failure::Wrong(format!("{failure}; told so far: {told:?}")))?;
        Ok(Play {
            record,
            told,
            story: self.story,
        })
    }
}

impl Play {
    /// When this was told first.
    pub(crate) fn when(&self, what: u64) -> Option<Instant> {
        let mut told = self.record.marked(self.story);
        told.find_map(|event| (event.args[0] == what).then_some(event.at))
    }

    /// Whether exactly this was told.
    pub(crate) fn expect(&self, told: &[u64]) -> Result {
        self.differs(told).map_err(Failure::Wrong)
    }

    /// The same where instants make the order.
    pub(crate) fn expect_in_time(&self, told: &[u64]) -> Result {
        self.differs(told).map_err(Failure::Untimely)
    }

    fn differs(&self, told: &[u64]) -> Result<(), String> {
        (self.told == told)
            .then_some(())
            .ok_or_else(|| format!("told {:?} instead of {told:?}", self.told))
    }
}

/// The arguments of all marks of a kind, in order.
pub(crate) fn marks(record: &RunRecord, mark: Mark) -> Vec<[u64; 2]> {
    record.marked(mark).map(|event| event.args).collect()
}

/// An activity's events of a kind, in order.
pub(crate) fn of(record: &RunRecord, who: ActivityId, kind: EventKind) -> Vec<Event> {
    let events = record.events.iter();
    let wanted = events.filter(|event| event.activity == who && event.kind == kind);
    wanted.copied().collect()
}

/// A number of nanoseconds as an instant.
pub(crate) fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}
