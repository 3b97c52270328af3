//! Priority bands: the scheduler of the modem study's host (Jones, Saroiu §2.2), for the threads of one processor.
//!
//! Thirty-two levels. The highest level with a ready thread runs; within a level the processor goes round, a *quantum* each. A thread that
//! is preempted goes to the head of its level and keeps what is left of its quantum; one whose quantum is over goes to
//! the tail. Levels 1–15 *vary*: a wait that ends lifts a thread for a while, and one that starves is helped.
//! Levels 16–31 are *real time* and 0 is *idle*: nothing is adjusted there.
//!
//! [`Bands`] reads no clock. It is told what happens and when, and [`decide`](Policy::decide) answers who runs, and until when that
//! holds if nothing else happens. A quantum that ends at an instant ends before anything else that happens at that instant.

mod config;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;

pub use config::{BandsConfig, Starvation};

use alloc::vec::Vec;

use super::queue::Levels;
use super::{Decision, Policy, Rank};
use crate::{Instant, Priority, Span};

/// The level to which starving threads are lifted, and the highest that varies (15).
pub const HIGHEST_VARIABLE: u8 = Priority::REAL_TIME.level() - 1;
/// The levels that starve: variable and below the highest of them.
const CAN_STARVE: u32 = 0x7ffe;

/// Why a thread's wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitEnd {
    /// Somebody signalled what it waited for.
    Signal,
    /// Its time had come.
    Timer,
}

/// Why a thread is ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// It is new: a full quantum, the tail of its level.
    Start,
    /// Its wait is over: boosted as configured, a full quantum, the tail of its level.
    Wake(WaitEnd),
    /// Something above the bands ran it until now, and it competes again as if preempted: at the head of its level, with what is left
    /// of its quantum.
    Resume,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// Waiting, ended, or run by somebody else (a reservation's slot).
    Away,
    Ready,
    Running,
}

#[derive(Clone, Copy, Debug)]
struct Thread {
    base: u8,
    /// Where it competes now: the base, or above it while boosted.
    level: u8,
    place: Place,
    /// Lifted because it starved; drops back at once, not level by level.
    rescued: bool,
    /// What is left of its quantum, more than zero; out of date while the quantum is being used.
    left: Span,
    ready_since: Instant,
}

impl Thread {
    /// Tells the level in whose queue it is to go.
    #[inline]
    const fn make_ready(&mut self, now: Instant) -> u8 {
        self.place = Place::Ready;
        self.ready_since = now;
        self.level
    }

    /// What is left is saved of a quantum that was being used, and stands still.
    #[inline]
    fn save(&mut self, quantum_ends: &mut Instant, now: Instant) {
        if *quantum_ends != Instant::MAX {
            self.left = *quantum_ends - now;
            *quantum_ends = Instant::MAX;
        }
    }
}

/// The ready threads of one processor, and the one that runs. Threads are numbered by the caller from 0.
///
/// Every operation is O(1), but for one scan of the ready threads in every [`Starvation::scan_every`]. Nothing is allocated after
/// [`new`](Self::new). Time must not go backwards from one call to the next.
#[derive(Clone, Debug)]
pub struct Bands {
    config: BandsConfig,
    threads: Vec<Thread>,
    levels: Levels,
    running: Option<u32>,
    /// When the running thread's quantum will be used up; [`Instant::MAX`] if none is being used, because nobody runs or because something
    /// above the threads has the processor.
    quantum_ends: Instant,
    next_scan: Instant,
}

impl Bands {
    /// Bands for as many threads as there are priorities, none of them ready.
    ///
    /// # Panics
    /// If a quantum or scan period of zero was configured: both are bugs of the caller.
    #[must_use]
    pub fn new(config: BandsConfig, priorities: &[Priority]) -> Self {
        assert!(
            !config.quantum.is_zero(),
            "a quantum must be more than zero"
        );
        let scan_every = config.starvation.map_or(Span::MAX, |s| s.scan_every);
        assert!(
            !scan_every.is_zero(),
            "a scan period must be more than zero"
        );
        let threads = priorities.iter().map(|priority| Thread {
            base: priority.level(),
            level: priority.level(),
            place: Place::Away,
            rescued: false,
            left: config.quantum,
            ready_since: Instant::ZERO,
        });
        Self {
            config,
            threads: threads.collect(),
            levels: Levels::new(priorities.len()),
            running: None,
            quantum_ends: Instant::MAX,
            next_scan: Instant::ZERO
                .checked_add(scan_every)
                .unwrap_or(Instant::MAX),
        }
    }

    /// The level at which a thread competes now, boosts included.
    pub fn level(&self, thread: u32) -> u8 {
        self.threads[thread as usize].level
    }

    /// The highest level at which some thread competes now; `None` if none does.
    pub fn highest(&self) -> Option<u8> {
        let running = self.running.map(|thread| self.level(thread));
        self.levels.highest().max(running)
    }

    /// Changes a thread's own priority: a boost it has is lost, it has a full quantum, and if it competes it goes to the tail of its
    /// new level.
    pub fn set_priority(&mut self, thread: u32, priority: Priority, now: Instant) {
        let competes = self.threads[thread as usize].place != Place::Away;
        self.leave(thread, now);
        let quantum = self.config.quantum;
        let entry = &mut self.threads[thread as usize];
        entry.base = priority.level();
        entry.level = priority.level();
        entry.left = quantum;
        if competes {
            self.enqueue_last(thread, now);
        }
    }

    /// A thread that competes has been run by something above the bands until now: it does not starve. Its place and its quantum stay.
    pub fn has_run(&mut self, thread: u32, now: Instant) {
        self.threads[thread as usize].ready_since = now;
    }

    /// The invariant around each operation: who is ready is in the queue of its level once, who runs is in none, and nobody else is queued.
    fn is_conserved(&self) -> bool {
        let members = 0..self.threads.len() as u32;
        let levels = 0..Priority::COUNT as u8;
        let queued: usize = levels.map(|level| self.levels.iter(level).count()).sum();
        let is_placed = |who: u32| {
            let thread = &self.threads[who as usize];
            (thread.place == Place::Running) == (self.running == Some(who))
                && (thread.place != Place::Ready
                    || self.levels.iter(thread.level).any(|other| other == who))
        };
        let places = self.threads.iter().map(|thread| thread.place);
        queued == places.filter(|place| *place == Place::Ready).count()
            && members.into_iter().all(is_placed)
    }

    /// Ends the running thread's quantum if it is used up.
    #[inline(always)]
    fn settle(&mut self, now: Instant) {
        if self.quantum_ends <= now {
            self.end_quantum(now);
        }
    }

    #[inline(never)]
    fn end_quantum(&mut self, now: Instant) {
        let Some(running) = self.running else {
            return;
        };
        let quantum = self.config.quantum;
        let thread = &mut self.threads[running as usize];
        if thread.level == thread.base && !self.levels.holds(thread.level) {
            let beyond = (now - self.quantum_ends) % quantum;
            self.quantum_ends = end_of(quantum - beyond, now);
            return;
        }
        self.quantum_ends = end_of(quantum, now);
        if thread.rescued {
            thread.rescued = false;
            thread.level = thread.base;
        } else if thread.level > thread.base {
            thread.level -= 1;
        }
        if self.levels.highest() >= Some(thread.level) {
            self.stop(running, now);
            self.enqueue_last(running, now);
        }
    }

    /// The running thread does so no longer, and keeps what is left of its quantum.
    #[inline]
    fn stop(&mut self, running: u32, now: Instant) {
        self.threads[running as usize].save(&mut self.quantum_ends, now);
        self.running = None;
    }

    fn rescue_the_starving(&mut self, now: Instant) {
        let Some(starvation) = self.config.starvation else {
            self.next_scan = Instant::MAX;
            return;
        };
        let into_period = now.since_epoch() % starvation.scan_every;
        self.next_scan = (now - into_period)
            .checked_add(starvation.scan_every)
            .unwrap_or(Instant::MAX);
        let patience = self.config.quantum * u64::from(starvation.quanta.max(1));
        for level in (1..HIGHEST_VARIABLE).rev() {
            let mut next = self.levels.first(level);
            while let Some(thread) = next {
                next = self.levels.after(thread);
                let entry = &mut self.threads[thread as usize];
                if now - entry.ready_since < starvation.after {
                    continue;
                }
                self.levels.remove(level, thread);
                entry.level = HIGHEST_VARIABLE;
                entry.left = patience;
                entry.rescued = true;
                self.enqueue_last(thread, now);
            }
        }
    }

    #[inline]
    fn enqueue_first(&mut self, thread: u32, now: Instant) {
        let level = self.threads[thread as usize].make_ready(now);
        self.levels.push_first(level, thread);
    }

    #[inline]
    fn enqueue_last(&mut self, thread: u32, now: Instant) {
        let level = self.threads[thread as usize].make_ready(now);
        self.levels.push(level, thread);
    }
}

impl Policy for Bands {
    type Entry = Arrival;

    #[inline(always)]
    fn enter(&mut self, who: u32, arrival: Arrival, now: Instant) {
        self.settle(now);
        let config = &self.config;
        let entry = &mut self.threads[who as usize];
        debug_assert_eq!(entry.place, Place::Away, "nobody is in two places");
        let boost = match arrival {
            Arrival::Resume => return self.levels.push_first(entry.make_ready(now), who),
            Arrival::Start => 0,
            Arrival::Wake(WaitEnd::Signal) => config.signal_boost,
            Arrival::Wake(WaitEnd::Timer) => config.timer_boost,
        };
        if boost > 0 && varies(entry.base) {
            // What is left of an earlier boost is kept if it is more.
            let lifted = entry.base.saturating_add(boost).min(HIGHEST_VARIABLE);
            entry.level = entry.level.max(lifted);
        }
        entry.left = config.quantum;
        self.levels.push(entry.make_ready(now), who);
    }

    #[inline(always)]
    fn leave(&mut self, who: u32, now: Instant) {
        self.settle(now);
        let entry = &mut self.threads[who as usize];
        match entry.place {
            Place::Away => return,
            Place::Running => {
                entry.save(&mut self.quantum_ends, now);
                self.running = None;
            }
            Place::Ready => self.levels.remove(entry.level, who),
        }
        entry.place = Place::Away;
        if entry.rescued {
            entry.rescued = false;
            entry.level = entry.base;
        }
        debug_assert!(self.is_conserved());
    }

    /// To the tail of its level, with a full quantum.
    fn yield_now(&mut self, who: u32, now: Instant) {
        self.settle(now);
        if self.running == Some(who) {
            self.stop(who, now);
            self.threads[who as usize].left = self.config.quantum;
            self.enqueue_last(who, now);
        }
    }

    /// As its own priority [changes](Bands::set_priority).
    fn raise(&mut self, who: u32, rank: Rank, at: Instant) {
        if let Rank::Priority(priority) = rank {
            self.set_priority(who, priority, at);
        }
    }

    /// The quantum of the running thread stands still meanwhile.
    #[inline]
    fn pause(&mut self, now: Instant) {
        self.settle(now);
        if let Some(running) = self.running {
            self.threads[running as usize].save(&mut self.quantum_ends, now);
        }
    }

    #[inline(always)]
    fn decide(&mut self, now: Instant) -> Decision {
        self.settle(now);
        if now >= self.next_scan {
            self.rescue_the_starving(now);
        }
        let outranked = self.running.map(|who| self.level(who));
        if let Some(highest) = self.levels.highest()
            && outranked < Some(highest)
        {
            if let Some(who) = self.running {
                self.stop(who, now);
                self.enqueue_first(who, now);
            }
            self.running = self.levels.pop(highest);
        }
        let mut until = Instant::MAX;
        if let Some(who) = self.running {
            let thread = &mut self.threads[who as usize];
            if self.quantum_ends == Instant::MAX {
                thread.place = Place::Running;
                self.quantum_ends = end_of(thread.left, now);
            }
            // Alone at its own level, a thread just begins its next quantum: that needs no decision.
            if thread.level != thread.base || self.levels.holds(thread.level) {
                until = self.quantum_ends;
            }
        }
        if self.levels.any(CAN_STARVE) {
            until = until.min(self.next_scan);
        }
        debug_assert!(self.is_conserved());
        Decision {
            who: self.running,
            until,
        }
    }
}

/// When what is left of a quantum is used up that is being used from now on.
#[inline]
fn end_of(left: Span, now: Instant) -> Instant {
    now.checked_add(left).unwrap_or(Instant::MAX)
}

fn varies(base: u8) -> bool {
    (1..=HIGHEST_VARIABLE).contains(&base)
}
