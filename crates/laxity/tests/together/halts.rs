//! What no process has done: a thread above all of them sees when the machine itself stands still.

use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;

use laxity::{Instant, Span, now};
use laxity_linux::os::clock;
use laxity_linux::os::cpuset::CpuSet;
use laxity_linux::os::sched::{self, Policy, Tid};

/// From one of its instants to the next.
const EVERY: Span = Span::from_micros(500);
/// Whoever wakes later than that after its instant was kept from it by a halt.
const PROMPT: Span = Span::from_micros(100);
/// Above executors and their guards.
const RANK: u8 = 99;

/// From when to when it slept too long, at each of its instants, in their order.
pub(crate) struct Halts(Vec<[Instant; 2]>);

impl Halts {
    /// A halt of no more may be over before the next of its instants, or have begun so long before it.
    pub(crate) const UNSEEN: Span = EVERY;

    /// Those of a processor while something is done.
    pub(crate) fn during<T>(processor: usize, does: impl FnOnce() -> T) -> (T, Self) {
        thread::scope(|scope| {
            // It is over when the sender is dropped, also where what is done panics.
            let (under_way, over) = mpsc::channel();
            let watching = scope.spawn(move || Self::watch(processor, &over));
            let done = does();
            drop(under_way);
            (done, watching.join().unwrap())
        })
    }

    fn watch(processor: usize, over: &Receiver<()>) -> Self {
        let own = Tid::current();
        sched::set_affinity(own, &CpuSet::single(processor)).unwrap();
        sched::set_policy(own, Policy::Fifo(RANK)).unwrap();
        let mut seen = Vec::new();
        let mut due = now();
        while over.try_recv() == Err(TryRecvError::Empty) {
            clock::sleep_until(due);
            let woke = now();
            seen.push([due, woke]);
            due += EVERY * (woke.saturating_since(due) / EVERY + 1);
        }
        Self(seen)
    }

    /// The longest.
    pub(crate) fn longest(&self) -> Span {
        let all = self.0.iter().map(|[due, woke]| woke.saturating_since(*due));
        all.max().unwrap_or(Span::ZERO)
    }

    /// How much of the time from then to then was surely no halt. Of each one that is seen, as much as [may be unseen](Self::UNSEEN) may have been before its instant: where halts come in a
    /// row that adds up.
    pub(crate) fn beyond(&self, from: Instant, to: Instant) -> Span {
        let mut counted = from;
        let within = self.0.iter().map(|[due, woke]| {
            let halted = woke.saturating_since(*due) > PROMPT;
            let begun = if halted { *due - EVERY } else { *due };
            let here = to.min(*woke).saturating_since(counted.max(begun));
            counted = counted.max(*woke);
            here
        });
        to.saturating_since(from).saturating_sub(within.sum())
    }
}
