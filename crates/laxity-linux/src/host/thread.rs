//! The thread of one activity: set up at the rank of the starter, lowered to its own at the common start, then step after step.

use std::sync::Arc;
use std::thread;

use laxity_model::base::ring::Producer;
use laxity_model::enforce::host::BURN_STRETCH;
use laxity_model::enforce::ranks;
use laxity_model::{
    Activity, ActivityId, Body, EventKind, HostError, Instant, Placement, PortId, Reservation,
    Service, Step, TimeConstraint, Usage,
};

use super::context::{LiveContext, Log};
use crate::enforce::deadline::DeadlineError;
use crate::enforce::holding::{Holding, Place};
use crate::os::clock;
use crate::os::memory::prefault_stack;
use crate::os::sched::{self, Policy, SchedError, Tid};
use crate::os::usage;
use crate::run::raises::Raised;
use crate::run::semaphore::Taken;
use crate::run::{self, Run, Thread};

/// What an activity's thread needs to begin.
pub(crate) struct Start {
    pub(crate) id: ActivityId,
    pub(crate) activity: Activity,
    pub(crate) cpu: usize,
    pub(crate) ring: Producer,
    pub(crate) place: Place,
    /// How many names for marks the program has.
    pub(crate) marks: usize,
}

/// What it hands back.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) usage: Usage,
    /// The reservation it was granted last, if it asked for one.
    pub(crate) reservation: Option<Reservation>,
    /// Whether it ever had it in force.
    pub(crate) has_begun: bool,
}

/// Starts the thread.
pub(crate) fn spawn(start: Start, run: Arc<Run>) -> Result<Thread<Outcome>, HostError> {
    let name = start.activity.name.clone();
    run::spawn(name.clone(), run, move |run| {
        let _alive = run.enter(start.id);
        let request = start.activity.reservation;
        match Worker::live(start, run) {
            // A thread that was starved until the end is raised by whoever ends the run, perhaps while it lowers itself.
            Err(error) if run.ended() && error.is_without_effect() => Ok(Outcome {
                reservation: request.map(|request| request.reservation),
                has_begun: request.is_some_and(|request| request.begins_at_start),
                ..Outcome::default()
            }),
            done => done.map_err(|error| error.about(&name)),
        }
    })
}

/// Why an activity takes no further step.
enum Stop {
    /// It has finished, or the run has ended.
    Ended,
    /// It is wrong, or the host could not do what it asked for: the run is over.
    Failed(HostError),
    Reservation(DeadlineError),
}

impl From<DeadlineError> for Stop {
    fn from(error: DeadlineError) -> Self {
        Self::Reservation(error)
    }
}

/// The program is wrong, and the run over.
fn mistake(what: impl Into<String>) -> Stop {
    Stop::Failed(HostError::BadProgram(what.into()))
}

struct Worker<'a> {
    placement: Placement,
    /// It declares a reservation.
    reserves: bool,
    context: LiveContext,
    holding: Holding,
    /// What a handler or deferred call had received when it was entered; `None` outside it.
    inside: Option<Service>,
    /// Arrivals that a deferred call took without waiting, since it was entered last.
    further: u64,
    /// The beginning of its reservation is recorded, and its end not yet.
    recorded: bool,
    /// It had its reservation in force at some time.
    has_begun: bool,
    /// Others may raise it.
    raised: Option<Raised<'a>>,
}

impl<'a> Worker<'a> {
    fn live(start: Start, run: &'a Arc<Run>) -> Result<Outcome, DeadlineError> {
        let Start {
            id,
            activity,
            cpu,
            mut ring,
            place,
            marks,
        } = start;
        ring.prefault();
        settle(&place, cpu)?;
        let own_policy = ranks::of_placement(activity.placement).into();
        let mut holding = Holding::new(place, own_policy, cpu);
        let highest = run.raises.highest(id);
        run.register(holding.describe(id, &activity.name, highest));
        let request = activity.reservation;
        let begins = request.is_some_and(|request| request.begins_at_start);
        if begins {
            holding.prepare()?;
        }
        let Some(begin) = run.wait_for_start() else {
            return Ok(Outcome::default());
        };
        // Lowered first, the holder of a reservation could starve before its dispatcher knows of it.
        if !begins {
            holding.settle()?;
        }
        let raised = highest.map(|_| run.raises.begin(id)).transpose()?;
        let log = Log {
            ring,
            processor: activity.processor,
            activity: id,
        };
        let mut worker = Self {
            placement: activity.placement,
            reserves: request.is_some(),
            context: LiveContext::new(Arc::clone(run), log, marks, &activity),
            holding,
            inside: None,
            further: 0,
            recorded: false,
            has_begun: begins,
            raised,
        };
        let before = usage::now();
        if worker.context.run.sleep_until(begin) {
            let mut body = activity.body;
            match worker.steps(begins, &mut *body) {
                Err(Stop::Failed(error)) => run.fail(error),
                Err(Stop::Reservation(error)) => return Err(error),
                Ok(()) | Err(Stop::Ended) => {}
            }
        }
        worker.holding.end();
        let held = worker.holding.reservation();
        Ok(Outcome {
            usage: usage::since(&before),
            reservation: held.or(request.map(|request| request.reservation)),
            has_begun: worker.has_begun,
        })
    }

    fn steps(&mut self, with_reservation: bool, body: &mut dyn Body) -> Result<(), Stop> {
        // The first dispatch: it was never asleep, so nothing wakes it.
        match self.placement {
            Placement::Interrupt(_) | Placement::Deferred => {
                let start = self.context.run.start();
                self.woke(start);
            }
            Placement::Thread(_) | Placement::Linux(_) => {
                self.context.log.now(EventKind::Dispatch, [0, 0]);
            }
            Placement::External | Placement::On { .. } => {}
        }
        if with_reservation {
            self.begin_reservation()?;
        }
        while !self.context.run.ended() {
            let step = body.step(&mut self.context);
            self.carry_out(step)?;
        }
        Ok(())
    }

    fn carry_out(&mut self, step: Step) -> Result<(), Stop> {
        match step {
            Step::Charge(_) => {}
            Step::Burn(service) => self.burn(service),
            Step::SleepUntil(until) => self.sleep(until)?,
            Step::Wait(port) => self.wait(port, None)?,
            Step::WaitUntil(port, until) => self.wait(port, Some(until))?,
            Step::Yield => thread::yield_now(),
            Step::BeginReservation => self.begin_reservation()?,
            Step::EndReservation => self.end_reservation()?,
            Step::ChangeReservation(asked) => self.change_reservation(asked)?,
            Step::BeginConstraint(asked) => self.begin_constraint(asked)?,
            Step::EndConstraint => self.end_constraint(),
            Step::Finish => {
                self.finish();
                return Err(Stop::Ended);
            }
            Step::EndRun => {
                self.context.run.want_end();
                return Err(Stop::Ended);
            }
        }
        Ok(())
    }

    /// Uses exactly this much processor time, however long that takes on the wall.
    fn burn(&mut self, service: Service) {
        let goal = clock::thread_service() + service;
        loop {
            let left = goal.saturating_sub(clock::thread_service());
            if left.is_zero() || self.context.run.ended() {
                return;
            }
            let stretch = left.as_dedicated_span().min(BURN_STRETCH);
            clock::spin_until(clock::now() + stretch, || self.context.run.ended());
        }
    }

    fn sleep(&mut self, until: Instant) -> Result<(), Stop> {
        self.may_wait_for_time()?;
        if clock::now() < until {
            self.left();
            self.lower()?;
            self.holding.enter_wait();
            let has_slept = self.context.run.sleep_until(until);
            self.holding.leave_wait();
            if !has_slept || self.context.run.ended() {
                return Err(Stop::Ended);
            }
            self.woke(until);
            return Ok(());
        }
        match self.placement {
            Placement::Interrupt(_) => {
                // The device raised the line while the handler ran: it is entered again, as a level-triggered line would.
                self.left();
                self.woke(until);
            }
            // A wait that was over before it began is a release all the same.
            Placement::Thread(_) | Placement::Linux(_) => {
                let args = [until.as_nanos(), 0];
                self.context.log.now(EventKind::Wake, args);
            }
            Placement::Deferred | Placement::External | Placement::On { .. } => {}
        }
        Ok(())
    }

    /// It is about to wait, and no longer raised. Whoever ends the run makes of it what it is to be.
    fn lower(&self) -> Result<(), Stop> {
        match &self.raised {
            Some(raised) if !self.context.run.ended() => {
                let lowered = raised.over().map_err(DeadlineError::from);
                lowered.map_err(Stop::Reservation)
            }
            _ => Ok(()),
        }
    }

    fn may_wait_for_time(&self) -> Result<(), Stop> {
        if self.placement == Placement::Deferred {
            let what = "a deferred call waits for semaphores only, not for time";
            return Err(mistake(what));
        }
        Ok(())
    }

    fn wait(&mut self, id: PortId, until: Option<Instant>) -> Result<(), Stop> {
        if until.is_some() {
            self.may_wait_for_time()?;
        }
        let run = Arc::clone(&self.context.run);
        let port = run.ports.get(id);
        let port = port.ok_or_else(|| mistake(format!("port {id} does not exist")))?;
        let at_once = port.permits.try_take();
        let is_past = until.is_some_and(|until| until <= clock::now());
        let waits = at_once.is_none() && !is_past;
        if waits {
            self.left();
            self.lower()?;
            self.holding.enter_wait();
        }
        let taken = match at_once {
            Some(taken) => Ok(taken),
            None if is_past && !run.ports.is_fed(id) => Ok(Taken::TimedOut),
            None => run.ports.wait(id, until),
        };
        if waits {
            self.holding.leave_wait();
        }
        let taken = taken.map_err(Stop::Failed)?;
        self.context.timed_out = taken == Taken::TimedOut;
        self.context.arrival = (taken == Taken::One).then(|| port.arrival(waits));
        let meant = match taken {
            Taken::One => self.context.arrival.map(|arrival| arrival.at),
            Taken::TimedOut => until,
            Taken::Closed => return Err(Stop::Ended),
        };
        if let (true, Some(meant)) = (waits, meant) {
            self.woke(meant);
        }
        self.further += u64::from(!waits);
        Ok(())
    }

    /// Records that the activity has the processor again after a wait; `meant` is when it was to have it.
    fn woke(&mut self, meant: Instant) {
        let now = clock::now();
        let args = [meant.as_nanos(), 0];
        let log = &mut self.context.log;
        let entered = match self.placement {
            Placement::Interrupt(_) => EventKind::InterruptEnter,
            Placement::Deferred => EventKind::DeferredEnter,
            Placement::Thread(_) | Placement::Linux(_) => {
                log.at(now, EventKind::Wake, [meant.as_nanos(); 2]);
                return log.at(now, EventKind::Dispatch, [0, 0]);
            }
            Placement::External | Placement::On { .. } => return,
        };
        log.at(now, entered, args);
        self.inside = Some(clock::thread_service());
        self.further = 0;
    }

    /// Records that the activity gives the processor up.
    fn left(&mut self) {
        let (kind, service) = match (self.placement, self.inside.take()) {
            (Placement::Interrupt(_), Some(before)) => (EventKind::InterruptExit, since(before)),
            (Placement::Deferred, Some(before)) => (EventKind::DeferredExit, since(before)),
            (Placement::Thread(_) | Placement::Linux(_), _) => (EventKind::Block, Service::ZERO),
            _ => return,
        };
        let further = match kind {
            EventKind::DeferredExit => self.further,
            _ => 0,
        };
        self.context.log.now(kind, [service.as_nanos(), further]);
    }

    fn finish(&mut self) {
        self.end_constraint();
        self.context.log.now(EventKind::Finish, [0, 0]);
        if self.inside.is_some() {
            self.left();
        }
    }

    /// Whether it declares a reservation, of which it did something.
    fn may(&self, did: &str) -> Result<(), Stop> {
        if self.reserves {
            return Ok(());
        }
        let what = format!("an activity {did} a reservation that it does not declare");
        Err(mistake(what))
    }

    fn change_reservation(&mut self, asked: Reservation) -> Result<(), Stop> {
        self.may("changed")?;
        self.context.answer = self.holding.change(asked)?;
        let args = [asked.service().as_nanos(), asked.period().as_nanos()];
        self.record_answer(EventKind::ReservationChange, args);
        if let Ok(from) = self.context.answer {
            let args = [from.as_nanos(), 0];
            self.context.log.now(EventKind::ReservationFrom, args);
        }
        Ok(())
    }

    fn begin_constraint(&mut self, asked: TimeConstraint) -> Result<(), Stop> {
        if !self.holding.may_be_constrained() {
            return Err(mistake(
                "an activity asked for a time constraint that has no reservation by slots and is not declared to ask",
            ));
        }
        self.context.answer = self.holding.constrain(asked);
        let args = [asked.start().as_nanos(), asked.deadline().as_nanos()];
        self.record_answer(EventKind::ConstraintBegin, args);
        Ok(())
    }

    fn end_constraint(&mut self) {
        if let Some(deadline) = self.holding.release_constraint() {
            let args = [deadline.as_nanos(), 0];
            self.context.log.now(EventKind::ConstraintEnd, args);
        }
    }

    /// Records what became of what the activity asked for.
    fn record_answer(&mut self, granted: EventKind, args: [u64; 2]) {
        match self.context.answer {
            Ok(_) => self.context.log.now(granted, args),
            Err(_) => self.context.log.now(EventKind::Refused, [0, 0]),
        }
    }

    fn end_reservation(&mut self) -> Result<(), Stop> {
        self.may("ended")?;
        if self.holding.holds() {
            self.end_constraint();
            self.holding.end();
            self.recorded = false;
            self.context.log.now(EventKind::ReservationEnd, [0, 0]);
        }
        Ok(())
    }

    fn begin_reservation(&mut self) -> Result<(), Stop> {
        self.may("began")?;
        if self.recorded {
            return Ok(());
        }
        // A confined thread comes back in its slot only; enforcement began before.
        let from = clock::now();
        self.holding.begin()?;
        self.recorded = true;
        self.has_begun = true;
        if let Some(held) = self.holding.reservation() {
            let args = [held.service().as_nanos(), held.period().as_nanos()];
            self.context.log.at(from, EventKind::ReservationBegin, args);
        }
        Ok(())
    }
}

/// The calling thread gets exact timers, its stack, and the processors where its place lets it run.
fn settle(place: &Place, cpu: usize) -> Result<(), SchedError> {
    clock::use_exact_timers();
    prefault_stack();
    if place.may_wander() {
        sched::allow_all(Tid::current())
    } else {
        sched::pin(cpu)
    }
}

/// The policy of the thread that starts the others, and which they have until the common start.
pub(crate) const STARTER: Policy = Policy::Fifo(ranks::WITNESS);

/// Processor time that the calling thread has received since it had `before`.
fn since(before: Service) -> Service {
    clock::thread_service().saturating_sub(before)
}
