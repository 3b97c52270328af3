//! The study as one HTML page: opens offline, needs no script, follows the reader's light or dark setting.

use askama::Template;

use super::chart;
use super::compared::TESTS;
use super::results::{Point, Results, Sweep, TestJson};
use super::table;

/// The page. The same results give the same bytes.
///
/// # Errors
///
/// None are known: the template is compiled in, and writing to memory does not fail.
pub fn render(results: &Results) -> Result<String, askama::Error> {
    let tests = results.tests.iter().enumerate();
    let tests = tests.map(|(index, test)| (index, chart::sample(index), test));
    let page = Page {
        results,
        legend: tests.collect(),
        headings: TESTS
            .map(|test| (test.heading.join(" "), test.label))
            .into(),
        figures: results.sweeps.iter().map(|s| figure(results, s)).collect(),
        comparison: comparison(results),
        remarks: table::remarks(results),
    };
    page.render()
}

#[derive(Template)]
#[template(path = "acceptance.html")]
struct Page<'a> {
    results: &'a Results,
    /// A test's number, what its curve looks like, and the test.
    legend: Vec<(usize, String, &'a TestJson)>,
    /// Short, and in full.
    headings: Vec<(String, &'static str)>,
    figures: Vec<Figure<'a>>,
    comparison: Vec<ComparedRow>,
    remarks: Vec<String>,
}

struct Figure<'a> {
    sweep: &'a Sweep,
    svg: String,
    rows: Vec<(String, Vec<Cell>)>,
}

/// A percentage and its standard error, as text.
struct Cell {
    percent: String,
    error: String,
}

struct ComparedRow {
    region: String,
    utilization: String,
    /// Counted, and what is quoted.
    cells: Vec<(Cell, Option<String>)>,
}

fn cell(results: &Results, accepted: u32) -> Cell {
    let (percent, error) = results.percent(accepted);
    Cell {
        percent: format!("{percent:.1}"),
        error: format!("{error:.1}"),
    }
}

fn figure<'a>(results: &'a Results, sweep: &'a Sweep) -> Figure<'a> {
    let label = format!(
        "Percent of sets that each test accepts, by {}; the table below has the numbers",
        sweep.axis
    );
    let row = |point: &Point| {
        let cells = point.accepted.iter().map(|n| cell(results, *n)).collect();
        (point.value.to_string(), cells)
    };
    Figure {
        sweep,
        svg: chart::curves(results, sweep, &label),
        rows: sweep.points.iter().map(row).collect(),
    }
}

fn comparison(results: &Results) -> Vec<ComparedRow> {
    let rows = results.comparison.iter();
    rows.map(|row| {
        let quoted = row.quoted_percent.iter();
        let cells = row.point.accepted.iter().zip(quoted).map(|(n, quoted)| {
            let quoted = quoted.map(|percent| format!("{percent:.1}"));
            (cell(results, *n), quoted)
        });
        ComparedRow {
            region: format!("{} C", row.region),
            utilization: format!("{:.2}", row.point.value),
            cells: cells.collect(),
        }
    })
    .collect()
}
