//! `kind = "dsl"`: a soft DSL receiver.

use std::sync::Arc;

use laxity_devices::card::{CardClock, Format, Stream};
use laxity_devices::dsl::{self, LineConfig, Rate};
use laxity_model::Service;
use laxity_model::verify::contract::Kind;

use super::super::keys::{Integers, Key, Table, Within, Without, Words};
use super::super::quantities::LEVEL;
use super::super::reader::Section;
use super::super::units::{self, Load};
use super::stream::{self, Streamed};
use super::{Device, Runs, load};

pub(super) const KIND: Kind = Kind {
    name: "dsl",
    quantities: stream::RECEIVED,
};

static LOAD: Key<Load> = load(Without::Means("25 % ± 0.7; at the full rate 50 % ± 0.7"));
static RATE: Key<Rate> = Key::new(
    "rate",
    &Words(&[("g.lite", Rate::GLite), ("full", Rate::Full)]),
    Without::Is("\"g.lite\""),
    "How fast the line is: 1.536 Mbit/s, or twice that.",
);
static SNR: Key<u64> = Key::new(
    "snr",
    &Within(&LEVEL, 1_000..=120_000),
    Without::Is("\"30 dB\""),
    "Signal over noise at the card. Below 20 dB frames are damaged by the line itself.",
);
static RING: Key<u64> = Key::new(
    "ring",
    &Integers(2, 64),
    Without::Is("2"),
    "Frames of 4 ms that the card's ring holds.",
);
pub(super) static KEYS: Table = Table {
    heading: "[devices.<name>]",
    kind: Some(KIND.name),
    about: "A receiver of a trained line: discrete multitone, a frame of 16 symbols with a CRC every 4 ms.",
    keys: &[&LOAD, &RATE, &SNR, &RING],
};

/// A receiver.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Dsl {
    /// How fast its line is.
    pub rate: Rate,
    /// How good its line is, in decibels.
    pub snr_db: f64,
    /// How its samples move.
    pub format: Format,
}

impl Dsl {
    /// On the usual line.
    pub fn of(rate: Rate) -> Self {
        Self {
            rate,
            snr_db: LineConfig::default().snr_db,
            format: dsl::format(rate),
        }
    }
}

pub(super) fn read(section: &Section<'_>, _: &Runs<'_>) -> Option<(Arc<dyn Device>, Load)> {
    let usual = Dsl::of(section.take(&RATE));
    let device = Dsl {
        snr_db: section.take(&SNR) as f64 / 1_000.0,
        format: Format {
            ring_blocks: section.take(&RING),
            ..usual.format
        },
        ..usual
    };
    let usual = match device.rate {
        Rate::GLite => "25 %",
        Rate::Full => "50 %",
    };
    let load = section.optional(&LOAD).or(units::load(usual).ok())?;
    Some((Arc::new(device), load))
}

impl Streamed for Dsl {
    const KIND: Kind = KIND;
    const FEWEST_REPEATS: usize = 2;

    fn format(&self) -> Format {
        self.format
    }

    fn stream(&self, seed: u64, cost: Service, further: usize, clock: CardClock) -> Stream {
        let line = LineConfig {
            seed,
            snr_db: self.snr_db,
            ..LineConfig::default()
        };
        dsl::stream(self.rate, &line, cost, further, clock)
    }
}
