//! What of a variant is expected, and what convicts.

use super::*;
use crate::scenario::{self, Length};
use laxity_model::Instant;
use laxity_model::verify::contract::Phase;

#[test]
fn losses_beside_the_kernels_reservations_convict_where_halts_were_seldomer() {
    let lost = |long_ms, held_ms| Lost {
        amount: 9,
        phase: Phase::CONNECTED,
        span: [0, long_ms].map(Instant::from_millis),
        service: None,
        halted: Span::ZERO,
        held: Span::from_millis(held_ms),
        reserved: true,
    };
    let no_more = |losses: &[&Lost], halts| are_no_more(losses, halts, Span::from_millis(16));
    let (alone, beside) = (lost(30, 0), lost(30, 18));
    assert!(!no_more(&[], 3), "nothing was lost");
    assert!(!no_more(&[&alone], 0), "nothing stood still");
    assert!(no_more(&[&beside], 0), "the witness was held as well");
    assert!(no_more(&[&alone, &beside], 1));
    assert!(!no_more(&[&alone, &alone, &beside], 1));
    // Who was never served lost once, and for longer than a few halts that nobody sees.
    let never = lost(5_000, 0);
    assert!(!no_more(&[&never], 311));
    assert!(no_more(&[&never], 312));
    assert!(
        !no_more(&[&lost(5_000, 18)], 310),
        "held for a moment of it"
    );
}

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
        halts_unseen: HaltsUnseen::Of(SAMPLES_LOST),
        ..Doubts::default()
    };
    let whose = |name: &str| (format!("{name}: "), &device);
    let devices = [(whose("a"), unseen), (whose("b"), Doubts::default())];
    let mut surprises = Vec::new();
    losses(Loss::None, &devices, &mut surprises);
    let told: Vec<_> = surprises
        .iter()
        .map(|surprise| (&surprise.what[..2], surprise.is_certain))
        .collect();
    assert_eq!(told, [("a:", false), ("b:", true)]);
    assert!(surprises[0].what.ends_with(UNSEEN), "{}", surprises[0].what);
    assert!(!surprises[1].what.contains(UNSEEN), "{}", surprises[1].what);
}
