//! What of a device's losses is judged.

use laxity::Twin;
use laxity::observe::observe;
use laxity::study::Profile;
use laxity_devices::card::CardClock;
use laxity_model::verify::contract::Observed;
use laxity_model::{
    ActivityId, Disturbance, Host, Placement, Priority, ProcessorId, Program, RunRecord,
};

use super::*;
use crate::observe::{Probe, Watched};
use crate::runner::tasks::rogue;
use crate::scenario::devices::{Audio, Device, Site, Transfer};

#[test]
fn what_delayed_an_interrupt_bears_on_the_interval_after_it_too() {
    let at = Instant::from_millis;
    let mut interrupts = Interrupts::default();
    assert_eq!(interrupts.take(at(10)), None);
    assert_eq!(interrupts.take(at(22)), Some([at(10), at(10)]));
    assert_eq!(interrupts.take(at(96)), Some([at(22), at(10)]));
    assert_eq!(interrupts.take(at(97)), Some([at(96), at(22)]));
}

/// A player that somebody keeps from the processor at each of these times, from so many microseconds on for so many.
fn player_beside(held_us: &[[u64; 2]], length_ms: u64) -> (RunRecord, Probe) {
    let mut program = Program::new(1);
    let placing = Placing::Thread(Priority::NORMAL);
    let player = Audio::default();
    let site = Site {
        processor: ProcessorId(0),
        placing,
        seed: 1,
        work: Service::from_millis(1),
        further: 0,
        clock: CardClock::default(),
        transfer: Transfer::default(),
    };
    let installed = player.install(&mut program, &site).expect("it fits");
    for [from, length] in held_us {
        let once = rogue(
            Service::from_micros(*length),
            Span::from_secs(60),
            Span::from_micros(*from),
        );
        let highest = Placement::Thread(Priority::HIGHEST);
        program.add("holder", ProcessorId(0), highest, once);
    }
    let activities = (0..program.activities.len() as u16).map(ActivityId);
    let activities = activities.collect();
    let mut twin = Twin::new(Profile::WIN2000_PII450);
    let record = twin.admit_and_run(program, Span::from_millis(length_ms));
    let kind = player.kind();
    let probe = Probe {
        subject: Subject {
            name: "player".to_owned(),
            kind,
        },
        activities,
        watched: Watched::Device(DeviceProbe {
            installed,
            placing,
            kind,
        }),
    };
    (record.expect("the twin runs it"), probe)
}

/// The samples and the frames that are lost if the machine itself stood still then, and not otherwise.
fn lost([from, length]: [u64; 2], record: &RunRecord, probe: &Probe) -> [Observed; 2] {
    let from = Instant::from_micros(from);
    let halted = RunRecord {
        disturbances: vec![Disturbance {
            processor: ProcessorId(0),
            from,
            to: from + Span::from_micros(length),
        }],
        ..record.clone()
    };
    let seen = observe(&halted, std::slice::from_ref(probe), &[]);
    [SAMPLES_LOST, FRAMES_LOST].map(|quantity| seen[0].quantities.whole(quantity))
}

/// What is played is heard some periods later, when the player is in time again, or at the end of the run.
#[test]
fn a_frame_is_excused_where_the_samples_are_that_it_rests_on() {
    let halt = [200_000, 45_000];
    for length_ms in [255, 265, 275, 285, 600] {
        let (record, probe) = player_beside(&[halt], length_ms);
        let [samples, frames] = lost(halt, &record, &probe);
        assert!(samples.disturbed.sum() > 0, "{length_ms}: {samples:?}");
        assert_eq!(samples.undisturbed.sum(), 0, "{length_ms}: {samples:?}");
        assert_eq!(frames.undisturbed.sum(), 0, "{length_ms}: {frames:?}");
        let all = frames.disturbed.sum();
        assert!(length_ms < 600 || all > 0, "{length_ms}: {frames:?}");
    }
}

/// Of two that are alike the halt excuses one.
#[test]
fn a_frame_is_judged_where_nothing_excuses_its_samples() {
    let (halt, held) = ([200_000, 45_000], [300_000, 45_000]);
    for both in [[halt, held], [held, halt]] {
        let (record, probe) = player_beside(&both, 600);
        for one in both {
            let [samples, frames] = lost(one, &record, &probe);
            for lost in [samples, frames] {
                assert!(lost.disturbed.sum() > 0, "{one:?}: {lost:?}");
                assert!(lost.undisturbed.sum() > 0, "{one:?}: {lost:?}");
            }
        }
    }
}

/// The first of a frame's symbols carries nothing: a call that is late with no more than that loses samples and no frame, and the frames that are lost later
/// are others' still.
#[test]
fn a_call_whose_frame_arrived_all_the_same_is_given_no_other() {
    let long = [300_000, 45_000];
    for late_us in [9_000, 9_300, 9_600] {
        let short = [200_000, late_us];
        let (record, probe) = player_beside(&[short], 600);
        let [samples, frames] = lost(short, &record, &probe);
        assert!(samples.disturbed.sum() > 0, "{late_us}: {samples:?}");
        assert_eq!(frames.disturbed.sum(), 0, "{late_us}: {frames:?}");
        let (record, probe) = player_beside(&[short, long], 600);
        for (halt, [judged, excused]) in [(short, [4, 0]), (long, [0, 4])] {
            let [_, frames] = lost(halt, &record, &probe);
            assert_eq!(frames.undisturbed.sum(), judged, "{late_us} {halt:?}");
            assert_eq!(frames.disturbed.sum(), excused, "{late_us} {halt:?}");
        }
    }
}

/// Of a handler that was kept from the processor for a moment, no longer than a witness tolerates, what it took is judged.
#[test]
fn a_handler_took_its_processor_time_whatever_the_clock_says() {
    let (record, probe) = player_beside(&[], 600);
    let longest = |returns_later: Span, took: Span| {
        let mut of_another = record.clone();
        let exits = of_another.events.iter_mut();
        let mut exits = exits.filter(|event| event.kind == EventKind::InterruptExit);
        let exit = exits.nth(7).expect("of many");
        exit.at += returns_later;
        exit.args[0] += took.as_nanos();
        let seen = observe(&of_another, std::slice::from_ref(&probe), &[]);
        let times = seen[0].quantities.whole(Quantity::INTERRUPT_TIME);
        times.undisturbed.max().expect("interrupts")
    };
    let kept = Span::from_micros(120);
    let usual = longest(Span::ZERO, Span::ZERO);
    assert!(usual < 100_000, "{usual}");
    assert_eq!(longest(kept, Span::ZERO), usual);
    assert!(longest(kept, kept) >= kept.as_nanos());
}

/// As where the card was programmed anew since its timer was set.
#[test]
fn a_handler_that_is_entered_for_nothing_ends_no_period() {
    let (record, probe) = player_beside(&[], 600);
    let Watched::Device(device) = &probe.watched else {
        panic!("a player is a device");
    };
    let exits = record.events.iter().enumerate();
    let mut exits = exits.filter(|(_, event)| event.kind == EventKind::InterruptExit);
    let (place, exit) = exits.nth(7).expect("of many");
    let nothing = EventKind::Mark(device.installed.marks.no_interrupt);
    let more = [EventKind::InterruptEnter, nothing, EventKind::InterruptExit];
    let more = more.map(|kind| Event { kind, ..*exit });
    let mut with_more = record.clone();
    with_more.events.splice(place + 1..=place, more);
    let periods = |record: &RunRecord| {
        let seen = observe(record, std::slice::from_ref(&probe), &[]);
        let all = seen[0].quantities.whole(Quantity::INTERRUPT_PERIOD);
        all.undisturbed
    };
    assert_eq!(periods(&with_more), periods(&record));
}
