//! The tables on the terminal: plain text, at most 110 columns.

use super::compared::TESTS;
use super::results::{Point, Results};

/// The widest line, in characters.
pub const WIDTH: usize = 110;
/// Of the columns of tests.
const COLUMN: usize = 7;
/// Of the first column.
const FIRST: usize = 12;

/// All tables, ending in a newline.
#[must_use]
pub fn render(results: &Results) -> String {
    let mut lines = vec![format!(
        "Acceptance ratios: {} sets a point, {} tasks a set, seed {}; percent of sets accepted",
        results.sets, results.tasks, results.seed
    )];
    lines.push(String::new());
    lines.push("Beside the quoted figures; ± is one binomial standard error (none or all of N: below 3/N, with 95 %)".into());
    lines.extend(headings("q, U"));
    for row in &results.comparison {
        let region = if row.region == 1.0 {
            "C".to_string()
        } else {
            format!("C/{}", 1.0 / row.region)
        };
        let name = format!("{region}, {:.2}", row.point.value);
        lines.push(line(&name, cells(results, &row.point)));
        let errors = row.point.accepted.iter().map(|accepted| {
            let (_, error) = results.percent(*accepted);
            format!("±{error:.1}")
        });
        lines.push(line("", errors));
        let quoted = row
            .quoted_percent
            .iter()
            .map(|quoted| quoted.map_or_else(String::new, |percent| format!("{percent:.1}")));
        if row.quoted_percent.iter().any(Option::is_some) {
            lines.push(line("  quoted", quoted));
        }
    }
    for sweep in results.sweeps.iter().filter(|sweep| sweep.in_table) {
        lines.push(String::new());
        lines.push(format!("{} ({})", sweep.title, sweep.fixed));
        let symbol = sweep.axis.rsplit(' ').next().unwrap_or_default();
        lines.extend(headings(symbol));
        for point in &sweep.points {
            lines.push(line(&point.value.to_string(), cells(results, point)));
        }
    }
    lines.push(String::new());
    for remark in remarks(results) {
        wrap(&mut lines, &remark);
    }
    let text = lines.iter().map(|line| format!("{}\n", line.trim_end()));
    text.collect()
}

/// What is to be said of all sets: orders kept or not, answers not given, and where the figures come from.
pub(super) fn remarks(results: &Results) -> Vec<String> {
    let sets = results.orders.first().map_or(0, |order| order.sets);
    let mut remarks = Vec::new();
    if results.counterexamples() == 0 {
        remarks.push(format!(
            "In none of {sets} sets did a test accept what a stronger one rejects ({} orders checked).",
            results.orders.len()
        ));
    }
    for order in results.orders.iter().filter(|o| o.counterexamples > 0) {
        remarks.push(format!(
            "DEFECT: {} sets are accepted by {} and not by {}, although {}.",
            order.counterexamples, order.weaker, order.stronger, order.reason
        ));
    }
    match results.undecided() {
        0 => {}
        undecided => remarks.push(format!(
            "{undecided} answers were not given (search too long, or number too large); they count as not accepted."
        )),
    }
    if let Some((count, farthest)) = results.farthest_from_quoted() {
        remarks.push(format!(
            "Of {count} quoted figures the farthest is {farthest:.1} standard errors (of the difference of both samples) from the one counted here."
        ));
    }
    remarks.push(format!("Sets: {}.", results.generator));
    remarks.push(format!("Quoted: {}.", results.provenance.quoted));
    remarks
}

fn headings(first: &str) -> [String; 2] {
    let over = |row: usize| TESTS.iter().map(move |test| test.heading[row].to_string());
    [line(first, over(0)), line("", over(1))]
}

fn cells(results: &Results, point: &Point) -> Vec<String> {
    let cell = |accepted: &u32| format!("{:.1}", results.percent(*accepted).0);
    point.accepted.iter().map(cell).collect()
}

fn line(first: &str, cells: impl IntoIterator<Item = String>) -> String {
    let mut line = format!("{first:<FIRST$}");
    for cell in cells {
        line.push_str(&format!("{cell:>COLUMN$}"));
    }
    line
}

/// Breaks a remark between words.
fn wrap(lines: &mut Vec<String>, remark: &str) {
    let mut line = String::new();
    for word in remark.split(' ') {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
            // What follows stands below it.
            lines.push(std::mem::replace(&mut line, " ".into()));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
}
