//! The player: from the sound's rate to the card's, a period at a time.

use std::sync::Arc;

use crc::{CRC_32_ISO_HDLC, Crc};
use rubato::audioadapter_buffers::direct::InterleavedSlice;
use rubato::{Async, FixedAsync, PolynomialDegree, Resampler};

use super::PERIOD_FRAMES;
use super::sound::Sound;
use crate::card::{Block, Checked};

/// 48 kHz over 44.1 kHz.
const RATIO: f64 = 160.0 / 147.0;

static DIGEST: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);

/// What the driver calls once a period.
pub struct Player {
    sound: Arc<Sound>,
    resampler: Async<f32>,
    /// The sound's next sample.
    next: u64,
    read: Vec<f32>,
    made: Vec<f32>,
}

impl Player {
    /// A player at the beginning of a sound.
    ///
    /// # Panics
    ///
    /// Never: ratio and period are constants that the resampler accepts.
    #[must_use]
    pub fn new(sound: Arc<Sound>) -> Self {
        let resampler = Async::new_poly(
            RATIO,
            1.0,
            PolynomialDegree::Septic,
            PERIOD_FRAMES,
            1,
            FixedAsync::Output,
        );
        let resampler = resampler.expect("a ratio above 0 and a period above 0");
        let read = vec![0.0; resampler.input_frames_max()];
        Self {
            sound,
            resampler,
            next: 0,
            read,
            made: vec![0.0; PERIOD_FRAMES],
        }
    }

    /// The next period. Returns whether it could be made.
    fn make(&mut self) -> bool {
        let wanted = self.resampler.input_frames_next();
        for (sample, index) in self.read[..wanted].iter_mut().zip(self.next..) {
            *sample = self.sound.sample(index);
        }
        self.next += wanted as u64;
        let from = InterleavedSlice::new(&self.read[..wanted], 1, wanted);
        let to = InterleavedSlice::new_mut(&mut self.made, 1, PERIOD_FRAMES);
        match (from, to) {
            (Ok(from), Ok(mut to)) => self
                .resampler
                .process_into_buffer(&from, &mut to, None)
                .is_ok(),
            _ => false,
        }
    }
}

impl Block for Player {
    fn process(&mut self, _: u64, _: &[i16], output: &mut [i16]) -> Checked {
        if !self.make() {
            self.made.fill(0.0);
        }
        let mut digest = DIGEST.digest();
        for (sample, made) in output.iter_mut().zip(&self.made) {
            *sample = made.clamp(-32_768.0, 32_767.0) as i16;
            digest.update(&sample.to_le_bytes());
        }
        // Whether a frame was good is for the listener to say.
        Checked {
            digest: digest.finalize(),
            ..Checked::default()
        }
    }
}
