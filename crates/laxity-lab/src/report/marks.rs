//! What is drawn between the axes: dots, bars, lines, signs.

use std::collections::BTreeMap;

use super::markup::escape;
use super::svg::{LEFT, Plot, RIGHT, number, push};
use super::{Mark, Series, thin};

/// The radius of a sign.
const SIGN: f64 = 4.2;
/// Bars at least this wide are parted from each other, by this.
const PARTED: (f64, f64) = (4.0, 0.6);

/// A series. `several`: others of its kind must be seen through it.
pub(super) fn series(svg: &mut String, plot: &Plot, series: &Series, most: usize, several: bool) {
    match series.mark {
        Mark::Dots => dots(svg, plot, &series.points, most),
        Mark::Bars { width } => bars(svg, plot, &series.points, width, several),
        Mark::Line => line(svg, plot, &series.points),
        Mark::Filled | Mark::Half | Mark::Empty => signs(svg, plot, series),
    }
}

fn is_in(plot: &Plot, (x, y): (i64, i64)) -> bool {
    plot.x.holds(x) && plot.y.holds(y)
}

/// The nearest whole pixels.
fn pixel(plot: &Plot, (x, y): (i64, i64)) -> (i32, i32) {
    let whole = |place: f64| libm::round(place.clamp(-1e6, 1e6)) as i32;
    (whole(plot.x.at(x)), whole(plot.y.at(y)))
}

fn dots(svg: &mut String, plot: &Plot, points: &[(i64, i64)], most: usize) {
    let there = points.iter().filter(|point| is_in(plot, **point));
    let pixels: Vec<_> = there.map(|point| pixel(plot, *point)).collect();
    let (side, strokes) = thin::dots(&pixels, most);
    let mut path = String::new();
    let mut pen: Option<(i32, i32)> = None;
    for stroke in &strokes {
        match pen {
            None => push(&mut path, format_args!("M{} {}", stroke.x, stroke.top)),
            Some((x, y)) => {
                let (dx, dy) = (stroke.x - x, stroke.top - y);
                // A sign parts two numbers as well as a space.
                let space = if dy < 0 { "" } else { " " };
                push(&mut path, format_args!("m{dx}{space}{dy}"));
            }
        }
        push(&mut path, format_args!("v{}", stroke.bottom - stroke.top));
        pen = Some((stroke.x, stroke.bottom));
    }
    let width = if side > 2 {
        format!(r#" style="stroke-width:{side}""#)
    } else {
        String::new()
    };
    push(
        svg,
        format_args!(r#"<path class="dots"{width} d="{path}"/>"#),
    );
}

/// Bars as one path; those narrower than a pixel are merged, the highest counting.
fn bars(svg: &mut String, plot: &Plot, points: &[(i64, i64)], width: i64, several: bool) {
    let mut columns: BTreeMap<(i64, i64), f64> = BTreeMap::new();
    let tenths = |place: f64| libm::round(place * 10.0) as i64;
    for &(x, y) in points {
        let left = plot.x.at(x).clamp(LEFT, RIGHT);
        let right = plot.x.at(x.saturating_add(width)).clamp(LEFT, RIGHT);
        let is_beyond = plot.x.at(x) >= RIGHT && right <= left;
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
        let highest = columns
            .entry((tenths(left), tenths(right)))
            .or_insert(floor);
        if (top - floor).abs() > (*highest - floor).abs() {
            *highest = top;
        }
    }
    let floor = number(plot.y.floor());
    let mut path = String::new();
    let mut end = None;
    for ((left, right), top) in columns {
        let is_wide = (right - left) as f64 / 10.0 >= PARTED.0;
        let right_edge = if is_wide {
            right as f64 / 10.0 - PARTED.1
        } else {
            right as f64 / 10.0
        };
        if end != Some(left) || is_wide {
            if end.is_some() {
                push(&mut path, format_args!("V{floor}"));
            }
            push(
                &mut path,
                format_args!("M{} {floor}", number(left as f64 / 10.0)),
            );
        }
        push(
            &mut path,
            format_args!("V{}H{}", number(top), number(right_edge)),
        );
        end = Some(right);
    }
    if end.is_some() {
        push(&mut path, format_args!("V{floor}"));
    }
    let class = if several { "bars over" } else { "bars" };
    push(svg, format_args!(r#"<path class="{class}" d="{path}"/>"#));
}

/// A line through the points; it is not drawn where it leaves the range.
fn line(svg: &mut String, plot: &Plot, points: &[(i64, i64)]) {
    let mut path = String::new();
    for part in points.split(|point| !is_in(plot, *point)) {
        let pixels: Vec<_> = part.iter().map(|point| pixel(plot, *point)).collect();
        // Few points are drawn where they are, many where their pixels are.
        let corners: Vec<(f64, f64)> = if part.len() <= 400 {
            let exact = part.iter();
            exact.map(|(x, y)| (plot.x.at(*x), plot.y.at(*y))).collect()
        } else {
            let thinned = thin::line(&pixels).into_iter();
            thinned.map(|(x, y)| (f64::from(x), f64::from(y))).collect()
        };
        for (index, (x, y)) in corners.into_iter().enumerate() {
            let command = if index == 0 { 'M' } else { 'L' };
            push(
                &mut path,
                format_args!("{command}{} {}", number(x), number(y)),
            );
        }
    }
    push(svg, format_args!(r#"<path class="line" d="{path}"/>"#));
}

fn signs(svg: &mut String, plot: &Plot, series: &Series) {
    let (mut outline, mut solid) = (String::new(), String::new());
    for point in series.points.iter().filter(|point| is_in(plot, **point)) {
        let (x, y) = (plot.x.at(point.0), plot.y.at(point.1));
        sign(series.mark, x, y, &mut outline, &mut solid);
    }
    drawn(svg, &outline, &solid);
}

fn drawn(svg: &mut String, outline: &str, solid: &str) {
    push(svg, format_args!(r#"<path class="sign" d="{outline}"/>"#));
    if !solid.is_empty() {
        push(svg, format_args!(r#"<path class="solid" d="{solid}"/>"#));
    }
}

/// A circle, and the part of it that is filled: shapes tell what colours tell.
fn sign(mark: Mark, x: f64, y: f64, outline: &mut String, solid: &mut String) {
    let (left, y, across) = (number(x - SIGN), number(y), 2.0 * SIGN);
    let upper = format!("M{left} {y}a{SIGN} {SIGN} 0 1 1 {across} 0");
    let circle = format!("{upper}a{SIGN} {SIGN} 0 1 1 -{across} 0z");
    match mark {
        Mark::Filled => solid.push_str(&circle),
        Mark::Half => push(solid, format_args!("{upper}z")),
        _ => {}
    }
    outline.push_str(&circle);
}

/// A straight line through two points, as far as it is in the plot.
pub(super) fn model(
    svg: &mut String,
    plot: &Plot,
    index: usize,
    name: &str,
    ends: [(i64, i64); 2],
) {
    let [from, to] = ends.map(|(x, y)| (plot.x.at(x), plot.y.at(y)));
    let Some([from, to]) = clipped(from, to, plot) else {
        return;
    };
    push(
        svg,
        format_args!(
            r#"<path class="model m{}" d="M{} {}L{} {}"><title>{}</title></path>"#,
            index % 4,
            number(from.0),
            number(from.1),
            number(to.0),
            number(to.1),
            escape(name)
        ),
    );
}

/// The part of a line that is between the axes (Liang and Barsky's way): each edge leaves a part of it.
fn clipped(from: (f64, f64), to: (f64, f64), plot: &Plot) -> Option<[(f64, f64); 2]> {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let (mut first, mut last) = (0.0_f64, 1.0_f64);
    for (towards, room) in [
        (-dx, from.0 - LEFT),
        (dx, RIGHT - from.0),
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
pub(super) fn sample(svg: &mut String, mark: Mark, x: f64, y: f64) {
    match mark {
        Mark::Dots => {
            let (x, y) = (number(x + 4.0), number(y));
            push(
                svg,
                format_args!(r#"<path class="dots" d="M{x} {y}h0m6-2h0m6 3h0"/>"#),
            );
        }
        Mark::Bars { .. } => {
            let (x, y) = (number(x + 2.0), number(y - 4.0));
            push(
                svg,
                format_args!(r#"<path class="bars" d="M{x} {y}h16v8h-16z"/>"#),
            );
        }
        Mark::Line => {
            let (x, y) = (number(x), number(y));
            push(svg, format_args!(r#"<path class="line" d="M{x} {y}h20"/>"#));
        }
        Mark::Filled | Mark::Half | Mark::Empty => {
            let (mut outline, mut solid) = (String::new(), String::new());
            sign(mark, x + 10.0, y, &mut outline, &mut solid);
            drawn(svg, &outline, &solid);
        }
    }
}

/// What a line of [`model`] looks like, for the legend.
pub(super) fn model_sample(svg: &mut String, index: usize, x: f64, y: f64) {
    let (x, y) = (number(x), number(y));
    let class = index % 4;
    push(
        svg,
        format_args!(r#"<path class="model m{class}" d="M{x} {y}h20"/>"#),
    );
}
