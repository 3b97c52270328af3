//! The devices, and what is known of each before it runs.

use laxity_devices::modem::card::{RING_SAMPLES, Setting};
use laxity_devices::modem::{Costs, Phase};
use laxity_devices::{audio, dsl, radio};
use laxity_model::analysis::devices::{Device, DeviceError};
use laxity_model::{Service, Span};
use serde::Deserialize;

/// From block to block of a connected modem, on average (Jones, Saroiu §6.2.1).
const MODEM_PERIOD: Span = Span::from_micros(12_500);
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
    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Modem => "modem".into(),
            Self::Modems(count) => format!("{count} modems on one driver"),
            Self::GLite => dsl::Rate::GLite.name().into(),
            Self::FullRate => dsl::Rate::Full.name().into(),
            Self::Radio => "radio".into(),
            Self::Audio => "audio player".into(),
        }
    }

    /// What a call costs on the twin's machine: the modem's 14.7 % of 450 MHz, DSL's and the radio's shares of 600 MHz, the player's assumed.
    #[must_use]
    pub const fn charged(self) -> Service {
        match self {
            Self::Modem | Self::Modems(_) => Costs::STUDY.call(Phase::Connected, false),
            Self::GLite => dsl::quoted_cost(dsl::Rate::GLite),
            Self::FullRate => dsl::quoted_cost(dsl::Rate::Full),
            Self::Radio => radio::QUOTED_COST,
            Self::Audio => audio::ASSUMED_COST,
        }
    }

    /// From interrupt to interrupt of one card.
    #[must_use]
    pub fn period(self) -> Span {
        match self {
            Self::Modem | Self::Modems(_) => MODEM_PERIOD,
            Self::GLite => dsl::format(dsl::Rate::GLite).period(),
            Self::FullRate => dsl::format(dsl::Rate::Full).period(),
            Self::Radio => radio::FORMAT.period(),
            Self::Audio => audio::FORMAT.period(),
        }
    }

    /// How many cards there are.
    #[must_use]
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
    #[must_use]
    pub fn share_ppm(self) -> u64 {
        self.charged().as_nanos() * self.cards() * 1_000_000 / self.period().as_nanos()
    }

    /// The device as the analysis knows it, a call taking `work`. Several modems on a driver: all blocks at once.
    ///
    /// # Errors
    ///
    /// Never for a work of more than zero.
    pub fn device(self, work: Service) -> Result<Device, DeviceError> {
        let period = self.period();
        match self {
            Self::Modem | Self::Modems(_) => {
                debug_assert_eq!(Setting::CONNECTED.samples_in(3), 3 * MODEM_BLOCK);
                let all = work * self.cards();
                Device::duplex(all, period, MODEM_BLOCK, RING_SAMPLES, MODEM_LEAD)
            }
            Self::Audio => {
                let format = audio::FORMAT;
                let lead = format.lead_blocks * format.block;
                Device::playback(work, period, format.block, lead)
            }
            Self::GLite => capture(work, dsl::format(dsl::Rate::GLite)),
            Self::FullRate => capture(work, dsl::format(dsl::Rate::Full)),
            Self::Radio => capture(work, radio::FORMAT),
        }
    }
}

fn capture(work: Service, format: laxity_devices::card::Format) -> Result<Device, DeviceError> {
    Device::capture(work, format.period(), format.block, format.ring())
}
