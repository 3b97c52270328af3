//! Three classes of those who want a processor or a link.
//!
//! Real time that is *current* goes by deadline, or by its channel's priority; *best effort* comes behind it, first come, first served; real time that is *early*, before its logical arrival, by logical arrival (§2.1, §4.2: Q1,
//! Q2 and Q3). What is early waits until it is current, or until it is so much before that; or it goes when nobody else wants to, for which the paper has *proxies* that compete for early handlers; or, which the paper shows to be wrong
//! (§5.3, figure 7b), ahead of best effort.
//!
//! The same code orders handlers on a processor, who look after every P packets whether somebody else is to go, and packets on a link.

use alloc::boxed::Box;
use alloc::vec;

use super::queue::{Links, Queue};
use crate::base::ready::ReadyOf;
use crate::{Instant, Span};

/// What somebody wants to go with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Claim {
    /// A message of a channel, or a packet of one.
    RealTime {
        /// From here on it is current.
        logical: Instant,
        /// By then it is due.
        deadline: Instant,
    },
    /// Never due.
    BestEffort,
}

/// When real time goes that is early.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Early {
    /// Not before it is current, or so much before that: the horizon, zero for none. The processor or link stays idle rather.
    Held {
        /// How much before its logical arrival it counts as current.
        horizon: Span,
    },
    /// When nobody else wants to go.
    Last,
    /// Ahead of best effort: what not to do.
    BeforeBestEffort,
}

/// In which order current real time goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum By {
    /// The earliest deadline first; of equal ones, who came first.
    Deadline,
    /// The smallest number first, which each has for good: [`Classes::rank`].
    Priority,
}

/// Who goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Next {
    /// This one, who stays in its queue until it leaves.
    Goes(u32),
    /// Nobody who is there before then.
    NotBefore(Instant),
    /// Nobody is there.
    Nobody,
}

/// Those who want to go.
///
/// O(log n) to enter, to leave and to become current, O(1) to ask; nothing is allocated after it is made.
#[derive(Clone, Debug)]
pub struct Classes {
    early_goes: Early,
    by: By,
    /// Those of real time: [`EARLY`] by logical arrival, [`CURRENT`] by rank.
    real_time: [ReadyOf; 2],
    best_effort: Queue,
    links: Links,
    members: Box<[Member]>,
}

/// What is known of one.
#[derive(Clone, Copy, Debug)]
struct Member {
    /// Its place among current ones.
    rank: u64,
    class: Class,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Class {
    Nowhere,
    /// Of real time, in this queue.
    RealTime(usize),
    BestEffort,
}

const EARLY: usize = 0;
const CURRENT: usize = 1;

impl Classes {
    /// For members from 0 to below this number.
    #[must_use]
    pub fn new(members: usize, early_goes: Early, by: By) -> Self {
        let nowhere = Member {
            rank: 0,
            class: Class::Nowhere,
        };
        Self {
            early_goes,
            by,
            real_time: [ReadyOf::new(members), ReadyOf::new(members)],
            best_effort: Queue::EMPTY,
            links: Links::new(members),
            members: vec![nowhere; members].into(),
        }
    }

    /// The place of this member among current ones, where that is [by priority](By::Priority): the smallest number goes first. Before it is said, all have the first.
    pub fn rank(&mut self, who: u32, rank: u64) {
        self.members[who as usize].rank = rank;
    }

    /// A member that is not there wants to go. It is behind its equals.
    ///
    /// # Panics
    ///
    /// It is there already, or there is no such member.
    #[inline]
    pub fn enter(&mut self, who: u32, claim: Claim, now: Instant) {
        assert!(!self.holds(who), "member {who} is there");
        self.renew(who, claim, now);
    }

    /// A member wants to go with this from now on, whatever it wanted before: as if it left and entered, and in less time where it stays in its class. It is behind its equals.
    ///
    /// # Panics
    ///
    /// There is no such member.
    #[inline]
    pub fn renew(&mut self, who: u32, claim: Claim, now: Instant) {
        let had = self.members[who as usize].class;
        let (class, rank) = self.class_of(who, claim, now);
        if let (Class::RealTime(had), Class::RealTime(queue)) = (had, class)
            && had == queue
        {
            return self.real_time[queue].yield_now(who, Some(rank));
        }
        self.leave(who);
        self.members[who as usize].class = class;
        match class {
            Class::RealTime(queue) => self.real_time[queue].enter(who, rank),
            _ => self.best_effort.push(&mut self.links, who),
        }
    }

    /// Where it goes that wants to go with this, and its rank there.
    #[inline]
    fn class_of(&mut self, who: u32, claim: Claim, now: Instant) -> (Class, u64) {
        let Claim::RealTime { logical, deadline } = claim else {
            return (Class::BestEffort, 0);
        };
        let member = &mut self.members[who as usize];
        if self.by == By::Deadline {
            member.rank = deadline.as_nanos();
        }
        let from = match self.early_goes {
            Early::Held { horizon } => logical.saturating_sub(horizon),
            Early::Last | Early::BeforeBestEffort => logical,
        };
        // Nobody can foresee which it is, so nothing branches on it.
        let queue = usize::from(from <= now);
        (
            Class::RealTime(queue),
            [from.as_nanos(), member.rank][queue],
        )
    }

    /// It wants no more. Nothing happens if it is not there.
    #[inline]
    pub fn leave(&mut self, who: u32) {
        let class = core::mem::replace(&mut self.members[who as usize].class, Class::Nowhere);
        match class {
            Class::Nowhere => {}
            Class::RealTime(queue) => self.real_time[queue].leave(who),
            Class::BestEffort => self.best_effort.remove(&mut self.links, who),
        }
    }

    /// Whether it is there.
    #[inline]
    #[must_use]
    pub fn holds(&self, who: u32) -> bool {
        self.members[who as usize].class != Class::Nowhere
    }

    /// Who goes now. What has become current by now is that from here on.
    #[inline]
    pub fn next(&mut self, now: Instant) -> Next {
        self.promote(now);
        let best_effort = self.best_effort.first();
        let early = self.real_time[EARLY].first();
        let (second, third) = match self.early_goes {
            Early::Held { .. } => (best_effort, None),
            Early::Last => (best_effort, early),
            Early::BeforeBestEffort => (early, best_effort),
        };
        match self.real_time[CURRENT].first().or(second).or(third) {
            Some(who) => Next::Goes(who),
            None => self.real_time[EARLY].least().map_or(Next::Nobody, |from| {
                Next::NotBefore(Instant::from_nanos(from))
            }),
        }
    }

    /// When the next of those who were early when it was last asked becomes current; [`Instant::MAX`] if nobody does.
    #[must_use]
    pub fn turns_current(&self) -> Instant {
        let early = &self.real_time[EARLY];
        early.least().map_or(Instant::MAX, Instant::from_nanos)
    }

    /// Of those there, in the order of their logical arrivals, who is current by now.
    #[inline]
    fn promote(&mut self, now: Instant) {
        let [early, current] = &mut self.real_time;
        while let Some(who) = early.first()
            && early.least().is_some_and(|from| from <= now.as_nanos())
        {
            let member = &mut self.members[who as usize];
            member.class = Class::RealTime(CURRENT);
            early.leave(who);
            current.enter(who, member.rank);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum Op {
        Enter(u32, Claim),
        Renew(u32, Claim),
        Leave(u32),
        Go,
        Later(u64),
    }

    fn op() -> impl Strategy<Value = Op> {
        let who = 0..8_u32;
        let claim = prop_oneof![
            3 => (0..60_u64, 0..20_u64).prop_map(|(logical, delay)| Claim::RealTime {
                logical: Instant::from_nanos(logical),
                deadline: Instant::from_nanos(logical + delay),
            }),
            1 => Just(Claim::BestEffort),
        ];
        prop_oneof![
            4 => (who.clone(), claim.clone()).prop_map(|(who, claim)| Op::Enter(who, claim)),
            3 => (who.clone(), claim).prop_map(|(who, claim)| Op::Renew(who, claim)),
            1 => who.prop_map(Op::Leave),
            2 => Just(Op::Go),
            2 => (0..6_u64).prop_map(Op::Later),
        ]
    }

    fn early() -> impl Strategy<Value = Early> {
        prop_oneof![
            (0..9_u64).prop_map(|horizon| Early::Held {
                horizon: Span::from_nanos(horizon)
            }),
            Just(Early::Last),
            Just(Early::BeforeBestEffort),
        ]
    }

    /// What the oracle knows of one: what it wants, and how many had entered its class before it did.
    type Waiting = (u32, Claim, usize);

    /// The oracle: all are looked at, by class and then by what counts in it. When two became current at different instants the earlier is first of equals.
    fn next(all: &[Waiting], early_goes: Early, now: Instant) -> Next {
        let horizon = match early_goes {
            Early::Held { horizon } => horizon,
            _ => Span::ZERO,
        };
        let place = |(who, claim, came): &Waiting| match *claim {
            Claim::BestEffort => Some((1, 0, 0, *came, *who)),
            Claim::RealTime { logical, deadline } => {
                let from = logical.saturating_sub(horizon);
                if from <= now {
                    return Some((0, deadline.as_nanos(), 0, *came, *who));
                }
                let class = match early_goes {
                    Early::Held { .. } => return None,
                    Early::Last => 2,
                    Early::BeforeBestEffort => 1,
                };
                // Ahead of best effort, which has the same class and a greater second number.
                Some((class, 0, from.as_nanos(), *came, *who))
            }
        };
        let key = |waiting: &Waiting| {
            let (class, first, second, came, who) = place(waiting)?;
            let is_effort = matches!(waiting.1, Claim::BestEffort);
            Some(((class, is_effort, first, second, came), who))
        };
        if let Some((_, who)) = all.iter().filter_map(key).min() {
            return Next::Goes(who);
        }
        let from = all.iter().filter_map(|(_, claim, _)| match claim {
            Claim::RealTime { logical, .. } => Some(logical.saturating_sub(horizon)),
            Claim::BestEffort => None,
        });
        from.min().map_or(Next::Nobody, Next::NotBefore)
    }

    proptest! {
        #[test]
        fn goes_as_a_list_that_is_searched(
            early_goes in early(),
            ops in proptest::collection::vec(op(), 0..200),
        ) {
            let mut classes = Classes::new(8, early_goes, By::Deadline);
            let mut all: Vec<Waiting> = Vec::new();
            let mut now = Instant::ZERO;
            let mut came = 0;
            for op in ops {
                let goes = classes.next(now);
                let due = |who: u32| all.iter().find(|one| one.0 == who).map(|one| one.1);
                // Among current ones of one deadline any may go: who became current first is the heap's affair.
                match (goes, next(&all, early_goes, now)) {
                    (Next::Goes(who), Next::Goes(expected)) if who != expected => {
                        let deadlines = [who, expected].map(|who| match due(who) {
                            Some(Claim::RealTime { deadline, logical }) => {
                                let horizon = if let Early::Held { horizon } = early_goes { horizon } else { Span::ZERO };
                                Some((deadline, logical.saturating_sub(horizon) <= now))
                            }
                            _ => None,
                        });
                        prop_assert!(matches!(deadlines, [Some((a, true)), Some((b, true))] if a == b), "{:?}", (who, expected, deadlines));
                    }
                    (goes, expected) => prop_assert_eq!(goes, expected),
                }
                match op {
                    Op::Enter(who, claim) => if !classes.holds(who) {
                        came += 1;
                        classes.enter(who, claim, now);
                        all.push((who, claim, came));
                    },
                    Op::Renew(who, claim) => {
                        came += 1;
                        classes.renew(who, claim, now);
                        all.retain(|one| one.0 != who);
                        all.push((who, claim, came));
                    }
                    Op::Leave(who) => {
                        classes.leave(who);
                        all.retain(|one| one.0 != who);
                    }
                    Op::Go => if let Next::Goes(who) = goes {
                        classes.leave(who);
                        all.retain(|one| one.0 != who);
                    },
                    Op::Later(nanos) => now += Span::from_nanos(nanos),
                }
                for who in 0..8 {
                    prop_assert_eq!(classes.holds(who), all.iter().any(|one| one.0 == who));
                }
            }
        }
    }

    #[test]
    fn by_priority_a_later_deadline_goes_first_that_has_the_smaller_number() {
        let mut classes = Classes::new(2, Early::Last, By::Priority);
        classes.rank(1, 5);
        classes.rank(0, 7);
        let real = |deadline| Claim::RealTime {
            logical: Instant::ZERO,
            deadline: Instant::from_nanos(deadline),
        };
        classes.enter(0, real(10), Instant::ZERO);
        classes.enter(1, real(20), Instant::ZERO);
        assert_eq!(classes.next(Instant::ZERO), Next::Goes(1));
    }
}
