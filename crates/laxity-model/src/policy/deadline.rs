//! `SCHED_DEADLINE`: Abeni and Buttazzo's constant bandwidth server, as the kernel has it, and the global order of earliest deadlines.

use alloc::vec::Vec;

use crate::{Instant, Reservation, Service};

/// The server of one thread: a budget in every period, a deadline by which the kernel ranks it, and a debt if the kernel noticed too late
/// that the budget was used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Server {
    reservation: Reservation,
    /// What is left of the budget, in nanoseconds; below zero it is owed.
    left_ns: i64,
    deadline: Instant,
    throttled: bool,
}

impl Server {
    /// A full budget now.
    #[must_use]
    pub fn new(reservation: Reservation, now: Instant) -> Self {
        Self {
            reservation,
            left_ns: budget_ns(reservation),
            deadline: now + reservation.period(),
            throttled: false,
        }
    }

    /// Another budget and period, from the next budget on: at [`Self::deadline`] at the latest, if the thread is ready then.
    pub fn change(&mut self, reservation: Reservation) {
        self.reservation = reservation;
    }

    /// By when the kernel wants the budget used: the earliest runs.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether it waits for its next budget, which comes at [`Self::deadline`].
    pub fn is_throttled(&self) -> bool {
        self.throttled
    }

    /// What is left of the budget.
    pub fn left(&self) -> Service {
        Service::from_nanos(u64::try_from(self.left_ns).unwrap_or(0))
    }

    /// The thread wakes: it goes on with budget and deadline as they are, unless what is left until the deadline would then be more than its share.
    pub fn wake(&mut self, now: Instant) {
        if self.throttled {
            return;
        }
        let until = i128::from(self.deadline.saturating_since(now).as_nanos());
        let share = until * i128::from(budget_ns(self.reservation));
        let period = i128::from(self.reservation.period().as_nanos());
        if i128::from(self.left_ns) * period > share || self.deadline <= now {
            self.renew(now);
        }
    }

    /// The thread has run so long.
    pub fn charge(&mut self, ran: Service) {
        self.left_ns -= i64::try_from(ran.as_nanos()).unwrap_or(i64::MAX / 2);
    }

    /// The kernel looks at the budget: one that is used up throttles. Tells whether it does; if the next budget is due already, it is given.
    pub fn look(&mut self, now: Instant) -> bool {
        if self.left_ns <= 0 && !self.throttled {
            self.throttled = true;
            if self.deadline <= now {
                self.replenish(now);
            }
        }
        self.throttled
    }

    /// The thread gives the rest of its budget away.
    pub fn give_way(&mut self, now: Instant) -> bool {
        self.left_ns = self.left_ns.min(0);
        self.look(now)
    }

    /// The next budgets are given, as many as are owed: each moves the deadline by a period.
    pub fn replenish(&mut self, now: Instant) {
        while self.left_ns <= 0 {
            self.left_ns += budget_ns(self.reservation);
            self.deadline += self.reservation.period();
        }
        if self.deadline <= now {
            self.renew(now);
        }
        self.throttled = false;
    }

    fn renew(&mut self, now: Instant) {
        self.left_ns = budget_ns(self.reservation);
        self.deadline = now + self.reservation.period();
    }
}

fn budget_ns(reservation: Reservation) -> i64 {
    i64::try_from(reservation.service().as_nanos()).unwrap_or(i64::MAX / 2)
}

/// A holder of a server that is ready and not throttled.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Contender {
    /// Its server's deadline.
    pub deadline: Instant,
    /// Its number.
    pub who: u32,
    /// The processor on which it was last.
    pub processor: usize,
}

/// Who has each of so many processors: the earliest deadlines, each where it was if it can stay there; else on the first that is free. Among
/// equal deadlines the lower number comes first.
pub fn assign(mut ready: Vec<Contender>, processors: usize) -> Vec<Option<u32>> {
    ready.sort_unstable();
    ready.truncate(processors);
    let mut given: Vec<Option<u32>> = alloc::vec![None; processors];
    ready.retain(|contender| {
        let place = &mut given[contender.processor];
        let stays = place.is_none();
        *place = place.or(Some(contender.who));
        !stays
    });
    let mut moving = ready.iter().map(|contender| contender.who);
    for free in given.iter_mut().filter(|place| place.is_none()) {
        *free = moving.next();
    }
    debug_assert!(moving.next().is_none(), "there are no more than processors");
    given
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The earliest deadlines run, as many as there are processors, and one that can stay does.
        #[test]
        fn the_earliest_deadlines_have_the_processors(
            ready in prop::collection::vec((0..6_u64, 0..4_usize), 0..10),
            processors in 4..6_usize,
        ) {
            let contenders: Vec<Contender> = (0..)
                .zip(&ready)
                .map(|(who, (deadline, processor))| Contender {
                    deadline: Instant::from_nanos(*deadline),
                    who,
                    processor: *processor,
                })
                .collect();
            let given = assign(contenders.clone(), processors);
            let runs = |contender: &Contender| given.contains(&Some(contender.who));
            let running = contenders.iter().filter(|contender| runs(contender)).count();
            prop_assert_eq!(running, ready.len().min(processors));
            prop_assert_eq!(given.iter().flatten().count(), running);
            for contender in &contenders {
                let earlier = contenders.iter().filter(|other| *other < contender).count();
                prop_assert_eq!(runs(contender), earlier < processors);
                let first_there = contenders
                    .iter()
                    .filter(|other| other.processor == contender.processor)
                    .min() == Some(contender);
                if runs(contender) && first_there {
                    prop_assert_eq!(given[contender.processor], Some(contender.who));
                }
            }
        }

        /// However late it is noticed that a budget is used up, no more is given in the long run than the budget in every period.
        #[test]
        fn a_server_gives_its_share_and_no_more(
            (service, period) in (1..20_u64).prop_flat_map(|service| (Just(service), service..40)),
            late in 0..7_u64,
        ) {
            let reservation = Reservation::new(Service::from_micros(service * 100), crate::Span::from_micros(period * 100));
            let mut server = Server::new(reservation.expect("a reservation"), Instant::ZERO);
            let (mut now, mut received) = (Instant::ZERO, 0);
            while now < Instant::from_millis(200) {
                let run = server.left().as_nanos() + late * 1_000;
                server.charge(Service::from_nanos(run));
                received += run;
                now += crate::Span::from_nanos(run);
                if server.look(now) {
                    now = now.max(server.deadline());
                    server.replenish(now);
                }
                let owed = now.as_nanos() * service / period + service * 100_000;
                prop_assert!(received <= owed + late * 1_000, "{received} of {owed} by {}", now.as_nanos());
            }
        }
    }
}
