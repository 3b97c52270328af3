//! Whole transfers between two ends of the link, over a pipe of bits that takes time, and may lose, flip or stop them.

mod pipe;

use laxity_devices::bits::BitSource;
use laxity_devices::link::endpoint::{Config, Endpoint, Failure, State};
use laxity_devices::link::lapm::Loss;
use laxity_devices::link::{Arrived, LineRates};
use laxity_model::{Instant, Span};
use pipe::{Pipe, RATES, Random, STEP_NS, intact};

struct Outcome {
    client: Endpoint,
    server: Endpoint,
    elapsed: Span,
}

/// Runs until the client is done or has failed, or `limit_s` seconds are over.
fn run(
    (rates, config): (LineRates, Config),
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

fn duration_s(client: &Endpoint) -> f64 {
    match client.state() {
        State::Done(Arrived {
            took: duration,
            intact: true,
        }) => duration.as_nanos() as f64 / 1e9,
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
        let outcome = run((rates, config), 40, intact, intact, 200);
        let efficiency = 160_000.0 / f64::from(bit_s) / duration_s(&outcome.client);
        println!(
            "{bit_s} bit/s: {:.1} s, {:.0} % of the rate, {:?}",
            duration_s(&outcome.client),
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
            let outcome = run((RATES, config), delay_ms, intact, intact, 60);
            let duration_s = duration_s(&outcome.client);
            let expected_s = expected_s(config, delay_ms);
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
    let duration_s = duration_s(&run((RATES, Config::default()), 10, intact, intact, 60).client);
    assert!((duration_s / 36.4 - 1.0).abs() < 0.05, "{duration_s} s");
}

#[test]
fn the_same_run_gives_the_same_result() {
    let once = || {
        let mut random = Random(4);
        let outcome = run(
            (RATES, small()),
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
    let clean = duration_s(&run((RATES, small()), 40, intact, intact, 60).client);
    let outcome = run(
        (RATES, small()),
        40,
        |bit, out| out.push(bit ^ down.one_in(20_000)),
        |bit, out| out.push(bit ^ up.one_in(20_000)),
        60,
    );
    let damaged = duration_s(&outcome.client);
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

fn assert_retransmitted(what: &str, outcome: &Outcome) {
    let server = outcome.server.counters().lapm;
    println!("{what}: {:.2} s, {server:?}", duration_s(&outcome.client));
    assert!(server.frames_retransmitted > 0);
}

#[test]
fn bursts_cost_retransmissions_and_nothing_else() {
    let mut random = Random(3);
    let (mut bits, mut garbage) = (0_u64, Random(9));
    // Every two seconds 50 ms of noise.
    let outcome = run(
        (RATES, small()),
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
    assert_retransmitted("bursts", &outcome);
}

#[test]
fn deleted_bits_cost_retransmissions_and_nothing_else() {
    let mut random = Random(5);
    let mut missing = 0;
    // A card that loses 105 samples of 512, ten times or so: 400 bits at once.
    let outcome = run(
        (RATES, small()),
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
    assert_retransmitted("deleted", &outcome);
}

#[test]
fn a_dead_line_is_given_up_after_the_stated_retries() {
    // The line dies 3 s into the file, in both directions and with noise at its end.
    let dies_after = |limit: u64, mut noise: Random| {
        let mut bits = 0;
        move |bit: bool, out: &mut Vec<bool>| {
            bits += 1;
            out.push(if bits > limit { noise.one_in(2) } else { bit });
        }
    };
    let down = dies_after(152_000, Random(6));
    let up = dies_after(93_600, Random(7));
    let outcome = run((RATES, Config::default()), 40, down, up, 60);
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
    let clean = duration_s(&run((RATES, config), 40, intact, intact, 60).client);
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
    let lost_s = duration_s(&client) - clean - 12.0;
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
    let clean = duration_s(&run((RATES, small()), 10, intact, intact, 60).client);
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
    let duration_s = duration_s(&client);
    println!("server polled every 62.5 ms: {duration_s:.2} s instead of {clean:.2} s");
    assert!(
        duration_s < clean * 1.02,
        "{duration_s} s instead of {clean} s"
    );
    assert_eq!(server.counters().lapm.frames_retransmitted, 0);
}
