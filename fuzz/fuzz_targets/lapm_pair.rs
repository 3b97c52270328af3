//! Two ends on a line that loses frames: what arrives is what was sent, from its beginning, without a hole. A loss is a stretch of ones,
//! which no frame survives, so that no error passes for a good frame by chance.
#![no_main]

use laxity_devices::bits::{BitSink, BitSource};
use laxity_devices::link::LineRates;
use laxity_devices::link::lapm::{Config, Lapm, Role, State};
use laxity_model::{Instant, Span};
use libfuzzer_sys::fuzz_target;

const RATES: LineRates = LineRates {
    transmit_bit_s: 32_000,
    receive_bit_s: 32_000,
};
const OCTET_TIME: Span = Span::from_micros(250);
/// Octets of a turn of the line.
const TURN: usize = 16;

fuzz_target!(|script: &[u8]| {
    let mut pair = Pair::new();
    for _ in 0..200 {
        pair.turn(false, false);
    }
    if !pair.is_connected() {
        panic!("no connection on a clean line: {:?}", pair.ends);
    }
    for operation in script.iter().take(128) {
        // Which end sends how much, and in which direction the line fails.
        let size = usize::from(operation >> 2 & 7) * 20;
        pair.send(usize::from(operation & 1), size);
        pair.turn(operation & 0x40 != 0, operation & 0x80 != 0);
        if !pair.is_connected() {
            return;
        }
        pair.check();
    }
    // On a clean line all of it arrives in the end.
    for _ in 0..40_000 {
        if pair.is_done() || !pair.is_connected() {
            return;
        }
        pair.turn(false, false);
        pair.check();
    }
    panic!("connected, but not all has arrived: {:?}", pair.ends);
});

struct Pair {
    ends: [Lapm; 2],
    sent: [Vec<u8>; 2],
    received: [Vec<u8>; 2],
    now: Instant,
    next: u8,
}

impl Pair {
    fn new() -> Self {
        let config = Config {
            window: 7,
            max_octets: 32,
            ..Config::default()
        };
        let mut ends = [Role::Originator, Role::Answerer].map(|role| Lapm::new(role, config));
        ends[0].connect(Instant::ZERO);
        for end in &mut ends {
            end.resume(RATES, Instant::ZERO);
        }
        Self {
            ends,
            sent: Default::default(),
            received: Default::default(),
            now: Instant::ZERO,
            next: 0,
        }
    }

    fn is_connected(&self) -> bool {
        self.ends.iter().all(|end| end.state() == State::Connected)
    }

    fn send(&mut self, from: usize, size: usize) {
        let octets: Vec<u8> = (0..size).map(|i| self.next.wrapping_add(i as u8)).collect();
        let taken = self.ends[from].send(&octets);
        self.next = self.next.wrapping_add(taken as u8);
        self.sent[from].extend_from_slice(&octets[..taken]);
    }

    /// The line carries [`TURN`] octets each way, or ones.
    fn turn(&mut self, forth_fails: bool, back_fails: bool) {
        self.now += OCTET_TIME * TURN as u64;
        for _ in 0..8 * TURN {
            let [first, second] = &mut self.ends;
            second.push_bit(first.next_bit() | forth_fails);
            first.push_bit(second.next_bit() | back_fails);
        }
        for (end, received) in self.ends.iter_mut().zip(&mut self.received) {
            end.poll(self.now);
            end.receive(received);
        }
    }

    fn check(&self) {
        for from in 0..2 {
            let received = &self.received[1 - from];
            assert!(
                self.sent[from].starts_with(received),
                "from {from}: {:?}",
                self.ends
            );
        }
    }

    fn is_done(&self) -> bool {
        (0..2).all(|from| self.sent[from].len() == self.received[1 - from].len())
    }
}
