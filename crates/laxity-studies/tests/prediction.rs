//! Predictions for a machine: the same every time, for every program, and of the right order.

use laxity_lab::bench::{Experiment, Request};
use laxity_lab::machine_file;
use laxity_lab::report::{self, Report, Value, Verdict};
use laxity_lab::runner::Silent;
use laxity_model::Span;
use laxity_model::enforce::machine::{Figure, Machine, Quantiles};
use laxity_studies::prediction::Prediction;

fn micros(points: &[(u32, u64)]) -> Quantiles {
    let points = points
        .iter()
        .map(|(ppm, us)| (*ppm, Span::from_micros(*us)));
    Quantiles::new(points.collect()).expect("a distribution")
}

/// A virtual machine with a tick of 4 ms.
fn machine() -> Machine {
    let mut machine = Machine::without_costs(250).with([
        (Figure::Tick, micros(&[(0, 2), (1_000_000, 8)])),
        (Figure::ContextSwitch, micros(&[(0, 1), (1_000_000, 2)])),
        (
            Figure::Wakeup,
            micros(&[(0, 6), (500_000, 10), (1_000_000, 40)]),
        ),
        (Figure::WakeupIdle, micros(&[(0, 15), (1_000_000, 60)])),
        (Figure::Preemption, micros(&[(0, 4)])),
        (Figure::Handover, micros(&[(0, 2), (1_000_000, 5)])),
        (Figure::Timer, micros(&[(0, 1)])),
        (
            Figure::DeadlineOverrun,
            micros(&[(0, 0), (1_000_000, 4_000)]),
        ),
        (
            Figure::DeadlineReplenish,
            micros(&[(0, 10), (1_000_000, 40)]),
        ),
        (Figure::SlotEdge, micros(&[(0, 6)])),
        (Figure::SlotEntering, micros(&[(0, 6), (1_000_000, 9)])),
        (Figure::SlotLeaving, micros(&[(0, 6)])),
    ]);
    machine.slot_lead = Span::from_micros(40);
    machine
}

/// Of all programs without figures.
fn predicted(figures: &[&str], seed: u64, threads: usize) -> Report {
    let request = Request {
        figures: figures.iter().map(|&figure| figure.into()).collect(),
        threads,
        seed,
        repeats: Some(1),
        machine: Some(machine()),
        ..Request::default()
    };
    Prediction
        .perform(&request, &mut Silent)
        .expect("the programs are right")
}

fn span(report: &Report, key: &str, quantity: &str) -> Span {
    let figures = report.figures.iter();
    let mut rows = figures
        .filter(|figure| figure.key == key)
        .flat_map(|figure| &figure.compared);
    let row = rows.find(|row| row.quantity == quantity);
    let cell = row.and_then(|row| row.predicted.clone());
    match cell.map(|cell| cell.value) {
        Some(Value::Span(span)) => span,
        other => panic!("{key}: {quantity} is {other:?}"),
    }
}

#[test]
fn predictions_follow_from_machine_and_seed_alone() {
    let report = predicted(&[], 1, 2);
    // A program by itself, with another number of threads, is predicted as among all.
    let of = |key: &str| {
        let mut figures = report.figures.iter();
        figures.find(|figure| figure.key == key).cloned()
    };
    let alone = predicted(&["slots"], 1, 1);
    assert_eq!(alone.figures, Vec::from_iter(of("slots")));
    assert_ne!(alone.figures, predicted(&["slots"], 2, 1).figures);
    let keys: Vec<&str> = report
        .figures
        .iter()
        .map(|figure| figure.key.as_str())
        .collect();
    let named: Vec<&str> = Prediction
        .text()
        .figures
        .iter()
        .map(|f| f.key.as_str())
        .collect();
    assert_eq!(keys, named);
    let rows = report.figures.iter().flat_map(|figure| &figure.compared);
    assert!(rows.clone().count() >= 40);
    assert!(
        rows.clone()
            .all(|row| row.verdict == Verdict::Alone && row.live.is_none())
    );
    assert_eq!(report.checks, [], "nothing was measured");

    let us = Span::from_micros;
    let gap = |key| span(&report, key, "callback's gap, p99");
    for unnoticed in ["none", "thread-24", "slots"] {
        assert!(
            gap(unnoticed) < us(1_100),
            "{unnoticed}: {}",
            gap(unnoticed)
        );
    }
    // A call of 1.84 ms that ends after a callback's instant, and the next comes on time.
    for above in ["interrupt", "deferred", "deadline"] {
        let gap = gap(above);
        assert!(us(1_700) < gap && gap < us(3_000), "{above}: {gap}");
    }
    let response = |key| span(&report, key, "modem's response time, median");
    assert!(response("interrupt") < us(2_000));
    // 2 ms in 8: at worst a whole gap later.
    assert!(response("slots") < us(10_000));
}

#[test]
fn without_a_machine_nothing_is_predicted() {
    // In the twin alone no file is looked for: it has to be named. Live nothing is run before that is told either.
    for (live, remedy) in [(false, "--machine=FILE"), (true, "measure it first")] {
        let request = Request {
            live,
            threads: 1,
            seed: 1,
            ..Request::default()
        };
        let refused = Prediction.perform(&request, &mut Silent);
        let text = refused.expect_err("nothing to go by").to_string();
        assert!(text.contains("laxity calibrate"), "{text}");
        assert!(text.contains(remedy), "{text}");
    }
}

#[test]
fn what_a_twin_of_a_measured_machine_predicts() {
    let file = "docs/results/epyc-2-processors/machine.toml";
    let path = format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let measured = machine_file::parse(&text, file).expect("a machine file");
    let request = Request {
        seed: 1,
        repeats: Some(1),
        machine: Some(measured.machine),
        ..Request::default()
    };
    let predicted = Prediction.perform(&request, &mut Silent);
    let predicted = predicted.expect("the programs are right");
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let table = report::text::render(&predicted, 120);
    settings.bind(|| insta::assert_snapshot!("prediction.linux.table", table));
}
