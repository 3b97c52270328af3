//! What the kernel counted of a program as a whole, beside what was seen of its threads: who comes and goes between two looks nobody sees.

use std::fmt;

use laxity::command::Used;
use laxity::hold::{Choice, Confinement, ProgramRequest};
use laxity::{Delivery, Enforcer, Service, Unknown};

/// Why it is not known how much of what a program used nobody saw.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Uncounted {
    /// By what was asked for: what was used is compared with nothing.
    NotCompared(&'static str),
    /// What was used cannot be read.
    Unread(Unknown),
}

impl fmt::Display for Uncounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotCompared(why) => f.write_str(why),
            Self::Unread(why) => why.fmt(f),
        }
    }
}

/// What a program has used since its reservation began.
#[derive(Debug)]
pub(super) struct Count {
    /// Until that began, at most.
    before: Result<Service, Unknown>,
    /// Until now, at least.
    until: Result<Service, Unknown>,
}

impl Count {
    /// Of a program that has not begun yet.
    pub(super) const fn from_the_start() -> Self {
        Self {
            before: Ok(Service::ZERO),
            until: Ok(Service::ZERO),
        }
    }

    /// Of one that runs, and has used this.
    pub(super) fn from_now(used: Result<Used, Unknown>) -> Self {
        Self {
            before: used.clone().map(|used| used.most),
            until: used.map(|used| used.least),
        }
    }

    /// It has used this by now, at least. What has gone since is in what was known before.
    pub(super) fn take(&mut self, used: Result<Service, Unknown>) {
        self.until = match (&self.until, used) {
            (Ok(before), Ok(now)) => Ok(now.max(*before)),
            (_, used) => used,
        };
    }

    /// At least so much of it is of the time of the reservation.
    pub(super) fn since(&self) -> Result<Service, Unknown> {
        let (until, before) = (self.until.as_ref()?, self.before.as_ref()?);
        Ok(until.saturating_sub(*before))
    }
}

/// Why what was used cannot be compared with what was seen, where it was looked only at some of the program.
pub(super) fn is_comparable(choice: &Choice) -> Result<(), Uncounted> {
    let is_all = choice.names.is_empty() && choice.only.is_none();
    if is_all && choice.new_threads && choice.children {
        Ok(())
    } else {
        let why = "only some of the program's threads were looked at";
        Err(Uncounted::NotCompared(why))
    }
}

/// How much of what was used nobody saw, where that is [too much](Delivery::too_much_unseen), however the program works.
pub(super) fn too_much_unseen(
    request: &ProgramRequest,
    used: Service,
    seen: &Delivery,
) -> Option<Service> {
    let reservation = request.hold.reservation;
    let stands_outside = request.confinement == Some(Confinement::Freeze);
    let in_a_period = if stands_outside || request.hold.enforcer == Enforcer::Deadline {
        reservation.service()
    } else {
        Service::from_nanos(reservation.period().as_nanos())
    };
    seen.too_much_unseen(used, in_a_period)
}

#[cfg(test)]
mod tests {
    use laxity::hold::HoldRequest;
    use laxity::{Outside, Reservation, Span};

    use super::*;

    fn request(enforcer: Enforcer, confinement: Option<Confinement>) -> ProgramRequest {
        let two_of_eight = Reservation::new(Service::from_millis(2), Span::from_millis(8));
        ProgramRequest {
            hold: HoldRequest {
                name: "it".to_owned(),
                reservation: two_of_eight.unwrap(),
                enforcer,
                outside: Outside::AsPlaced,
                processor: None,
            },
            choice: Choice::default(),
            confinement,
            witnessed: false,
        }
    }

    #[test]
    fn what_nobody_saw_is_too_much_beyond_a_tenth_and_what_comes_before_and_after_all_looks() {
        let free = request(Enforcer::Slots, None);
        let stopped = request(Enforcer::Slots, Some(Confinement::Freeze));
        let by_kernel = request(Enforcer::Deadline, None);
        // Of which, what was used and seen, how many periods are one stretch; what is too much.
        let cases = [
            (&free, 600, 20, 0, Some(580)),
            (&free, 600, 540, 0, None),
            (&free, 600, 539, 0, Some(61)),
            // The kernel counts a little less now and then.
            (&free, 600, 601, 0, None),
            // It began and ended within a period, alone on its processor.
            (&free, 20, 4, 0, None),
            (&free, 20, 3, 0, Some(17)),
            (&stopped, 20, 16, 0, None),
            (&stopped, 20, 15, 0, Some(5)),
            (&by_kernel, 20, 8, 3, None),
            (&by_kernel, 20, 7, 3, Some(13)),
        ];
        for (request, used, seen, together, expected) in cases {
            let delivery = Delivery {
                service: Service::from_millis(seen),
                together,
                ..Delivery::default()
            };
            let found = too_much_unseen(request, Service::from_millis(used), &delivery);
            let expected = expected.map(Service::from_millis);
            assert_eq!(found, expected, "{seen} of {used}, {together}");
        }
    }

    #[test]
    fn what_was_used_before_is_none_of_a_reservation() {
        let ms = Service::from_millis;
        let mut started = Count::from_the_start();
        started.take(Ok(ms(7)));
        assert_eq!(started.since(), Ok(ms(7)));
        let used = |least, most| Used {
            least: ms(least),
            most: ms(most),
        };
        let mut adopted = Count::from_now(Ok(used(100, 140)));
        assert_eq!(adopted.since(), Ok(Service::ZERO));
        // Some of it has gone by the second time, and cannot be counted any more.
        for least in [190, 30] {
            adopted.take(Ok(ms(least)));
            assert_eq!(adopted.since(), Ok(ms(50)));
        }
        let hidden = || Unknown("hidden".to_owned());
        adopted.take(Err(hidden()));
        assert_eq!(adopted.since(), Err(hidden()));
        assert_eq!(Count::from_now(Err(hidden())).since(), Err(hidden()));
    }

    #[test]
    fn where_only_some_were_looked_at_nothing_is_compared() {
        let all = Choice {
            new_threads: true,
            children: true,
            ..Choice::default()
        };
        assert_eq!(is_comparable(&all), Ok(()));
        let some = [
            Choice {
                children: false,
                ..all.clone()
            },
            Choice {
                names: vec!["audio".to_owned()],
                ..all
            },
        ];
        for choice in some {
            assert!(is_comparable(&choice).is_err(), "{choice:?}");
        }
    }
}
