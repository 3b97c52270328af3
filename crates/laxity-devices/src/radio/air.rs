//! What is recorded at the antenna: bursts with an echo, a carrier that is off, and noise.

use std::sync::Arc;

use laxity_model::base::random::SplitMix64;

use super::SLOT_VALUES;
use super::burst::{CRC_OCTETS, GUARD, OCTETS, OVERSAMPLING, pulse, steps};
use crate::pump::noise::Noise;
use crate::signal::{Complex, numbered_crc, unit};

/// The amplitude of a lone symbol at the card.
const LEVEL: f32 = 6_000.0;
/// The echo's strength, and its delay in samples: half a symbol.
const ECHO: (f32, usize) = (0.2, 2);

/// How bad the air is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AirConfig {
    /// What payload and noise come from.
    pub seed: u64,
    /// Energy of a symbol over the noise's density, in decibels. About 14 dB are needed for one burst in ten thousand to be damaged.
    pub snr_db: f64,
    /// By how much the carrier is off, in hertz: 10 kHz turn the phase by 3.6° a symbol.
    pub carrier_offset_hz: f64,
    /// Slots until the recording begins again.
    pub slots: u64,
}

impl Default for AirConfig {
    fn default() -> Self {
        Self {
            seed: 1,
            snr_db: 24.0,
            carrier_offset_hz: 10_000.0,
            // A prime: no number of rings brings the same burst to the same place soon.
            slots: 251,
        }
    }
}

/// Sends bursts through the air: whole slots, in-phase and quadrature one after the other.
pub fn record(air: &AirConfig) -> Arc<[i16]> {
    let mut random = SplitMix64::new(air.seed);
    let mut noise = Noise::new(air.seed ^ 0xA12);
    let pulse = pulse();
    let mut values = Vec::with_capacity(air.slots as usize * SLOT_VALUES);
    for number in 0..air.slots {
        let mut octets = [0; OCTETS];
        let (payload, crc) = octets.split_at_mut(OCTETS - CRC_OCTETS);
        payload.fill_with(|| (random.draw() >> 56) as u8);
        crc.copy_from_slice(&numbered_crc(number as u32, payload).to_le_bytes());
        let clean = burst(&octets, &pulse);
        impair(&clean, air, &mut noise, &mut values);
    }
    values.into()
}

/// The slot of one burst.
fn burst(octets: &[u8], pulse: &[f32]) -> Vec<Complex> {
    let mut samples = vec![Complex::default(); SLOT_VALUES / 2];
    let half = pulse.len() / 2;
    let turns = steps(octets).scan(0, |turns, step| {
        *turns = (*turns + step) & 3;
        Some(*turns)
    });
    for (symbol, turns) in core::iter::once(0).chain(turns).enumerate() {
        let point = unit(f64::from(turns) * core::f64::consts::FRAC_PI_2);
        let first = GUARD + symbol * OVERSAMPLING - half;
        for (sample, tap) in samples[first..].iter_mut().zip(pulse) {
            *sample += point.scale(*tap);
        }
    }
    samples
}

fn impair(clean: &[Complex], air: &AirConfig, noise: &mut Noise, values: &mut Vec<i16>) {
    let sample_hz = super::RATE_HZ as f64 / 2.0;
    let turn = 2.0 * core::f64::consts::PI * air.carrier_offset_hz / sample_hz;
    // A symbol's energy is 1; the noise's density is that of both parts.
    let deviation =
        LEVEL * libm::pow(10.0, -air.snr_db / 20.0) as f32 * core::f32::consts::FRAC_1_SQRT_2;
    let (strength, delay) = ECHO;
    for (at, sample) in clean.iter().enumerate() {
        let echo = at
            .checked_sub(delay)
            .map(|early| clean[early].scale(strength));
        let both = *sample + echo.unwrap_or_default();
        let turned = (both * unit(turn * at as f64)).scale(LEVEL);
        for part in [turned.re, turned.im] {
            let value = part + noise.next() * deviation;
            values.push(value.clamp(-32_768.0, 32_767.0) as i16);
        }
    }
}
