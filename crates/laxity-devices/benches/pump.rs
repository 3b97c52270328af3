//! Cost of the modem's signal processing per block of 12.5 ms, and its error rate over many seeds.
//!
//! `cargo bench --bench pump` prints microseconds per block. `-- --soak N` instead transfers two
//! million bits down and more than one million up on each of N seeds and counts errors; `-- --slips
//! N` loses samples at N moments of training and data and reports how the ends come back.

use std::time::Instant;

use laxity_devices::pump::{
    FarPump, HandshakeConfig, Line, LineConfig, NearPump, PamReceiver, Pump, PumpState,
};

#[path = "../tests/sequence/mod.rs"]
mod sequence;
use sequence::{Checker, Sequence};

struct Session {
    line: Line,
    near: NearPump,
    far: FarPump,
    up: (Sequence, Checker),
    down: (Sequence, Checker),
    played: Vec<i16>,
    recorded: Vec<i16>,
}

impl Session {
    fn new(config: &LineConfig) -> Self {
        let mut near = NearPump::new(HandshakeConfig::default());
        let mut far = FarPump::new(HandshakeConfig::default());
        near.start();
        far.start();
        Self {
            line: Line::new(config),
            near,
            far,
            up: (Sequence(0), Checker::new()),
            down: (Sequence(0), Checker::new()),
            played: vec![0; 200],
            recorded: vec![0; 200],
        }
    }

    /// One block; returns the times of the near end and of the far end in ns.
    fn block(&mut self) -> (u128, u128) {
        let mut far_ns = 0;
        let (far, down, up) = (&mut self.far, &mut self.down.0, &mut self.up.1);
        self.line
            .exchange(&self.played, &mut self.recorded, |received, transmit| {
                let start = Instant::now();
                far.process(received, transmit, down, up);
                far_ns = start.elapsed().as_nanos();
            });
        let start = Instant::now();
        let (up, down) = (&mut self.up.0, &mut self.down.1);
        self.near
            .process(&self.recorded, &mut self.played, up, down);
        (start.elapsed().as_nanos(), far_ns)
    }
}

fn median_us(mut times: Vec<u128>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2] as f64 / 1000.0
}

fn soak(seeds: u64) {
    for seed in 1..=seeds {
        let clock_ppm = if seed % 2 == 0 { 50.0 } else { -50.0 };
        let mut session = Session::new(&LineConfig {
            seed,
            clock_ppm,
            ..LineConfig::default()
        });
        let (mut trained, mut worst_us) = (0, (0, 0));
        for block in 1..=3300 {
            let (near, far) = session.block();
            if trained == 0 {
                worst_us = (worst_us.0.max(near / 1000), worst_us.1.max(far / 1000));
            }
            if trained == 0 && in_data(&session) {
                trained = block;
            }
        }
        println!(
            "seed {seed}: {:?}, data after {:.3} s, costliest block {worst_us:?} µs, retrainings {} {}, \
             clock {:.3}, down {} errors in {}, up {} errors in {}",
            session.near.state(),
            f64::from(trained) * 0.0125,
            session.near.retrainings(),
            session.far.retrainings(),
            session
                .near
                .receiver()
                .map_or(f64::NAN, PamReceiver::clock_ppm),
            session.down.1.errors,
            session.down.1.bits,
            session.up.1.errors,
            session.up.1.bits,
        );
    }
}

/// Both ends carry data.
fn in_data(session: &Session) -> bool {
    [session.near.state(), session.far.state()]
        .iter()
        .all(|state| matches!(state, PumpState::Data { .. }))
}

/// Both ends have been at the fastest rates without an error for about a second.
fn is_clean(session: &Session) -> bool {
    let fastest = PumpState::Data {
        down_rate: 50_667,
        up_rate: 31_200,
    };
    session.near.state() == fastest
        && session.far.state() == fastest
        && session.down.1.clean > 45_000
        && session.up.1.clean > 28_000
}

/// Loses samples at `trials` moments, in training and in data, alternately; the ends must come back.
fn slips(trials: u64) {
    let failed = (0..trials).filter(|trial| !slip(*trial)).count();
    println!(
        "{failed} of {trials} had not been clean at the fastest rates for a second, two seconds later"
    );
}

/// One loss of samples. Returns whether the ends came back.
fn slip(trial: u64) -> bool {
    // Two low-discrepancy sequences; every fourth loss is one of a few samples.
    let when = (trial * 79 % 128) as usize;
    let count = (trial * 619 % 1024) as usize + 1;
    let count = if trial % 4 == 3 {
        count / 64 + 1
    } else {
        count
    };
    let mut session = Session::new(&LineConfig {
        seed: trial,
        ..LineConfig::default()
    });
    let wait = if trial.is_multiple_of(2) {
        when
    } else {
        200 + when
    };
    (0..wait).for_each(|_| {
        session.block();
    });
    let stale: Vec<i16> = session.played.iter().copied().cycle().take(count).collect();
    let (far, down, up) = (&mut session.far, &mut session.down.0, &mut session.up.1);
    session
        .line
        .exchange(&stale, &mut vec![0; count], |received, transmit| {
            far.process(received, transmit, down, up);
        });
    // The loss must be noticed before the return of data counts.
    let mut blocks = 0;
    while blocks < 15 || (!in_data(&session) && blocks < 1600) {
        session.block();
        blocks += 1;
    }
    let state = session.near.state();
    (0..160).for_each(|_| {
        session.block();
    });
    let good = is_clean(&session);
    println!(
        "{count} samples lost after {:.3} s: data after {:.3} s, {state:?}, retrainings {} {}, good: {good}",
        wait as f64 * 0.0125,
        f64::from(blocks) * 0.0125,
        session.near.retrainings(),
        session.far.retrainings(),
    );
    good
}

fn cost() {
    let mut session = Session::new(&LineConfig::default());
    while !matches!(session.near.state(), PumpState::Data { .. }) {
        session.block();
    }
    let receiver = session.near.receiver();
    let mut receiver = receiver.expect("the near end has one").clone();
    let (mut near, mut far, mut down, mut line) = (vec![], vec![], vec![], vec![]);
    let mut sink = Checker::new();
    for _ in 0..2000 {
        let start = Instant::now();
        let (near_ns, far_ns) = session.block();
        line.push(start.elapsed().as_nanos() - near_ns - far_ns);
        near.push(near_ns);
        far.push(far_ns);
        let start = Instant::now();
        receiver.process(&session.recorded, &mut sink);
        down.push(start.elapsed().as_nanos());
    }
    let (near, down) = (median_us(near), median_us(down));
    println!("µs per block of 12.5 ms, medians of 2000");
    println!("near end       {near:6.2}");
    println!("  PAM receiver {down:6.2}");
    println!("  transmitter  {:6.2} (difference)", near - down);
    println!("far end        {:6.2}", median_us(far));
    println!("line           {:6.2}", median_us(line));
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let count = |name: &str| {
        let i = arguments.iter().position(|a| a == name)?;
        Some(
            arguments
                .get(i + 1)
                .and_then(|n| n.parse().ok())
                .unwrap_or(10),
        )
    };
    match (count("--soak"), count("--slips")) {
        (Some(seeds), _) => soak(seeds),
        (_, Some(trials)) => slips(trials),
        _ => cost(),
    }
}
