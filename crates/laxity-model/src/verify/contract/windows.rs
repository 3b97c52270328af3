//! Things that are counted, in every window of a length.
//!
//! A lower bound on how many there are is a minimum throughput: the lower arrival curve of what is done, at one point (Thiele, Chakraborty,
//! Naedele, *Real-time calculus for scheduling hard real-time systems*, ISCAS 2000, §2). An upper bound on deadlines missed is
//! (m, k)-firmness (Hamdaoui, Ramanathan, *A dynamic priority assignment technique for streams with (m, k)-firm deadlines*, IEEE Transactions on
//! Computers 44(12), 1995, §2): of any k jobs of a task of period T at least m are in time if in every window of k T at most k − m are not.
//! Windows are of time and not of jobs, because a component that does nothing any more has no jobs to count.

use alloc::vec::Vec;

use super::Observed;
use crate::{Disturbances, Instant, Span};

/// Something that was counted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Counted {
    /// When it was.
    pub at: Instant,
    /// How much; more than zero.
    pub amount: u64,
    /// Whether it came of a stretch in which the machine stood still: nor is a window judged that has it.
    pub disturbed: bool,
    /// Whether it is only what may have been, as bad as that is: nobody knows.
    pub possible: bool,
}

/// How much there is in windows of this length (more than zero) in a run from `start` to `end`: in those that decide. The least and the most of
/// them, undisturbed or of all, are those of all windows that lie in the run; a run that is shorter has none. A window has its first
/// nanosecond and not its end. O(n log n).
///
/// Whoever moves a window to the left loses what it has at its right, and gains nothing until its begin comes to something that is counted, or to a
/// disturbance: so of the windows with the least one begins just after such, or with the run. With the most, it is the other way round.
pub fn in_windows(
    window: Span,
    [start, end]: [Instant; 2],
    mut counted: Vec<Counted>,
    disturbances: &Disturbances,
) -> Observed {
    let mut seen = Observed::default();
    if end.saturating_since(start) < window {
        return seen;
    }
    let last = end.saturating_sub(window);
    counted.sort_unstable();
    let mut sums = Sums::default();
    counted.iter().for_each(|one| sums.add(one));
    let own = counted
        .iter()
        .flat_map(|one| begins(one.at, one.at + TICK, window, one.disturbed));
    let apart = disturbances.stretches().iter();
    let apart = apart.flat_map(|[from, to]| begins(*from, *to, window, true));
    let all = own.chain(apart).flatten().chain([start, last]);
    let mut all: Vec<Instant> = all.filter(|at| (start..=last).contains(at)).collect();
    all.sort_unstable();
    all.dedup();
    for begin in all {
        let own = [begin, begin + window].map(|edge| counted.partition_point(|one| one.at < edge));
        let sum = sums.between(own);
        if sum.disturbed > 0 || disturbances.overlap(begin, begin + window) {
            seen.disturbed.record(sum.known);
            continue;
        }
        seen.undisturbed.record(sum.known);
        if sum.possible > 0 {
            seen.possible.record(sum.known.saturating_add(sum.possible));
        }
    }
    seen
}

const TICK: Span = Span::from_nanos(1);

/// Where windows begin for something from `from` to `to`: with its end; with its begin; and, where it must not be in a window, so that they end with that.
fn begins(from: Instant, to: Instant, window: Span, apart: bool) -> [Option<Instant>; 3] {
    let before = from.since_epoch() >= window && apart;
    let before = before.then(|| from.saturating_sub(window));
    [Some(from), Some(to), before]
}

/// A sum of what was counted.
#[derive(Clone, Copy, Default)]
struct Sum {
    known: u64,
    possible: u64,
    /// How many of them are disturbed.
    disturbed: u64,
}

/// Sums of what was counted, up to each.
#[derive(Default)]
struct Sums(Vec<Sum>);

impl Sums {
    fn add(&mut self, one: &Counted) {
        let mut sum = self.upto(self.0.len());
        let part = match one.possible {
            true => &mut sum.possible,
            false => &mut sum.known,
        };
        *part = part.saturating_add(one.amount);
        sum.disturbed += u64::from(one.disturbed);
        self.0.push(sum);
    }

    fn upto(&self, count: usize) -> Sum {
        let last = count.checked_sub(1).and_then(|last| self.0.get(last));
        last.copied().unwrap_or_default()
    }

    fn between(&self, [first, end]: [usize; 2]) -> Sum {
        let (before, upto) = (self.upto(first), self.upto(end));
        Sum {
            known: upto.known - before.known,
            possible: upto.possible - before.possible,
            disturbed: upto.disturbed - before.disturbed,
        }
    }
}
