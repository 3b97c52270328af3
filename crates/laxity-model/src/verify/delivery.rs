//! What the holder of a reservation received, period by period, as it is seen from outside: by somebody who looks now and again at what
//! the kernel counts of it, and need not know what it does.
//!
//! A period was *kept* where its holder was kept from the processor for no more than the reservation leaves to others. So a holder that
//! sleeps is not taken for one that gets nothing, and one that wants more than it has reserved is not taken for one that is deprived.

use alloc::{format, vec};

use super::contract::{
    Bound, Contract, Doubts, HaltsUnseen, Kind, Limit, Observations, Phase, Quantity, RunFacts,
    Statistic, share_ppm,
};
use crate::enforce::KERNELS_OWN;
use crate::{Grade, Reservation, Service, Span};

mod halts;
mod look;
mod meter;

pub use halts::Halts;
pub use look::{Held, Look, Stretch, Turn};
pub use meter::{Meter, UNCOUNTED};

/// Periods in which the holder of a reservation did not have what is reserved, or had more than that though it has nothing besides.
pub const SHORT_PERIODS: Quantity = Quantity::tally("short_periods");
/// Stretches of several periods that are seen as one, in which it did not have what is reserved for all of them: in at least one period of each it was short; or
/// had more. How many periods were short is not known then.
pub const SHORT_STRETCHES: Quantity = Quantity::tally("short_stretches");
/// Periods in which it used up what is reserved.
pub const OVERRUNS: Quantity = Quantity::tally("overruns");

/// The holder of a reservation, of which nothing but a [`Delivery`] is known.
pub const KIND: Kind = Kind {
    name: "program",
    quantities: &[
        Quantity::SERVICE_GAP,
        SHORT_PERIODS,
        SHORT_STRETCHES,
        OVERRUNS,
    ],
};

/// Of a hundred undisturbed periods so many at most may be short.
const SHORT_PERCENT: u64 = 2;
/// Of what a program used, one part of so many may not have been seen.
const UNNOTICED: u64 = 10;

impl Delivery {
    /// What a contract is judged by: of gaps the largest alone is known. Nothing, where it asked for nothing in any period that was seen; and nothing of single
    /// periods, where only several together were.
    pub fn observations(&self) -> Observations {
        let mut seen = Observations::new();
        let mut record = |quantity, value, disturbed| {
            seen.record(quantity, &Phase::RUN, value, disturbed);
        };
        if self.periods > self.asleep {
            record(
                Quantity::SERVICE_GAP,
                self.largest_gap_least.as_nanos(),
                false,
            );
            record(self.short(), self.periods - self.kept, false);
            if !self.is_of_several() {
                record(OVERRUNS, self.overruns, false);
            }
        }
        if self.disturbed > 0 {
            let gap = self.largest_gap_disturbed.as_nanos();
            record(Quantity::SERVICE_GAP, gap, true);
            record(self.short(), self.short_disturbed, true);
        }
        let possible = self.largest_gap_possible.max(self.largest_gap);
        if possible > self.largest_gap_least {
            seen.record_possible(Quantity::SERVICE_GAP, &Phase::RUN, possible.as_nanos());
        }
        seen
    }

    /// What is to be known of it besides: how much of it was disturbed, and how much nobody saw.
    pub fn facts(&self) -> RunFacts {
        let all = self.periods + self.disturbed + self.unseen;
        RunFacts {
            events_lost: self.events_lost,
            disturbed_ppm: share_ppm(self.disturbed, all),
            unseen_ppm: share_ppm(self.unseen, all),
            // What it received is seen as a whole, and no time of it by itself.
            unseen: Span::ZERO,
        }
    }

    /// What nobody knows of it. Of whoever may have held the processor the grade tells.
    pub fn doubts(&self) -> Doubts {
        Doubts {
            held: 0,
            // Nobody looks for halts between the periods.
            looks_ppm: 0,
            halts_unseen: match self.halts_unseen {
                true => HaltsUnseen::All,
                false => HaltsUnseen::None,
            },
            outgrown: &[],
        }
    }

    /// Periods that were disturbed, and not because somebody had stopped laxity itself.
    pub const fn disturbed_by_halts(&self) -> u64 {
        self.disturbed - self.disturbed_by_stops
    }

    /// Whether the largest gap may have been smaller than is told.
    pub fn gap_is_at_most(&self) -> bool {
        self.is_of_several() || self.largest_gap_least < self.largest_gap
    }

    /// Whether what is counted here in place of periods are stretches of several.
    pub const fn is_of_several(&self) -> bool {
        self.together > 1
    }

    /// What of it is short is of this.
    const fn short(&self) -> Quantity {
        if self.is_of_several() {
            SHORT_STRETCHES
        } else {
            SHORT_PERIODS
        }
    }

    /// The contract that a reservation is judged by where no other is named: 98 % of the undisturbed periods in which it was asked for as reserved, or of the
    /// stretches of several periods, where only these are seen.
    pub fn promise(&self) -> Contract {
        let most = (self.periods - self.asleep) * SHORT_PERCENT / 100;
        Contract {
            name: "as reserved".into(),
            limits: vec![Limit::new(
                self.short(),
                Statistic::Total,
                Bound::AtMost(most),
            )],
            ..Contract::default()
        }
    }

    /// What slots of this reservation were worth by what their holder was kept from, or may have been while it was not seen to the end, where they were held as
    /// firmly as can be: whoever ranks between them and their dispatcher delays nobody who would tell, and may be gone before anybody looks.
    ///
    /// ```
    /// use laxity_model::verify::delivery::Delivery;
    /// use laxity_model::{Grade, Reservation, Service, Span};
    ///
    /// let two_of_eight = Reservation::new(Service::from_millis(2), Span::from_millis(8)).unwrap();
    /// let gap = |ms| Delivery { largest_gap: Span::from_millis(ms), ..Delivery::default() };
    /// assert_eq!(gap(16).grade_of_slots(two_of_eight), Grade::Enforced);
    /// assert!(matches!(gap(17).grade_of_slots(two_of_eight), Grade::Uncertain { .. }));
    /// ```
    #[must_use]
    pub fn grade_of_slots(&self, reserved: Reservation) -> Grade {
        let promised = reserved.longest_gap();
        let most = promised.checked_add(KERNELS_OWN).unwrap_or(Span::MAX);
        let told = |gap: Span| gap.rounded_down(Span::from_micros(100));
        let reason = if self.largest_gap > most {
            format!(
                "it was kept from its processor for up to {} at one time, where {promised} were promised, and nobody was found who did that: somebody who has gone, the kernel in a system call that nothing preempts, or what it keeps for ordinary work that had waited for most of a second",
                told(self.largest_gap)
            )
        } else if self.largest_gap_unseen > most {
            format!(
                "it may have been kept from its processor for {} at one time, where {promised} were promised, and nobody saw the end of that: it wanted the processor and ended before it was seen to have it, or somebody stopped those who look",
                told(self.largest_gap_unseen)
            )
        } else {
            return Grade::Enforced;
        };
        Grade::Uncertain { reason }
    }

    /// How much of what a program used nobody saw, where that is too much to say what it received: more than a tenth, and more than what it may have had before the
    /// first look at it and after the last, which is so much `in_a_period` at the most.
    ///
    /// ```
    /// use laxity_model::Service;
    /// use laxity_model::verify::delivery::Delivery;
    ///
    /// let ms = Service::from_millis;
    /// let seen = Delivery { service: ms(230), ..Delivery::default() };
    /// assert_eq!(seen.too_much_unseen(ms(380), ms(2)), Some(ms(150)));
    /// assert_eq!(seen.too_much_unseen(ms(250), ms(2)), None);
    /// ```
    #[must_use]
    pub fn too_much_unseen(&self, used: Service, in_a_period: Service) -> Option<Service> {
        let unseen = used.saturating_sub(self.service);
        let unnoticed = (used / UNNOTICED).max(in_a_period * self.together.max(1) * 2);
        (unseen > unnoticed).then_some(unseen)
    }

    /// Adds what another holder received.
    pub fn add(&mut self, other: &Self) {
        self.service += other.service;
        self.most = self.most.max(other.most);
        self.largest_gap = self.largest_gap.max(other.largest_gap);
        self.largest_gap_least = self.largest_gap_least.max(other.largest_gap_least);
        self.largest_gap_disturbed = self.largest_gap_disturbed.max(other.largest_gap_disturbed);
        self.largest_gap_possible = self.largest_gap_possible.max(other.largest_gap_possible);
        self.largest_gap_unseen = self.largest_gap_unseen.max(other.largest_gap_unseen);
        self.periods += other.periods;
        self.kept += other.kept;
        self.exceeded += other.exceeded;
        self.asleep += other.asleep;
        self.stopped += other.stopped;
        self.disturbed += other.disturbed;
        self.short_disturbed += other.short_disturbed;
        self.disturbed_by_stops += other.disturbed_by_stops;
        self.unseen += other.unseen;
        self.overruns += other.overruns;
        self.together = self.together.max(other.together);
        self.events_lost += other.events_lost;
        self.halts_unseen |= other.halts_unseen;
        // They are the machine's, or ours: who was there for longer saw those of the others too.
        let all = [
            (&mut self.halts, other.halts),
            (&mut self.stops, other.stops),
        ];
        for (seen, others) in all {
            if others.total > seen.total {
                *seen = others;
            }
        }
    }
}

/// What a holder received. What is said here of a period is said of a stretch of several where only these are seen ([`Self::together`]), and X and Y are
/// then what is reserved for it and its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Delivery {
    /// Processor time, in all.
    pub service: Service,
    /// The most of it from one look to the next, a period or so, in which the machine did not stand still.
    pub most: Service,
    /// The longest for which it was kept from the processor though it wanted it, where the machine did not stand still; with what it waited for besides
    /// from one punctual look to the next.
    pub largest_gap: Span,
    /// The same where it did.
    pub largest_gap_disturbed: Span,
    /// It was no smaller than this, which alone breaks a contract. Where periods are seen together, it is at most what all their waits come to; and by the kernel,
    /// with what that does not count of a wait.
    pub largest_gap_least: Span,
    /// It may have been as long as this where the machine did not stand still, and nobody knows: who looks came a period late, and of the waits in that
    /// time their sum alone is known; several threads share the reservation, and one may have run while another waited; or it ended, and may have
    /// waited until then. Zero where that did not happen.
    pub largest_gap_possible: Span,
    /// Of that, what leaves open what slots were worth: it wanted the processor and ended before it was seen to have it, or whoever looks was stopped
    /// meanwhile. Zero where that did not happen.
    pub largest_gap_unseen: Span,
    /// Periods that were seen to their ends, and in which the machine did not stand still.
    pub periods: u64,
    /// Of these, those in which it had X less 5 % or more, or all it wanted; where it has nothing outside its reservation, also no more
    /// than X and an eighth, as the kernel counts.
    pub kept: u64,
    /// Of these, those that it slept through: it asked for nothing.
    pub asleep: u64,
    /// Of those that were not kept, those in which it had more than that; in the rest it had less.
    pub exceeded: u64,
    /// Periods in which it was stopped, by a signal or a debugger, and could not ask for anything, or may have been: not judged.
    pub stopped: u64,
    /// Periods in which the machine stood still while it ran or waited: not judged. Those that it slept through are no different from others.
    pub disturbed: u64,
    /// Of these, those in which it is not seen to have had what is reserved.
    pub short_disturbed: u64,
    /// Of those that were disturbed, those in which somebody had stopped laxity itself, whether or not the machine stood still too.
    pub disturbed_by_stops: u64,
    /// Periods of which nobody knows what it had: it ended before anybody looked again, or who looks was kept from it for several of them. Not judged.
    pub unseen: u64,
    /// Periods of either kind in which it used up what is reserved (95 % of X, or more), so that its work did not end within it, or only
    /// just. Held by the kernel, which may notice late that a budget is used up and give less of the next, also those in which it was made to
    /// wait (for more than 5 % of Y): for nothing else does it wait.
    pub overruns: u64,
    /// So many periods are one stretch of those that are counted here, if more than one: looks are that rare. What one of its periods was short of another may
    /// have had more, or slept through: of a stretch that was kept, no single period is known to have been.
    pub together: u64,
    /// Records that were lost of those by which it is known how long it stood, and when the machine did: all else may be wrong, in either direction.
    pub events_lost: u64,
    /// Nobody looks whether the machine stands still: periods in which it did are among those that are judged, and what was short may be its doing.
    pub halts_unseen: bool,
    /// When the machine stood still where it was held, also while it slept.
    pub halts: Halts,
    /// When somebody had stopped laxity itself, which is none of them.
    pub stops: Halts,
}

#[cfg(test)]
mod tests;
