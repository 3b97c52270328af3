//! Who runs on a processor: interrupts, then deferred calls, then reservations, then the priority bands.

use laxity_model::policy::Policy;
use laxity_model::{EventKind, Instant, Priority};

use super::{Machine, Stack};

impl Machine {
    #[inline(always)]
    pub(super) fn decide_here(&mut self, processor: usize) {
        if self.processors[processor].slots.is_some() {
            self.pass_slot_edges(processor);
        }
        let now = self.now;
        let urgent = if self.processors[processor].own.is_urgent() {
            self.urgent(processor)
        } else {
            None
        };
        let (next, decide_at) = if urgent.is_some() {
            self.processors[processor].own.bands.pause(now);
            (urgent, Instant::MAX)
        } else {
            let (thread, until) = self.choose_thread(processor);
            if self.processors[processor].own.thread != thread {
                self.load(processor, thread);
            } else if let Some(thread) = thread {
                self.activities[thread as usize].own.yielded = false;
            }
            (thread, until)
        };
        let place = &mut self.processors[processor];
        place.undecided = false;
        place.own.decide_at = decide_at;
        if place.executing == next {
            return place.set_due();
        }
        place.settle(&mut self.activities, now);
        place.executing = next;
        place.go_on(&self.activities, now);
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

    #[inline(always)]
    fn choose_thread(&mut self, processor: usize) -> (Option<u32>, Instant) {
        let place = &mut self.processors[processor];
        let Some(slots) = &place.slots else {
            let decision = place.own.bands.decide(self.now);
            return (decision.who, decision.until);
        };
        let stack = &mut place.own;
        let threads_above = self.parts.profile.threads_above.map(Priority::level);
        let is_outranked = threads_above.is_some_and(|level| stack.bands.highest() >= Some(level));
        let holder = slots.carried.owner.filter(|owner| {
            let activity = &self.activities[*owner as usize];
            activity.is_ready() && activity.uses_its_slots() && !is_outranked
        });
        if stack.reserved != holder {
            if let Some(former) = stack.reserved {
                stack.bands.has_run(former, self.now);
            }
            stack.reserved = holder;
        }
        if holder.is_some() {
            stack.bands.pause(self.now);
            (holder, Instant::MAX)
        } else {
            let decision = stack.bands.decide(self.now);
            (decision.who, decision.until)
        }
    }

    /// Makes another thread the loaded one; records and charges the switch.
    #[inline(always)]
    fn load(&mut self, processor: usize, thread: Option<u32>) {
        let now = self.now;
        let place = &mut self.processors[processor];
        if let Some(former) = std::mem::replace(&mut place.own.thread, thread) {
            let activity = &mut self.activities[former as usize];
            let yielded = std::mem::take(&mut activity.own.yielded);
            activity.voluntary_switches += u64::from(yielded);
            activity.involuntary_switches += u64::from(!yielded);
            let event = activity.event(EventKind::Preempt, now, [0; 2]);
            self.recorder.record(event);
        }
        if let Some(thread) = thread {
            let activity = &mut self.activities[thread as usize];
            let event = activity.event(EventKind::Dispatch, now, [0; 2]);
            self.recorder.record(event);
            place.pay(self.parts.profile.costs.context_switch, now);
        }
    }
}
