//! What of a variant is expected, and what convicts.

use super::*;
use crate::scenario::{self, Length};

/// The controls have no modem, and one variant is only shown.
#[test]
fn the_far_end_leaves_open_what_was_to_go_well_and_nothing_else() {
    let text = include_str!("../../../../../scenarios/soft-modem.toml");
    let scenario = scenario::parse(text, "soft-modem.toml").expect("a scenario");
    let resolved = scenario.resolve(Length::Quick);
    let variants = resolved.variants.iter().filter(|one| asks_nothing(one));
    let names: Vec<&str> = variants.map(|one| &*one.name).collect();
    assert_eq!(names, ["none", "thread-8", "none-cothread-reserved"]);
}

#[test]
fn a_transfer_that_fails_is_the_modems_unless_the_machine_or_the_far_end_failed_it() {
    let excused = |lost, lost_undisturbed, undelivered| {
        is_excused(&ModemFigures {
            device: DeviceFigures {
                samples_underrun: lost,
                samples_lost_undisturbed: lost_undisturbed,
                ..DeviceFigures::default()
            },
            samples_undelivered: undelivered,
            ..ModemFigures::default()
        })
    };
    assert!(!excused(0, 0, 0), "nothing was in the way");
    assert!(!excused(90, 48, 0), "it lost something by itself");
    assert!(
        !excused(9_000, 9_000, 1),
        "and that is no matter of a sample"
    );
    assert!(excused(90, 0, 0), "the machine stood still");
    assert!(excused(0, 0, 1_400), "the far end was late");
}

/// A hold that nobody was found for may have been a stranger's.
#[test]
fn what_was_lost_while_somebody_may_have_held_on_tells_neither() {
    let device = |lost, lost_undisturbed| DeviceFigures {
        samples_underrun: lost,
        samples_lost_undisturbed: lost_undisturbed,
        ..DeviceFigures::default()
    };
    let told = |expected, device: DeviceFigures, held| {
        let mut surprises = Vec::new();
        let doubts = Doubts {
            held,
            ..Doubts::default()
        };
        let devices = [((String::new(), &device), doubts)];
        losses(expected, &devices, &mut surprises);
        surprises.pop().map(|surprise| surprise.is_certain)
    };
    assert_eq!(told(Loss::None, device(446, 0), 0), None);
    assert_eq!(told(Loss::None, device(446, 0), 3), Some(false));
    assert_eq!(told(Loss::None, device(0, 0), 3), None);
    assert_eq!(told(Loss::None, device(446, 1), 3), Some(true));
    assert_eq!(told(Loss::Some, device(21, 0), 0), Some(false));
    assert_eq!(told(Loss::Some, device(0, 0), 0), Some(true));
}

/// What nobody knows of one device is no matter of another.
#[test]
fn a_device_answers_for_its_losses_whatever_nobody_saw_of_another() {
    let device = DeviceFigures {
        samples_underrun: 9,
        samples_lost_undisturbed: 9,
        ..DeviceFigures::default()
    };
    let unseen = Doubts {
        halts_unseen: HaltsUnseen::Of(LOSSES),
        ..Doubts::default()
    };
    let outgrown = Doubts {
        outgrown: LOSSES,
        ..Doubts::default()
    };
    let whose = |name: &str| (format!("{name}: "), &device);
    let sure = Doubts::default();
    let devices = [
        (whose("a"), unseen),
        (whose("b"), sure),
        (whose("c"), outgrown),
    ];
    let mut surprises = Vec::new();
    losses(Loss::None, &devices, &mut surprises);
    let told: Vec<_> = surprises
        .iter()
        .map(|surprise| (&surprise.what[..2], surprise.is_certain))
        .collect();
    assert_eq!(told, [("a:", false), ("b:", true), ("c:", false)]);
    assert!(
        surprises[0].what.ends_with(unseen::TOLD),
        "{}",
        surprises[0].what
    );
    assert!(
        !surprises[1].what.contains(unseen::TOLD),
        "{}",
        surprises[1].what
    );
    let kept = "; calls took longer than was foreseen, and nothing that was promised was missing";
    assert!(surprises[2].what.ends_with(kept), "{}", surprises[2].what);
}

/// Neither that something was lost nor that nothing was is known of a run whose events are not all there.
#[test]
fn events_that_were_lost_leave_open_what_is_expected_of_a_device() {
    let expected = |lost, transfer| Expectations {
        lost,
        transfer,
        grade: None,
    };
    let told = |expected: &Expectations, events_lost| {
        let all = as_far_as_seen(vec![certain("9 samples")], expected, events_lost);
        let all = all.iter().map(|one| (&*one.what, one.is_certain));
        all.map(|(what, is_certain)| (what.to_owned(), is_certain))
            .collect::<Vec<_>>()
    };
    let none = expected(Loss::None, ExpectedOutcome::Any);
    assert_eq!(told(&none, 0), [("9 samples".to_owned(), true)]);
    let lost = Cause::EventsLost(3).to_string();
    let open = [("9 samples".to_owned(), false), (lost, false)];
    assert_eq!(told(&none, 3), open);
    let nothing = expected(Loss::Any, ExpectedOutcome::Any);
    assert_eq!(told(&nothing, 3), [("9 samples".to_owned(), true)]);
}
