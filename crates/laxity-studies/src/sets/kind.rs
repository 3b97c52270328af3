//! The devices, and what is known of each before it runs.

use laxity_devices::modem::card::{RING_SAMPLES, Setting};
use laxity_devices::modem::needs::BLOCK_PERIOD;
use laxity_devices::{audio, dsl, radio};
use laxity_lab::scenario::TwinProfile;
use laxity_lab::scenario::devices::{self, Dsl};
use laxity_model::analysis::devices::{Device, DeviceError};
use laxity_model::{Service, Span};
use serde::Deserialize;

/// Samples of such a block, on average.
const MODEM_BLOCK: u64 = 200;
/// How far a modem's output is taken to be ahead: 10 ms, 2.5 ms less than its driver keeps it, because its blocks differ by as much.
const MODEM_LEAD: u64 = 160;

/// A device, or several on one driver.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A modem with a driver of its own.
    Modem,
    /// So many modems on one driver.
    Modems(u8),
    /// DSL, G.lite.
    GLite,
    /// DSL, full rate.
    FullRate,
    /// A radio receiver.
    Radio,
    /// A digital audio player.
    Audio,
}

impl Kind {
    /// Its name, and what a call costs on the twin's machine: the modem's share of 450 MHz, DSL's and the radio's shares of 600 MHz, the player's
    /// assumed.
    const fn known(self) -> (&'static str, Service) {
        use dsl::Rate::{Full, GLite};
        match self {
            Self::Modem | Self::Modems(_) => ("modem", TwinProfile::WIN2000_PII450.costs.data),
            Self::GLite => (GLite.name(), dsl::quoted_cost(GLite)),
            Self::FullRate => (Full.name(), dsl::quoted_cost(Full)),
            Self::Radio => ("radio", radio::QUOTED_COST),
            Self::Audio => ("audio player", audio::ASSUMED_COST),
        }
    }

    /// What scenarios have of its kind; `None` for modems, several of which may share a driver here.
    pub(super) fn component(self) -> Option<Box<dyn devices::Device>> {
        match self {
            Self::Modem | Self::Modems(_) => None,
            Self::GLite => Some(Box::new(Dsl::of(dsl::Rate::GLite))),
            Self::FullRate => Some(Box::new(Dsl::of(dsl::Rate::Full))),
            Self::Radio => Some(Box::new(devices::Radio::default())),
            Self::Audio => Some(Box::new(devices::Audio::default())),
        }
    }

    /// Its name in tables.
    pub fn name(self) -> String {
        match self {
            Self::Modems(count) => format!("{count} modems on one driver"),
            kind => kind.known().0.into(),
        }
    }

    /// Whether it is a modem, or several.
    pub const fn is_modem(self) -> bool {
        matches!(self, Self::Modem | Self::Modems(_))
    }

    /// What a call costs on the twin's machine.
    pub const fn charged(self) -> Service {
        self.known().1
    }

    /// From interrupt to interrupt of one card.
    pub fn period(self) -> Span {
        let own = self.component();
        own.map_or(BLOCK_PERIOD, |own| own.period())
    }

    /// How many cards there are.
    pub const fn cards(self) -> u64 {
        match self {
            Self::Modems(count) => count as u64,
            _ => 1,
        }
    }

    /// One of its cards: a modem of several on one driver.
    #[must_use]
    pub const fn single(self) -> Self {
        match self {
            Self::Modems(_) => Self::Modem,
            kind => kind,
        }
    }

    /// The share of a processor that its signal processing takes, in parts per million.
    pub fn share_ppm(self) -> u64 {
        self.charged().as_nanos() * self.cards() * 1_000_000 / self.period().as_nanos()
    }

    /// The device as the analysis knows it, a call taking `work`. Several modems on a driver: all blocks at once.
    ///
    /// # Errors
    ///
    /// Never for a work of more than zero.
    pub fn device(self, work: Service) -> Result<Device, DeviceError> {
        if let Some(own) = self.component() {
            return own.analysed(work);
        }
        debug_assert_eq!(Setting::CONNECTED.samples_in(3), 3 * MODEM_BLOCK);
        let all = work * self.cards();
        Device::duplex(all, BLOCK_PERIOD, MODEM_BLOCK, RING_SAMPLES, MODEM_LEAD)
    }
}
