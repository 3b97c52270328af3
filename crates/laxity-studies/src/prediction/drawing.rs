//! Predicted over measured, in one drawing: bars of what was measured, and around where the twin would have them a line.

use std::sync::LazyLock;

use laxity_lab::report::{Axis, Chart, Series};
use laxity_model::base::histogram::Histogram;
use serde::Deserialize;

use super::TEXT;
use super::seen::{Account, Of};

/// Bars in a drawing.
const BARS: u64 = 73;

/// What is drawn of a program, and what it is called.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Drawing {
    of: Of,
    what: String,
}

static DRAWINGS: LazyLock<Vec<Drawing>> = LazyLock::new(|| TEXT.quoted("drawings"));

/// All drawings of one program.
pub(super) fn charts(predicted: &Account, live: Option<&Account>) -> Vec<Chart> {
    let drawings = DRAWINGS.iter();
    drawings
        .filter_map(|drawing| {
            let live = live.and_then(|live| live.histogram(drawing.of));
            chart(&drawing.what, predicted.histogram(drawing.of), live)
        })
        .collect()
}

/// Both, of whom there are; `None` of neither. What was measured is drawn first, and stays in sight under a line.
fn chart(what: &str, predicted: Option<&Histogram>, live: Option<&Histogram>) -> Option<Chart> {
    let both = [predicted, live].into_iter().flatten();
    let tails = both.filter_map(|seen| seen.percentile(999_000));
    // One stall of the machine is not to squeeze all the rest: it is told beside the drawing.
    let limit = tails.max()?.saturating_add(1);
    let width = limit.div_ceil(BARS);
    let binned = |name, seen: &Histogram| {
        let buckets = seen.buckets().map(|bucket| (bucket.low, bucket.count));
        Series::counted(name, width, buckets)
    };
    let measured = live.map(|seen| binned("measured", seen));
    let said = predicted.map(|seen| binned("predicted", seen).outlined());
    let key = if live.is_some() { "drawn" } else { "undrawn" };
    let time = Axis {
        range: Some((0, (width * BARS).try_into().unwrap_or(i64::MAX))),
        ..Axis::time("")
    };
    let count = Axis {
        logarithmic: true,
        ..Axis::count("how often")
    };
    let series = measured.into_iter().chain(said).collect();
    let caption = TEXT.say(key, &[("what", &what)]);
    Some(Chart::new(caption, (time, count), series))
}

#[cfg(test)]
mod tests {
    use laxity_lab::report::{Mark, svg};

    use super::*;

    fn seen(values: &[u64]) -> Histogram {
        let mut seen = Histogram::new();
        values.iter().for_each(|value| seen.record(*value));
        seen
    }

    #[test]
    fn what_was_predicted_is_drawn_over_what_was_measured_and_both_have_names() {
        let predicted = seen(&[1_000_000; 90]);
        let measured = seen(&[1_010_000; 100]);
        let chart = chart("the gap", Some(&predicted), Some(&measured)).expect("both are there");
        let marks: Vec<(&str, bool)> = chart
            .series
            .iter()
            .map(|series| {
                (
                    series.name.as_str(),
                    matches!(series.mark, Mark::Bars { .. }),
                )
            })
            .collect();
        assert_eq!(marks, [("measured", true), ("predicted", false)]);
        let outline = &chart.series[1];
        assert_eq!(outline.mark, Mark::Line);
        assert_eq!(outline.points.iter().map(|(_, y)| *y).max(), Some(90));
        let drawn = svg::alone(&chart);
        // What comes later is on top.
        let place = |class: &str| drawn.rfind(class).expect("it is drawn");
        assert!(place("class=\"bars\"") < place("class=\"line\""), "{drawn}");
        for name in [">measured</text>", ">predicted</text>"] {
            assert!(drawn.contains(name), "the legend has no {name}");
        }
    }

    #[test]
    fn what_only_one_of_both_has_is_drawn_alone_and_nothing_is_not_drawn() {
        let some = seen(&[5, 6, 7]);
        let names = |predicted, live| {
            let chart = chart("the gap", predicted, live)?;
            let names = chart.series.iter().map(|series| series.name.clone());
            Some((chart.caption.clone(), names.collect::<Vec<_>>()))
        };
        let alone = names(Some(&some), None).expect("it is drawn");
        assert_eq!(
            alone,
            ("the gap, predicted".into(), vec!["predicted".into()])
        );
        let unforeseen = names(None, Some(&some)).expect("it is drawn");
        assert_eq!(unforeseen.1, ["measured"]);
        assert_eq!(names(None, None), None);
        assert_eq!(charts(&Account::default(), None), []);
    }
}
