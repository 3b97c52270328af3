//! Each run composed once and admitted once: what a plan shows of it is what a host runs.

use std::collections::BTreeMap;

use laxity_model::admission::{Admission, Admitted, Rejected, Supply, admit};
use laxity_model::{Host, HostError};

use super::RunError;
use super::compose::{RunSpec, compose};
use super::schedule::PlannedRun;
use crate::observe::Probes;
use crate::scenario::{Resolved, ResolvedDevice, ResolvedVariant};

/// A run's program, and what admission makes of it.
pub struct Ready {
    /// Which run.
    pub planned: PlannedRun,
    /// The program where all is granted that it reserves; otherwise what was found of it.
    pub answer: Result<Admitted, Box<Admission>>,
    /// Where things will be.
    pub probes: Probes,
}

impl Ready {
    /// What was found of the program, granted or not.
    pub fn admission(&self) -> &Admission {
        match &self.answer {
            Ok(admitted) => admitted,
            Err(refused) => refused,
        }
    }

    /// Fails if the run is refused.
    ///
    /// # Errors
    ///
    /// [`RunError::Refused`], or [`RunError::CannotRun`] where the machine lacks what was to enforce it.
    pub fn require(&self, variant: &ResolvedVariant) -> Result<(), RunError> {
        let answer = self.answer.as_ref().map(drop);
        answer.map_err(|refused| refusal(refused, variant))
    }

    /// What a host runs, and where its evidence will be.
    ///
    /// # Errors
    ///
    /// [`RunError::Refused`], or [`RunError::CannotRun`] where the machine lacks what was to enforce it.
    pub fn granted(self, variant: &ResolvedVariant) -> Result<(Admitted, Probes), RunError> {
        let answer = self.answer.map_err(|refused| refusal(&refused, variant));
        Ok((answer?, self.probes))
    }
}

fn refusal(refused: &Admission, variant: &ResolvedVariant) -> RunError {
    RunError::of(refused.refusal(), &variant.name)
}

/// Receivers besides the first in each modem, by the device's name, as load; none in those that are not named.
pub type FurtherReceivers = BTreeMap<String, usize>;

/// Composes the program of a run, and asks for it.
///
/// # Errors
///
/// Those of composing; and a program that is wrong, or that this supply's machine cannot run.
pub fn ready(
    resolved: &Resolved,
    planned: PlannedRun,
    further: &FurtherReceivers,
    supply: &Supply,
) -> Result<Ready, RunError> {
    let variant = &resolved.variants[planned.variant];
    let wrong = |error: HostError| RunError::of(error, &variant.name);
    let spec = |device: &ResolvedDevice| RunSpec {
        seed: resolved.seed + u64::from(planned.repeat),
        mss_bytes: resolved.mss_bytes,
        further_receivers: further.get(&device.name).copied().unwrap_or(0),
        start: planned.start,
        gaps_only: planned.gaps_only,
    };
    let composed = compose(variant, resolved.host.processors, &resolved.run, spec);
    let (program, probes) = composed.map_err(wrong)?;
    let answer = match admit(program, supply) {
        Ok(admitted) => Ok(admitted),
        Err(Rejected::Refused(admission)) => Err(admission),
        Err(Rejected::Impossible(error)) => return Err(wrong(error)),
    };
    Ok(Ready {
        planned,
        answer,
        probes,
    })
}

/// What a host can enforce now, on as many processors as the scenario has.
pub(crate) fn supply(host: &mut dyn Host, resolved: &Resolved) -> Result<Supply, RunError> {
    let supply = host.supply(resolved.host.processors);
    supply.map_err(|error| RunError::CannotRun(error.to_string()))
}
