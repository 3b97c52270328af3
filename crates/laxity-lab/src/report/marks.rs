//! What is drawn between the axes: dots, bars, lines, signs.

use std::collections::BTreeMap;

use super::draw::Plot;
use super::svg::{LEFT, Svg, escape, number};
use super::{Mark, Point, Series, thin};

/// The radius of a sign, and of a ring around one.
const SIGN: f64 = 4.2;
const RING: f64 = 7.0;
/// Bars at least this wide are parted from each other, by this.
const PARTED: (f64, f64) = (4.0, 0.6);

/// A series. `several`: others of its kind must be seen through it.
pub(super) fn series(svg: &mut Svg, plot: &Plot, series: &Series, most: usize, several: bool) {
    match series.mark {
        Mark::Dots => dots(svg, plot, &series.points, most),
        Mark::Bars { width } => {
            let class = if several { "bars over" } else { "bars" };
            svg.path(class, bars(plot, &series.points, width));
        }
        Mark::Line => line(svg, plot, &series.points),
        Mark::Filled | Mark::Half | Mark::Empty | Mark::Ring | Mark::Cross => {
            let there = series.points.iter().filter(|point| is_in(plot, **point));
            signs(
                svg,
                series.mark,
                there.map(|(x, y)| (plot.x.at(*x), plot.y.at(*y))),
            );
        }
    }
}

fn is_in(plot: &Plot, (x, y): Point) -> bool {
    plot.x.holds(x) && plot.y.holds(y)
}

/// The nearest whole pixels.
fn pixel(plot: &Plot, (x, y): Point) -> (i32, i32) {
    let whole = |place: f64| libm::round(place.clamp(-1e6, 1e6)) as i32;
    (whole(plot.x.at(x)), whole(plot.y.at(y)))
}

fn dots(svg: &mut Svg, plot: &Plot, points: &[Point], most: usize) {
    let there = points.iter().filter(|point| is_in(plot, **point));
    let pixels: Vec<_> = there.map(|point| pixel(plot, *point)).collect();
    let (side, strokes) = thin::dots(&pixels, most);
    let mut path = Svg::default();
    let mut pen: Option<(i32, i32)> = None;
    for stroke in &strokes {
        match pen {
            None => path.push(format_args!("M{} {}", stroke.x, stroke.top)),
            Some((x, y)) => {
                let (dx, dy) = (stroke.x - x, stroke.top - y);
                // A sign parts two numbers as well as a space.
                let space = if dy < 0 { "" } else { " " };
                path.push(format_args!("m{dx}{space}{dy}"));
            }
        }
        path.push(format_args!("v{}", stroke.bottom - stroke.top));
        pen = Some((stroke.x, stroke.bottom));
    }
    if side > 2 {
        svg.path(&format!(r#"dots" style="stroke-width:{side}"#), path);
    } else {
        svg.path("dots", path);
    }
}

/// Bars as one path; those narrower than a pixel are merged, the highest counting.
fn bars(plot: &Plot, points: &[Point], width: i64) -> Svg {
    let mut columns: BTreeMap<(i64, i64), f64> = BTreeMap::new();
    let tenths = |place: f64| libm::round(place * 10.0) as i64;
    for &(x, y) in points {
        let left = plot.x.at(x).clamp(LEFT, plot.right);
        let right = plot.x.at(x.saturating_add(width)).clamp(LEFT, plot.right);
        let is_beyond = plot.x.at(x) >= plot.right && right <= left;
        if is_beyond || y == 0 {
            continue;
        }
        let (left, right) = if right - left < 1.0 {
            let left = libm::floor(left);
            (left, left + 1.0)
        } else {
            (left, right)
        };
        let top = plot.y.at(y).clamp(plot.top, plot.base);
        let floor = plot.y.floor();
        let column = columns.entry((tenths(left), tenths(right)));
        let highest = column.or_insert(floor);
        if (top - floor).abs() > (*highest - floor).abs() {
            *highest = top;
        }
    }
    let floor = number(plot.y.floor());
    let mut path = Svg::default();
    let mut end = None;
    for ((left, right), top) in columns {
        let is_wide = (right - left) as f64 / 10.0 >= PARTED.0;
        let gap = if is_wide { PARTED.1 } else { 0.0 };
        if end != Some(left) || is_wide {
            if end.is_some() {
                path.push(format_args!("V{floor}"));
            }
            path.push(format_args!("M{} {floor}", number(left as f64 / 10.0)));
        }
        let edge = number(right as f64 / 10.0 - gap);
        path.push(format_args!("V{}H{edge}", number(top)));
        end = Some(right);
    }
    if end.is_some() {
        path.push(format_args!("V{floor}"));
    }
    path
}

/// A line through the points; it is not drawn where it leaves the range.
fn line(svg: &mut Svg, plot: &Plot, points: &[Point]) {
    let mut path = Svg::default();
    for part in points.split(|point| !is_in(plot, *point)) {
        // Few points are drawn where they are, many where their pixels are.
        let corners: Vec<(f64, f64)> = if part.len() <= 400 {
            let exact = part.iter();
            exact.map(|(x, y)| (plot.x.at(*x), plot.y.at(*y))).collect()
        } else {
            let pixels: Vec<_> = part.iter().map(|point| pixel(plot, *point)).collect();
            let thinned = thin::line(&pixels).into_iter();
            thinned.map(|(x, y)| (f64::from(x), f64::from(y))).collect()
        };
        for (index, (x, y)) in corners.into_iter().enumerate() {
            let command = if index == 0 { 'M' } else { 'L' };
            path.push(format_args!("{command}{} {}", number(x), number(y)));
        }
    }
    svg.path("line", path);
}

/// Circles, and the part of each that is filled: shapes tell what colours tell.
fn signs(svg: &mut Svg, mark: Mark, places: impl Iterator<Item = (f64, f64)>) {
    let (mut outline, mut solid) = (Svg::default(), Svg::default());
    for (x, y) in places {
        if mark == Mark::Cross {
            let (left, top) = (number(x - RING), number(y - RING));
            let (x, y, long) = (number(x), number(y), 2.0 * RING);
            outline.push(format_args!("M{left} {y}h{long}M{x} {top}v{long}"));
            continue;
        }
        let radius = if mark == Mark::Ring { RING } else { SIGN };
        let (left, y, across) = (number(x - radius), number(y), 2.0 * radius);
        let upper = format!("M{left} {y}a{radius} {radius} 0 1 1 {across} 0");
        let circle = format!("{upper}a{radius} {radius} 0 1 1 -{across} 0z");
        match mark {
            Mark::Filled => solid.push(format_args!("{circle}")),
            Mark::Half => solid.push(format_args!("{upper}z")),
            _ => {}
        }
        outline.push(format_args!("{circle}"));
    }
    svg.path("sign", outline);
    if !solid.is_empty() {
        svg.path("solid", solid);
    }
}

/// The class of a [`model`]'s strokes.
pub(super) fn model_class(nth: usize) -> String {
    format!("model m{}", nth % 4)
}

/// A straight line through two points, as far as it is in the plot.
pub(super) fn model(svg: &mut Svg, plot: &Plot, nth: usize, name: &str, ends: [Point; 2]) {
    let [from, to] = ends.map(|(x, y)| (plot.x.at(x), plot.y.at(y)));
    if let Some(ends) = clipped(from, to, plot) {
        let [from, to] = ends.map(|(x, y)| format!("{} {}", number(x), number(y)));
        let (class, name) = (model_class(nth), escape(name));
        svg.push(format_args!(
            r#"<path class="{class}" d="M{from}L{to}"><title>{name}</title></path>"#
        ));
    }
}

/// The part of a line that is between the axes (Liang and Barsky's way): each edge leaves a part of it.
fn clipped(from: (f64, f64), to: (f64, f64), plot: &Plot) -> Option<[(f64, f64); 2]> {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let (mut first, mut last) = (0.0_f64, 1.0_f64);
    for (towards, room) in [
        (-dx, from.0 - LEFT),
        (dx, plot.right - from.0),
        (-dy, from.1 - plot.top),
        (dy, plot.base - from.1),
    ] {
        if towards == 0.0 {
            if room < 0.0 {
                return None;
            }
        } else if towards < 0.0 {
            first = first.max(room / towards);
        } else {
            last = last.min(room / towards);
        }
    }
    let at = |part: f64| (from.0 + dx * part, from.1 + dy * part);
    (first <= last).then(|| [at(first), at(last)])
}

/// What a series looks like, for the legend: 20 pixels from `x`, around `y`.
pub(super) fn sample(svg: &mut Svg, mark: Mark, x: f64, y: f64) {
    let at = |dx: f64, dy: f64| format!("M{} {}", number(x + dx), number(y + dy));
    match mark {
        Mark::Dots => svg.path("dots", format_args!("{}h0m6-2h0m6 3h0", at(4.0, 0.0))),
        Mark::Bars { .. } => svg.path("bars", format_args!("{}h16v8h-16z", at(2.0, -4.0))),
        Mark::Line => svg.path("line", format_args!("{}h20", at(0.0, 0.0))),
        Mark::Filled | Mark::Half | Mark::Empty | Mark::Ring | Mark::Cross => {
            signs(svg, mark, std::iter::once((x + 10.0, y)));
        }
    }
}
