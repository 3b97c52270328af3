//! Two V.22bis modems over a telephone line: this crate's with each other, and with spandsp's.

use core::f64::consts::{PI, TAU};

use laxity_devices::bits::{BitSink, BitSource};
use laxity_devices::pump::PumpState;
use laxity_devices::pump::v22bis::{Rate, Role, V22bis};

/// The sequence x^15 + x^14 + 1, as a source and as a check of what arrives.
#[derive(Default)]
struct Sequence {
    history: u32,
    agreed: u32,
    checked: u32,
    errors: u32,
}

impl Sequence {
    /// Bits in a row that follow from those before, after which bits are counted.
    const SYNCHRONISED: u32 = 48;

    fn source() -> Self {
        Self {
            history: 0x5A5A,
            ..Self::default()
        }
    }

    fn next(&mut self) -> bool {
        let bit = (self.history >> 13 ^ self.history >> 14) & 1;
        self.push(bit == 1);
        bit == 1
    }

    fn push(&mut self, bit: bool) {
        self.history = (self.history << 1 | u32::from(bit)) & 0x7FFF;
    }
}

impl BitSource for Sequence {
    fn next_bit(&mut self) -> bool {
        self.next()
    }
}

impl BitSink for Sequence {
    fn push_bit(&mut self, bit: bool) {
        let zeros = self.history == 0;
        let right = self.next() == bit;
        if self.agreed < Self::SYNCHRONISED {
            self.history ^= u32::from(!right);
            self.agreed = if right && !zeros { self.agreed + 1 } else { 0 };
        } else {
            self.checked += 1;
            self.errors += u32::from(!right);
        }
    }
}

/// One direction of a line: a reflection, loss, noise, another clock, and a carrier offset.
struct Path {
    gain: f64,
    noise_rms: f64,
    /// Samples taken for each sample given.
    pace: f64,
    offset_hz: f64,
    /// Share of the signal that arrives once more, 0.75 ms later.
    reflection: f64,
    /// The last samples given, newest first.
    sent: [f64; 7],
    at: f64,
    phase: f64,
    samples: Vec<f64>,
    random: u64,
}

impl Path {
    const HALF: usize = 32;

    fn new(loss_db: f64, snr_db: f64, ppm: f64, offset_hz: f64, seed: u64) -> Self {
        let gain = libm::pow(10.0, -loss_db / 20.0);
        Self {
            gain,
            noise_rms: 4050.0 * gain * libm::pow(10.0, -snr_db / 20.0),
            pace: 1.0 + ppm * 1e-6,
            offset_hz,
            reflection: 0.0,
            sent: [0.0; 7],
            at: 0.0,
            phase: 0.0,
            // 10 ms of delay are room enough for the clocks to drift.
            samples: vec![0.0; 2 * Self::HALF + 80],
            random: seed,
        }
    }

    fn uniform(&mut self) -> f64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.random >> 33) as f64 / f64::from(1_u32 << 31)
    }

    /// The sum of twelve uniform values: variance one, and tails enough.
    fn noise(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }

    /// Interpolates the analytic signal, whose spectrum is on one side, and turns it.
    fn next(&mut self, sample: f64) -> f64 {
        self.sent.rotate_right(1);
        self.sent[0] = sample;
        self.samples.push(sample + self.reflection * self.sent[6]);
        let first = self.at as usize;
        let (mut re, mut im) = (0.0, 0.0);
        for (i, x) in self.samples[first..first + 2 * Self::HALF]
            .iter()
            .enumerate()
        {
            let t = i as f64 - Self::HALF as f64 - (self.at - first as f64) + 0.5;
            let window = 0.5 + 0.5 * libm::cos(PI * t / (Self::HALF as f64 + 1.0));
            // The inverse transform of two on 0 to 4 kHz: sinc turned by a quarter of the rate.
            let sinc = if t.abs() < 1e-9 {
                1.0
            } else {
                libm::sin(PI * t / 2.0) / (PI * t / 2.0)
            };
            re += x * window * sinc * libm::cos(PI * t / 2.0);
            im -= x * window * sinc * libm::sin(PI * t / 2.0);
        }
        self.at += self.pace;
        self.phase = (self.phase + TAU * self.offset_hz / 8000.0) % TAU;
        let shifted = re * libm::cos(self.phase) - im * libm::sin(self.phase);
        self.gain * shifted + self.noise_rms * self.noise()
    }
}

fn to_i16(value: f64) -> i16 {
    libm::round(value) as i16
}

/// A modem with what it sends and receives.
struct End {
    modem: V22bis,
    source: Sequence,
    sink: Sequence,
    received: Vec<i16>,
    /// The last block.
    sent: Vec<i16>,
    connected_at: Option<usize>,
}

impl End {
    fn new(role: Role, highest: Rate) -> Self {
        Self {
            modem: V22bis::with_rate(role, highest),
            source: Sequence::source(),
            sink: Sequence::default(),
            received: Vec::new(),
            sent: vec![0; 40],
            connected_at: None,
        }
    }

    fn process(&mut self, received: &[i16]) -> Vec<i16> {
        let mut transmit = vec![0; received.len()];
        self.modem
            .process(received, &mut transmit, &mut self.source, &mut self.sink);
        self.received.extend(received);
        if matches!(self.modem.state(), PumpState::Data { .. }) {
            self.connected_at.get_or_insert(self.received.len());
        }
        transmit
    }

    fn assert_carried(&self, rate: Rate, bits: u32) {
        println!(
            "{:?}, {:?} samples to connect, {} bits, {} errors, {:.1} dB",
            self.modem.state(),
            self.connected_at,
            self.sink.checked,
            self.sink.errors,
            self.modem.snr_db()
        );
        assert_eq!(self.modem.state(), at(rate));
        assert_eq!(self.sink.errors, 0);
        assert!(self.sink.checked >= bits, "{} bits", self.sink.checked);
        let to_connect = if rate == Rate::Bps2400 { 2 } else { 3 } * 8000;
        assert!(self.connected_at.is_some_and(|at| at <= to_connect));
    }
}

/// A modem in data mode at a rate.
fn at(rate: Rate) -> PumpState {
    PumpState::Data {
        down_rate: rate.bits_per_second(),
        up_rate: rate.bits_per_second(),
    }
}

/// Runs two modems for so many blocks of 40 samples more; each hears itself too, 14 dB down.
fn run(calling: &mut End, answering: &mut End, paths: &mut [Path; 2], blocks: usize) {
    const ECHO: f64 = 0.2;
    for _ in 0..blocks {
        let mut hear = |path: usize, far: &[i16], own: &[i16]| -> Vec<i16> {
            let mut mix = |far: f64, own: f64| to_i16(paths[path].next(far) + ECHO * own);
            let both = far.iter().zip(own);
            both.map(|(far, own)| mix(f64::from(*far), f64::from(*own)))
                .collect()
        };
        let to_calling = hear(0, &answering.sent, &calling.sent);
        let to_answering = hear(1, &calling.sent, &answering.sent);
        calling.sent = calling.process(&to_calling);
        answering.sent = answering.process(&to_answering);
    }
}

fn paths(loss_db: f64, snr_db: f64, ppm: f64, offset_hz: f64, seed: u64) -> [Path; 2] {
    [
        Path::new(loss_db, snr_db, ppm, offset_hz, seed),
        Path::new(loss_db, snr_db, -ppm, -offset_hz, seed + 1),
    ]
}

#[test]
fn own_modems_connect_and_carry_data_both_ways() {
    let mut calling = End::new(Role::Calling, Rate::Bps2400);
    let mut answering = End::new(Role::Answering, Rate::Bps2400);
    let mut line = paths(12.0, 22.0, 50.0, 0.5, 1);
    for path in &mut line {
        path.reflection = 0.3;
    }
    run(&mut calling, &mut answering, &mut line, 4900);
    calling.assert_carried(Rate::Bps2400, 50_000);
    answering.assert_carried(Rate::Bps2400, 50_000);
}

#[test]
fn more_noise_than_sixteen_points_bear_makes_errors() {
    let mut calling = End::new(Role::Calling, Rate::Bps2400);
    let mut answering = End::new(Role::Answering, Rate::Bps2400);
    let mut line = paths(12.0, 27.0, 0.0, 0.0, 2);
    run(&mut calling, &mut answering, &mut line, 500);
    assert_eq!((calling.sink.errors, answering.sink.errors), (0, 0));
    // Only what the calling modem hears: the other direction is not touched.
    line[0].noise_rms *= 12.0;
    run(&mut calling, &mut answering, &mut line, 500);
    assert!(calling.sink.errors > 0);
    assert_eq!(answering.sink.errors, 0);
    assert!(calling.modem.snr_db() < 20.0 && answering.modem.snr_db() > 30.0);
}

#[test]
fn many_lines_connect() {
    for seed in 0..12_u32 {
        let s = f64::from(seed);
        let mut calling = End::new(Role::Calling, Rate::Bps2400);
        let mut answering = End::new(Role::Answering, Rate::Bps2400);
        let mut line = paths(
            2.5 * s,
            27.0,
            60.0 - 10.0 * s,
            s - 6.0,
            u64::from(seed) + 10,
        );
        line[0].at = s / 12.0 * 13.3;
        line[1].at = s / 5.0 * 13.3;
        run(&mut calling, &mut answering, &mut line, 700);
        calling.assert_carried(Rate::Bps2400, 3000);
        answering.assert_carried(Rate::Bps2400, 3000);
    }
}

#[test]
fn either_end_limits_the_rate_to_1200() {
    for (calls, answers) in [
        (Rate::Bps1200, Rate::Bps2400),
        (Rate::Bps2400, Rate::Bps1200),
    ] {
        let mut calling = End::new(Role::Calling, calls);
        let mut answering = End::new(Role::Answering, answers);
        run(
            &mut calling,
            &mut answering,
            &mut paths(12.0, 20.0, 50.0, 0.5, 3),
            1000,
        );
        calling.assert_carried(Rate::Bps1200, 2000);
        answering.assert_carried(Rate::Bps1200, 2000);
    }
}

#[test]
fn a_modem_whose_peer_falls_silent_does_too() {
    let mut calling = End::new(Role::Calling, Rate::Bps2400);
    let mut answering = End::new(Role::Answering, Rate::Bps2400);
    run(
        &mut calling,
        &mut answering,
        &mut paths(12.0, 27.0, 0.0, 0.0, 4),
        600,
    );
    assert_eq!(calling.modem.state(), at(Rate::Bps2400));
    calling.process(&[0; 1600]);
    assert_eq!(calling.modem.state(), PumpState::Lost);
    assert!(calling.process(&[0; 160]).iter().all(|sample| *sample == 0));
}

#[test]
fn how_a_stream_is_cut_does_not_matter() {
    let mut calling = End::new(Role::Calling, Rate::Bps2400);
    let mut answering = End::new(Role::Answering, Rate::Bps2400);
    run(
        &mut calling,
        &mut answering,
        &mut paths(12.0, 27.0, 50.0, 0.5, 5),
        700,
    );
    let replay = |blocks: &[usize]| {
        let mut end = End::new(Role::Calling, Rate::Bps2400);
        let (mut sent, mut bits, mut rest) = (Vec::new(), Vec::new(), &calling.received[..]);
        for length in blocks.iter().cycle() {
            let (block, after) = rest.split_at((*length).min(rest.len()));
            let mut transmit = vec![0; block.len()];
            end.modem
                .process(block, &mut transmit, &mut end.source, &mut bits);
            sent.extend(transmit);
            if after.is_empty() {
                break;
            }
            rest = after;
        }
        (sent, bits)
    };
    let whole = replay(&[calling.received.len()]);
    assert!(whole.1.len() > 3000, "{} bits", whole.1.len());
    assert_eq!(replay(&[1]), whole);
    assert_eq!(replay(&[97, 3, 0, 160, 41]), whole);
}

#[cfg(feature = "spandsp")]
mod spandsp {
    use std::io::{Read, Write};
    use std::path::{Path as FilePath, PathBuf};
    use std::process::{Child, Command, Stdio};

    use super::*;

    const BLOCK: usize = 160;

    /// The peer's program, or why there is none.
    fn build(name: &str) -> Result<PathBuf, String> {
        let flags = Command::new("pkg-config")
            .args(["--cflags", "--libs", "spandsp >= 0.0.6", "spandsp < 0.1"])
            .output()
            .map_err(|error| format!("pkg-config: {error}"))?;
        if !flags.status.success() {
            return Err(String::from_utf8_lossy(&flags.stderr).into_owned());
        }
        let source =
            FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/spandsp-peer/peer.c");
        let program = FilePath::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let compiled = Command::new("cc")
            .args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-o"])
            .args([&program, &source])
            .args(String::from_utf8_lossy(&flags.stdout).split_whitespace())
            .status()
            .map_err(|error| format!("cc: {error}"))?;
        assert!(compiled.success(), "the peer does not compile");
        Ok(program)
    }

    /// A number in the peer's report.
    fn field(report: &str, name: &str) -> i64 {
        report
            .split_whitespace()
            .filter_map(|word| word.split_once('='))
            .find(|(key, _)| *key == name)
            .and_then(|(_, value)| value.parse().ok())
            .unwrap_or_else(|| panic!("no {name} in {report:?}"))
    }

    fn exchange(peer: &mut Child, samples: &[i16]) -> Vec<i16> {
        let bytes: Vec<u8> = samples.iter().flat_map(|x| x.to_ne_bytes()).collect();
        peer.stdin.as_mut().unwrap().write_all(&bytes).unwrap();
        let mut answer = [0; 2 * BLOCK];
        peer.stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut answer)
            .unwrap();
        let pairs = answer.chunks_exact(2);
        pairs
            .map(|pair| i16::from_ne_bytes([pair[0], pair[1]]))
            .collect()
    }

    /// What both ends have to show after a connection.
    struct Outcome {
        end: End,
        report: String,
    }

    impl Outcome {
        fn assert_carried(&self, rate: Rate, bits: u32) {
            println!("spandsp: {}", self.report.trim());
            self.end.assert_carried(rate, bits);
            let spandsp = |name| field(&self.report, name);
            assert_eq!(spandsp("rate"), i64::from(rate.bits_per_second()));
            assert_eq!(spandsp("errors"), 0);
            assert!(spandsp("checked") >= i64::from(bits));
        }
    }

    /// Runs this crate's modem in `role` against the peer's program for so many blocks.
    fn connect(program: &FilePath, role: Role, mut line: [Path; 2], blocks: usize) -> Outcome {
        let peer_role = match role {
            Role::Calling => "answer",
            Role::Answering => "call",
        };
        let mut peer = Command::new(program)
            .args([peer_role, "2400"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut end = End::new(role, Rate::Bps2400);
        let mut transmit = vec![0; BLOCK];
        for _ in 0..blocks {
            let mut pass = |path: usize, samples: &[i16]| -> Vec<i16> {
                let through = samples.iter().map(|x| line[path].next(f64::from(*x)));
                through.map(to_i16).collect()
            };
            let answer = exchange(&mut peer, &pass(0, &transmit));
            transmit = end.process(&pass(1, &answer));
        }
        drop(peer.stdin.take());
        let output = peer.wait_with_output().unwrap();
        assert!(output.status.success());
        let report = String::from_utf8_lossy(&output.stderr).into_owned();
        Outcome { end, report }
    }

    /// The peer's program in a file of its own for each test; without spandsp the reason is printed.
    fn peer(name: &str) -> Option<PathBuf> {
        build(name)
            .inspect_err(|why| println!("skipped, no spandsp to test against: {why}"))
            .ok()
    }

    #[test]
    fn calls_spandsp() {
        let Some(program) = peer("spandsp-peer-called") else {
            return;
        };
        let line = paths(6.0, 30.0, 20.0, 0.5, 20);
        connect(&program, Role::Calling, line, 700).assert_carried(Rate::Bps2400, 20_000);
    }

    #[test]
    fn answers_spandsp() {
        let Some(program) = peer("spandsp-peer-calling") else {
            return;
        };
        let line = paths(6.0, 30.0, 20.0, 0.5, 30);
        connect(&program, Role::Answering, line, 700).assert_carried(Rate::Bps2400, 20_000);
    }

    /// spandsp's answering modem counts but 22 of the 60 symbols of S1. At about a tenth of the levels
    /// it counts none, whatever the length of S1, and both ends go on at 1200 bit/s.
    #[test]
    fn connects_to_spandsp_at_any_level_and_mostly_at_2400() {
        let Some(program) = peer("spandsp-peer-levels") else {
            return;
        };
        for role in [Role::Calling, Role::Answering] {
            let mut fast = 0;
            for loss_db in (0..=22).step_by(2) {
                let line = paths(f64::from(loss_db), 30.0, 0.0, 0.0, 40);
                let outcome = connect(&program, role, line, 200);
                let rates = [Rate::Bps1200, Rate::Bps2400].into_iter();
                let mut reached = rates.filter(|rate| outcome.end.modem.state() == at(*rate));
                let Some(rate) = reached.next() else {
                    panic!("not connected at {loss_db} dB");
                };
                outcome.assert_carried(rate, 1500);
                fast += u32::from(rate == Rate::Bps2400);
            }
            println!("{role:?}: {fast} of 12 at 2400 bit/s");
            assert!(fast >= if role == Role::Calling { 9 } else { 12 });
        }
    }
}
