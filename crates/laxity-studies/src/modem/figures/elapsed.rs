//! Figures 8, 9 and 15: elapsed times in the signal processing thread, from a wake-up to the next wait.

use laxity_devices::modem::Phase;
use laxity_model::Span;

use super::parts::{
    axis, compared, count, durations, judge, longest, median, over_time, span, text, within,
};
use super::quoted;
use super::readings::{Readings, Timed};
use super::{Evidence, INT, RES, THR_8, THR_24};
use laxity_lab::report::{Chart, Figure, Origin, Unit, Verdict};

fn chart(caption: &str, run: &Readings) -> Chart {
    let y = axis("elapsed in a run of the thread", Unit::Nanoseconds);
    over_time(caption, y, vec![durations("runs", &run.thread)])
}

fn charts(twin: &Readings, live: Option<&Readings>) -> Vec<Chart> {
    let mut charts = vec![chart("twin", twin)];
    charts.extend(live.map(|run| chart("this machine", run)));
    charts
}

/// Runs of the thread in training and data mode that nothing disturbed.
fn steady(run: &Readings) -> impl Iterator<Item = &Timed> {
    run.thread.iter().filter(|timed| {
        let phase = run.phase_at(timed.at.saturating_sub(timed.took));
        !timed.disturbed && matches!(phase, Phase::Training | Phase::Connected)
    })
}

fn typical(run: &Readings) -> Span {
    median(steady(run).map(|timed| timed.took).collect())
}

/// Figure 8.
pub(super) fn thread_24(evidence: &Evidence, figure: Figure) -> Figure {
    let (twin, live) = (evidence.twin(THR_24), evidence.live_one(THR_24));
    let handler = evidence.twin(INT);
    let usual = handler.handler.iter().filter(|timed| {
        !timed.disturbed
            && matches!(
                handler.phase_at(timed.at),
                Phase::Training | Phase::Connected
            )
    });
    let in_handler = median(usual.map(|timed| timed.took).collect());
    let in_thread = typical(twin);
    let (worst_handler, worst) = (longest(&handler.handler), longest(&twin.thread));
    Figure {
        about: "Each dot is a run of the thread of priority 24, from its first instruction \
             after a wait to its next wait."
            .into(),
        charts: charts(twin, live),
        compared: vec![
            compared(
                "typical: as INT's handler",
                span(quoted::TYPICAL_PROCESSING, Origin::Quoted),
                span(in_thread, Origin::Charged),
                live.and_then(|run| span(typical(run), Origin::Calibrated)),
                within(
                    in_handler.as_nanos(),
                    in_thread.as_nanos(),
                    5,
                    Origin::Charged,
                ),
            ),
            compared(
                "worst: as INT's handler",
                span(quoted::WORST_PROCESSING, Origin::Quoted),
                span(worst, Origin::Charged),
                live.and_then(|run| span(longest(&run.thread), Origin::Measured)),
                within(
                    worst_handler.as_nanos(),
                    worst.as_nanos(),
                    5,
                    Origin::Charged,
                ),
            ),
        ],
        remarks: vec![
            "The study finds these times identical to those in the handler; the verdicts \
                 compare the twin's two placements."
                .into(),
        ],
        ..figure
    }
}

/// Figure 9.
pub(super) fn thread_8(evidence: &Evidence, figure: Figure) -> Figure {
    let (twin, live) = (evidence.twin(THR_8), evidence.live_one(THR_8));
    let per_call = |run: &Readings| {
        let calls = run.calls.iter().filter(|call| !call.timed.disturbed);
        median(calls.map(|call| call.timed.took).collect())
    };
    let per_run = |run: &Readings| {
        let runs = run.thread.iter().filter(|timed| !timed.disturbed);
        median(runs.map(|timed| timed.took).collect())
    };
    let seen = per_run(twin);
    let little = judge(
        seen < quoted::TYPICAL_PROCESSING / 2,
        "less than half of what data takes (our criterion)",
        &seen.to_string(),
        Origin::Calibrated,
    );
    Figure {
        about: "The same for a thread of priority 8 beside a spinner of priority 8.".into(),
        charts: charts(twin, live),
        compared: vec![
            compared(
                "elapsed a run of the thread, median",
                text("very little", Origin::Quoted),
                span(seen, Origin::Calibrated),
                live.and_then(|run| span(per_run(run), Origin::Measured)),
                little,
            ),
            compared(
                "elapsed a call, median",
                None,
                span(per_call(twin), Origin::Charged),
                live.and_then(|run| span(per_call(run), Origin::Measured)),
                Verdict::Alone,
            ),
        ],
        remarks: vec![
            "The run is that of figure 7, by which the spinner's quantum was chosen.".into(),
            "No data is exchanged, so there are only tones to process. In a run of the thread each \
             interrupt of the spinner's quantum has its call; most find that their output was due \
             long ago, and abandon the block."
                .into(),
        ],
        ..figure
    }
}

/// Figure 15.
pub(super) fn reserved(evidence: &Evidence, figure: Figure) -> Figure {
    let (twin, live) = (evidence.twin(RES), evidence.live_one(RES));
    let [from, to] = quoted::RESERVED_ELAPSED;
    let longest_of = |run: &Readings| steady(run).map(|timed| timed.took).max();
    let at_times = |run: &Readings| {
        let long = steady(run).filter(|timed| (from..=to).contains(&timed.took));
        long.count() as u64
    };
    let seen = longest_of(twin).unwrap_or(Span::ZERO);
    let in_range = judge(
        (from..=to).contains(&seen),
        "the longest within 6 to 8 ms",
        &format!(
            "{seen} at most, {} of {} runs in that range",
            at_times(twin),
            steady(twin).count()
        ),
        Origin::Simulated,
    );
    let live_longest = live.and_then(longest_of);
    Figure {
        about: "Each dot is a run of the thread that has 2 ms of every 8.".into(),
        charts: charts(twin, live),
        compared: vec![
            compared(
                "longest in training and data",
                text("6 to 8 ms at times", Origin::Quoted),
                span(seen, Origin::Simulated),
                live_longest.and_then(|longest| span(longest, Origin::Measured)),
                in_range,
            ),
            compared(
                "runs of 6 to 8 ms",
                None,
                count(at_times(twin), Origin::Simulated),
                live.and_then(|run| count(at_times(run), Origin::Measured)),
                Verdict::Alone,
            ),
        ],
        remarks: vec![
            "The period of 8 ms does not fit blocks of 12.5: a call that begins near the end of \
                 a slot is continued in the next, 6 ms later, unless the \
             spinner's quantum ends before."
                .into(),
        ],
        ..figure
    }
}
