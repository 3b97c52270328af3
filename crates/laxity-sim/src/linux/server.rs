//! `SCHED_DEADLINE`: Abeni and Buttazzo's constant bandwidth server, as the kernel has it.

use laxity_model::{Instant, Reservation, Service};

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
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether it waits for its next budget, which comes at [`Self::deadline`].
    #[must_use]
    pub fn is_throttled(&self) -> bool {
        self.throttled
    }

    /// What is left of the budget.
    #[must_use]
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
