//! Both ends of the soft modem over the telephone line: training, rates, error-free data, loss of
//! samples, retraining.

mod sequence;

use laxity_devices::bits::BitSink;
use laxity_devices::pump::{FarPump, HandshakeConfig, Line, LineConfig, NearPump, Pump, PumpState};
use sequence::{Checker, Sequence};

/// A line with its two ends; the card's blocks are those of a 12.5 ms period at a 1024 Hz tick.
struct Session {
    line: Line,
    near: NearPump,
    far: FarPump,
    up: (Sequence, Checker),
    down: (Sequence, Checker),
    /// What the near end sent and the card has not played yet: always a block ahead.
    output: Vec<i16>,
    /// Everything the ends received and sent, if wanted.
    log: Option<Log>,
}

#[derive(Default, PartialEq)]
struct Log {
    near_received: Vec<i16>,
    near_sent: Vec<i16>,
    far_received: Vec<f32>,
    far_sent: Vec<f32>,
}

const BLOCKS: [usize; 3] = [210, 210, 180];
const SECOND: usize = 16_000;

impl Session {
    fn idle(config: &LineConfig, handshake: HandshakeConfig) -> Self {
        Self {
            line: Line::new(config),
            near: NearPump::new(handshake),
            far: FarPump::new(handshake),
            up: (Sequence(0), Checker::new()),
            down: (Sequence(0), Checker::new()),
            output: vec![0; BLOCKS[0]],
            log: None,
        }
    }

    fn started(config: &LineConfig) -> Self {
        let mut session = Self::idle(config, HandshakeConfig::default());
        session.near.start();
        session.far.start();
        session
    }

    /// Time passes on the line and at the far end while the card plays; returns what it records.
    fn pass(&mut self, played: &[i16]) -> Vec<i16> {
        let mut recorded = vec![0; played.len()];
        let (far, source, sink) = (&mut self.far, &mut self.down.0, &mut self.up.1);
        let log = &mut self.log;
        self.line
            .exchange(played, &mut recorded, |received, transmit| {
                far.process(received, transmit, source, sink);
                if let Some(log) = log {
                    log.far_received.extend_from_slice(received);
                    log.far_sent.extend_from_slice(transmit);
                }
            });
        recorded
    }

    /// The driver is late: the card repeats old samples, and what it records is lost.
    fn lose(&mut self, samples: usize) {
        let stale: Vec<i16> = self.output.iter().copied().cycle().take(samples).collect();
        self.pass(&stale);
    }

    /// At least `samples` of the card, in whole blocks.
    fn run(&mut self, samples: usize) {
        let mut done = 0;
        for block in BLOCKS.into_iter().cycle() {
            if done >= samples {
                break;
            }
            done += block;
            let played: Vec<i16> = self.output.drain(..block).collect();
            let recorded = self.pass(&played);
            let mut sent = vec![0; block];
            let (source, sink) = (&mut self.up.0, &mut self.down.1);
            self.near.process(&recorded, &mut sent, source, sink);
            self.output.extend_from_slice(&sent);
            if let Some(log) = &mut self.log {
                log.near_received.extend_from_slice(&recorded);
                log.near_sent.extend_from_slice(&sent);
            }
        }
    }

    fn in_data(&self) -> bool {
        [self.near.state(), self.far.state()]
            .iter()
            .all(|s| matches!(s, PumpState::Data { .. }))
    }

    /// Samples until data flows both ways, at most `limit`.
    fn run_until_data(&mut self, limit: usize) -> usize {
        let mut samples = 0;
        while !self.in_data() {
            assert!(
                samples < limit,
                "{:?} {:?}",
                self.near.state(),
                self.far.state()
            );
            self.run(BLOCKS[0]);
            samples += BLOCKS[0];
        }
        samples
    }
}

const FASTEST: PumpState = PumpState::Data {
    down_rate: 50_667,
    up_rate: 31_200,
};

#[test]
fn the_default_line_carries_the_fastest_rates_without_error() {
    for seed in 1..=4 {
        let clock_ppm = [-50.0, 0.0, 20.0, 50.0][seed as usize % 4];
        let carrier_offset_hz = [0.5, -0.5][seed as usize % 2];
        let config = LineConfig {
            seed,
            clock_ppm,
            carrier_offset_hz,
            ..LineConfig::default()
        };
        let mut session = Session::started(&config);
        let training = session.run_until_data(3 * SECOND / 2);
        assert_eq!(session.near.state(), FASTEST);
        assert_eq!(session.far.state(), FASTEST);
        session.run(8 * SECOND - training);
        assert_eq!(
            (session.down.1.errors, session.up.1.errors),
            (0, 0),
            "seed {seed}"
        );
        assert!(session.down.1.bits > 330_000, "{}", session.down.1.bits);
        assert!(session.up.1.bits > 200_000, "{}", session.up.1.bits);
        assert_eq!(
            (session.near.retrainings(), session.far.retrainings()),
            (0, 0)
        );
        let ppm = session.near.receiver().unwrap().clock_ppm();
        assert!((ppm + clock_ppm).abs() < 1.0, "{ppm}");
    }
}

#[test]
fn ends_that_start_apart_on_a_long_line_meet() {
    for (near_after_ms, far_after_ms) in [(0, 400), (700, 0), (0, 1500)] {
        let config = LineConfig {
            delay_ms: 100.0,
            ..LineConfig::default()
        };
        let mut session = Session::idle(&config, HandshakeConfig::default());
        for ms in (0..=1500).step_by(25) {
            if ms == near_after_ms {
                session.near.start();
            }
            if ms == far_after_ms {
                session.far.start();
            }
            session.run(SECOND / 40);
        }
        session.run_until_data(3 * SECOND);
        session.run(SECOND);
        assert_eq!(session.near.state(), FASTEST);
        assert_eq!((session.down.1.errors, session.up.1.errors), (0, 0));
    }
}

#[test]
fn worse_lines_get_slower_rates_without_error() {
    let mut before = (u32::MAX, u32::MAX);
    for (snr_down_db, snr_up_db) in [
        (60.0, 50.0),
        (46.5, 38.5),
        (44.5, 36.5),
        (42.5, 34.5),
        (40.5, 30.0),
        (36.0, 24.0),
    ] {
        let config = LineConfig {
            snr_down_db,
            snr_up_db,
            ..LineConfig::default()
        };
        let mut session = Session::started(&config);
        session.run_until_data(3 * SECOND);
        let PumpState::Data { down_rate, up_rate } = session.near.state() else {
            unreachable!()
        };
        assert_eq!(session.far.state(), session.near.state());
        assert!(
            down_rate < before.0 && up_rate < before.1,
            "{down_rate} {up_rate} {before:?}"
        );
        before = (down_rate, up_rate);
        session.run(4 * SECOND);
        let errors = (session.down.1.errors, session.up.1.errors);
        assert_eq!(
            errors,
            (0, 0),
            "{snr_down_db} dB {down_rate}, {snr_up_db} dB {up_rate}"
        );
        let bits = u64::from(down_rate) * 4;
        assert!(
            session.down.1.bits > bits - 5000,
            "{} {bits}",
            session.down.1.bits
        );
    }
}

#[test]
fn lost_samples_make_errors_and_retrain_both_ends() {
    let mut session = Session::started(&LineConfig::default());
    session.run_until_data(2 * SECOND);
    for (count, lost) in [1, 100, 105, 512].into_iter().enumerate() {
        session.run(2 * SECOND);
        let errors = session.down.1.errors;
        session.lose(lost);
        session.run(SECOND / 4);
        assert!(session.down.1.errors > errors, "{lost} samples lost");
        assert_eq!(
            session.near.state(),
            PumpState::Training,
            "{lost} samples lost"
        );
        session.run_until_data(2 * SECOND);
        session.run(SECOND);
        assert_eq!(session.near.state(), FASTEST);
        assert_eq!(session.near.retrainings(), count as u32 + 1);
        assert_eq!(session.far.retrainings(), count as u32 + 1);
        // Nearly a second of each direction without an error.
        assert!(session.down.1.clean > 45_000, "{}", session.down.1.clean);
        assert!(session.up.1.clean > 28_000, "{}", session.up.1.clean);
    }
}

#[test]
fn bursts_that_lose_no_time_never_leave_an_end_wrong_for_good() {
    for burst in [1, 8, 33, 64, 200] {
        let mut session = Session::started(&LineConfig::default());
        session.run_until_data(2 * SECOND);
        session.run(SECOND);
        // Silence is played instead of what the near end sent, and recorded instead of what came.
        session.output.drain(..burst);
        let recorded = session.pass(&vec![0; burst]);
        assert!(recorded.iter().any(|sample| *sample != 0));
        let mut sent = vec![0; burst];
        let (source, sink) = (&mut session.up.0, &mut session.down.1);
        session
            .near
            .process(&vec![0; burst], &mut sent, source, sink);
        session.output.extend_from_slice(&sent);
        session.run(2 * SECOND);
        assert!(
            session.down.1.errors > 0 && session.up.1.errors > 0,
            "{burst}"
        );
        session.run(SECOND);
        assert_eq!(session.near.state(), FASTEST, "{burst}");
        assert!(
            session.down.1.clean > 45_000,
            "{burst} {}",
            session.down.1.clean
        );
        assert!(
            session.up.1.clean > 28_000,
            "{burst} {}",
            session.up.1.clean
        );
    }
}

#[test]
fn samples_lost_while_training_only_cost_time() {
    for after_ms in [200, 450, 700] {
        let mut session = Session::started(&LineConfig::default());
        session.run(SECOND / 1000 * after_ms);
        session.lose(77);
        session.run_until_data(6 * SECOND);
        session.run(SECOND);
        assert_eq!(session.near.state(), FASTEST);
        assert!(session.down.1.clean > 45_000 && session.up.1.clean > 28_000);
    }
}

#[test]
fn a_dead_line_is_lost() {
    let handshake = HandshakeConfig {
        attempt_ms: 1200,
        attempts: 2,
        ..HandshakeConfig::default()
    };
    let mut session = Session::idle(&LineConfig::default(), handshake);
    session.near.start();
    session.far.start();
    session.run_until_data(2 * SECOND);
    session.run(SECOND * 3 / 2);
    // From here on nothing arrives but noise of a bit or two.
    let mut silence = |near: &mut NearPump, samples: usize| {
        for n in 0..samples / 200 {
            let recorded = [(n % 3) as i16 - 1; 200];
            near.process(
                &recorded,
                &mut [0; 200],
                &mut session.up.0,
                &mut session.down.1,
            );
        }
    };
    silence(&mut session.near, SECOND / 5);
    assert_eq!(session.near.state(), PumpState::Training);
    silence(&mut session.near, 2 * SECOND);
    assert_eq!(session.near.state(), PumpState::Training);
    silence(&mut session.near, SECOND / 2);
    assert_eq!(session.near.state(), PumpState::Lost);
    let mut played = [1; 200];
    for _ in 0..2 {
        let (source, sink) = (&mut session.up.0, &mut session.down.1);
        session.near.process(&[0; 200], &mut played, source, sink);
    }
    assert_eq!(played, [0; 200], "a lost end is silent");
    // It can be started again, and trains with a far end that noticed.
    session.near.start();
    session.run_until_data(4 * SECOND);
    session.run(SECOND);
    assert!(session.down.1.clean > 45_000 && session.up.1.clean > 28_000);
}

/// What a pump sends when it hears this again, cut otherwise; its bits are to be those that were checked.
fn replay<S: Copy + Default>(
    pump: &mut dyn Pump<S>,
    received: &[S],
    cut: usize,
    checked: &Checker,
) -> Vec<S> {
    pump.start();
    let mut all_sent = Vec::new();
    let (mut source, mut sink) = (Sequence(0), Checker::new());
    for block in received.chunks(cut) {
        let mut sent = vec![S::default(); block.len()];
        pump.process(block, &mut sent, &mut source, &mut sink);
        all_sent.extend_from_slice(&sent);
    }
    assert_eq!((sink.bits, sink.errors), (checked.bits, checked.errors));
    all_sent
}

#[test]
fn the_cut_into_blocks_changes_nothing() {
    let mut session = Session::started(&LineConfig::default());
    session.log = Some(Log::default());
    session.run_until_data(2 * SECOND);
    session.run(SECOND / 2);
    session.lose(100);
    session.run(SECOND / 2);
    let log = session.log.take().expect("logged above");

    for cut in [1, 7, 333, 5000] {
        let (mut near, mut far) = (
            NearPump::new(HandshakeConfig::default()),
            FarPump::new(HandshakeConfig::default()),
        );
        let near = replay(&mut near, &log.near_received, cut, &session.down.1);
        let far = replay(&mut far, &log.far_received, cut, &session.up.1);
        assert!(near == log.near_sent && far == log.far_sent, "cut {cut}");
    }
}

#[test]
fn the_cut_into_blocks_does_not_change_the_line() {
    let run = |cut: usize| {
        let mut line = Line::new(&LineConfig::default());
        let played: Vec<i16> = (0..20_000_u32)
            .map(|n| (n.wrapping_mul(40_503) >> 4) as i16)
            .collect();
        let mut recorded = vec![0; played.len()];
        let (mut received, mut count) = (Vec::new(), 0_u32);
        for (played, recorded) in played.chunks(cut).zip(recorded.chunks_mut(cut)) {
            line.exchange(played, recorded, |network, levels| {
                received.extend_from_slice(network);
                for level in levels {
                    count = count.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    *level = (count >> 16) as f32 / 32_768.0 - 1.0;
                }
            });
        }
        (recorded, received)
    };
    let whole = run(20_000);
    for cut in [1, 3, 210, 4096] {
        assert!(run(cut) == whole, "cut {cut}");
    }
}

#[test]
fn the_same_seed_gives_the_same_samples() {
    let run = |seed| {
        let mut session = Session::started(&LineConfig {
            seed,
            ..LineConfig::default()
        });
        session.log = Some(Log::default());
        session.run(3 * SECOND / 2);
        session.log.take().expect("logged above")
    };
    assert!(run(5) == run(5));
    assert!(run(5) != run(6));
}

#[test]
fn a_cloned_receiver_decides_the_same_bits() {
    let mut session = Session::started(&LineConfig::default());
    session.run_until_data(2 * SECOND);
    session.log = Some(Log::default());
    let mut clone = session.near.receiver().unwrap().clone();
    let before = session.down.1.bits;
    session.run(SECOND);
    let log = session.log.take().expect("logged above");
    let mut bits: Vec<bool> = Vec::new();
    clone.process(&log.near_received, &mut bits);
    assert_eq!(bits.len() as u64, session.down.1.bits - before);
    let mut sequence = Checker::new();
    // The sequence can be checked once 23 bits are known.
    bits.iter().for_each(|bit| sequence.push_bit(*bit));
    assert_eq!(sequence.clean.max(bits.len() as u64 - 23), sequence.clean);
}
