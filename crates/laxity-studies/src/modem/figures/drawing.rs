//! Drawings: dots over the time of a run, and histograms of gaps.

use laxity_lab::report::{Axis, Chart, Mark, Series as Drawn, Unit, nanos};
use laxity_model::Span;
use serde::Deserialize;

use super::reading::BUCKET;
use super::readings::{Point, Readings, Series};

/// The live buckets' edges lie so that 1 ms, at which most gaps are, is in the middle of one.
const LIVE_EDGE: Span = Span::from_micros(25);

/// How a series is drawn, wherever it is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Look {
    axis: String,
    /// What a dot is, or what is counted in a bar.
    dots: String,
    /// The end of the axis; `None`: what the points need.
    until: Option<i64>,
}

/// A series of a run in a figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Drawing {
    pub(super) figure: String,
    pub(super) run: String,
    pub(super) series: Series,
    /// In the twin, and on this machine.
    captions: Option<[String; 2]>,
    /// Its name, and where it lies.
    limit: Option<(String, i64)>,
}

impl Drawing {
    /// The drawing of what was seen on one host; what was disturbed is left out.
    pub(super) fn chart(&self, look: &Look, runs: &[&Readings], is_live: bool) -> Chart {
        let host = usize::from(is_live);
        let caption = match &self.captions {
            Some(captions) => captions[host].as_str(),
            None => ["twin", "this machine"][host],
        };
        let points = runs.iter().flat_map(|run| run.points(self.series));
        let fair = points.filter(|point| !point.disturbed);
        let unit = match self.series {
            Series::Pending | Series::Damage => Unit::Count,
            Series::Windows => Unit::PartsPerMillion,
            _ => Unit::Nanoseconds,
        };
        let axis = Axis {
            range: look.until.map(|until| (0, until)),
            ..Axis::new(&look.axis, unit)
        };
        if matches!(self.series, Series::Gaps | Series::Lags) {
            let edge = if is_live { LIVE_EDGE } else { Span::ZERO };
            let gaps = fair.map(|point| Span::from_nanos(point.value));
            let bars = Drawn::histogram(&look.dots, (edge, BUCKET), gaps);
            let count = Axis {
                logarithmic: true,
                ..Axis::count(&look.dots)
            };
            return Chart::new(caption, (axis, count), vec![bars]);
        }
        // A window in which the handler never ran is no dot.
        let fair = fair.filter(|point| self.series != Series::Windows || point.value > 0);
        let dots = fair.map(|point: &Point| (nanos(point.at), point.value as i64));
        let dots = Drawn::new(&look.dots, Mark::Dots, dots.collect());
        let time = Axis::time("time since the modem was started");
        let mut chart = Chart::new(caption, (time, axis), vec![dots]);
        let limit = self.limit.iter().zip(runs);
        chart.lines = limit
            .map(|((name, at), run)| (name.clone(), (0, *at), (nanos(run.length), *at)))
            .collect();
        chart
    }
}
