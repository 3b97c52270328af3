//! What a body sees that is on an executor.

use alloc::boxed::Box;

use super::executor::{Executor, Guest};
use super::{Body, Context};
use crate::base::port::Arrival;
use crate::executor::{ExecutorPolicy, HandlerId, Result};
use crate::policy::Rank;
use crate::{ActivityId, EventKind, Instant, PortId, Refused, SemaphoreId, Service, Span};

/// The [`Context`] of a handler: its host's, but for what the executor knows better.
pub(super) struct Hosted<'a, P, const N: usize> {
    pub(super) outer: &'a mut dyn Context,
    pub(super) executor: &'a mut Executor<P, N>,
    pub(super) handler: HandlerId,
}

impl<P, const N: usize> Hosted<'_, P, N> {
    fn guest(&self) -> Option<&Guest> {
        let guest = self.executor.guests.get(usize::from(self.handler.place()));
        let guest = guest.and_then(Option::as_ref);
        guest.filter(|guest| guest.handler == self.handler)
    }
}

impl<P: ExecutorPolicy, const N: usize> Context for Hosted<'_, P, N> {
    fn now(&self) -> Instant {
        self.outer.now()
    }

    fn put(&mut self, port: PortId, payload: [u64; 2]) -> bool {
        self.outer.put(port, payload)
    }

    fn take(&mut self, port: PortId) -> Option<Arrival> {
        self.outer.take(port)
    }

    fn arrival(&self) -> Option<Arrival> {
        self.guest()?.arrival
    }

    fn ring(&mut self, port: PortId, doorbell: SemaphoreId) -> bool {
        self.outer.ring(port, doorbell)
    }

    fn raise(&mut self, activity: ActivityId, rank: Rank, at: Instant) {
        let now = self.outer.now();
        let is_here = match rank {
            Rank::Deadline(deadline) => self.executor.raise(activity, deadline, (at, now)),
            Rank::Priority(_) => false,
        };
        if !is_here {
            self.outer.raise(activity, rank, at);
        }
    }

    fn should_yield(&mut self) -> bool {
        if self.outer.now() < self.executor.until && !self.executor.is_stale(self.outer) {
            return false;
        }
        // Damage shows when the job is over: until then it is asked to end soon.
        self.executor.must_yield(self.outer).unwrap_or(true)
    }

    fn make_handler(&mut self, deadline: Option<Span>, body: Box<dyn Body>) -> Result<HandlerId> {
        let whose = self.executor.guest(self.handler)?.activity;
        let now = self.outer.now();
        self.executor.make(now, (whose, false), deadline, body)
    }

    fn end_handler(&mut self, handler: HandlerId) -> Result {
        self.executor.end(self.outer, handler)
    }

    fn go_behind(&mut self, behind: bool) {
        // It runs.
        let _ = self.executor.handlers.go_behind(self.handler, behind);
    }

    fn inherit(&mut self, logical: Instant, deadline: Instant) {
        let (due, now) = ((logical, deadline), self.outer.now());
        // It runs.
        let _ = self.executor.handlers.inherit(self.handler, due, now);
        self.executor.until = Instant::ZERO;
    }

    fn handler(&self) -> Option<HandlerId> {
        Some(self.handler)
    }

    fn record_of(&mut self, hosted: ActivityId, kind: EventKind, args: [u64; 2]) {
        self.outer.record_of(hosted, kind, args);
    }

    fn fail(&mut self, what: &'static str) {
        self.outer.fail(what);
    }

    fn record(&mut self, kind: EventKind, args: [u64; 2]) {
        match self.executor.guest(self.handler) {
            Ok(guest) => self.outer.record_of(guest.activity, kind, args),
            Err(_) => self.outer.record(kind, args),
        }
    }

    fn timed_out(&self) -> bool {
        self.guest().is_some_and(|guest| guest.timed_out)
    }

    fn answer(&self) -> Result<Instant, Refused> {
        self.outer.answer()
    }

    fn service(&self) -> Service {
        self.outer.service()
    }

    fn stood(&self) -> Span {
        self.outer.stood()
    }
}
