//! What admission leaves to a device, by asking it: its program with another reservation in place of the device's own.

use std::cell::RefCell;

use laxity_model::admission::{Supply, refused_with};
use laxity_model::{ActivityId, HostError, Program, Reservation, Span};

use super::RunError;
use super::admit::{FurtherReceivers, composed};
use super::commands::supply_beside;
use super::proposal::{GRAIN, LONGEST_PERIOD};
use super::schedule::PlannedRun;
use crate::scenario::{Resolved, Start, TwinProfile};

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

    /// Whether a device of the variant, by its number, would be granted this, and nobody refused who is not even where it asks for next to nothing.
    pub(crate) fn grants(&self, device: usize, asked: Reservation) -> bool {
        let least = Reservation::new(GRAIN.as_full_service(), LONGEST_PERIOD);
        let (Ok(least), Some(driver)) = (least, self.drivers.get(device)) else {
            return false;
        };
        let Ok(refused) = self.refused_with(*driver, asked) else {
            return false;
        };
        if refused.is_empty() || refused.contains(driver) {
            return refused.is_empty();
        }
        let before = self.refused_with(*driver, least);
        before.is_ok_and(|before| refused.iter().all(|one| before.contains(one)))
    }

    fn refused_with(
        &self,
        driver: ActivityId,
        asked: Reservation,
    ) -> Result<Vec<ActivityId>, HostError> {
        let asked = self.twin.map_or(asked, |twin| twin.reserved(asked));
        refused_with(
            &mut self.program.borrow_mut(),
            (driver, asked),
            &self.supply,
        )
    }
}
