//! The threads of a run, and what each must be for what was granted to hold: whoever has the right may change that from outside.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use laxity_model::analysis::multiprocessor::DeadlineRequest;
use laxity_model::enforce::ranks;
use laxity_model::{ActivityId, Priority, Reservation, Service, Span};

use crate::os::cpuset::CpuSet;
use crate::os::sched::{self, Policy, Tid};

/// Whose thread it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// It dispatches the slots of its processor.
    Dispatcher,
    /// It watches its processor.
    Witness,
    /// It looks who outranks slots, and whether the others are what they ought to be.
    Lookout,
    /// It runs an activity.
    Activity(ActivityId),
}

/// A thread of a run.
#[derive(Debug)]
pub(crate) struct Own {
    pub(crate) tid: Tid,
    /// What it is called in messages.
    pub(crate) who: String,
    pub(crate) role: Role,
    /// The processor that it belongs to.
    pub(crate) cpu: usize,
    /// Whether it may run elsewhere too.
    pub(crate) may_wander: bool,
    pub(crate) ought: Ought,
}

/// How a thread ought to be scheduled.
#[derive(Debug)]
pub(crate) enum Ought {
    /// Always like this.
    Kept(Arc<Kept>),
    /// As its activity is placed, or as its reservation has it.
    Placed {
        standing: Arc<Standing>,
        own: Policy,
        /// It may be raised to this, or be anything below.
        highest: Option<Priority>,
        held: Held,
    },
}

/// The policy that a thread is to keep. It may look at itself: whoever changes that for less time than lies between two looks from outside is seen too.
#[derive(Debug)]
pub(crate) struct Kept {
    tid: Tid,
    policy: Policy,
    found: OnceLock<Policy>,
}

impl Kept {
    /// Of a thread, which alone may look.
    pub(crate) const fn new(tid: Tid, policy: Policy) -> Self {
        Self {
            tid,
            policy,
            found: OnceLock::new(),
        }
    }

    /// The thread looks at itself. One system call, no memory, and no lock that anybody holds.
    pub(crate) fn look(&self) {
        if let Ok(found) = sched::policy(self.tid)
            && found != self.policy
        {
            let _ = self.found.set(found);
        }
    }
}

/// How a thread is scheduled while its reservation is in force.
#[derive(Debug)]
pub(crate) enum Held {
    /// By the kernel's reservations: the one that it has now, to the nanosecond.
    Deadline,
    /// As one of these, from slot to slot.
    OneOf(Vec<Policy>),
}

impl Ought {
    /// A word that changes whenever what is expected does.
    fn word(&self) -> u32 {
        match self {
            Self::Kept(_) => OWN,
            Self::Placed { standing, .. } => standing.word.load(Ordering::SeqCst),
        }
    }

    /// Whether a policy is what is expected while the word is this.
    fn includes(&self, word: u32, policy: Policy) -> bool {
        match self {
            Self::Kept(kept) => policy == kept.policy,
            Self::Placed { own, highest, .. } if word & STATES == OWN => {
                policy == *own || highest.is_some_and(|highest| is_up_to(highest, policy))
            }
            Self::Placed { standing, held, .. } => match held {
                Held::Deadline => policy == standing.reserved(),
                Held::OneOf(policies) => policies.contains(&policy),
            },
        }
    }

    fn describe(&self, word: u32) -> String {
        match self {
            Self::Kept(kept) => kept.policy.to_string(),
            Self::Placed { own, .. } if word & STATES == OWN => own.to_string(),
            Self::Placed { standing, held, .. } => match held {
                Held::Deadline => standing.reserved().to_string(),
                Held::OneOf(policies) => {
                    let all: Vec<String> = policies.iter().map(ToString::to_string).collect();
                    all.join(" or ")
                }
            },
        }
    }
}

/// Whether a thread of some priority up to this has that policy.
fn is_up_to(highest: Priority, policy: Policy) -> bool {
    let mut all = (0..=highest.level()).filter_map(Priority::new);
    all.any(|priority| policy == ranks::of_thread(priority).into())
}

/// What a thread is by its own doing: written by itself, so that who looks at it from outside knows what to expect. Whoever reads the same
/// word before and after looking knows that nothing of it changed between.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    word: AtomicU32,
    /// What it has reserved by the kernel, X and Y in nanoseconds.
    reserved: [AtomicU64; 2],
}

/// It is just being changed, or not settled yet; also when it has gone.
const CHANGING: u32 = 0;
/// It has its own policy.
const OWN: u32 = 1;
/// Its reservation is in force.
const HELD: u32 = 2;
const STATES: u32 = 3;

impl Standing {
    /// The thread's policy is about to change, or its thread to end.
    pub(crate) fn changes(&self) {
        self.set(CHANGING);
    }

    /// It has its own policy.
    pub(crate) fn is_own(&self) {
        self.set(OWN);
    }

    /// Its reservation is in force.
    pub(crate) fn is_held(&self) {
        self.set(HELD);
    }

    /// This reservation by the kernel is in force.
    pub(crate) fn is_reserved(&self, reservation: Reservation) {
        let service = reservation.service().as_nanos();
        let period = reservation.period().as_nanos();
        for (word, nanos) in self.reserved.iter().zip([service, period]) {
            word.store(nanos, Ordering::SeqCst);
        }
        self.is_held();
    }

    /// The policy by which it has that.
    fn reserved(&self) -> Policy {
        let [service, period] = [0, 1].map(|n: usize| self.reserved[n].load(Ordering::SeqCst));
        Policy::Deadline(DeadlineRequest {
            runtime: Service::from_nanos(service),
            deadline: Span::from_nanos(period),
            period: Span::from_nanos(period),
        })
    }

    /// Only the thread itself writes.
    fn set(&self, state: u32) {
        let before = self.word.load(Ordering::SeqCst) & !STATES;
        let next = before.wrapping_add(STATES + 1) | state;
        self.word.store(next, Ordering::SeqCst);
    }
}

/// What somebody made of a thread of ours.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Changed {
    pub(crate) role: Role,
    /// The processor that it belongs to.
    pub(crate) cpu: usize,
    /// What it has now.
    pub(crate) policy: Policy,
    /// In words.
    pub(crate) what: String,
}

impl Own {
    /// What it has found of itself at some time that it ought not to be.
    pub(crate) fn found(&self) -> Option<Changed> {
        let Ought::Kept(kept) = &self.ought else {
            return None;
        };
        let policy = *kept.found.get()?;
        Some(self.told(policy, self.has(OWN, policy)))
    }

    fn told(&self, policy: Policy, what: String) -> Changed {
        Changed {
            role: self.role,
            cpu: self.cpu,
            policy,
            what,
        }
    }

    fn has(&self, word: u32, policy: Policy) -> String {
        let ought = self.ought.describe(word);
        format!("{} had {policy} instead of {ought}", self.who)
    }

    /// What somebody has made of it that it ought not to be. Two system calls.
    pub(crate) fn changed(&self) -> Option<Changed> {
        let Self { who, cpu, .. } = self;
        let word = self.ought.word();
        // A thread that has ended is nobody's any more.
        let policy = sched::policy(self.tid).ok()?;
        let affinity = sched::affinity(self.tid).ok()?;
        if word & STATES == CHANGING || self.ought.word() != word {
            return None;
        }
        let what = if !self.ought.includes(word, policy) {
            self.has(word, policy)
        } else if !self.may_wander && affinity != CpuSet::single(*cpu) {
            format!("{who} might run on processors {affinity} instead of {cpu}")
        } else {
            return None;
        };
        Some(self.told(policy, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The calling thread, as if it belonged to processor 0 and could be anywhere.
    fn own(ought: Ought) -> Own {
        Own {
            tid: Tid::current(),
            who: "the dispatcher of processor 0".to_owned(),
            role: Role::Dispatcher,
            cpu: 0,
            may_wander: true,
            ought,
        }
    }

    #[test]
    fn a_thread_that_is_not_what_it_ought_to_be_is_told_with_what_it_has() {
        let is = sched::policy(Tid::current()).unwrap();
        let always = |policy| Ought::Kept(Arc::new(Kept::new(Tid::current(), policy)));
        assert_eq!(own(always(is)).changed(), None);
        let changed = own(always(Policy::Fifo(98))).changed().unwrap();
        let what =
            format!("the dispatcher of processor 0 had {is} instead of SCHED_FIFO priority 98");
        assert_eq!((changed.policy, changed.what), (is, what));
        let elsewhere = Own {
            cpu: 60_000,
            may_wander: false,
            ..own(always(is))
        };
        let what = elsewhere.changed().unwrap().what;
        assert!(what.ends_with("instead of 60000"), "{what}");
    }

    /// It was that between two looks from outside, and is not any more.
    #[test]
    fn what_a_thread_has_found_of_itself_stays_known() {
        let is = sched::policy(Tid::current()).unwrap();
        for ought in [is, Policy::Fifo(98)] {
            let kept = Arc::new(Kept::new(Tid::current(), ought));
            let one = own(Ought::Kept(Arc::clone(&kept)));
            assert_eq!(one.found(), None, "it has not looked");
            kept.look();
            let what = format!("the dispatcher of processor 0 had {is} instead of {ought}");
            let expected = (ought != is).then_some(what);
            assert_eq!(one.found().map(|found| found.what), expected);
            assert_eq!(one.changed(), one.found());
        }
    }

    #[test]
    fn what_a_thread_does_to_itself_is_no_change() {
        let is = sched::policy(Tid::current()).unwrap();
        let standing = Arc::new(Standing::default());
        let placed = |own, held| Ought::Placed {
            standing: Arc::clone(&standing),
            own,
            highest: None,
            held,
        };
        let elsewhere = Policy::Fifo(80);
        let reserved = own(placed(elsewhere, Held::OneOf(vec![is, elsewhere])));
        let by_kernel = own(placed(is, Held::Deadline));
        assert_eq!(reserved.changed(), None, "it has not settled");
        standing.is_own();
        assert!(reserved.changed().is_some());
        assert_eq!(by_kernel.changed(), None);
        standing.is_held();
        assert_eq!(reserved.changed(), None);
        standing.changes();
        standing.is_reserved(two_of_eight());
        let what = by_kernel.changed().unwrap().what;
        let ought = Policy::Deadline(two_of_eight().into());
        assert!(what.ends_with(&format!("instead of {ought}")), "{what}");
        standing.changes();
        assert_eq!(by_kernel.changed(), None);
    }

    #[test]
    fn who_may_be_raised_ought_to_have_no_more_than_that() {
        let standing = Arc::new(Standing::default());
        let level = |level| Priority::new(level).expect("there are 32");
        let ought = Ought::Placed {
            standing: Arc::clone(&standing),
            own: ranks::of_thread(level(20)).into(),
            highest: Some(level(24)),
            held: Held::OneOf(Vec::new()),
        };
        standing.is_own();
        for (priority, may) in [(8, true), (20, true), (24, true), (25, false), (31, false)] {
            let policy = ranks::of_thread(level(priority)).into();
            assert_eq!(ought.includes(ought.word(), policy), may, "{priority}");
        }
    }

    fn two_of_eight() -> Reservation {
        Reservation::new(Service::from_millis(2), Span::from_millis(8)).unwrap()
    }

    #[test]
    fn of_the_kernels_reservations_only_the_one_in_force_is_what_a_thread_ought_to_have() {
        let standing = Arc::new(Standing::default());
        let ought = Ought::Placed {
            standing: Arc::clone(&standing),
            own: Policy::Fifo(80),
            highest: None,
            held: Held::Deadline,
        };
        let may_have = |service_ms, period_ms| {
            let service = Service::from_millis(service_ms);
            let policy = Reservation::new(service, Span::from_millis(period_ms)).unwrap();
            ought.includes(ought.word(), Policy::Deadline(policy.into()))
        };
        standing.is_reserved(two_of_eight());
        assert!(may_have(2, 8));
        // The same share, a smaller one, the one that it had before.
        assert_eq!([may_have(1, 4), may_have(1, 8)], [false; 2]);
        standing
            .is_reserved(Reservation::new(Service::from_millis(1), Span::from_millis(8)).unwrap());
        assert_eq!([may_have(2, 8), may_have(1, 8)], [false, true]);
    }
}
