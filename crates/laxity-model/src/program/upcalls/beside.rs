//! What executors of one process are to each other: admission of one knows of those that take from its processor, and of those from whose it takes.
//!
//! Between executors the kernel's FIFO classes decide, so of two at one priority neither waits for the other's look for a yield: each may keep the processor for as long as it has work.

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::analysis::Task;
use crate::analysis::supply::{Residual, SupplyBound};
use crate::executor::Unschedulable;
use crate::executor::linked::Linked;

/// The place of an executor that is FIFO, or is so in its slots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fifo {
    /// By the kernel's number.
    pub priority: u8,
    /// Where it may run, by the kernel's numbers.
    pub processors: BTreeSet<usize>,
}

impl Fifo {
    /// Whether it keeps another one from a processor that both want.
    #[must_use]
    pub const fn outranks(&self, other: &Self) -> bool {
        self.priority >= other.priority
    }

    /// Whether what it does may make the other late.
    #[must_use]
    pub fn delays(&self, other: &Self) -> bool {
        self.outranks(other) && self.overlaps(other)
    }

    fn overlaps(&self, other: &Self) -> bool {
        !self.processors.is_disjoint(&other.processors)
    }
}

/// An executor and what all its upcalls ask for, as they are charged.
#[derive(Clone, Copy)]
pub struct Party<'a> {
    /// Where it is among others. One that has no such place neither takes from them, as far as is known, nor is kept from anything by them.
    pub fifo: Option<&'a Fifo>,
    /// What it has.
    pub supply: &'a dyn SupplyBound,
    /// Its upcalls take turns with those of all that say the same number.
    pub turns: Option<usize>,
    /// What is asked for there.
    pub all: &'a [Linked],
}

impl Party<'_> {
    /// Whether their upcalls take turns.
    fn takes_turns_with(&self, other: &Self) -> bool {
        self.turns.is_some() && self.turns == other.turns
    }

    /// Whether it keeps the other from a processor that both want.
    fn outranks(&self, other: &Self) -> bool {
        let both = self.fifo.zip(other.fifo);
        both.is_some_and(|(own, other)| own.outranks(other))
    }

    /// Whether what is granted to it may make the other's late.
    #[must_use]
    pub fn concerns(&self, other: &Self) -> bool {
        self.outranks(other) || self.takes_turns_with(other)
    }
}

/// What a policy says of the upcalls of one of these, with those that take turns with them, on what the others leave it: [executors](crate::executor) of one process.
///
/// # Errors
///
/// Why not, by the index of an upcall among those of all, in their order.
pub fn judged<T>(
    parties: &[Party<'_>],
    place: usize,
    judge: impl Fn(&[Linked], &dyn SupplyBound) -> Result<T, Unschedulable>,
) -> Result<T, Unschedulable> {
    let own = &parties[place];
    // Its own come first; each with its index among all.
    let mut turns = set_of(parties, place);
    for (other, party) in parties.iter().enumerate() {
        if other != place && own.takes_turns_with(party) {
            let first = turns.len();
            let theirs = set_of(parties, other).into_iter();
            turns.extend(theirs.map(|(index, linked)| {
                let after = linked.after.map(|before| first + before);
                (index, Linked { after, ..linked })
            }));
        }
    }
    let (indices, set): (Vec<usize>, Vec<Linked>) = turns.into_iter().unzip();
    let takes = parties.iter().enumerate();
    let takes = takes.filter(|(other, party)| {
        *other != place && !own.takes_turns_with(party) && contends(parties, own, party)
    });
    let above: Vec<Task> = takes
        .flat_map(|(_, party)| {
            let woken = party.all.iter().filter_map(Linked::woken);
            let all = party.all.iter().map(|linked| taken(linked, party, own));
            all.chain(woken)
        })
        .collect();
    let found = if above.is_empty() {
        judge(&set, own.supply)
    } else {
        let left = Residual::new(own.supply, above).map_err(|_| Unschedulable {
            bottleneck: Some(0),
            reason: "other executors of this process leave it nothing of its processor".to_owned(),
        });
        left.and_then(|left| judge(&set, &left))
    };
    found.map_err(|no| Unschedulable {
        bottleneck: no.bottleneck.and_then(|at| indices.get(at).copied()),
        ..no
    })
}

/// The upcalls of one of these, with their indices among those of all.
fn set_of(parties: &[Party<'_>], place: usize) -> Vec<(usize, Linked)> {
    let before = parties[..place].iter().map(|party| party.all.len());
    (before.sum()..)
        .zip(parties[place].all.iter().copied())
        .collect()
}

/// Whether another one keeps this executor from a processor: not where there is one for each of those who would have to share theirs, as the kernel moves who waits to where he need not.
fn contends(parties: &[Party<'_>], own: &Party<'_>, other: &Party<'_>) -> bool {
    let (Some(here), Some(there)) = (own.fifo, other.fifo) else {
        return false;
    };
    let is_in = |at: &Fifo| at.outranks(here) && (at.overlaps(here) || at.overlaps(there));
    // Those who take turns are one.
    let is_another = |place: usize| {
        let party = &parties[place];
        let mut before = parties[..place].iter();
        party.fifo.is_some_and(is_in) && !before.any(|known| known.takes_turns_with(party))
    };
    let wanted = (0..parties.len()).filter(|place| is_another(*place));
    let processors = here.processors.union(&there.processors).count();
    // Of those that are kept to fewer processors nobody moves the others away.
    let is_alike = |place: usize| {
        let fifo = parties[place].fifo;
        fifo.is_none_or(|at| at.processors == here.processors)
    };
    let may_share = wanted.clone().count() > processors || !wanted.clone().all(is_alike);
    there.delays(here) && may_share
}

/// What an upcall of another executor takes, as jobs that may be done in any window. One that is outranked is out of the way at once, so that what it was late by is known.
/// Else, and where another one's end or a budget releases it, it is known that it is in time: so what is done of it in a window was released no sooner than its deadline, less what it takes, before that began.
fn taken(linked: &Linked, other: &Party<'_>, own: &Party<'_>) -> Task {
    let task = linked.task;
    let rank = |party: &Party<'_>| party.fifo.map(|at| at.priority);
    let is_released_by_time = linked.after.is_none() && !linked.defers;
    if is_released_by_time && rank(other) > rank(own) {
        return task;
    }
    let cost = task.cost().as_dedicated_span();
    let in_time = task.deadline().saturating_sub(cost);
    task.with_jitter(in_time.max(task.jitter()))
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU32;

    use alloc::vec;

    use proptest::prelude::*;

    use super::*;
    use crate::analysis::supply::Dedicated;
    use crate::executor::rmdp::Rmdp;
    use crate::executor::{HANDLERS, linked};
    use crate::program::upcall::Timing;
    use crate::program::upcalls::task;
    use crate::{Service, Span};

    /// An upcall, in milliseconds: its first release and its period, what a batch of it takes, and its quantum.
    #[derive(Clone, Copy, Debug)]
    struct Asked {
        first: u64,
        period: u64,
        batch: u64,
        quantum: u64,
    }

    impl Asked {
        fn linked(&self) -> Linked {
            let count = |of: u64| NonZeroU32::new(of as u32).unwrap();
            let period = Span::from_millis(self.period);
            let timing = Timing {
                batch: count(self.batch),
                quantum: count(self.quantum),
                ..Timing::each(period)
            };
            Linked::alone(task(&timing, Service::from_millis(1), period).unwrap())
        }
    }

    prop_compose! {
        fn upcall()(period in 4..40_u64, share in 5..45_u64, first in 0..40_u64, quantum in 1..8_u64) -> Asked {
            let batch = (period * share / 100).max(1);
            Asked { first, period, batch, quantum: quantum.min(batch) }
        }
    }

    prop_compose! {
        /// A priority and what is asked for there.
        fn executor()(priority in 50..52_u8, all in prop::collection::vec(upcall(), 1..3)) -> (u8, Vec<Asked>) {
            (priority, all)
        }
    }

    fn fifo(priority: u8, processors: impl IntoIterator<Item = usize>) -> Fifo {
        let processors = processors.into_iter().collect();
        Fifo {
            priority,
            processors,
        }
    }

    /// What is asked for at such a place.
    fn party<'a>(fifo: &'a Fifo, all: &'a [Linked]) -> Party<'a> {
        Party {
            fifo: Some(fifo),
            supply: &Dedicated,
            turns: None,
            all,
        }
    }

    fn is_judged_in_time(parties: &[Party<'_>], place: usize) -> bool {
        let judge = |all: &[Linked], supply: &dyn SupplyBound| {
            linked::admit(&Rmdp::<HANDLERS>::default(), all, supply)
        };
        judged(parties, place, judge).is_ok()
    }

    /// An executor that runs: what is left of each of its upcalls' jobs and when that was released; which is in a quantum, and how much of that is left.
    struct Running<'a> {
        priority: u8,
        all: &'a [Asked],
        jobs: Vec<Option<(u64, u64)>>,
        quantum: Option<(usize, u64)>,
    }

    impl Running<'_> {
        /// Releases those whose instant has come; whether one was at work still.
        fn release(&mut self, now: u64) -> bool {
            let mut is_late = false;
            for (asked, job) in self.all.iter().zip(&mut self.jobs) {
                let since = now.checked_sub(asked.first);
                if since.is_some_and(|since| since % asked.period == 0) {
                    is_late |= job.replace((asked.batch, now)).is_some();
                }
            }
            is_late
        }

        fn has_work(&self) -> bool {
            self.jobs.iter().any(Option::is_some)
        }

        /// Works for a millisecond on the quantum that is begun, or on the first quantum of the shortest period.
        fn work(&mut self) {
            let pending = (0..self.all.len()).filter(|place| self.jobs[*place].is_some());
            let urgent = |place: &usize| (self.all[*place].period, self.jobs[*place].unwrap().1);
            let next = pending.min_by_key(urgent);
            let begun = self
                .quantum
                .or(next.map(|place| (place, self.all[place].quantum)));
            let (place, left) = begun.unwrap();
            let (work, release) = self.jobs[place].unwrap();
            self.jobs[place] = (work > 1).then_some((work - 1, release));
            self.quantum = (work > 1 && left > 1).then_some((place, left - 1));
        }
    }

    /// Whether all are in time on one processor, by the rules of `SCHED_FIFO`, until so long.
    fn is_in_time(executors: &[(u8, Vec<Asked>)], until: u64) -> bool {
        let all = executors.iter().map(|(priority, all)| Running {
            priority: *priority,
            all,
            jobs: vec![None; all.len()],
            quantum: None,
        });
        let mut all: Vec<Running<'_>> = all.collect();
        // Who has work, in the order of the kernel's queue: who came first, unless he has slept since.
        let mut queue: Vec<usize> = Vec::new();
        for now in 0..until {
            for (place, one) in all.iter_mut().enumerate() {
                if one.release(now) {
                    return false;
                }
                if one.has_work() && !queue.contains(&place) {
                    queue.push(place);
                }
            }
            let priority = |place: &usize| all[*place].priority;
            let highest = queue.iter().map(priority).max();
            let first = queue.iter().find(|place| Some(priority(place)) == highest);
            if let Some(first) = first.copied() {
                all[first].work();
            }
            queue.retain(|place| all[*place].has_work());
        }
        true
    }

    fn is_admitted(executors: &[(u8, Vec<Asked>)]) -> bool {
        let each = executors.iter().map(|(priority, all)| {
            let all: Vec<Linked> = all.iter().map(Asked::linked).collect();
            (fifo(*priority, [0]), all)
        });
        let each: Vec<(Fifo, Vec<Linked>)> = each.collect();
        let parties: Vec<Party<'_>> = each.iter().map(|(fifo, all)| party(fifo, all)).collect();
        (0..parties.len()).all(|place| is_judged_in_time(&parties, place))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4_000, max_global_rejects: 200_000, ..ProptestConfig::default() })]

        /// Whatever the phases, of two or three executors at the same priority or at two.
        #[test]
        fn who_is_admitted_is_in_time(executors in prop::collection::vec(executor(), 2..4)) {
            prop_assume!(is_admitted(&executors));
            prop_assert!(is_in_time(&executors, 1_500));
        }
    }

    /// Two that are not alone, each of which would be in time if it were.
    #[test]
    fn who_would_be_late_is_seen() {
        let half = |first| Asked {
            first,
            period: 10,
            batch: 6,
            quantum: 1,
        };
        for priority in [50, 51] {
            let both = [(50, vec![half(0)]), (priority, vec![half(0)])];
            assert!(!is_admitted(&both) && !is_in_time(&both, 1_500));
            assert!(is_admitted(&both[..1]) && is_in_time(&both[..1], 1_500));
        }
    }

    /// The kernel moves one that waits to where it need not, and not one that runs away from another that may run nowhere else.
    #[test]
    fn who_may_run_elsewhere_may_be_in_the_way_of_who_may_not() {
        let asked = Asked {
            first: 0,
            period: 10,
            batch: 6,
            quantum: 1,
        };
        let much = [asked.linked()];
        let admits = |first: &[usize]| {
            let (one, other) = (fifo(50, first.iter().copied()), fifo(51, 0..2));
            is_judged_in_time(&[party(&one, &much), party(&other, &much)], 0)
        };
        assert!(admits(&[0, 1]) && !admits(&[0]));
    }
}
