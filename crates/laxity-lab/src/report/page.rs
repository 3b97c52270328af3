//! A report as one HTML page: opens offline, needs no script, prints, follows the reader's light or dark setting.

use std::collections::BTreeSet;
use std::fmt;

use askama::Template;
use askama::filters::{Escaper, Html};

use super::text::{verdict, word};
use super::timeline;
use super::view::{self, TableView};
use super::{Figure, Mark, Origin, Report, svg};
use crate::layout::Align;
use crate::plain_lines;

/// Strokes for dots in a whole page, so that it stays small however much was recorded.
const STROKES: usize = 16_000;
/// And in one series: never fewer, never more.
const STROKES_OF_SERIES: (usize, usize) = (600, 2_500);
/// A page with more figures than this has a table of contents.
const FIGURES_WITHOUT_CONTENTS: usize = 4;

/// The page. The same report gives the same bytes.
///
/// # Errors
///
/// None are known: the template is compiled in, and writing to memory does not fail.
pub fn render(report: &Report) -> Result<String, askama::Error> {
    let all = report.figures.iter().flat_map(|figure| &figure.charts);
    let dots = all.flat_map(|chart| &chart.series);
    let dots = dots.filter(|series| series.mark == Mark::Dots).count();
    let most = (STROKES / dots.max(1)).clamp(STROKES_OF_SERIES.0, STROKES_OF_SERIES.1);
    let mut taken = BTreeSet::new();
    let views = report.figures.iter().map(|figure| FigureView {
        figure,
        anchor: anchor(&figure.key, &mut taken),
        drawings: drawings(figure, most),
        tables: view::tables(figure),
    });
    let figures: Vec<_> = views.collect();
    let page = Page {
        report,
        style: svg::STYLE,
        word: word(report).class(),
        verdict: verdict(report).trim_start_matches("verdict: ").to_owned(),
        with_contents: figures.len() > FIGURES_WITHOUT_CONTENTS,
        figures,
        checks: view::checks(&report.checks),
        origins: report.origins(),
        version: env!("CARGO_PKG_VERSION"),
    };
    page.render()
}

/// How texts stand in the page, as `askama.toml` has it: nothing in them is markup, and nothing in them steers, as nothing does on a terminal.
#[derive(Clone, Copy, Default)]
struct Shown;

impl Escaper for Shown {
    fn write_escaped_str<W: fmt::Write>(&self, page: W, text: &str) -> fmt::Result {
        Html.write_escaped_str(page, &plain_lines(text))
    }
}

#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    report: &'a Report,
    style: &'static str,
    word: &'static str,
    verdict: String,
    with_contents: bool,
    figures: Vec<FigureView<'a>>,
    checks: TableView<'a>,
    origins: BTreeSet<Origin>,
    version: &'static str,
}

struct FigureView<'a> {
    figure: &'a Figure,
    anchor: String,
    /// Captions and drawings.
    drawings: Vec<(&'a str, String)>,
    tables: Vec<TableView<'a>>,
}

fn drawings(figure: &Figure, most: usize) -> Vec<(&str, String)> {
    let size = if figure.side_by_side {
        svg::SMALL
    } else {
        svg::WIDE
    };
    let charts = figure.charts.iter();
    let charts = charts.map(|chart| (chart.caption.as_str(), svg::inline(chart, most, size)));
    let timelines = figure.timelines.iter();
    let timelines = timelines.map(|shown| (shown.caption.as_str(), timeline::inline(shown)));
    charts.chain(timelines).collect()
}

#[allow(
    unreachable_pub,
    reason = "what the attribute makes of a filter is public"
)]
mod filters {
    use std::fmt::Display;

    /// A text in which no number is parted from its name or its unit at the end of a line.
    #[askama::filter_fn]
    #[allow(
        clippy::unnecessary_wraps,
        reason = "a filter of askama returns a result"
    )]
    pub(super) fn whole(text: impl Display, _: &dyn askama::Values) -> askama::Result<String> {
        Ok(super::whole(&text.to_string()))
    }
}

/// What stands behind a number, and is nothing without it.
const UNITS: [&str; 9] = ["ns", "us", "µs", "ms", "s", "%", "Hz", "bit/s", "kbit/s"];
/// What stands before a number, and is its name or sign.
const NAMES: [&str; 10] = [
    "p50", "p90", "p99", "p99.9", "max", "=", "±", "×", "<=", ">",
];

/// A text of which spaces between a number and its name or its unit break no line.
fn whole(text: &str) -> String {
    let mut words = text.split(' ');
    let mut before = words.next().unwrap_or_default();
    let mut joined = before.to_owned();
    for word in words {
        let bare = word.trim_end_matches([',', ';', ':', '.', ')', '…']);
        let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
        let ends_in_number = before.ends_with(|c: char| c.is_ascii_digit());
        let belongs = (ends_in_number && (UNITS.contains(&bare) || bare == "±"))
            || (NAMES.contains(&before) && is_number(word))
            || bare == "=";
        joined.push(if belongs { '\u{a0}' } else { ' ' });
        joined.push_str(word);
        before = word;
    }
    joined
}

/// A name for links: what an address may hold, and nothing twice.
fn anchor(key: &str, taken: &mut BTreeSet<String>) -> String {
    let mut name = svg::plain(key);
    while !taken.insert(name.clone()) {
        name.push('-');
    }
    name
}

#[cfg(test)]
mod tests {
    use super::{render, whole};
    use crate::report::{Figure, Report};

    #[test]
    fn whatever_a_text_has_in_it_steers_nobody() {
        let evil = "<b>\u{1b}]0;x\u{7}\u{202e}".to_owned();
        let report = Report {
            experiment: "",
            title: evil.clone(),
            summary: vec![evil.clone()],
            circumstances: vec![("command", evil.clone())],
            figures: vec![Figure {
                key: evil.clone(),
                title: evil.clone(),
                about: evil.clone(),
                remarks: vec![evil],
                ..Figure::default()
            }],
            checks: Vec::new(),
        };
        let page = render(&report).expect("a page");
        assert!(!page.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{page:?}");
        let shown = r"&#60;b&#62;\u{1b}]0;x\u{7}\u{202e}";
        // In the title, the heading, the summary, and wherever else it was put.
        assert_eq!(page.matches(shown).count(), 7, "{page}");
    }

    #[test]
    fn a_number_stays_with_its_name_and_its_unit() {
        for (text, expected) in [
            (
                "Gap: n = 4356 · p50 978.9 µs · p99 2.589 ms",
                "Gap: n_=_4356 · p50_978.9_µs · p99_2.589_ms",
            ),
            (
                "36.38 ± 0.06 s, within 15 %: -1.2 %",
                "36.38_±_0.06_s, within 15_%: -1.2_%",
            ),
            ("max 28", "max_28"),
            (
                "all s of 4 modems, max of all",
                "all s of 4 modems, max of all",
            ),
            ("", ""),
        ] {
            assert_eq!(whole(text).replace('\u{a0}', "_"), expected);
        }
    }
}
