//! A digital audio player: a sound at 44.1 kHz, resampled to the 48 kHz of the card, in periods of real players.
//!
//! What Jones and Saroiu would have liked to see beside the soft modem (§7). The sound is keyed, so that a listener can check what
//! came out: a period that was late is heard as a frame whose CRC is wrong.
//!
//! The resampler is rubato's polynomial one (septic), in plain arithmetic. Its sinc and FFT resamplers choose vector instructions when
//! they run and compute their filters with the system's mathematics, so a twin could not promise the same bits everywhere.
//!
//! * `sound`: frames to sound and back; `player`: what the driver calls.

mod player;
mod sound;

use std::sync::Arc;

use laxity_model::{InterruptLevel, Service};

use crate::card::{Block, CardClock, Format, Repeated, Stream};
pub use player::Player;
pub use sound::{Ear, Sound};

/// Below the modem's interrupt: its blocks are due later.
const LEVEL: InterruptLevel = InterruptLevel(4);

/// Frames of a period at 48 kHz: 10 ms, as PipeWire's and many players' 480.
pub const PERIOD_FRAMES: usize = 480;

/// Two periods are played while two are filled.
const RING_BLOCKS: u64 = 4;

/// What a period costs in the twin (assumed; the study gives nothing): 1 ms, 10 % of a 450 MHz processor for decoding and resampling.
pub const ASSUMED_COST: Service = Service::from_millis(1);

/// How the card moves samples.
pub const FORMAT: Format = Format {
    rate_hz: 48_000,
    block: PERIOD_FRAMES as u64,
    ring_blocks: RING_BLOCKS,
    lead_blocks: 1,
    spare: 0,
};

/// A player of a sound: a call of the signal processing costs `cost` in the twin; live it is done `1 + further` times.
pub fn stream(seed: u64, cost: Service, further: usize, clock: CardClock) -> Stream {
    let sound = Arc::new(Sound::new(seed));
    let make = || Box::new(Player::new(Arc::clone(&sound))) as Box<dyn Block>;
    Stream {
        name: "audio player",
        level: LEVEL,
        format: FORMAT,
        recording: None,
        work: Repeated::new(further, make),
        cost,
        clock,
        listener: Some(Box::new(Ear::default())),
    }
}
