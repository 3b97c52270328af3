//! Figures 5 to 7 and 14: samples left in the input ring after each call of the signal processing.

use laxity_devices::modem::{Outcome, Phase};

use super::parts::{axis, compared, count, judge, over_time, pending, text};
use super::quoted;
use super::readings::{Call, Readings};
use super::{DPC, Evidence, INT, RES, THR_8, THR_24};
use laxity_lab::report::{Chart, Compared, Figure, Origin, Unit, Verdict};

/// Samples in each of the card's rings (§4).
const RING_SAMPLES: u64 = 512;

/// Calls in training and data mode that nothing disturbed.
fn judged(run: &Readings) -> impl Iterator<Item = &Call> {
    run.calls.iter().filter(|call| {
        let phase = run.phase_at(call.timed.at.saturating_sub(call.timed.took));
        !call.timed.disturbed && matches!(phase, Phase::Training | Phase::Connected)
    })
}

/// The most samples that were ever left, in training and data mode.
pub(super) fn most(run: &Readings) -> u64 {
    judged(run).map(|call| call.pending).max().unwrap_or(0)
}

/// How often this many or more were left.
fn at_least(run: &Readings, samples: u64) -> u64 {
    judged(run).filter(|call| call.pending >= samples).count() as u64
}

fn chart(caption: &str, run: &Readings) -> Chart {
    let y = axis("samples pending after the processing", Unit::Count);
    over_time(caption, y, vec![pending("calls", &run.calls)])
}

fn charts(twin: &Readings, live: Option<&Readings>) -> Vec<Chart> {
    let mut charts = vec![chart("twin", twin)];
    charts.extend(live.map(|run| chart("this machine", run)));
    charts
}

/// The row on the limit of 30 samples: how long a call takes is put in, and the ring fills meanwhile.
fn few(driver: &str, twin: &Readings, live: Option<&Readings>) -> Compared {
    let seen = most(twin);
    let verdict = judge(
        seen <= quoted::PENDING_MAX,
        "at most 30",
        &format!("{seen}"),
        Origin::Charged,
    );
    compared(
        &format!("most samples pending in training and data, {driver}"),
        count(quoted::PENDING_MAX, Origin::Quoted),
        count(seen, Origin::Charged),
        live.and_then(|run| count(most(run), Origin::Measured)),
        verdict,
    )
}

/// The rows on samples lost. Nothing disturbs the twin; what was lost while this machine itself stood still has a row of its own.
fn lost(twin: &Readings, live: Option<&Readings>) -> Vec<Compared> {
    let (_, seen) = twin.damage();
    let lost = compared(
        LOST,
        text("none", Origin::Quoted),
        count(seen, Origin::Simulated),
        live.and_then(|run| count(run.damage().0, Origin::Measured)),
        judge(seen == 0, "none", &format!("{seen}"), Origin::Simulated),
    );
    let mut rows = vec![lost];
    rows.extend(live.map(lost_while_disturbed));
    rows
}

const LOST: &str = "samples lost or sent as garbage while nothing disturbed";

fn lost_while_disturbed(live: &Readings) -> Compared {
    let (undisturbed, all) = live.damage();
    compared(
        "samples lost or sent as garbage while this machine stood still",
        None,
        None,
        count(all - undisturbed, Origin::Measured),
        Verdict::Alone,
    )
}

/// These, and then the rows on samples lost.
fn and_lost(mut rows: Vec<Compared>, twin: &Readings, live: Option<&Readings>) -> Vec<Compared> {
    rows.extend(lost(twin, live));
    rows
}

const WHY_THIRTY: &str = "While the processing takes its 1.84 ms the card goes on at 16 kHz: 29 \
     samples and a half. That time is put in, and so what is left in the ring is no result.";

/// Figure 5.
pub(super) fn interrupt(evidence: &Evidence, figure: Figure) -> Figure {
    let (twin, live) = (evidence.twin(INT), evidence.live_one(INT));
    let (deferred, deferred_live) = (evidence.twin(DPC), evidence.live_one(DPC));
    Figure {
        about: "Each dot is a call of the signal processing in the handler (INT): samples left \
             in the ring of 512 when it returned."
            .into(),
        charts: charts(twin, live),
        compared: and_lost(
            vec![few("INT", twin, live), few("DPC", deferred, deferred_live)],
            twin,
            live,
        ),
        remarks: vec![WHY_THIRTY.into()],
        ..figure
    }
}

/// Figure 6.
pub(super) fn thread_24(evidence: &Evidence, figure: Figure) -> Figure {
    let (twin, live) = (evidence.twin(THR_24), evidence.live_one(THR_24));
    let full = quoted::PENDING_MAX;
    let (int, thread) = (at_least(evidence.twin(INT), full), at_least(twin, full));
    let live_thirties = live.and_then(|run| count(at_least(run, full), Origin::Measured));
    let more = compared(
        "calls that left 30 samples or more, THR 24",
        text("more than INT", Origin::Quoted),
        count(thread, Origin::Simulated),
        live_thirties,
        judge(
            thread > int,
            "more than INT",
            &format!("{thread}, INT {int}"),
            Origin::Simulated,
        ),
    );
    Figure {
        about: "The same for a thread of priority 24.".into(),
        charts: charts(twin, live),
        compared: and_lost(vec![few("THR 24", twin, live), more], twin, live),
        remarks: vec![
            "Every call of data takes the same in the twin, so none leaves a sample more than \
                 the others; the study's calls varied, and it counts by eye."
                .into(),
        ],
        ..figure
    }
}

/// How a call ended, in words.
fn ending(run: &Readings) -> String {
    match &run.outcome {
        Some(Outcome::Failed { result, reason }) => format!("{result}: {reason}"),
        Some(Outcome::Done { .. }) => "the transfer ended".into(),
        None if run.began(Phase::Connected).is_some() => "connected".into(),
        None if run.began(Phase::Training).is_some() => "the other end answered".into(),
        None => "never past dialing".into(),
    }
}

/// Figure 7.
pub(super) fn thread_8(evidence: &Evidence, figure: Figure) -> Figure {
    let (twin, live) = (evidence.twin(THR_8), evidence.live_one(THR_8));
    let (_, damage) = twin.damage();
    let is_dead = twin.began(Phase::Training).is_none();
    let never = judge(
        is_dead,
        "never gets past dialing",
        &ending(twin),
        Origin::Calibrated,
    );
    let overflows = judge(
        damage >= RING_SAMPLES,
        "the ring overflows",
        &format!("{damage} samples"),
        Origin::Calibrated,
    );
    let end = |run: &Readings, origin| text(&ending(run), origin);
    let mut remarks = vec![
        "In the twin a thread of priority 8 waits for the end of its equal's quantum. That \
             quantum, 120 ms, is the longer of the two that Windows 2000 \
         documents; it was chosen because the shorter does not let 512 samples pile up."
            .to_string(),
    ];
    if live.is_some() {
        remarks.push(
            "On this machine a thread of priority 8 is one of the fair class, which gives a \
                 thread that has slept its turn within \
             milliseconds: one equal competitor does not starve the modem as the study's host did."
                .into(),
        );
    }
    Figure {
        about: "A thread of priority 8 beside a spinner of the same priority.".into(),
        charts: charts(twin, live),
        compared: vec![
            compared(
                "the call",
                text("\"please hang up and try your call again\"", Origin::Quoted),
                end(twin, Origin::Calibrated),
                live.and_then(|run| end(run, Origin::Measured)),
                never,
            ),
            compared(
                LOST,
                text("overflow", Origin::Quoted),
                count(damage, Origin::Calibrated),
                live.and_then(|run| count(run.damage().0, Origin::Measured)),
                overflows,
            ),
        ]
        .into_iter()
        .chain(live.map(lost_while_disturbed))
        .collect(),
        remarks,
        ..figure
    }
}

/// Figure 14.
pub(super) fn reserved(evidence: &Evidence, figure: Figure) -> Figure {
    let (twin, live) = (evidence.twin(RES), evidence.live_one(RES));
    let (seen, int) = (most(twin), most(evidence.twin(INT)));
    let more = judge(
        seen > int && seen < RING_SAMPLES / 2,
        "more than INT, less than half of 512 (our criterion)",
        &format!("{seen}, INT {int}"),
        Origin::Simulated,
    );
    Figure {
        about: "A thread with 2 ms of every 8, beside them competing with the spinner at \
             priority 8; on hook, where it has no reservation yet, priority 24."
            .into(),
        charts: charts(twin, live),
        compared: and_lost(
            vec![compared(
                "most samples pending in training and data, RES 2/8",
                text("more than INT, much less than 512", Origin::Quoted),
                count(seen, Origin::Simulated),
                live.and_then(|run| count(most(run), Origin::Measured)),
                more,
            )],
            twin,
            live,
        ),
        remarks: Vec::new(),
        ..figure
    }
}
