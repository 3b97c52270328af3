//! Figures 1 to 4: the card's interrupts, what their handler takes, and the deferred call's share of it.

use laxity_devices::modem::Phase;
use laxity_model::Span;

use super::parts::{
    axis, compared, count, dots, durations, judge, limit, longest, mean, median, nanos, over_time,
    share, span, undisturbed, within,
};
use super::quoted;
use super::readings::{Readings, Timed};
use super::{DPC, Evidence, INT};
use laxity_lab::report::{Axis, Chart, Compared, Figure, Origin, Unit, Verdict};

/// An interval this close to one of the card's is no outlier: far more than a handler is ever held up in the twin.
const TOLERANCE: Span = Span::from_micros(500);

/// Each point of figure 3 covers so much (§6.2.3).
const WINDOW: Span = Span::from_micros(12_500);

/// The steady state of figure 3: the last of the trace (§6.2.3).
const STEADY: Span = Span::from_secs(5);

fn is_outlier(interval: &Timed) -> bool {
    let [long, short] = quoted::CONNECTED_INTERVALS;
    let usual = [
        quoted::ON_HOOK_INTERVAL,
        quoted::DIALING_INTERVAL,
        long,
        short,
    ];
    !interval.disturbed
        && usual
            .iter()
            .all(|usual| interval.took.as_nanos().abs_diff(usual.as_nanos()) > TOLERANCE.as_nanos())
}

fn outliers(run: &Readings) -> u64 {
    run.intervals.iter().filter(|i| is_outlier(i)).count() as u64
}

/// The median interval of a phase.
fn interval_in(run: &Readings, phase: Phase) -> Span {
    let of_phase = run.intervals.iter().filter(|interval| {
        !interval.disturbed && run.phase_at(interval.at.saturating_sub(interval.took)) == phase
    });
    median(of_phase.map(|interval| interval.took).collect())
}

/// The longest and the shortest usual interval once connected, each as the median of those nearer to it.
fn connected_intervals(run: &Readings) -> [Span; 2] {
    let middle = Span::from_micros(12_200);
    let usual = run.intervals.iter().filter(|interval| {
        !interval.disturbed
            && !is_outlier(interval)
            && run.phase_at(interval.at.saturating_sub(interval.took)) == Phase::Connected
    });
    let (long, short): (Vec<Span>, Vec<Span>) = usual
        .map(|interval| interval.took)
        .partition(|took| *took > middle);
    [median(long), median(short)]
}

fn elapsed_axis(label: &str) -> Axis {
    axis(label, Unit::Nanoseconds)
}

/// Figure 1.
pub(super) fn rate(evidence: &Evidence, figure: Figure) -> Figure {
    let twin = evidence.twin(INT);
    let live = evidence.live_one(INT);
    let chart = |caption: &str, run: &Readings| {
        let y = elapsed_axis("from one interrupt to the next");
        over_time(caption, y, vec![durations("interrupts", &run.intervals)])
    };
    let mut charts = vec![chart("twin", twin)];
    charts.extend(live.map(|run| chart("this machine", run)));
    let mut rows = vec![
        interval_row(
            "interval on hook",
            quoted::ON_HOOK_INTERVAL,
            twin,
            live,
            |r| interval_in(r, Phase::OnHook),
        ),
        interval_row(
            "interval while dialing",
            quoted::DIALING_INTERVAL,
            twin,
            live,
            |r| interval_in(r, Phase::Dialing),
        ),
    ];
    let [long, short] = quoted::CONNECTED_INTERVALS;
    rows.push(interval_row(
        "interval connected, long",
        long,
        twin,
        live,
        |r| connected_intervals(r)[0],
    ));
    rows.push(interval_row(
        "interval connected, short",
        short,
        twin,
        live,
        |r| connected_intervals(r)[1],
    ));
    rows.push(outlier_row(twin, live));
    rows.extend(phase_rows(twin, live));
    let mut remarks = vec![
        "PC 99 recommends interrupts every 3 to 16 ms; on hook they come faster.".into(),
        "The order of long and short blocks, two to one, is our reading: so they average 12.5 ms."
            .into(),
    ];
    let scattered = outliers(twin);
    if scattered != quoted::OUTLIERS {
        remarks.push(format!(
            "The study's card was programmed anew six times in a call, at moments that it does \
                 not print; the twin's call does it \
             {scattered} times, between its phases."
        ));
    }
    Figure {
        about: "Each dot is an interrupt of the card: how long after the one before it came. \
             Dial-up beside a spinner of priority 8; the signal \
                processing is in the handler."
            .into(),
        charts,
        compared: rows,
        remarks,
        ..figure
    }
}

fn outlier_row(twin: &Readings, live: Option<&Readings>) -> Compared {
    let scattered = outliers(twin);
    let verdict = judge(
        scattered == quoted::OUTLIERS,
        "six scattered points",
        &format!("{scattered} in the twin"),
        Origin::Simulated,
    );
    compared(
        "scattered points, one each time the card is programmed anew",
        count(quoted::OUTLIERS, Origin::Quoted),
        count(scattered, Origin::Simulated),
        live.and_then(|run| count(outliers(run), Origin::Measured)),
        verdict,
    )
}

fn interval_row(
    quantity: &str,
    paper: Span,
    twin: &Readings,
    live: Option<&Readings>,
    of: impl Fn(&Readings) -> Span,
) -> Compared {
    let seen = of(twin);
    compared(
        quantity,
        span(paper, Origin::Quoted),
        span(seen, Origin::Charged),
        live.and_then(|run| span(of(run), Origin::Measured)),
        within(paper.as_nanos(), seen.as_nanos(), 1, Origin::Charged),
    )
}

/// When the phases begin: what lasts that long is chosen, what follows from it comes out.
fn phase_rows(twin: &Readings, live: Option<&Readings>) -> [Compared; 3] {
    let lasting = |run: &Readings, from, to| {
        let (from, to) = (run.began(from)?, run.began(to)?);
        Some(to.saturating_sub(from))
    };
    let row = |quantity: &str, paper: Span, from: Option<Phase>, to: Phase| {
        let of = |run: &Readings| match from {
            Some(from) => lasting(run, from, to),
            None => run.began(to),
        };
        let seen = of(twin);
        let verdict = seen.map_or(Verdict::Disagrees("never".into()), |seen| {
            within(paper.as_nanos(), seen.as_nanos(), 5, Origin::Calibrated)
        });
        compared(
            quantity,
            span(paper, Origin::Quoted),
            seen.and_then(|seen| span(seen, Origin::Calibrated)),
            live.and_then(of)
                .and_then(|seen| span(seen, Origin::Calibrated)),
            verdict,
        )
    };
    [
        row(
            "on hook",
            quoted::ON_HOOK,
            Some(Phase::OnHook),
            Phase::Dialing,
        ),
        row(
            "dialing and waiting",
            quoted::DIALING,
            Some(Phase::Dialing),
            Phase::Training,
        ),
        row(
            "connected after",
            quoted::CONNECTED_AFTER,
            None,
            Phase::Connected,
        ),
    ]
}

/// The calls of a run that is connected or about to be.
fn steady(run: &Readings) -> Vec<Span> {
    let calls = run.handler.iter().filter(|timed| {
        !timed.disturbed && matches!(run.phase_at(timed.at), Phase::Training | Phase::Connected)
    });
    calls.map(|timed| timed.took).collect()
}

/// Figure 2.
pub(super) fn handler(evidence: &Evidence, figure: Figure) -> Figure {
    let twin = evidence.twin(INT);
    let live = evidence.live_one(INT);
    let chart = |caption: &str, run: &Readings| {
        let y = elapsed_axis("elapsed in the handler");
        let mut chart = over_time(caption, y, vec![durations("handler", &run.handler)]);
        let pc99 = nanos(quoted::PC99_INTERRUPT);
        chart.lines.push(limit("PC 99", run.length, pc99));
        chart
    };
    let mut charts = vec![chart("twin", twin)];
    charts.extend(live.map(|run| chart("this machine", run)));
    let typical = median(steady(twin));
    let worst = longest(&twin.handler);
    let rows = vec![
        compared(
            "typical",
            span(quoted::TYPICAL_PROCESSING, Origin::Quoted),
            span(typical, Origin::Charged),
            live.and_then(|run| span(median(steady(run)), Origin::Calibrated)),
            within(
                quoted::TYPICAL_PROCESSING.as_nanos(),
                typical.as_nanos(),
                5,
                Origin::Charged,
            ),
        ),
        compared(
            "worst case while connecting",
            span(quoted::WORST_PROCESSING, Origin::Quoted),
            span(worst, Origin::Charged),
            live.and_then(|run| span(longest(&run.handler), Origin::Measured)),
            within(
                quoted::WORST_PROCESSING.as_nanos(),
                worst.as_nanos(),
                5,
                Origin::Charged,
            ),
        ),
    ];
    Figure {
        about: "Each dot is one run of the handler, from its first to its last instruction, \
             with the signal processing inside (INT)."
            .into(),
        charts,
        compared: rows,
        remarks: vec![
            "Both figures are put into the twin: that they come out again shows only that \
                 nothing is lost on the way. Which call takes \
             3.3 ms is our reading: the one that recognises the answer."
                .into(),
            "PC 99 allows 100 µs with interrupts off; 3.3 ms is 33 times that.".into(),
        ],
        ..figure
    }
}

/// The handler's share of each window, parts per million; a run of the handler may lie in two.
fn shares(run: &Readings) -> Vec<(Span, u64)> {
    let windows = run.length / WINDOW;
    let mut used = vec![0_u64; windows as usize];
    for timed in &run.handler {
        let mut from = timed.at.saturating_sub(timed.took);
        while from < timed.at {
            let window = from / WINDOW;
            let to = (WINDOW * (window + 1)).min(timed.at);
            if let Some(used) = used.get_mut(window as usize) {
                *used += to.saturating_sub(from).as_nanos();
            }
            from = to;
        }
    }
    let shares = (0..windows).zip(used);
    shares
        .map(|(window, used)| (WINDOW * window, used * 1_000_000 / WINDOW.as_nanos()))
        .collect()
}

/// The mean share of the last seconds of a connected modem.
fn steady_share_ppm(run: &Readings) -> u32 {
    let connected = run.began(Phase::Connected).unwrap_or(run.length);
    let from = run.length.saturating_sub(STEADY).max(connected);
    let calls = run.handler.iter().filter(|timed| timed.at > from);
    let used: u64 = calls.map(|timed| timed.took.as_nanos()).sum();
    let span = run.length.saturating_sub(from).as_nanos();
    let ppm = (used * 1_000_000).checked_div(span).unwrap_or(0);
    u32::try_from(ppm).unwrap_or(u32::MAX)
}

/// Figure 3.
pub(super) fn utilization(evidence: &Evidence, figure: Figure) -> Figure {
    let twin = evidence.twin(INT);
    let live = evidence.live_one(INT);
    let chart = |caption: &str, run: &Readings| {
        let windows = shares(run)
            .into_iter()
            .filter(|(_, share)| *share > 0)
            .map(|(at, share)| (nanos(at), share as i64));
        let y = Axis {
            range: Some((0, 300_000)),
            ..axis("share of the processor in 12.5 ms", Unit::PartsPerMillion)
        };
        let mut chart = over_time(caption, y, vec![dots("12.5 ms", windows.collect())]);
        let quoted = i64::from(quoted::CPU_SHARE_PPM);
        chart.lines.push(limit("14.7 %", run.length, quoted));
        chart
    };
    let mut charts = vec![chart("twin", twin)];
    charts.extend(live.map(|run| chart("this machine", run)));
    let seen = steady_share_ppm(twin);
    let paper = quoted::CPU_SHARE_PPM;
    let row = compared(
        "share once connected: the last five seconds",
        share(paper, Origin::Quoted),
        share(seen, Origin::Charged),
        live.and_then(|run| share(steady_share_ppm(run), Origin::Calibrated)),
        within(u64::from(paper), u64::from(seen), 3, Origin::Charged),
    );
    Figure {
        about: "Each dot is the share of the processor that the handler takes in 12.5 ms (INT). \
             A window may hold parts of two runs, as blocks are 11.25 \
                and 13.125 ms apart."
            .into(),
        charts,
        compared: vec![row],
        remarks: vec![
            "The twin is charged 1.84 ms a call. Live, so many receivers decode the same \
                 samples that the driver takes 14.7 %."
                .into(),
        ],
        ..figure
    }
}

/// Figure 4.
pub(super) fn handler_and_deferred(evidence: &Evidence, figure: Figure) -> Figure {
    let twin = evidence.twin(DPC);
    let live = evidence.live_one(DPC);
    let mut charts = Vec::from(two_charts("twin", twin));
    charts.extend(
        live.into_iter()
            .flat_map(|run| two_charts("this machine", run)),
    );
    let average = mean(&undisturbed(&twin.handler));
    let most = longest(&twin.handler);
    let handler_mean = quoted::SHORT_HANDLER_MEAN;
    let handler_max = quoted::SHORT_HANDLER_MAX;
    let at_most = judge(
        most <= handler_max,
        "at most 16 µs",
        &format!("{most}"),
        Origin::Charged,
    );
    let in_handler = longest(&evidence.twin(INT).handler);
    let deferred = longest(&twin.deferred);
    let rows = vec![
        compared(
            "handler, mean",
            span(handler_mean, Origin::Quoted),
            span(average, Origin::Simulated),
            live.and_then(|run| span(mean(&undisturbed(&run.handler)), Origin::Measured)),
            within(
                handler_mean.as_nanos(),
                average.as_nanos(),
                15,
                Origin::Simulated,
            ),
        ),
        compared(
            "handler, longest",
            span(handler_max, Origin::Quoted),
            span(most, Origin::Charged),
            live.and_then(|run| span(longest(&run.handler), Origin::Measured)),
            at_most,
        ),
        compared(
            "deferred call, longest: as INT's handler",
            span(quoted::WORST_PROCESSING, Origin::Quoted),
            span(deferred, Origin::Charged),
            live.and_then(|run| span(longest(&run.deferred), Origin::Measured)),
            within(
                in_handler.as_nanos(),
                deferred.as_nanos(),
                5,
                Origin::Charged,
            ),
        ),
    ];
    Figure {
        about: "The DPC version: above, each run of the handler, which only queues a deferred \
             call; below, each run of that call, with the signal processing."
            .into(),
        charts,
        compared: rows,
        remarks: vec![
            "The study's 5.4 µs are put in as the handler's own work. What the twin's machine takes to enter an interrupt, and a clock \
                 tick that comes meanwhile, are assumed and come on top: so the mean is too long."
                .into(),
            "PC 99 allows 500 µs for all deferred calls that are queued.".into(),
        ],
        ..figure
    }
}

fn two_charts(host: &str, run: &Readings) -> [Chart; 2] {
    let y = elapsed_axis("elapsed in the handler");
    let above = over_time(
        &format!("{host}: handler"),
        y,
        vec![durations("handler", &run.handler)],
    );
    let y = elapsed_axis("elapsed in the deferred call");
    let calls = vec![durations("deferred call", &run.deferred)];
    let mut below = over_time(&format!("{host}: deferred call"), y, calls);
    let pc99 = nanos(quoted::PC99_DEFERRED);
    below.lines.push(limit("PC 99", run.length, pc99));
    [above, below]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed(at_us: u64, took_us: u64) -> Timed {
        Timed {
            at: Span::from_micros(at_us),
            took: Span::from_micros(took_us),
            disturbed: false,
        }
    }

    #[test]
    fn windows_share_a_run_that_lies_in_two_and_lose_nothing() {
        let run = Readings {
            length: Span::from_millis(50),
            // The second lies 1 ms before and 2 ms after 25 ms.
            handler: vec![timed(4_000, 1_000), timed(27_000, 3_000)],
            ..Readings::default()
        };
        let shares: Vec<u64> = shares(&run).into_iter().map(|(_, share)| share).collect();
        assert_eq!(shares, [80_000, 80_000, 160_000, 0]);
    }

    #[test]
    fn a_point_is_scattered_if_no_block_lasts_so_long() {
        let usual = [2_500, 12_500, 13_125, 11_250, 12_520];
        assert!(usual.iter().all(|took| !is_outlier(&timed(0, *took))));
        assert!(
            [15_900, 19_400, 5_000]
                .iter()
                .all(|took| is_outlier(&timed(0, *took)))
        );
        let disturbed = Timed {
            disturbed: true,
            ..timed(0, 15_900)
        };
        assert!(!is_outlier(&disturbed));
    }
}
