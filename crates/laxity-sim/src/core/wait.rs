//! What activities wait for, time and semaphores, and how their waits end.

use laxity_model::policy::queue::Queue;
use laxity_model::{EventKind, Instant};

use super::{Class, Core, Fault, Machinery, Parts, Waiting};

#[derive(Debug)]
pub(crate) struct Semaphore {
    count: u32,
    pub(crate) waiters: Queue,
}

impl Semaphore {
    pub(crate) const fn new(count: u32) -> Self {
        Self {
            count,
            waiters: Queue::EMPTY,
        }
    }
}

impl<P: Parts> Core<P> {
    /// The activity's timer is due: if it waits for a semaphore too, it waits no longer.
    pub(crate) fn time_is_up(&mut self, who: u32) {
        let activity = &mut self.activities[who as usize];
        activity.timed_out = false;
        if let Waiting::ForEither(semaphore) = activity.waiting {
            activity.timed_out = true;
            let waiters = &mut self.semaphores[semaphore as usize].waiters;
            waiters.remove(&mut self.links, who);
        }
    }
}

impl<P: Parts> Core<P>
where
    Self: Machinery,
{
    #[inline]
    pub(super) fn sleep(&mut self, who: u32, at: Instant) {
        let class = self.activity(who).class;
        if class == Class::Deferred {
            return self.fail(who, Fault::DeferredWaitsForTime);
        }
        if at > self.now {
            return self.wait_for_time(who, at, Waiting::ForTime);
        }
        match class {
            Class::Interrupt(_) => return self.raise_again(who, at),
            Class::Thread => self.record(EventKind::Wake, who, [at.as_nanos(), 0]),
            Class::Deferred | Class::External => {}
        }
        self.next_step_at_once(who);
    }

    pub(super) fn wait_until(&mut self, who: u32, semaphore: u32, at: Instant) {
        if self.activity(who).class == Class::Deferred {
            return self.fail(who, Fault::DeferredWaitsForTime);
        }
        self.activity_mut(who).timed_out = false;
        if !self.must_wait(who, semaphore) {
            return;
        }
        if at <= self.now {
            self.activity_mut(who).timed_out = true;
            self.next_step_at_once(who);
        } else {
            self.wait_for_time(who, at, Waiting::ForEither(semaphore));
        }
    }

    /// Whether the activity has to wait for the semaphore; if not, it has taken one from its count and goes on.
    pub(super) fn must_wait(&mut self, who: u32, semaphore: u32) -> bool {
        let Some(wanted) = self.semaphores.get_mut(semaphore as usize) else {
            self.fail(who, Fault::NoSuchSemaphore(semaphore));
            return false;
        };
        if wanted.count == 0 {
            return true;
        }
        wanted.count -= 1;
        self.next_step_at_once(who);
        false
    }

    #[inline]
    fn wait_for_time(&mut self, who: u32, at: Instant, waiting: Waiting) {
        let activity = self.activity_mut(who);
        activity.meant_at = at;
        if activity.class == Class::External {
            self.timers.set(who, at);
        } else {
            self.set_timer(who, at);
        }
        self.wait(who, waiting);
    }

    #[inline]
    pub(super) fn wait(&mut self, who: u32, waiting: Waiting) {
        if let Waiting::ForSignal(semaphore) | Waiting::ForEither(semaphore) = waiting {
            let waiters = &mut self.semaphores[semaphore as usize].waiters;
            waiters.push(&mut self.links, who);
        }
        let activity = self.activity_mut(who);
        debug_assert!(activity.is_ready(), "nobody waits for two things");
        activity.waiting = waiting;
        match activity.class {
            Class::External => return,
            Class::Thread => self.record(EventKind::Block, who, [0; 2]),
            Class::Interrupt(_) | Class::Deferred => {}
        }
        self.leave(who);
    }

    /// Signals a semaphore: serves a waiter, or adds to its count.
    pub(super) fn signal(&mut self, semaphore: u32, by: u32) {
        if semaphore as usize >= self.semaphores.len() {
            return self.fail(by, Fault::NoSuchSemaphore(semaphore));
        }
        self.record(EventKind::Signal, by, [u64::from(semaphore), 0]);
        let waiter = self.first_waiter(semaphore);
        let signalled = &mut self.semaphores[semaphore as usize];
        debug_assert!(
            signalled.count == 0 || waiter.is_none(),
            "nobody waits for what is there"
        );
        let Some(waiter) = waiter else {
            signalled.count = signalled.count.saturating_add(1);
            return;
        };
        signalled.waiters.remove(&mut self.links, waiter);
        let now = self.now;
        let activity = &mut self.activities[waiter as usize];
        activity.timed_out = false;
        activity.meant_at = now;
        if let Waiting::ForEither(_) = activity.waiting {
            self.timers.clear(waiter);
            self.clear_timer(waiter);
        }
        if self.activity(waiter).class == Class::External {
            self.activity_mut(waiter).waiting = Waiting::No;
            self.timers.set(waiter, now);
        } else {
            self.signalled(waiter, by);
        }
    }
}
