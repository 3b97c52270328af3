//! The machine: its state, its clock, and the loop that goes from instant to instant.

use laxity_model::policy::Policy;
use laxity_model::policy::bands::{Arrival, WaitEnd};
use laxity_model::{ActivityId, Body, Event, EventKind, Instant, ProcessorId, RunEnd, RunRecord};

use crate::activity::{ActivityState, Class, Waiting};
use crate::fault::Fault;
use crate::processor::{Processor, later};
use crate::profile::Profile;
use crate::queue::{Links, Queue};
use crate::record::Recorder;
use crate::timers::Timers;

#[derive(Debug)]
pub(crate) struct Semaphore {
    pub(crate) count: u32,
    pub(crate) waiters: Queue,
}

pub(crate) struct Machine {
    pub(crate) now: Instant,
    pub(crate) activities: Vec<ActivityState>,
    pub(crate) processors: Vec<Processor>,
    pub(crate) semaphores: Vec<Semaphore>,
    pub(crate) timers: Timers,
    pub(crate) links: Links,
    pub(crate) recorder: Recorder,
    pub(crate) profile: Profile,
    pub(crate) marks: usize,
    /// What a body did wrong, and whose.
    pub(crate) fault: Option<(u16, Fault)>,
    /// Activities that have not finished.
    pub(crate) alive: usize,
    /// A body ended the run, or did something wrong.
    pub(crate) ended: bool,
    pub(crate) steps: u32,
    pub(crate) next_tick: Instant,
}

impl Machine {
    /// Runs until just before `end`, or until the program ends. The bodies are beside the machine, so that they can change it.
    pub(crate) fn run(
        &mut self,
        bodies: &mut [Box<dyn Body>],
        end: Instant,
    ) -> Result<RunEnd, (u16, Fault)> {
        self.start();
        if self.alive == 0 {
            return Ok(RunEnd::AllFinished);
        }
        let ended_by = loop {
            let due = self.next_due();
            if due >= end {
                self.now = end;
                break RunEnd::Length;
            }
            if due > self.now {
                self.now = due;
                self.steps = 0;
            }
            self.round(bodies);
            if let Some(fault) = self.fault {
                return Err(fault);
            }
            if self.ended {
                break RunEnd::EndRun;
            }
            if self.alive == 0 {
                break RunEnd::AllFinished;
            }
        };
        for processor in 0..self.processors.len() {
            self.settle(processor);
        }
        Ok(ended_by)
    }

    pub(crate) fn into_record(self, ended_by: RunEnd) -> RunRecord {
        RunRecord {
            start: Instant::ZERO,
            end: self.now,
            ended_by,
            events: self.recorder.events,
            events_lost: self.recorder.lost,
            usage: self.activities.iter().map(ActivityState::usage).collect(),
            disturbances: Vec::new(),
            witness_wakeups: 0,
            steal: None,
        }
    }

    fn start(&mut self) {
        for activity in 0..self.activities.len() as u16 {
            self.begin_reservation_at_start(activity);
            let processor = usize::from(self.state(activity).processor);
            match self.state(activity).class {
                Class::Interrupt(level) => self.raise(activity, level, self.now),
                Class::Deferred => self.queue_deferred(activity),
                Class::External => self.timers.set(activity, self.now),
                Class::Thread if self.state(activity).is_confined() => {}
                Class::Thread => self.processors[processor].bands.enter(
                    activity.into(),
                    Arrival::Start,
                    self.now,
                ),
            }
        }
        for processor in 0..self.processors.len() {
            self.decide(processor);
        }
    }

    fn next_due(&self) -> Instant {
        let first = self.timers.next().min(self.next_tick);
        let processors = self.processors.iter().map(|processor| processor.due);
        processors.fold(first, Instant::min)
    }

    /// One round of what is due now; the order is that of the crate's documentation.
    fn round(&mut self, bodies: &mut [Box<dyn Body>]) {
        if self.next_tick <= self.now {
            self.tick();
        }
        for processor in 0..self.processors.len() {
            if self.processors[processor].due > self.now {
                continue;
            }
            if self.processors[processor].work_ends <= self.now {
                self.settle(processor);
                if let Some(activity) = self.processors[processor].executing {
                    self.step(activity, bodies);
                }
                if self.ended {
                    return;
                }
            }
            let looked_at = &mut self.processors[processor];
            if looked_at.work_ends > self.now {
                // A quantum or a slot may be over too.
                looked_at.undecided |= looked_at.due <= self.now;
            }
        }
        while let Some(activity) = self.timers.pop_due(self.now) {
            self.timer_due(activity, bodies);
            if self.ended {
                return;
            }
        }
        for processor in 0..self.processors.len() {
            if self.processors[processor].undecided {
                self.decide(processor);
            }
        }
    }

    /// The clock interrupts every processor, which costs each of them a moment.
    fn tick(&mut self) {
        let cost = self.profile.costs.clock_tick;
        for processor in 0..self.processors.len() {
            self.settle(processor);
            self.processors[processor].pay(cost, self.now);
            self.go_on(processor);
        }
        self.next_tick = self.profile.costly_tick_after(self.now);
    }

    /// Whether the tick that should wake the thread now is lost to an interrupt handler.
    fn tick_is_lost(&self, activity: u16) -> bool {
        let state = self.state(activity);
        self.profile.handlers_lose_ticks
            && state.class == Class::Thread
            && !self.processors[usize::from(state.processor)]
                .handlers
                .is_empty()
    }

    fn timer_due(&mut self, activity: u16, bodies: &mut [Box<dyn Body>]) {
        if self.tick_is_lost(activity) {
            let next = self.profile.next_tick_after(self.now);
            self.timers.set(activity, next);
            return;
        }
        let waiting = self.state(activity).waiting;
        let state = self.state_mut(activity);
        state.timed_out = false;
        if let Waiting::ForEither(semaphore) = waiting {
            state.timed_out = true;
            self.semaphores[usize::from(semaphore)]
                .waiters
                .remove(&mut self.links, activity);
        }
        if self.state(activity).class == Class::External {
            self.state_mut(activity).waiting = Waiting::No;
            return self.step(activity, bodies);
        }
        let meant_at = self.state(activity).meant_at;
        self.end_wait(activity, WaitEnd::Timer, meant_at);
    }

    /// The activity's wait is over: it is ready, raised or queued.
    pub(crate) fn end_wait(&mut self, activity: u16, end: WaitEnd, meant_at: Instant) {
        let now = self.now;
        let state = &mut self.activities[usize::from(activity)];
        state.waiting = Waiting::No;
        match state.class {
            Class::Interrupt(level) => self.raise(activity, level, meant_at),
            Class::Deferred => self.queue_deferred(activity),
            Class::External => self.timers.set(activity, now),
            Class::Thread => {
                let confined = state.is_confined();
                let processor = &mut self.processors[usize::from(state.processor)];
                if !confined {
                    processor
                        .bands
                        .enter(activity.into(), Arrival::Wake(end), now);
                }
                processor.undecided = true;
                self.record(EventKind::Wake, activity, [meant_at.as_nanos(), 0]);
            }
        }
    }

    /// The activity's device raises its interrupt, as it meant to at `meant_at`.
    pub(crate) fn raise(&mut self, activity: u16, level: u8, meant_at: Instant) {
        let state = &mut self.activities[usize::from(activity)];
        state.meant_at = meant_at;
        self.processors[usize::from(state.processor)].raise(&mut self.links, level, activity);
    }

    fn queue_deferred(&mut self, activity: u16) {
        let state = &mut self.activities[usize::from(activity)];
        state.meant_at = self.now;
        let processor = &mut self.processors[usize::from(state.processor)];
        processor.deferred_queue.push(&mut self.links, activity);
        processor.undecided = true;
    }

    /// Credits what executes on the processor with the service it has received up to now.
    pub(crate) fn settle(&mut self, processor: usize) {
        let processor = &mut self.processors[processor];
        let Some(activity) = processor.executing else {
            return;
        };
        let received = self
            .now
            .saturating_since(processor.working_since)
            .as_full_service();
        if !received.is_zero() {
            let state = &mut self.activities[usize::from(activity)];
            state.work = state.work.saturating_sub(received);
            state.received += received;
            processor.working_since = self.now;
        }
    }

    /// What executes on the processor goes on with the work it has, once costs are paid.
    pub(crate) fn go_on(&mut self, processor: usize) {
        let processor = &mut self.processors[processor];
        processor.work_ends = match processor.executing {
            Some(activity) => {
                let work = self.activities[usize::from(activity)].work;
                processor.working_since = self.now.max(processor.cost_until);
                later(processor.working_since, work.as_dedicated_span())
            }
            None => Instant::MAX,
        };
        processor.set_due();
    }

    #[inline]
    pub(crate) fn record(&mut self, kind: EventKind, activity: u16, args: [u64; 2]) {
        self.recorder.record(Event {
            at: self.now,
            kind,
            processor: ProcessorId(self.activities[usize::from(activity)].processor),
            activity: ActivityId(activity),
            args,
        });
    }

    pub(crate) fn state(&self, activity: u16) -> &ActivityState {
        &self.activities[usize::from(activity)]
    }

    pub(crate) fn state_mut(&mut self, activity: u16) -> &mut ActivityState {
        &mut self.activities[usize::from(activity)]
    }
}
