//! The modem study's host and its likes: interrupt levels, deferred calls, reservations and priority bands on one core.

mod decide;
mod profile;

use profile::Ticks;
pub use profile::{Costs, Profile};

use laxity_model::enforce::Command;
use laxity_model::policy::bands::{Arrival, Bands, WaitEnd};
use laxity_model::policy::queue::{Levels, Queue};
use laxity_model::policy::{Policy, Rank};
use laxity_model::{EventKind, Grade, Instant, Outside, Placement, Priority};

use crate::core::{self, Bodies, Class, Core, Machinery, Parts, Waiting};

pub(crate) type Machine = Core<Study>;
pub(crate) type Processor = core::Processor<Study>;
pub(crate) type Slots = core::Slots<Carried>;

/// The machine as a whole.
pub(crate) struct Study {
    profile: Profile,
    /// When the clock takes a moment from everybody.
    ticks: Ticks,
}

/// How a slot table is carried out here.
#[derive(Debug)]
pub(crate) struct Carried {
    /// The activity whose slot it is.
    owner: Option<u32>,
    /// When the dispatcher wants to be asked again.
    poll_at: Instant,
}

impl Carried {
    pub(crate) const NOTHING: Self = Self {
        owner: None,
        poll_at: Instant::ZERO,
    };
}

/// What is stacked on a processor.
#[derive(Debug)]
pub(crate) struct Stack {
    /// When the bands or the slots want to decide again.
    decide_at: Instant,
    /// The thread that is loaded: executing, or under interrupts and deferred calls.
    thread: Option<u32>,
    /// It lets its equals go first.
    yielded: bool,
    /// The thread that runs by its reservation and not by the bands.
    reserved: Option<u32>,
    /// Whether there is a handler or deferred call to run.
    is_urgent: bool,
    /// The deferred call that is executing or interrupted.
    deferred: Option<u32>,
    deferred_queue: Queue,
    /// The handlers that have begun, each interrupted by the next.
    handlers: Vec<(u8, u32)>,
    bands: Bands,
    /// The interrupts that are raised and not yet accepted.
    raised: Levels,
}

impl Stack {
    pub(crate) fn new(bands: Bands, activities: usize) -> Self {
        Self {
            decide_at: Instant::MAX,
            thread: None,
            yielded: false,
            reserved: None,
            is_urgent: false,
            deferred: None,
            deferred_queue: Queue::EMPTY,
            handlers: Vec::new(),
            bands,
            raised: Levels::new(activities),
        }
    }

    /// Takes the interrupt that is to be accepted now: of the highest level raised, if that is above what executes.
    #[inline]
    fn accept(&mut self) -> Option<u32> {
        let level = self.raised.highest()?;
        if self.handlers.last().is_some_and(|(at, _)| *at >= level) {
            return None;
        }
        let handler = self.raised.pop(level)?;
        self.handlers.push((level, handler));
        Some(handler)
    }
}

/// An activity as this machine begins with it.
pub(crate) fn activity(
    number: u16,
    activity: &laxity_model::Activity,
    grade: Option<Grade>,
) -> core::Activity<Study> {
    core::Activity::new(
        (
            laxity_model::ActivityId(number),
            Class::of(activity.placement),
        ),
        activity.processor.0,
        (Waiting::No, Instant::ZERO),
        activity.reservation.zip(grade),
        priority(activity.placement),
    )
}

/// A thread's own priority; the lowest for all others.
pub(crate) fn priority(placement: Placement) -> Priority {
    match placement {
        Placement::Thread(priority) => priority,
        _ => Priority::IDLE,
    }
}

impl Study {
    pub(crate) fn new(profile: Profile) -> Self {
        Self {
            profile,
            ticks: Ticks::of(&profile),
        }
    }
}

impl Parts for Study {
    /// A thread's own priority.
    type Own = Priority;
    type Place = Stack;
    type Carried = Carried;

    #[inline]
    fn next_due(&self) -> Instant {
        self.ticks.next
    }

    #[inline]
    fn due(place: &Processor) -> Instant {
        place.work_ends.min(place.own.decide_at)
    }

    /// A quantum or a slot may be over too; but work that ends now ends first.
    #[inline]
    fn is_undecided(place: &Processor, now: Instant) -> bool {
        place.undecided || (place.due <= now && place.work_ends > now)
    }
}

impl Machinery for Machine {
    fn begin(&mut self) {
        self.begin_reservations_at_start();
        for who in 0..self.activities.len() as u32 {
            match self.activity(who).class {
                Class::External => self.timers.set(who, self.now),
                Class::Thread if self.activity(who).is_confined() => {}
                Class::Thread => {
                    let place = self.activity(who).place();
                    let bands = &mut self.processors[place].own.bands;
                    bands.enter(who, Arrival::Start, self.now);
                }
                Class::Interrupt(_) | Class::Deferred => self.request(who, self.now),
            }
        }
        for processor in 0..self.processors.len() {
            self.decide(processor);
        }
    }

    #[inline]
    fn begin_instant(&mut self) {
        if self.parts.ticks.next <= self.now {
            self.tick();
        }
    }

    #[inline]
    fn serve(&mut self, processor: usize, bodies: &mut Bodies) {
        let place = &mut self.processors[processor];
        if place.work_ends <= self.now
            && let Some(who) = place.executing
        {
            place.settle(&mut self.activities, self.now);
            self.step(who, bodies);
        }
    }

    #[inline]
    fn timer_due(&mut self, who: u32) {
        self.time_is_up(who);
        self.end_wait(who, WaitEnd::Timer);
    }

    #[inline]
    fn decide(&mut self, processor: usize) {
        self.decide_here(processor);
    }

    #[inline(always)]
    fn set_timer(&mut self, who: u32, at: Instant) {
        let wake_at = match self.parts.profile.tick_hz {
            Some(_) if self.activity(who).class == Class::Thread => self.parts.profile.wake_at(at),
            _ => at,
        };
        self.timers.set(who, wake_at);
    }

    fn first_waiter(&self, port: u32) -> Option<u32> {
        self.ports[port as usize].waiters.first()
    }

    fn signalled(&mut self, who: u32, _by: u32) {
        self.end_wait(who, WaitEnd::Signal);
    }

    #[inline(always)]
    fn leave(&mut self, who: u32, waiting: Waiting) {
        let now = self.now;
        let activity = &mut self.activities[who as usize];
        activity.waiting = waiting;
        let place = &mut self.processors[usize::from(activity.processor)];
        place.vacate();
        match activity.class {
            Class::Interrupt(_) => {
                place.own.handlers.pop();
                place.pay(self.parts.profile.costs.interrupt_exit, now);
                self.record_exit(EventKind::InterruptExit, who);
            }
            Class::Deferred => {
                place.own.deferred = None;
                self.record_exit(EventKind::DeferredExit, who);
            }
            Class::Thread => {
                activity.voluntary_switches += u64::from(waiting != Waiting::ForEver);
                place.own.thread = None;
                place.own.reserved = None;
                place.own.bands.leave(who, now);
            }
            Class::External => {}
        }
    }

    fn raise_again(&mut self, who: u32, at: Instant) {
        self.leave(who, Waiting::No);
        self.request(who, at);
    }

    fn become_urgent(&mut self, who: u32, priority: Priority) {
        let activity = &self.activities[who as usize];
        let place = &mut self.processors[usize::from(activity.processor)];
        let rank = Rank::Priority(priority);
        place.own.bands.raise(who, rank, self.now);
        place.undecided = true;
    }

    fn yield_now(&mut self, who: u32) {
        let place = &mut self.processors[usize::from(self.activities[who as usize].processor)];
        if place.own.reserved != Some(who) {
            place.own.bands.yield_now(who, self.now);
            place.undecided = true;
            place.own.yielded = true;
        }
    }

    fn enforce(&mut self, who: u32) {
        let now = self.now;
        let activity = &self.activities[who as usize];
        let Some(held) = activity.in_force() else {
            return;
        };
        let place = &mut self.processors[usize::from(activity.processor)];
        place.undecided = true;
        match held.outside {
            Outside::AsPlaced => {}
            Outside::Confined => place.own.bands.leave(who, now),
            Outside::Timesharing(priority) => place.own.bands.set_priority(who, priority, now),
        }
        let owner = place.slots.as_ref().and_then(|slots| slots.carried.owner);
        if owner == Some(who) {
            self.begin_slot(who, now);
        }
    }

    fn release(&mut self, who: u32) {
        let now = self.now;
        let activity = &self.activities[who as usize];
        let Some(held) = &activity.held else { return };
        let place = &mut self.processors[usize::from(activity.processor)];
        place.undecided = true;
        let bands = &mut place.own.bands;
        match held.outside {
            Outside::Confined => bands.enter(who, Arrival::Resume, now),
            Outside::AsPlaced => {}
            Outside::Timesharing(_) => bands.set_priority(who, activity.own, now),
        }
    }

    fn pay_for_reservation(&mut self, who: u32) {
        self.next_step_at_once(who);
    }

    fn adopt(&mut self, who: u32) {
        let now = self.now;
        if let Some((slots, _)) = self.slots_of(who) {
            slots.dispatcher.follow(slots.admission.calendar().clone());
            slots.carried.poll_at = now;
        }
        let place = self.activity(who).place();
        self.processors[place].undecided = true;
    }
}

impl Machine {
    /// The clock interrupts every processor, which costs each of them a moment.
    fn tick(&mut self) {
        let cost = self.parts.profile.costs.clock_tick;
        for processor in 0..self.processors.len() {
            self.settle(processor);
            self.processors[processor].pay(cost, self.now);
            self.go_on(processor);
        }
        self.parts.ticks.pass();
    }

    /// The activity's wait is over: it is ready, raised or queued.
    #[inline(always)]
    fn end_wait(&mut self, who: u32, end: WaitEnd) {
        let now = self.now;
        let activity = &mut self.activities[who as usize];
        activity.waiting = Waiting::No;
        let meant_at = activity.meant_at;
        if activity.class != Class::Thread {
            return self.request(who, meant_at);
        }
        let place = &mut self.processors[usize::from(activity.processor)];
        if !activity.is_confined() {
            place.own.bands.enter(who, Arrival::Wake(end), now);
        }
        place.undecided = true;
        self.record(EventKind::Wake, who, [meant_at.as_nanos(), 0]);
    }

    /// A device raises its interrupt, as it meant to at `meant_at`; or a deferred call is queued.
    fn request(&mut self, who: u32, meant_at: Instant) {
        let activity = &mut self.activities[who as usize];
        let place = &mut self.processors[usize::from(activity.processor)];
        place.undecided = true;
        place.own.is_urgent = true;
        activity.meant_at = meant_at;
        if let Class::Interrupt(level) = activity.class {
            place.own.raised.push(level, who);
        } else {
            activity.meant_at = self.now;
            place.own.deferred_queue.push(&mut self.links, who);
        }
    }

    /// Carries out the edges of the slot table that are due.
    fn pass_slot_edges(&mut self, processor: usize) {
        while let Some(slots) = &mut self.processors[processor].slots
            && slots.carried.poll_at <= self.now
        {
            match slots.dispatcher.poll(self.now) {
                Command::Switch { from, to, edge } => {
                    let (from, to) = (
                        from.map(|owner| slots.owners[owner]),
                        to.map(|owner| slots.owners[owner]),
                    );
                    slots.carried.owner = to;
                    if let Some(from) = from {
                        self.end_slot(from, edge);
                    }
                    if let Some(to) = to {
                        self.begin_slot(to, edge);
                    }
                }
                // The dispatcher is part of this machine: between edges it is not there.
                Command::SleepUntil(at) | Command::SpinUntil(at) => slots.carried.poll_at = at,
                // Its slots end at their edges, whatever their holders received.
                Command::Look { .. } => slots.dispatcher.looked(None, self.now),
            }
        }
    }
}
