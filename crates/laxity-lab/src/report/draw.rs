//! A chart as a drawing: its title, legend and axes, and what stands beyond them.

use super::marks;
use super::scale::{self, Scale};
use super::svg::{BELOW, LEFT, MARGIN, Size, Svg, number};
use super::{Chart, Mark, Unit};
use crate::layout::{cut, wrap_to};

/// From one line of text to the next.
const LINE: f64 = 16.0;
/// What a character needs, on average and with some room.
const CHARACTER: f64 = 6.6;
/// How wide a digit is.
const DIGIT: f64 = 7.0;
/// The baseline of what stands above a plot, from its top: the highest tick's value reaches half a line above that.
const ABOVE: f64 = 10.0;
/// The baselines of ticks and of the axis's name, below a plot.
const TICKS_BELOW: f64 = 14.0;
const NAME_BELOW: f64 = 31.0;

/// A chart, with about `most` strokes for each series of dots at most.
pub(super) fn draw(chart: &Chart, most: usize, size: Size, is_alone: bool) -> String {
    let width = size.right + MARGIN;
    let mut svg = Svg::default();
    let mut title = String::new();
    if is_alone {
        let room = width / CHARACTER;
        wrap_to(room as usize, "", &chart.caption, &mut title);
    }
    for (row, line) in title.lines().enumerate() {
        let y = LINE * (row as f64 + 0.75);
        svg.text("name title", (4.0, y), line);
    }
    let top = LINE * title.lines().count() as f64;
    let series = chart.series.iter().zip(0..);
    let series = series.map(|(series, n)| (series.name.as_str(), colour(n), Some(series.mark)));
    let lines = chart.lines.iter().zip(0..);
    let lines = lines.map(|((name, ..), n)| (name.as_str(), marks::model_class(n), None));
    let legend = legend(&mut svg, series.chain(lines), (top, width));
    let plot = plot(chart, top + legend + LINE + ABOVE, size);
    axes(&mut svg, chart, &plot, size.ticks);
    let bars = chart.series.iter();
    let bars = bars.filter(|series| matches!(series.mark, Mark::Bars { .. }));
    let several = bars.count() > 1;
    for (series, n) in chart.series.iter().zip(0..) {
        svg.group(&colour(n), &series.name, |svg| {
            marks::series(svg, &plot, series, most, several);
        });
    }
    for ((name, from, to), n) in chart.lines.iter().zip(0..) {
        marks::model(&mut svg, &plot, n, name, [*from, *to]);
    }
    beyond(&mut svg, chart, &plot);
    let alone = is_alone.then_some(chart.caption.as_str());
    Svg::whole((width, plot.base + BELOW), &described(chart), alone, &svg)
}

/// The class of a series' colour; there are eight, then they come again.
fn colour(number: usize) -> String {
    format!("s{}", number % 8)
}

/// What is drawn between the axes, and its scales.
pub(super) struct Plot {
    pub(super) x: Scale,
    pub(super) y: Scale,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) base: f64,
}

fn plot(chart: &Chart, top: f64, size: Size) -> Plot {
    let (mut xs, mut ys) = (Vec::new(), Vec::new());
    let mut stands = false;
    for series in &chart.series {
        let width = match series.mark {
            Mark::Bars { width } => {
                stands = true;
                width.max(0)
            }
            _ => 0,
        };
        for (x, y) in &series.points {
            xs.extend([*x, x.saturating_add(width)]);
            ys.push(*y);
        }
    }
    let is_map = chart.series.iter().any(|series| {
        let is_sign = matches!(series.mark, Mark::Filled | Mark::Half | Mark::Empty);
        is_sign && !series.points.is_empty()
    });
    let ends = (xs.iter().min().copied(), xs.iter().max().copied());
    if let (true, (Some(low), Some(high))) = (is_map, ends) {
        // A sign on an axis would hide what is written there.
        let room = high.saturating_sub(low) / 20;
        let highest = ys.iter().max().copied().unwrap_or(0);
        ys.push(highest.saturating_add(highest / 20));
        xs.extend([low.saturating_sub(room), high.saturating_add(room)]);
    }
    // A limit that no point comes near must be seen all the same; how far right it goes says nothing.
    for (_, from, to) in &chart.lines {
        if xs.is_empty() {
            xs.extend([from.0, to.0]);
        }
        ys.extend([from.1, to.1]);
    }
    let base = top + size.height;
    Plot {
        x: Scale::new(&chart.x, &xs, false, size.ticks.0, (LEFT, size.right)),
        y: Scale::new(&chart.y, &ys, stands, size.ticks.1, (base, top)),
        right: size.right,
        top,
        base,
    }
}

fn axes(svg: &mut Svg, chart: &Chart, plot: &Plot, ticks: (usize, usize)) {
    let (across, up) = (plot.x.ticks(ticks.0), plot.y.ticks(ticks.1));
    grid(svg, plot, (&across, &up));
    svg.group("y", "", |svg| {
        for (y, text) in &up {
            svg.text("", (LEFT - 5.0, y + 4.0), text);
        }
    });
    svg.group("x", "", |svg| {
        let mut free_from = f64::MIN;
        for (x, text) in &across {
            let half = width(text) / 2.0;
            if x - half >= free_from {
                // The last one ends with the drawing at the latest.
                let end = plot.right + MARGIN - DIGIT / 2.0 * text.chars().count() as f64;
                svg.text("", (x.min(end), plot.base + TICKS_BELOW), text);
                free_from = x + half;
            }
        }
    });
    let place = (4.0, plot.top - ABOVE);
    svg.text("name", place, &named(&chart.y.label, &plot.y));
    let place = (plot.right, plot.base + NAME_BELOW);
    svg.text("name right", place, &named(&chart.x.label, &plot.x));
}

/// About how wide a text is drawn, with the room that parts it from the next.
pub(super) fn width(text: &str) -> f64 {
    CHARACTER * (text.chars().count() + 1) as f64
}

/// What an axis is, with its unit.
fn named(label: &str, scale: &Scale) -> String {
    match scale.unit_name() {
        "" => label.to_owned(),
        unit if label.is_empty() => unit.to_owned(),
        unit => format!("{label}, {unit}"),
    }
}

type Ticks = [(f64, String)];

fn grid(svg: &mut Svg, plot: &Plot, (across, up): (&Ticks, &Ticks)) {
    let (right, top, base) = (plot.right, number(plot.top), number(plot.base));
    let mut grid = Svg::default();
    for (y, _) in up {
        grid.push(format_args!("M{LEFT} {}H{right}", number(*y)));
    }
    for (x, _) in across {
        grid.push(format_args!("M{} {top}V{base}", number(*x)));
    }
    svg.path("grid", grid);
    let floor = number(plot.y.floor());
    svg.path("axis", format_args!("M{LEFT} {floor}H{right}"));
}

/// Names beside samples of their classes, in rows from the left; returns how high they are together. What has no mark is a line across the
/// drawing.
pub(super) fn legend<'a>(
    svg: &mut Svg,
    entries: impl Iterator<Item = (&'a str, String, Option<Mark>)>,
    (top, width): (f64, f64),
) -> f64 {
    let (mut x, mut rows) = (4.0, 0.0);
    for (name, class, mark) in entries.filter(|(name, ..)| !name.is_empty()) {
        let name = cut(name, ((width - 40.0) / CHARACTER) as usize);
        let needed = 34.0 + CHARACTER * name.chars().count() as f64;
        if rows == 0.0 || x + needed > width {
            (x, rows) = (4.0, rows + 1.0);
        }
        let y = top + LINE * (rows - 0.5);
        match mark {
            Some(mark) => svg.group(&class, "", |svg| marks::sample(svg, mark, x, y)),
            None => svg.path(&class, format_args!("M{} {}h20", number(x), number(y))),
        }
        svg.text("", (x + 24.0, y + 4.0), &name);
        x += needed;
    }
    LINE * rows
}

/// What lies above the range, or right of it for a histogram, is told: a picture must not hide its worst case.
fn beyond(svg: &mut Svg, chart: &Chart, plot: &Plot) {
    let (mut count, mut largest) = (0_u64, None);
    let mut unit = chart.y.unit;
    for series in &chart.series {
        for &(x, y) in &series.points {
            let (is_out, value, times) = match series.mark {
                Mark::Bars { width } => {
                    let is_counted = chart.y.unit == Unit::Count;
                    let times = if is_counted { y.max(0) as u64 } else { 1 };
                    (width > 0 && plot.x.at(x) >= plot.right, x, times)
                }
                _ => (!plot.y.holds(y) && plot.y.at(y) < plot.top, y, 1),
            };
            if is_out && times > 0 {
                if let Mark::Bars { .. } = series.mark {
                    unit = chart.x.unit;
                }
                count = count.saturating_add(times);
                largest = largest.max(Some(value));
            }
        }
    }
    if let Some(largest) = largest {
        let count = scale::alone(Unit::Count, i64::try_from(count).unwrap_or(i64::MAX));
        let text = format!("{count} beyond, up to {}", scale::alone(unit, largest));
        // Above the plot if the vertical axis's name leaves room there, else below it at the left, where the other axis's name is not.
        let taken = 4.0 + width(&named(&chart.y.label, &plot.y));
        if taken + width(&text) <= plot.right {
            svg.text("beyond right", (plot.right, plot.top - ABOVE), &text);
        } else {
            svg.text("beyond", (LEFT, plot.base + NAME_BELOW), &text);
        }
    }
}

/// The drawing in words, for who does not see it.
fn described(chart: &Chart) -> String {
    let mut text = match (chart.y.label.as_str(), chart.x.label.as_str()) {
        ("", _) => String::new(),
        (y, x) => format!("{y} over {x}."),
    };
    for series in &chart.series {
        let ys = series.points.iter().map(|(_, y)| *y);
        text.push_str(&match (ys.clone().min(), ys.max()) {
            (Some(low), Some(high)) => {
                let [low, high] = [low, high].map(|y| scale::alone(chart.y.unit, y));
                let (name, count) = (&series.name, series.points.len());
                format!(" {name}: {count} points, {low} to {high}.")
            }
            _ => format!(" {}: nothing.", series.name),
        });
    }
    let lines = chart.lines.iter();
    text.extend(lines.map(|(name, ..)| format!(" Line: {name}.")));
    text
}
