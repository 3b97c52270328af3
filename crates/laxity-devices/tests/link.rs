//! Whole transfers between two ends of the link, over a pipe of bits that takes time, and may lose,
//! flip or stop them.

use std::collections::VecDeque;

use laxity_devices::bits::{BitSink, BitSource};
use laxity_devices::link::LineRates;
use laxity_devices::link::endpoint::{Config, Endpoint, Failure, State};
use laxity_devices::link::hdlc::{Deframer, Framer};
use laxity_devices::link::lapm::{self, Lapm, Loss, Role};
use laxity_devices::link::ppp::{self, Decoder, Ppp, encode};
use laxity_model::{Instant, Span};
use proptest::collection;
use proptest::prelude::*;

/// A block of the modem.
const STEP_NS: u64 = 12_500_000;
/// Seen from the client.
const RATES: LineRates = LineRates {
    transmit_bit_s: 31_200,
    receive_bit_s: 50_667,
};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }
}

/// One direction: carries a rate's bits of each step, and hands them over after a delay.
struct Pipe<D> {
    bit_s: u64,
    delay_ns: u64,
    /// Bits already taken, counted from time 0.
    taken: u64,
    on_the_way: VecDeque<(u64, Vec<bool>)>,
    /// Puts what becomes of a bit into the vector.
    damage: D,
}

impl<D: FnMut(bool, &mut Vec<bool>)> Pipe<D> {
    fn new(bit_s: u32, delay_ms: u64, damage: D) -> Self {
        Self {
            bit_s: u64::from(bit_s),
            delay_ns: delay_ms * 1_000_000,
            taken: 0,
            on_the_way: VecDeque::new(),
            damage,
        }
    }

    fn step(&mut self, now_ns: u64, from: &mut impl BitSource, to: &mut impl BitSink) {
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
    fn skip(&mut self, now_ns: u64) {
        self.taken = u64::try_from(u128::from(now_ns) * u128::from(self.bit_s) / 1_000_000_000)
            .expect("fits");
        self.on_the_way.clear();
    }
}

fn intact(bit: bool, out: &mut Vec<bool>) {
    out.push(bit);
}

struct Outcome {
    client: Endpoint,
    server: Endpoint,
    elapsed: Span,
}

/// Runs until the client is done or has failed, or `limit_s` seconds are over.
fn run_at(
    rates: LineRates,
    config: Config,
    delay_ms: u64,
    down: impl FnMut(bool, &mut Vec<bool>),
    up: impl FnMut(bool, &mut Vec<bool>),
    limit_s: u64,
) -> Outcome {
    let (mut client, mut server) = (Endpoint::client(config), Endpoint::server(config));
    client.carrier(Some(rates), Instant::ZERO);
    server.carrier(Some(rates.reversed()), Instant::ZERO);
    let mut down = Pipe::new(rates.receive_bit_s, delay_ms, down);
    let mut up = Pipe::new(rates.transmit_bit_s, delay_ms, up);
    let mut now_ns = 0;
    while now_ns < limit_s * 1_000_000_000 {
        now_ns += STEP_NS;
        client.poll(Instant::from_nanos(now_ns));
        server.poll(Instant::from_nanos(now_ns));
        up.step(now_ns, &mut client, &mut server);
        down.step(now_ns, &mut server, &mut client);
        if matches!(client.state(), State::Done { .. } | State::Failed(_)) {
            break;
        }
    }
    Outcome {
        client,
        server,
        elapsed: Span::from_nanos(now_ns),
    }
}

/// The same at the rates of the study.
fn run(
    config: Config,
    delay_ms: u64,
    down: impl FnMut(bool, &mut Vec<bool>),
    up: impl FnMut(bool, &mut Vec<bool>),
    limit_s: u64,
) -> Outcome {
    run_at(RATES, config, delay_ms, down, up, limit_s)
}

fn duration_s(outcome: &Outcome) -> f64 {
    match outcome.client.state() {
        State::Done {
            duration,
            checksum_ok: true,
        } => duration.as_nanos() as f64 / 1e9,
        other => panic!("{other:?}"),
    }
}

#[test]
fn slower_lines_carry_the_file_too() {
    for bit_s in [2_400, 14_400, 28_800] {
        let rates = LineRates {
            transmit_bit_s: bit_s,
            receive_bit_s: bit_s,
        };
        let config = Config {
            file_octets: 20_000,
            ..Config::default()
        };
        let outcome = run_at(rates, config, 40, intact, intact, 200);
        let efficiency = 160_000.0 / f64::from(bit_s) / duration_s(&outcome);
        println!(
            "{bit_s} bit/s: {:.1} s, {:.0} % of the rate, {:?}",
            duration_s(&outcome),
            efficiency * 100.0,
            outcome.server.counters().ppp
        );
        assert!(efficiency > 0.7, "{efficiency}");
        assert_eq!(outcome.server.counters().lapm.timeouts, 0);
    }
}

/// In tests that only count, a file of this size will do.
fn small() -> Config {
    Config {
        file_octets: 40_000,
        ..Config::default()
    }
}

/// What a transfer takes by the sizes of headers, frames and escapes alone.
fn expected_s(config: Config, delay_ms: u64) -> f64 {
    let segments = (config.file_octets + 12).div_ceil(u64::from(config.mss())) as f64;
    let headers = 40.0 + 4.0 + 2.0;
    // Of random octets 2 of 256 are escaped.
    let (escaped_share, escaped_of_header) = (2.0 / 256.0, 0.4);
    let escapes = segments * escaped_of_header + config.file_octets as f64 * escaped_share;
    // A flag opens and a flag closes a packet.
    let octets = config.file_octets as f64 + segments * (headers + 2.0) + escapes;
    let framed = octets * (128.0 + 6.0) / 128.0;
    // A zero for 62 random bits, and one for the five ones of an escape.
    let bits = framed * 8.0 * (1.0 + 1.0 / 62.0) + escapes;
    // SYN, SYN and acknowledgement; then the file begins. Both ends are polled every 12.5 ms, and
    // once an IP acknowledgement is on its way upstream.
    let start_s = 3.0 * delay_ms as f64 / 1e3 + 3.0 * 0.0125 + 2.0 * 0.015;
    bits / f64::from(RATES.receive_bit_s) + start_s
}

#[test]
fn a_clean_line_takes_as_long_as_protocol_and_rate_say() {
    let default = Config::default();
    for config in [default, default.with_mss(1460)] {
        for delay_ms in [10, 40, 70] {
            let outcome = run(config, delay_ms, intact, intact, 60);
            let (duration_s, expected_s) = (duration_s(&outcome), expected_s(config, delay_ms));
            println!(
                "MSS {}, delay {delay_ms} ms: {duration_s:.2} s, by calculation {expected_s:.2} s",
                config.mss(),
            );
            assert!(
                (duration_s / expected_s - 1.0).abs() < 0.01,
                "{duration_s} s instead of {expected_s} s"
            );
            for counters in [outcome.client.counters(), outcome.server.counters()] {
                assert_eq!(
                    (counters.lapm.frames_retransmitted, counters.lapm.timeouts),
                    (0, 0)
                );
                assert_eq!(
                    (
                        counters.lapm.bad_fcs,
                        counters.lapm.malformed,
                        counters.lapm.invalid
                    ),
                    (0, 0, 0)
                );
            }
            // TCP repeats nothing either: segments of the file, SYN, and an acknowledgement at
            // most.
            let segments = 200_012_u64.div_ceil(u64::from(config.mss()));
            assert!(outcome.server.counters().ppp.datagrams_sent <= segments + 2);
        }
    }
}

#[test]
fn the_default_is_within_five_percent_of_the_study() {
    // Jones and Saroiu, Predictability Requirements of a Soft Modem, table 2: 36.4 s with signal
    // processing in the interrupt handler.
    let duration_s = duration_s(&run(Config::default(), 10, intact, intact, 60));
    assert!((duration_s / 36.4 - 1.0).abs() < 0.05, "{duration_s} s");
}

#[test]
fn the_same_run_gives_the_same_result() {
    let once = || {
        let mut random = Random(4);
        let outcome = run(
            small(),
            40,
            |bit, out| out.push(bit ^ random.one_in(50_000)),
            intact,
            60,
        );
        (
            outcome.client.state(),
            outcome.client.counters(),
            outcome.server.counters(),
        )
    };
    assert_eq!(once(), once());
}

#[test]
fn flipped_bits_cost_retransmissions_and_nothing_else() {
    let (mut down, mut up) = (Random(1), Random(2));
    let clean = duration_s(&run(small(), 40, intact, intact, 60));
    let outcome = run(
        small(),
        40,
        |bit, out| out.push(bit ^ down.one_in(20_000)),
        |bit, out| out.push(bit ^ up.one_in(20_000)),
        60,
    );
    let damaged = duration_s(&outcome);
    let (client, server) = (
        outcome.client.counters().lapm,
        outcome.server.counters().lapm,
    );
    println!("{clean:.2} s, with one bit in 20,000 flipped {damaged:.2} s\n{client:?}\n{server:?}");
    assert!(client.bad_fcs + client.malformed > 0);
    assert!(client.rejects_sent > 0 && server.rejects_received > 0);
    assert!(server.frames_retransmitted > 0);
    assert!(damaged > clean);
    assert_eq!(
        outcome.client.counters().ppp.bad_fcs,
        0,
        "error correction let none through"
    );
}

#[test]
fn bursts_cost_retransmissions_and_nothing_else() {
    let mut random = Random(3);
    let (mut bits, mut garbage) = (0_u64, Random(9));
    // Every two seconds 50 ms of noise.
    let outcome = run(
        small(),
        40,
        |bit, out| {
            bits += 1;
            out.push(if bits % 100_000 < 2_500 {
                random.one_in(2)
            } else {
                bit
            });
        },
        |bit, out| out.push(bit ^ garbage.one_in(100_000)),
        60,
    );
    let server = outcome.server.counters().lapm;
    println!("bursts: {:.2} s, {server:?}", duration_s(&outcome));
    assert!(server.frames_retransmitted > 0);
}

#[test]
fn deleted_bits_cost_retransmissions_and_nothing_else() {
    let mut random = Random(5);
    let mut missing = 0;
    // A card that loses 105 samples of 512, ten times or so: 400 bits at once.
    let outcome = run(
        small(),
        40,
        |bit, out| {
            if random.one_in(30_000) {
                missing = 400;
            }
            if missing == 0 {
                out.push(bit);
            } else {
                missing -= 1;
            }
        },
        intact,
        60,
    );
    let server = outcome.server.counters().lapm;
    println!("deleted: {:.2} s, {server:?}", duration_s(&outcome));
    assert!(server.frames_retransmitted > 0);
}

#[test]
fn a_dead_line_is_given_up_after_the_stated_retries() {
    // The line dies 3 s into the file, in both directions and with noise at its end.
    let (mut down_bits, mut up_bits, mut noise, mut more_noise) =
        (0_u64, 0_u64, Random(6), Random(7));
    let outcome = run(
        Config::default(),
        40,
        |bit, out| {
            down_bits += 1;
            out.push(if down_bits > 152_000 {
                noise.one_in(2)
            } else {
                bit
            });
        },
        |bit, out| {
            up_bits += 1;
            out.push(if up_bits > 93_600 {
                more_noise.one_in(2)
            } else {
                bit
            });
        },
        60,
    );
    assert_eq!(
        outcome.client.state(),
        State::Failed(Failure::Link(Loss::Unanswered))
    );
    let retries = u64::from(Config::default().lapm.retries);
    // One time for the frame itself, and one for each retry.
    assert_eq!(outcome.client.counters().lapm.timeouts, retries + 1);
    let t401 = Config::default().lapm.acknowledgement_time(RATES);
    let limit = Span::from_secs(3) + Config::default().lapm.inactivity + t401 * (retries + 2);
    println!(
        "given up after {} ms, T401 {} ms",
        outcome.elapsed.as_micros() / 1000,
        t401.as_micros() / 1000
    );
    assert!(outcome.elapsed < limit + Span::from_millis(20 * (retries + 2)));
}

#[test]
fn nobody_at_the_other_end_is_a_failure_too() {
    let mut client = Endpoint::client(Config::default());
    client.carrier(Some(RATES), Instant::ZERO);
    let mut now = Instant::ZERO;
    while client.state() == State::Connecting {
        for _ in 0..390 {
            client.next_bit();
        }
        now += Span::from_nanos(STEP_NS);
        client.poll(now);
    }
    assert_eq!(
        client.state(),
        State::Failed(Failure::Link(Loss::Unanswered))
    );
    let lapm = Config::default().lapm;
    let times = u64::from(lapm.retries) + 1;
    assert_eq!(client.counters().lapm.timeouts, times);
    let limit = (lapm.acknowledgement_time(RATES) + Span::from_nanos(STEP_NS)) * times;
    assert!(now.since_epoch() <= limit);
}

#[test]
fn a_retraining_pauses_the_link_and_costs_its_time() {
    let config = small();
    let clean = duration_s(&run(config, 40, intact, intact, 60));
    let (mut client, mut server) = (Endpoint::client(config), Endpoint::server(config));
    client.carrier(Some(RATES), Instant::ZERO);
    server.carrier(Some(RATES.reversed()), Instant::ZERO);
    let mut down = Pipe::new(RATES.receive_bit_s, 40, intact);
    let mut up = Pipe::new(RATES.transmit_bit_s, 40, intact);
    for step in 1..4_000 {
        let now_ns = step * STEP_NS;
        let now = Instant::from_nanos(now_ns);
        // From 3 s to 15 s the modems retrain: more than all retries would last.
        let (goes, comes) = (step == 240, step == 1_200);
        if goes || comes {
            client.carrier(comes.then_some(RATES), now);
            server.carrier(comes.then_some(RATES.reversed()), now);
        }
        client.poll(now);
        server.poll(now);
        if (240..1_200).contains(&step) {
            // What is under way is lost.
            up.skip(now_ns);
            down.skip(now_ns);
        } else {
            up.step(now_ns, &mut client, &mut server);
            down.step(now_ns, &mut server, &mut client);
        }
    }
    let State::Done {
        duration,
        checksum_ok: true,
    } = client.state()
    else {
        panic!("{:?}", client.state())
    };
    let lost_s = duration.as_nanos() as f64 / 1e9 - clean - 12.0;
    println!(
        "a retraining of 12 s cost {lost_s:.2} s more; {:?}",
        server.counters()
    );
    assert!((0.0..2.0).contains(&lost_s), "{lost_s} s");
    assert_eq!(
        (
            client.counters().carrier_losses,
            server.counters().carrier_losses
        ),
        (1, 1)
    );
    // Its timers stood still, though frames were on the way when the carrier went.
    let lapm = [client.counters().lapm, server.counters().lapm];
    assert_eq!(lapm.map(|counters| counters.timeouts), [0, 0]);
    assert!(lapm[1].frames_retransmitted > 0);
}

#[test]
fn a_server_polled_rarely_keeps_the_line_busy() {
    let clean = duration_s(&run(small(), 10, intact, intact, 60));
    let (mut client, mut server) = (Endpoint::client(small()), Endpoint::server(small()));
    client.carrier(Some(RATES), Instant::ZERO);
    server.carrier(Some(RATES.reversed()), Instant::ZERO);
    let mut down = Pipe::new(RATES.receive_bit_s, 10, intact);
    let mut up = Pipe::new(RATES.transmit_bit_s, 10, intact);
    for step in 1..1_000 {
        let now = Instant::from_nanos(step * STEP_NS);
        client.poll(now);
        // Every 62.5 ms.
        if step % 5 == 0 {
            server.poll(now);
        }
        up.step(step * STEP_NS, &mut client, &mut server);
        down.step(step * STEP_NS, &mut server, &mut client);
    }
    let State::Done {
        duration,
        checksum_ok: true,
    } = client.state()
    else {
        panic!("{:?}", client.state())
    };
    let duration_s = duration.as_nanos() as f64 / 1e9;
    println!("server polled every 62.5 ms: {duration_s:.2} s instead of {clean:.2} s");
    assert!(
        duration_s < clean * 1.02,
        "{duration_s} s instead of {clean} s"
    );
    assert_eq!(server.counters().lapm.frames_retransmitted, 0);
}

/// Carries octets from one [`Lapm`] to another; gives what arrived, the ends, and how long it took.
fn carry(
    octets: &[u8],
    config: lapm::Config,
    forth: impl FnMut(bool, &mut Vec<bool>),
    back: impl FnMut(bool, &mut Vec<bool>),
    read_each_step: usize,
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
        receiver.receive_at_most(read_each_step, &mut arrived);
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
    let (arrived, sender, _, elapsed_s) =
        carry(&octets, lapm::Config::default(), intact, intact, usize::MAX);
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

#[test]
fn a_slow_reader_holds_the_sender_back_and_loses_nothing() {
    let octets = random_octets(40_000, 2);
    let config = lapm::Config::default();
    // 40 octets in 12.5 ms, half the rate.
    let (arrived, sender, receiver, elapsed_s) = carry(&octets, config, intact, intact, 40);
    assert!(arrived == octets);
    assert!((12.5..14.0).contains(&elapsed_s), "{elapsed_s} s");
    assert_eq!(sender.counters().frames_retransmitted, 0);
    assert_eq!(receiver.counters().frames_out_of_sequence, 0);
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
        let (arrived, ..) = carry(&octets, config, forth, back, usize::MAX);
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
        let (mut framer, mut deframer) = (Framer::new(), Deframer::new(100));
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
        let mut decoder = Decoder::new();
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
        let mut framer = Framer::new();
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
