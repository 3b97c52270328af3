//! Histograms as inline SVG: linear values, logarithmic counts, so that the one worst case shows beside ten thousand good ones
//! (the way OSADL draws wake-up latencies).

use std::fmt::Write;

use super::format;
use crate::evidence::histogram::HistogramJson;

const WIDTH: f64 = 340.0;
const HEIGHT: f64 = 132.0;
const LEFT: f64 = 30.0;
/// Right of this is the bar of what is beyond the scale.
const RIGHT: f64 = 322.0;
const TOP: f64 = 10.0;
const BASE: f64 = 112.0;
const BINS: usize = 73;
/// A count of one is this many decades high.
const ONE: f64 = 0.3;

/// The scale that several histograms share: their largest value, unless that is more than twice the median of the largest.
/// At least 1.
pub(super) fn shared_limit(maxima: impl Iterator<Item = u64>) -> u64 {
    let mut maxima: Vec<_> = maxima.collect();
    maxima.sort_unstable();
    let largest = maxima.last().copied().unwrap_or(1);
    let median = maxima.get(maxima.len() / 2).copied().unwrap_or(1);
    nice_above(largest.min(median.saturating_mul(2)))
}

/// The next larger 1, 1.5, 2, 3, 4, 5, 6 or 8 times a power of ten.
fn nice_above(value: u64) -> u64 {
    let powers = (0..20).map(|exponent| 10_u128.pow(exponent));
    powers
        .flat_map(|power| {
            [10, 15, 20, 30, 40, 50, 60, 80].map(|tenths| (power * tenths).div_ceil(10))
        })
        .find(|nice| *nice > u128::from(value))
        .map_or(u64::MAX, |nice| u64::try_from(nice).unwrap_or(u64::MAX))
}

/// The counts in equal bins below `limit`, and the count from it upwards.
fn binned(histogram: &HistogramJson, limit: u64) -> ([u64; BINS], u64) {
    let (mut bins, mut beyond) = ([0; BINS], histogram.overflow);
    for &(from, count) in &histogram.buckets {
        let bin = u128::from(from) * BINS as u128 / u128::from(limit.max(1));
        match bins.get_mut(bin as usize) {
            Some(sum) if bin < BINS as u128 => *sum += count,
            _ => beyond += count,
        }
    }
    (bins, beyond)
}

fn decades(count: u64) -> f64 {
    if count == 0 {
        0.0
    } else {
        libm::log10(count as f64) + ONE
    }
}

struct Scale {
    limit: u64,
    decades: f64,
}

impl Scale {
    fn x(&self, value: u64) -> f64 {
        LEFT + (RIGHT - LEFT) * (value as f64 / self.limit as f64).min(1.0)
    }

    fn y(&self, count: u64) -> f64 {
        BASE - (BASE - TOP) * decades(count) / self.decades
    }
}

/// A histogram up to `limit`, with the outline of another for comparison. `label` is what a screen reader says.
pub(super) fn histogram(
    histogram: &HistogramJson,
    control: Option<&HistogramJson>,
    limit: u64,
    label: &str,
) -> String {
    let (bins, beyond) = binned(histogram, limit);
    let outline = control.map(|control| binned(control, limit).0);
    let tallest = bins
        .iter()
        .chain(outline.iter().flatten())
        .fold(beyond, |a, b| a.max(*b));
    let scale = Scale {
        limit,
        decades: libm::ceil(libm::log10(tallest.max(10) as f64)) + ONE,
    };
    let mut svg = format!(
        r#"<svg class="hist" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{}">"#,
        escape(label)
    );
    axes(&mut svg, &scale, &histogram.unit);
    bars(&mut svg, &scale, &bins);
    if let Some(outline) = outline {
        steps(&mut svg, &scale, &outline);
    }
    if let Some(p99) = histogram.p99 {
        let x = scale.x(p99);
        push(
            &mut svg,
            format_args!(r#"<path class="p99" d="M{x:.1} {TOP}V{BASE}"/>"#),
        );
    }
    extreme(&mut svg, &scale, histogram, beyond);
    svg.push_str("</svg>");
    svg
}

fn push(svg: &mut String, text: std::fmt::Arguments<'_>) {
    svg.write_fmt(text).expect("a string takes all");
}

fn axes(svg: &mut String, scale: &Scale, unit: &str) {
    let mut count = 1_u64;
    while decades(count) <= scale.decades + 1e-9 {
        let y = scale.y(count);
        let text = match count {
            1..1_000 => count.to_string(),
            1_000..1_000_000 => format!("{}k", count / 1_000),
            _ => format!("{}M", count / 1_000_000),
        };
        push(
            svg,
            format_args!(
                r#"<path class="grid" d="M{LEFT} {y:.1}H{RIGHT}"/><text x="{:.0}" y="{:.1}" text-anchor="end">{text}</text>"#,
                LEFT - 4.0,
                y + 3.0
            ),
        );
        count *= 10;
    }
    push(
        svg,
        format_args!(r#"<path class="axis" d="M{LEFT} {BASE}H{RIGHT}"/>"#),
    );
    let parts = if scale.limit < 4 { scale.limit } else { 4 };
    for part in 0..=parts {
        let value = scale.limit / parts * part;
        let anchor = if part == parts { "end" } else { "middle" };
        let text = if part == 0 {
            "0".into()
        } else {
            format::value(value, unit)
        };
        // The last one names the unit for all.
        let text = if part == parts || unit == "ns" {
            text
        } else {
            value.to_string()
        };
        push(
            svg,
            format_args!(
                r#"<text x="{:.1}" y="{:.0}" text-anchor="{anchor}">{text}</text>"#,
                scale.x(value),
                BASE + 13.0
            ),
        );
    }
}

/// All bars as one path.
fn bars(svg: &mut String, scale: &Scale, bins: &[u64; BINS]) {
    let width = (RIGHT - LEFT) / BINS as f64;
    let mut path = String::new();
    for (bin, &count) in bins.iter().enumerate().filter(|(_, count)| **count > 0) {
        let (x, y) = (LEFT + width * bin as f64, scale.y(count));
        let right = width - 0.6;
        push(
            &mut path,
            format_args!("M{x:.1} {BASE}V{y:.1}h{right:.1}V{BASE}z"),
        );
    }
    push(svg, format_args!(r#"<path class="bars" d="{path}"/>"#));
}

/// The outline of the control.
fn steps(svg: &mut String, scale: &Scale, bins: &[u64; BINS]) {
    let width = (RIGHT - LEFT) / BINS as f64;
    let mut path = format!("M{LEFT} {BASE}");
    let mut last = 0;
    for (bin, &count) in bins.iter().enumerate() {
        if count != last {
            let x = LEFT + width * bin as f64 - 0.3;
            push(&mut path, format_args!("H{x:.1}V{:.1}", scale.y(count)));
            last = count;
        }
    }
    push(svg, format_args!(r#"<path class="control" d="{path}"/>"#));
}

/// The largest value; where it is beyond the scale, a bar at the right edge says how many are.
fn extreme(svg: &mut String, scale: &Scale, histogram: &HistogramJson, beyond: u64) {
    let Some(max) = histogram.max else {
        let (x, y) = (f64::midpoint(LEFT, RIGHT), f64::midpoint(TOP, BASE));
        push(
            svg,
            format_args!(
                r#"<text class="none" x="{x}" y="{y}" text-anchor="middle">nothing recorded</text>"#
            ),
        );
        return;
    };
    let (x, y) = (scale.x(max), BASE);
    if beyond == 0 {
        let triangle = format!("M{x:.1} {y}l-3.5 -7h7z");
        push(svg, format_args!(r#"<path class="max" d="{triangle}"/>"#));
        return;
    }
    let top = scale.y(beyond);
    push(
        svg,
        format_args!(
            r#"<path class="beyond" d="M{:.1} {BASE}V{top:.1}h8V{BASE}z"/><text class="beyond" x="{:.1}" y="{:.0}" text-anchor="end">{} beyond, max {}</text>"#,
            RIGHT + 3.0,
            RIGHT + 11.0,
            TOP - 1.5,
            format::count(beyond),
            format::value(max, &histogram.unit)
        ),
    );
}

/// Text for between tags or quotes.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use laxity_model::base::histogram::Histogram;

    fn sample(values: &[u64]) -> HistogramJson {
        let mut histogram = Histogram::new();
        values.iter().for_each(|v| histogram.record(*v));
        HistogramJson::new("ns", &histogram)
    }

    #[test]
    fn no_value_is_left_out_of_the_picture() {
        let histogram = sample(&[0, 1, 50, 99, 100, 7_000]);
        let (bins, beyond) = binned(&histogram, 100);
        assert_eq!((bins.iter().sum::<u64>(), beyond), (4, 2));
    }

    #[test]
    fn one_outlier_does_not_squeeze_the_others() {
        assert_eq!(shared_limit([90, 100, 110].into_iter()), 150);
        assert_eq!(shared_limit([90, 100, 9_000].into_iter()), 300);
        assert_eq!(shared_limit([].into_iter()), 2);
        assert_eq!(nice_above(u64::MAX), u64::MAX);
    }

    #[test]
    fn what_is_beyond_the_scale_is_told() {
        let svg = histogram(&sample(&[10, 20, 900]), None, 100, "a < b");
        assert!(svg.contains("1 beyond, max 900 ns"), "{svg}");
        assert!(svg.contains("a &lt; b"));
        let empty = histogram(&sample(&[]), None, 100, "");
        assert!(empty.contains("nothing recorded"));
    }
}
