//! A pipe of bits that takes time, and may lose, flip or stop them.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::collections::VecDeque;

use laxity_devices::bits::{BitSink, BitSource};
use laxity_devices::link::LineRates;

/// A block of the modem.
pub(crate) const STEP_NS: u64 = 12_500_000;
/// Seen from the client.
pub(crate) const RATES: LineRates = LineRates {
    transmit_bit_s: 31_200,
    receive_bit_s: 50_667,
};

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }
}

/// One direction: carries a rate's bits of each step, and hands them over after a delay.
pub(crate) struct Pipe<D> {
    bit_s: u64,
    delay_ns: u64,
    /// Bits already taken, counted from time 0.
    taken: u64,
    on_the_way: VecDeque<(u64, Vec<bool>)>,
    /// Puts what becomes of a bit into the vector.
    damage: D,
}

impl<D: FnMut(bool, &mut Vec<bool>)> Pipe<D> {
    pub(crate) fn new(bit_s: u32, delay_ms: u64, damage: D) -> Self {
        Self {
            bit_s: u64::from(bit_s),
            delay_ns: delay_ms * 1_000_000,
            taken: 0,
            on_the_way: VecDeque::new(),
            damage,
        }
    }

    pub(crate) fn step(&mut self, now_ns: u64, from: &mut impl BitSource, to: &mut impl BitSink) {
        let due = u64::try_from(u128::from(now_ns) * u128::from(self.bit_s) / 1_000_000_000)
            .expect("fits");
        let mut bits = Vec::new();
        for _ in self.taken..due {
            (self.damage)(from.next_bit(), &mut bits);
        }
        self.taken = due;
        self.on_the_way.push_back((now_ns + self.delay_ns, bits));
        while self.on_the_way.front().is_some_and(|&(at, _)| at <= now_ns) {
            for bit in self.on_the_way.pop_front().expect("seen").1 {
                to.push_bit(bit);
            }
        }
    }

    /// Nothing goes in, and what is on the way does not arrive.
    pub(crate) fn skip(&mut self, now_ns: u64) {
        self.taken = u64::try_from(u128::from(now_ns) * u128::from(self.bit_s) / 1_000_000_000)
            .expect("fits");
        self.on_the_way.clear();
    }
}

pub(crate) fn intact(bit: bool, out: &mut Vec<bool>) {
    out.push(bit);
}
