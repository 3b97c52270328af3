//! What admission leaves to a device, by asking it: its program with another reservation in place of the device's own.

use std::cell::RefCell;
use std::collections::BTreeMap;

use laxity_model::admission::{SlotPlan, Supply, refused_with};
use laxity_model::policy::slots::SlotTable;
use laxity_model::{ActivityId, HostError, Program, Reservation, Span};

use super::RunError;
use super::admit::{FurtherReceivers, composed};
use super::commands::supply_beside;
use super::proposal::{GRAIN, LONGEST_PERIOD};
use super::schedule::PlannedRun;
use crate::layout::percent;
use crate::scenario::{Resolved, Start, TwinProfile};

/// What admission makes of a reservation.
pub(crate) enum Granted {
    /// It is refused, or others are for its sake.
    Not,
    /// It is no more than what was found not to do.
    NoMore,
    /// Just as it is, whoever else has one.
    Whole,
    /// As the slots of one of these owners of a table, between those of others.
    Slots(SlotTable, Vec<usize>),
}

/// The program of a variant, of which admission is asked what it would grant.
pub(crate) struct Left {
    /// As it is but for what is asked.
    program: RefCell<Program>,
    drivers: Vec<ActivityId>,
    twin: Option<TwinProfile>,
    supply: Supply,
}

impl Left {
    /// Of a variant by its number.
    pub(crate) fn of(
        resolved: &Resolved,
        variant: usize,
        twin: Option<TwinProfile>,
        supply: &Supply,
    ) -> Result<Self, RunError> {
        let run = PlannedRun {
            variant,
            repeat: 0,
            start: Start::OnHook,
            gaps_only: false,
            length: Span::ZERO,
        };
        let (program, probes) = composed(resolved, run, (&FurtherReceivers::new(), twin), None)?;
        let drivers = probes.devices().map(|device| device.installed.driver);
        Ok(Self {
            drivers: drivers.collect(),
            program: RefCell::new(program),
            twin,
            supply: supply_beside(&resolved.variants[variant], supply),
        })
    }

    /// What a device of the variant, by its number, would be granted as this, where nobody is refused who is not even if it asks for next to nothing.
    pub(crate) fn grants(&self, device: usize, asked: Reservation) -> Granted {
        let driver = self.drivers.get(device);
        let plans = self.granted(&[(device, asked)]);
        let (Some(driver), Some(plans)) = (driver, plans) else {
            return Granted::Not;
        };
        match own_slots(&plans, *driver) {
            Some((plan, owner)) => Granted::Slots(plan.table.clone(), vec![owner]),
            None => Granted::Whole,
        }
    }

    /// The same of several at once, in their order; `None` where that is refused to one of them. Of who asks for the same as others it is open whose slots
    /// of those it has.
    pub(crate) fn grants_all(&self, asked: &[(usize, Reservation)]) -> Option<Vec<Granted>> {
        let plans = self.granted(asked)?;
        let granted = asked.iter().map(|(device, _)| {
            let Some((plan, own)) = own_slots(&plans, self.drivers[*device]) else {
                return Granted::Whole;
            };
            let held = (0..plan.held.len()).filter(|other| plan.held[*other] == plan.held[own]);
            Granted::Slots(plan.table.clone(), held.collect())
        });
        Some(granted.collect())
    }

    /// The first processor of which devices that ask for these ask for more than all, and how much that is, in words; `None` where there is none.
    pub(crate) fn too_much(&self, asked: &[(usize, Reservation)]) -> Option<String> {
        let program = self.program.borrow();
        let mut shares: BTreeMap<u16, u64> = BTreeMap::new();
        for (device, asked) in asked {
            let on = program.activities[self.drivers.get(*device)?.index()]
                .processor
                .0;
            let service = asked.service().as_nanos().saturating_mul(1_000_000);
            *shares.entry(on).or_default() += service.div_ceil(asked.period().as_nanos());
        }
        let (on, ppm) = shares.into_iter().find(|(_, ppm)| *ppm > 1_000_000)?;
        Some(format!(
            "they ask for {} % of processor {on} so",
            percent(ppm)
        ))
    }

    /// The tables that there would be; `None` where somebody is refused.
    fn granted(&self, asked: &[(usize, Reservation)]) -> Option<Vec<SlotPlan>> {
        let least = Reservation::new(GRAIN.as_full_service(), LONGEST_PERIOD).ok()?;
        let asked = asked
            .iter()
            .map(|(device, asked)| Some((*self.drivers.get(*device)?, *asked)));
        let asked: Vec<_> = asked.collect::<Option<_>>()?;
        let (slots, refused) = self.refused_with(&asked).ok()?;
        let next_to_nothing: Vec<_> = asked.iter().map(|(driver, _)| (*driver, least)).collect();
        let before = || self.refused_with(&next_to_nothing);
        let is_own = |one: &ActivityId| asked.iter().any(|(driver, _)| driver == one);
        let is_granted = refused.is_empty()
            || !refused.iter().any(is_own)
                && before().is_ok_and(|(_, before)| refused.iter().all(|one| before.contains(one)));
        is_granted.then_some(slots)
    }

    fn refused_with(
        &self,
        asked: &[(ActivityId, Reservation)],
    ) -> Result<(Vec<SlotPlan>, Vec<ActivityId>), HostError> {
        let asked = asked.iter().map(|(driver, asked)| {
            let asked = self.twin.map_or(*asked, |twin| twin.reserved(*asked));
            (*driver, asked)
        });
        let asked: Vec<_> = asked.collect();
        refused_with(&mut self.program.borrow_mut(), &asked, &self.supply)
    }
}

/// In which table an activity has slots, and as which owner.
fn own_slots(plans: &[SlotPlan], driver: ActivityId) -> Option<(&SlotPlan, usize)> {
    plans.iter().find_map(|plan| {
        let owner = plan.owners.iter().position(|owner| *owner == driver)?;
        Some((plan, owner))
    })
}
