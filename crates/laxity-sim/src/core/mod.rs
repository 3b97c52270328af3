//! One machine in virtual time, whatever schedules in it: its calendar, the steps of bodies, what they wait for and ask for, and the record.
//!
//! Who has a processor, and what it takes to give it to somebody, is a [`Machinery`]'s: the study's host ([`crate::study`]) or Linux
//! ([`crate::linux`]).

mod activity;
mod asked;
mod fault;
mod raise;
mod record;
mod run;
mod step;
mod timers;
mod wait;

pub(crate) use activity::{Activity, Class, Waiting};
pub(crate) use fault::Fault;
pub(crate) use record::Recorder;
pub use record::Recording;
pub use run::Machine;
pub(crate) use run::{Bodies, Loaded};
use step::MAX_STEPS_AT_AN_INSTANT;
pub(crate) use timers::Timers;
pub(crate) use wait::Port;

use laxity_model::admission::DeadlineState;
use laxity_model::admission::changes::AdmissionState;
use laxity_model::enforce::{Dispatcher, above};
use laxity_model::policy::queue::Links;
use laxity_model::policy::raise::Raises;
use laxity_model::request::Work;
use laxity_model::{
    Disturbance, EventKind, Instant, Priority, Reservation, RunEnd, RunRecord, Service, Span,
    Usage, Whereabouts,
};

/// What a kind of machine is made of beyond what the core knows.
pub(crate) trait Parts: Sized {
    /// Of an activity.
    type Own;
    /// Of a processor.
    type Place;
    /// Of a slot table that is carried out.
    type Carried;

    /// When something is due that is neither a processor's nor an activity's.
    fn next_due(&self) -> Instant;

    /// When a processor is due, by what it knows.
    fn due(place: &Processor<Self>) -> Instant;

    /// Whether it is to be decided who has the processor, when everything else that is due now is done.
    #[inline]
    fn is_undecided(place: &Processor<Self>, _now: Instant) -> bool {
        place.undecided
    }

    /// An activity received so much service.
    fn charge(_own: &mut Self::Own, _service: Service) {}
}

/// What a kind of machine does: who has a processor, how waits end. The core calls it when something about that is due.
pub(crate) trait Machinery {
    /// The run begins.
    fn begin(&mut self);
    /// What comes before everything else at an instant.
    fn begin_instant(&mut self) {}
    /// A processor is due.
    fn serve(&mut self, processor: usize, bodies: &mut Bodies);
    /// The timer of an activity inside the machine is due.
    fn timer_due(&mut self, who: u32);
    /// What comes after everything else at an instant but decisions.
    fn before_decisions(&mut self) {}
    /// Decides who has the processor from now on.
    fn decide(&mut self, processor: usize);

    /// Sets the timer of an activity inside the machine.
    fn set_timer(&mut self, who: u32, at: Instant);
    /// Clears a timer that is not in the core's calendar.
    fn clear_timer(&mut self, _who: u32) {}
    /// Who is to be served first of those who wait at a port.
    fn first_waiter(&self, port: u32) -> Option<u32>;
    /// The wait of an activity inside the machine was ended by a signal that `by` gave.
    fn signalled(&mut self, who: u32, by: u32);
    /// Who executes gives its processor up: for what it waits for, or for ever.
    fn leave(&mut self, who: u32, waiting: Waiting);
    /// A handler waits for an instant that is past: its device raises the line again at once.
    fn raise_again(&mut self, who: u32, at: Instant);
    /// A thread has this priority from now on, whatever it is at.
    fn become_urgent(&mut self, who: u32, priority: Priority);
    /// A thread lets its equals go first.
    fn yield_now(&mut self, who: u32);

    /// A reservation is in force from now on.
    fn enforce(&mut self, who: u32);
    /// A reservation is no longer in force.
    fn release(&mut self, who: u32);
    /// What beginning and ending a reservation takes of the activity's time.
    fn pay_for_reservation(&mut self, who: u32);
    /// The kernel gives who is under `SCHED_DEADLINE` another reservation: from when it holds; `None` if nobody is.
    fn change_server(&mut self, _who: u32, _asked: Reservation) -> Option<Instant> {
        None
    }
    /// The dispatcher is to carry out what was granted.
    fn adopt(&mut self, who: u32);
    /// The time constraint of somebody without a reservation is over.
    fn dismiss_guest(&mut self, _who: u32) {}
}

/// The slot table of one processor as it is carried out.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    pub(crate) dispatcher: Dispatcher,
    /// What is held and granted; its calendar is what the dispatcher carries out.
    pub(crate) admission: AdmissionState,
    /// The activity of each owner in the table.
    pub(crate) owners: Vec<u32>,
    pub(crate) carried: T,
}

impl<T> Slots<T> {
    /// An activity's number among the owners.
    fn number_of(&self, who: u32) -> Option<usize> {
        self.owners.iter().position(|owner| *owner == who)
    }
}

pub(crate) struct Processor<P: Parts> {
    /// When the machine must look at this processor again.
    pub(crate) due: Instant,
    /// When the work of what is executing ends.
    pub(crate) work_ends: Instant,
    /// Since when its work goes on (ahead of now while a cost is being paid).
    pub(crate) working_since: Instant,
    /// Until then the machine's own costs have the processor.
    pub(crate) cost_until: Instant,
    /// What is executing.
    pub(crate) executing: Option<u32>,
    /// Something changed: who runs must be decided.
    pub(crate) undecided: bool,
    pub(crate) own: P::Place,
    pub(crate) slots: Option<Box<Slots<P::Carried>>>,
}

impl<P: Parts> Processor<P> {
    pub(crate) fn new(own: P::Place, slots: Option<Slots<P::Carried>>) -> Self {
        Self {
            due: Instant::MAX,
            work_ends: Instant::MAX,
            working_since: Instant::ZERO,
            cost_until: Instant::ZERO,
            executing: None,
            undecided: false,
            own,
            slots: slots.map(Box::new),
        }
    }

    /// The machine itself takes the processor for this long, after what it already has to pay.
    #[inline]
    pub(crate) fn pay(&mut self, cost: Span, now: Instant) {
        if !cost.is_zero() {
            self.cost_until = later(self.cost_until.max(now), cost);
        }
    }

    /// Nothing executes, and who does is to be decided.
    #[inline]
    pub(crate) fn vacate(&mut self) {
        self.executing = None;
        self.work_ends = Instant::MAX;
        self.undecided = true;
    }

    /// Credits what executes with the service it has received up to now.
    #[inline(always)]
    pub(crate) fn settle(&mut self, activities: &mut [Activity<P>], now: Instant) {
        let Some(who) = self.executing else {
            return;
        };
        let received = now.saturating_since(self.working_since);
        if !received.is_zero() {
            self.working_since = now;
            let received = received.as_full_service();
            activities[who as usize].receive(received, received);
        }
    }

    /// What executes goes on with the work it has, once costs are paid.
    #[inline(always)]
    pub(crate) fn go_on(&mut self, activities: &[Activity<P>], now: Instant) {
        match self.executing {
            Some(who) => self.go_on_with(activities[who as usize].work, now),
            None => {
                self.work_ends = Instant::MAX;
                self.set_due();
            }
        }
    }

    /// The same, where the work of what executes is known.
    #[inline(always)]
    pub(crate) fn go_on_with(&mut self, work: Service, now: Instant) {
        self.working_since = now.max(self.cost_until);
        self.work_ends = later(self.working_since, work.as_dedicated_span());
        self.set_due();
    }

    #[inline]
    pub(crate) fn set_due(&mut self) {
        self.due = P::due(self);
    }
}

pub(crate) struct Core<P: Parts> {
    pub(crate) now: Instant,
    pub(crate) start: Instant,
    /// Those of the program, and then the host's own.
    pub(crate) activities: Vec<Activity<P>>,
    pub(crate) processors: Vec<Processor<P>>,
    pub(crate) ports: Vec<Port>,
    /// Of what is outside the machine; of what is inside, where the machinery has no timers of its own. The one after the last activity's is of whoever is
    /// raised when its time has come.
    pub(crate) timers: Timers,
    /// Who holds which of the kernel's reservations.
    deadline: Option<DeadlineState>,
    /// How urgent those are that may be raised.
    raises: Raises,
    /// Everybody waits in one queue at most.
    pub(crate) links: Links,
    pub(crate) recorder: Recorder,
    /// Where each of the program's own may run.
    ran: Vec<Whereabouts>,
    above: Vec<Vec<Work>>,
    /// What a witness saw, and how often it woke.
    pub(crate) disturbances: Vec<Disturbance>,
    pub(crate) witness_wakeups: u64,
    marks: usize,
    /// What a body did wrong, and whose.
    fault: Option<(u32, Fault)>,
    /// Activities that have not finished.
    alive: usize,
    /// A body ended the run, or did something wrong.
    pub(crate) ended: bool,
    /// So many more steps are possible at this instant.
    steps_left: u32,
    pub(crate) parts: P,
}

impl<P: Parts> Core<P> {
    /// A machine with these activities, the first `own` of which are the program's.
    pub(crate) fn new(
        parts: P,
        (program, deadline): (&laxity_model::Program, Option<DeadlineState>),
        (start, recording): (Instant, Recording),
        activities: Vec<Activity<P>>,
        processors: Vec<Processor<P>>,
    ) -> Self {
        Self {
            now: start,
            start,
            processors,
            ports: program.ports.iter().copied().map(Port::new).collect(),
            timers: Timers::new(activities.len()),
            deadline,
            raises: program.raises(),
            links: Links::new(activities.len()),
            recorder: Recorder::new(recording),
            ran: program.activities.iter().map(Whereabouts::of).collect(),
            above: above(program),
            disturbances: Vec::new(),
            witness_wakeups: 0,
            marks: program.marks.len(),
            fault: None,
            alive: program.activities.len(),
            ended: false,
            steps_left: MAX_STEPS_AT_AN_INSTANT,
            activities,
            parts,
        }
    }

    #[inline]
    pub(crate) fn next_due(&self) -> Instant {
        let first = self.timers.next().min(self.parts.next_due());
        let processors = self.processors.iter().map(|processor| processor.due);
        processors.fold(first, Instant::min)
    }

    #[inline]
    pub(crate) fn settle(&mut self, processor: usize) {
        self.processors[processor].settle(&mut self.activities, self.now);
    }

    #[inline]
    pub(crate) fn go_on(&mut self, processor: usize) {
        self.processors[processor].go_on(&self.activities, self.now);
    }

    #[inline(always)]
    pub(crate) fn record(&mut self, kind: EventKind, who: u32, args: [u64; 2]) {
        let event = |kind| self.activities[who as usize].event(kind, self.now, args);
        self.recorder.record(kind, event);
    }

    /// A handler or deferred call is entered that was to be at `meant`.
    pub(crate) fn record_entry(&mut self, kind: EventKind, who: u32, meant: Instant) {
        let activity = self.activity_mut(who);
        activity.received_before = activity.received;
        activity.further = 0;
        self.record(kind, who, [meant.as_nanos(), 0]);
    }

    /// A handler or deferred call returns.
    pub(crate) fn record_exit(&mut self, kind: EventKind, who: u32) {
        let activity = self.activity(who);
        let took = activity.received.saturating_sub(activity.received_before);
        let further = u64::from(activity.further);
        self.record(kind, who, [took.as_nanos(), further]);
    }

    #[inline]
    pub(crate) fn activity(&self, who: u32) -> &Activity<P> {
        &self.activities[who as usize]
    }

    #[inline]
    pub(crate) fn activity_mut(&mut self, who: u32) -> &mut Activity<P> {
        &mut self.activities[who as usize]
    }

    /// The activity is on an executor, which runs it: here it never begins.
    fn leave_to_executor(&mut self, who: u32) {
        self.timers.clear(who);
        self.activity_mut(who).waiting = Waiting::ForEver;
        self.alive -= 1;
    }

    /// The run is over because of this.
    pub(crate) fn fail(&mut self, who: u32, fault: Fault) {
        self.ended = true;
        self.fault.get_or_insert((who, fault));
    }

    fn into_record(self, ended_by: RunEnd, own: usize) -> RunRecord {
        let places = self.ran.iter().zip(&self.above);
        let activities = (0..).zip(self.activities.iter().take(own)).zip(places);
        RunRecord {
            start: self.start,
            end: self.now,
            ended_by,
            usage: activities
                .map(|((who, activity), (ran, above))| Usage {
                    ran: *ran,
                    above: above.clone(),
                    ..activity.usage(self.reservation(who))
                })
                .collect(),
            ports: self.ports.iter().map(|port| port.state.usage()).collect(),
            events: self.recorder.events,
            events_lost: self.recorder.lost,
            disturbances: Disturbance::joined(self.disturbances),
            witness_wakeups: self.witness_wakeups,
            unwatched: false,
            crawled: Vec::new(),
            doubts: Vec::new(),
            steal: None,
            notices: Vec::new(),
            outranked: Vec::new(),
        }
    }
}

impl<P: Parts> Core<P>
where
    Self: Machinery,
{
    /// Does everything that is due before `until`, unless the program ends first; tells why it ended, if it has.
    fn advance(
        &mut self,
        bodies: &mut Bodies,
        until: Instant,
    ) -> Result<Option<RunEnd>, (u32, Fault)> {
        let is_over = self.ended || self.alive == 0;
        let mut due = if is_over { until } else { self.next_due() };
        while due < until {
            if due > self.now {
                self.now = due;
                self.steps_left = MAX_STEPS_AT_AN_INSTANT;
                self.begin_instant();
            }
            due = self.round(bodies);
        }
        match (self.fault, self.ended, self.alive) {
            (Some(fault), ..) => Err(fault),
            (None, true, _) => Ok(Some(RunEnd::EndRun)),
            (None, false, 0) => Ok(Some(RunEnd::AllFinished)),
            (None, false, _) => Ok(None),
        }
    }

    /// One round of what is due now; the order is that of the crate's documentation. Tells when something is due next; the end of time if
    /// the run ended.
    #[inline]
    fn round(&mut self, bodies: &mut Bodies) -> Instant {
        let now = self.now;
        let mut number = 0;
        while let Some(processor) = self.processors.get(number) {
            if processor.due <= now {
                self.serve(number, bodies);
                if self.ended {
                    return Instant::MAX;
                }
            }
            number += 1;
        }
        while let Some(who) = self.timers.pop_due(now) {
            if who as usize == self.activities.len() {
                self.raise_in_time();
            } else if self.activities[who as usize].class == Class::External {
                self.time_is_up(who);
                self.activity_mut(who).waiting = Waiting::No;
                self.step(who, bodies);
                if self.ended {
                    return Instant::MAX;
                }
            } else {
                self.timer_due(who);
            }
        }
        self.before_decisions();
        let mut due = self.parts.next_due();
        let mut number = 0;
        while let Some(mut processor) = self.processors.get(number) {
            if P::is_undecided(processor, now) {
                self.decide(number);
                processor = &self.processors[number];
            }
            due = due.min(processor.due);
            number += 1;
        }
        if self.alive == 0 {
            return Instant::MAX;
        }
        due.min(self.timers.next())
    }
}

/// `span` after `at`, or the end of time.
#[inline]
pub(crate) fn later(at: Instant, span: Span) -> Instant {
    at.checked_add(span).unwrap_or(Instant::MAX)
}
