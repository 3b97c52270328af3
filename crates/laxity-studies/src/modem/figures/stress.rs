//! The stress run of §6.1: a spinner, and a search of every file of the disk at priority 10, beside the modem.

use laxity_model::Span;

use super::parts::{compared, judge, mean, median, text};
use super::pending::most;
use super::readings::Readings;
use super::scene::{Driver, Scene};
use super::{Evidence, INT, RES, THR_24};
use laxity_lab::report::{Cell, Compared, Figure, Origin, Table, Value};

/// The placements that are put under stress, each with its run beside the spinner alone.
const PAIRS: [(Scene, Scene); 3] = [
    (INT, Scene::stress(Driver::Interrupt)),
    (THR_24, Scene::stress(Driver::Thread24)),
    (RES, Scene::stress(Driver::Reserved)),
];

/// All runs of this part.
pub(super) const SCENES: [Scene; 6] = [
    PAIRS[0].0, PAIRS[0].1, PAIRS[1].0, PAIRS[1].1, PAIRS[2].0, PAIRS[2].1,
];

/// A difference of so many samples pending is none: what a block of 512 holds is not at stake.
const SAME_SAMPLES: u64 = 16;

struct Summary {
    pending: u64,
    /// Samples lost or sent as garbage while nothing disturbed.
    damage: u64,
    /// The others.
    damage_disturbed: u64,
    median: Span,
    mean: Span,
    calls: u64,
}

fn summary(run: &Readings) -> Summary {
    let fair = run.calls.iter().filter(|call| !call.timed.disturbed);
    let took: Vec<Span> = fair.map(|call| call.timed.took).collect();
    let (damage, all) = run.damage();
    Summary {
        pending: most(run),
        damage,
        damage_disturbed: all - damage,
        calls: took.len() as u64,
        mean: mean(&took),
        median: median(took),
    }
}

fn row(evidence: &Evidence, (spinner, stress): (Scene, Scene)) -> Compared {
    let [alone, stressed] = [spinner, stress].map(|scene| summary(evidence.twin(scene)));
    let same = stressed.damage == 0 && stressed.pending.abs_diff(alone.pending) <= SAME_SAMPLES;
    let lost = |run: &Summary| match run.damage_disturbed {
        0 => run.damage.to_string(),
        more => format!("{} (and {more} while this machine stood still)", run.damage),
    };
    let seen = |alone: &Summary, stressed: &Summary| {
        format!(
            "{} pending at most, {} lost; with the spinner alone {} and {}",
            stressed.pending,
            lost(stressed),
            alone.pending,
            lost(alone)
        )
    };
    let live = (evidence.live_one(spinner), evidence.live_one(stress));
    let live = match live {
        (Some(alone), Some(stressed)) => {
            text(&seen(&summary(alone), &summary(stressed)), Origin::Measured)
        }
        _ => None,
    };
    let words = seen(&alone, &stressed);
    let more = stressed.pending.saturating_sub(alone.pending);
    let outcome = format!("{more} more pending, {} lost", stressed.damage);
    compared(
        &format!("{} under stress", spinner.driver.name()),
        text("as with the spinner alone", Origin::Quoted),
        text(&words, Origin::Simulated),
        live,
        judge(
            same,
            "the same to within 16 samples (our criterion)",
            &outcome,
            Origin::Simulated,
        ),
    )
}

/// The stress run.
pub(super) fn draw(evidence: &Evidence, figure: Figure) -> Figure {
    let columns = [
        "run",
        "calls",
        "elapsed, median",
        "elapsed, mean",
        "most pending",
        "lost undisturbed",
        "lost disturbed",
    ];
    let line = |name: String, run: &Readings, origin| {
        let cell = |value| Some(Cell { value, origin });
        let seen = summary(run);
        vec![
            cell(Value::Text(name)),
            cell(Value::Count(seen.calls)),
            cell(Value::Span(seen.median)),
            cell(Value::Span(seen.mean)),
            cell(Value::Count(seen.pending)),
            cell(Value::Count(seen.damage)),
            cell(Value::Count(seen.damage_disturbed)),
        ]
    };
    let mut rows = Vec::new();
    for scene in SCENES {
        rows.push(line(
            format!("twin: {}", scene.name()),
            evidence.twin(scene),
            Origin::Simulated,
        ));
        if let Some(run) = evidence.live_one(scene) {
            rows.push(line(
                format!("live: {}", scene.name()),
                run,
                Origin::Measured,
            ));
        }
    }
    let mut remarks = vec![
        "The twin's search is a thread of priority 10 that works for 0.2 to 3 ms and waits 1 to \
             15 ms for the disk, whose handler (10 to 25 µs, above the \
         modem's level) and deferred call (30 to 80 µs) interrupt the modem: all assumed, for \
              the study prints nothing of them."
            .to_string(),
    ];
    if evidence.live_one(INT).is_some() {
        remarks.push(
            "Live, a find with grep reads every file of the root file system on the modem's \
                 processor, in the fair class; what of it comes from the page cache \
             waits for no disk."
                .into(),
        );
    }
    Figure {
        about: "Dial-up beside a spinner of priority 8 and a search of the whole disk at \
             priority 10, against the spinner alone."
            .into(),
        compared: PAIRS.map(|pair| row(evidence, pair)).into(),
        tables: vec![Table {
            caption: "Calls of the signal processing".into(),
            columns: columns.map(String::from).into(),
            rows,
        }],
        remarks,
        ..figure
    }
}
