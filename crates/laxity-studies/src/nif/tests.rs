use laxity_lab::bench::{Made, Request, judge, make};
use laxity_lab::report::Report;

use laxity_lab::runner::Silent;

use super::*;

fn report(seed: u64) -> Report {
    let request = Request {
        seed,
        threads: 1,
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

/// As if the video's thread were as slow as the others: what is claimed is not.
#[test]
fn what_is_claimed_can_fail() {
    let request = Request::default();
    let outcome = |intervals: [u64; 3]| Outcome {
        intervals: Intervals(intervals.map(Span::from_millis).to_vec()),
        ..Outcome::default()
    };
    let all = Way::ALL.into_iter();
    let all = all.flat_map(|way| (0..=STREAMS).map(move |streams| case(way, streams, 1)));
    let all = all.chain([wire(1)]);
    let jitter = all.map(|case| {
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
        (Run::Throughput(case), Seen::Throughput(rate))
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
