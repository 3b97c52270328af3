use laxity_lab::bench::judge;
use laxity_lab::machine_file::Elsewhere;
use laxity_lab::report::Report;
use laxity_model::Service;

use super::*;
use crate::{disturbed, told_and_open};

#[test]
fn nothing_is_claimed_of_nothing_and_what_is_put_in_is_counted_apart() {
    let held = |judged: &[(Kind, Outcome)]| -> Vec<bool> {
        let tallied = tallied(judged).into_iter();
        tallied.filter_map(|(_, _, _, held)| held).collect()
    };
    assert!(held(&[]).is_empty());
    let (usual, tail) = ((Kind::Usual, Outcome::Few), (Kind::Tail, Outcome::Within));
    assert_eq!(held(&[usual, tail]), [true, true]);
    let put_in = [usual, tail, (Kind::PutIn, Outcome::Off)];
    assert_eq!(held(&put_in), [true, true, false]);
    assert_eq!(held(&[usual, (Kind::Tail, Outcome::Off)]), [true, false]);
    let [(_, _, words, _), ..] = tallied(&put_in);
    assert_eq!(
        words,
        "0 of 1 within 10 %, 1 more within 2 samples or 1 a second"
    );
}

/// A call takes so long, and 16 samples a millisecond come in meanwhile: with a reservation it is interrupted, and then that is the twin's to say.
#[test]
fn samples_pending_are_put_in_where_a_call_runs_through() {
    let is_put_in = |name: &str| {
        let mut variants = PROGRAMS.variants.iter();
        let variant = variants.find(|of| of.name == name).expect("a program");
        assert!(put_in(false, variant).is_empty());
        [Of::Share, Of::Responses, Of::Pending].map(|of| put_in(true, variant).contains(&of))
    };
    for name in ["interrupt", "deferred", "thread-24"] {
        assert_eq!(is_put_in(name), [true; 3], "{name}");
    }
    for name in ["slots", "deadline"] {
        assert_eq!(is_put_in(name), [true, false, false], "{name}");
    }
}

#[test]
fn of_rows_in_doubt_nobody_knows_and_one_that_is_off_is_beyond_it() {
    // How often somebody lost the processor here (in the twin it was three times); whether too much of the first program was disturbed; what is claimed.
    for (here, is_disturbed, held, open) in [
        (3, false, &[true][..], 0),
        (3, true, &[], 1),
        (0, false, &[false], 0),
        (0, true, &[false], 0),
    ] {
        let (_, found, told) = report(here, is_disturbed, None);
        assert_eq!(found, held, "{here} {is_disturbed}");
        assert_eq!(told, open, "{here} {is_disturbed}");
    }
}

/// A twin of another machine is no twin of this one, right or wrong; after another kernel it may still be one.
#[test]
fn nothing_is_claimed_of_a_twin_of_another_machine() {
    let elsewhere = |is_other_hardware| Elsewhere {
        is_other_hardware,
        words: "ARM Cortex, here AMD EPYC".to_owned(),
    };
    for here in [3, 0] {
        let (report, found, open) = report(here, false, Some(elsewhere(true)));
        assert_eq!((&found[..], open), (&[][..], 1), "{here}");
        let named = Machine::without_costs(250).description;
        let title = format!("A twin of {named}, and this machine");
        assert_eq!(report.title, title);
        let why = "measured on another machine: ARM Cortex, here AMD EPYC";
        let is_said = |text: &str| text.contains(why);
        assert!(
            report.summary.iter().any(|said| is_said(said)),
            "{report:?}"
        );
        assert!(report.checks.iter().any(|check| is_said(&check.seen)));
        let mut circumstances = report.circumstances.iter();
        assert!(circumstances.any(|(name, value)| *name == "machine file" && is_said(value)));
    }
    let (report, found, _) = report(3, false, Some(elsewhere(false)));
    assert_eq!(found, [true]);
    assert_eq!(report.title, "A twin of this machine, and this machine");
    let mut said = report.summary.iter();
    assert!(said.any(|said| said.contains("measured under another kernel")));
}

/// A report on somebody who lost the processor so often here, and three times in the twin; what of its claims held or not, and how many are open.
fn report(
    here: u64,
    is_disturbed: bool,
    elsewhere: Option<Elsewhere>,
) -> (Report, Vec<bool>, usize) {
    let request = Request {
        live: true,
        repeats: Some(1),
        machine: Some(Machine::without_costs(250)),
        elsewhere,
        ..Request::default()
    };
    let usage = |preemptions| Account::of_usage(Service::from_millis(20), preemptions);
    let first = PROGRAMS.variants.iter().position(|of| !is_calibration(of));
    let mut made = Made::nothing(&request);
    for (trials, preemptions) in [(&mut made.live, here), (&mut made.twin, 3)] {
        let cases = planned(&Made::nothing(&request), |_| true, |_| None);
        let cases = cases.expect("all variants").into_iter();
        trials.extend(cases.map(|case| (case, usage(preemptions))));
    }
    let share = |(case, _): &Trial<Prediction>| match is_disturbed {
        true if Some(case.planned.variant) == first => disturbed(10_001),
        _ => disturbed(10_000),
    };
    made.said = made.live.iter().map(share).collect();
    let report = judge(&Prediction, &made).expect("nothing is analysed");
    let held = report.checks.iter().filter_map(|check| check.held);
    let held = held.collect();
    let open = told_and_open(&report).1;
    (report, held, open)
}

#[test]
fn a_call_costs_what_the_speed_beside_its_run_says() {
    let request = Request {
        live: true,
        repeats: Some(1),
        machine: Some(Machine::without_costs(250)),
        ..Request::default()
    };
    let mut made = Made::nothing(&request);
    let live = Prediction.cases(
        Round {
            live: true,
            number: 0,
        },
        &made,
    );
    for case in live.expect("all variants") {
        made.live.push((case, Account::of_calls([2_000_000; 100])));
    }
    let calibration = PROGRAMS.variants.iter().position(is_calibration);
    let is_calibrated = |case: &Case| Some(case.planned.variant) == calibration;
    let place = made.live.iter().position(|(case, _)| is_calibrated(case));
    // A block takes a millisecond beside the calibration, and 1.3 beside everything that is not next to it.
    let calibrated = place.expect("it is run");
    let took = |place: usize| match [calibrated, calibrated + 1].contains(&place) {
        true => vec![1_000_000; 4],
        false => vec![1_300_000; 4],
    };
    made.took = (0..=made.live.len()).map(took).collect();
    let told = Prediction.cases(
        Round {
            live: false,
            number: 1,
        },
        &made,
    );
    let told = told.expect("calls were measured");
    assert_eq!(told.len() + 1, made.live.len());
    let median = |case: &Case| {
        case.told
            .as_ref()
            .map(|told| told.calls.median().as_micros())
    };
    for case in &told {
        let is_this = |live: &(Case, Account)| live.0.planned == case.planned;
        let place = made.live.iter().position(is_this).expect("it was run");
        // What is beside the calibration has blocks of either speed.
        let expected = match place.abs_diff(calibrated) {
            1 => 1_980..=2_620,
            _ => 2_580..=2_620,
        };
        let charged = median(case).expect("it is told");
        assert!(expected.contains(&charged), "{place}: {charged} us");
    }
}
