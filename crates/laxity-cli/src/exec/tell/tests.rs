//! What is said of what a program received.

mod holders;

use laxity::Reservation;
use laxity::contract::{Bound, Limit, Statistic};
use laxity::hold::{Halts, OVERRUNS};

use super::*;

fn received(delivery: Delivery) -> Received {
    let two_of_eight = Reservation::new(Service::from_millis(2), Span::from_millis(8));
    Received {
        name: "it".to_owned(),
        command: vec!["it".to_owned()],
        reservation: two_of_eight.unwrap(),
        enforcer: laxity::Enforcer::Slots,
        confinement: None,
        processor: Some(0),
        took: Span::from_secs(1),
        delivery: Ok(delivery),
        used: Ok(delivery.service),
        unseen: None,
        grade: Grade::Enforced,
        note: None,
        rounds: Vec::new(),
        cause: None,
        had: Had::Reservation,
        holders: Holders::FromTheBeginning,
        missing: Vec::new(),
        leaves_out: false,
        lacks_bandwidth: false,
        judged: None,
    }
}

fn all_kept() -> Delivery {
    Delivery {
        periods: 100,
        kept: 100,
        ..Delivery::default()
    }
}

#[test]
fn what_was_lost_is_told_and_leaves_the_verdict_open() {
    for (events_lost, code, line) in [(0, 0, "0 overruns; `"), (3, 5, "3 records lost")] {
        let mut received = received(Delivery {
            events_lost,
            ..all_kept()
        });
        received.judge(true, None);
        assert_eq!(received.code(), Some(code));
        assert!(received.line().contains(line), "{}", received.line());
        let checks = received.report().checks;
        assert_eq!(
            checks[0].held,
            (code == 0).then_some(true),
            "open is no failure"
        );
        let file: serde_json::Value = serde_json::from_slice(&received.to_json().unwrap()).unwrap();
        assert_eq!(file["received"]["events_lost"], events_lost);
    }
}

#[test]
fn halts_and_periods_with_too_much_are_told_where_there_were_any() {
    let halts = |count, longest, total| Halts {
        count,
        longest: Span::from_micros(longest),
        total: Span::from_micros(total),
    };
    let cases = [
        (halts(0, 0, 0), 0, "kept, 0 overruns"),
        (
            halts(1, 20_310, 20_310),
            0,
            "0 overruns, 1 halt of the machine (20.310ms)",
        ),
        (
            halts(3, 20_310, 31_000),
            4,
            "96 of 100 periods kept (4 of the others had too much), 0 overruns, 3 halts of the machine (20.310ms the longest, 31ms in all)",
        ),
    ];
    for (halts, exceeded, told) in cases {
        let received = received(Delivery {
            kept: 100 - exceeded,
            exceeded,
            halts,
            stops: halts,
            ..all_kept()
        });
        let line = received.line();
        assert!(line.contains(told), "{line}");
        assert_eq!(line.contains("halt"), halts.count > 0, "{line}");
        assert_eq!(line.contains("of laxity itself (20"), halts.count > 0);
        let file: serde_json::Value = serde_json::from_slice(&received.to_json().unwrap()).unwrap();
        let file = &file["received"];
        assert_eq!(file["periods_exceeded"], exceeded);
        assert_eq!(file["halts"], halts.count);
        assert_eq!(file["halts_longest_ns"], halts.longest.as_nanos());
        assert_eq!(file["halts_total_ns"], halts.total.as_nanos());
    }
}

#[test]
fn how_it_was_measured_is_told_in_the_line_and_in_json() {
    let mut received = received(all_kept());
    assert!(!received.line().contains("measured"), "{}", received.line());
    let file: serde_json::Value = serde_json::from_slice(&received.to_json().unwrap()).unwrap();
    assert_eq!(file.get("measured"), None);
    let seen = Delivery {
        periods: 1_000,
        disturbed: 12,
        unseen: 2,
        ..Delivery::default()
    };
    let round = |why_not: Option<&str>| Round {
        seen,
        grade: Grade::Enforced,
        why_not: why_not.map(str::to_owned),
    };
    received.rounds = vec![round(Some("too much")), round(None)];
    let line = received.line();
    assert!(line.contains("measured 2 times, 1 of them not used: 1. 1000 periods taken, 14 left out (12 while the machine stood still, 2 that nobody saw), not used: too much; 2. "), "{line}");
    let file: serde_json::Value = serde_json::from_slice(&received.to_json().unwrap()).unwrap();
    let measured = file["measured"].as_array().unwrap();
    assert_eq!(measured.len(), 2);
    assert_eq!(
        (&measured[0]["used"], &measured[0]["why_not"]),
        (&false.into(), &"too much".into())
    );
    assert_eq!(
        (&measured[1]["used"], &measured[1]["periods_disturbed"]),
        (&true.into(), &12.into())
    );
}

#[test]
fn single_periods_are_not_told_of_where_only_several_together_are_seen() {
    for (together, line) in [
        (0, "100 of 100 periods kept"),
        (
            20,
            "100 of 100 stretches of 20 periods (single periods are not seen) kept",
        ),
    ] {
        let received = received(Delivery {
            together,
            ..all_kept()
        });
        assert!(received.line().contains(line), "{}", received.line());
        let file: serde_json::Value = serde_json::from_slice(&received.to_json().unwrap()).unwrap();
        assert_eq!(file["received"]["periods_seen_as_one"], together.max(1));
    }
}

#[test]
fn what_was_not_judged_is_told_and_too_much_of_it_leaves_the_verdict_open() {
    let gap = Span::from_millis;
    let cases = [
        (0, 0, 0, gap(0), "", 0),
        (
            40,
            0,
            0,
            gap(5),
            "40 more while the machine stood still)",
            0,
        ),
        (
            40,
            30,
            0,
            gap(20),
            "largest gap 6ms (20ms disturbed; 6ms promised), 100 of 100 periods kept (40 more while the machine stood still, 30 of them not kept)",
            5,
        ),
        (0, 0, 1, gap(0), "(1 that nobody saw)", 0),
        (0, 0, 2, gap(0), "(2 that nobody saw)", 5),
        (1, 0, 50, gap(0), "at least 200ms of service", 5),
    ];
    for (disturbed, short_disturbed, unseen, largest_gap_disturbed, told, code) in cases {
        let mut received = received(Delivery {
            service: Service::from_millis(200),
            largest_gap: gap(6),
            largest_gap_least: gap(6),
            largest_gap_disturbed,
            disturbed,
            short_disturbed,
            unseen,
            ..all_kept()
        });
        received.judge(true, None);
        let line = received.line();
        assert_eq!(received.code(), Some(code), "{line}");
        assert!(line.contains(told), "{line}");
        let file: serde_json::Value = serde_json::from_slice(&received.to_json().unwrap()).unwrap();
        assert_eq!(file["received"]["periods_unseen"], unseen);
        assert_eq!(file["received"]["periods_disturbed_short"], short_disturbed);
    }
}

#[test]
fn of_who_asked_for_nothing_nothing_is_met() {
    let never = "it asked for its reservation in none of 100 undisturbed periods";
    let cases = [
        (100, 100, 0, 5, never),
        (100, 99, 0, 0, "100 of 100 periods kept, 0 overruns; `as"),
        (100, 99, 7, 0, "kept (7 more while it was stopped), "),
        (
            0,
            0,
            7,
            5,
            "0 of 0 periods kept (7 more while it was stopped), ",
        ),
    ];
    for (periods, asleep, stopped, code, told) in cases {
        let mut received = received(Delivery {
            periods,
            kept: periods,
            asleep,
            stopped,
            ..Delivery::default()
        });
        received.judge(true, None);
        let line = received.line();
        assert_eq!(received.code(), Some(code), "{line}");
        assert!(line.contains(told), "{line}");
        assert_eq!(line.contains(never), periods > 0 && code == 5, "{line}");
        let file: serde_json::Value = serde_json::from_slice(&received.to_json().unwrap()).unwrap();
        assert_eq!(file["received"]["periods_asleep"], asleep);
        assert_eq!(file["received"]["periods_stopped"], stopped);
    }
}

#[test]
fn the_promised_gap_stands_beside_the_largest_where_one_was_promised() {
    for (had, together, told) in [
        (Had::Reservation, 0, "largest gap 7ms (6ms promised), "),
        (
            Had::Reservation,
            20,
            "largest gap at most 7ms (6ms promised), ",
        ),
        (Had::Measurement, 0, "largest gap 7ms, "),
    ] {
        let mut received = received(Delivery {
            largest_gap: Span::from_millis(7),
            largest_gap_least: Span::from_millis(7),
            together,
            ..all_kept()
        });
        received.had = had;
        assert!(received.line().contains(told), "{}", received.line());
        let file: serde_json::Value = serde_json::from_slice(&received.to_json().unwrap()).unwrap();
        let promised = (had == Had::Reservation).then_some(6_000_000);
        assert_eq!(file["gap_promised_ns"], serde_json::json!(promised));
    }
}

#[test]
fn why_the_kernel_gives_less_is_told_where_that_is_known() {
    let mut kernel = Machine::probe().kernel;
    kernel.tick = Span::from_millis(4);
    let mut told = |hrtick| {
        kernel.hrtick = hrtick;
        coarseness(&kernel)
    };
    assert_eq!(told(Ok(true)), None);
    let may = told(Err(Unknown("no debugfs".to_owned()))).unwrap();
    assert!(may.contains("may end at the kernel's tick of 4ms"), "{may}");
    let cause = told(Ok(false)).unwrap();
    let mut received = received(all_kept());
    assert!(!received.line().contains("tick"));
    received.cause = Some(cause.clone());
    let line = received.line();
    assert!(
        line.contains("0 overruns; budgets end at the kernel's tick of 4ms"),
        "{line}"
    );
    let file: serde_json::Value = serde_json::from_slice(&received.to_json().unwrap()).unwrap();
    assert_eq!(file["cause"], cause);
}

#[test]
fn without_a_reservation_nothing_is_met() {
    let why = "it took 4ms in a period of 8ms";
    for (had, held, told) in [
        (
            Had::Measurement,
            "measurement",
            "2ms/8ms by slots on processor 0: enforced; it took 4ms",
        ),
        (
            Had::Nothing,
            "nothing",
            "nothing was reserved: it took 4ms in a period of 8ms; it was measured with 2ms/8ms by slots on processor 0: enforced; 0ns of service",
        ),
    ] {
        let mut received = received(all_kept());
        (received.had, received.note) = (had, Some(why.to_owned()));
        received.judge(true, None);
        let line = received.line();
        assert_eq!(received.code(), Some(5), "{line}");
        assert!(line.starts_with(told), "{line}");
        assert!(
            line.contains("; inconclusive\n  no contract was judged"),
            "{line}"
        );
        let file: serde_json::Value = serde_json::from_slice(&received.to_json().unwrap()).unwrap();
        assert_eq!(file["held"], held);
        assert_eq!(file["service_reserved_ns"], serde_json::Value::Null);
        assert_eq!(file["service_measured_with_ns"], 2_000_000);
        assert_eq!(file["reserved_for"], why);
        assert_eq!(file["received"]["periods"], 100);
    }
}

#[test]
fn where_halts_are_not_seen_that_is_told_and_nobody_is_convicted() {
    let mut received = received(Delivery {
        kept: 90,
        halts_unseen: true,
        ..all_kept()
    });
    received.enforcer = laxity::Enforcer::Deadline;
    received.judge(true, None);
    let line = received.line();
    assert_eq!(received.code(), Some(5), "{line}");
    for told in [
        "kept (halts of the machine are not seen)",
        "may be what broke the limit",
    ] {
        assert!(line.contains(told), "{line}");
    }
    let file: serde_json::Value = serde_json::from_slice(&received.to_json().unwrap()).unwrap();
    assert_eq!(file["received"]["halts_seen"], false);
}

#[test]
fn of_who_was_not_seen_nothing_is_known_to_be_met() {
    let ms = Service::from_millis;
    let cases = [
        (100, None, 0, "; 20ms of service in 1s, "),
        (
            100,
            Some(ms(580)),
            5,
            "; at least 20ms of service (and 580ms that nobody saw) in 1s, ",
        ),
        // A period that was seen to be short may have had the rest.
        (90, None, 2, "; 20ms of service in 1s, "),
        (90, Some(ms(580)), 5, "short periods: total 10 exceeds 2 "),
    ];
    for (kept, unseen, code, told) in cases {
        let mut received = received(Delivery {
            service: ms(20),
            kept,
            ..all_kept()
        });
        (received.used, received.unseen) = (Ok(ms(600)), unseen);
        received.judge(true, None);
        let line = received.line();
        assert_eq!(received.code(), Some(code), "{line}");
        assert!(line.contains(told), "{line}");
        let why = "\n  nobody saw 580ms of the 600ms of service that the kernel counted";
        assert_eq!(line.contains(why), unseen.is_some(), "{line}");
        let file: serde_json::Value = serde_json::from_slice(&received.to_json().unwrap()).unwrap();
        assert_eq!(file["service_used_ns"], 600_000_000);
        let unseen_ns = unseen.map(Service::as_nanos);
        assert_eq!(file["service_unseen_ns"], serde_json::json!(unseen_ns));
        assert_eq!(file["used_not_known"], serde_json::Value::Null);
    }
}

/// Where it was asked for that only some threads are looked at, what the others used is none of it; what cannot be read may be anything.
#[test]
fn where_it_is_not_known_what_was_used_that_is_told() {
    let unread = || Uncounted::Unread(Unknown("nobody counts".to_owned()));
    let cases = [
        (100, Uncounted::NotCompared("nobody counts"), 0),
        (100, unread(), 5),
        (90, Uncounted::NotCompared("nobody counts"), 2),
        (90, unread(), 5),
    ];
    for (kept, why, code) in cases {
        let mut received = received(Delivery { kept, ..all_kept() });
        received.used = Err(why.clone());
        received.judge(true, None);
        let line = received.line();
        assert_eq!(received.code(), Some(code), "{line}");
        let told = "\n  how much of its service nobody saw is not known: nobody counts";
        assert_eq!(line.contains(told), why == unread(), "{line}");
        let file: serde_json::Value = serde_json::from_slice(&received.to_json().unwrap()).unwrap();
        assert_eq!(file["service_used_ns"], serde_json::Value::Null);
        assert_eq!(file["used_not_known"], "nobody counts");
    }
}

#[test]
fn of_what_cannot_be_seen_nothing_is_judged() {
    let mut received = received(all_kept());
    received.delivery = Err(Unknown("no more files".to_owned()));
    received.judge(true, None);
    let line = received.line();
    assert_eq!(received.code(), Some(5), "{line}");
    assert!(line.contains("cannot be seen: no more files"), "{line}");
}

#[test]
fn what_is_broken_whatever_was_not_seen_is_violated() {
    let overruns = Limit::new(OVERRUNS, Statistic::Total, Bound::AtMost(3));
    let contract = Contract {
        name: "few overruns".into(),
        limits: vec![overruns],
        ..Contract::default()
    };
    let unenforced = Grade::Unenforced {
        reason: "somebody ranks above it".to_owned(),
    };
    let cases = [
        (4, Grade::Enforced, Some(&contract), 2),
        (3, Grade::Enforced, Some(&contract), 5),
        (0, Grade::Enforced, None, 5),
        (0, unenforced, None, 2),
    ];
    for (overruns, grade, contract, code) in cases {
        let mut received = received(Delivery {
            overruns,
            ..all_kept()
        });
        received.used = Ok(Service::from_millis(600));
        received.unseen = Some(Service::from_millis(600));
        received.grade = grade;
        received.judge(true, contract.cloned());
        assert_eq!(received.code(), Some(code), "{}", received.line());
    }
}

#[test]
fn a_gap_that_may_have_been_is_told_and_not_met() {
    let gap = Bound::AtMost(Span::from_millis(10).as_nanos());
    let contract = Contract {
        name: "no gap".into(),
        limits: vec![Limit::new(
            contract::Quantity::SERVICE_GAP,
            Statistic::Maximum,
            gap,
        )],
        ..Contract::default()
    };
    for (possible_ms, code, told) in [
        (0, 0, "largest gap 6ms (6ms promised)"),
        (
            85,
            5,
            "largest gap 6ms (perhaps 85ms between two looks; 6ms promised)",
        ),
    ] {
        let mut received = received(Delivery {
            largest_gap: Span::from_millis(6),
            largest_gap_least: Span::from_millis(6),
            largest_gap_possible: Span::from_millis(possible_ms),
            ..all_kept()
        });
        received.judge(true, Some(contract.clone()));
        let line = received.line();
        assert_eq!(received.code(), Some(code), "{line}");
        assert!(line.contains(told), "{line}");
        assert_eq!(line.contains("may have been 85ms"), code == 5, "{line}");
        let file: serde_json::Value = serde_json::from_slice(&received.to_json().unwrap()).unwrap();
        let possible_ns = file["received"]["largest_gap_possible_ns"].as_u64();
        assert_eq!(possible_ns, Some(possible_ms * 1_000_000));
    }
}

#[test]
fn a_page_of_a_command_has_nothing_in_it_that_steers() {
    let evil = "a\u{1b}[2J\nb\r\u{9b}\u{202e}c";
    let mut received = received(all_kept());
    received.name = laxity_lab::plain(evil).into_owned();
    received.command = vec![evil.to_owned(), "d e".to_owned()];
    received.judge(true, None);
    let page = page::render(&received.report()).unwrap();
    let steers = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!page.contains(steers), "{page:?}");
    let shown = r"a\u{1b}[2J\nb\r\u{9b}\u{202e}c";
    for place in [
        format!("<title>{shown} with "),
        format!("<h1>{shown} with "),
        format!("<dd>&#39;{shown}&#39; &#39;d e&#39;</dd>"),
    ] {
        assert!(page.contains(&place), "{place}: {page}");
    }
}
