//! What executors of one process are to each other: admission of one knows of those that take from its processor, and of those from whose it takes.

use std::iter;
use std::mem;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use laxity_linux::host::alone::Bell;
use laxity_linux::host::together::Region;
use laxity_linux::os::cpuset::CpuSet;
use laxity_linux::os::fork::PerProcess;
use laxity_linux::os::sched::{self, Tid};
use laxity_model::Span;
use laxity_model::executor::Unschedulable;
use laxity_model::executor::linked::Linked;
use laxity_model::program::upcalls::beside::{Fifo, Party, judged};
use laxity_model::program::upcalls::{Overhead, charged};

use super::core::Core;
use super::members::set;
use super::{Error, Options, Policy, Supply};

/// What admission to an executor goes by.
pub(super) struct Footing {
    pub(super) policy: Policy,
    supply: Supply,
    pub(super) overhead: Overhead,
    /// Of one that is FIFO, or is so in its slots.
    fifo: Option<Fifo>,
    /// Its upcalls take turns with those of all who have seats there.
    region: Option<Region>,
}

impl Footing {
    /// Of an executor that takes turns in this region, and is charged such an overhead.
    pub(super) fn new(
        options: &mut Options,
        region: Option<Region>,
        overhead: Overhead,
    ) -> Result<Self, Error> {
        let fifo = match options.fifo() {
            Some((priority, processor)) => {
                let inherited = || sched::affinity(Tid::current()).map_err(Error::Sched);
                let where_to = processor.map(CpuSet::single).map_or_else(inherited, Ok)?;
                Some(Fifo {
                    priority,
                    processors: where_to.iter().collect(),
                })
            }
            None => None,
        };
        Ok(Self {
            policy: options.policy,
            supply: options.take_supply()?,
            overhead,
            fifo,
            region,
        })
    }

    /// Where it takes turns with other processes.
    pub(super) const fn region(&self) -> Option<&Region> {
        self.region.as_ref()
    }

    /// Whether what it does may make the other late.
    pub(super) fn delays(&self, other: &Self) -> bool {
        let both = self.fifo.as_ref().zip(other.fifo.as_ref());
        both.is_some_and(|(own, other)| own.delays(other))
    }
}

/// An executor, the names of its upcalls and groups, and what they ask for, as they are charged.
struct Other {
    core: Arc<Core>,
    names: Vec<String>,
    asked: Vec<Linked>,
    /// Those that count though they are closed or have ended.
    closed: Vec<u64>,
}

impl Other {
    /// Without these.
    fn of(core: Arc<Core>, without: &[u64]) -> Self {
        let members = core.members();
        let closed = core.closed(&members);
        let counted = core.counted(&members);
        let set = set(counted.filter(|member| !without.contains(&member.serial)));
        let names = set.names().into_iter().map(str::to_owned).collect();
        let asked = charged(set.linked(), core.footing.overhead);
        drop(members);
        Self {
            core,
            names,
            asked,
            closed,
        }
    }
}

/// The other executors of this process that have upcalls, none of which changes while this lives.
pub(super) struct Beside {
    others: Vec<Other>,
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

/// Those of an executor, and of each other one, that are closed or have ended and [count](Core::closed) still: until it, and all whom it may have kept from a processor, have had nothing to do.
pub(super) fn closed(core: &Arc<Core>) -> Vec<Vec<u64>> {
    let all = all();
    let others = others(&all, core);
    let each = iter::once(core).chain(&others).map(|core| {
        core.ask_for_rests(&self::others(&all, core));
        core.closed(&core.members())
    });
    each.collect()
}

/// Whether the caller is a handler of any executor: it would wait for that, or for one that it keeps from its processor.
pub(super) fn is_handler() -> bool {
    let all = all();
    let mut known = all.iter().filter_map(Weak::upgrade);
    known.any(|core| core.is_inside())
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
            Other::of(core, &[])
        });
        let others = others.filter(|other| !other.asked.is_empty());
        Self {
            others: others.collect(),
            _alone: alone,
        }
    }

    /// Those of others that count though they are closed or have ended.
    pub(super) fn closed(&self) -> Vec<u64> {
        let all = self.others.iter().flat_map(|other| &other.closed);
        all.copied().collect()
    }

    /// Nothing of others is late any more by those of them that are closed or have ended.
    pub(super) fn rests(&mut self) {
        for other in &mut self.others {
            let (core, closed) = (Arc::clone(&other.core), mem::take(&mut other.closed));
            *other = Other::of(core, &closed);
        }
    }

    /// The names of their upcalls and groups, whose indices follow those of an executor's own.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let names = self.others.iter().flat_map(|other| &other.names);
        names.map(String::as_str)
    }

    /// This executor, where its upcalls ask for so much, and then the others; each with its policy.
    fn parties<'a>(&'a self, own: &'a Footing, all: &'a [Linked]) -> (Vec<Policy>, Vec<Party<'a>>) {
        let others = self.others.iter();
        let others = others.map(|other| (&other.core.footing, &*other.asked));
        let each: Vec<_> = iter::once((own, all)).chain(others).collect();
        let turns = |region: &Region| {
            let is_there = |(footing, _): &(&Footing, _)| {
                let other = footing.region.as_ref();
                other.is_some_and(|other| other.is_same(region))
            };
            each.iter().position(is_there)
        };
        let party = |&(footing, all): &(&'a Footing, &'a [Linked])| Party {
            fifo: footing.fifo.as_ref(),
            supply: &footing.supply,
            turns: footing.region.as_ref().and_then(turns),
            all,
        };
        let policies = each.iter().map(|(footing, _)| footing.policy);
        (policies.collect(), each.iter().map(party).collect())
    }

    /// Whether all of these are in time, and all of the others whom they may keep from a processor.
    pub(super) fn admit(&self, own: &Footing, all: &[Linked]) -> Result<(), Unschedulable> {
        let (policies, parties) = self.parties(own, all);
        for (place, (policy, party)) in policies.iter().zip(&parties).enumerate() {
            if place == 0 || parties[0].concerns(party) {
                judged(&parties, place, |all, supply| policy.admit(all, supply))?;
            }
        }
        Ok(())
    }

    /// How long each of these takes at the longest, from the release of the first of its chain.
    pub(super) fn bounds(&self, own: &Footing, all: &[Linked]) -> Result<Vec<Span>, Unschedulable> {
        let (_, parties) = self.parties(own, all);
        judged(&parties, 0, |all, supply| own.policy.bounds(all, supply))
    }
}
