//! Drawings as SVG: inside a page, or as a file of their own. Needs no script; follows the reader's light or dark setting.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use super::draw::draw;
use super::{Chart, Report};

/// Left of a chart's plot are the values of its vertical axis, right of it is some room, and below it is the horizontal axis.
pub(super) const LEFT: f64 = 62.0;
pub(super) const MARGIN: f64 = 12.0;
pub(super) const BELOW: f64 = 38.0;

/// How wide and high a drawing's plot is, in pixels; titles and legends are above it, the horizontal axis below.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) right: f64,
    pub(super) height: f64,
    /// So many ticks look well across, and up.
    pub(super) ticks: (usize, usize),
}

/// As wide as a page.
pub(super) const WIDE: Size = Size {
    right: 748.0,
    height: 220.0,
    ticks: (9, 5),
};
/// For several beside each other.
pub(super) const SMALL: Size = Size {
    right: 340.0,
    height: 110.0,
    ticks: (4, 4),
};

/// Colours and strokes of all drawings, for a `style` element.
pub const STYLE: &str = "\
.chart{font:11px system-ui,'DejaVu Sans',sans-serif;font-variant-numeric:tabular-nums}\
.chart text{fill:#5d656e}.chart .name{fill:#1d2126}.chart .title{font-weight:600}.chart .y,.chart .right{text-anchor:end}.chart .x{text-anchor:middle}\
.chart .grid{stroke:#e7e4dd;fill:none}.chart .axis{stroke:#5d656e;fill:none}.chart .beyond{fill:#b23a2c}\
.dots{fill:none;stroke:currentColor;stroke-width:2;stroke-linecap:round}.bars{fill:currentColor}.over{fill-opacity:.55}\
.line{fill:none;stroke:currentColor;stroke-width:1.6;stroke-linejoin:round}.sign{fill:none;stroke:currentColor;stroke-width:1.4}\
.solid{fill:currentColor}.model{fill:none;stroke:#1d2126;stroke-width:1.2}\
.m0{stroke-dasharray:7 4}.m1{stroke-dasharray:2 3}.m2{stroke-dasharray:9 3 2 3}.m3{stroke-dasharray:4 2}\
.s0{color:#2f6299}.s1{color:#b8443a}.s2{color:#c9852b}.s3{color:#2e8b84}.s4{color:#7a5aa6}.s5{color:#5b7a29}.s6{color:#a4508b}.s7{color:#6f6250}\
.lanes rect{fill:currentColor}.slot{color:#a9c3df}.crowd{color:#d3d0c9}.disturbed{color:#b8443a;fill-opacity:.55}\
@media screen and (prefers-color-scheme:dark){\
.chart text{fill:#98a0a9}.chart .name{fill:#e4e2dd}.chart .grid{stroke:#2b3036}.chart .axis{stroke:#98a0a9}.chart .beyond{fill:#ea8a7b}\
.model{stroke:#e4e2dd}.slot{color:#32506f}.crowd{color:#3c4248}.disturbed{color:#e07b6f}\
.s0{color:#6fa3d8}.s1{color:#ea8a7b}.s2{color:#dfa557}.s3{color:#5bbdb4}.s4{color:#ab8fd6}.s5{color:#a6c46a}.s6{color:#dc8fc4}.s7{color:#c4b69f}}";

/// A drawing for a page that has [`STYLE`], with about `most` strokes for each series of dots at most.
pub(super) fn inline(chart: &Chart, most: usize, size: Size) -> String {
    draw(chart, most, size, false)
}

/// A drawing as a file of its own. The same chart gives the same bytes.
pub fn alone(chart: &Chart) -> String {
    let mut file = draw(chart, 2_500, WIDE, true);
    file.push('\n');
    file
}

/// All drawings of a report as files of their own: names, such as `modem-figure-10.svg`, and contents. The second of a figure ends in `-2`.
pub fn files(report: &Report) -> Vec<(String, String)> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for figure in &report.figures {
        let base = stem(report.experiment, &figure.key);
        for chart in &figure.charts {
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

/// With what the names of all drawings of a figure begin, of which the first has no more than that and `.svg`.
pub fn stem(experiment: &str, key: &str) -> String {
    // Whoever chooses keys chooses no directories.
    format!("{experiment}-{}", plain(key))
}

/// A name of letters, digits and hyphens.
pub(super) fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    name.chars().map(plain).collect()
}

/// A drawing under construction.
#[derive(Default)]
pub(super) struct Svg(String);

impl Svg {
    /// A whole drawing: what is in it, and the same in words for who does not see it. A drawing that is alone has a title and its style.
    pub(super) fn whole(
        (width, height): (f64, f64),
        words: &str,
        alone: Option<&str>,
        inside: &Self,
    ) -> String {
        let (namespace, head) = match alone {
            Some(title) => (
                r#" xmlns="http://www.w3.org/2000/svg""#,
                format!("<style>{STYLE}</style><title>{}</title>", escape(title)),
            ),
            None => ("", String::new()),
        };
        let (height, words) = (number(height), escape(words));
        format!(
            r#"<svg{namespace} class="chart" viewBox="0 0 {width} {height}" role="img">{head}<desc>{words}</desc>{}</svg>"#,
            inside.0
        )
    }

    /// Appends markup, or what is drawn in a path.
    pub(super) fn push(&mut self, markup: fmt::Arguments<'_>) {
        self.0.write_fmt(markup).expect("a string takes all");
    }

    /// A path. Its class begins or is all of its attributes: `line`, `line" style="…`.
    pub(super) fn path(&mut self, class: &str, path: impl fmt::Display) {
        self.push(format_args!(r#"<path class="{class}" d="{path}"/>"#));
    }

    /// A text from or around a place, as its class says.
    pub(super) fn text(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        if text.is_empty() {
            return;
        }
        let (x, y, text) = (number(x), number(y), escape(text));
        let class = match class {
            "" => String::new(),
            class => format!(r#" class="{class}""#),
        };
        self.push(format_args!(
            r#"<text{class} x="{x}" y="{y}">{text}</text>"#
        ));
    }

    /// What belongs together; a reader who points at it sees its name. Its class begins or is all of its attributes.
    pub(super) fn group(&mut self, class: &str, name: &str, fill: impl FnOnce(&mut Self)) {
        self.push(format_args!(r#"<g class="{class}">"#));
        if !name.is_empty() {
            self.push(format_args!("<title>{}</title>", escape(name)));
        }
        fill(self);
        self.push(format_args!("</g>"));
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Svg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
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

/// Text for between tags and quotes: what markup would obey is escaped, and what XML forbids is replaced.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in crate::plain(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // Neither is a character of XML.
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Axis, Figure, Mark, Series, Unit};

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
        // What begins where the range ends is beyond it.
        let points = vec![
            (950_000, 100),
            (3_000_000, 4),
            (5_300_000, 3),
            (7_000_000, 2),
        ];
        let all = inline(&chart(mark, points.clone(), None), 100, WIDE);
        assert!(!all.contains("beyond"), "{all}");
        let cropped = inline(&chart(mark, points, Some((0, 3_000_000))), 100, WIDE);
        assert!(cropped.contains("9 beyond, up to 7 ms"), "{cropped}");
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
            charts: vec![chart(Mark::Dots, vec![(0, 1)], None); 2],
            ..Figure::default()
        };
        let report = Report {
            experiment: "modem",
            figures: vec![figure("figure-3"), figure("../figure-3")],
            ..Report::default()
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
                let svg = inline(&empty, 10, WIDE);
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            }
        }
    }

    #[test]
    fn coordinates_are_short() {
        let texts = [12.0, -0.04, 3.25, -3.26].map(number);
        assert_eq!(texts, ["12", "0", "3.3", "-3.3"]);
    }

    #[test]
    fn nothing_is_obeyed() {
        let hostile = "</title><script>\"'&\u{0}\u{1b}\u{ffff}";
        assert_eq!(
            escape(hostile),
            "&lt;/title&gt;&lt;script&gt;&quot;&#39;&amp;\\u{0}\\u{1b}\u{fffd}"
        );
    }
}
