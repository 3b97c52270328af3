//! Pieces of which figures are made: charts of dots, histograms, cells, and comparisons with a stated criterion.

use std::collections::BTreeMap;

use laxity_model::Span;

use super::quoted;
use super::readings::{Call, Timed};
use laxity_lab::report::{Axis, Cell, Chart, Compared, Mark, Origin, Series, Unit, Value, Verdict};

/// Width of a histogram's buckets, as the axis has it.
const BUCKET_NS: i64 = quoted::BUCKET.as_nanos() as i64;

/// So many calls, in words.
pub(super) fn calls(count: usize) -> String {
    match count {
        1 => "one call".into(),
        10 => "ten calls".into(),
        many => format!("{many} calls"),
    }
}

pub(super) fn nanos(span: Span) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

pub(super) fn span(span: Span, origin: Origin) -> Option<Cell> {
    let value = Value::Span(span);
    Some(Cell { value, origin })
}

pub(super) fn count(count: u64, origin: Origin) -> Option<Cell> {
    let value = Value::Count(count);
    Some(Cell { value, origin })
}

pub(super) fn share(ppm: u32, origin: Origin) -> Option<Cell> {
    let value = Value::Share(ppm);
    Some(Cell { value, origin })
}

pub(super) fn ratio(thousandths: u64, origin: Origin) -> Option<Cell> {
    let value = Value::Ratio(thousandths);
    Some(Cell { value, origin })
}

pub(super) fn text(text: &str, origin: Origin) -> Option<Cell> {
    let value = Value::Text(text.into());
    Some(Cell { value, origin })
}

/// A row that compares the study's figure with the twin's; `live` stands beside them and is not judged: it is another machine.
pub(super) fn compared(
    quantity: &str,
    paper: Option<Cell>,
    twin: Option<Cell>,
    live: Option<Cell>,
    verdict: Verdict,
) -> Compared {
    Compared {
        quantity: quantity.into(),
        paper,
        twin,
        predicted: None,
        live,
        verdict,
    }
}

/// Whether the twin's value is within so many percent of the study's. What was put in or chosen is consistent at best.
pub(super) fn within(paper: u64, twin: u64, percent: u64, origin: Origin) -> Verdict {
    let (paper, twin) = (i128::from(paper), i128::from(twin));
    let permille = (twin - paper) * 1_000 / paper.max(1);
    let sign = if permille < 0 { '-' } else { '+' };
    let off = permille.unsigned_abs();
    let difference = format!("{sign}{}.{} %", off / 10, off % 10);
    let agrees = (twin - paper).abs() * 100 <= paper * i128::from(percent);
    judge(agrees, &format!("within {percent} %"), &difference, origin)
}

/// A verdict by any criterion, with what was seen.
pub(super) fn judge(agrees: bool, criterion: &str, seen: &str, origin: Origin) -> Verdict {
    match (agrees, origin) {
        (false, _) => Verdict::Disagrees(format!("not {criterion}: {seen}")),
        (true, Origin::Charged) => Verdict::Consistent(format!("{criterion}: {seen}; put in")),
        (true, Origin::Calibrated) => Verdict::Consistent(format!("{criterion}: {seen}; chosen")),
        (true, _) => Verdict::Agrees(format!("{criterion}: {seen}")),
    }
}

pub(super) fn time_axis() -> Axis {
    Axis {
        label: "time since the modem was started".into(),
        unit: Unit::Nanoseconds,
        logarithmic: false,
        range: None,
    }
}

pub(super) fn axis(label: &str, unit: Unit) -> Axis {
    Axis {
        label: label.into(),
        unit,
        logarithmic: false,
        range: None,
    }
}

/// Dots over the time of a run.
pub(super) fn over_time(caption: &str, y: Axis, series: Vec<Series>) -> Chart {
    Chart {
        caption: caption.into(),
        x: time_axis(),
        y,
        series,
        lines: Vec::new(),
    }
}

pub(super) fn dots(name: &str, points: Vec<(i64, i64)>) -> Series {
    Series {
        name: name.into(),
        mark: Mark::Dots,
        points,
    }
}

/// Each time as a dot; those that were disturbed are left out.
pub(super) fn durations(name: &str, timed: &[Timed]) -> Series {
    let fair = timed.iter().filter(|timed| !timed.disturbed);
    let points = fair.map(|timed| (nanos(timed.at), nanos(timed.took)));
    dots(name, points.collect())
}

/// Samples pending after each call; those of disturbed calls are left out.
pub(super) fn pending(name: &str, calls: &[Call]) -> Series {
    let fair = calls.iter().filter(|call| !call.timed.disturbed);
    let points = fair.map(|call| (nanos(call.timed.at), call.pending as i64));
    dots(name, points.collect())
}

/// A histogram with buckets of 50 µs, one of which begins at `edge`, and a logarithmic axis of counts, as the study draws them.
pub(super) fn histogram(caption: &str, gaps: &[Span], edge: Span) -> Chart {
    let edge = nanos(edge);
    let mut buckets = BTreeMap::<i64, i64>::new();
    for gap in gaps {
        let bucket = (nanos(*gap) - edge).div_euclid(BUCKET_NS) * BUCKET_NS + edge;
        *buckets.entry(bucket).or_default() += 1;
    }
    let bars = Series {
        name: "wake-ups".into(),
        mark: Mark::Bars { width: BUCKET_NS },
        points: buckets.into_iter().collect(),
    };
    Chart {
        caption: caption.into(),
        x: Axis {
            range: Some((0, 6_000_000)),
            ..axis("from one callback to the next", Unit::Nanoseconds)
        },
        y: Axis {
            logarithmic: true,
            ..axis("wake-ups", Unit::Count)
        },
        series: vec![bars],
        lines: Vec::new(),
    }
}

/// A limit across a chart over time.
pub(super) fn limit(name: &str, until: Span, at: i64) -> (String, (i64, i64), (i64, i64)) {
    (name.into(), (0, at), (nanos(until), at))
}

/// The longest; zero if there is none.
pub(super) fn longest<'a>(timed: impl IntoIterator<Item = &'a Timed>) -> Span {
    let fair = timed.into_iter().filter(|timed| !timed.disturbed);
    fair.map(|timed| timed.took).max().unwrap_or(Span::ZERO)
}

/// The median; zero if there is none.
pub(super) fn median(mut spans: Vec<Span>) -> Span {
    spans.sort_unstable();
    let middle = spans.len().saturating_sub(1) / 2;
    spans.get(middle).copied().unwrap_or(Span::ZERO)
}

/// The mean, rounded down; zero if there is none.
pub(super) fn mean(spans: &[Span]) -> Span {
    let sum: u64 = spans.iter().map(|span| span.as_nanos()).sum();
    Span::from_nanos(sum.checked_div(spans.len() as u64).unwrap_or(0))
}

/// The times of what was not disturbed.
pub(super) fn undisturbed(timed: &[Timed]) -> Vec<Span> {
    let fair = timed.iter().filter(|timed| !timed.disturbed);
    fair.map(|timed| timed.took).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_counts_every_gap_once_wherever_its_edges_are() {
        let gaps: Vec<Span> = (0..1_000).map(|n| Span::from_micros(n * 7)).collect();
        for edge in [Span::ZERO, Span::from_micros(25)] {
            let chart = histogram("", &gaps, edge);
            let points = &chart.series[0].points;
            assert_eq!(points.iter().map(|(_, count)| count).sum::<i64>(), 1_000);
            let edges = points.iter().map(|(low, _)| low - nanos(edge));
            assert!(edges.into_iter().all(|low| low % BUCKET_NS == 0));
        }
    }

    #[test]
    fn a_verdict_knows_what_was_put_in() {
        let near = |origin| within(1_000, 1_149, 15, origin);
        assert_eq!(
            near(Origin::Simulated),
            Verdict::Agrees("within 15 %: +14.9 %".into())
        );
        assert!(matches!(near(Origin::Charged), Verdict::Consistent(_)));
        assert!(matches!(near(Origin::Calibrated), Verdict::Consistent(_)));
        let far = within(1_000, 849, 15, Origin::Charged);
        assert_eq!(far, Verdict::Disagrees("not within 15 %: -15.1 %".into()));
    }
}
