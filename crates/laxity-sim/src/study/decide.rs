//! Who runs on a processor: interrupts, then deferred calls, then reservations, then the priority bands.

use laxity_model::policy::Policy;
use laxity_model::{EventKind, Instant, Priority};

use super::{Machine, Stack};

impl Machine {
    #[inline]
    pub(super) fn decide_here(&mut self, processor: usize) {
        self.processors[processor].undecided = false;
        if self.processors[processor].slots.is_some() {
            self.pass_slot_edges(processor);
        }
        let mut decide_at = Instant::MAX;
        let next = match self.urgent(processor) {
            Some(handler_or_deferred) => {
                self.processors[processor].own.bands.pause(self.now);
                Some(handler_or_deferred)
            }
            None => {
                let (thread, until) = self.choose_thread(processor);
                decide_at = until;
                self.load(processor, thread);
                thread
            }
        };
        self.processors[processor].own.decide_at = decide_at;
        if self.processors[processor].executing == next {
            self.processors[processor].set_due();
        } else {
            self.settle(processor);
            self.processors[processor].executing = next;
            self.go_on(processor);
        }
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

    #[inline]
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

    /// Makes the thread the loaded one; records and charges the switch if it was not.
    #[inline]
    fn load(&mut self, processor: usize, thread: Option<u32>) {
        let former = self.processors[processor].own.thread;
        if former == thread {
            if let Some(thread) = thread {
                self.activity_mut(thread).own.yielded = false;
            }
            return;
        }
        if let Some(former) = former {
            let activity = self.activity_mut(former);
            if std::mem::take(&mut activity.own.yielded) {
                activity.voluntary_switches += 1;
            } else {
                activity.involuntary_switches += 1;
            }
            self.record(EventKind::Preempt, former, [0; 2]);
        }
        if let Some(thread) = thread {
            self.record(EventKind::Dispatch, thread, [0; 2]);
            let cost = self.parts.profile.costs.context_switch;
            self.processors[processor].pay(cost, self.now);
        }
        self.processors[processor].own.thread = thread;
    }
}
