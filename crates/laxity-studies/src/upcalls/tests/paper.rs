//! What is held against the paper's numbers.

use laxity_lab::report::{Compared, Value, Verdict};

use super::*;
use crate::register::Kind;
use crate::upcalls::udp::peer::Way;
use crate::upcalls::udp::transfer::{Transfer, Transferred};

#[test]
fn what_is_calibrated_says_by_what_of_the_paper() {
    for constant in constants::REGISTER.iter() {
        let says = !constant.chosen_by.is_empty();
        assert_eq!(says, constant.kind == Kind::Calibrated, "{constant:?}");
    }
    let rows = constants::rows().expect("each has a value");
    assert_eq!(rows.len(), constants::REGISTER.len());
}

/// The paper's 12 % may be of what was useful before, or of the processor.
#[test]
fn a_gain_is_compared_in_both_readings() {
    let request = request("switches");
    for (usable_ppm, [relative, points]) in [
        (555_000, [false, false]),
        (560_000, [true, false]),
        (590_000, [true, false]),
        // More than half as much again is not as much as the paper's.
        (595_000, [false, false]),
        (615_000, [false, false]),
        (620_000, [false, true]),
        (680_000, [false, true]),
        (685_000, [false, false]),
    ] {
        let of = |case: Case| {
            let seen = seen(&case, (70, 0, usable_ppm));
            (case, seen)
        };
        let made = Made {
            twin: cases(&request, false).into_iter().map(of).collect(),
            ..Made::nothing(&request)
        };
        let report = judge(&Upcalls, &made).expect("nothing is analysed");
        let compared = report.figures[0].compared.iter();
        let as_much = compared.map(|row| matches!(row.verdict, Verdict::Consistent(_)));
        let as_much: Vec<bool> = as_much.collect();
        assert_eq!(as_much, [false, relative, points], "{usable_ppm}");
        let told = report.summary.iter();
        let mut told = told.filter(|told| told.starts_with("Read as points"));
        assert_eq!(told.next().is_none(), points, "{usable_ppm}");
    }
}

/// Where work and switches exceed the processor somebody misses, whoever is served how: that is evidence of nothing.
#[test]
fn that_deadlines_are_missed_beyond_the_papers_load_can_be_false() {
    let request = request("deadlines");
    for (from, expected) in [(85, true), (95, true), (100, false)] {
        let twin = cases(&request, false).into_iter().map(|case| {
            let misses = u64::from(case.percent() >= from);
            missed(case, misses)
        });
        let made = Made {
            twin: twin.collect(),
            ..Made::nothing(&request)
        };
        let report = judge(&Upcalls, &made).expect("nothing is analysed");
        let mut beyond = report.checks.iter();
        let beyond = beyond.find(|check| check.claim.contains("beyond that some are"));
        let held = beyond.map(|check| check.held);
        assert_eq!(held, Some(Some(expected)), "{from}");
    }
}

/// Twelve of equal utilization: 12 (2^(1/12) - 1); and by the paper's own bound a sixteenth of the longest batch less, from the shortest period to the longest.
#[test]
fn the_papers_bounds_are_those_of_its_formulas() {
    let request = request("deadlines");
    let case = cases(&request, true).remove(0);
    let [(_, rate_monotonic), (_, delayed)] = deadlines::bounds(&case.setup);
    assert_eq!(rate_monotonic, 713_558);
    // U + U / 12 * 90 / 16 * (1 / 40 - 1 / 90) is at most that.
    assert!((708_935..=708_950).contains(&delayed), "{delayed}");
}

/// Of a hundred preemptions so many are left with looks after an eighth of a batch, and after half of one: the paper's 30 % lie between, or do not.
#[test]
fn the_papers_fewer_preemptions_are_claimed_to_lie_between_quanta() {
    let request = request("simulation");
    let parts = |parts: u32| Look::Parts(NonZeroU32::new(parts).expect("it is not zero"));
    for (eighth, half, expected) in [(90, 54, true), (90, 71, false), (69, 54, false)] {
        let of = |(number, case): (usize, Case)| {
            let mut seen = seen(&case, (0, 0, 990_000));
            seen.outcome.preempted = match case.setup.way {
                (Serving::Threads, _) => 100,
                (_, look) if look == parts(8) => eighth,
                _ => half,
            };
            seen.usable_ppm = seen.usable_ppm.filter(|_| number > 0);
            (case, seen)
        };
        let all = cases(&request, false).into_iter().enumerate();
        let made = Made {
            twin: all.map(of).collect(),
            ..Made::nothing(&request)
        };
        let report = judge(&Upcalls, &made).expect("nothing is analysed");
        assert_eq!(held(&report)[1], Some(expected), "{eighth} {half}");
        let mut remarks = report.figures[0].remarks.iter();
        assert!(remarks.any(|remark| remark.starts_with("Of 1 of 66 runs")));
    }
}

/// As in the paper: upcalls that look when all is done beside those that look after each unit, whatever threads do.
#[test]
fn on_this_machine_the_papers_saving_is_held_against_upcalls() {
    let request = request("switches");
    for (switches, expected) in [(1, false), (47, false), (48, true), (65, true), (66, false)] {
        let of = |case: Case| {
            let mut seen = seen(&case, (switches, 0, 0));
            if case.setup.way.0 == Serving::Threads {
                seen.outcome.switches = 1_000;
            }
            (case, seen)
        };
        let live: Vec<Trial> = cases(&request, true).into_iter().map(of).collect();
        let made = Made {
            said: vec![disturbed(0); live.len()],
            live,
            ..Made::nothing(&request)
        };
        let report = judge(&Upcalls, &made).expect("nothing is analysed");
        let [row] = &report.figures[0].compared[..] else {
            panic!("{:#?}", report.figures[0].compared);
        };
        let is_as_much = matches!(row.live_verdict, Verdict::Consistent(_));
        assert_eq!(is_as_much, expected, "{switches}");
    }
}

/// Of one set of those that were drawn the shortest period loses 30 ms of its time to deadline, and the longest less than twice that.
#[test]
fn what_the_shortest_period_loses_is_claimed_of_every_set() {
    let request = request("deadlines");
    for (lost_ms, expected) in [(60, true), (59, false)] {
        let twin = cases(&request, false).into_iter().map(|case| {
            let (is_high, is_one) = (case.percent() >= 80, case.set == 3);
            let (case, mut seen) = missed(case, 0);
            for (number, rate) in seen.outcome.rates.iter_mut().enumerate() {
                let lost_ms = match number {
                    0 => 30,
                    _ if is_one => lost_ms,
                    _ => 60,
                };
                let lost_ms = if is_high { lost_ms } else { 0 };
                rate.longest = Some(Span::from_millis(10 + lost_ms));
            }
            (case, seen)
        });
        let made = Made {
            twin: twin.collect(),
            ..Made::nothing(&request)
        };
        let report = judge(&Upcalls, &made).expect("nothing is analysed");
        let mut shortest = report.checks.iter();
        let shortest = shortest.find(|check| check.claim.contains("of the shortest period"));
        let held = shortest.map(|check| check.held);
        assert_eq!(held, Some(Some(expected)), "{lost_ms}");
    }
}

/// With the longest messages beside a load two upcalls receive so many where they receive a thousand without: a share that does not hang on the host, and is judged.
#[test]
fn of_udp_what_both_upcalls_keep_is_judged_and_ratios_of_a_host_are_not() {
    let request = request("udp");
    for (received, expected) in [(950, true), (949, false)] {
        let of = |ways, loaded, received| {
            let transfer = Transfer {
                ways,
                bytes: 8_192,
                loaded,
                length: Span::from_secs(1),
            };
            let transferred = Transferred {
                sent: 1_000,
                received,
                wrong: 0,
            };
            (transfer, transferred)
        };
        let [plain, server] = [Way::Plain, Way::Upcall];
        let live = vec![
            of([plain, plain], false, 400),
            of([plain, plain], true, 100),
            of([plain, server], false, 500),
            of([plain, server], true, 400),
            of([server, server], false, 1_000),
            of([server, server], true, received),
        ];
        let request = Request {
            live: true,
            ..request.clone()
        };
        let made = Made {
            said: vec![disturbed(0); live.len()],
            live,
            ..Made::nothing(&request)
        };
        let report = judge(&udp::Udp, &made).expect("nothing is analysed");
        let compared = &report.figures[0].compared;
        let lives = compared.iter().map(|row| row.live.clone());
        let lives: Vec<Option<Value>> = lives.map(|cell| cell.map(|cell| cell.value)).collect();
        let expected_of = [
            Value::share(750_000),
            Value::Ratio(4_000),
            Value::Ratio(received * 1_000 / 400),
            Value::BitRate(received * 8_192 * 8),
            Value::share(received * 1_000),
        ];
        assert_eq!(lives, expected_of.map(Some));
        let (kept, others) = compared.split_last().expect("there are rows");
        let is_open = |row: &Compared| matches!(row.live_verdict, Verdict::Inconclusive(_));
        assert!(others.iter().all(is_open), "{others:#?}");
        assert_eq!(matches!(kept.live_verdict, Verdict::Agrees(_)), expected);
    }
}

/// As in the paper's figure: a point for each period, where preemption is at once and where it is delayed.
#[test]
fn figure_8_has_the_least_time_to_deadline_by_period_for_both_ways() {
    let request = request("switches");
    for is_live in [false, true] {
        let of = |case: Case| {
            let (case, mut seen) = missed(case, 0);
            let late_by = if case.setup.way.1 == Look::AtOnce {
                91
            } else {
                31
            };
            for (rate, period) in seen.outcome.rates.iter_mut().zip(periods()) {
                rate.period = period;
                rate.longest = Some(Span::from_millis(late_by));
            }
            (case, seen)
        };
        let trials: Vec<Trial> = cases(&request, is_live).into_iter().map(of).collect();
        let said = vec![disturbed(0); trials.len()];
        let mut made = Made::nothing(&request);
        match is_live {
            true => (made.live, made.said) = (trials, said),
            false => made.twin = trials,
        }
        let report = judge(&Upcalls, &made).expect("nothing is analysed");
        let [chart] = &report.figures[0].charts[..] else {
            panic!("{:#?}", report.figures[0].charts);
        };
        let points = |least: i64| -> Vec<(i64, i64)> {
            let all = PERIODS_MS.map(|ms| ms as i64 * 1_000_000);
            all.map(|ns| (ns, ns - least * 1_000_000)).to_vec()
        };
        let drawn: Vec<_> = chart.series.iter().map(|one| one.points.clone()).collect();
        assert_eq!(drawn, [points(91), points(31)], "{is_live}");
        let mut tables = report.figures[0].tables.iter();
        let table = tables.find(|table| table.caption.contains("figure 8"));
        assert!(table.is_some_and(|table| table.rows.len() >= 2));
    }
}
