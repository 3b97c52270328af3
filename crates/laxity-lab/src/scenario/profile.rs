//! What the name of a twin's profile stands for: a machine, and how modems are on it. Runs, plans and experiments take it from here, so that a
//! name means one twin.

use laxity::study::Profile;
use laxity_devices::modem::{CallConfig, CardClock, Costs, Timing};
use laxity_model::base::random::scrambled;
use laxity_model::{Program, Reservation, Service, Span};

/// A twin that scenarios can be run in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TwinProfile {
    /// Its machine.
    pub machine: Profile,
    /// What a modem's calls cost there, where a scenario does not say what load they are.
    pub costs: Costs,
    /// By how much the crystals of cards are faster than the clock of the host, in parts per billion.
    pub card_fast_ppb: i32,
    /// Whether the host's milliseconds, in which it is asked for reservations, are ticks of its clock.
    pub reserves_ticks: bool,
}

impl TwinProfile {
    /// A device's clock begins up to so long after the host's: longer than any of the host's quanta, and than the 187.5 ms after which sixteen ticks and
    /// the blocks of a card repeat.
    pub const LATEST_BEGIN: Span = Span::from_millis(200);

    /// The modem study's host: [`Profile::WIN2000_PII450`].
    ///
    /// * Calls cost what they do while nothing is logged ([`Costs::UNLOGGED`]).
    /// * Crystals: *calibrated*, 50 ppm apart, within what two of them may differ by (table 3, 3/16).
    /// * Reservations: "integer multiples of milliseconds, since they are driven off the periodic Windows 2000 clock" (Jones, Saroiu §5.4), whose
    ///   interrupts are 976.5625 µs apart (§6.3.1). *Our reading*: its milliseconds are those ticks.
    pub const WIN2000_PII450: Self = Self {
        machine: Profile::WIN2000_PII450,
        costs: Costs::UNLOGGED,
        card_fast_ppb: 50_000,
        reserves_ticks: true,
    };

    /// What a reservation asked for in the host's milliseconds is in real time.
    #[must_use]
    pub fn reserved(&self, asked: Reservation) -> Reservation {
        let Some(hz) = self.machine.tick_hz.filter(|_| self.reserves_ticks) else {
            return asked;
        };
        let ticks = |nanos: u64| {
            let nanos = u128::from(nanos) * 1_000 / u128::from(hz);
            u64::try_from(nanos).unwrap_or(u64::MAX)
        };
        let service = Service::from_nanos(ticks(asked.service().as_nanos()));
        let period = Span::from_nanos(ticks(asked.period().as_nanos()));
        Reservation::new(service, period).unwrap_or(asked)
    }

    /// What is to be known of the reservations of a program here, if it has any.
    pub(crate) fn note_on(&self, program: &Program) -> Option<String> {
        let mut activities = program.activities.iter();
        let reserves = activities.any(|activity| activity.reservation.is_some());
        let tick = Reservation::new(Service::from_millis(1), Span::from_millis(1)).ok()?;
        let tick = self.reserved(tick).period();
        (reserves && tick != Span::from_millis(1)).then(|| {
            format!("Reservations are asked for in this host's milliseconds, which are ticks of its clock: 2ms/8ms there is {}/{}", tick * 2, tick * 8)
        })
    }

    /// In which unit refusals, if there are any, say what would fit, where a scenario asks in another one. Rounded up, it is [just that](Self::reserved);
    /// rounded down, it might be too short.
    pub(crate) fn unit_of(&self, refusals: &[String]) -> Option<String> {
        let is_other = self.reserves_ticks && !refusals.is_empty();
        let hz = self.machine.tick_hz.filter(|_| is_other)?;
        let times = f64::from(hz) / 1_000.0;
        Some(format!(
            "what is refused, and what would fit, is told in real time: ask for {times:.3} times that, rounded up to whole nanoseconds"
        ))
    }

    /// How the clock of a card stands to the host's: in a phase that follows from the seed.
    #[must_use]
    pub fn card_clock(&self, seed: u64) -> CardClock {
        CardClock {
            begins_after: Span::from_nanos(scrambled(seed) % Self::LATEST_BEGIN.as_nanos()),
            fast_ppb: self.card_fast_ppb,
        }
    }

    /// A call as it is made here, of a modem whose load nobody states; see [`CallConfig::new`].
    #[must_use]
    pub fn call(&self, timing: Timing, seed: u64, octets: u64) -> CallConfig {
        CallConfig {
            costs: self.costs,
            clock: self.card_clock(seed),
            ..CallConfig::new(timing, seed, octets)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_are_in_ticks() {
        let twin = TwinProfile::WIN2000_PII450;
        let asked = Reservation::new(Service::from_micros(500), Span::from_millis(16));
        let reserved = twin.reserved(asked.expect("X is no more than Y"));
        assert_eq!(reserved.period(), Span::from_nanos(15_625_000));
        assert_eq!(reserved.service(), Service::from_nanos(488_281));
    }

    #[test]
    fn a_seed_moves_phases_and_keeps_them_within_what_a_short_run_can_wait() {
        let twin = TwinProfile::WIN2000_PII450;
        let begins = |seed| twin.card_clock(seed).begins_after;
        assert_eq!(begins(7), begins(7));
        let all: std::collections::BTreeSet<Span> = (0..100).map(begins).collect();
        assert!(all.len() > 90);
        assert!(
            all.into_iter()
                .all(|after| after < TwinProfile::LATEST_BEGIN)
        );
    }
}
