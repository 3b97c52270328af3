//! The devices, and what is known of each before it runs.

use laxity_devices::card::Format;
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
    /// Its name, what a call costs on the twin's machine (the modem's 14.7 % of 450 MHz, DSL's and the radio's shares of 600 MHz, the player's
    /// assumed), and how its samples move; `None` for modems, whose blocks differ.
    const fn known(self) -> (&'static str, Service, Option<Format>) {
        use dsl::Rate::{Full, GLite};
        let modem_cost = Costs::STUDY.call(Phase::Connected, false);
        match self {
            Self::Modem | Self::Modems(_) => ("modem", modem_cost, None),
            Self::GLite => (
                GLite.name(),
                dsl::quoted_cost(GLite),
                Some(dsl::format(GLite)),
            ),
            Self::FullRate => (Full.name(), dsl::quoted_cost(Full), Some(dsl::format(Full))),
            Self::Radio => ("radio", radio::QUOTED_COST, Some(radio::FORMAT)),
            Self::Audio => ("audio player", audio::ASSUMED_COST, Some(audio::FORMAT)),
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

    /// How its samples move; `None` for modems, whose blocks differ.
    const fn format(self) -> Option<Format> {
        self.known().2
    }

    /// From interrupt to interrupt of one card.
    pub fn period(self) -> Span {
        self.format().map_or(MODEM_PERIOD, |format| format.period())
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
        let period = self.period();
        let Some(format) = self.format() else {
            debug_assert_eq!(Setting::CONNECTED.samples_in(3), 3 * MODEM_BLOCK);
            let all = work * self.cards();
            return Device::duplex(all, period, MODEM_BLOCK, RING_SAMPLES, MODEM_LEAD);
        };
        match self {
            Self::Audio => {
                let lead = format.lead_blocks * format.block;
                Device::playback(work, period, format.block, lead)
            }
            _ => Device::capture(work, period, format.block, format.ring()),
        }
    }
}
