//! Who runs on a processor: interrupts, then deferred calls, then reservations, then the priority bands.

use laxity_model::policy::Policy;
use laxity_model::policy::bands::Arrival;
use laxity_model::{EventKind, Instant, Outside, Priority, ReservationRequest};

use crate::fault::Fault;
use crate::machine::Machine;

impl Machine {
    /// Decides who executes on the processor from now on.
    pub(crate) fn decide(&mut self, processor: usize) {
        self.processors[processor].undecided = false;
        if self.processors[processor].slots.is_some() {
            self.pass_slot_edges(processor);
        }
        let mut decide_at = Instant::MAX;
        let next = match self.urgent(processor) {
            Some(handler_or_deferred) => {
                self.processors[processor].bands.pause(self.now);
                Some(handler_or_deferred)
            }
            None => {
                let (thread, until) = self.choose_thread(processor);
                decide_at = until;
                self.load(processor, thread);
                thread
            }
        };
        self.processors[processor].decide_at = decide_at;
        if self.processors[processor].executing == next {
            self.processors[processor].set_due();
        } else {
            self.settle(processor);
            self.processors[processor].executing = next;
            self.go_on(processor);
        }
    }

    /// The interrupt handler or deferred call that is to execute, if there is one.
    fn urgent(&mut self, processor: usize) -> Option<u16> {
        let costs = self.profile.costs;
        let place = &mut self.processors[processor];
        if let Some(handler) = place.accept(&mut self.links) {
            place.pay(costs.interrupt_entry, self.now);
            let raised_at = self.enter(handler).as_nanos();
            self.record(EventKind::InterruptEnter, handler, [raised_at, 0]);
            return Some(handler);
        }
        if let Some((_, handler)) = place.handlers.last() {
            return Some(*handler);
        }
        if place.deferred.is_none() {
            let next = place.deferred_queue.pop(&mut self.links)?;
            place.deferred = Some(next);
            place.pay(costs.deferred_dispatch, self.now);
            let queued_at = self.enter(next).as_nanos();
            self.record(EventKind::DeferredEnter, next, [queued_at, 0]);
        }
        self.processors[processor].deferred
    }

    /// A handler or deferred call is entered; returns when it was raised or queued.
    fn enter(&mut self, activity: u16) -> Instant {
        let state = self.state_mut(activity);
        state.received_before = state.received;
        state.meant_at
    }

    fn choose_thread(&mut self, processor: usize) -> (Option<u16>, Instant) {
        let place = &mut self.processors[processor];
        let Some(slots) = &place.slots else {
            let decision = place.bands.decide(self.now);
            return (decision.who.map(|who| who as u16), decision.until);
        };
        let threads_above = self.profile.threads_above.map(Priority::level);
        let is_outranked = threads_above.is_some_and(|level| place.bands.highest() >= Some(level));
        let holder = slots.owner.filter(|owner| {
            let state = &self.activities[usize::from(*owner)];
            state.is_ready() && state.uses_its_slots() && !is_outranked
        });
        if place.reserved != holder {
            if let Some(former) = place.reserved {
                place.bands.has_run(former.into(), self.now);
            }
            place.reserved = holder;
        }
        if holder.is_some() {
            place.bands.pause(self.now);
            (holder, Instant::MAX)
        } else {
            let decision = place.bands.decide(self.now);
            (decision.who.map(|who| who as u16), decision.until)
        }
    }

    /// Makes the thread the loaded one; records and charges the switch if it was not.
    fn load(&mut self, processor: usize, thread: Option<u16>) {
        let former = self.processors[processor].thread;
        if former == thread {
            if let Some(thread) = thread {
                self.state_mut(thread).yielded = false;
            }
            return;
        }
        if let Some(former) = former {
            let state = self.state_mut(former);
            if std::mem::take(&mut state.yielded) {
                state.voluntary_switches += 1;
            } else {
                state.involuntary_switches += 1;
            }
            self.record(EventKind::Preempt, former, [0; 2]);
        }
        if let Some(thread) = thread {
            self.record(EventKind::Dispatch, thread, [0; 2]);
            let cost = self.profile.costs.context_switch;
            self.processors[processor].pay(cost, self.now);
        }
        self.processors[processor].thread = thread;
    }

    fn pass_slot_edges(&mut self, processor: usize) {
        loop {
            let Some(slots) = &mut self.processors[processor].slots else {
                return;
            };
            let Some(edge) = slots.pass_edge(self.now) else {
                return;
            };
            self.record_slot_end(edge.from, edge.at);
            self.record_slot_begin(edge.to, edge.at);
        }
    }

    fn record_slot_begin(&mut self, owner: Option<u16>, by_table: Instant) {
        let Some(owner) = owner else { return };
        let state = self.state_mut(owner);
        if state.uses_its_slots() && !std::mem::replace(&mut state.slot_recorded, true) {
            self.record(EventKind::SlotBegin, owner, [by_table.as_nanos(), 0]);
        }
    }

    fn record_slot_end(&mut self, owner: Option<u16>, by_table: Instant) {
        let Some(owner) = owner else { return };
        if std::mem::take(&mut self.state_mut(owner).slot_recorded) {
            self.record(EventKind::SlotEnd, owner, [by_table.as_nanos(), 0]);
        }
    }

    pub(crate) fn begin_reservation_at_start(&mut self, activity: u16) {
        let held = self.state(activity).held;
        if held.is_some_and(|held| held.request.begins_at_start) {
            self.enforce(activity);
        }
    }

    /// The activity's reservation is in force from now on.
    fn enforce(&mut self, activity: u16) {
        let Some(held) = &mut self.state_mut(activity).held else {
            return;
        };
        if std::mem::replace(&mut held.in_force, true) {
            return;
        }
        let ReservationRequest {
            reservation,
            outside,
            ..
        } = held.request;
        let args = [
            reservation.service().as_nanos(),
            reservation.period().as_nanos(),
        ];
        self.record(EventKind::ReservationBegin, activity, args);
        let now = self.now;
        let state = &self.activities[usize::from(activity)];
        let processor = &mut self.processors[usize::from(state.processor)];
        processor.undecided = true;
        match outside {
            Outside::Confined => processor.bands.leave(activity.into(), now),
            Outside::Timesharing(priority) => {
                processor.bands.set_priority(activity.into(), priority, now);
            }
        }
        let owner = processor.slots.as_ref().and_then(|slots| slots.owner);
        if owner == Some(activity) {
            self.record_slot_begin(owner, now);
        }
    }

    pub(crate) fn begin_reservation(&mut self, activity: u16) {
        if self.state(activity).held.is_none() {
            return self.fail(activity, Fault::NoReservation);
        }
        self.enforce(activity);
        self.next_step_at_once(activity);
    }

    pub(crate) fn end_reservation(&mut self, activity: u16) {
        let now = self.now;
        let Some(held) = &mut self.state_mut(activity).held else {
            return self.fail(activity, Fault::NoReservation);
        };
        if std::mem::take(&mut held.in_force) {
            let outside = held.request.outside;
            self.release_constraint(activity);
            self.record_slot_end(Some(activity), now);
            self.record(EventKind::ReservationEnd, activity, [0; 2]);
            let state = &self.activities[usize::from(activity)];
            let processor = &mut self.processors[usize::from(state.processor)];
            processor.undecided = true;
            match outside {
                Outside::Confined => processor.bands.enter(activity.into(), Arrival::Resume, now),
                Outside::Timesharing(_) => {
                    processor
                        .bands
                        .set_priority(activity.into(), state.priority, now);
                }
            }
        }
        self.next_step_at_once(activity);
    }
}
