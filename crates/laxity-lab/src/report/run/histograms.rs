//! The histograms of a variant: linear values, logarithmic counts, so that the one worst case shows beside ten thousand good ones
//! (the way OSADL draws wake-up latencies).

use laxity_model::verify::contract::Quantity;

use super::apart::{as_told, quantity};
use crate::evidence::histogram::HistogramJson;
use crate::evidence::results::{RunResults, VariantResults};
use crate::evidence::subjects::{DeviceFigures, is_cothread, label};
use crate::report::cells::coordinate;
use crate::report::scale::{alone, step};
use crate::report::{Axis, Chart, Series, Unit};
use crate::scenario::kinds::FRAME_INTERVAL;

/// Bars in a picture.
const BARS: u64 = 73;

/// The scales that all variants share, so that their pictures compare.
pub(super) struct Limits {
    gap: u64,
    response: u64,
    interval: u64,
    processing: u64,
    pending: u64,
}

impl Limits {
    pub(super) fn of(results: &RunResults) -> Self {
        let variants = results.variants.iter();
        let device = |of: fn(&DeviceFigures) -> Option<u64>| {
            let devices = variants.clone().flat_map(VariantResults::each_device);
            shared_limit(devices.filter_map(|(_, device)| of(device)))
        };
        let tasks = variants.clone().flat_map(VariantResults::tasks);
        let gaps = tasks.clone();
        let gaps = gaps.filter_map(|(_, task)| task.cothread_gap_ns.as_ref()?.all.max);
        let responses = tasks.filter_map(|(task, _)| quantity(task, Quantity::RESPONSE_TIME)?.max);
        let flows = variants.clone().flat_map(VariantResults::flows);
        let intervals = flows.filter_map(|flow| quantity(flow, FRAME_INTERVAL)?.max);
        Self {
            gap: shared_limit(gaps),
            response: shared_limit(responses),
            interval: shared_limit(intervals),
            processing: device(|device| device.processing_ns.max),
            pending: device(|device| device.samples_pending.max),
        }
    }
}

/// The scale that several histograms share: their largest value, unless that is more than twice the median of the largest.
/// At least 1.
fn shared_limit(maxima: impl Iterator<Item = u64>) -> u64 {
    let mut maxima: Vec<_> = maxima.collect();
    maxima.sort_unstable();
    let largest = maxima.last().copied().unwrap_or(1);
    let median = maxima.get(maxima.len() / 2).copied().unwrap_or(1);
    let enough = coordinate(largest.min(median.saturating_mul(2))).saturating_add(1);
    step(0, enough, 1).unsigned_abs()
}

/// The pictures of all that was seen in a variant.
pub(super) fn of(variant: &VariantResults, limits: &Limits) -> Vec<Chart> {
    let mut charts = Vec::new();
    let several = variant.periodic().count();
    for (subject, task) in variant.tasks() {
        let name = &subject.name;
        if let Some(gap) = &task.cothread_gap_ns {
            let control = task.control_gap_ns.as_ref().map(|control| &control.all);
            let title = if is_cothread(name) {
                format!("{}Co-thread gap", label(name, several))
            } else {
                format!("{name}: gap between wake-ups")
            };
            let mut chart = chart(&title, (&gap.all, control), limits.gap);
            if control.is_some() {
                // Or its colour would be the only one without a name.
                chart.series[0].name.clone_from(&variant.name);
            }
            charts.push(chart);
        }
        if let Some(response) = quantity(subject, Quantity::RESPONSE_TIME) {
            let title = format!("{name}: response, wall time");
            charts.push(chart(&title, (response, None), limits.response));
        }
    }
    for flow in variant.flows() {
        if let Some(interval) = quantity(flow, FRAME_INTERVAL) {
            let title = format!("{}: interval between frames", flow.name);
            charts.push(chart(&title, (interval, None), limits.interval));
        }
    }
    for (whose, device) in variant.each_device() {
        let (processing, pending) = (&device.processing_ns, &device.samples_pending);
        let title = format!("{whose}Processing, wall time");
        charts.push(chart(&title, (processing, None), limits.processing));
        let title = format!("{whose}Samples pending");
        charts.push(chart(&title, (pending, None), limits.pending));
    }
    charts
}

/// A histogram up to `shared`, with the outline of its control. What is beyond that scale is told in the picture.
fn chart(
    title: &str,
    (histogram, control): (&HistogramJson, Option<&HistogramJson>),
    shared: u64,
) -> Chart {
    // Where most values are beyond the shared scale, the picture would show nothing.
    let (limit, note) = match (histogram.p50, histogram.max) {
        (Some(p50), Some(max)) if p50 >= shared => {
            (shared_limit([max].into_iter()), " (scale of its own)")
        }
        _ => (shared, ""),
    };
    let unit = match histogram.unit.as_str() {
        "ns" => Unit::Nanoseconds,
        _ => Unit::Count,
    };
    let width = limit.div_ceil(BARS);
    let binned = |name: &str, histogram: &HistogramJson| {
        Series::counted(name, width, histogram.buckets.iter().copied())
    };
    let bars = binned("", histogram);
    let counts = bars.points.iter().map(|(_, count)| *count);
    let tallest = counts.max().unwrap_or(1);
    let mut series = vec![bars];
    series.extend(control.map(|control| binned("control", control).outlined()));
    let mut y = Axis::count("");
    y.logarithmic = true;
    let name = match unit {
        Unit::Nanoseconds => "",
        _ => &histogram.unit,
    };
    let mut x = Axis::new(name, unit);
    x.range = Some((0, coordinate(limit)));
    let mut chart = Chart::new(caption(title, note, histogram, unit), (x, y), series);
    if let Some(p99) = histogram.told_p99().filter(|p99| *p99 < limit) {
        let p99 = coordinate(p99);
        chart.lines = vec![("p99".into(), (p99, 1), (p99, tallest))];
    }
    chart
}

/// Of what is judged; what was seen besides, where the machine stood still, is told as such, as the bars have it too.
fn caption(title: &str, note: &str, histogram: &HistogramJson, unit: Unit) -> String {
    let count = |count: u64| alone(Unit::Count, coordinate(count));
    let told = |value: u64| match unit {
        Unit::Nanoseconds => alone(unit, coordinate(as_told(value))),
        _ => alone(unit, coordinate(value)),
    };
    let judged = histogram.judged();
    let mut caption = format!("{title}{note}: n = {}", count(judged));
    if histogram.count > judged {
        let besides = count(histogram.count - judged);
        caption.push_str(&format!(" (and {besides} disturbed)"));
    }
    let named = [
        ("p50", histogram.told_p50()),
        ("p99", histogram.told_p99()),
        ("p99.9", histogram.told_p999()),
        ("max", histogram.told_max()),
    ];
    for (name, value) in named {
        if let Some(value) = value {
            caption.push_str(&format!(" · {name} {}", told(value)));
        }
    }
    if let Some(max) = histogram.disturbed_max() {
        caption.push_str(&format!(" (disturbed {})", told(max)));
    }
    caption
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::svg::{WIDE, inline};
    use laxity_model::base::histogram::Histogram;
    use laxity_model::verify::contract::Observed;

    fn drawn(values: &[u64]) -> String {
        let mut histogram = Histogram::new();
        values.iter().for_each(|value| histogram.record(*value));
        let histogram = HistogramJson::new("ns", &histogram);
        let bars = Series::counted("", 10, histogram.buckets.iter().copied());
        let sum: i64 = bars.points.iter().map(|(_, count)| count).sum();
        assert_eq!(sum, values.len() as i64, "no value is left out");
        inline(&chart("gap", (&histogram, None), 100), 100, WIDE)
    }

    #[test]
    fn one_outlier_does_not_squeeze_the_others() {
        assert_eq!(shared_limit([90, 100, 110].into_iter()), 200);
        assert_eq!(shared_limit([90, 100, 9_000].into_iter()), 500);
        assert_eq!(shared_limit([].into_iter()), 2);
    }

    #[test]
    fn what_is_beyond_the_scale_is_told() {
        let svg = drawn(&[10, 20, 30, 900]);
        assert!(svg.contains("1 beyond, up to 900 ns"), "{svg}");
        assert!(drawn(&[]).contains("nothing"));
    }

    #[test]
    fn what_is_told_of_what_is_judged_stands_apart_from_what_is_not() {
        let mut seen = Observed::default();
        (0..1_800).for_each(|_| seen.undisturbed.record(1_250_900));
        (0..300).for_each(|_| seen.disturbed.record(27_103_000));
        let caption = |seen: &Observed| {
            let histogram = HistogramJson::of("ns", seen);
            caption("gap", "", &histogram, Unit::Nanoseconds)
        };
        let all = caption(&seen);
        assert!(
            all.starts_with("gap: n = 1800 (and 300 disturbed) · p50 1.25 ms"),
            "{all}"
        );
        assert!(all.ends_with(" · max 1.25 ms (disturbed 27.1 ms)"), "{all}");
        seen.disturbed = Histogram::new();
        let undisturbed = caption(&seen);
        assert!(undisturbed.ends_with(" · max 1.25 ms"), "{undisturbed}");
        assert!(!undisturbed.contains("disturbed"), "{undisturbed}");
    }

    #[test]
    fn no_percentile_is_told_that_is_only_the_largest_value() {
        for (count, p99, p999) in [(90, false, false), (100, true, false), (1_000, true, true)] {
            let mut histogram = Histogram::new();
            (0..count).for_each(|value| histogram.record(value));
            let histogram = HistogramJson::new("count", &histogram);
            let caption = caption("pending", "", &histogram, Unit::Count);
            assert_eq!(caption.contains("p99 "), p99, "{caption}");
            assert_eq!(caption.contains("p99.9 "), p999, "{caption}");
        }
    }
}
