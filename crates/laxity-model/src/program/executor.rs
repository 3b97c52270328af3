//! An executor as a body: to its host it is one activity, to the bodies of its handlers it is a host.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::hosted::Hosted;
use super::together::Others;
use super::{ActivityId, Body, Context, Step};
use crate::analysis::supply::SupplyBound;
use crate::base::port::Arrival;
use crate::executor::linked::{self, Linked};
use crate::executor::{
    ExecutorError, ExecutorPolicy, HANDLERS, HandlerId, Handlers, Result, Unschedulable, Wait,
};
use crate::policy::raise;
use crate::{EventKind, Instant, PortId, SemaphoreId, Service, Span};

/// What an executor hosts at one of its places.
pub(super) struct Guest {
    pub(super) handler: HandlerId,
    pub(super) activity: ActivityId,
    /// Whether it is the activity itself, and not a handler that the activity has made.
    pub(super) is_activity: bool,
    /// `None` while it is called.
    pub(super) body: Option<Box<dyn Body>>,
    pub(super) timed_out: bool,
    pub(super) arrival: Option<Arrival>,
    /// Something outside the machine feeds the port that it waited for last, and is looked at in waits only.
    is_fed: bool,
    /// Where it is told that it is raised, if it may be.
    raises: Option<PortId>,
}

/// Somebody who gets a place when the executor begins.
struct Newcomer {
    activity: ActivityId,
    /// How it is told that it is raised, and how soon after its release it is due at the soonest.
    raises: Option<(PortId, Span)>,
    deadline: Option<Span>,
    body: Box<dyn Body>,
}

/// Takes turns among the bodies of its handlers, in one activity. Each runs until it yields, waits or ends; then the policy says who is
/// next. The steps that say what work was done, and what is asked of a reservation, are handed on to the executor's own host.
///
/// [`Program::executor`](super::Program::executor) makes one.
pub(super) struct Executor<P, const N: usize = HANDLERS> {
    pub(super) handlers: Handlers<P, N>,
    /// By place.
    pub(super) guests: Vec<Option<Guest>>,
    newcomers: Vec<Newcomer>,
    /// Rung by every port that a handler waits for.
    pub(super) doorbell: SemaphoreId,
    /// The doorbell was rung, and the ports have not been looked at since.
    rung: bool,
    /// So many guests wait for what is fed.
    fed: usize,
    /// The last step was a wait in which that was looked at.
    polled: bool,
    /// Until when nobody more urgent is released, but by an arrival.
    pub(super) until: Instant,
    /// Other processes have handlers that take turns with these: [`Context::others`].
    shares: bool,
    /// One of those goes before the running job.
    others_first: bool,
}

impl<P: ExecutorPolicy, const N: usize> Executor<P, N> {
    pub(super) fn new(policy: P, doorbell: SemaphoreId) -> Self {
        Self {
            handlers: Handlers::new(policy),
            guests: Vec::new(),
            newcomers: Vec::new(),
            doorbell,
            rung: false,
            fed: 0,
            polled: false,
            until: Instant::ZERO,
            shares: false,
            others_first: false,
        }
    }

    /// It takes turns with executors of other processes, which its [context](Context::others) knows.
    pub(super) const fn sharing(mut self, shares: bool) -> Self {
        self.shares = shares;
        self
    }

    /// The others with whom it takes turns.
    fn others<'a>(&self, context: &'a mut dyn Context) -> Option<&'a mut dyn Others> {
        match self.shares {
            true => context.others(),
            false => None,
        }
    }

    /// Whether the ports or the others may have changed since they were looked at.
    pub(super) fn is_stale(&mut self, context: &mut dyn Context) -> bool {
        self.is_rung(context)
            || self
                .others(context)
                .is_some_and(|others| others.is_called())
    }

    /// Makes a handler of a body.
    pub(super) fn make(
        &mut self,
        now: Instant,
        (activity, is_activity): (ActivityId, bool),
        deadline: Option<Span>,
        body: Box<dyn Body>,
    ) -> Result<HandlerId> {
        let handler = self.handlers.make(deadline, now)?;
        let place = usize::from(handler.place());
        if self.guests.len() <= place {
            self.guests.resize_with(place + 1, || None);
        }
        self.guests[place] = Some(Guest {
            handler,
            activity,
            is_activity,
            body: Some(body),
            timed_out: false,
            arrival: None,
            is_fed: false,
            raises: None,
        });
        Ok(handler)
    }

    /// Whether anything may have arrived since the ports were looked at.
    pub(super) fn is_rung(&mut self, context: &mut dyn Context) -> bool {
        self.rung |= context.take(self.doorbell).is_some();
        self.rung
    }

    /// Whether somebody more urgent than the running job is released by now.
    pub(super) fn must_yield(&mut self, context: &mut dyn Context) -> Result<bool> {
        self.look(context)?;
        let asked = self.others_first || self.handlers.must_yield(context.now())?;
        if asked {
            // A request stays until the job yields.
            self.until = Instant::ZERO;
        }
        Ok(asked)
    }

    pub(super) fn guest(&mut self, handler: HandlerId) -> Result<&mut Guest> {
        let guest = self.guests.get_mut(usize::from(handler.place()));
        let guest = guest.and_then(Option::as_mut);
        let guest = guest.filter(|guest| guest.handler == handler);
        guest.ok_or(ExecutorError::NoSuchHandler)
    }

    /// Releases the jobs of all for whom something has arrived, or whose instant has come: by when, as a later reading of the clock may find others due.
    fn look(&mut self, context: &mut dyn Context) -> Result<Instant> {
        if let Some(others) = self.others(context) {
            others.hear();
        }
        let now = context.now();
        // In this order: what arrives while the ports are looked at rings again.
        if self.is_rung(context) {
            self.rung = false;
            self.hear(context, now)?;
            for place in 0..self.handlers.places() {
                let Some((handler, wait)) = self.handlers.waiting(place) else {
                    continue;
                };
                if let Some(arrival) = wait.port.and_then(|port| context.take(port)) {
                    self.arrived(context, handler, arrival, now)?;
                }
            }
        }
        let guests = &mut self.guests;
        self.handlers.release_due(now, |released| {
            let guest = guests.get_mut(usize::from(released.handler.place()));
            if let Some(Some(guest)) = guest {
                guest.timed_out = released.timed_out;
                guest.arrival = None;
                guest.record(context, EventKind::Wake, released.release);
            }
        });
        self.look_ahead(context, now);
        Ok(now)
    }

    /// Raises those of whom that was said, before anything releases them.
    fn hear(&mut self, context: &mut dyn Context, now: Instant) -> Result {
        for guest in self.guests.iter().flatten() {
            let Some(port) = guest.raises else {
                continue;
            };
            while let Some(raise) = context.take(port) {
                let (deadline, at) = raise::heard(raise.payload);
                self.handlers.raise(guest.handler, deadline, at, now)?;
            }
        }
        Ok(())
    }

    /// One of its bodies raises somebody: whether he is on this executor, and may be raised.
    pub(super) fn raise(
        &mut self,
        activity: ActivityId,
        deadline: Instant,
        (at, now): (Instant, Instant),
    ) -> bool {
        let mut guests = self.guests.iter().flatten();
        let found = guests.find(|guest| guest.is_activity && guest.activity == activity);
        let Some(guest) = found.filter(|guest| guest.raises.is_some()) else {
            return false;
        };
        // Who runs is to look again whether he still goes first.
        self.until = Instant::ZERO;
        self.handlers
            .raise(guest.handler, deadline, at, now)
            .is_ok()
    }

    /// The newcomer may be raised.
    fn may_be_raised(
        &mut self,
        context: &mut dyn Context,
        handler: HandlerId,
        (port, soonest): (PortId, Span),
    ) -> Result {
        self.handlers.declare_raise(handler, soonest)?;
        self.guest(handler)?.raises = Some(port);
        context.ring(port, self.doorbell);
        // What came before that rang nothing.
        self.rung = true;
        Ok(())
    }

    /// Finds out until when nobody more urgent than the running job is released.
    fn look_ahead(&mut self, context: &mut dyn Context, now: Instant) {
        self.until = self.handlers.until(now);
        self.others_first = false;
        if let Some((_, running)) = self.handlers.running()
            && let Some(others) = self.others(context)
        {
            let seen = others.look(now, running.into());
            self.until = self.until.min(seen.until);
            self.others_first = seen.goes_first;
        }
    }

    /// Whether a handler of this executor is to run now; where not, the others are told what there is here.
    fn is_turn(&mut self, context: &mut dyn Context, now: Instant) -> bool {
        let Some(others) = self.others(context) else {
            return true;
        };
        let is_turn = others.is_turn(now, &mut self.handlers.claims());
        if !is_turn {
            others.publish(now, &mut self.handlers.claims());
        }
        is_turn
    }

    fn arrived(
        &mut self,
        context: &mut dyn Context,
        handler: HandlerId,
        arrival: Arrival,
        now: Instant,
    ) -> Result {
        self.handlers.release(handler, arrival.at, now)?;
        let guest = self.guest(handler)?;
        guest.timed_out = false;
        guest.arrival = Some(arrival);
        guest.record(context, EventKind::Wake, arrival.at);
        Ok(())
    }

    /// Takes up the next job; the step to wait with if there is none.
    fn next(&mut self, context: &mut dyn Context) -> Result<Option<Step>> {
        if self.fed > 0 && !core::mem::take(&mut self.polled) {
            (self.polled, self.rung) = (true, true);
            return Ok(Some(Step::WaitUntil(self.doorbell, Instant::ZERO)));
        }
        let now = self.look(context)?;
        if self.is_turn(context, now)
            && let Some(handler) = self.handlers.decide(now)?
        {
            self.look_ahead(context, now);
            let guest = self.guest(handler)?;
            guest.record(context, EventKind::Dispatch, Instant::ZERO);
            return Ok(None);
        }
        if self.guests.iter().all(Option::is_none) {
            return Ok(Some(Step::Finish));
        }
        (self.polled, self.rung) = (true, true);
        let next = self.handlers.next_release();
        Ok(Some(match next.min(self.handlers.reorders(now)) {
            Instant::MAX => Step::Wait(self.doorbell),
            next => Step::WaitUntil(self.doorbell, next),
        }))
    }

    /// Calls the running handler's body once, and says what its host is to do.
    fn call(&mut self, context: &mut dyn Context) -> Result<Option<Step>> {
        let Some((handler, _)) = self.handlers.running() else {
            return Ok(None);
        };
        let guest = self.guest(handler)?;
        let body = guest.body.take();
        let mut body = body.ok_or(ExecutorError::NotInState("at rest"))?;
        let now = if self.shares {
            context.now()
        } else {
            Instant::ZERO
        };
        if let Some(others) = self.others(context) {
            others.begins(now);
        }
        let step = body.step(&mut Hosted {
            outer: context,
            executor: self,
            handler,
        });
        match self.guest(handler) {
            Ok(guest) => guest.body = Some(body),
            // It has ended itself.
            Err(_) => return Ok(None),
        }
        self.carry_out(context, handler, step)
    }

    fn carry_out(
        &mut self,
        context: &mut dyn Context,
        handler: HandlerId,
        step: Step,
    ) -> Result<Option<Step>> {
        let on = |port, until| Wait {
            port: Some(port),
            until,
        };
        match step {
            Step::SleepUntil(until) => self.wait(context, handler, Wait { port: None, until })?,
            Step::Wait(port) => self.wait(context, handler, on(port, Instant::MAX))?,
            Step::WaitUntil(port, until) => self.wait(context, handler, on(port, until))?,
            Step::Yield => {
                self.handlers.yield_now(handler, context.now())?;
                let guest = self.guest(handler)?;
                guest.record(context, EventKind::Preempt, Instant::ZERO);
            }
            Step::Finish => self.end(context, handler)?,
            Step::Charge(_)
            | Step::Burn(_)
            | Step::BeginReservation
            | Step::EndReservation
            | Step::ChangeReservation(_)
            | Step::BeginConstraint(_)
            | Step::EndConstraint
            | Step::EndRun => return Ok(Some(step)),
        }
        Ok(None)
    }

    fn wait(&mut self, context: &mut dyn Context, handler: HandlerId, wait: Wait) -> Result {
        let now = context.now();
        self.handlers.wait(handler, wait, now)?;
        let guest = self.guest(handler)?;
        guest.record(context, EventKind::Block, Instant::ZERO);
        if let Some(port) = wait.port {
            // In this order: what arrives between the two is found, or rings.
            let is_fed = context.ring(port, self.doorbell);
            let was_fed = core::mem::replace(&mut self.guest(handler)?.is_fed, is_fed);
            self.fed = self.fed + usize::from(is_fed) - usize::from(was_fed);
            if let Some(arrival) = context.take(port) {
                self.arrived(context, handler, arrival, now)?;
            }
        }
        Ok(())
    }

    /// Ends a handler, and drops its body.
    pub(super) fn end(&mut self, context: &mut dyn Context, handler: HandlerId) -> Result {
        let waited = self.handlers.waiting(handler.place());
        self.handlers.end(handler, context.now())?;
        if let Some(port) = waited.and_then(|(_, wait)| wait.port) {
            context.awaits_no_more(port);
        }
        let guest = self.guest(handler)?;
        guest.record(context, EventKind::Finish, Instant::ZERO);
        let was_fed = guest.is_fed;
        self.fed -= usize::from(was_fed);
        self.guests[usize::from(handler.place())] = None;
        Ok(())
    }

    fn advance(&mut self, context: &mut dyn Context) -> Result<Step> {
        let now = context.now();
        for newcomer in core::mem::take(&mut self.newcomers) {
            let whose = (newcomer.activity, true);
            let handler = self.make(now, whose, newcomer.deadline, newcomer.body)?;
            if let Some(raises) = newcomer.raises {
                self.may_be_raised(context, handler, raises)?;
            }
        }
        if self.handlers.running().is_none()
            && let Some(rest) = self.next(context)?
        {
            return Ok(rest);
        }
        if let Some(step) = self.call(context)? {
            return Ok(step);
        }
        // One handler's step at a time: the host may have something to say in between.
        let rest = self.next(context)?;
        Ok(rest.unwrap_or(Step::Charge(Service::ZERO)))
    }
}

impl Guest {
    /// Records what became of the activity's job.
    fn record(&self, context: &mut dyn Context, kind: EventKind, meant: Instant) {
        if self.is_activity {
            context.record_of(self.activity, kind, [meant.as_nanos(), 0]);
        }
    }
}

impl<P: ExecutorPolicy, const N: usize> Body for Executor<P, N> {
    fn step(&mut self, context: &mut dyn Context) -> Step {
        let step = self.advance(context);
        debug_assert!(
            self.handlers.is_conserved(),
            "an executor lost a job, or made one of nothing"
        );
        step.unwrap_or_else(|error| {
            context.fail(match error {
                ExecutorError::Full => "an executor has no room for all that are placed on it",
                _ => "the policy of an executor names who has no job",
            });
            Step::Finish
        })
    }
}

/// An executor of any policy, while its program is put together.
pub(super) trait Executes: Body {
    /// The body gets a place when the executor begins; with how it is told that it is raised, and how soon after its release it is due then at the soonest.
    fn place(
        &mut self,
        who: (ActivityId, Option<(PortId, Span)>),
        deadline: Option<Span>,
        body: Box<dyn Body>,
    );

    /// [`ExecutorPolicy::goes_by_deadlines`] of its policy.
    fn goes_by_deadlines(&self) -> bool;

    /// [`linked::admit`] by its policy.
    fn admit(&self, all: &[Linked], supply: &dyn SupplyBound) -> Result<Vec<Span>, Unschedulable>;
}

impl<P: ExecutorPolicy, const N: usize> Executes for Executor<P, N> {
    fn place(
        &mut self,
        (activity, raises): (ActivityId, Option<(PortId, Span)>),
        deadline: Option<Span>,
        body: Box<dyn Body>,
    ) {
        self.newcomers.push(Newcomer {
            activity,
            raises,
            deadline,
            body,
        });
    }

    fn goes_by_deadlines(&self) -> bool {
        self.handlers.policy().goes_by_deadlines()
    }

    fn admit(&self, all: &[Linked], supply: &dyn SupplyBound) -> Result<Vec<Span>, Unschedulable> {
        linked::admit(self.handlers.policy(), all, supply)
    }
}
