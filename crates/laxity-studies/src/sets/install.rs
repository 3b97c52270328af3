//! A device of a set, put into a program, and where its evidence will be.

use std::sync::Arc;

use laxity_devices::card::{self, Installed, Marks};
use laxity_devices::modem::{self, CallConfig, CardClock, SharedModems, Timing};
use laxity_devices::{audio, dsl, radio};
use laxity_model::{ActivityId, HostError, ProcessorId, Program, Span};

use super::kind::Kind;
use super::run::{Member, Setup};

/// A call that is run ahead must have its transfer under way by then, in the call's own time.
const RUN_AHEAD_LIMIT: Span = Span::from_secs(60);
/// A file that no call gets to the end of.
const ENDLESS_OCTETS: u64 = 2_000_000;
/// Devices begin one after the other, at no multiple of anything.
const APART: Span = Span::from_micros(1_713);
/// In the twin each device has a crystal of its own, so that all their phases are gone through.
const CRYSTAL_PPB: i32 = 31_000;

/// Who keeps a device's account.
#[derive(Clone)]
pub enum Account {
    /// A stream's.
    Stream(Arc<card::Report>),
    /// Of each modem on the driver.
    Modems(Vec<Arc<modem::Report>>),
}

/// Where the evidence of a device is.
#[derive(Clone)]
pub struct Probe {
    /// What it is.
    pub kind: Kind,
    /// Where its driver runs.
    pub processor: ProcessorId,
    /// The activity that does the signal processing.
    pub driver: ActivityId,
    /// What it records.
    pub marks: Marks,
    /// Who keeps its account.
    pub account: Account,
}

/// A device of a run.
pub struct Making<'a> {
    setup: &'a Setup,
    member: &'a Member,
    clock: CardClock,
    /// What the lines' noise and all payload comes from.
    seed: u64,
}

impl<'a> Making<'a> {
    /// The member of this number.
    #[must_use]
    pub fn new(setup: &'a Setup, number: usize) -> Self {
        let crystal = if setup.drifts { CRYSTAL_PPB } else { 0 };
        Self {
            setup,
            member: &setup.members[number],
            clock: CardClock {
                begins_after: APART * number as u64,
                fast_ppb: crystal * number as i32,
            },
            seed: setup.seed + 16 * number as u64,
        }
    }

    /// Puts the device into a program.
    ///
    /// # Errors
    ///
    /// [`HostError::Failed`] if a modem's line carries no transfer even without a host.
    pub fn install(&self, program: &mut Program) -> Result<Probe, HostError> {
        let (member, seed, clock) = (self.member, self.seed, self.clock);
        let (cost, further) = (member.kind.charged(), member.further);
        let dsl = |rate| {
            let line = dsl::LineConfig {
                seed,
                ..dsl::LineConfig::default()
            };
            dsl::stream(rate, &line, cost, further, clock)
        };
        let placement = self.setup.variant.placement(member.reservation);
        let stream = match member.kind {
            Kind::Modem | Kind::Modems(_) => {
                let installed = self.modems()?.install(program, member.processor, placement);
                return Ok(self.probe(installed, Account::Modems));
            }
            Kind::GLite => dsl(dsl::Rate::GLite),
            Kind::FullRate => dsl(dsl::Rate::Full),
            Kind::Radio => {
                let air = radio::AirConfig {
                    seed,
                    ..radio::AirConfig::default()
                };
                radio::stream(&air, cost, further, clock)
            }
            Kind::Audio => audio::stream(seed, cost, further, clock),
        };
        let installed = stream.install(program, member.processor, placement);
        Ok(self.probe(installed, Account::Stream))
    }

    fn probe<R>(&self, installed: Installed<R>, account: impl FnOnce(R) -> Account) -> Probe {
        Probe {
            kind: self.member.kind,
            processor: self.member.processor,
            driver: installed.driver,
            marks: installed.marks,
            account: account(installed.report),
        }
    }

    fn modems(&self) -> Result<SharedModems, HostError> {
        let calls = (0..self.member.kind.cards()).map(|card| self.call(card));
        let mut modems = SharedModems::new(calls.collect());
        if modems.run_ahead(RUN_AHEAD_LIMIT) {
            return Ok(modems);
        }
        let why = "a modem's line carries no transfer even without a host";
        Err(HostError::Failed(why.into()))
    }

    /// A call whose transfer is longer than the run.
    fn call(&self, card: u64) -> CallConfig {
        let (on_hook, dialing) = (Span::from_millis(100), Span::from_millis(1_500));
        let timing = Timing::lasting(on_hook, dialing, Span::from_secs(1));
        CallConfig {
            further_receivers: self.member.further,
            clock: CardClock {
                begins_after: self.clock.begins_after + APART * card * 2,
                ..self.clock
            },
            ..CallConfig::new(timing, self.seed + card, ENDLESS_OCTETS)
        }
    }
}
