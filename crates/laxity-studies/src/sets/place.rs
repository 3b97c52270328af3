//! A device of a set, put into a program, and where its evidence will be.

use std::sync::Arc;

use laxity_devices::card::{self, Installed, Stream};
use laxity_devices::modem::{
    self, Call, CallConfig, CardClock, DriverPlacement, FarProfile, SharedModems,
};
use laxity_devices::{audio, dsl, radio};
use laxity_model::{ActivityId, HostError, Mark, ProcessorId, Program, Span};

use super::kind::Kind;
use laxity_lab::runner::compose::{RunSpec, call_config};
use laxity_lab::scenario::units::{Load, Share};
use laxity_lab::scenario::{Line, PhaseOverrides, Phases, Placing, ResolvedDevice, Start};

/// A call that is run ahead must have its transfer under way by then, in the call's own time.
const RUN_AHEAD_LIMIT: Span = Span::from_secs(60);
/// A file that no call gets to the end of.
const ENDLESS_BYTES: u64 = 2_000_000;
/// Devices begin one after the other, at no multiple of anything.
const APART: Span = Span::from_micros(1_713);
/// And in the twin each has a crystal of its own, so that all their phases are gone through.
const CRYSTAL_PPB: i32 = 31_000;

/// How a device is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Making {
    /// Its place in the set.
    pub number: usize,
    /// Where its driver runs.
    pub processor: ProcessorId,
    /// And how.
    pub placement: DriverPlacement,
    /// What the lines' noise and all payload comes from.
    pub seed: u64,
    /// How often its work is repeated as load; 0 in the twin.
    pub further: usize,
    /// How long the run is.
    pub length: Span,
    /// Whether cards have crystals of their own. Live they go by the host's clock.
    pub drifts: bool,
}

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
    /// Recorded when a call begins, the interrupt's instant in its second argument.
    pub begin: Mark,
    /// Recorded when it ends, the samples lost so far in its second argument.
    pub end: Mark,
    /// Who keeps its account.
    pub account: Account,
}

impl Making {
    fn clock(&self) -> CardClock {
        let number = self.number as u64;
        CardClock {
            begins_after: APART * number,
            fast_ppb: if self.drifts {
                CRYSTAL_PPB * self.number as i32
            } else {
                0
            },
        }
    }

    /// Puts a device into a program.
    ///
    /// # Errors
    ///
    /// [`HostError::Failed`] if a modem's line carries no transfer even without a host.
    pub fn install(&self, kind: Kind, program: &mut Program) -> Result<Probe, HostError> {
        let (cost, seed, further) = (kind.charged(), self.seed, self.further);
        match kind {
            Kind::Modem => self.install_modem(program),
            Kind::Modems(count) => self.install_modems(count, program),
            Kind::GLite | Kind::FullRate => {
                let rate = match kind {
                    Kind::GLite => dsl::Rate::GLite,
                    _ => dsl::Rate::Full,
                };
                let line = dsl::LineConfig {
                    seed,
                    ..dsl::LineConfig::default()
                };
                let stream = dsl::stream(rate, &line, cost, further, self.clock());
                Ok(self.install_stream(kind, stream, program))
            }
            Kind::Radio => {
                let air = radio::AirConfig {
                    seed,
                    ..radio::AirConfig::default()
                };
                let stream = radio::stream(&air, cost, further, self.clock());
                Ok(self.install_stream(kind, stream, program))
            }
            Kind::Audio => {
                let stream = audio::stream(seed, cost, further, self.clock());
                Ok(self.install_stream(kind, stream, program))
            }
        }
    }

    fn install_stream(&self, kind: Kind, stream: Stream, program: &mut Program) -> Probe {
        let installed = stream.install(program, self.processor, self.placement);
        self.probe(kind, installed, Account::Stream)
    }

    fn probe<R>(
        &self,
        kind: Kind,
        installed: Installed<R>,
        account: impl FnOnce(R) -> Account,
    ) -> Probe {
        Probe {
            kind,
            processor: self.processor,
            driver: installed.driver,
            begin: installed.marks.call_begin,
            end: installed.marks.call_end,
            account: account(installed.report),
        }
    }

    fn install_modem(&self, program: &mut Program) -> Result<Probe, HostError> {
        let mut call = Call::new(self.call(0));
        if !call.run_ahead(RUN_AHEAD_LIMIT) {
            return Err(no_transfer());
        }
        let installed = call.install(program, self.processor, self.placement);
        let account = |report| Account::Modems(vec![report]);
        Ok(self.probe(Kind::Modem, installed, account))
    }

    fn install_modems(&self, count: u8, program: &mut Program) -> Result<Probe, HostError> {
        let calls = (0..count)
            .map(|card| self.call(usize::from(card)))
            .collect();
        let mut modems = SharedModems::new(calls);
        if !modems.run_ahead(RUN_AHEAD_LIMIT) {
            return Err(no_transfer());
        }
        let installed = modems.install(program, self.processor, self.placement);
        Ok(self.probe(Kind::Modems(count), installed, Account::Modems))
    }

    /// A call whose transfer is longer than the run, and which does not end the run if it fails.
    fn call(&self, card: usize) -> CallConfig {
        let share = Share::from_ppm(Kind::Modem.share_ppm() as u32);
        let device = ResolvedDevice {
            name: Kind::Modem.name(),
            processor: self.processor,
            placing: Placing::Interrupt,
            load: Load {
                share,
                tolerance: share,
            },
            line: Line::default(),
            far: FarProfile::PLAIN,
            phases: PhaseOverrides::default(),
        };
        let spec = RunSpec {
            seed: self.seed + card as u64,
            mss_bytes: 536,
            further_receivers: self.further,
            start: Start::Connected,
            gaps_only: true,
        };
        let mut config = call_config(&device, Phases::SHORT, ENDLESS_BYTES, spec);
        config.linger = self.length + Span::from_secs(1);
        let mut clock = self.clock();
        clock.begins_after += APART * card as u64 * 2;
        config.clock = clock;
        config
    }
}

fn no_transfer() -> HostError {
    HostError::Failed("a modem's line carries no transfer even without a host".into())
}
