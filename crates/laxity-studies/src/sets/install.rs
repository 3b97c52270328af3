//! A device of a set, put into a program, and where its evidence will be.

use laxity_devices::modem::{CallConfig, CardClock, SharedModems, Timing};
use laxity_lab::bench::load::fast_ppb;
use laxity_lab::scenario::TwinProfile;
use laxity_lab::scenario::devices::{Account, Installed, Site, Transfer};
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

/// Where the evidence of a device is.
#[derive(Clone)]
pub struct Probe {
    /// What it is.
    pub kind: Kind,
    /// Where its driver runs.
    pub processor: ProcessorId,
    /// Its activities, its events and who keeps its account.
    pub device: Installed,
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
        fast_ppb: crystal * number as i32 + fast_ppb(setup.pace),
    };
    // What the lines' noise and all payload comes from.
    let seed = setup.seed + 16 * number as u64;
    let placement = setup.variant.placement(reservation);
    let device = if let Some(own) = kind.component() {
        let site = Site {
            processor,
            placing: placement,
            seed,
            work: kind.charged(),
            further,
            clock,
            transfer: Transfer::default(),
        };
        own.install(program, &site)?
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
        costs: TwinProfile::WIN2000_PII450.costs,
        ..CallConfig::new(timing, seed + card, ENDLESS_OCTETS)
    }
}
