//! One end of a link before which anything may come: bits, commands and time in any order. What waits to be sent stays within its
//! buffer, and a timer that has run out is not due again at once.
#![no_main]

use laxity_devices::bits::{BitSink, BitSource};
use laxity_devices::link::LineRates;
use laxity_devices::link::hdlc::Framer;
use laxity_devices::link::lapm::{Config, Lapm, Role, State};
use laxity_model::{Instant, Span};
use libfuzzer_sys::fuzz_target;

const CONFIG: Config = Config {
    window: 7,
    max_octets: 32,
    retries: 3,
    round_trip: Span::from_millis(150),
    processing: Span::from_millis(100),
    inactivity: Span::from_secs(5),
    send_octets: 256,
};

fuzz_target!(|script: &[u8]| {
    let Some((first, mut script)) = script.split_first() else {
        return;
    };
    let role = if first & 1 == 0 {
        Role::Originator
    } else {
        Role::Answerer
    };
    let mut end = Lapm::new(role, CONFIG);
    let mut now = Instant::ZERO;
    let mut received = Vec::new();
    while let [operation, length, rest @ ..] = script {
        let (argument, after) = rest.split_at(rest.len().min(usize::from(*length)));
        script = after;
        match operation % 9 {
            0 => end.connect(now),
            1 => end.pause(now),
            2 => end.resume(rates(argument), now),
            3 => now += Span::from_millis(u64::from(*length) * 10),
            4 => assert!(end.send(argument) <= argument.len()),
            5 => end.receive(&mut received),
            6 => (0..u32::from(*length) * 8).for_each(|_| {
                end.next_bit();
            }),
            7 => bits_of(argument).for_each(|bit| end.push_bit(bit)),
            _ => frame(argument, &mut end),
        }
        poll(&mut end, now);
        received.clear();
        assert!(
            end.send_backlog()
                <= CONFIG.send_octets + usize::from(CONFIG.window) * CONFIG.max_octets
        );
    }
});

fn rates(argument: &[u8]) -> LineRates {
    let rate = |index: usize| {
        argument
            .get(index)
            .map_or(0, |octet| u32::from(*octet) * 200)
    };
    LineRates {
        transmit_bit_s: rate(0),
        receive_bit_s: rate(1),
    }
}

fn bits_of(octets: &[u8]) -> impl Iterator<Item = bool> {
    octets
        .iter()
        .flat_map(|octet| (0..8).map(move |bit| octet >> bit & 1 == 1))
}

/// A well-formed frame with any contents: what a checksum would keep random bits from being.
fn frame(octets: &[u8], end: &mut Lapm) {
    let mut framer = Framer::default();
    for sent in 0..8 * (octets.len() + 2) * 6 / 5 + 5 * 8 {
        if sent == 16 {
            framer.begin(octets);
        }
        end.push_bit(framer.next_bit());
    }
}

fn poll(end: &mut Lapm, now: Instant) {
    // As often as it may retry, in each state that it can fall through, and some.
    for _ in 0..32 {
        let before = end.counters().timeouts;
        end.poll(now);
        if end.counters().timeouts == before {
            return;
        }
    }
    panic!("a timer is due for ever in state {:?}", end.state());
}

const _: fn(State) = |_| ();
