//! Who runs on one processor by the kernel's rules: real-time priorities first come, first served, below them the fair class.

use std::collections::VecDeque;

use laxity_model::{Instant, Span};

use super::fair::{Fair, Weight};
use super::policy::Policy;

/// Real-time priorities are below this.
const PRIORITIES: usize = 100;

/// The kernel's parameters of time sharing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slices {
    /// From tick to tick: slices end at ticks only.
    pub tick: Span,
    /// The slice of the fair class.
    pub fair: Span,
    /// The slice of `SCHED_RR`.
    pub round_robin: Span,
}

impl Slices {
    /// As Linux comes since 6.12, with so many processors: 0.7 ms times one plus the binary logarithm of their number (8 at most count),
    /// and 100 ms.
    #[must_use]
    pub fn usual(tick: Span, processors: u16) -> Self {
        let factor = 1 + processors.clamp(1, 8).ilog2();
        Self {
            tick,
            fair: Span::from_micros(700) * u64::from(factor),
            round_robin: Span::from_millis(100),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Thread {
    policy: Policy,
    ready: bool,
    /// What is left of its round-robin slice.
    left: Span,
}

/// The ready threads of one processor, which the caller numbers from 0. A simulation of the kernel, not a part of it.
///
/// It reads no clock: it is told what happens and when. Time must not go backwards from one call to the next.
///
/// ```
/// use laxity_model::{Instant, Span};
/// use laxity_sim::linux::{Policy, RunQueue, Slices};
///
/// let slices = Slices::usual(Span::from_millis(4), 2);
/// let mut queue = RunQueue::new(slices, &[Policy::Fair { nice: 0 }, Policy::Fifo(50)]);
/// queue.enter(0, Instant::ZERO);
/// assert_eq!(queue.choose(Instant::ZERO), Some(0));
/// queue.enter(1, Instant::from_millis(1));
/// assert_eq!(queue.choose(Instant::from_millis(1)), Some(1), "a real-time thread preempts at once");
/// ```
#[derive(Clone, Debug)]
pub struct RunQueue {
    slices: Slices,
    threads: Vec<Thread>,
    /// By priority; who runs stays at the head of his.
    real_time: Vec<VecDeque<u16>>,
    /// The priorities that have somebody.
    occupied: u128,
    fair: Fair,
    /// Whether the fair class is to choose anew.
    anew: bool,
    running: Option<u16>,
    since: Instant,
}

impl RunQueue {
    /// Threads of these policies, none of them ready.
    #[must_use]
    pub fn new(slices: Slices, policies: &[Policy]) -> Self {
        let threads = policies.iter().map(|policy| Thread {
            policy: *policy,
            ready: false,
            left: slices.round_robin,
        });
        let mut queue = Self {
            slices,
            threads: threads.collect(),
            real_time: vec![VecDeque::new(); PRIORITIES],
            occupied: 0,
            fair: Fair::new(policies.len(), slices.fair, slices.tick),
            anew: false,
            running: None,
            since: Instant::ZERO,
        };
        for (thread, policy) in (0..).zip(policies) {
            queue.weigh(thread, *policy);
        }
        queue
    }

    /// Whether the thread is ready here.
    #[must_use]
    pub fn contains(&self, thread: u16) -> bool {
        self.threads[usize::from(thread)].ready
    }

    /// A thread is ready: behind its equals. Nothing happens if it was.
    pub fn enter(&mut self, thread: u16, now: Instant) {
        self.insert(thread, now, false);
    }

    /// A thread is no longer ready here. Nothing happens if it was not.
    pub fn leave(&mut self, thread: u16, now: Instant) {
        self.settle(now);
        let entry = &mut self.threads[usize::from(thread)];
        if !std::mem::take(&mut entry.ready) {
            return;
        }
        match entry.policy.real_time() {
            Some(priority) => {
                let list = &mut self.real_time[usize::from(priority)];
                list.retain(|other| *other != thread);
                if list.is_empty() {
                    self.occupied &= !(1 << priority);
                }
            }
            None => self.fair.leave(thread),
        }
        if self.running == Some(thread) {
            self.running = None;
        }
    }

    /// Gives a thread another policy. If it is ready it goes behind its new equals, before them if its priority has fallen.
    pub fn set_policy(&mut self, thread: u16, policy: Policy, now: Instant) {
        let before = self.threads[usize::from(thread)].policy;
        if before == policy {
            return;
        }
        let ready = self.contains(thread);
        self.leave(thread, now);
        let entry = &mut self.threads[usize::from(thread)];
        entry.policy = policy;
        entry.left = self.slices.round_robin;
        self.weigh(thread, policy);
        if ready {
            let fallen = policy.real_time() < before.real_time();
            self.insert(thread, now, fallen);
        }
    }

    /// The one that runs lets its equals go first.
    pub fn give_way(&mut self, thread: u16, now: Instant) {
        self.settle(now);
        if !self.contains(thread) {
            return;
        }
        if let Some(priority) = self.threads[usize::from(thread)].policy.real_time() {
            self.send_to_the_tail(priority);
        } else {
            self.fair.give_way(thread);
            self.anew = true;
        }
    }

    /// The clock ticks: slices that are used up end.
    pub fn tick(&mut self, now: Instant) {
        self.settle(now);
        let Some(running) = self.running else {
            return;
        };
        let slices = self.slices;
        let entry = &mut self.threads[usize::from(running)];
        if let Policy::RoundRobin(priority) = entry.policy {
            entry.left = entry.left.saturating_sub(slices.tick);
            if entry.left.is_zero() {
                entry.left = slices.round_robin;
                self.send_to_the_tail(priority);
            }
        }
    }

    /// Who runs from now on.
    pub fn choose(&mut self, now: Instant) -> Option<u16> {
        self.settle(now);
        let highest = self.occupied.checked_ilog2();
        let first = highest.and_then(|at| self.real_time[at as usize].front().copied());
        self.running = if first.is_some() {
            self.fair.put_back();
            first
        } else {
            self.fair.choose(std::mem::take(&mut self.anew))
        };
        self.running
    }

    /// Somebody above all of these has the processor.
    pub fn pause(&mut self, now: Instant) {
        self.settle(now);
        self.fair.put_back();
        self.running = None;
    }

    /// Charges who has run until now.
    fn settle(&mut self, now: Instant) {
        let ran = now.saturating_since(self.since);
        self.since = now;
        if self.running.is_some() && self.running == self.fair.current() && !ran.is_zero() {
            self.anew |= self.fair.charge(ran);
        }
    }

    fn insert(&mut self, thread: u16, now: Instant, first: bool) {
        self.settle(now);
        let entry = &mut self.threads[usize::from(thread)];
        if std::mem::replace(&mut entry.ready, true) {
            return;
        }
        match entry.policy.real_time() {
            Some(priority) => {
                let list = &mut self.real_time[usize::from(priority)];
                if first {
                    list.push_front(thread);
                } else {
                    list.push_back(thread);
                }
                self.occupied |= 1 << priority;
            }
            None => self.anew |= self.fair.enter(thread),
        }
    }

    fn send_to_the_tail(&mut self, priority: u8) {
        let list = &mut self.real_time[usize::from(priority)];
        list.rotate_left(usize::from(!list.is_empty()));
    }

    fn weigh(&mut self, thread: u16, policy: Policy) {
        match policy {
            Policy::Fair { nice } => self.fair.weigh(thread, Weight::of_nice(nice)),
            Policy::Idle => self.fair.weigh(thread, Weight::IDLE),
            Policy::Fifo(_) | Policy::RoundRobin(_) => {}
        }
    }
}
