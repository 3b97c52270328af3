//! Who runs on one processor by the rules of Linux: real-time priorities first come, first served, below them the fair class.
//!
//! `SCHED_DEADLINE` stands above all of them and is decided over all processors: [`super::deadline`].

use alloc::vec::Vec;

use super::fair::{Fair, Weight};
use super::{Decision, Policy, Rank};
use crate::{Instant, Priority, Span};
use derive_more::Display;

/// `SCHED_FIFO` priority of the holder of a slot, inside it. A foreign thread at this rank or above makes the grant unenforced.
pub const OCCUPANT: u8 = 80;
/// The highest `SCHED_FIFO` priority that the holder of a slot preempts: who has the holder's own, and runs already, stays.
pub const BELOW_OCCUPANT: u8 = OCCUPANT - 1;

/// `SCHED_FIFO` priority of a thread of priority 31: the observer of the modem study, above all that is observed.
pub const HIGHEST_THREAD: u8 = 95;
/// `SCHED_FIFO` priority of a thread of [`Priority::REAL_TIME`]; each that is one higher has two more.
pub const LOWEST_REAL_TIME: u8 = 50;

/// How a thread of this priority is scheduled: 31 is [`HIGHEST_THREAD`]; 16 to 30 are FIFO 50, 52, … 78, all below a slot's
/// occupant; 1 to 15 are fair-class threads, two nice steps apart around 8 (an emulation: the fair class shares where the
/// study's host preempts); 0 is `SCHED_IDLE`.
pub const fn of_thread(priority: Priority) -> Scheduling {
    const LOWEST: u8 = Priority::REAL_TIME.level();
    match priority.level() {
        31.. => Scheduling::Fifo(HIGHEST_THREAD),
        level @ LOWEST..=30 => Scheduling::Fifo(LOWEST_REAL_TIME + 2 * (level - LOWEST)),
        0 => Scheduling::Idle,
        level => Scheduling::Fair {
            nice: 2 * (Priority::NORMAL.level() as i8 - level as i8),
        },
    }
}

/// How the kernel schedules a thread, `SCHED_DEADLINE` apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Display)]
pub enum Scheduling {
    /// `SCHED_FIFO` of this priority, 1 to 99.
    #[display("SCHED_FIFO priority {_0}")]
    Fifo(u8),
    /// `SCHED_RR` of this priority, 1 to 99.
    #[display("SCHED_RR priority {_0}")]
    RoundRobin(u8),
    /// `SCHED_OTHER` of this nice value, −20 to 19.
    #[display("SCHED_OTHER nice {nice}")]
    Fair {
        /// The nice value.
        nice: i8,
    },
    /// `SCHED_IDLE`.
    #[display("SCHED_IDLE")]
    Idle,
}

impl Scheduling {
    /// Its real-time priority; `None` in the fair class.
    pub const fn real_time(self) -> Option<u8> {
        match self {
            Self::Fifo(priority) | Self::RoundRobin(priority) => Some(priority),
            Self::Fair { .. } | Self::Idle => None,
        }
    }

    /// Whether the holder of a slot does not preempt it.
    pub const fn outranks_slots(self) -> bool {
        matches!(self.real_time(), Some(priority) if priority > BELOW_OCCUPANT)
    }

    /// Whether its number is one that the kernel knows.
    pub const fn exists(self) -> bool {
        match self {
            Self::Fifo(priority) | Self::RoundRobin(priority) => 1 <= priority && priority <= 99,
            Self::Fair { nice } => -20 <= nice && nice <= 19,
            Self::Idle => true,
        }
    }
}

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
    scheduling: Scheduling,
    ready: bool,
    /// What is left of its round-robin slice.
    left: Span,
}

/// The ready threads of one processor, which the caller numbers from 0.
///
/// ```
/// use laxity_model::policy::Policy;
/// use laxity_model::policy::classes::{RunQueue, Scheduling, Slices};
/// use laxity_model::{Instant, Span};
///
/// let slices = Slices::usual(Span::from_millis(4), 2);
/// let threads = [Scheduling::Fair { nice: 0 }, Scheduling::Fifo(50)];
/// let mut queue = RunQueue::new(slices, &threads);
/// queue.enter(0, (), Instant::ZERO);
/// assert_eq!(queue.decide(Instant::ZERO).who, Some(0));
/// queue.enter(1, (), Instant::from_millis(1));
/// let decision = queue.decide(Instant::from_millis(1));
/// assert_eq!(decision.who, Some(1), "a real-time thread preempts at once");
/// ```
#[derive(Clone, Debug)]
pub struct RunQueue {
    slices: Slices,
    threads: Vec<Thread>,
    /// With their priorities, the highest first; who runs stays at the head of his.
    real_time: Vec<(u8, u32)>,
    fair: Fair,
    running: Option<u32>,
}

impl RunQueue {
    /// Threads that are scheduled like this, none of them ready.
    #[must_use]
    pub fn new(slices: Slices, threads: &[Scheduling]) -> Self {
        let entry = |scheduling: &Scheduling| Thread {
            scheduling: *scheduling,
            ready: false,
            left: slices.round_robin,
        };
        let mut queue = Self {
            slices,
            threads: threads.iter().map(entry).collect(),
            real_time: Vec::new(),
            fair: Fair::new(threads.len(), slices.fair, slices.tick),
            running: None,
        };
        for (who, scheduling) in (0..).zip(threads) {
            queue.weigh(who, *scheduling);
        }
        queue
    }

    /// Whether the thread is ready here.
    pub fn contains(&self, who: u32) -> bool {
        self.threads[who as usize].ready
    }

    /// Has a thread scheduled in another way. If it is ready it goes behind its new equals, before them if its priority has fallen.
    pub fn schedule(&mut self, who: u32, scheduling: Scheduling, now: Instant) {
        let before = self.threads[who as usize].scheduling;
        if before == scheduling {
            return;
        }
        let ready = self.contains(who);
        self.leave(who, now);
        let entry = &mut self.threads[who as usize];
        entry.scheduling = scheduling;
        entry.left = self.slices.round_robin;
        self.weigh(who, scheduling);
        if ready {
            let fallen = scheduling.real_time() < before.real_time();
            self.insert(who, now, fallen);
        }
    }

    /// The kernel's clock ticks: slices of `SCHED_RR` end then only.
    pub fn tick(&mut self, now: Instant) {
        self.fair.settle(now);
        let Some(running) = self.running else {
            return;
        };
        let slices = self.slices;
        let entry = &mut self.threads[running as usize];
        if let Scheduling::RoundRobin(priority) = entry.scheduling {
            entry.left = entry.left.saturating_sub(slices.tick);
            if entry.left.is_zero() {
                entry.left = slices.round_robin;
                self.send_to_the_tail(priority);
            }
        }
    }

    fn insert(&mut self, who: u32, now: Instant, first: bool) {
        let entry = &mut self.threads[who as usize];
        if core::mem::replace(&mut entry.ready, true) {
            return self.fair.settle(now);
        }
        let Some(priority) = entry.scheduling.real_time() else {
            return self.fair.enter(who, (), now);
        };
        self.fair.settle(now);
        let is_before =
            |(other, _): &(u8, u32)| *other > priority || (*other == priority && !first);
        let place = self.real_time.partition_point(is_before);
        self.real_time.insert(place, (priority, who));
        debug_assert!(self.is_conserved());
    }

    fn send_to_the_tail(&mut self, priority: u8) {
        let first = self.real_time.partition_point(|(at, _)| *at > priority);
        let end = self.real_time.partition_point(|(at, _)| *at >= priority);
        if first < end {
            self.real_time[first..end].rotate_left(1);
        }
    }

    fn weigh(&mut self, who: u32, scheduling: Scheduling) {
        match scheduling {
            Scheduling::Fair { nice } => self.fair.weigh(who, Weight::of_nice(nice)),
            Scheduling::Idle => self.fair.weigh(who, Weight::IDLE),
            Scheduling::Fifo(_) | Scheduling::RoundRobin(_) => {}
        }
    }

    /// The invariant around each operation: who is ready is in the list of its priority once, or in the fair class; nobody else is.
    fn is_conserved(&self) -> bool {
        let is_placed = |(who, thread): (u32, &Thread)| {
            let listed = self.real_time.iter().filter(|(_, other)| *other == who);
            let expected = thread.scheduling.real_time().filter(|_| thread.ready);
            listed.map(|(priority, _)| *priority).eq(expected)
                && self.fair.contains(who) == (thread.ready && expected.is_none())
        };
        (0..).zip(&self.threads).all(is_placed) && self.real_time.is_sorted_by(|a, b| a.0 >= b.0)
    }
}

impl Policy for RunQueue {
    type Entry = ();

    /// Behind its equals. Nothing happens if it was ready.
    fn enter(&mut self, who: u32, (): (), now: Instant) {
        self.insert(who, now, false);
    }

    fn leave(&mut self, who: u32, now: Instant) {
        self.fair.settle(now);
        let entry = &mut self.threads[who as usize];
        if !core::mem::take(&mut entry.ready) {
            return;
        }
        if entry.scheduling.real_time().is_some() {
            self.real_time.retain(|(_, other)| *other != who);
        } else {
            self.fair.leave(who, now);
        }
        if self.running == Some(who) {
            self.running = None;
        }
        debug_assert!(self.is_conserved());
    }

    fn yield_now(&mut self, who: u32, now: Instant) {
        self.fair.settle(now);
        if !self.contains(who) {
            return;
        }
        match self.threads[who as usize].scheduling.real_time() {
            Some(priority) => self.send_to_the_tail(priority),
            None => self.fair.yield_now(who, now),
        }
    }

    fn pause(&mut self, now: Instant) {
        self.fair.pause(now);
        self.running = None;
    }

    /// [Scheduled](RunQueue::schedule) as a [thread of that priority](of_thread) is.
    fn raise(&mut self, who: u32, rank: Rank, at: Instant) {
        if let Rank::Priority(priority) = rank {
            self.schedule(who, of_thread(priority), at);
        }
    }

    /// A kernel looks at its slices when it ticks: it may ask later than `until`, and slices are so much longer.
    fn decide(&mut self, now: Instant) -> Decision {
        let Some((priority, first)) = self.real_time.first().copied() else {
            let decision = self.fair.decide(now);
            self.running = decision.who;
            return decision;
        };
        self.fair.pause(now);
        self.running = Some(first);
        let thread = &self.threads[first as usize];
        let second = self.real_time.get(1);
        let goes_round = matches!(thread.scheduling, Scheduling::RoundRobin(_))
            && second.is_some_and(|(other, _)| *other == priority);
        let until = goes_round.then(|| now.checked_add(thread.left)).flatten();
        Decision {
            who: self.running,
            until: until.unwrap_or(Instant::MAX),
        }
    }
}
