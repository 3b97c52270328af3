//! Whole calls, every interrupt served the moment it is raised: no host, no lateness.

use laxity_devices::link::endpoint;
use laxity_devices::modem::{Call, CallConfig, Costs, Hypothesis, Outcome, Phase, Timing};
use laxity_devices::pump::LineConfig;
use laxity_model::{Instant, Span};

fn config(timing: Timing, octets: u64) -> CallConfig {
    CallConfig {
        timing,
        line: LineConfig::default(),
        link: endpoint::Config {
            file_octets: octets,
            ..endpoint::Config::default()
        },
        further_receivers: 1,
        costs: Costs::STUDY,
        hypothesis: Hypothesis::default(),
        linger: Span::ZERO,
    }
}

/// Serves interrupts until the call is over; returns when each phase began.
fn to_the_end(call: &mut Call, limit: Span) -> Vec<(Phase, Instant)> {
    let mut phases = vec![(call.phase(), call.now())];
    while call.report().outcome().is_none() && call.now().since_epoch() < limit {
        call.serve_next();
        if phases
            .last()
            .is_some_and(|(phase, _)| *phase != call.phase())
        {
            phases.push((call.phase(), call.now()));
        }
    }
    phases
}

#[test]
fn a_short_call_delivers_its_file() {
    let mut call = Call::new(config(Timing::short(), 8_000));
    let phases = to_the_end(&mut call, Span::from_secs(30));
    println!("{phases:?} {:?}", call.report());
    println!("{}", String::from_utf8_lossy(&call.near().transcript()));
    assert!(matches!(
        call.report().outcome(),
        Some(Outcome::Done {
            checksum_ok: true,
            ..
        })
    ));
    assert_eq!(call.report().samples_lost.get(), 0);
    assert_eq!(call.report().samples_underrun.get(), 0);
    assert_eq!(call.report().samples_undelivered.get(), 0);
    assert_eq!(call.report().receiver_bit_errors.get(), 0);
    assert!(call.report().receiver_bits.get() > 64_000);
    let names: Vec<_> = phases.iter().map(|(phase, _)| phase.name()).collect();
    assert_eq!(names, ["on-hook", "dialing", "training", "connected"]);
}

#[test]
fn the_studys_call_takes_the_studys_time() {
    let mut call = Call::new(config(Timing::study(), 200_000));
    let phases = to_the_end(&mut call, Span::from_secs(120));
    println!("{phases:?} {:?}", call.report());
    let began = |phase| {
        phases
            .iter()
            .find(|(p, _)| *p == phase)
            .map(|(_, at)| at.since_epoch().as_micros())
    };
    let within = |phase, low: u64, high: u64| {
        let at = began(phase).unwrap();
        assert!(
            (low..=high).contains(&at),
            "{} began at {at} us",
            phase.name()
        );
    };
    within(Phase::Dialing, 2_000_000, 2_010_000);
    within(Phase::Training, 10_500_000, 11_500_000);
    within(Phase::Connected, 22_000_000, 24_000_000);
    let Some(Outcome::Done {
        duration,
        checksum_ok: true,
    }) = call.report().outcome()
    else {
        panic!("{:?}", call.report().outcome());
    };
    // Jones, Saroiu, table 2: 36.367 s on average with INT; here from protocol and rate alone.
    let study = 36_367;
    let millis = duration.as_micros() / 1_000;
    assert!(
        millis.abs_diff(study) * 20 <= study,
        "{millis} ms against the study's {study} ms"
    );
}
