//! What admission leaves to a device, by asking it: its program with another reservation in place of the device's own.

use std::cell::RefCell;

use laxity_model::admission::{SlotPlan, Supply, refused_with};
use laxity_model::policy::slots::SlotTable;
use laxity_model::{ActivityId, HostError, Program, Reservation, Span};

use super::RunError;
use super::admit::{FurtherReceivers, composed};
use super::commands::supply_beside;
use super::proposal::{GRAIN, LONGEST_PERIOD};
use super::schedule::PlannedRun;
use crate::scenario::{Resolved, Start, TwinProfile};

/// What admission makes of a reservation.
pub(crate) enum Granted {
    /// It is refused, or others are for its sake.
    Not,
    /// Just as it is, whoever else has one.
    Whole,
    /// As the slots of one of the owners of a table, between those of others.
    Slots(SlotTable, usize),
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
        let (program, probes) = composed(resolved, run, (&FurtherReceivers::new(), twin))?;
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
        let least = Reservation::new(GRAIN.as_full_service(), LONGEST_PERIOD);
        let (Ok(least), Some(driver)) = (least, self.drivers.get(device)) else {
            return Granted::Not;
        };
        let Ok((slots, refused)) = self.refused_with(*driver, asked) else {
            return Granted::Not;
        };
        let before = || self.refused_with(*driver, least);
        let is_granted = refused.is_empty()
            || !refused.contains(driver)
                && before().is_ok_and(|(_, before)| refused.iter().all(|one| before.contains(one)));
        if !is_granted {
            return Granted::Not;
        }
        let mut found = slots.into_iter().filter_map(|plan| {
            let owner = plan.owners.iter().position(|owner| owner == driver)?;
            Some(Granted::Slots(plan.table, owner))
        });
        found.next().unwrap_or(Granted::Whole)
    }

    fn refused_with(
        &self,
        driver: ActivityId,
        asked: Reservation,
    ) -> Result<(Vec<SlotPlan>, Vec<ActivityId>), HostError> {
        let asked = self.twin.map_or(asked, |twin| twin.reserved(asked));
        refused_with(
            &mut self.program.borrow_mut(),
            (driver, asked),
            &self.supply,
        )
    }
}
