//! CPU reservations: what is asked for, who enforces it, and what was granted.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::{Priority, Service, Span};
use derive_more::Display;

/// *X out of every Y*: at least `service` of processor time in **every** window of length `period`, while runnable
/// (Jones, Saroiu, "Predictability Requirements of a Soft Modem", §5.4: continuously guaranteed).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Display)]
#[display("{service}/{period}")]
pub struct Reservation {
    service: Service,
    period: Span,
}

/// Why a pair of numbers is no reservation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReservationError {
    /// The service is zero.
    #[error("the service of a reservation must be more than zero")]
    NoService,
    /// The period is zero.
    #[error("the period of a reservation must be more than zero")]
    NoPeriod,
    /// The period is longer than [`Reservation::LONGEST`].
    #[error("a period of {period} is more than a day, the longest that a reservation may have")]
    TooLong {
        /// What was asked for.
        period: Span,
    },
    /// More service than one processor has in the period.
    #[error(
        "{} of service does not fit a period of {period}: one processor gives at most {}",
        service.beside(period.as_full_service()), period.beside(service.as_dedicated_span())
    )]
    MoreThanAProcessor {
        /// What was asked for.
        service: Service,
        /// In every so much.
        period: Span,
    },
}

impl Reservation {
    /// The longest period, a day: so many of them fit what an [`Instant`](crate::Instant) can tell that none is beyond it.
    pub const LONGEST: Span = Span::from_secs(86_400);

    /// `service` out of every `period`; both more than zero, the service no more than the period, and that no more than [`LONGEST`](Self::LONGEST).
    pub const fn new(service: Service, period: Span) -> Result<Self, ReservationError> {
        if service.is_zero() {
            return Err(ReservationError::NoService);
        }
        if period.is_zero() {
            return Err(ReservationError::NoPeriod);
        }
        if period.as_nanos() > Self::LONGEST.as_nanos() {
            return Err(ReservationError::TooLong { period });
        }
        if service.as_nanos() > period.as_nanos() {
            return Err(ReservationError::MoreThanAProcessor { service, period });
        }
        Ok(Self { service, period })
    }

    /// X: the service in every window.
    pub const fn service(self) -> Service {
        self.service
    }

    /// Y: the window's length.
    pub const fn period(self) -> Span {
        self.period
    }

    /// Y − X: the longest time without service that the promise allows to a thread that never blocks.
    pub const fn longest_gap(self) -> Span {
        Span::from_nanos(self.period.as_nanos() - self.service.as_nanos())
    }

    /// The share of one processor in parts per million, rounded up.
    pub const fn share_ppm(self) -> u64 {
        let share =
            (self.service.as_nanos() as u128 * 1_000_000).div_ceil(self.period.as_nanos() as u128);
        share as u64
    }
}

/// Who enforces a reservation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Display)]
#[display(rename_all = "lowercase")]
pub enum Enforcer {
    /// The kernel's `SCHED_DEADLINE`: reservation only, nothing outside it.
    Deadline,
    /// A table of time slots, precomputed, executed by a dispatcher (Rialto's way).
    Slots,
}

impl Enforcer {
    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Deadline => Self::Slots,
            Self::Slots => Self::Deadline,
        }
    }
}

/// What becomes of the holder of a reservation outside its reserved time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outside {
    /// It competes as the thread that it is placed as.
    AsPlaced,
    /// It competes as a thread of this priority, whatever its priority was before it had the reservation (Rialto/NT, §5.4; in the
    /// study a normal one, §6.4.2).
    Timesharing(Priority),
    /// It does not run (§6.6: the modified scheduler of table 3).
    Confined,
}

/// A reservation as an activity asks for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReservationRequest {
    /// How much, how often.
    pub reservation: Reservation,
    /// Who enforces it.
    pub enforcer: Enforcer,
    /// What becomes of the holder outside its reserved time.
    pub outside: Outside,
    /// Whether it begins with the run, or when the activity asks by [`Step::BeginReservation`](crate::program::Step).
    pub begins_at_start: bool,
}

/// Whether what was granted is enforced. Nothing is called granted that is not.
#[derive(Clone, PartialEq, Eq, Debug, Display)]
pub enum Grade {
    /// Nobody else's load or bug takes it away.
    #[display("enforced")]
    Enforced,
    /// Something took from it, and whether that was somebody's or the machine's own doing cannot be told. It convicts nobody, and proves nothing.
    #[display("uncertain")]
    Uncertain {
        /// The reason: what was seen.
        reason: String,
    },
    /// Somebody could take it away: who, and how.
    #[display("unenforced")]
    Unenforced {
        /// The reason, naming those who interfere.
        reason: String,
    },
}

/// Who ranks above a slot on its processor and is not of the program, as far as that can be seen.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Strangers {
    /// Those who were seen.
    pub seen: Vec<Stranger>,
    /// Those who are started with the program, by name: they count by their rank, whatever they turn out to do.
    pub started: Vec<String>,
    /// Why there may be others; `None` where everybody can be seen.
    pub unseen: Option<String>,
}

/// One who ranks above a slot on its processor and is not of the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stranger {
    /// How it is named in messages.
    pub name: String,
    /// The processor time it has had since it began; `None` where nobody says.
    pub had: Option<Service>,
}

impl Strangers {
    /// Whoever had no more of a processor than this from one look at it to the next held up nobody there for longer: as little as the
    /// witness tolerates.
    pub const UNNOTICED: Service = Service::from_micros(100);

    /// Whether all who had so much of one processor from one look at them to the next held up nobody there for longer than goes [unnoticed](Self::UNNOTICED).
    pub fn go_unnoticed(had: impl IntoIterator<Item = Service>) -> bool {
        had.into_iter().sum::<Service>() <= Self::UNNOTICED
    }

    /// The names of those who had more of a processor since these were looked at `before` than goes [unnoticed](Self::UNNOTICED), or of whom that is not known.
    pub fn active_since<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = &'a str> {
        let active = self.seen.iter().filter(|stranger| {
            let mut known = before.seen.iter();
            let earlier = known.find(|earlier| earlier.name == stranger.name);
            let had = earlier.and_then(|earlier| stranger.had.zip(earlier.had));
            // One that has had less than before is another.
            had.is_none_or(|(now, then)| now < then || now.saturating_sub(then) > Self::UNNOTICED)
        });
        active.map(|stranger| stranger.name.as_str())
    }

    /// Why whoever is outranked there may not have the processor, by these and by others of the program, by name: they go first, or nobody can see who does.
    /// `None` where nobody does.
    pub fn reason<'a>(
        &'a self,
        own: impl Iterator<Item = &'a str>,
        outranked: Outranked,
    ) -> Option<String> {
        let seen = self.seen.iter().map(|stranger| stranger.name.as_str());
        let started = self.started.iter().map(String::as_str);
        let names = own.chain(started).chain(seen);
        let names = names.collect::<Vec<&str>>().join(", ");
        let above = match outranked {
            Outranked::Slot => "ranked above the slot on its processor",
            Outranked::Rank => "somebody else here goes first",
        };
        let who = match outranked {
            Outranked::Slot => "who outranks the slot",
            Outranked::Rank => "who goes first here",
        };
        match &self.unseen {
            None if names.is_empty() => None,
            None => Some(format!("{above}: {names}")),
            Some(why) if names.is_empty() => Some(format!("cannot see {who}: {why}")),
            Some(why) => Some(format!(
                "{above}: {names}; cannot see who else outranks it: {why}"
            )),
        }
    }
}

/// Whom those outrank who go first on a processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outranked {
    /// Whoever holds a slot.
    Slot,
    /// Whoever has no slots there, and runs by its rank.
    Rank,
}

impl Grade {
    /// The grade of slots on whose processor these rank above them who are not kept from it: of the program, by name, and of others.
    #[must_use]
    pub fn below<'a>(own: impl Iterator<Item = &'a str>, strangers: &'a Strangers) -> Self {
        match strangers.reason(own, Outranked::Slot) {
            None => Self::Enforced,
            Some(reason) => Self::Unenforced { reason },
        }
    }

    /// Why it is not enforced; `None` if it is.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Enforced => None,
            Self::Uncertain { reason } | Self::Unenforced { reason } => Some(reason),
        }
    }

    /// How little it is worth: the more, the less.
    pub const fn rank(&self) -> u8 {
        match self {
            Self::Enforced => 0,
            Self::Uncertain { .. } => 1,
            Self::Unenforced { .. } => 2,
        }
    }

    /// What it is once this too was found: a grade is that of the worst moment.
    ///
    /// ```
    /// use laxity_model::Grade;
    ///
    /// let uncertain = Grade::Uncertain { reason: "it was held".into() };
    /// let unenforced = Grade::Unenforced { reason: "a rogue is above it".into() };
    /// let both = unenforced.clone().and(&uncertain);
    /// assert_eq!(both.to_string(), "unenforced");
    /// assert_eq!(both.reason(), Some("a rogue is above it; it was held"));
    /// assert_eq!(uncertain.clone().and(&Grade::Enforced), uncertain);
    /// ```
    #[must_use]
    pub fn and(self, found: &Self) -> Self {
        let reasons = [self.reason(), found.reason()];
        let reason = reasons.into_iter().flatten().collect::<Vec<_>>().join("; ");
        let worse = if found.rank() > self.rank() {
            found
        } else {
            &self
        };
        match worse {
            Self::Enforced => Self::Enforced,
            Self::Uncertain { .. } => Self::Uncertain { reason },
            Self::Unenforced { .. } => Self::Unenforced { reason },
        }
    }
}

/// A reservation as it was granted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grant {
    /// What was granted.
    pub reservation: Reservation,
    /// Who enforces it.
    pub enforcer: Enforcer,
    /// How firmly it is enforced.
    pub grade: Grade,
    /// Whether it was ever in force: one that begins when its activity asks for it may never have been.
    pub has_begun: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_sums_are_refused() {
        let (two, eight) = (Service::from_millis(2), Span::from_millis(8));
        assert!(Reservation::new(two, eight).is_ok());
        assert_eq!(
            Reservation::new(Service::ZERO, eight),
            Err(ReservationError::NoService)
        );
        assert_eq!(
            Reservation::new(two, Span::ZERO),
            Err(ReservationError::NoPeriod)
        );
        let longer = Reservation::LONGEST + Span::from_nanos(1);
        assert!(Reservation::new(two, Reservation::LONGEST).is_ok());
        assert_eq!(
            Reservation::new(two, longer),
            Err(ReservationError::TooLong { period: longer })
        );
        let period = Span::from_millis(1);
        assert_eq!(
            Reservation::new(two, period),
            Err(ReservationError::MoreThanAProcessor {
                service: two,
                period
            })
        );
    }

    #[test]
    fn share_rounds_up() {
        let third = Reservation::new(Service::from_millis(1), Span::from_millis(3)).unwrap();
        assert_eq!(third.share_ppm(), 333_334);
        assert_eq!(third.longest_gap(), Span::from_millis(2));
    }
}
