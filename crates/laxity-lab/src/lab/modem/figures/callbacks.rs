//! Figures 10 to 13 and 16: how far apart the callbacks come that a thread of priority 31 asked for every millisecond.

use laxity_model::Span;

use super::Evidence;
use super::parts::{compared, count, histogram, judge, median, ratio, share, span, within};
use super::quoted;
use super::readings::Readings;
use super::scene::{Driver, Scene};
use crate::lab::sheet::{Cell, Chart, Compared, Figure, Origin, Table, Value, Verdict};

pub(super) const ABSENT: Scene = Scene::callback(Driver::Absent);
pub(super) const INTERRUPT: Scene = Scene::callback(Driver::Interrupt);
pub(super) const DEFERRED: Scene = Scene::callback(Driver::Deferred);
pub(super) const THREAD: Scene = Scene::callback(Driver::Thread24);
pub(super) const RESERVED: Scene = Scene::callback(Driver::Reserved);

/// The criterion for the largest gaps, in percent.
const CRITERION: u64 = 15;

/// The live buckets' edges lie so that 1 ms, at which most gaps are, is in the middle of one.
const LIVE_EDGE: Span = Span::from_micros(25);

fn gaps(run: &Readings) -> Vec<Span> {
    super::parts::undisturbed(&run.gaps)
}

fn all_gaps(runs: &[Readings]) -> Vec<Span> {
    runs.iter().flat_map(gaps).collect()
}

fn largest(run: &Readings) -> Span {
    super::parts::longest(&run.gaps)
}

/// The median of the runs' largest gaps.
fn largest_live(runs: &[Readings]) -> Option<Span> {
    (!runs.is_empty()).then(|| median(runs.iter().map(largest).collect()))
}

/// Share of gaps within 50 µs of two ticks, parts per million.
fn near_two_ms_ppm(gaps: &[Span]) -> u32 {
    let range = Span::from_micros(1_900)..=Span::from_micros(2_050);
    let near = gaps.iter().filter(|gap| range.contains(gap)).count() as u64;
    let ppm = (near * 1_000_000).checked_div(gaps.len() as u64);
    ppm.map_or(0, |ppm| u32::try_from(ppm).unwrap_or(u32::MAX))
}

/// How many gaps are one bucket of 50 µs from the usual one, which is a tick or a millisecond, on either side.
fn one_bucket_off(gaps: &[Span]) -> u64 {
    let usual = median(gaps.to_vec()).as_nanos();
    let half = quoted::BUCKET.as_nanos() / 2;
    let off = gaps.iter().filter(|gap| {
        let distance = gap.as_nanos().abs_diff(usual);
        (half..3 * half).contains(&distance)
    });
    off.count() as u64
}

/// How many times `part` is in `whole`, in thousandths; `None` where it is not there.
fn times(whole: u64, part: u64) -> Option<u64> {
    (whole * 1_000).checked_div(part)
}

/// What all these figures have in common. `origin` tells whether something in the twin was chosen for this figure.
fn figure_of(
    evidence: &Evidence,
    figure: Figure,
    scene: Scene,
    paper: Span,
    origin: Origin,
) -> Figure {
    let (calls, live) = (evidence.twin_calls(scene), evidence.live(scene));
    let largest_of_each = || calls.iter().map(largest);
    let seen = largest_of_each().max().unwrap_or(Span::ZERO);
    let caption = format!("twin, {} call(s)", calls.len());
    let mut charts: Vec<Chart> = vec![histogram(&caption, &all_gaps(calls), Span::ZERO)];
    if !live.is_empty() {
        charts.push(histogram("this machine", &all_gaps(live), LIVE_EDGE));
    }
    let wakeups = |runs: &[Readings]| runs.iter().map(|run| run.gaps.len() as u64).sum();
    let largest_row = compared(
        "largest gap of all calls",
        span(paper, Origin::Quoted),
        span(seen, origin),
        live.iter()
            .map(largest)
            .max()
            .and_then(|gap| span(gap, Origin::Measured)),
        within(paper.as_nanos(), seen.as_nanos(), CRITERION, origin),
    );
    let median_row = compared(
        "largest gap of a call, median",
        None,
        span(median(largest_of_each().collect()), origin),
        largest_live(live).and_then(|gap| span(gap, Origin::Measured)),
        Verdict::Alone,
    );
    let wakeups_row = compared(
        "wake-ups",
        count(quoted::WAKEUPS, Origin::Quoted),
        count(wakeups(calls), Origin::Charged),
        Some(wakeups(live))
            .filter(|n| *n > 0)
            .and_then(|n| count(n, Origin::Measured)),
        Verdict::Alone,
    );
    let mut remarks = Vec::new();
    if calls.len() > 1 {
        remarks.push(format!(
            "The study prints one maximum of 30,000 wake-ups. How long the longest gap is \
                 depends on where the one call of 3.3 ms falls between two ticks, \
                 so the twin makes {} calls, each in another way to its clock: the longest gap \
                 of all is compared, the median call's stands beside it.",
            calls.len()
        ));
    }
    if !live.is_empty() {
        remarks.push(
            "Live: three rounds unless asked otherwise, stretches left out in which the machine \
                 itself stood still. It is another machine, whose timers \
             wake threads to the microsecond; INT and DPC are emulated by threads above the \
                  callback's."
                .into(),
        );
    }
    Figure {
        about: "Gaps between the callbacks that a thread of priority 31 asked for every \
             millisecond, in buckets of 50 µs; 30 s."
            .into(),
        charts,
        compared: vec![largest_row, median_row, wakeups_row],
        tables: rounds(live).into_iter().collect(),
        remarks,
        ..figure
    }
}

/// The live rounds, one by one.
fn rounds(runs: &[Readings]) -> Option<Table> {
    let columns = [
        "round",
        "wake-ups",
        "p99",
        "p99.9",
        "largest",
        "largest of all",
        "disturbed",
    ];
    let cell = |value| {
        Some(Cell {
            value,
            origin: Origin::Measured,
        })
    };
    let row = |(index, run): (usize, &Readings)| {
        let mut fair = gaps(run);
        fair.sort_unstable();
        let at = |ppm: usize| {
            let rank = (fair.len() * ppm).div_ceil(1_000_000).saturating_sub(1);
            fair.get(rank).copied().unwrap_or(Span::ZERO)
        };
        let of_all = run.gaps.iter().map(|gap| gap.took).max();
        let disturbed = run.disturbed_ppm.unwrap_or(0);
        vec![
            cell(Value::Count(index as u64 + 1)),
            cell(Value::Count(run.gaps.len() as u64)),
            cell(Value::Span(at(990_000))),
            cell(Value::Span(at(999_000))),
            cell(Value::Span(largest(run))),
            cell(Value::Span(of_all.unwrap_or(Span::ZERO))),
            cell(Value::Share(u32::try_from(disturbed).unwrap_or(u32::MAX))),
        ]
    };
    (!runs.is_empty()).then(|| Table {
        caption: "Rounds on this machine; all but \"largest of all\" without disturbed stretches"
            .into(),
        columns: columns.map(String::from).into(),
        rows: runs.iter().enumerate().map(row).collect(),
    })
}

/// Figure 10.
pub(super) fn absent(evidence: &Evidence, figure: Figure) -> Figure {
    let mut figure = figure_of(
        evidence,
        figure,
        ABSENT,
        quoted::GAP_ABSENT,
        Origin::Simulated,
    );
    let (twin, live) = (evidence.twin(ABSENT), evidence.live(ABSENT));
    let (paper, seen) = (quoted::NEAR_TWO_MS_PPM, near_two_ms_ppm(&gaps(twin)));
    let near = compared(
        "share near 2 ms",
        share(paper, Origin::Quoted),
        share(seen, Origin::Simulated),
        (!live.is_empty())
            .then(|| near_two_ms_ppm(&all_gaps(live)))
            .and_then(|ppm| share(ppm, Origin::Measured)),
        within(u64::from(paper), u64::from(seen), 5, Origin::Simulated),
    );
    figure.compared.push(near);
    figure.remarks.push(
        "The clock of 1024 Hz is put in; that 2.4 % of the callbacks then come two ticks apart \
             follows from it."
            .into(),
    );
    figure
}

/// Figure 11.
pub(super) fn interrupt(evidence: &Evidence, figure: Figure) -> Figure {
    let gap = quoted::GAP_INTERRUPT;
    let mut figure = figure_of(evidence, figure, INTERRUPT, gap, Origin::Calibrated);
    figure.remarks.push(
        "That a tick which comes while a handler runs wakes nobody was chosen so that this \
             maximum is a tick longer than figure 12's: no result."
            .into(),
    );
    figure
}

/// Figure 12.
pub(super) fn deferred(evidence: &Evidence, figure: Figure) -> Figure {
    figure_of(
        evidence,
        figure,
        DEFERRED,
        quoted::GAP_DEFERRED,
        Origin::Simulated,
    )
}

/// Figure 13.
pub(super) fn thread(evidence: &Evidence, figure: Figure) -> Figure {
    figure_of(
        evidence,
        figure,
        THREAD,
        quoted::GAP_THREAD,
        Origin::Simulated,
    )
}

/// Figure 16.
pub(super) fn reserved(evidence: &Evidence, figure: Figure) -> Figure {
    let gap = quoted::GAP_RESERVED;
    let mut figure = figure_of(evidence, figure, RESERVED, gap, Origin::Calibrated);
    figure.remarks.push(
        "That a thread of priority 31 ranks above a reservation was chosen to agree with this \
             figure."
            .into(),
    );
    figure.compared.extend(off_rows(evidence));
    figure.remarks.push(
        "In the twin neither a thread nor a slot moves a callback of priority 31 by as much as \
             half a bucket: what the machine itself takes (some microseconds a switch) \
             is assumed, and too little for what the study sees at 50 µs."
            .into(),
    );
    figure
}

/// The callbacks that come one bucket off.
fn off_rows(evidence: &Evidence) -> [Compared; 2] {
    let [res, thr] =
        [RESERVED, THREAD].map(|scene| one_bucket_off(&all_gaps(evidence.twin_calls(scene))));
    let live = [RESERVED, THREAD].map(|scene| one_bucket_off(&all_gaps(evidence.live(scene))));
    let has_live = !evidence.live(RESERVED).is_empty();
    let seen = times(res, thr);
    let verdict = judge(
        seen.is_some_and(|seen| (1_500..=6_000).contains(&seen)),
        "three times as many, within a factor of two",
        &format!("RES {res}, THR {thr}"),
        Origin::Simulated,
    );
    let ratio_row = compared(
        "callbacks one bucket off 1 ms, against THR 24",
        ratio(quoted::ONE_BUCKET_OFF_RATIO, Origin::Quoted),
        seen.and_then(|seen| ratio(seen, Origin::Simulated)),
        times(live[0], live[1])
            .filter(|_| has_live)
            .and_then(|seen| ratio(seen, Origin::Measured)),
        verdict,
    );
    let count_row = compared(
        "callbacks one bucket off 1 ms",
        None,
        count(res, Origin::Simulated),
        Some(live[0])
            .filter(|_| has_live)
            .and_then(|n| count(n, Origin::Measured)),
        Verdict::Alone,
    );
    [ratio_row, count_row]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bucket_off_is_25_to_75_us_from_the_usual_gap() {
        let tick = Span::from_micros(976);
        let mut gaps = vec![tick; 10];
        assert_eq!(one_bucket_off(&gaps), 0);
        gaps.extend([952, 951, 901, 900, 1_000, 1_001, 1_050, 1_051].map(Span::from_micros));
        // 951 below, 1,001 and 1,050 above.
        assert_eq!(one_bucket_off(&gaps), 3);
    }

    #[test]
    fn two_ticks_are_near_two_milliseconds() {
        let mut gaps = vec![Span::from_micros(976); 99];
        gaps.push(Span::from_micros(1_953));
        assert_eq!(near_two_ms_ppm(&gaps), 10_000);
        assert_eq!(near_two_ms_ppm(&[]), 0);
    }
}
