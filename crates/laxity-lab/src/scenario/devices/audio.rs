//! `kind = "audio"`: a digital audio player.

use std::sync::Arc;

use laxity_devices::audio;
use laxity_devices::card::{CardClock, Format, Stream};
use laxity_model::Service;
use laxity_model::analysis::devices::{Device as Analysed, DeviceError};
use laxity_model::verify::contract::Kind;

use super::super::keys::{Integers, Key, Table, Without};
use super::super::reader::Section;
use super::super::units::Load;
use super::stream::{self, Streamed};
use super::{Device, Runs, load};

pub(super) const KIND: Kind = Kind {
    name: "audio",
    quantities: stream::PLAYED,
};

static LOAD: Key<Load> = load(Without::Is("\"10 % ± 0.7\""));
static RING: Key<u64> = Key::new(
    "ring",
    &Integers(2, 64),
    Without::Is("4"),
    "Periods of 10 ms that the card's buffer holds.",
);
static AHEAD: Key<u64> = Key::new(
    "ahead",
    &Integers(1, 63),
    Without::Is("1"),
    "Periods by which the player is ahead of the card; fewer than `ring`. So much later a period may be filled.",
);
pub(super) static KEYS: Table = Table {
    heading: "[devices.<name>]",
    kind: Some(KIND.name),
    about: "A player that resamples a sound of 44.1 to 48 kHz, in periods of 480 frames (10 ms). A period that is late is heard as a frame whose CRC is \
        wrong.",
    keys: &[&LOAD, &RING, &AHEAD],
};

/// A player.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Audio {
    /// How its samples move.
    pub format: Format,
}

impl Default for Audio {
    fn default() -> Self {
        let format = audio::FORMAT;
        Self { format }
    }
}

pub(super) fn read(section: &Section<'_>, _: &Runs<'_>) -> Option<(Arc<dyn Device>, Load)> {
    let format = Format {
        ring_blocks: section.take(&RING),
        lead_blocks: section.take(&AHEAD),
        ..audio::FORMAT
    };
    if format.lead_blocks >= format.ring_blocks {
        let cause = format!(
            "a buffer of {} periods cannot be filled {} ahead",
            format.ring_blocks, format.lead_blocks
        );
        section.wrong(AHEAD.name, cause, "write an `ahead` below `ring`");
    }
    Some((Arc::new(Audio { format }), section.take(&LOAD)))
}

impl Streamed for Audio {
    const KIND: Kind = KIND;
    const FEWEST_REPEATS: usize = 10;

    fn format(&self) -> Format {
        self.format
    }

    /// Its card is not read, but written.
    fn analysed(&self, work: Service) -> Result<Analysed, DeviceError> {
        let lead = self.format.lead_blocks * self.format.block;
        Analysed::playback(work, self.format.period(), self.format.block, lead)
    }

    fn stream(&self, seed: u64, cost: Service, further: usize, clock: CardClock) -> Stream {
        audio::stream(seed, cost, further, clock)
    }
}
