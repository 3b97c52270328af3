//! The framework's tables on this machine, by counts: what else it does makes frames late and transfers slow, and neither stops.

use laxity::doctor::rights::{self, LiveTest, Right};
use laxity::net::may_pair;
use laxity::{LiveConfig, LiveHost};
use laxity_lab::bench::{Request, Runner, Said};
use laxity_model::Span;
use laxity_studies::nif::here::{Case, FURTHER, STREAMS, WAYS, run};
use laxity_studies::nif::{behind, outbound, throughput, ttcp};

const INTERVALS: u64 = 6;
const LENGTH: Span = Span::from_millis(400);

/// This machine, where interfaces can be made for it; skipped else.
fn host() -> Option<(LiveTest, LiveHost)> {
    let turn = rights::require(&[Right::RealTime])?;
    if let Err(why) = may_pair() {
        rights::lacks(&why.to_string());
        return None;
    }
    let config = LiveConfig::detect(1).expect("a processor may be used");
    Some((turn, LiveHost::new(config)))
}

#[test]
fn frames_are_shown_in_each_way_and_streams_get_on_beside_them() {
    let Some((_turn, mut host)) = host() else {
        return;
    };
    let mut said = Said::default();
    for way in WAYS.into_iter().chain(FURTHER) {
        for streams in [0, STREAMS] {
            let case = Case {
                way,
                streams,
                intervals: INTERVALS,
                round: 0,
                seed: 1,
            };
            let mut runner = Runner::Live(&mut host, &mut said);
            let seen = run(&mut runner, &case).expect("it runs");
            // One frame at least, and no more than left: a machine that stands still takes what it likes of the rest.
            let [shown, left] = [&seen.all, &seen.left].map(|intervals| intervals.0.len() as u64);
            assert!(left <= INTERVALS && shown <= left, "{case:?}: {seen:?}");
            assert!(seen.undisturbed.0.len() as u64 <= shown);
            assert_eq!(seen.packets > 0, streams > 0, "{case:?}: {seen:?}");
            assert!(seen.busy_ppm > 0, "{case:?}: {seen:?}");
        }
    }
}

#[test]
fn tcp_carries_messages_both_ways_in_both_arrangements() {
    let Some((_turn, mut host)) = host() else {
        return;
    };
    let mut said = Said::default();
    let cases = throughput::Case::here(&Request {
        repeats: Some(1),
        ..Request::default()
    });
    let mut made = 0;
    for case in cases {
        let mut runner = Runner::Live(&mut host, &mut said);
        let rate = ttcp::run(&mut runner, case.setup(), LENGTH).expect("it runs");
        assert!(rate > 0, "{case:?}");
        made += 1;
    }
    assert_eq!(made, 8);
}

#[test]
fn bursts_come_and_video_leaves_in_each_way() {
    let Some((_turn, mut host)) = host() else {
        return;
    };
    let mut said = Said::default();
    for is_bsd in [false, true] {
        let case = behind::Case {
            is_bsd,
            queued: 8,
            bursts: 5,
        };
        let mut runner = Runner::Live(&mut host, &mut said);
        let seen = behind::run(&mut runner, case).expect("it runs");
        assert!(!seen.waited.is_empty(), "{case:?}: {seen:?}");
        assert!(!seen.longest.is_empty(), "{case:?}: {seen:?}");
        let case = outbound::Case {
            by_priority: is_bsd,
            frames: 5,
        };
        let mut runner = Runner::Live(&mut host, &mut said);
        let seen = outbound::run(&mut runner, case).expect("it runs");
        assert!(!seen.is_empty(), "{case:?}: {seen:?}");
    }
}
