//! Curves as inline SVG: one line a test, a mark and a whisker a point, nothing that needs a script.

use std::fmt::Write;

use super::compared::{Model, TESTS};
use super::results::{Results, Sweep};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = 748.0;
const TOP: f64 = 14.0;
const BASE: f64 = 334.0;
/// Half the size of a mark.
const MARK: f64 = 3.2;

/// Where a value stands.
struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Scale {
    fn of(sweep: &Sweep) -> Self {
        let values = sweep.points.iter().map(|point| point.value);
        Self {
            low: values.clone().fold(f64::INFINITY, f64::min),
            high: values.fold(f64::NEG_INFINITY, f64::max),
            logarithmic: sweep.logarithmic,
        }
    }

    fn x(&self, value: f64) -> f64 {
        let place = |value: f64| {
            if self.logarithmic {
                libm::log10(value)
            } else {
                value
            }
        };
        let part = (place(value) - place(self.low)) / (place(self.high) - place(self.low));
        LEFT + (RIGHT - LEFT) * part
    }

    /// Values with a line and a number.
    fn ticks(&self) -> Vec<f64> {
        if self.logarithmic {
            let powers = (0..10).flat_map(|exponent| {
                let power = f64::from(10_u32.pow(exponent));
                [power, 2.0 * power, 5.0 * power]
            });
            powers
                .filter(|tick| (self.low..=self.high).contains(tick))
                .collect()
        } else {
            let tenths = (0..=10).map(|tenth| f64::from(tenth) / 10.0);
            tenths
                .filter(|tick| (self.low..=self.high).contains(tick))
                .collect()
        }
    }
}

fn y(percent: f64) -> f64 {
    BASE - (BASE - TOP) * percent / 100.0
}

/// The curves of one sweep. `label` is what a screen reader says.
pub(super) fn curves(results: &Results, sweep: &Sweep, label: &str) -> String {
    let scale = Scale::of(sweep);
    let mut svg = format!(
        r#"<svg class="curves" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">"#
    );
    axes(&mut svg, &scale, sweep.axis);
    for (index, test) in TESTS.iter().enumerate() {
        let mut path = String::new();
        let mut whiskers = String::new();
        let mut marks = String::new();
        for (number, point) in sweep.points.iter().enumerate() {
            let (percent, error) = results.percent(point.accepted[index]);
            let (x, y0) = (scale.x(point.value), y(percent));
            let command = if number == 0 { 'M' } else { 'L' };
            push(&mut path, format_args!("{command}{x:.1} {y0:.1}"));
            if error > 0.0 {
                let (low, high) = (y(percent - error), y(percent + error));
                push(&mut whiskers, format_args!("M{x:.1} {low:.1}V{high:.1}"));
            }
            mark(&mut marks, index, x, y0);
        }
        push(
            &mut svg,
            format_args!(
                r#"<g class="t{index}"><title>{}</title><path class="line {}" d="{path}"/><path class="whisker" d="{whiskers}"/><path class="mark" d="{marks}"/></g>"#,
                test.label,
                dashes(test.model)
            ),
        );
    }
    svg.push_str("</svg>");
    svg
}

/// What a test's curve looks like, for the legend.
pub(super) fn sample(index: usize) -> String {
    let mut marks = String::new();
    mark(&mut marks, index, 17.0, 6.0);
    format!(
        r#"<svg class="sample t{index}" viewBox="0 0 34 12" aria-hidden="true"><path class="line {}" d="M0 6H34"/><path class="mark" d="{marks}"/></svg>"#,
        dashes(TESTS[index].model)
    )
}

/// The class that dashes a line by how its test takes regions.
const fn dashes(model: Model) -> &'static str {
    match model {
        Model::Floating => "floating",
        Model::Cut => "cut",
        Model::Chosen => "chosen",
        Model::Preemptive => "preemptive",
    }
}

fn axes(svg: &mut String, scale: &Scale, axis: &str) {
    for percent in (0..=100).step_by(20) {
        let height = y(f64::from(percent));
        push(
            svg,
            format_args!(
                r#"<path class="grid" d="M{LEFT} {height:.1}H{RIGHT}"/><text x="{:.0}" y="{:.1}" text-anchor="end">{percent} %</text>"#,
                LEFT - 6.0,
                height + 3.5
            ),
        );
    }
    for tick in scale.ticks() {
        let x = scale.x(tick);
        push(
            svg,
            format_args!(
                r#"<path class="grid" d="M{x:.1} {TOP}V{BASE}"/><text x="{x:.1}" y="{:.0}" text-anchor="middle">{tick}</text>"#,
                BASE + 16.0
            ),
        );
    }
    push(
        svg,
        format_args!(
            r#"<path class="axis" d="M{LEFT} {BASE}H{RIGHT}"/><text class="lane" x="{:.0}" y="{:.0}" text-anchor="middle">{axis}</text>"#,
            f64::midpoint(LEFT, RIGHT),
            BASE + 36.0
        ),
    );
}

/// One of seven shapes, so that curves can be told apart without their colours.
fn mark(path: &mut String, index: usize, x: f64, y: f64) {
    let (left, top, size) = (x - MARK, y - MARK, 2.0 * MARK);
    match index % 7 {
        0 => push(
            path,
            format_args!(
                "M{left:.1} {y:.1}a{MARK} {MARK} 0 1 0 {size} 0a{MARK} {MARK} 0 1 0 -{size} 0z"
            ),
        ),
        1 => push(
            path,
            format_args!("M{left:.1} {top:.1}h{size}v{size}h-{size}z"),
        ),
        2 => push(
            path,
            format_args!("M{x:.1} {top:.1}l{MARK} {size}h-{size}z"),
        ),
        3 => push(
            path,
            format_args!("M{x:.1} {:.1}l{MARK} -{size}h-{size}z", y + MARK),
        ),
        4 => push(
            path,
            format_args!("M{x:.1} {top:.1}l{MARK} {MARK}l-{MARK} {MARK}l-{MARK} -{MARK}z"),
        ),
        5 => push(
            path,
            format_args!("M{left:.1} {top:.1}l{size} {size}m-{size} 0l{size} -{size}"),
        ),
        _ => push(
            path,
            format_args!("M{left:.1} {y:.1}h{size}M{x:.1} {top:.1}v{size}"),
        ),
    }
}

fn push(svg: &mut String, text: std::fmt::Arguments<'_>) {
    svg.write_fmt(text).expect("a string takes all");
}
