//! Drawings as SVG: inside a page, or as a file of their own. Needs no script; follows the reader's light or dark setting.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::marks;
use super::markup::escape;
use super::scale::{self, Scale};
use super::{Chart, Mark, Report, Series, Unit};

const WIDTH: f64 = 760.0;
pub(super) const LEFT: f64 = 62.0;
pub(super) const RIGHT: f64 = 748.0;
/// Of the plot; titles and legends are above it, the horizontal axis below.
const HEIGHT: f64 = 220.0;
const BELOW: f64 = 38.0;
/// From one line of text to the next.
const LINE: f64 = 16.0;
/// What a character of the legend needs, on average and with some room.
const CHARACTER: f64 = 6.0;
/// So many ticks look well across, and up.
const TICKS: (usize, usize) = (9, 5);
/// Series have so many colours; then they come again.
const COLOURS: usize = 8;

/// Colours and strokes of all drawings, for a `style` element.
pub const STYLE: &str = "\
.chart{font:11px system-ui,'DejaVu Sans',sans-serif;font-variant-numeric:tabular-nums}\
.chart text{fill:#5d656e}.chart .name{fill:#1d2126}.chart .y{text-anchor:end}.chart .x{text-anchor:middle}.chart .right{text-anchor:end}\
.chart .grid{stroke:#e7e4dd;fill:none}.chart .axis{stroke:#5d656e;fill:none}.chart .beyond{fill:#b23a2c}\
.dots{fill:none;stroke:currentColor;stroke-width:2;stroke-linecap:round}.bars{fill:currentColor}.over{fill-opacity:.55}\
.line{fill:none;stroke:currentColor;stroke-width:1.6;stroke-linejoin:round}.sign{fill:none;stroke:currentColor;stroke-width:1.4}\
.solid{fill:currentColor}.model{fill:none;stroke:#1d2126;stroke-width:1.2}\
.m0{stroke-dasharray:7 4}.m1{stroke-dasharray:2 3}.m2{stroke-dasharray:9 3 2 3}.m3{stroke-dasharray:4 2}\
.s0{color:#2f6299}.s1{color:#b8443a}.s2{color:#c9852b}.s3{color:#2e8b84}.s4{color:#7a5aa6}.s5{color:#5b7a29}.s6{color:#a4508b}.s7{color:#6f6250}\
@media screen and (prefers-color-scheme:dark){\
.chart text{fill:#98a0a9}.chart .name{fill:#e4e2dd}.chart .grid{stroke:#2b3036}.chart .axis{stroke:#98a0a9}.chart .beyond{fill:#ea8a7b}\
.model{stroke:#e4e2dd}\
.s0{color:#6fa3d8}.s1{color:#ea8a7b}.s2{color:#dfa557}.s3{color:#5bbdb4}.s4{color:#ab8fd6}.s5{color:#a6c46a}.s6{color:#dc8fc4}.s7{color:#c4b69f}}";

/// A drawing for a page that has [`STYLE`], with about `most` strokes for each series of dots at most.
pub(super) fn inline(chart: &Chart, most: usize) -> String {
    draw(chart, most, false)
}

/// A drawing as a file of its own. The same chart gives the same bytes.
#[must_use]
pub fn alone(chart: &Chart) -> String {
    let mut file = draw(chart, 2_500, true);
    file.push('\n');
    file
}

/// All drawings of a report as files of their own: names, such as `modem-figure-10.svg`, and contents. The second of a figure ends in `-2`.
#[must_use]
pub fn files(report: &Report) -> Vec<(String, String)> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for figure in &report.figures {
        // Whoever chooses keys chooses no directories.
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let key: String = figure.key.chars().map(plain).collect();
        for chart in &figure.charts {
            let base = format!("{}-{key}", report.experiment);
            let mut name = format!("{base}.svg");
            let mut number = 2;
            while files.contains_key(&name) {
                name = format!("{base}-{number}.svg");
                number += 1;
            }
            // Away from its page a drawing must say which it is.
            let titled = Chart {
                caption: format!("{}: {}", figure.title, chart.caption),
                ..chart.clone()
            };
            files.insert(name, alone(&titled));
        }
    }
    files.into_iter().collect()
}

/// What is drawn between the axes, and its scales.
pub(super) struct Plot {
    pub(super) x: Scale,
    pub(super) y: Scale,
    pub(super) top: f64,
    pub(super) base: f64,
}

fn draw(chart: &Chart, most: usize, is_alone: bool) -> String {
    let title = if is_alone {
        broken(&chart.caption)
    } else {
        Vec::new()
    };
    let (legend, legend_height) = legend(chart, LINE * title.len() as f64);
    let top = LINE * title.len() as f64 + legend_height + LINE + 8.0;
    let plot = plot(chart, top);
    let height = plot.base + BELOW;
    let mut svg = String::new();
    let namespace = if is_alone {
        r#" xmlns="http://www.w3.org/2000/svg""#
    } else {
        ""
    };
    push(
        &mut svg,
        format_args!(
            r#"<svg{namespace} class="chart" viewBox="0 0 {WIDTH} {}" role="img"><title>{}</title><desc>{}</desc>"#,
            number(height),
            escape(&chart.caption),
            escape(&described(chart))
        ),
    );
    if is_alone {
        push(&mut svg, format_args!("<style>{STYLE}</style>"));
    }
    for (row, line) in title.iter().enumerate() {
        let y = number(LINE * (row as f64 + 0.75));
        push(
            &mut svg,
            format_args!(
                r#"<text class="name" x="4" y="{y}" font-weight="600">{}</text>"#,
                escape(line)
            ),
        );
    }
    svg.push_str(&legend);
    axes(&mut svg, chart, &plot);
    let several = chart
        .series
        .iter()
        .filter(|s| matches!(s.mark, Mark::Bars { .. }))
        .count()
        > 1;
    for (index, series) in chart.series.iter().enumerate() {
        push(
            &mut svg,
            format_args!(r#"<g class="s{}">"#, index % COLOURS),
        );
        if !series.name.is_empty() {
            push(
                &mut svg,
                format_args!("<title>{}</title>", escape(&series.name)),
            );
        }
        marks::series(&mut svg, &plot, series, most, several);
        svg.push_str("</g>");
    }
    for (index, (name, from, to)) in chart.lines.iter().enumerate() {
        marks::model(&mut svg, &plot, index, name, [*from, *to]);
    }
    beyond(&mut svg, chart, &plot);
    svg.push_str("</svg>");
    svg
}

fn plot(chart: &Chart, top: f64) -> Plot {
    let base = top + HEIGHT;
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
    Plot {
        x: Scale::new(&chart.x, &xs, false, TICKS.0, (LEFT, RIGHT)),
        y: Scale::new(&chart.y, &ys, stands, TICKS.1, (base, top)),
        top,
        base,
    }
}

fn axes(svg: &mut String, chart: &Chart, plot: &Plot) {
    let (across, up) = (plot.x.ticks(TICKS.0), plot.y.ticks(TICKS.1));
    let mut grid = String::new();
    for (y, _) in &up {
        push(&mut grid, format_args!("M{LEFT} {}H{RIGHT}", number(*y)));
    }
    for (x, _) in &across {
        push(
            &mut grid,
            format_args!("M{} {}V{}", number(*x), number(plot.top), number(plot.base)),
        );
    }
    let floor = number(plot.y.floor());
    push(
        svg,
        format_args!(
            r#"<path class="grid" d="{grid}"/><path class="axis" d="M{LEFT} {floor}H{RIGHT}"/><g class="y">"#
        ),
    );
    for (y, text) in &up {
        let (x, y) = (LEFT - 5.0, number(y + 4.0));
        push(svg, format_args!(r#"<text x="{x}" y="{y}">{text}</text>"#));
    }
    svg.push_str(r#"</g><g class="x">"#);
    for (x, text) in &across {
        let (x, y) = (number(*x), number(plot.base + 14.0));
        push(svg, format_args!(r#"<text x="{x}" y="{y}">{text}</text>"#));
    }
    svg.push_str("</g>");
    let named = |label: &str, scale: &Scale| match scale.unit_name() {
        "" => escape(label),
        unit if label.is_empty() => unit.to_owned(),
        unit => format!("{}, {unit}", escape(label)),
    };
    push(
        svg,
        format_args!(
            r#"<text class="name" x="4" y="{}">{}</text><text class="name right" x="{RIGHT}" y="{}">{}</text>"#,
            number(plot.top - 7.0),
            named(&chart.y.label, &plot.y),
            number(plot.base + 31.0),
            named(&chart.x.label, &plot.x),
        ),
    );
}

/// What stands for a series or a line in the legend.
enum Sample<'a> {
    Series(usize, &'a Series),
    Model(usize),
}

/// Names beside samples, in rows from the left; and how high they are together.
fn legend(chart: &Chart, top: f64) -> (String, f64) {
    let series = chart.series.iter().enumerate();
    let series =
        series.map(|(index, series)| (series.name.as_str(), Sample::Series(index, series)));
    let lines = chart.lines.iter().enumerate();
    let lines = lines.map(|(index, (name, ..))| (name.as_str(), Sample::Model(index)));
    let mut svg = String::new();
    let (mut x, mut row) = (4.0, 0.0);
    for (name, sample) in series.chain(lines).filter(|(name, _)| !name.is_empty()) {
        let room = (WIDTH - 40.0) / CHARACTER;
        let name = cut(name, room as usize);
        let width = 34.0 + CHARACTER * name.chars().count() as f64;
        if x > 4.0 && x + width > WIDTH {
            (x, row) = (4.0, row + 1.0);
        }
        let y = top + LINE * row + LINE / 2.0;
        match sample {
            Sample::Series(index, series) => {
                push(
                    &mut svg,
                    format_args!(r#"<g class="s{}">"#, index % COLOURS),
                );
                marks::sample(&mut svg, series.mark, x, y);
                svg.push_str("</g>");
            }
            Sample::Model(index) => marks::model_sample(&mut svg, index, x, y),
        }
        push(
            &mut svg,
            format_args!(
                r#"<text x="{}" y="{}">{}</text>"#,
                number(x + 24.0),
                number(y + 4.0),
                escape(&name)
            ),
        );
        x += width;
    }
    let height = if svg.is_empty() {
        0.0
    } else {
        LINE * (row + 1.0)
    };
    (svg, height)
}

/// What lies above the range, or right of it for a histogram, is told: a picture must not hide its worst case.
fn beyond(svg: &mut String, chart: &Chart, plot: &Plot) {
    let (mut count, mut largest) = (0_u64, None);
    let mut unit = chart.y.unit;
    for series in &chart.series {
        for &(x, y) in &series.points {
            let (is_out, value, times) = match series.mark {
                Mark::Bars { .. } => {
                    let times = if chart.y.unit == Unit::Count {
                        y.max(0) as u64
                    } else {
                        1
                    };
                    (!plot.x.holds(x) && plot.x.at(x) > RIGHT, x, times)
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
        push(
            svg,
            format_args!(
                r#"<text class="beyond right" x="{RIGHT}" y="{}">{count} beyond, up to {}</text>"#,
                number(plot.top - 7.0),
                scale::alone(unit, largest)
            ),
        );
    }
}

/// The drawing in words, for who does not see it.
fn described(chart: &Chart) -> String {
    let mut text = format!("{} over {}.", chart.y.label, chart.x.label);
    for series in &chart.series {
        let ys = series.points.iter().map(|(_, y)| *y);
        let (Some(low), Some(high)) = (ys.clone().min(), ys.max()) else {
            push(&mut text, format_args!(" {}: nothing.", series.name));
            continue;
        };
        push(
            &mut text,
            format_args!(
                " {}: {} points, {} to {}.",
                series.name,
                series.points.len(),
                scale::alone(chart.y.unit, low),
                scale::alone(chart.y.unit, high)
            ),
        );
    }
    for (name, ..) in &chart.lines {
        push(&mut text, format_args!(" Line: {name}."));
    }
    text
}

/// A text in lines that fit the width.
fn broken(text: &str) -> Vec<String> {
    let room = (WIDTH / (CHARACTER + 0.6)) as usize;
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(cut(word, room)),
        }
    }
    lines
}

fn cut(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.into();
    }
    let mut short: String = text.chars().take(room.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// A coordinate: a tenth of a pixel is enough.
pub(super) fn number(value: f64) -> String {
    let tenths = libm::round(value * 10.0) as i64;
    if tenths % 10 == 0 {
        (tenths / 10).to_string()
    } else {
        let sign = if tenths < 0 { "-" } else { "" };
        format!("{sign}{}.{}", tenths.abs() / 10, tenths.abs() % 10)
    }
}

pub(super) fn push(svg: &mut String, text: std::fmt::Arguments<'_>) {
    svg.write_fmt(text).expect("a string takes all");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Axis, Figure};

    fn chart(mark: Mark, points: Vec<(i64, i64)>, range: Option<(i64, i64)>) -> Chart {
        let axis = |unit, range| Axis {
            label: "gap".into(),
            unit,
            logarithmic: false,
            range,
        };
        let name = "INT".into();
        Chart {
            caption: "Gaps".into(),
            x: axis(Unit::Nanoseconds, range),
            y: axis(Unit::Count, None),
            series: vec![Series { name, mark, points }],
            lines: vec![("limit".into(), (0, 5), (9_000_000, 5))],
        }
    }

    #[test]
    fn what_a_histogram_cannot_show_is_counted() {
        let mark = Mark::Bars { width: 50_000 };
        let points = vec![(950_000, 100), (5_300_000, 3), (7_000_000, 2)];
        let all = inline(&chart(mark, points.clone(), None), 100);
        assert!(!all.contains("beyond"), "{all}");
        let cropped = inline(&chart(mark, points, Some((0, 3_000_000))), 100);
        assert!(cropped.contains("5 beyond, up to 7 ms"), "{cropped}");
    }

    #[test]
    fn a_file_of_its_own_has_colours_and_a_title_in_sight() {
        let file = alone(&chart(Mark::Dots, vec![(0, 1), (5, 2)], None));
        for part in [
            "xmlns=",
            "<style>",
            ">Gaps</text>",
            "gap over gap. INT: 2 points, 1 to 2.",
        ] {
            assert!(file.contains(part), "{part}: {file}");
        }
    }

    #[test]
    fn files_have_names_of_their_own_and_titles_of_their_figures() {
        let figure = |key: &str| Figure {
            key: key.into(),
            title: "Figure 3".into(),
            about: String::new(),
            charts: vec![chart(Mark::Dots, vec![(0, 1)], None); 2],
            compared: vec![],
            tables: vec![],
            remarks: vec![],
        };
        let report = Report {
            experiment: "modem",
            title: String::new(),
            summary: vec![],
            circumstances: vec![],
            figures: vec![figure("figure-3"), figure("../figure-3")],
            checks: vec![],
        };
        let files = files(&report);
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        let expected = [
            "modem----figure-3-2.svg",
            "modem----figure-3.svg",
            "modem-figure-3-2.svg",
            "modem-figure-3.svg",
        ];
        assert_eq!(names, expected);
        assert!(
            files
                .iter()
                .all(|(_, file)| file.contains("<title>Figure 3: Gaps</title>"))
        );
    }

    #[test]
    fn nothing_to_draw_is_drawn() {
        for mark in [Mark::Dots, Mark::Line, Mark::Bars { width: 0 }, Mark::Half] {
            let mut empty = chart(mark, vec![], None);
            empty.lines.clear();
            for logarithmic in [false, true] {
                empty.y.logarithmic = logarithmic;
                let svg = inline(&empty, 10);
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            }
        }
    }

    #[test]
    fn coordinates_are_short() {
        let texts = [12.0, -0.04, 3.25, -3.26].map(number);
        assert_eq!(texts, ["12", "0", "3.3", "-3.3"]);
    }
}
