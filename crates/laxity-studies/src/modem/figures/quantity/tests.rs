use laxity::study::Profile;
use laxity_devices::modem::Costs;
use laxity_devices::modem::card::Setting;
use laxity_lab::bench::Said;
use laxity_model::{RunRecord, Span};

use super::super::super::transfers::Place;
use super::super::PLAN;
use super::super::readings::Series;
use super::super::readings::tests::seen;
use super::super::tests::of;
use super::*;
use crate::{disturbed, live_run};

#[test]
fn a_verdict_knows_what_was_put_in() {
    let near = |origin| within((1_000, 1_149), 15, origin);
    assert_eq!(
        near(Origin::Simulated),
        Verdict::Agrees("within 15 %: +14.9 %".into())
    );
    assert!(matches!(near(Origin::Charged), Verdict::Consistent(_)));
    assert!(matches!(near(Origin::Calibrated), Verdict::Consistent(_)));
    assert_eq!(
        within((100_000, 115_001), 15, Origin::Simulated),
        Verdict::Disagrees("not within 15 %: +15.1 %".into())
    );
    let hair = within((13_125_000, 13_124_344), 1, Origin::Charged);
    assert_eq!(
        hair,
        Verdict::Consistent("within 1 %: -0.0 %; put in".into())
    );
    let far = within((1_000, 849), 15, Origin::Charged);
    assert_eq!(far, Verdict::Disagrees("not within 15 %: -15.1 %".into()));
}

#[test]
fn what_was_measured_is_judged_by_itself() {
    let row = |figure: &str, name: &str, run, series, points: [(u64, u64); 2]| {
        let mut quantities = PLAN.quantities.iter();
        let quantity = quantities.find(|of| of.figure == figure && of.name.starts_with(name));
        let [twin, live] = points.map(|point| seen(series, &[point]));
        let [twin, live] = [&twin, &live].map(|readings| Runs::from([(run, vec![readings])]));
        let row = quantity.expect("it is compared").compared(&twin, &live);
        row.expect("both hosts have it")
    };
    // The study: 5.313 ms. What this machine shows does not stand under the twin's verdict.
    let gaps = [(9_000, 5_000), (9_000, 3_320)];
    let row_of_gaps = row(
        "figure-11",
        "largest gap",
        "callback-int",
        Series::Gaps,
        gaps,
    );
    let twin = &row_of_gaps.verdict;
    assert!(matches!(twin, Verdict::Consistent(_)), "{twin:?}");
    let live = &row_of_gaps.live_verdict;
    assert!(matches!(live, Verdict::Disagrees(_)), "{live:?}");
    // Of a run of which more than 1 % was disturbed there is no verdict.
    let judged = |disturbed_ppm| {
        let mut readings = seen(Series::Gaps, &[(9_000, 5_000)]);
        readings.said = disturbed(disturbed_ppm);
        let live = Runs::from([("callback-int", vec![&readings])]);
        let mut quantities = PLAN.quantities.iter();
        let quantity =
            quantities.find(|of| of.figure == "figure-11" && of.name == row_of_gaps.quantity);
        let row = quantity
            .expect("it is compared")
            .compared(&Runs::new(), &live);
        row.expect("it was seen here").live_verdict
    };
    assert!(matches!(judged(10_000), Verdict::Agrees(_)));
    assert!(matches!(judged(10_001), Verdict::Inconclusive(_)));
    // How long a live call is on hook is chosen here.
    let on_hook = row(
        "figure-1",
        "on hook",
        "int",
        Series::Phases,
        [(2_000, 2_000); 2],
    );
    assert_eq!(on_hook.live_verdict, Verdict::Alone);
}

/// A difference has two sides: what is shorter is not no longer by nothing.
#[test]
fn a_gap_that_is_shorter_than_without_a_modem_is_told_so() {
    let [one, other] = [1_412, 1_135].map(|us| seen(Series::Gaps, &[(9_000, us)]));
    let judged = |absent, beside| {
        let live = Runs::from([
            ("callback-absent", vec![absent]),
            ("callback-thr-24", vec![beside]),
        ]);
        let row = quantity("figure-13", "largest gap, how much longer");
        let row = row.compared(&Runs::new(), &live).expect("both were seen");
        (row.live.expect("it was seen here").value, row.live_verdict)
    };
    let by = Span::from_micros(277);
    let longer = "within 15 %: +6.1 %".to_owned();
    assert_eq!(
        judged(&other, &one),
        (Value::Span(by), Verdict::Agrees(longer))
    );
    let shorter = format!("{by} shorter");
    let verdict = Verdict::Disagrees(format!("not within 15 %: {shorter}"));
    assert_eq!(judged(&one, &other), (Value::Text(shorter), verdict));
    // Nothing at all is neither.
    assert_eq!(judged(&one, &one).0, Value::Span(Span::ZERO));
}

fn quantity(figure: &str, name: &str) -> &'static Quantity {
    let mut quantities = PLAN.quantities.iter();
    let quantity = quantities.find(|of| of.figure == figure && of.name.starts_with(name));
    quantity.expect("it is compared")
}

/// A holder that nobody finds leaves open what was measured; so does one that is named, where nothing was reserved that he could be held against.
#[test]
fn a_row_is_open_where_a_stranger_is_named_who_outranked_what_had_no_reservation() {
    let judged = |outranked: &[&str]| {
        let mut readings = seen(Series::Gaps, &[(9_000, 5_000)]);
        readings.said = Said::of(&RunRecord {
            outranked: outranked.iter().map(ToString::to_string).collect(),
            ..live_run(0)
        });
        let live = Runs::from([("callback-int", vec![&readings])]);
        let row = quantity("figure-11", "largest gap, largest");
        let row = row.compared(&Runs::new(), &live);
        row.expect("it was seen here").live_verdict
    };
    assert!(matches!(judged(&[]), Verdict::Agrees(_)));
    let above = "could have taken processor 0: rogue (SCHED_FIFO priority 99)";
    let held = "processor 0 was held 56 times, for 10.1ms at most";
    let open = Verdict::Inconclusive(format!("{above}; {held}"));
    assert_eq!(judged(&[above, held, above]), open);
}

/// Without a modem another run is made, by which the twin's row is known to be put in: on this machine the row is not read from it.
#[test]
fn a_doubt_of_a_run_that_is_not_read_withholds_no_verdict() {
    let gaps = |disturbed_ppm| {
        let mut readings = seen(Series::Gaps, &[(9_000, 5_000)]);
        readings.said = disturbed(disturbed_ppm);
        readings
    };
    let (calm, held) = (gaps(0), gaps(30_000));
    let judged = |name: &str, absent, other| {
        let live = Runs::from([
            ("callback-absent", vec![absent]),
            ("callback-thr-24", vec![other]),
        ]);
        let row = quantity("figure-13", name).compared(&Runs::new(), &live);
        row.expect("it was seen here").live_verdict
    };
    let is_open = |verdict| matches!(verdict, Verdict::Inconclusive(_));
    for name in ["largest gap, largest", "largest gap, median"] {
        assert!(!is_open(judged(name, &held, &calm)), "{name}");
        assert!(is_open(judged(name, &calm, &held)), "{name}");
    }
    // Against it this one is read.
    let name = "largest gap, how much longer";
    assert!(is_open(judged(name, &held, &calm)) && is_open(judged(name, &calm, &held)));
    assert!(!is_open(judged(name, &calm, &calm)));
}

#[test]
fn what_an_emulated_card_is_told_is_not_judged_on_this_machine() {
    let live = seen(Series::Intervals, &[(5_000, 2_500), (25_000, 12_500)]);
    let live = Runs::from([("int", vec![&live])]);
    let rows = PLAN.quantities.iter();
    let rows = rows.filter(|of| of.figure == "figure-1" && of.name.starts_with("interval"));
    assert_eq!(rows.clone().count(), 4);
    for row in rows {
        assert_eq!(row.live, Origin::Charged, "{row:?}");
        if let Some(row) = row.compared(&Runs::new(), &live) {
            assert_eq!(row.live_verdict, Verdict::Alone, "{row:?}");
        }
    }
}

/// A load that was sought is no result; that it was missed is said, as another load is another modem.
#[test]
fn a_load_that_was_missed_on_this_machine_is_open() {
    let readings = of(Profile::WIN2000_PII450, "int", None, 0).1;
    let live = Runs::from([("int", vec![&readings])]);
    let judged = |sought: &Quantity| {
        let row = sought.compared(&Runs::new(), &live);
        row.expect("it was seen here").live_verdict
    };
    let sought = quantity("figure-2", "typical");
    assert_eq!(judged(sought), Verdict::Alone);
    let missed = Quantity {
        paper: Some(Printed::Number(2_500_000)),
        ..sought.clone()
    };
    let open = judged(&missed);
    assert!(matches!(open, Verdict::Inconclusive(_)), "{open:?}");
}

/// What the search for a load accepts is no other load: both have the scenario's tolerance.
#[test]
fn a_load_is_the_one_that_was_sought_by_the_scenarios_own_tolerance() {
    let shares = PLAN.quantities.iter();
    let mut shares = shares.filter(|of| of.figure == "figure-3");
    let judged = shares.next().and_then(|of| of.judged.as_ref());
    assert!(matches!(judged, Some(Criterion::AsSought)), "{judged:?}");
    let judged = |ppm| as_sought(Some(ppm), Origin::Calibrated);
    let sought = Verdict::Consistent("14.72 % ± 0.7 %: 15.38 %; chosen".into());
    assert_eq!(judged(153_800), sought);
    for (ppm, is_it) in [
        (140_199, false),
        (140_200, true),
        (154_200, true),
        (154_201, false),
    ] {
        let is_so = matches!(judged(ppm), Verdict::Consistent(_));
        assert_eq!(is_so, is_it, "{ppm}");
    }
}

/// Where the call got through, most runs of the thread are those on hook, which are short on any machine.
#[test]
fn figure_9_is_judged_on_this_machine_only_where_the_call_failed() {
    let judged = |name| {
        let readings = of(Profile::WIN2000_PII450, name, None, 0).1;
        let live = Runs::from([("thr-8", vec![&readings])]);
        let row = quantity("figure-9", "elapsed a run").compared(&Runs::new(), &live);
        row.expect("it was seen here").live_verdict
    };
    assert!(matches!(judged("thr-8"), Verdict::Agrees(_)));
    assert_eq!(judged("thr-24"), Verdict::Alone);
}

/// A call of 1.84 ms cannot come too late for output that was written 12.5 ms ahead, whatever the rest of the twin does.
#[test]
fn that_nothing_is_lost_where_nothing_can_be_is_only_consistent() {
    let row = |figure, run, on_this_machine: bool| {
        let readings = seen(Series::Damage, &[(9_000, 0)]);
        let runs = Runs::from([(run, vec![&readings])]);
        let none = Runs::new();
        let hosts = if on_this_machine {
            [&none, &runs]
        } else {
            [&runs, &none]
        };
        let row = quantity(figure, "samples lost").compared(hosts[0], hosts[1]);
        row.expect("it was seen")
    };
    for (figure, run) in [
        ("figure-5", "int"),
        ("figure-6", "thr-24"),
        ("figure-14", "res"),
    ] {
        let twin = row(figure, run, false);
        assert!(matches!(twin.verdict, Verdict::Consistent(_)), "{twin:?}");
        let origin = twin.twin.as_ref().map(|cell| cell.origin);
        assert_eq!(origin, Some(Origin::Simulated), "it came out");
        let live = row(figure, run, true).live_verdict;
        assert!(matches!(live, Verdict::Agrees(_)), "{live:?}");
    }
    let lost = Verdict::Disagrees("not none: 1".into());
    assert_eq!(resting(lost.clone(), Some("an input")), lost);
}

/// A gap is a tick or two and a call of one length or the other, all put in: so neither the median nor the largest of ten calls can be elsewhere but by which
/// of them was drawn, whatever the twin does.
#[test]
fn the_longest_gaps_are_only_consistent_in_the_twin() {
    let gaps = [3_793, 3_849, 4_280].map(|us| seen(Series::Gaps, &[(9_000, us)]));
    for (figure, run) in [("figure-11", "callback-int"), ("figure-12", "callback-dpc")] {
        for name in ["largest gap, median", "largest gap, largest"] {
            // As the study has the other figure's, which both can come to.
            let printed = Quantity {
                paper: Some(Printed::Number(4_396_000)),
                ..quantity(figure, name).clone()
            };
            let runs = Runs::from([(run, gaps.iter().collect())]);
            let row = printed.compared(&runs, &runs).expect("it was seen");
            assert!(matches!(row.verdict, Verdict::Consistent(_)), "{row:?}");
            let live = row.live_verdict;
            assert!(matches!(live, Verdict::Agrees(_)), "{live:?}");
        }
    }
}

/// What samples pile up in while a call waits, and how long it takes, is calculated from the cost of a call and the pause of its reservation, both of which were
/// put in: so neither is a result of the twin's, nor ever said to agree.
#[test]
fn figures_14_and_15_show_the_sum_of_what_was_put_in() {
    let reservation = Place::try_from("RES 2/8".to_owned()).map(|place| place.reservation());
    let reservation = reservation.expect("a place").expect("a reservation");
    let call = Costs::STUDY.data.as_dedicated_span();
    let pause = reservation.period() - reservation.service().as_dedicated_span();
    let sum = (call + pause).as_nanos();
    let seen = ["int", "res"].map(|name| of(Profile::WIN2000_PII450, name, None, 0).1);
    let [int, res] = &seen;
    let twin = Runs::from([("int", vec![int]), ("res", vec![res])]);
    let row = |figure: &str, name: &str| {
        let mut quantities = PLAN.quantities.iter();
        let quantity = quantities.find(|of| of.figure == figure && of.name.starts_with(name));
        let row = quantity.and_then(|of| of.compared(&twin, &Runs::new()));
        row.expect("the twin has it")
    };
    let longest = row("figure-15", "longest");
    let pending = row("figure-14", "most samples pending");
    for row in [&longest, &pending] {
        let origin = row.twin.as_ref().map(|cell| cell.origin);
        assert_eq!(origin, Some(Origin::Charged), "{row:?}");
        assert!(matches!(row.verdict, Verdict::Consistent(_)), "{row:?}");
    }
    // A handler, a tick and two switches come on top.
    let Some(Value::Span(longest)) = longest.twin.map(|cell| cell.value) else {
        panic!("a span");
    };
    let besides = longest.as_nanos().checked_sub(sum);
    assert!(besides.is_some_and(|besides| besides < 20_000), "{longest}");
    let expected = Value::Count(sum * Setting::CONNECTED.rate_hz / 1_000_000_000);
    assert_eq!(pending.twin.map(|cell| cell.value), Some(expected));
}

/// What the quantity of this name is in a run in which only this was seen.
fn read(name: &str, run: &'static str, series: Series, points: &[(u64, u64)]) -> Option<u64> {
    let mut quantities = PLAN.quantities.iter();
    let quantity = quantities.find(|quantity| quantity.name.starts_with(name));
    let readings = seen(series, points);
    let runs = Runs::from([(run, vec![&readings])]);
    quantity.expect("it is compared").of.number(&runs)
}

#[test]
fn a_point_is_scattered_if_no_block_lasts_so_long() {
    let scattered = |took| read("scattered", "int", Series::Intervals, &[(20_000, took)]);
    let usual = [2_500, 12_500, 13_125, 11_250, 12_520];
    assert_eq!(usual.map(scattered), [Some(0); 5]);
    assert_eq!([15_900, 19_400, 5_000].map(scattered), [Some(1); 3]);
}

#[test]
fn what_is_quoted_says_where_it_is_printed() {
    for quantity in &PLAN.quantities {
        let source = quantity.source.as_deref();
        assert_eq!(quantity.paper.is_some(), source.is_some(), "{quantity:?}");
        let is_known = source.is_none_or(|at| at.starts_with('§') || at.starts_with("slide"));
        assert!(is_known, "{quantity:?}");
    }
}

#[test]
fn a_key_that_is_none_is_an_error_that_names_it() {
    let row = |of: &str, judged: &str| {
        let row = format!(
            r#"{{"figure": "figure-2", "name": "typical", "of": {of}, "judged": {judged}}}"#
        );
        serde_json::from_str::<Quantity>(&row).map_err(|error| error.to_string())
    };
    let read = r#"{"run": "int", "series": "handler", "statistic": "median"}"#;
    let within = r#"{"within": {"percent": 5}}"#;
    assert!(row(read, within).is_ok());
    let wrong = read.replace("\"run\"", "\"phase\": [\"training\"], \"run\"");
    let deeper = read.replace("\"run\"", &format!("\"less\": {wrong}, \"run\""));
    for wrong in [wrong, deeper] {
        let error = row(&wrong, within).expect_err("it has no such key");
        assert!(error.contains("`phase`"), "{error}");
    }
    let wrong = within.replace("percent\": 5", "percent\": 5, \"least\": 1");
    let error = row(read, &wrong).expect_err("it has no such key");
    assert!(error.contains("`least`"), "{error}");
    let without_run = read.replace("\"run\": \"int\",", "");
    let error = row(&without_run, within).expect_err("it is of no run");
    assert!(error.contains("`run`"), "{error}");
}

#[test]
fn two_ticks_are_near_two_milliseconds() {
    let near = |gaps: &[(u64, u64)]| read("share near 2 ms", "callback-absent", Series::Gaps, gaps);
    let mut gaps = vec![(5_000, 976); 99];
    gaps.push((5_000, 1_953));
    assert_eq!(near(&gaps), Some(10_000));
    assert_eq!(near(&[]), None);
}
