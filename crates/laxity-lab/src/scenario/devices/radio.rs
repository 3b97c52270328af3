//! `kind = "radio"`: a soft radio receiver.

use std::sync::Arc;

use laxity_devices::card::{CardClock, Format, Stream};
use laxity_devices::radio::{self, AirConfig};
use laxity_model::Service;
use laxity_model::verify::contract::Kind;

use super::super::keys::{Integers, Key, Table, Within, Without};
use super::super::quantities::{FREQUENCY, LEVEL};
use super::super::reader::Section;
use super::super::units::Load;
use super::stream::{self, Streamed};
use super::{Device, Runs, load};

pub(super) const KIND: Kind = Kind {
    name: "radio",
    quantities: stream::RECEIVED,
};

static LOAD: Key<Load> = load(Without::Is("\"2.5 % ± 0.7\""));
static SNR: Key<u64> = Key::new(
    "snr",
    &Within(&LEVEL, 1_000..=120_000),
    Without::Is("\"24 dB\""),
    "A symbol's energy over the noise's density. Below 14 dB bursts are damaged by the air itself.",
);
static CARRIER_OFFSET: Key<i64> = Key::new(
    "carrier_offset",
    &Within(&FREQUENCY, -50_000_000..=50_000_000),
    Without::Is("\"10 kHz\""),
    "By how much the carrier is off: 10 kHz turn the phase by 3.6° a symbol.",
);
static RING: Key<u64> = Key::new(
    "ring",
    &Integers(2, 64),
    Without::Is("4"),
    "Slots of 312.5 µs that the card's ring holds.",
);
pub(super) static KEYS: Table = Table {
    heading: "[devices.<name>]",
    kind: Some(KIND.name),
    about: "A receiver of bursts with a CRC, one every 312.5 µs.",
    keys: &[&LOAD, &SNR, &CARRIER_OFFSET, &RING],
};

/// A receiver.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Radio {
    /// What is received; its noise and payload are the run's.
    pub air: AirConfig,
    /// How its samples move.
    pub format: Format,
}

impl Default for Radio {
    fn default() -> Self {
        Self {
            air: AirConfig::default(),
            format: radio::FORMAT,
        }
    }
}

pub(super) fn read(section: &Section<'_>, _: &Runs<'_>) -> Option<(Arc<dyn Device>, Load)> {
    let device = Radio {
        air: AirConfig {
            snr_db: section.take(&SNR) as f64 / 1_000.0,
            carrier_offset_hz: section.take(&CARRIER_OFFSET) as f64 / 1_000.0,
            ..AirConfig::default()
        },
        format: Format {
            ring_blocks: section.take(&RING),
            ..radio::FORMAT
        },
    };
    Some((Arc::new(device), section.take(&LOAD)))
}

impl Streamed for Radio {
    const KIND: Kind = KIND;
    const FEWEST_REPEATS: usize = 0;

    fn format(&self) -> Format {
        self.format
    }

    fn stream(&self, seed: u64, cost: Service, further: usize, clock: CardClock) -> Stream {
        let air = AirConfig { seed, ..self.air };
        radio::stream(&air, cost, further, clock)
    }
}
