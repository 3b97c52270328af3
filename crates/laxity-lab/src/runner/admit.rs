//! Each run composed once and admitted once: what a plan shows of it is what a host runs.

use std::collections::BTreeMap;

use laxity_devices::modem::CardClock;
use laxity_model::admission::{Admission, Admitted, Rejected, Supply, admit};
use laxity_model::{Host, HostError, Program};

use super::RunError;
use super::commands::{admission, supply_beside};
use super::compose::{Around, RunSpec, compose};
use super::network::Wires;
use super::schedule::PlannedRun;
use crate::observe::Probes;
use crate::scenario::{Resolved, ResolvedDevice, ResolvedVariant, TwinProfile};

/// What admission says: a program that may run, or what was found of one that may not.
pub type Answer = Result<Admitted, Box<Admission>>;

/// A run's program, and what admission makes of it.
pub struct Ready {
    /// Which run.
    pub planned: PlannedRun,
    /// The program where all is granted that it reserves; otherwise what was found of it.
    pub answer: Answer,
    /// The same of the reservations of the commands beside it, if they ask for any.
    commands: Option<Answer>,
    /// Where things will be.
    pub probes: Probes,
}

impl Ready {
    /// What was found of the program, granted or not.
    pub fn admission(&self) -> &Admission {
        found(&self.answer)
    }

    /// What was found of the commands beside it, if they ask for reservations.
    pub(crate) fn commands(&self) -> Option<&Admission> {
        self.commands.as_ref().map(found)
    }

    /// Fails if the run is refused.
    ///
    /// # Errors
    ///
    /// [`RunError::Refused`], or [`RunError::CannotRun`] where the machine lacks what was to enforce it.
    pub fn require(&self, variant: &ResolvedVariant) -> Result<(), RunError> {
        for answer in [&self.answer].into_iter().chain(&self.commands) {
            let answer = answer.as_ref().map(drop);
            answer.map_err(|refused| refusal(refused, variant))?;
        }
        Ok(())
    }

    /// What a host runs, and where its evidence will be.
    ///
    /// # Errors
    ///
    /// [`RunError::Refused`], or [`RunError::CannotRun`] where the machine lacks what was to enforce it.
    pub fn granted(self, variant: &ResolvedVariant) -> Result<(Admitted, Probes), RunError> {
        self.require(variant)?;
        let answer = self.answer.map_err(|refused| refusal(&refused, variant));
        Ok((answer?, self.probes))
    }
}

fn found(answer: &Answer) -> &Admission {
    match answer {
        Ok(admitted) => admitted,
        Err(refused) => refused,
    }
}

fn refusal(refused: &Admission, variant: &ResolvedVariant) -> RunError {
    RunError::of(refused.refusal(), &variant.name)
}

/// Receivers besides the first in each modem, by the device's name, as load; none in those that are not named.
pub type FurtherReceivers = BTreeMap<String, usize>;

/// Composes the program of a run on this machine, and asks for it.
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
    on_supply(resolved, planned, (further, None), (supply, None))
}

/// The same, on these interfaces of this machine.
///
/// # Errors
///
/// See [`ready`].
pub fn ready_over(
    resolved: &Resolved,
    planned: PlannedRun,
    further: &FurtherReceivers,
    (supply, wires): (&Supply, Option<Wires>),
) -> Result<Ready, RunError> {
    on_supply(resolved, planned, (further, None), (supply, wires))
}

/// The same for the twin that the scenario names.
///
/// # Errors
///
/// See [`ready`].
pub fn ready_for_twin(
    resolved: &Resolved,
    planned: PlannedRun,
    supply: &Supply,
) -> Result<Ready, RunError> {
    let twin = Some(resolved.host.profile);
    let none = FurtherReceivers::new();
    on_supply(resolved, planned, (&none, twin), (supply, None))
}

/// What makes up the load are receivers here, and charges in a twin.
fn on_supply(
    resolved: &Resolved,
    planned: PlannedRun,
    (further, twin): (&FurtherReceivers, Option<TwinProfile>),
    (supply, wires): (&Supply, Option<Wires>),
) -> Result<Ready, RunError> {
    let (program, probes) = composed(resolved, planned, (further, twin), wires)?;
    let variant = &resolved.variants[planned.variant];
    let impossible = |error| RunError::of(error, &variant.name);
    let commands = admission(variant, &program, supply).map_err(impossible)?;
    let answer = answer(program, &supply_beside(variant, supply)).map_err(impossible)?;
    Ok(Ready {
        planned,
        answer,
        commands,
        probes,
    })
}

/// Asks for a program.
pub(super) fn answer(program: Program, supply: &Supply) -> Result<Answer, HostError> {
    match admit(program, supply) {
        Ok(admitted) => Ok(Ok(admitted)),
        Err(Rejected::Refused(admission)) => Ok(Err(admission)),
        Err(Rejected::Impossible(error)) => Err(error),
    }
}

/// The program of a run, of which nothing was asked yet.
pub(super) fn composed(
    resolved: &Resolved,
    planned: PlannedRun,
    (further, twin): (&FurtherReceivers, Option<TwinProfile>),
    wires: Option<Wires>,
) -> Result<(Program, Probes), RunError> {
    let variant = &resolved.variants[planned.variant];
    let seed = resolved.seed + u64::from(planned.repeat);
    let spec = |device: &ResolvedDevice| RunSpec {
        seed,
        mss_bytes: resolved.mss_bytes,
        further_receivers: further.get(&device.name).copied().unwrap_or(0),
        start: planned.start,
        gaps_only: planned.gaps_only,
        clock: CardClock::default(),
    };
    let (processors, length) = (resolved.host.processors, &resolved.run);
    let around = Around { twin, seed, wires };
    let composed = compose(variant, processors, length, around, spec);
    composed.map_err(|error| RunError::of(error, &variant.name))
}

/// What a host can enforce now, on as many processors as the scenario has.
pub(crate) fn supply(host: &mut dyn Host, resolved: &Resolved) -> Result<Supply, RunError> {
    let supply = host.supply(resolved.host.processors);
    supply.map_err(|error| RunError::CannotRun(error.to_string()))
}
