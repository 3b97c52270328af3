use std::collections::BTreeSet;

use laxity_lab::bench::{Made, Request, judge, make};
use laxity_lab::report::{Report, Verdict};

use laxity_lab::runner::Silent;

use super::intervals::Intervals;
use super::*;

fn report(seed: u64) -> Report {
    let request = Request {
        seed,
        threads: 1,
        repeats: Some(1),
        ..Request::default()
    };
    let made = make(&Nif, &request, &mut Silent).expect("it runs");
    judge(&Nif, &made).expect("it is judged")
}

#[test]
fn the_tables_come_out_in_order_and_the_same_twice() {
    let report_of_one = report(1);
    assert!(
        report_of_one
            .checks
            .iter()
            .all(|check| check.held == Some(true)),
        "{:#?}",
        report_of_one.checks
    );
    assert_eq!(report_of_one, report(1));
    assert_ne!(report_of_one, report(2));
}

/// Of one priority nobody who is in the middle of a packet waits for others' turns: so four threads show frames as one software interrupt does.
#[test]
fn threads_of_one_queue_are_first_come_first_served() {
    let [threads, interrupt] = [Way::Late, Way::Bsd].map(|way| {
        let case = case(way, STREAMS, 1);
        let mut twin = Nif.twin(&Run::Jitter(case.clone()));
        let mut host = Runner::Twin(&mut twin);
        let seen = trial::run(&mut host, case.setup, LENGTH).expect("it runs");
        seen.intervals
    });
    assert_eq!(threads, interrupt);
}

/// What is near by one draw is not by the median, and what a constant was chosen by never counts as agreement.
#[test]
fn a_verdict_hangs_on_no_single_draw_and_on_nothing_that_was_chosen() {
    let request = Request {
        figures: vec!["jitter".to_owned()],
        ..Request::default()
    };
    let round = Round {
        live: false,
        number: 0,
    };
    let cases = Nif
        .cases(round, &Made::nothing(&request))
        .expect("they are");
    let seeds = cases.iter().map(|run| match run {
        Run::Jitter(case) => case.setup.senders.seed,
        _ => panic!("it is not asked for"),
    });
    let seeds: BTreeSet<u64> = seeds.collect();
    assert_eq!((cases.len(), seeds.len()), (9 * 29, 9));
    let quoted = quoted::Quoted::all();
    let row = |way, streams| quoted.iter().find(|row| row.is_of(way, streams));
    let row = |way, streams| row(way, streams).expect("it is printed");
    let verdict = |seen: &[u64]| {
        let variance = row(Way::Late, 2).numbers(false).remove(0);
        let seen: Vec<Option<u64>> = seen.iter().map(|seen| Some(*seen)).collect();
        variance.verdict(&seen)
    };
    assert!(matches!(verdict(&[30_000]), Verdict::Agrees(_)));
    let Verdict::Disagrees(why) = verdict(&[30_000, 20_000, 10_000]) else {
        panic!("the median is 20 ms², where the paper has 49");
    };
    assert!(why.ends_with("the median; 1 of 3 runs are within a factor of 2"));
    for way in [Way::Late, Way::Early] {
        for number in row(way, 0).numbers(true) {
            let verdict = number.verdict(&[Some(number.paper)]);
            assert!(matches!(verdict, Verdict::Consistent(_)), "{verdict:?}");
        }
    }
    let improvements = (0..=STREAMS).filter_map(|streams| {
        let numbers = row(Way::Early, streams).numbers(false);
        numbers.last().map(|number| number.paper)
    });
    let improvements: Vec<u64> = improvements.collect();
    assert_eq!(improvements, [1_000, 2_200, 8_200, 14_800]);
}

/// As if the video's thread were as slow as the others: what is claimed is not.
#[test]
fn what_is_claimed_can_fail() {
    let request = Request::default();
    let outcome = |intervals: [u64; 3]| Outcome {
        intervals: Intervals(intervals.map(Span::from_millis).to_vec()),
        ..Outcome::default()
    };
    let jitter = jitter_cases(1).map(|case| {
        let seen = outcome([95, 100, 105]);
        (Run::Jitter(case), Seen::Jitter(seen))
    });
    // As if the stack as a client carried half of what BSD's way does.
    let rates = throughput::Case::all().map(|case| {
        let rate = if case.platform.key == "x-kernel" {
            500_000
        } else {
            1_000_000
        };
        (Run::Throughput(case), Seen::Throughput(rate, None))
    });
    // And as if the streams with TCP took nothing.
    let here = here::cases(&request, false).map(|case| {
        let seen = here::Seen {
            all: outcome([95, 100, 105]).intervals,
            ..here::Seen::default()
        };
        (Run::Here(case), Seen::Here(seen))
    });
    // And as if nobody waited any longer in BSD's way, or in his turn.
    let alike = vec![Span::from_millis(100); 3];
    let behind = behind::cases(&request, false).map(|case| {
        let seen = behind::Seen {
            waited: alike.clone(),
            longest: alike.clone(),
        };
        (Run::Behind(case), Seen::Behind(seen))
    });
    let outbound = outbound::cases(&request, false)
        .map(|case| (Run::Outbound(case), Seen::Outbound(alike.clone())));
    let twin = jitter.chain(rates).chain(here);
    let twin = twin.chain(behind).chain(outbound);
    let made = Made {
        twin: twin.collect(),
        ..Made::nothing(&request)
    };
    let report = judge(&Nif, &made).expect("it is judged");
    assert!(
        report.checks.iter().all(|check| check.held == Some(false)),
        "{:#?}",
        report.checks
    );
}
