//! Which reservations a set of devices needs on one processor, and whether they can be had together.

use laxity::Twin;
use laxity::study::Profile;
use laxity_lab::runner::proposal::GRAIN;
use laxity_model::analysis::devices::{Device, Unfit, cheapest, fit, least_reservations};
use laxity_model::analysis::supply::ExplicitDeadline;
use laxity_model::policy::slots::{PlanCosts, plan};
use laxity_model::{Reservation, Service, Span};

use super::kind::Kind;

/// What a host is to those who plan for it.
#[derive(Clone, Debug)]
pub struct Ground {
    /// What a call of each device takes at most.
    pub work: Vec<(Kind, Service)>,
    /// What an interrupt takes before the driver's thread runs: handler and deferred call.
    pub interrupt: Service,
    /// The share that the host itself takes above slots, in parts per million.
    pub host_ppm: u64,
    /// What slots cost.
    pub costs: PlanCosts,
}

impl Ground {
    /// The twin of the study's machine.
    #[must_use]
    pub fn twin() -> Self {
        let profile = Profile::WIN2000_PII450;
        let costs = profile.costs;
        let own = laxity_devices::card::Overheads::STUDY;
        let host = [
            costs.interrupt_entry,
            costs.interrupt_exit,
            costs.deferred_dispatch,
        ];
        let host = host.into_iter().sum::<Span>().as_full_service();
        let ticks = u64::from(profile.tick_hz.unwrap_or(0)) * costs.clock_tick.as_nanos();
        Self {
            work: Vec::new(),
            interrupt: own.interrupt + own.deferred + host,
            host_ppm: ticks / 1_000,
            costs: Twin::new(profile).plan_costs(),
        }
    }

    /// What a call of a device takes.
    pub fn work_of(&self, kind: Kind) -> Service {
        let measured = self.work.iter().find(|(of, _)| *of == kind);
        measured.map_or(kind.charged(), |(_, work)| *work)
    }

    /// The share that interrupts of these devices, and the host itself, take above slots, in parts per million.
    pub fn above_ppm(&self, kinds: &[Kind]) -> u64 {
        let of = |kind: &Kind| {
            self.interrupt.as_nanos() * kind.cards() * 1_000_000 / kind.period().as_nanos()
        };
        kinds.iter().map(of).sum::<u64>() + self.host_ppm
    }

    /// The devices of a set as the analysis knows them, each call lengthened by what interrupts may take from its slots: their share,
    /// and one of each at once.
    fn devices(&self, kinds: &[Kind]) -> Vec<Device> {
        let above = self.above_ppm(kinds).min(900_000);
        let cards: u64 = kinds.iter().map(|kind| kind.cards()).sum();
        let at_once = self.interrupt.as_nanos() * cards;
        let lengthened = |kind: &Kind| {
            let cards = kind.cards();
            let work = self.work_of(*kind).as_nanos() + at_once.div_ceil(cards);
            let work = (u128::from(work) * 1_000_000).div_ceil(u128::from(1_000_000 - above));
            kind.device(Service::from_nanos(work as u64)).ok()
        };
        kinds.iter().filter_map(lengthened).collect()
    }

    fn costs_beside(&self, kinds: &[Kind]) -> PlanCosts {
        let above = u32::try_from(self.above_ppm(kinds)).unwrap_or(u32::MAX);
        PlanCosts {
            other_ppm: self.costs.other_ppm.saturating_add(above),
            ..self.costs
        }
    }

    /// Reservations for a set on one processor.
    ///
    /// # Errors
    ///
    /// Why there are none.
    pub fn fit(&self, kinds: &[Kind]) -> Result<Vec<Reservation>, Unfit> {
        let devices = self.devices(kinds);
        let found = fit(&devices, &periods(), GRAIN, &self.costs_beside(kinds))?;
        Ok(found.reservations)
    }

    /// Why the devices of a set, each asking for the cheapest reservation that serves it, cannot have these together, and what would fit;
    /// `None` if they can.
    pub fn refusal(&self, kinds: &[Kind]) -> Option<String> {
        let supply = |reservation| Some(ExplicitDeadline::continuous(reservation));
        let wish = |device: &Device| {
            let offers = least_reservations(device, &periods(), GRAIN, supply).ok()?;
            cheapest(offers.into_iter().flatten())
        };
        let wishes: Option<Vec<Reservation>> = self.devices(kinds).iter().map(wish).collect();
        let refused = plan(&wishes?, &self.costs_beside(kinds)).err()?;
        Some(refused.to_string())
    }
}

/// The periods that reservations may have: fine ones for the radio, whole milliseconds for the others.
fn periods() -> Vec<Span> {
    let fine = (4..10).map(|tenths| Span::from_micros(100 * tenths));
    fine.chain((1..=16).map(Span::from_millis)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_granted_and_what_does_not_is_not() {
        let ground = Ground::twin();
        for set in [
            vec![Kind::Modem],
            vec![Kind::Modem, Kind::Audio],
            vec![Kind::Radio],
            vec![Kind::GLite, Kind::Radio],
        ] {
            let reservations = ground.fit(&set).unwrap();
            let planned = plan(&reservations, &ground.costs_beside(&set));
            assert!(planned.is_ok(), "{set:?}");
            for (kind, reservation) in set.iter().zip(&reservations) {
                assert!(reservation.share_ppm() >= kind.share_ppm(), "{kind:?}");
            }
        }
        let full = [Kind::FullRate, Kind::FullRate];
        assert!(ground.fit(&full).is_err());
        assert!(
            ground
                .refusal(&full)
                .is_some_and(|why| why.contains("would fit"))
        );
    }

    #[test]
    fn the_radios_interrupts_take_more_than_its_work() {
        let ground = Ground::twin();
        assert!(ground.above_ppm(&[Kind::Radio]) > Kind::Radio.share_ppm());
    }
}
