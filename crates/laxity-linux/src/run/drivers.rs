//! The threads of this process that serve interfaces: of no program, at a rank of interrupts. Admission is told of them, with what each takes where that is bounded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use laxity_model::admission::Driver;
use laxity_model::request::Work;

use crate::os::fork::PerProcess;
use crate::os::sched::Tid;

/// One of them.
struct Serving {
    name: String,
    /// Its processor; `None`: wherever the kernel lets it run.
    on: Option<usize>,
    work: Option<Work>,
    /// The processors whose slots were admitted below it.
    charged_on: BTreeSet<usize>,
}

fn all() -> MutexGuard<'static, BTreeMap<Tid, Serving>> {
    static ALL: PerProcess<Mutex<BTreeMap<Tid, Serving>>> = PerProcess::new(|_| Mutex::default());
    ALL.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// The calling thread is one of them, until this is dropped.
pub(crate) struct Entered(Tid);

impl Entered {
    /// By this name, on this processor or any, with so much to do at the most; `None`: nobody says.
    pub(crate) fn enter(name: String, on: Option<usize>, work: Option<Work>) -> Self {
        let own = Tid::current();
        let serving = Serving {
            name,
            on,
            work,
            charged_on: BTreeSet::new(),
        };
        all().insert(own, serving);
        Self(own)
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
}

/// Those that may be on a processor now, as admission is told of them.
pub(crate) fn on(cpu: usize) -> Vec<Driver> {
    let all = all();
    let here = all.values().filter(|one| one.may_be_on(cpu));
    let told = here.map(|one| Driver {
        name: one.name.clone(),
        work: one.work,
    });
    told.collect()
}

/// Slots of a processor are admitted below those that are bounded and there already, until this is dropped.
pub(crate) struct Charged(usize);

/// From now on, whoever looks out for those who take from slots there is to leave these to admission. To be called before that is asked.
pub(crate) fn charge(cpu: usize) -> Charged {
    let mut all = all();
    let here = all.values_mut().filter(|one| one.may_be_on(cpu));
    for bounded in here.filter(|one| one.work.is_some()) {
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
}
