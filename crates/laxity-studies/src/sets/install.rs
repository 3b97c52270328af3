//! A device of a set, put into a program, and where its evidence will be.

use std::sync::Arc;

use laxity_devices::card::{self, Installed};
use laxity_devices::modem::{self, CallConfig, CardClock, SharedModems, Timing};
use laxity_devices::{audio, dsl, radio};
use laxity_model::{HostError, ProcessorId, Program, Span};

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
    /// Its activities, its events and who keeps its account.
    pub device: Installed<Account>,
}

/// Puts the member of this number into a program.
///
/// # Errors
///
/// [`HostError::Failed`] if a modem's line carries no transfer even without a host.
pub fn install(setup: &Setup, number: usize, program: &mut Program) -> Result<Probe, HostError> {
    let Member {
        kind,
        processor,
        further,
        reservation,
        ..
    } = setup.members[number];
    let crystal = if setup.drifts { CRYSTAL_PPB } else { 0 };
    let clock = CardClock {
        begins_after: APART * number as u64,
        fast_ppb: crystal * number as i32,
    };
    // What the lines' noise and all payload comes from.
    let seed = setup.seed + 16 * number as u64;
    let dsl = |rate| {
        let line = dsl::LineConfig {
            seed,
            ..dsl::LineConfig::default()
        };
        dsl::stream(rate, &line, kind.charged(), further, clock)
    };
    let stream = match kind {
        Kind::Modem | Kind::Modems(_) => None,
        Kind::GLite => Some(dsl(dsl::Rate::GLite)),
        Kind::FullRate => Some(dsl(dsl::Rate::Full)),
        Kind::Radio => {
            let air = radio::AirConfig {
                seed,
                ..radio::AirConfig::default()
            };
            Some(radio::stream(&air, kind.charged(), further, clock))
        }
        Kind::Audio => Some(audio::stream(seed, kind.charged(), further, clock)),
    };
    let placement = setup.variant.placement(reservation);
    let device = if let Some(stream) = stream {
        let stream = stream.install(program, processor, placement);
        stream.reporting(Account::Stream)
    } else {
        let cards = 0..kind.cards();
        let mut modems =
            SharedModems::new(cards.map(|card| call(card, further, clock, seed)).collect());
        if !modems.run_ahead(RUN_AHEAD_LIMIT) {
            let why = "a modem's line carries no transfer even without a host";
            return Err(HostError::Failed(why.into()));
        }
        let modems = modems.install(program, processor, placement);
        modems.reporting(Account::Modems)
    };
    Ok(Probe {
        kind,
        processor,
        device,
    })
}

/// A call whose transfer is longer than the run.
fn call(card: u64, further_receivers: usize, clock: CardClock, seed: u64) -> CallConfig {
    let (on_hook, dialing) = (Span::from_millis(100), Span::from_millis(1_500));
    let timing = Timing::lasting(on_hook, dialing, Span::from_secs(1));
    CallConfig {
        further_receivers,
        clock: CardClock {
            begins_after: clock.begins_after + APART * card * 2,
            ..clock
        },
        ..CallConfig::new(timing, seed + card, ENDLESS_OCTETS)
    }
}
