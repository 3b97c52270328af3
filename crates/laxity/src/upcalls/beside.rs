//! What executors of one process are to each other: admission of one knows of those that take from its processor, and of those from whose it takes.
//!
//! Between executors the kernel's FIFO classes decide, so of two at one priority neither waits for the other's look for a yield: each may keep the processor for as long as it has work.

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use laxity_linux::host::alone::Bell;
use laxity_linux::host::together::Region;
use laxity_linux::os::cpuset::CpuSet;
use laxity_linux::os::fork::PerProcess;
use laxity_linux::os::sched::{self, Tid};
use laxity_model::Span;
use laxity_model::analysis::Task;
use laxity_model::analysis::supply::{Residual, SupplyBound};
use laxity_model::executor::Unschedulable;
use laxity_model::executor::linked::Linked;
use laxity_model::program::upcalls::{Overhead, charged};

use super::core::Core;
use super::members::set;
use super::{Error, Options, Policy, Supply};

/// What admission to an executor goes by.
pub(super) struct Footing {
    pub(super) policy: Policy,
    supply: Supply,
    pub(super) overhead: Overhead,
    /// Its priority, and where it may run; of one that is FIFO, or is so in its slots.
    fifo: Option<(u8, CpuSet)>,
    /// Its upcalls take turns with those of all who have seats there.
    region: Option<Region>,
}

impl Footing {
    /// Of an executor that such an overhead is charged.
    pub(super) fn new(options: &mut Options, overhead: Overhead) -> Result<Self, Error> {
        let fifo = match options.fifo() {
            Some((priority, processor)) => {
                let inherited = || sched::affinity(Tid::current()).map_err(Error::Sched);
                let where_to = processor.map(CpuSet::single).map_or_else(inherited, Ok)?;
                Some((priority, where_to))
            }
            None => None,
        };
        Ok(Self {
            policy: options.policy,
            supply: options.take_supply()?,
            overhead,
            fifo,
            region: options.together.as_ref().map(|seat| seat.region.clone()),
        })
    }

    /// Where it takes turns with other processes.
    pub(super) const fn region(&self) -> Option<&Region> {
        self.region.as_ref()
    }

    /// Whether their upcalls take turns.
    fn takes_turns_with(&self, other: &Self) -> bool {
        let regions = self.region.as_ref().zip(other.region.as_ref());
        regions.is_some_and(|(own, other)| own.is_same(other))
    }

    /// Whether what it does may make the other late.
    pub(super) fn delays(&self, other: &Self) -> bool {
        let both = self.fifo.as_ref().zip(other.fifo.as_ref());
        self.outranks(other) && both.is_some_and(|((_, here), (_, there))| here.overlaps(there))
    }

    /// Whether it keeps the other from a processor that both want.
    fn outranks(&self, other: &Self) -> bool {
        let both = self.fifo.as_ref().zip(other.fifo.as_ref());
        both.is_some_and(|((own, _), (other, _))| own >= other)
    }
}

/// An executor and what all its upcalls ask for, as they are charged.
struct Party<'a> {
    footing: &'a Footing,
    all: &'a [Linked],
}

/// The other executors of this process that have upcalls, none of which changes while this lives.
pub(super) struct Beside {
    others: Vec<(Arc<Core>, Vec<String>, Vec<Linked>)>,
    _alone: MutexGuard<'static, Vec<Weak<Core>>>,
}

/// All executors there are. Callers wait here for each other, and no executor does.
fn all() -> MutexGuard<'static, Vec<Weak<Core>>> {
    // A child makes its own, whoever waits for a coordinator in its parent meanwhile.
    static ALL: PerProcess<Mutex<Vec<Weak<Core>>>> = PerProcess::new(|_| Mutex::default());
    ALL.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// Rung whenever something has changed in an executor of this process.
pub(super) static CHANGED: LazyLock<Bell> = LazyLock::new(Bell::default);

/// Those of an executor that are closed or have ended and [count](Core::closed) still: until it, and all whom it may have kept from a processor, have had nothing to do.
pub(super) fn closed(core: &Arc<Core>) -> Vec<u64> {
    core.ask_for_rests(&others(&all(), core));
    core.closed(&core.members())
}

/// Those that go on, without this one.
fn others(all: &[Weak<Core>], own: &Arc<Core>) -> Vec<Arc<Core>> {
    let known = all.iter().filter_map(Weak::upgrade);
    known
        .filter(|core| !Arc::ptr_eq(core, own) && !core.is_over())
        .collect()
}

/// Others know of this executor from now on, as long as it goes on.
pub(super) fn register(core: &Arc<Core>) {
    let mut all = all();
    all.retain(|known| known.strong_count() > 0);
    all.push(Arc::downgrade(core));
}

impl Beside {
    pub(super) fn of(own: &Arc<Core>) -> Self {
        let alone = all();
        let known = others(&alone, own);
        own.ask_for_rests(&known);
        let others = known.into_iter().map(|core| {
            core.ask_for_rests(&others(&alone, &core));
            let members = core.members();
            let set = set(core.counted(&members));
            let names = set.names().into_iter().map(str::to_owned).collect();
            let asked = charged(set.linked(), core.footing.overhead);
            drop(members);
            (core, names, asked)
        });
        let others = others.filter(|(.., asked): &(_, Vec<String>, Vec<Linked>)| !asked.is_empty());
        Self {
            others: others.collect(),
            _alone: alone,
        }
    }

    /// The names of their upcalls and groups, whose indices follow those of an executor's own.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let names = self.others.iter().flat_map(|(_, names, _)| names);
        names.map(String::as_str)
    }

    /// This executor, where its upcalls ask for so much, and then the others.
    fn parties<'a>(&'a self, footing: &'a Footing, all: &'a [Linked]) -> Vec<Party<'a>> {
        let others = self.others.iter();
        let others = others.map(|(core, _, all)| Party {
            footing: &core.footing,
            all,
        });
        [Party { footing, all }].into_iter().chain(others).collect()
    }

    /// Whether all of these are in time, and all of the others whom they may keep from a processor.
    pub(super) fn admit(&self, own: &Footing, all: &[Linked]) -> Result<(), Unschedulable> {
        let parties = self.parties(own, all);
        for (place, party) in parties.iter().enumerate() {
            let footing = party.footing;
            if place == 0 || own.outranks(footing) || own.takes_turns_with(footing) {
                judged(&parties, place, |all, supply| {
                    footing.policy.admit(all, supply)
                })?;
            }
        }
        Ok(())
    }

    /// How long each of these takes at the longest, from the release of the first of its chain.
    pub(super) fn bounds(&self, own: &Footing, all: &[Linked]) -> Result<Vec<Span>, Unschedulable> {
        let parties = self.parties(own, all);
        judged(&parties, 0, |all, supply| own.policy.bounds(all, supply))
    }
}

/// What a policy says of the upcalls of one of these, with those that take turns with them, on what the others leave it.
fn judged<T>(
    parties: &[Party<'_>],
    place: usize,
    judge: impl Fn(&[Linked], &dyn SupplyBound) -> Result<T, Unschedulable>,
) -> Result<T, Unschedulable> {
    let own = parties[place].footing;
    // Its own come first; each with its index among all.
    let mut turns = set_of(parties, place);
    for (other, party) in parties.iter().enumerate() {
        if other != place && own.takes_turns_with(party.footing) {
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
        *other != place
            && !own.takes_turns_with(party.footing)
            && contends(parties, own, party.footing)
    });
    let above: Vec<Task> = takes
        .flat_map(|(_, party)| {
            let woken = party.all.iter().filter_map(Linked::woken);
            let all = party.all.iter().map(|linked| taken(linked, party, own));
            all.chain(woken)
        })
        .collect();
    let found = if above.is_empty() {
        judge(&set, &own.supply)
    } else {
        let left = Residual::new(&own.supply, above).map_err(|_| Unschedulable {
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
fn contends(parties: &[Party<'_>], own: &Footing, other: &Footing) -> bool {
    let (Some((priority, here)), Some((_, there))) = (&own.fifo, &other.fifo) else {
        return false;
    };
    let is_in = |footing: &Footing| {
        let fifo = footing.fifo.as_ref();
        fifo.is_some_and(|(of, at)| of >= priority && (at.overlaps(here) || at.overlaps(there)))
    };
    // Those who take turns are one.
    let is_another = |place: usize| {
        let footing = parties[place].footing;
        let mut before = parties[..place].iter();
        is_in(footing) && !before.any(|known| known.footing.takes_turns_with(footing))
    };
    let wanted = (0..parties.len()).filter(|place| is_another(*place));
    let processors = here.len() + there.without(here).len();
    // Of those that are kept to fewer processors nobody moves the others away.
    let is_alike = |place: usize| {
        let fifo = parties[place].footing.fifo.as_ref();
        fifo.is_none_or(|(_, at)| at == here)
    };
    let may_share = wanted.clone().count() > processors || !wanted.clone().all(is_alike);
    other.outranks(own) && here.overlaps(there) && may_share
}

/// What an upcall of another executor takes, as jobs that may be done in any window. One that is outranked is out of the way at once, so that what it was late by is known.
/// Else, and where another one's end or a budget releases it, it is known that it is in time: so what is done of it in a window was released no sooner than its deadline, less what it takes, before that began.
fn taken(linked: &Linked, other: &Party<'_>, own: &Footing) -> Task {
    let task = linked.task;
    let rank = |footing: &Footing| footing.fifo.as_ref().map(|(priority, _)| *priority);
    let is_released_by_time = linked.after.is_none() && !linked.defers;
    if is_released_by_time && rank(other.footing) > rank(own) {
        return task;
    }
    let cost = task.cost().as_dedicated_span();
    let in_time = task.deadline().saturating_sub(cost);
    task.with_jitter(in_time.max(task.jitter()))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use laxity_model::Service;
    use laxity_model::analysis::supply::Dedicated;
    use laxity_model::program::upcall::Timing;
    use laxity_model::program::upcalls::task;
    use proptest::prelude::*;

    use super::*;

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

    fn footing(priority: u8) -> Footing {
        Footing {
            policy: Policy::Rmdp,
            supply: Box::new(Dedicated),
            overhead: Overhead {
                late: Span::ZERO,
                each: Service::ZERO,
                quantum: Service::ZERO,
            },
            fifo: Some((priority, CpuSet::single(0))),
            region: None,
        }
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
            (footing(*priority), all)
        });
        let each: Vec<(Footing, Vec<Linked>)> = each.collect();
        let parties = each.iter().map(|(footing, all)| Party { footing, all });
        let parties: Vec<Party<'_>> = parties.collect();
        let judge = |all: &[Linked], supply: &dyn SupplyBound| Policy::Rmdp.admit(all, supply);
        (0..parties.len()).all(|place| judged(&parties, place, judge).is_ok())
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
        let much = || {
            let asked = Asked {
                first: 0,
                period: 10,
                batch: 6,
                quantum: 1,
            };
            vec![asked.linked()]
        };
        let both: CpuSet = (0..2).collect();
        let admits = |first: &CpuSet| {
            let [mut one, mut other] = [50, 51].map(footing);
            one.fifo = Some((50, first.clone()));
            other.fifo = Some((51, both.clone()));
            let parties = [(&one, much()), (&other, much())];
            let parties = parties
                .each_ref()
                .map(|(footing, all)| Party { footing, all });
            let judge = |all: &[Linked], supply: &dyn SupplyBound| Policy::Rmdp.admit(all, supply);
            judged(&parties, 0, judge).is_ok()
        };
        assert!(admits(&both) && !admits(&CpuSet::single(0)));
    }
}
