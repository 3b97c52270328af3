//! Priority bands: the scheduler of the modem study's host (Jones, Saroiu §2.2), for the threads of one processor.
//!
//! Thirty-two levels. The highest level with a ready thread runs; within a level the processor goes round, a *quantum* each. A thread that
//! is preempted goes to the head of its level and keeps what is left of its quantum; one whose quantum is over goes to
//! the tail. Levels 1–15 *vary*: a wait that ends lifts a thread for a while, and one that starves is helped.
//! Levels 16–31 are *real time* and 0 is *idle*: nothing is adjusted there.
//!
//! [`Bands`] reads no clock. It is told what happens and when, and [`decide`](Bands::decide) answers who runs, and until when that
//! holds if nothing else happens. A quantum that ends at an instant ends before anything else that happens at that instant.

mod config;
mod levels;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;

pub use config::{BandsConfig, Starvation};

use alloc::vec::Vec;

use crate::{Instant, Priority, Span};
use levels::Levels;

/// The level to which starving threads are lifted, and the highest that varies.
const HIGHEST_VARIABLE: u8 = 15;
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

/// Who is to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// The thread; `None`: nobody is ready.
    pub thread: Option<u16>,
    /// When [`Bands::decide`] must be asked again at the latest; [`Instant::MAX`] if nothing changes by itself.
    pub until: Instant,
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
    /// What is left of its quantum; more than zero.
    left: Span,
    ready_since: Instant,
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
    running: Option<u16>,
    /// Since when the running thread's quantum is being used; `None` while something above the threads has the processor.
    using_since: Option<Instant>,
    next_scan: Instant,
}

impl Bands {
    /// Bands for as many threads as there are priorities, none of them ready.
    ///
    /// # Panics
    /// With 65,535 threads or more, or if a quantum or scan period of zero was configured: both are bugs of the caller.
    #[must_use]
    pub fn new(config: BandsConfig, priorities: &[Priority]) -> Self {
        assert!(
            priorities.len() < usize::from(u16::MAX),
            "too many threads for 16-bit numbers"
        );
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
            using_since: None,
            next_scan: Instant::ZERO
                .checked_add(scan_every)
                .unwrap_or(Instant::MAX),
        }
    }

    /// The level at which a thread competes now, boosts included.
    #[must_use]
    pub fn level(&self, thread: u16) -> u8 {
        self.threads[usize::from(thread)].level
    }

    /// The highest level at which some thread competes now; `None` if none does.
    #[must_use]
    pub fn highest(&self) -> Option<u8> {
        let running = self.running.map(|thread| self.level(thread));
        self.levels.highest().max(running)
    }

    /// Whether the thread competes here: it is ready or running.
    #[must_use]
    pub fn contains(&self, thread: u16) -> bool {
        self.threads[usize::from(thread)].place != Place::Away
    }

    /// A new thread is ready: a full quantum, the tail of its level.
    pub fn start(&mut self, thread: u16, now: Instant) {
        self.settle(now);
        self.threads[usize::from(thread)].left = self.config.quantum;
        self.enqueue_last(thread, now);
    }

    /// A thread's wait is over: boosted as configured, a full quantum, the tail of its level.
    #[inline]
    pub fn wake(&mut self, thread: u16, end: WaitEnd, now: Instant) {
        self.settle(now);
        let boost = match end {
            WaitEnd::Signal => self.config.signal_boost,
            WaitEnd::Timer => self.config.timer_boost,
        };
        let quantum = self.config.quantum;
        let entry = &mut self.threads[usize::from(thread)];
        if varies(entry.base) {
            // What is left of an earlier boost is kept if it is more.
            let lifted = entry.base.saturating_add(boost).min(HIGHEST_VARIABLE);
            entry.level = entry.level.max(lifted);
        }
        entry.left = quantum;
        self.enqueue_last(thread, now);
    }

    /// Changes a thread's own priority: a boost it has is lost, it has a full quantum, and if it competes it goes to the tail of its
    /// new level.
    pub fn set_priority(&mut self, thread: u16, priority: Priority, now: Instant) {
        self.settle(now);
        let quantum = self.config.quantum;
        let entry = &mut self.threads[usize::from(thread)];
        let place = entry.place;
        match place {
            Place::Away => {}
            Place::Running => self.running = None,
            Place::Ready => self.levels.remove(entry.level, thread),
        }
        entry.base = priority.level();
        entry.level = priority.level();
        entry.rescued = false;
        entry.left = quantum;
        if place != Place::Away {
            self.enqueue_last(thread, now);
        }
    }

    /// A thread that was run by something above the bands competes again, as if preempted: at the head of its level, with what
    /// is left of its quantum.
    pub fn resume(&mut self, thread: u16, now: Instant) {
        self.settle(now);
        self.enqueue_first(thread, now);
    }

    /// A thread that competes has been run by something above the bands until now: it does not starve. Its place and its quantum stay.
    pub fn has_run(&mut self, thread: u16, now: Instant) {
        self.threads[usize::from(thread)].ready_since = now;
    }

    /// The thread no longer competes: it waits, has ended, or only something above the bands may run it. Nothing happens if it did not compete.
    #[inline]
    pub fn leave(&mut self, thread: u16, now: Instant) {
        self.settle(now);
        let entry = &mut self.threads[usize::from(thread)];
        match entry.place {
            Place::Away => return,
            Place::Running => self.running = None,
            Place::Ready => self.levels.remove(entry.level, thread),
        }
        entry.place = Place::Away;
        if entry.rescued {
            entry.rescued = false;
            entry.level = entry.base;
        }
    }

    /// The thread lets others of its level go first: to the tail, with a full quantum.
    pub fn yield_now(&mut self, thread: u16, now: Instant) {
        self.settle(now);
        if self.running == Some(thread) {
            self.threads[usize::from(thread)].left = self.config.quantum;
            self.running = None;
            self.enqueue_last(thread, now);
        }
    }

    /// Something above the threads takes the processor: the quantum of the running thread stands still until
    /// [`decide`](Self::decide) is asked again.
    #[inline]
    pub fn pause(&mut self, now: Instant) {
        self.settle(now);
        self.using_since = None;
    }

    /// Who runs from now on.
    #[inline]
    pub fn decide(&mut self, now: Instant) -> Decision {
        self.settle(now);
        if now >= self.next_scan {
            self.rescue_the_starving(now);
        }
        if let Some(highest) = self.levels.highest() {
            let running = self.running;
            if running.is_none_or(|thread| self.threads[usize::from(thread)].level < highest) {
                if let Some(thread) = running {
                    self.enqueue_first(thread, now);
                }
                self.take_first(highest);
            }
        }
        self.using_since = Some(now);
        Decision {
            thread: self.running,
            until: self.holds_until(now),
        }
    }

    #[inline]
    fn holds_until(&self, now: Instant) -> Instant {
        let scan = if self.levels.any(CAN_STARVE) {
            self.next_scan
        } else {
            Instant::MAX
        };
        let Some(thread) = self.running else {
            return scan;
        };
        let thread = &self.threads[usize::from(thread)];
        // Alone at its own level, a thread just begins its next quantum: that needs no decision.
        if thread.level == thread.base && !self.levels.holds(thread.level) {
            return scan;
        }
        now.checked_add(thread.left)
            .unwrap_or(Instant::MAX)
            .min(scan)
    }

    /// Takes the time since the last call off the running thread's quantum.
    #[inline]
    fn settle(&mut self, now: Instant) {
        let (Some(since), Some(running)) = (self.using_since, self.running) else {
            return;
        };
        self.using_since = Some(now);
        let used = now - since;
        let thread = &mut self.threads[usize::from(running)];
        if used < thread.left {
            thread.left -= used;
            return;
        }
        let beyond = used - thread.left;
        if thread.level == thread.base && !self.levels.holds(thread.level) {
            thread.left = self.config.quantum - beyond % self.config.quantum;
            return;
        }
        thread.left = self.config.quantum;
        if thread.rescued {
            thread.rescued = false;
            thread.level = thread.base;
        } else if thread.level > thread.base {
            thread.level -= 1;
        }
        if self.levels.highest() >= Some(thread.level) {
            self.running = None;
            self.enqueue_last(running, now);
        }
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
                let entry = &mut self.threads[usize::from(thread)];
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
    fn take_first(&mut self, level: u8) {
        let first = self.levels.first(level);
        if let Some(thread) = first {
            self.levels.remove(level, thread);
            self.threads[usize::from(thread)].place = Place::Running;
        }
        self.running = first;
    }

    #[inline]
    fn enqueue_first(&mut self, thread: u16, now: Instant) {
        let level = self.make_ready(thread, now);
        self.levels.push_first(level, thread);
    }

    #[inline]
    fn enqueue_last(&mut self, thread: u16, now: Instant) {
        let level = self.make_ready(thread, now);
        self.levels.push_last(level, thread);
    }

    #[inline]
    fn make_ready(&mut self, thread: u16, now: Instant) -> u8 {
        let entry = &mut self.threads[usize::from(thread)];
        entry.place = Place::Ready;
        entry.ready_since = now;
        entry.level
    }
}

fn varies(base: u8) -> bool {
    (1..=HIGHEST_VARIABLE).contains(&base)
}
