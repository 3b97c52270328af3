//! The system call that gives another thread a policy, as the dispatcher of slots makes it.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::bench::{Bench, ORDINARY, Worker};
use super::samples::Samples;
use super::{Result, clock};
use crate::os::futex;
use crate::os::sched::{Attributes, Tid};

const PARTS: usize = 5;
const SAMPLES: usize = 10_000;

/// A thread makes one of lower rank, which would compute, real-time and ordinary by turns.
pub(super) fn changes(bench: &Bench<'_>) -> Result<Samples> {
    let samples = bench.in_parts(SAMPLES, PARTS, |each| {
        let (target, done) = (AtomicU32::new(0), AtomicBool::new(false));
        let changer = || {
            let result = change(bench, each, &target);
            done.store(true, Ordering::Relaxed);
            result
        };
        let changed = || {
            target.store(Tid::current().0 as u32, Ordering::SeqCst);
            futex::wake_all(&target);
            while !done.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            Ok(Samples::with_room(0))
        };
        let workers = vec![
            Worker::new(bench.fifo(0), changer),
            Worker::new(ORDINARY, changed),
        ];
        bench.together(workers)?.into_iter().collect()
    })?;
    Ok(samples.less(clock::reading_cost()))
}

fn change(bench: &Bench<'_>, times: usize, target: &AtomicU32) -> Result<Samples> {
    while target.load(Ordering::SeqCst) == 0 {
        futex::wait(target, 0, None);
    }
    let tid = Tid(target.load(Ordering::SeqCst) as i32);
    let attributes = [bench.fifo(1), ORDINARY].map(|policy| Attributes::new(policy, true));
    let mut samples = Samples::with_room(times);
    // Ends with the ordinary one.
    for turn in 0..times / 2 * 2 {
        let before = clock::now();
        attributes[turn % 2].apply_unchecked(tid)?;
        samples.push(clock::now().saturating_since(before));
    }
    Ok(samples)
}
