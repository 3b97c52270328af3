//! Who runs on a processor: interrupts, then deferred calls, then reservations, then the priority bands.

use laxity_model::policy::Policy;
use laxity_model::{EventKind, Instant, Priority};

use super::{Machine, Processor, Stack, Study};
use crate::core::Activity;

impl Machine {
    #[inline(always)]
    pub(super) fn decide_here(&mut self, processor: usize) {
        let place = &mut self.processors[processor];
        let urgent = if place.slots.is_some() || place.own.is_urgent {
            self.above_threads(processor)
        } else {
            None
        };
        let now = self.now;
        let place = &mut self.processors[processor];
        place.undecided = false;
        let (next, until) = if urgent.is_some() {
            place.own.bands.pause(now);
            (urgent, Instant::MAX)
        } else {
            choose_thread(place, &self.activities, &self.parts, now)
        };
        place.own.decide_at = match &place.slots {
            Some(slots) => until.min(slots.carried.poll_at),
            None => until,
        };
        if urgent.is_none() {
            let former = std::mem::replace(&mut place.own.thread, next);
            let yielded = std::mem::take(&mut place.own.yielded);
            if former != next {
                return self.switch(processor, former, next, yielded);
            }
        }
        if place.executing == next {
            return place.set_due();
        }
        place.settle(&mut self.activities, now);
        place.executing = next;
        place.go_on(&self.activities, now);
    }

    /// Another thread is loaded, which is recorded and charged, and goes on.
    #[inline(always)]
    fn switch(&mut self, processor: usize, former: Option<u32>, next: Option<u32>, yielded: bool) {
        let now = self.now;
        let place = &mut self.processors[processor];
        place.settle(&mut self.activities, now);
        place.executing = next;
        if let Some(former) = former {
            let activity = &mut self.activities[former as usize];
            activity.voluntary_switches += u64::from(yielded);
            activity.involuntary_switches += u64::from(!yielded);
            let event = |kind| activity.event(kind, now, [0; 2]);
            self.recorder.record(EventKind::Preempt, event);
        }
        let Some(next) = next else {
            return place.go_on(&self.activities, now);
        };
        let activity = &self.activities[next as usize];
        let event = |kind| activity.event(kind, now, [0; 2]);
        self.recorder.record(EventKind::Dispatch, event);
        place.pay(self.parts.profile.costs.context_switch, now);
        place.go_on_with(activity.work, now);
    }

    /// What is to execute above the threads, once the slot edges that are due are carried out.
    #[inline]
    fn above_threads(&mut self, processor: usize) -> Option<u32> {
        self.pass_slot_edges(processor);
        if !self.processors[processor].own.is_urgent {
            return None;
        }
        let urgent = self.urgent(processor);
        self.processors[processor].own.is_urgent = urgent.is_some();
        urgent
    }

    /// The interrupt handler or deferred call that is to execute, if there is one.
    #[inline]
    fn urgent(&mut self, processor: usize) -> Option<u32> {
        let costs = self.parts.profile.costs;
        let place = &mut self.processors[processor];
        if let Some(handler) = place.own.accept() {
            place.pay(costs.interrupt_entry, self.now);
            let raised_at = self.activity(handler).meant_at;
            self.record_entry(EventKind::InterruptEnter, handler, raised_at);
            return Some(handler);
        }
        let Stack {
            handlers,
            deferred,
            deferred_queue,
            ..
        } = &mut place.own;
        if let Some((_, handler)) = handlers.last() {
            return Some(*handler);
        }
        if deferred.is_none() {
            let next = deferred_queue.pop(&mut self.links)?;
            *deferred = Some(next);
            place.pay(costs.deferred_dispatch, self.now);
            let queued_at = self.activity(next).meant_at;
            self.record_entry(EventKind::DeferredEnter, next, queued_at);
        }
        self.processors[processor].own.deferred
    }
}

/// Who runs of the threads, if nothing is more urgent, and until when that holds.
#[inline(always)]
fn choose_thread(
    place: &mut Processor,
    activities: &[Activity<Study>],
    study: &Study,
    now: Instant,
) -> (Option<u32>, Instant) {
    let stack = &mut place.own;
    if let Some(slots) = &place.slots {
        let threads_above = study.profile.threads_above.map(Priority::level);
        let is_outranked = threads_above.is_some_and(|level| stack.bands.highest() >= Some(level));
        let holder = slots.carried.owner.filter(|owner| {
            let activity = &activities[*owner as usize];
            activity.is_ready() && activity.uses_its_slots() && !is_outranked
        });
        if stack.reserved != holder {
            if let Some(former) = stack.reserved {
                stack.bands.has_run(former, now);
            }
            stack.reserved = holder;
        }
        if holder.is_some() {
            stack.bands.pause(now);
            return (holder, Instant::MAX);
        }
    }
    let decision = stack.bands.decide(now);
    (decision.who, decision.until)
}
