//! Symbols: 16 points on each tone, a cyclic prefix before each symbol.

use super::fft::{Complex, Fft};

/// Symbols a second, as in ADSL.
const SYMBOLS_HZ: usize = 4_000;
/// Bits on each tone.
const TONE_BITS: usize = 4;
/// Below it is the telephone, and the other direction.
const FIRST_TONE: usize = 8;

/// How fast a line is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rate {
    /// 96 tones of 4 bits, 1.536 Mbit/s: like G.lite's 1.531 Mbit/s.
    GLite,
    /// 192 tones of 4 bits, 3.072 Mbit/s: like the full rate of 3.062 Mbit/s.
    Full,
}

impl Rate {
    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::GLite => "DSL G.lite",
            Self::Full => "DSL full rate",
        }
    }

    /// The logarithm of the transform's length: 256 or 512 samples.
    #[must_use]
    pub const fn fft_bits(self) -> u32 {
        match self {
            Self::GLite => 8,
            Self::Full => 9,
        }
    }

    /// Tones that carry data.
    #[must_use]
    pub const fn tones(self) -> usize {
        match self {
            Self::GLite => 96,
            Self::Full => 192,
        }
    }

    /// Samples a second: 1.104 or 2.208 MHz.
    #[must_use]
    pub const fn sample_rate_hz(self) -> u64 {
        (self.symbol_samples() * SYMBOLS_HZ) as u64
    }

    /// Samples that a symbol repeats of its end before its beginning.
    #[must_use]
    pub const fn prefix(self) -> usize {
        match self {
            Self::GLite => 20,
            Self::Full => 40,
        }
    }

    /// Samples of a symbol with its prefix.
    #[must_use]
    pub const fn symbol_samples(self) -> usize {
        (1 << self.fft_bits()) + self.prefix()
    }

    /// Octets that a symbol carries.
    #[must_use]
    pub const fn symbol_octets(self) -> usize {
        self.tones() * TONE_BITS / 8
    }
}

/// The levels of two bits in one dimension, neighbours differing in one bit; a point's mean power is 1.
const LEVELS: [f32; 4] = [-3.0 * UNIT, -UNIT, 3.0 * UNIT, UNIT];
/// 1/√10.
const UNIT: f32 = 0.316_227_77;

/// The point of four bits.
fn point(nibble: u8) -> Complex {
    let level = |bits: u8| LEVELS[usize::from(bits & 3)];
    Complex::new(level(nibble), level(nibble >> 2))
}

/// The two bits whose level is nearest.
fn nearest(value: f32) -> u8 {
    match (value < 0.0, value.abs() > 2.0 * UNIT) {
        (true, true) => 0,
        (true, false) => 1,
        (false, true) => 2,
        (false, false) => 3,
    }
}

/// Makes symbols, and takes them apart.
#[derive(Clone, Debug)]
pub struct Modulation {
    rate: Rate,
    fft: Fft,
    values: Vec<Complex>,
}

impl Modulation {
    /// For lines of this rate.
    #[must_use]
    pub fn new(rate: Rate) -> Self {
        let fft = Fft::new(rate.fft_bits());
        Self {
            rate,
            values: vec![Complex::default(); fft.length()],
            fft,
        }
    }

    /// The rate.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Appends a symbol that carries these octets, with its prefix; of mean power 2·tones.
    pub fn modulate(&mut self, octets: &[u8], signal: &mut Vec<f32>) {
        self.values.fill(Complex::default());
        let n = self.values.len();
        let nibbles = octets.iter().flat_map(|octet| [octet & 15, octet >> 4]);
        for (tone, nibble) in (FIRST_TONE..).zip(nibbles) {
            self.values[tone] = point(nibble);
            self.values[n - tone] = point(nibble).conjugate();
        }
        self.fft.inverse(&mut self.values);
        let samples = self.values.iter().map(|value| value.re);
        signal.extend(samples.clone().skip(n - self.rate.prefix()));
        signal.extend(samples);
    }

    /// The values on a symbol's data tones, as received with its prefix.
    pub fn tones(&mut self, symbol: &[i16]) -> &[Complex] {
        let body = &symbol[self.rate.prefix()..];
        for (value, sample) in self.values.iter_mut().zip(body) {
            *value = Complex::new(f32::from(*sample), 0.0);
        }
        self.fft.forward(&mut self.values);
        &self.values[FIRST_TONE..FIRST_TONE + self.rate.tones()]
    }

    /// Decides which octets a symbol carries, each tone corrected by its equalizer.
    pub fn demodulate(&mut self, symbol: &[i16], equalizers: &[Complex], octets: &mut Vec<u8>) {
        let tones = self.tones(symbol);
        let decide = |(tone, equalizer): (&Complex, &Complex)| {
            let corrected = *tone * *equalizer;
            nearest(corrected.re) | nearest(corrected.im) << 2
        };
        let pairs = tones.chunks_exact(2).zip(equalizers.chunks_exact(2));
        octets.extend(pairs.map(|(tones, equalizers)| {
            decide((&tones[0], &equalizers[0])) | decide((&tones[1], &equalizers[1])) << 4
        }));
    }

    /// The point that these octets put on a data tone.
    #[must_use]
    pub fn sent(octets: &[u8], tone: usize) -> Complex {
        point(octets[tone / 2] >> (4 * (tone % 2)) & 15)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_decided_as_itself() {
        for nibble in 0..16 {
            let Complex { re, im } = point(nibble);
            assert_eq!(nearest(re) | nearest(im) << 2, nibble);
        }
        let power: f32 = (0..16).map(|n| point(n).power()).sum::<f32>() / 16.0;
        assert!((power - 1.0).abs() < 1e-5);
    }

    #[test]
    fn rates_are_those_of_the_lines() {
        assert_eq!(Rate::GLite.sample_rate_hz(), 1_104_000);
        assert_eq!(Rate::Full.sample_rate_hz(), 2_208_000);
        assert_eq!(Rate::GLite.symbol_octets() * 8 * SYMBOLS_HZ, 1_536_000);
        assert_eq!(Rate::Full.symbol_octets() * 8 * SYMBOLS_HZ, 3_072_000);
    }
}
