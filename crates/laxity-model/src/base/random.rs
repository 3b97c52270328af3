//! Numbers that look random and follow from a seed: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.

/// The golden ratio's fraction as 64 bits: from one state of [`SplitMix64`] to the next.
pub const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// A permutation of the 64-bit numbers that leaves no pattern: near numbers become far ones. The first number of [`SplitMix64`] from
/// this seed.
#[inline]
pub const fn scrambled(number: u64) -> u64 {
    let z = number.wrapping_add(GAMMA);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A sequence of 64-bit numbers, each of which comes once in 2⁶⁴.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// The sequence of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    #[inline]
    pub const fn draw(&mut self) -> u64 {
        let drawn = scrambled(self.0);
        self.0 = self.0.wrapping_add(GAMMA);
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        let mut random = SplitMix64::new(1_234_567);
        let drawn = [(); 5].map(|()| random.draw());
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(drawn, published);
    }
}
