//! Figures 10 to 13 and 16: how far apart the callbacks come that a thread of priority 31 asked for every millisecond.

use laxity_model::Span;

use super::Evidence;
use super::parts::{
    calls as in_words, compared, count, histogram, judge, median, ratio, share, span, within,
};
use super::quoted;
use super::readings::Readings;
use super::scene::{Driver, Scene};
use laxity_lab::report::{Cell, Chart, Compared, Figure, Origin, Table, Value, Verdict};

pub(super) const ABSENT: Scene = Scene::callback(Driver::Absent);
pub(super) const INTERRUPT: Scene = Scene::callback(Driver::Interrupt);
pub(super) const DEFERRED: Scene = Scene::callback(Driver::Deferred);
pub(super) const THREAD: Scene = Scene::callback(Driver::Thread24);
pub(super) const RESERVED: Scene = Scene::callback(Driver::Reserved);

/// Our criterion for the largest gaps, in percent.
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

/// The largest gap without a modem: two ticks of a clock that is put in.
fn without(evidence: &Evidence) -> Span {
    largest(evidence.twin(ABSENT))
}

/// The rows on the largest gap. The study prints the maximum of one run. The twin's is that of ten calls, and the median call's beside it, each with
/// a verdict. What equals the largest gap without a modem shows only the clock.
fn largest_rows(evidence: &Evidence, scene: Scene, paper: Span, origin: Origin) -> Vec<Compared> {
    let (calls, live) = (evidence.twin_calls(scene), evidence.live(scene));
    let origin_of = |seen: Span| match seen == without(evidence) {
        true => Origin::Charged,
        false => origin,
    };
    let row = |quantity: &str, seen: Span, live: Option<Span>| {
        let origin = origin_of(seen);
        compared(
            quantity,
            span(paper, Origin::Quoted),
            span(seen, origin),
            live.and_then(|gap| span(gap, Origin::Measured)),
            within(paper.as_nanos(), seen.as_nanos(), CRITERION, origin),
        )
    };
    let of_each = || calls.iter().map(largest);
    let most = of_each().max().unwrap_or(Span::ZERO);
    let most_live = live.iter().map(largest).max();
    if calls.len() == 1 {
        return vec![row("largest gap", most, most_live)];
    }
    let of = in_words(calls.len());
    let middle = median(of_each().collect());
    vec![
        row(&format!("largest gap, largest of {of}"), most, most_live),
        row(
            &format!("largest gap, median of {of}"),
            middle,
            largest_live(live),
        ),
    ]
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
    let of = in_words(calls.len());
    let caption = match scene.driver {
        Driver::Absent => "twin".to_owned(),
        _ => format!("twin, {of}"),
    };
    let mut charts: Vec<Chart> = vec![histogram(&caption, &all_gaps(calls), Span::ZERO)];
    if !live.is_empty() {
        charts.push(histogram("this machine", &all_gaps(live), LIVE_EDGE));
    }
    let wakeups = |runs: &[Readings]| runs.iter().map(|run| run.gaps.len() as u64).sum();
    let mut rows = largest_rows(evidence, scene, paper, origin);
    rows.push(compared(
        "wake-ups",
        count(quoted::WAKEUPS, Origin::Quoted),
        count(wakeups(calls), Origin::Charged),
        Some(wakeups(live))
            .filter(|n| *n > 0)
            .and_then(|n| count(n, Origin::Measured)),
        Verdict::Alone,
    ));
    let mut about = "Gaps between the callbacks that a thread of priority 31 asked for every \
             millisecond, in buckets of 50 µs; 30 s."
        .to_owned();
    if calls.len() > 1 {
        about = format!(
            "{about} The study's maximum is that of one run. How long the longest gap is depends on where the one call of 3.3 ms falls between two \
             ticks, so the twin makes {of}, each in another way to its clock, and both their largest and their median are compared."
        );
    }
    let mut remarks = Vec::new();
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
        about,
        charts,
        compared: rows,
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
        Origin::Charged,
    );
    let (twin, live) = (evidence.twin(ABSENT), evidence.live(ABSENT));
    let (paper, seen) = (quoted::NEAR_TWO_MS_PPM, near_two_ms_ppm(&gaps(twin)));
    let near = compared(
        "share near 2 ms",
        share(paper, Origin::Quoted),
        share(seen, Origin::Charged),
        (!live.is_empty())
            .then(|| near_two_ms_ppm(&all_gaps(live)))
            .and_then(|ppm| share(ppm, Origin::Measured)),
        within(u64::from(paper), u64::from(seen), 5, Origin::Charged),
    );
    figure.compared.push(near);
    figure.remarks.push(
        "The clock of 1024 Hz is put in; that callbacks then come one tick apart, and 2.4 % of them \
             two, is arithmetic."
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
    let gap = quoted::GAP_THREAD;
    let mut figure = figure_of(evidence, figure, THREAD, gap, Origin::Simulated);
    figure.compared.push(excess_row(evidence));
    figure.remarks.push(
        "In the twin the modem's thread delays the callback of priority 31 by nothing that shows: its largest gap is that without a modem. The 261 µs \
             that the study sees are not there; what took them the study does not say."
            .into(),
    );
    figure
}

/// By how much the largest gap beside THR 24 exceeds that without a modem.
fn excess_row(evidence: &Evidence) -> Compared {
    let over = |with: Span, without: Span| with.saturating_sub(without);
    let largest_of = |runs: &[Readings]| runs.iter().map(largest).max();
    let paper = over(quoted::GAP_THREAD, quoted::GAP_ABSENT);
    let with = largest_of(evidence.twin_calls(THREAD)).unwrap_or(Span::ZERO);
    let seen = over(with, without(evidence));
    let live = largest_of(evidence.live(THREAD)).zip(largest_of(evidence.live(ABSENT)));
    compared(
        "largest gap, how much longer than without a modem",
        span(paper, Origin::Quoted),
        span(seen, Origin::Simulated),
        live.and_then(|(with, without)| span(over(with, without), Origin::Measured)),
        within(
            paper.as_nanos(),
            seen.as_nanos(),
            CRITERION,
            Origin::Simulated,
        ),
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
        "three times as many, within a factor of two (our criterion)",
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
