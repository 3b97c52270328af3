//! Each run composed once and admitted once: what a plan shows of it is what a host runs.

use laxity_model::HostError;
use laxity_model::admission::{Admission, Admitted, Rejected, Supply, admit};

use super::RunError;
use super::compose::{Composed, Probes, RunSpec, compose};
use super::schedule::PlannedRun;
use crate::scenario::{Resolved, ResolvedVariant};

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
    #[must_use]
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
    /// [`RunError::Refused`].
    pub fn require(&self, variant: &ResolvedVariant) -> Result<(), RunError> {
        match &self.answer {
            Ok(_) => Ok(()),
            Err(refused) => Err(refusal(refused, variant)),
        }
    }

    /// What a host runs, and where its evidence will be.
    ///
    /// # Errors
    ///
    /// [`RunError::Refused`].
    pub fn granted(self, variant: &ResolvedVariant) -> Result<(Admitted, Probes), RunError> {
        match self.answer {
            Ok(admitted) => Ok((admitted, self.probes)),
            Err(refused) => Err(refusal(&refused, variant)),
        }
    }
}

fn refusal(refused: &Admission, variant: &ResolvedVariant) -> RunError {
    RunError::Refused {
        variant: variant.name.clone(),
        reason: refused.explain().join("; "),
    }
}

/// Composes the program of a run, and asks for it.
///
/// # Errors
///
/// Those of composing; and a program that is wrong, or that this supply's machine cannot run.
pub fn ready(
    resolved: &Resolved,
    planned: PlannedRun,
    further_receivers: usize,
    supply: &Supply,
) -> Result<Ready, RunError> {
    let variant = &resolved.variants[planned.variant];
    let wrong = |error: HostError| RunError::of(error, variant);
    let spec = RunSpec {
        seed: resolved.seed + u64::from(planned.repeat),
        mss_bytes: resolved.mss_bytes,
        further_receivers,
        start: planned.start,
        gaps_only: planned.gaps_only,
    };
    let composed = compose(variant, resolved.host.processors, &resolved.run, spec);
    let Composed { program, probes } = composed.map_err(wrong)?;
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
