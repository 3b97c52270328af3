//! The slow, obvious form of the bands: time passes one nanosecond at a time, every queue is a plain list, everything is searched.

use alloc::vec::Vec;

use super::{BandsConfig, WaitEnd};
use crate::{Instant, Priority, Span};

#[derive(Clone, Copy, Debug)]
struct Thread {
    base: u8,
    level: u8,
    rescued: bool,
    left: u64,
    ready_since: u64,
}

pub(super) struct Oracle {
    config: BandsConfig,
    threads: Vec<Thread>,
    /// Ready threads; within a level the earlier in the list runs first.
    ready: Vec<u32>,
    running: Option<u32>,
    paused: bool,
    now: u64,
    last_scan: u64,
}

impl Oracle {
    pub(super) fn new(config: BandsConfig, priorities: &[Priority]) -> Self {
        let threads = priorities.iter().map(|p| Thread {
            base: p.level(),
            level: p.level(),
            rescued: false,
            left: config.quantum.as_nanos(),
            ready_since: 0,
        });
        Self {
            config,
            threads: threads.collect(),
            ready: Vec::new(),
            running: None,
            paused: true,
            now: 0,
            last_scan: 0,
        }
    }

    fn thread(&mut self, thread: u32) -> &mut Thread {
        &mut self.threads[thread as usize]
    }

    pub(super) fn level(&self, thread: u32) -> u8 {
        self.threads[thread as usize].level
    }

    pub(super) fn is_away(&self, thread: u32) -> bool {
        self.running != Some(thread) && !self.ready.contains(&thread)
    }

    pub(super) fn running(&self) -> Option<u32> {
        self.running
    }

    /// One nanosecond passes.
    pub(super) fn pass(&mut self) {
        self.now += 1;
        let Some(running) = self.running.filter(|_| !self.paused) else {
            return;
        };
        let quantum = self.config.quantum.as_nanos();
        let thread = self.thread(running);
        thread.left -= 1;
        if thread.left > 0 {
            return;
        }
        thread.left = quantum;
        if thread.rescued {
            thread.rescued = false;
            thread.level = thread.base;
        } else if thread.level > thread.base {
            thread.level -= 1;
        }
        let level = thread.level;
        if self.ready.iter().any(|other| self.level(*other) >= level) {
            self.running = None;
            self.ready_last(running);
        }
    }

    pub(super) fn start(&mut self, thread: u32) {
        self.thread(thread).left = self.config.quantum.as_nanos();
        self.ready_last(thread);
    }

    pub(super) fn wake(&mut self, thread: u32, end: WaitEnd) {
        let boost = match end {
            WaitEnd::Signal => self.config.signal_boost,
            WaitEnd::Timer => self.config.timer_boost,
        };
        let quantum = self.config.quantum.as_nanos();
        let entry = self.thread(thread);
        if (1..=15).contains(&entry.base) {
            entry.level = entry.level.max((entry.base + boost).min(15));
        }
        entry.left = quantum;
        self.ready_last(thread);
    }

    pub(super) fn set_priority(&mut self, thread: u32, priority: Priority) {
        let away = self.is_away(thread);
        self.ready.retain(|other| *other != thread);
        if self.running == Some(thread) {
            self.running = None;
        }
        let quantum = self.config.quantum.as_nanos();
        let entry = self.thread(thread);
        entry.base = priority.level();
        entry.level = priority.level();
        entry.rescued = false;
        entry.left = quantum;
        if !away {
            self.ready_last(thread);
        }
    }

    pub(super) fn resume(&mut self, thread: u32) {
        self.ready_first(thread);
    }

    pub(super) fn has_run(&mut self, thread: u32) {
        self.thread(thread).ready_since = self.now;
    }

    pub(super) fn leave(&mut self, thread: u32) {
        self.running = self.running.filter(|running| *running != thread);
        self.ready.retain(|ready| *ready != thread);
        let entry = self.thread(thread);
        if entry.rescued {
            entry.rescued = false;
            entry.level = entry.base;
        }
    }

    pub(super) fn yield_now(&mut self, thread: u32) {
        if self.running == Some(thread) {
            self.running = None;
            self.thread(thread).left = self.config.quantum.as_nanos();
            self.ready_last(thread);
        }
    }

    pub(super) fn pause(&mut self) {
        self.paused = true;
    }

    pub(super) fn decide(&mut self) -> Option<u32> {
        self.paused = false;
        self.rescue();
        let best = self.ready.iter().map(|t| self.level(*t)).max();
        if let Some(best) = best
            && self
                .running
                .is_none_or(|running| self.level(running) < best)
        {
            if let Some(running) = self.running {
                self.ready_first(running);
            }
            let place = self.ready.iter().position(|t| self.level(*t) == best);
            self.running = place.map(|place| self.ready.remove(place));
        }
        self.running
    }

    fn rescue(&mut self) {
        let Some(starvation) = self.config.starvation else {
            return;
        };
        let every = starvation.scan_every.as_nanos();
        if self.now / every == self.last_scan {
            return;
        }
        self.last_scan = self.now / every;
        let mut starving: Vec<u32> = self.ready.clone();
        starving.retain(|t| {
            let thread = self.threads[*t as usize];
            let since = Instant::from_nanos(thread.ready_since);
            let waited: Span = Instant::from_nanos(self.now) - since;
            (1..15).contains(&thread.level) && waited >= starvation.after
        });
        // Higher levels first; the sort is stable, so the order within a level stays.
        starving.sort_by_key(|t| u8::MAX - self.level(*t));
        for thread in starving {
            self.ready.retain(|ready| *ready != thread);
            let quanta = u64::from(starvation.quanta.max(1));
            let left = self.config.quantum.as_nanos() * quanta;
            let entry = self.thread(thread);
            entry.level = 15;
            entry.left = left;
            entry.rescued = true;
            self.ready_last(thread);
        }
    }

    fn ready_last(&mut self, thread: u32) {
        self.thread(thread).ready_since = self.now;
        self.ready.push(thread);
    }

    fn ready_first(&mut self, thread: u32) {
        self.thread(thread).ready_since = self.now;
        self.ready.insert(0, thread);
    }
}
