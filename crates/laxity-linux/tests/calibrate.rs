//! A calibration of this machine: complete, plausible, and without a trace.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};

use laxity_linux::calibrate::{CalibrateError, Calibration, DISTURBED, Progress, Settings};
use laxity_linux::calibrate::{MESSAGE_BYTES, PRIORITIES, calibrate};
use laxity_linux::doctor::rights::{self, LiveTest, Right};
use laxity_linux::os::clock;
use laxity_linux::os::sched::{self, Tid};
use laxity_model::enforce::machine::Figure;
use laxity_model::{Service, Span};

use common::footprint;

/// A fiftieth of the samples.
fn quick() -> Settings {
    let usable = sched::affinity(Tid::current()).expect("own affinity");
    Settings {
        part: 50,
        ..Settings::new(usable.iter().last().expect("a processor"))
    }
}

fn turn() -> Option<LiveTest> {
    rights::require(&[Right::RealTime])
}

/// A machine on which others keep the processor busy may be too disturbed: then that is what is said, and nothing else.
fn calibrated() -> Option<Calibration> {
    let mut steps: Vec<Progress> = Vec::new();
    match calibrate(&quick(), &mut |step| steps.push(step)) {
        Ok(found) => {
            let all = steps.first().expect("there is a first step").all;
            let done: Vec<usize> = steps.iter().map(|step| step.done).collect();
            assert_eq!(done, (0..all).collect::<Vec<_>>());
            Some(found)
        }
        Err(CalibrateError::Disturbed { found, .. }) => {
            assert!(found < 40, "{found} samples were too few");
            rights::skip("the machine was too disturbed to be measured");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn every_figure_is_measured_and_plausible_and_nothing_remains() {
    let Some(_turn) = turn() else {
        return;
    };
    let before = footprint();
    let found = calibrated();
    assert_eq!(footprint(), before);
    let Some(Calibration {
        machine,
        evidence,
        udp_message,
        packets,
        circumstances,
    }) = found
    else {
        return;
    };
    println!("{machine:#?}\n{evidence:#?}\n{udp_message:?}\n{circumstances:#?}");
    assert!(packets.is_empty(), "nobody measured them: {packets:?}");
    match udp_message {
        Ok(cost) => assert!(cost.of(MESSAGE_BYTES[0]) > Service::ZERO, "{cost:?}"),
        Err(why) => assert!(why.contains("loopback"), "{why}"),
    }
    for figure in Figure::ALL {
        let quantiles = machine.figure(figure);
        let points = quantiles.points();
        assert!(points.windows(2).all(|pair| pair[0].1 <= pair[1].1));
        let Some(evidence) = evidence.get(&figure) else {
            let is_deadline = figure.name().starts_with("deadline");
            let no_tick = figure == Figure::Tick && machine.tick_hz == 0;
            assert!(is_deadline || no_tick, "{} is missing", figure.name());
            continue;
        };
        assert!(evidence.samples >= 20, "{figure:?}: {evidence:?}");
        let (least, most) = evidence.medians;
        assert!(least <= quantiles.median() && quantiles.median() <= most);
        // A timer is late or early; all others cost something.
        let may_be_nothing = matches!(figure, Figure::SlotLeaving | Figure::SlotCut);
        assert!(
            may_be_nothing || points[points.len() - 1].1 > Span::ZERO,
            "{figure:?}"
        );
    }
    // The sum of the parts: a thread that is woken takes the processor within the time it is late, but for early timers.
    assert!(machine.figure(Figure::Preemption).median() < DISTURBED);
    assert!(
        machine.figure(Figure::ContextSwitch).median()
            < machine.figure(Figure::Handover).at(1_000_000)
    );
    assert!(machine.figure(Figure::SlotBegin).median() > machine.slot_lead);
    assert!(machine.figure(Figure::DeadlineOverrun).at(1_000_000) <= clock::tick() + DISTURBED);
    assert!(circumstances.took > Span::ZERO);
    assert!(machine.description.contains(&circumstances.kernel));
}

#[test]
fn a_signal_ends_it_and_leaves_nothing() {
    let Some(_turn) = turn() else {
        return;
    };
    // Another watcher keeps the signal from ending the process once the calibration's own is over.
    let watch = laxity_linux::os::signals::Watch::begin();
    let before = footprint();
    let raised = AtomicBool::new(false);
    let error = calibrate(&quick(), &mut |step| {
        if step.done == 3 && !raised.swap(true, Ordering::SeqCst) {
            interrupt();
        }
    })
    .expect_err("a signal came");
    assert_eq!(error, CalibrateError::Interrupted("SIGINT"));
    assert_eq!(watch.caught(), Some("SIGINT"));
    assert_eq!(footprint(), before);
}

/// SIGINT to this process, as a terminal sends it.
fn interrupt() {
    let own = std::process::id().to_string();
    let status = std::process::Command::new("kill")
        .args(["-INT", &own])
        .status();
    assert!(status.expect("kill runs").success());
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let settings = Settings::new(0);
    for priority in [0, PRIORITIES.start() - 1, PRIORITIES.end() + 1] {
        let wrong = Settings {
            priority,
            ..settings
        };
        let error = calibrate(&wrong, &mut |_| panic!("it began")).unwrap_err();
        assert!(matches!(error, CalibrateError::Settings(_)), "{error}");
    }
    let wrong = Settings {
        part: 0,
        ..settings
    };
    let error = calibrate(&wrong, &mut |_| panic!("it began")).unwrap_err();
    assert!(matches!(error, CalibrateError::Settings(_)), "{error}");
}

#[test]
fn a_processor_that_is_not_there_is_named() {
    let Some(_turn) = turn() else {
        return;
    };
    let error = calibrate(&Settings::new(4_711), &mut |_| panic!("it began")).unwrap_err();
    assert!(matches!(error, CalibrateError::CannotRun { .. }));
    assert!(error.to_string().contains("processor 4711"), "{error}");
}
