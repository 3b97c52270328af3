//! What clients do to the rest of this machine when their packets arrive: arrivals at ports, and threads that become more or less urgent.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use laxity_linux::EventLog;
use laxity_linux::os::sched::{Attributes, Policy, Tid};
use laxity_model::enforce::ranks;
use laxity_model::{ActivityId, EventKind, Instant, PortId, Priority};
use laxity_net::client::{Effects, Rank};

use super::options::Put;

/// Which thread an activity is; 0: none.
#[derive(Debug)]
pub(super) struct Threads {
    of: Box<[AtomicI32]>,
    /// How often the kernel refused to change one.
    refused: AtomicU64,
}

impl Threads {
    pub(super) fn new(activities: u32) -> Arc<Self> {
        Arc::new(Self {
            of: (0..activities).map(|_| AtomicI32::new(0)).collect(),
            refused: AtomicU64::new(0),
        })
    }

    /// `false` if there may be no such activity.
    pub(super) fn set(&self, activity: ActivityId, thread: Option<Tid>) -> bool {
        let of = self.of.get(activity.index());
        let number = thread.map_or(0, |thread| thread.0);
        of.inspect(|of| of.store(number, Ordering::Relaxed))
            .is_some()
    }

    fn get(&self, activity: ActivityId) -> Option<Tid> {
        let number = self.of.get(activity.index())?.load(Ordering::Relaxed);
        (number != 0).then_some(Tid(number))
    }

    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// One system call of about a microsecond.
    fn raise(&self, activity: ActivityId, priority: Priority) {
        let Some(thread) = self.get(activity) else {
            return;
        };
        let policy = Policy::from(ranks::of_thread(priority));
        let attributes = Attributes::new(policy, policy.is_real_time());
        if attributes.apply_unchecked(thread).is_err() {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The effects of a live driver's clients.
pub(super) struct Live {
    ports: Vec<(PortId, Put)>,
    threads: Arc<Threads>,
    /// What is to be done later, for each activity the last that was said.
    later: Vec<(Instant, ActivityId, Priority)>,
    now: Instant,
    events: Option<EventLog>,
}

impl Live {
    pub(super) fn new(
        ports: Vec<(PortId, Put)>,
        threads: Arc<Threads>,
        events: Option<EventLog>,
    ) -> Self {
        Self {
            ports,
            later: Vec::with_capacity(threads.of.len()),
            threads,
            now: Instant::ZERO,
            events,
        }
    }

    /// Does what was to be done until now, and tells when the next is.
    pub(super) fn until(&mut self, now: Instant) -> Option<Instant> {
        self.now = now;
        let Self { later, threads, .. } = self;
        later.retain(|(at, activity, priority)| {
            let is_due = *at <= now;
            if is_due {
                threads.raise(*activity, *priority);
            }
            !is_due
        });
        later.iter().map(|(at, ..)| *at).min()
    }
}

impl Effects for Live {
    fn put(&mut self, port: PortId, payload: [u64; 2]) -> bool {
        let mut ports = self.ports.iter_mut();
        let found = ports.find(|(other, _)| *other == port);
        found.is_some_and(|(_, put)| put(payload))
    }

    fn raise(&mut self, activity: ActivityId, rank: Rank, at: Instant) {
        // A deadline is an executor's affair, which a thread of its own does not have.
        let Rank::Priority(priority) = rank else {
            return;
        };
        self.later.retain(|(_, other, _)| *other != activity);
        if at <= self.now {
            self.threads.raise(activity, priority);
        } else if activity.index() < self.threads.of.len() {
            // No more than there are activities: there is room.
            self.later.push((at, activity, priority));
        }
    }

    fn record(&mut self, kind: EventKind, args: [u64; 2]) {
        if let Some(events) = &mut self.events {
            // What finds no room is counted there.
            events.record(kind, args);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use laxity_linux::os::sched;
    use laxity_model::Span;

    use super::*;

    /// Of a thread that waits: nice values need no right to be raised.
    fn with_a_thread(look: impl FnOnce(Tid)) {
        std::thread::scope(|scope| {
            let (tell, told) = channel();
            let (end, ended) = channel::<()>();
            scope.spawn(move || {
                tell.send(Tid::current()).unwrap();
                ended.recv().ok();
            });
            look(told.recv().unwrap());
            drop(end);
        });
    }

    #[test]
    fn a_thread_is_raised_at_once_or_when_it_is_time() {
        let activity = ActivityId(3);
        let [low, lower] = [6, 5].map(|level| Priority::new(level).unwrap());
        with_a_thread(|thread| {
            let threads = Threads::new(4);
            assert!(threads.set(activity, Some(thread)) && !threads.set(ActivityId(4), None));
            let mut live = Live::new(Vec::new(), Arc::clone(&threads), None);
            let (now, later) = (Instant::from_millis(7), Instant::from_millis(9));
            assert_eq!(live.until(now), None);
            live.raise(activity, Rank::Priority(low), now);
            let nice = |of: i32| Ok(Policy::Other { nice: of });
            assert_eq!(sched::policy(thread), nice(4));
            live.raise(activity, Rank::Priority(lower), later);
            assert_eq!(sched::policy(thread), nice(4));
            assert_eq!(live.until(later - Span::from_nanos(1)), Some(later));
            assert_eq!(sched::policy(thread), nice(4));
            assert_eq!(live.until(later), None);
            assert_eq!(sched::policy(thread), nice(6));
            // Nobody's thread is touched.
            threads.set(activity, None);
            live.raise(activity, Rank::Priority(Priority::NORMAL), now);
            assert_eq!(sched::policy(thread), nice(6));
            assert_eq!(threads.refused(), 0);
            threads.set(activity, Some(Tid(i32::MAX)));
            live.raise(activity, Rank::Priority(Priority::NORMAL), now);
            assert_eq!(threads.refused(), 1);
        });
    }

    #[test]
    fn an_arrival_goes_to_the_port_that_there_is() {
        let (tell, told) = channel();
        let put: Put = Box::new(move |payload| tell.send(payload).is_ok());
        let mut live = Live::new(vec![(PortId(1), put)], Threads::new(0), None);
        assert!(live.put(PortId(1), [4, 5]) && !live.put(PortId(2), [0; 2]));
        assert_eq!(told.try_iter().collect::<Vec<_>>(), [[4, 5]]);
    }
}
