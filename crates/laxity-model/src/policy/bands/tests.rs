use alloc::vec::Vec;

use proptest::prelude::*;

use super::oracle::Oracle;
use super::*;

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn bands(config: BandsConfig, levels: &[u8]) -> Bands {
    let priorities: Vec<Priority> = levels.iter().filter_map(|l| Priority::new(*l)).collect();
    Bands::new(config, &priorities)
}

/// Runs the bands without outside events and lists who runs from when, in milliseconds.
fn timeline(bands: &mut Bands, from: u64, to: u64) -> Vec<(u64, Option<u32>)> {
    let mut out: Vec<(u64, Option<u32>)> = Vec::new();
    let mut now = at(from);
    while now < at(to) {
        let decision = bands.decide(now);
        if out.last().is_none_or(|(_, who)| *who != decision.who) {
            out.push((now.as_nanos() / 1_000_000, decision.who));
        }
        assert!(decision.until > now, "a decision must hold for some time");
        now = decision.until;
    }
    out
}

#[test]
fn the_highest_level_runs_and_nothing_needs_a_further_decision() {
    let mut bands = bands(BandsConfig::PLAIN, &[8, 24, 8]);
    for thread in 0..3 {
        bands.enter(thread, Arrival::Start, at(0));
    }
    let expected = Decision {
        who: Some(1),
        until: Instant::MAX,
    };
    assert_eq!(bands.decide(at(0)), expected);
}

#[test]
fn equals_go_round_a_quantum_each() {
    for level in [8, 24] {
        let mut bands = bands(BandsConfig::PLAIN, &[level; 3]);
        for thread in 0..3 {
            bands.enter(thread, Arrival::Start, at(0));
        }
        let expected = [(0, Some(0)), (20, Some(1)), (40, Some(2)), (60, Some(0))];
        assert_eq!(timeline(&mut bands, 0, 80), expected);
    }
}

#[test]
fn a_preempted_thread_returns_to_the_head_and_keeps_the_rest_of_its_quantum() {
    let mut bands = bands(BandsConfig::PLAIN, &[8, 8, 24]);
    bands.enter(0, Arrival::Start, at(0));
    bands.enter(1, Arrival::Start, at(0));
    assert_eq!(bands.decide(at(0)).who, Some(0));
    bands.enter(2, Arrival::Wake(WaitEnd::Timer), at(15));
    assert_eq!(bands.decide(at(15)).who, Some(2));
    bands.leave(2, at(17));
    let rest = bands.decide(at(17));
    assert_eq!((rest.who, rest.until), (Some(0), at(22)));
    assert_eq!(bands.decide(at(22)).who, Some(1));
}

#[test]
fn the_quantum_stands_still_while_an_interrupt_has_the_processor() {
    let mut bands = bands(BandsConfig::PLAIN, &[8, 8]);
    bands.enter(0, Arrival::Start, at(0));
    bands.enter(1, Arrival::Start, at(0));
    bands.decide(at(0));
    bands.pause(at(5));
    assert_eq!(bands.decide(at(8)).until, at(23));
}

#[test]
fn a_newcomer_does_not_restart_the_quantum_of_who_ran_alone() {
    let mut bands = bands(BandsConfig::PLAIN, &[8, 8]);
    bands.enter(0, Arrival::Start, at(0));
    assert_eq!(bands.decide(at(0)).until, Instant::MAX);
    bands.enter(1, Arrival::Start, at(50));
    // Two quanta and a half have passed unnoticed.
    assert_eq!(bands.decide(at(50)).until, at(60));
}

#[test]
fn a_boost_wins_the_processor_and_wears_off_by_a_level_a_quantum() {
    let config = BandsConfig {
        signal_boost: 2,
        starvation: None,
        ..BandsConfig::WINDOWS_2000
    };
    let mut bands = bands(config, &[8, 8]);
    bands.enter(0, Arrival::Start, at(0));
    bands.decide(at(0));
    bands.enter(1, Arrival::Wake(WaitEnd::Signal), at(5));
    assert_eq!(bands.level(1), 10);
    // 20 ms at 10, 20 ms at 9, then at 8 behind thread 0, which has 15 ms left.
    let expected = [(5, Some(1)), (45, Some(0)), (60, Some(1)), (80, Some(0))];
    assert_eq!(timeline(&mut bands, 5, 100), expected);
}

#[test]
fn boosts_stay_within_the_variable_levels() {
    let config = BandsConfig {
        signal_boost: 6,
        ..BandsConfig::WINDOWS_2000
    };
    let mut bands = bands(config, &[14, 16, 31, 0]);
    for thread in 0..4 {
        bands.enter(thread, Arrival::Wake(WaitEnd::Signal), at(0));
    }
    let levels: Vec<u8> = (0..4).map(|thread| bands.level(thread)).collect();
    assert_eq!(levels, [15, 16, 31, 0]);
}

#[test]
fn a_starving_thread_gets_two_quanta_and_starves_again() {
    let mut bands = bands(BandsConfig::WINDOWS_2000, &[10, 4]);
    bands.enter(0, Arrival::Start, at(0));
    bands.enter(1, Arrival::Start, at(0));
    let expected = [
        (0, Some(0)),
        (4000, Some(1)),
        (4040, Some(0)),
        // 4 s after 4040 ms is past the scan at 8 s.
        (9000, Some(1)),
        (9040, Some(0)),
    ];
    assert_eq!(timeline(&mut bands, 0, 10_000), expected);
}

#[test]
fn a_real_time_spinner_starves_the_variable_levels_for_ever() {
    let mut bands = bands(BandsConfig::WINDOWS_2000, &[16, 8]);
    bands.enter(0, Arrival::Start, at(0));
    bands.enter(1, Arrival::Start, at(0));
    assert_eq!(timeline(&mut bands, 0, 60_000), [(0, Some(0))]);
}

#[test]
fn yielding_lets_equals_run_but_nobody_below() {
    let mut bands = bands(BandsConfig::PLAIN, &[8, 8, 4]);
    for thread in 0..3 {
        bands.enter(thread, Arrival::Start, at(0));
    }
    assert_eq!(bands.decide(at(0)).who, Some(0));
    bands.yield_now(0, at(1));
    assert_eq!(bands.decide(at(1)).who, Some(1));
    bands.leave(1, at(2));
    assert_eq!(bands.decide(at(2)).who, Some(0));
    bands.yield_now(0, at(3));
    assert_eq!(bands.decide(at(3)).who, Some(0));
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Start(u32),
    Wake(u32, bool),
    Resume(u32),
    SetPriority(u32, Priority),
    HasRun(u32),
    Leave(u32),
    Yield,
    Pause,
    Pass(u8),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let thread = 0..6_u32;
    let op = prop_oneof![
        thread.clone().prop_map(Op::Start),
        (thread.clone(), any::<bool>()).prop_map(|(t, signal)| Op::Wake(t, signal)),
        thread.clone().prop_map(Op::Resume),
        (
            thread.clone(),
            (0..32_u8).prop_filter_map("below 32", Priority::new)
        )
            .prop_map(|(t, p)| Op::SetPriority(t, p)),
        thread.clone().prop_map(Op::HasRun),
        thread.prop_map(Op::Leave),
        Just(Op::Yield),
        Just(Op::Pause),
        (1..40_u8).prop_map(Op::Pass),
        (1..40_u8).prop_map(Op::Pass),
    ];
    prop::collection::vec(op, 1..60)
}

proptest! {
    /// The bands, asked only when they said so or when something happened, do what the oracle does nanosecond by nanosecond.
    #[test]
    fn bands_do_what_the_oracle_does(
        levels in prop::collection::vec(prop_oneof![Just(0_u8), 1..16_u8, 5..8_u8, 5..8_u8, 16..18_u8], 6),
        signal_boost in 0..4_u8,
        timer_boost in 0..3_u8,
        quantum in 1..6_u64,
        starvation in prop::option::of((1..9_u64, 1..12_u64, 1..4_u8)),
        ops in ops(),
    ) {
        let config = BandsConfig {
            quantum: Span::from_nanos(quantum),
            signal_boost,
            timer_boost,
            starvation: starvation.map(|(every, after, quanta)| Starvation {
                scan_every: Span::from_nanos(every),
                after: Span::from_nanos(after),
                quanta,
            }),
        };
        let priorities: Vec<Priority> = levels.iter().filter_map(|l| Priority::new(*l)).collect();
        let (mut fast, mut slow) = (Bands::new(config, &priorities), Oracle::new(config, &priorities));
        let mut now = Instant::ZERO;
        let mut paused = false;
        let mut until = Instant::MAX;
        for op in ops {
            match op {
                Op::Start(t) if slow.is_away(t) => { fast.enter(t, Arrival::Start, now); slow.start(t); }
                Op::Wake(t, signal) if slow.is_away(t) => {
                    let end = if signal { WaitEnd::Signal } else { WaitEnd::Timer };
                    fast.enter(t, Arrival::Wake(end), now);
                    slow.wake(t, end);
                }
                Op::Resume(t) if slow.is_away(t) => { fast.enter(t, Arrival::Resume, now); slow.resume(t); }
                Op::SetPriority(t, p) => { fast.set_priority(t, p, now); slow.set_priority(t, p); }
                Op::HasRun(t) => { fast.has_run(t, now); slow.has_run(t); }
                Op::Leave(t) => { fast.leave(t, now); slow.leave(t); }
                Op::Yield => if let Some(t) = slow.running() { fast.yield_now(t, now); slow.yield_now(t); },
                Op::Pause => { fast.pause(now); slow.pause(); paused = true; continue; }
                Op::Pass(nanos) => for _ in 0..nanos {
                    now += Span::from_nanos(1);
                    slow.pass();
                    if !paused {
                        let expected = slow.decide();
                        if now >= until {
                            let decision = fast.decide(now);
                            prop_assert_eq!(decision.who, expected);
                            until = decision.until;
                        }
                        prop_assert_eq!(fast.running, expected, "at {}", now.as_nanos());
                    }
                },
                _ => {}
            }
            paused = false;
            let decision = fast.decide(now);
            prop_assert_eq!(decision.who, slow.decide());
            prop_assert!(decision.until > now);
            until = decision.until;
            for t in 0..6 {
                prop_assert_eq!(fast.level(t), slow.level(t));
                let place = fast.threads[t as usize].place;
                prop_assert_eq!(place == Place::Away, slow.is_away(t));
            }
        }
    }
}
