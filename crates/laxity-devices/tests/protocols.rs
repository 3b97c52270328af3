//! The protocols of the link one by one: frames, error correction, packets.

mod pipe;

use laxity_devices::bits::{BitSink, BitSource};
use laxity_devices::link::hdlc::{Deframer, Framer};
use laxity_devices::link::lapm::{self, Lapm, Role};
use laxity_devices::link::ppp::{self, Decoder, Ppp, encode};
use laxity_model::Instant;
use pipe::{Pipe, RATES, Random, STEP_NS, intact};
use proptest::collection;
use proptest::prelude::*;

/// Carries octets from one [`Lapm`] to another; gives what arrived, the ends, and how long it took.
fn carry(
    octets: &[u8],
    config: lapm::Config,
    forth: impl FnMut(bool, &mut Vec<bool>),
    back: impl FnMut(bool, &mut Vec<bool>),
) -> (Vec<u8>, Lapm, Lapm, f64) {
    let (mut sender, mut receiver) = (
        Lapm::new(Role::Originator, config),
        Lapm::new(Role::Answerer, config),
    );
    sender.resume(RATES.reversed(), Instant::ZERO);
    receiver.resume(RATES, Instant::ZERO);
    sender.connect(Instant::ZERO);
    let mut forth = Pipe::new(RATES.receive_bit_s, 40, forth);
    let mut back = Pipe::new(RATES.transmit_bit_s, 40, back);
    let (mut sent, mut arrived, mut step) = (0, Vec::new(), 0);
    while arrived.len() < octets.len() && step < 20_000 {
        step += 1;
        let now = Instant::from_nanos(step * STEP_NS);
        sender.poll(now);
        receiver.poll(now);
        sent += sender.send(&octets[sent..]);
        forth.step(step * STEP_NS, &mut sender, &mut receiver);
        back.step(step * STEP_NS, &mut receiver, &mut sender);
        receiver.receive(&mut arrived);
    }
    (arrived, sender, receiver, step as f64 * 0.0125)
}

fn random_octets(count: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    (0..count).map(|_| random.next() as u8).collect()
}

#[test]
fn error_correction_alone_leaves_94_percent_of_the_rate() {
    let octets = random_octets(200_000, 1);
    let (arrived, sender, _, elapsed_s) = carry(&octets, lapm::Config::default(), intact, intact);
    println!("LAPM alone: {elapsed_s:.2} s");
    assert!(arrived == octets);
    assert!((elapsed_s / 33.6 - 1.0).abs() < 0.01, "{elapsed_s} s");
    assert_eq!(sender.counters().frames_retransmitted, 0);
}

#[test]
fn what_an_answerer_sends_before_its_answer_is_lost_arrives_all_the_same() {
    let octets = random_octets(3_000, 3);
    let config = lapm::Config::default();
    let (mut caller, mut answerer) = (
        Lapm::new(Role::Originator, config),
        Lapm::new(Role::Answerer, config),
    );
    caller.resume(RATES, Instant::ZERO);
    answerer.resume(RATES.reversed(), Instant::ZERO);
    caller.connect(Instant::ZERO);
    answerer.send(&octets);
    let mut up = Pipe::new(RATES.transmit_bit_s, 40, intact);
    // The line comes to life downstream only after 250 ms: the answer and the first frames are
    // lost.
    let mut bits = 0;
    let mut down = Pipe::new(RATES.receive_bit_s, 40, |bit, out: &mut Vec<bool>| {
        bits += 1;
        out.push(bit && bits > 12_667);
    });
    let mut arrived = Vec::new();
    for step in 1..400 {
        let now = Instant::from_nanos(step * STEP_NS);
        caller.poll(now);
        answerer.poll(now);
        up.step(step * STEP_NS, &mut caller, &mut answerer);
        down.step(step * STEP_NS, &mut answerer, &mut caller);
        caller.receive(&mut arrived);
    }
    assert!(caller.counters().timeouts > 0, "the answer was lost");
    assert!(arrived == octets);
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn error_correction_delivers_the_octets_in_order(
        seed: u64,
        count in 1_usize..6_000,
        flipped_of_a_million in 0_u64..100,
        deleted_of_a_million in 0_u64..50,
        window in 1_u8..40,
        max_octets in 16_usize..200,
    ) {
        let octets = random_octets(count, seed);
        let config = lapm::Config { window, max_octets, retries: 100, ..lapm::Config::default() };
        let damage = |seed| {
            let mut random = Random(seed);
            move |bit: bool, out: &mut Vec<bool>| {
                let dice = random.next() % 1_000_000;
                if dice >= deleted_of_a_million {
                    out.push(bit ^ (dice - deleted_of_a_million < flipped_of_a_million));
                }
            }
        };
        let (forth, back) = (damage(seed ^ 1), damage(seed ^ 2));
        let (arrived, ..) = carry(&octets, config, forth, back);
        prop_assert!(arrived == octets, "{} of {} octets", arrived.len(), octets.len());
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn frames_come_out_as_they_went_in_and_garbage_between_them_does_no_harm(
        frames in collection::vec(collection::vec(any::<u8>(), 2..100), 1..8),
        garbage in collection::vec(any::<bool>(), 0..400),
    ) {
        let (mut framer, mut deframer) = (Framer::default(), Deframer::new(100));
        let mut received = Vec::new();
        let mut chance_hits = 0;
        for bit in garbage {
            chance_hits += usize::from(matches!(deframer.push(bit), Some(Ok(_))));
        }
        // The flags that a line carries between frames end whatever the garbage began.
        for _ in 0..24 {
            chance_hits += usize::from(matches!(deframer.push(framer.next_bit()), Some(Ok(_))));
        }
        for frame in &frames {
            while !framer.is_ready() {
                framer.next_bit();
            }
            framer.begin(frame);
            while !framer.is_ready() {
                if let Some(result) = deframer.push(framer.next_bit()) {
                    received.push(result.map(<[u8]>::to_vec));
                }
            }
        }
        let expected: Vec<_> = frames.into_iter().map(Ok).collect();
        prop_assert_eq!(received, expected);
        prop_assert!(chance_hits <= 1, "16 bits of check let through one in 65,536");
    }

    #[test]
    fn packets_come_out_as_they_went_in_and_garbage_between_them_does_no_harm(
        packets in collection::vec((any::<u16>(), collection::vec(any::<u8>(), 0..300)), 1..5),
        accm: u32,
        garbage in collection::vec(any::<u8>(), 0..300),
    ) {
        let mut octets = vec![FLAG];
        for (protocol, information) in &packets {
            encode(*protocol, information, accm, &mut octets);
        }
        let mut decoder = Decoder::default();
        decoder.set_accm(accm);
        for octet in garbage {
            let _ = decoder.push(octet);
        }
        let _ = decoder.push(FLAG);
        let mut received = Vec::new();
        for octet in octets {
            if let Some(result) = decoder.push(octet) {
                received.push(result.map(|packet| (packet.protocol, packet.information.to_vec())));
            }
        }
        let expected: Vec<_> = packets.into_iter().map(Ok).collect();
        prop_assert_eq!(received, expected);
    }

    #[test]
    fn an_end_survives_any_packet_that_ppp_lets_through(
        packets in collection::vec((0_usize..4, collection::vec(any::<u8>(), 0..60)), 1..20),
    ) {
        let config =
            ppp::Config { mru: 576, magic: 1, local: [0; 4], assigned: None };
        let mut ppp = Ppp::new(config);
        ppp.open(Instant::ZERO);
        for (protocol, information) in packets {
            let protocol = [ppp::PROTOCOL_LCP, ppp::PROTOCOL_IPCP, ppp::PROTOCOL_IP, 0x8057][protocol];
            let mut octets = Vec::new();
            encode(protocol, &information, 0, &mut octets);
            ppp.input(&octets, Instant::ZERO);
        }
        ppp.poll(Instant::from_secs(4));
    }

    #[test]
    fn an_end_survives_any_frame_that_error_correction_lets_through(
        frames in collection::vec(collection::vec(prop_oneof![0_u8..12, any::<u8>()], 2..20), 1..40),
        originator: bool,
    ) {
        let role = if originator { Role::Originator } else { Role::Answerer };
        let mut end = Lapm::new(role, lapm::Config::default());
        end.resume(RATES, Instant::ZERO);
        end.connect(Instant::ZERO);
        end.send(&[7; 3_000]);
        let mut framer = Framer::default();
        for (index, frame) in (0..).zip(frames) {
            // Establishes the connection first, whichever side this is.
            let frame = if index == 0 { vec![if originator { 0x03 } else { 0x01 }, 0x73] } else { frame };
            framer.begin(&frame);
            for _ in 0..400 {
                end.push_bit(framer.next_bit());
                end.next_bit();
            }
            end.poll(Instant::from_millis(index * 100));
        }
        prop_assert!(end.counters().frames_sent > 0);
    }
}

/// The octet between packets.
const FLAG: u8 = 0x7e;
