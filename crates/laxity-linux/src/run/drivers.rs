//! The threads of this process that serve interfaces: of no program, at a rank of interrupts. Admission is told of them, with what each takes where that is bounded; and whoever looks out for those who
//! take from slots holds them to that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use laxity_model::admission::Driver;
use laxity_model::nif::overlong::{Look, Overlong, Tally};
use laxity_model::request::Work;
use laxity_model::{Instant, Service, Span};

use crate::os::clock;
use crate::os::fork::PerProcess;
use crate::os::sched::Tid;

/// One of them.
struct Serving {
    name: String,
    /// Its processor; `None`: wherever the kernel lets it run.
    on: Option<usize>,
    work: Option<Work>,
    /// What was charged for all that it has done, in nanoseconds.
    charged: Arc<AtomicU64>,
    /// That it was seen to take longer.
    overlong: Option<Overlong>,
    /// The processors whose slots were admitted below it.
    charged_on: BTreeSet<usize>,
}

fn all() -> MutexGuard<'static, BTreeMap<Tid, Serving>> {
    static ALL: PerProcess<Mutex<BTreeMap<Tid, Serving>>> = PerProcess::new(|_| Mutex::default());
    ALL.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// The calling thread is one of them, until this is dropped.
pub(crate) struct Entered(Tid, Arc<AtomicU64>);

impl Entered {
    /// By this name, on this processor or any, with so much to do at the most; `None`: nobody says.
    pub(crate) fn enter(name: String, on: Option<usize>, work: Option<Work>) -> Self {
        let own = Tid::current();
        let charged = Arc::new(AtomicU64::new(0));
        let serving = Serving {
            name,
            on,
            work,
            charged: Arc::clone(&charged),
            overlong: None,
            charged_on: BTreeSet::new(),
        };
        all().insert(own, serving);
        Self(own, charged)
    }

    /// So much was charged for all that it has done.
    pub(crate) fn charged(&self, charged: Service) {
        self.1.store(charged.as_nanos(), Ordering::Release);
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        all().remove(&self.0);
    }
}

impl Serving {
    fn may_be_on(&self, cpu: usize) -> bool {
        self.on.is_none_or(|on| on == cpu)
    }

    /// What it takes at the most, unless it was seen to take more.
    fn bound(&self) -> Option<Work> {
        self.work.filter(|_| self.overlong.is_none())
    }
}

/// Those that may be on a processor now, as admission is told of them.
pub(crate) fn on(cpu: usize) -> Vec<Driver> {
    let all = all();
    let here = all.values().filter(|one| one.may_be_on(cpu));
    let told = here.map(|one| Driver {
        name: one.name.clone(),
        work: one.bound(),
    });
    told.collect()
}

/// One that took longer than was said of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TookLonger {
    pub(crate) name: String,
    on: Option<usize>,
    pub(crate) overlong: Overlong,
}

impl TookLonger {
    pub(crate) fn may_be_on(&self, cpu: usize) -> bool {
        self.on.is_none_or(|on| on == cpu)
    }
}

/// Holds them to what was said of them, from one look to the next.
#[derive(Debug, Default)]
pub(crate) struct Tallies(BTreeMap<Tid, Tally>);

impl Tallies {
    /// Those that may be on one of these processors, and took longer, as this look or one of somebody else's tells. `stood`: for how long in all those who watch have stood still. About a microsecond for each
    /// that is bounded.
    pub(crate) fn look(&mut self, cpus: &[usize], at: Instant, stood: Span) -> Vec<TookLonger> {
        let mut all = all();
        self.0.retain(|thread, _| all.contains_key(thread));
        let here = all.iter_mut();
        let here = here.filter(|(_, one)| cpus.iter().any(|cpu| one.may_be_on(*cpu)));
        let told = here.filter_map(|(thread, one)| {
            let work = one.work?;
            let tally = self.0.entry(*thread).or_insert_with(|| Tally::new(work));
            let look = Look {
                at,
                had: clock::service_of(*thread)?,
                // After what it had: what it was done with by then is charged.
                charged: Service::from_nanos(one.charged.load(Ordering::Acquire)),
                stood,
            };
            one.overlong = one.overlong.or(tally.look(look));
            Some(TookLonger {
                name: one.name.clone(),
                on: one.on,
                overlong: one.overlong?,
            })
        });
        told.collect()
    }
}

/// Slots of a processor are admitted below those that are bounded and there already, until this is dropped.
pub(crate) struct Charged(usize);

/// From now on, whoever looks out for those who take from slots there is to leave these to admission. To be called before that is asked.
pub(crate) fn charge(cpu: usize) -> Charged {
    let mut all = all();
    let here = all.values_mut().filter(|one| one.may_be_on(cpu));
    for bounded in here.filter(|one| one.bound().is_some()) {
        bounded.charged_on.insert(cpu);
    }
    Charged(cpu)
}

impl Drop for Charged {
    fn drop(&mut self) {
        for one in all().values_mut() {
            one.charged_on.remove(&self.0);
        }
    }
}

/// Whether a thread of this process is one below which slots there were admitted.
pub(crate) fn is_charged(thread: Tid, cpu: usize) -> bool {
    let all = all();
    all.get(&thread)
        .is_some_and(|one| one.charged_on.contains(&cpu))
}

#[cfg(test)]
mod tests {
    use laxity_model::{Service, Span};

    use super::*;

    /// Processors that no machine has, so that other tests see none of it.
    const HERE: usize = 1 << 20;
    const THERE: usize = HERE + 1;

    #[test]
    fn slots_are_below_those_who_were_there_and_bounded() {
        let work = Work {
            service: Service::from_micros(100),
            period: Span::from_millis(1),
        };
        let own = Tid::current();
        let entered = Entered::enter("bounded".into(), Some(HERE), Some(work));
        assert_eq!(on(HERE).len(), 1);
        assert!(on(THERE).is_empty() && !is_charged(own, HERE));
        let charged = charge(HERE);
        assert!(is_charged(own, HERE) && !is_charged(own, THERE));
        drop(charged);
        assert!(!is_charged(own, HERE));
        drop(entered);
        // One that is not, and one that came later.
        let _unbounded = Entered::enter("unbounded".into(), Some(HERE), None);
        let _charged = charge(HERE);
        assert!(!is_charged(own, HERE) && on(HERE)[0].work.is_none());
        let later = std::thread::spawn(move || {
            let _later = Entered::enter("later".into(), Some(HERE), Some(work));
            (is_charged(Tid::current(), HERE), on(HERE).len())
        });
        assert_eq!(later.join().unwrap(), (false, 2));
    }

    /// It works as long as it likes, and says so or not.
    #[test]
    fn who_takes_longer_than_is_charged_is_told_to_whoever_looks_and_is_bounded_no_more() {
        const WHERE: usize = HERE + 2;
        let work = Work {
            service: Service::from_micros(10),
            period: Span::from_millis(1),
        };
        let entered = Entered::enter("held".into(), Some(WHERE), Some(work));
        let mut tallies = [Tallies::default(), Tallies::default()];
        let mut at = clock::now();
        let mut charged = Service::ZERO;
        let mut windows = |is_charged: bool| {
            let mut told = Vec::new();
            for _ in 0..8 {
                let until = clock::thread_service() + Service::from_millis(1);
                while clock::thread_service() < until {}
                if is_charged {
                    charged += Service::from_millis(200);
                }
                entered.charged(charged);
                at += Span::from_millis(50);
                told = tallies[0].look(&[WHERE], at, Span::ZERO);
            }
            told
        };
        assert_eq!(windows(true), []);
        assert_eq!(on(WHERE)[0].work, Some(work));
        let told = windows(false);
        assert_eq!((told.len(), &*told[0].name), (1, "held"));
        assert!(told[0].overlong.took > told[0].overlong.charged);
        assert!(told[0].may_be_on(WHERE) && !told[0].may_be_on(THERE));
        // Whoever looks for the first time is told, and it is bounded no more.
        let later = tallies[1].look(&[THERE, WHERE], at, Span::ZERO);
        assert_eq!(later, told);
        assert_eq!(on(WHERE)[0].work, None);
        let _charged = charge(WHERE);
        assert!(!is_charged(Tid::current(), WHERE));
    }
}
