//! A report as one HTML page: opens offline, needs no script, prints, follows the reader's light or dark setting.

use std::collections::BTreeSet;

use askama::Template;

use super::text::verdict;
use super::timeline;
use super::view::{self, TableView};
use super::{Figure, Mark, Origin, Report, svg};
use crate::layout::Align;

/// Strokes for dots in a whole page, so that it stays small however much was recorded.
const STROKES: usize = 9_000;
/// And in one series: never fewer, never more.
const STROKES_OF_SERIES: (usize, usize) = (250, 2_500);
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
        verdict: verdict(report).trim_start_matches("verdict: ").to_owned(),
        with_contents: figures.len() > FIGURES_WITHOUT_CONTENTS,
        figures,
        checks: view::checks(&report.checks),
        origins: report.origins(),
        version: env!("CARGO_PKG_VERSION"),
    };
    page.render()
}

#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    report: &'a Report,
    style: &'static str,
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

/// A name for links: what an address may hold, and nothing twice.
fn anchor(key: &str, taken: &mut BTreeSet<String>) -> String {
    let mut name = svg::plain(key);
    while !taken.insert(name.clone()) {
        name.push('-');
    }
    name
}
