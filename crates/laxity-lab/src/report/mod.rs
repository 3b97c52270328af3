//! What a person and a program get to see of a run or of an experiment.
//!
//! Both leave a [`Report`], which an experiment makes itself and [`run`] makes of the results of a scenario. From it come [`text`], the terminal;
//! [`json`], programs; [`page`], one page with its drawings that opens offline and needs no script; [`svg`], a drawing as a file of its own. A report
//! has no floating-point number: spans are nanoseconds, shares parts per million. So the same run of the twin gives the same bytes everywhere.
//! On the terminal, the results of a scenario are a shorter table ([`run::table`]), made of the same columns.

pub mod calibration;
mod cells;
pub mod doctor;
mod draw;
pub mod json;
mod marks;
pub mod page;
pub mod run;
mod scale;
pub mod svg;
pub mod text;
mod thin;
mod timeline;
pub(crate) mod value;
mod view;

use std::collections::BTreeSet;

use laxity_model::Span;
use laxity_model::verify::contract::Outcome;
use serde::{Deserialize, Serialize};

pub use crate::layout::fixed;
pub use cells::nanos;
pub use timeline::Timeline;

/// Everything an experiment has to say.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Report {
    /// Its name on the command line.
    pub experiment: &'static str,
    /// A heading.
    pub title: String,
    /// What it shows and what came of it, for a reader who reads nothing else.
    pub summary: Vec<String>,
    /// Where and how it was made: host, kernel, seed, scale. Name and value.
    pub circumstances: Vec<(&'static str, String)>,
    /// Its parts, in the order of the source it follows.
    pub figures: Vec<Figure>,
    /// What the experiment claims, and whether it was so. One that was not makes the exit code 2.
    pub checks: Vec<Check>,
}

impl Report {
    /// What became of everything that was claimed: violated if something was not so, inconclusive if of something else the evidence does not tell.
    pub fn outcome(&self) -> Outcome {
        let has = |held: Option<bool>| self.checks.iter().any(|check| check.held == held);
        match (has(Some(false)), has(None)) {
            (true, _) => Outcome::Violated,
            (false, true) => Outcome::Inconclusive,
            (false, false) => Outcome::Met,
        }
    }

    /// Where its values come from.
    fn origins(&self) -> BTreeSet<Origin> {
        let cells = self.figures.iter().flat_map(Figure::cells);
        cells.map(|cell| cell.origin).collect()
    }
}

/// A claim that could have been false.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Check {
    /// What was expected, in a sentence.
    pub claim: String,
    /// Whether it was so; none where the evidence does not tell.
    pub held: Option<bool>,
    /// What was seen.
    pub seen: String,
}

/// A figure or table, redrawn and compared. Programs get its parts in this order.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Figure {
    /// What the command line calls it: `figure-10`, `table-3`.
    pub key: String,
    /// A heading, with the source's number where there is a source.
    pub title: String,
    /// What is drawn, under which conditions.
    pub about: String,
    /// Figures beside each other: quoted, simulated, measured.
    pub compared: Vec<Compared>,
    /// Anything else that is a table.
    pub tables: Vec<Table>,
    /// What a reader should know besides; why something differs.
    pub remarks: Vec<String>,
    /// Drawings.
    pub charts: Vec<Chart>,
    /// Whether they are drawn small, beside each other.
    #[serde(skip)]
    pub side_by_side: bool,
    /// Stretches of runs, for the page.
    #[serde(skip)]
    pub timelines: Vec<Timeline>,
}

impl Figure {
    /// All its values.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        let compared = self.compared.iter().flat_map(|row| {
            let cells = [&row.paper, &row.twin, &row.predicted, &row.live];
            cells.into_iter().flatten()
        });
        let tables = self.tables.iter().flat_map(|table| &table.rows);
        compared.chain(tables.flatten().flatten())
    }

    /// Whether it has nothing to show but words.
    pub const fn is_empty(&self) -> bool {
        self.charts.is_empty() && self.compared.is_empty() && self.tables.is_empty()
    }
}

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Put in: the twin was told. Agreement is a check of consistency, never a reproduction.
    Charged,
    /// It came out of a run of the twin.
    Simulated,
    /// It was measured on this machine.
    Measured,
    /// It was chosen so that something else agrees, or assumed.
    Calibrated,
    /// An analysis said it, or a twin of this machine, which may have been told how fast that was beside the run.
    Predicted,
    /// It stands in a publication.
    Quoted,
}

/// A value with its unit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// A span of time.
    #[serde(rename = "span_ns", serialize_with = "json::nanos")]
    Span(Span),
    /// How many.
    Count(u64),
    /// A share, in parts per million.
    #[serde(rename = "share_ppm")]
    Share(u32),
    /// A ratio, in thousandths.
    #[serde(rename = "ratio_thousandths")]
    Ratio(u64),
    /// Bits a second.
    #[serde(rename = "bit_rate_bit_s")]
    BitRate(u64),
    /// Repeated attempts at something that takes time.
    Attempts(Attempts),
    /// Words.
    Text(String),
}

/// The statistics of several attempts, as the study prints them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Attempts {
    /// How many were made.
    pub made: u32,
    /// How many succeeded.
    pub succeeded: u32,
    /// Shortest, longest, mean, and sample standard deviation of those that succeeded; `None` if none did.
    #[serde(flatten)]
    pub times: Option<Times>,
}

/// Statistics of spans.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Times {
    /// The shortest.
    #[serde(rename = "min_ns", serialize_with = "json::nanos")]
    pub min: Span,
    /// The longest.
    #[serde(rename = "max_ns", serialize_with = "json::nanos")]
    pub max: Span,
    /// The mean, rounded to the nanosecond.
    #[serde(rename = "mean_ns", serialize_with = "json::nanos")]
    pub mean: Span,
    /// The sample standard deviation (n − 1), rounded; zero for one.
    #[serde(rename = "deviation_ns", serialize_with = "json::nanos")]
    pub deviation: Span,
}

/// A value and where it comes from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Cell {
    /// Where from.
    pub origin: Origin,
    /// How much.
    #[serde(flatten)]
    pub value: Value,
}

/// The values of a table's row; `None` where there is nothing to say.
pub type Row = Vec<Option<Cell>>;

/// One quantity, as several sources have it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Compared {
    /// What it is: `largest gap, INT`.
    pub quantity: String,
    /// As published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paper: Option<Cell>,
    /// From the twin of the study's host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub twin: Option<Cell>,
    /// From a twin of this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted: Option<Cell>,
    /// As measured here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<Cell>,
    /// What the comparison says of the twin's value, or of what was predicted; never of what was measured beside a twin's.
    #[serde(serialize_with = "json::verdict")]
    pub verdict: Verdict,
    /// What is said of the value that was measured here, where that is judged by itself.
    #[serde(
        serialize_with = "json::verdict",
        skip_serializing_if = "Verdict::is_alone"
    )]
    pub live_verdict: Verdict,
}

/// What a comparison says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// They agree, by this criterion.
    Agrees(String),
    /// They do not, and this is the difference.
    Disagrees(String),
    /// One of them was put in or chosen: agreement shows only that nothing is broken.
    Consistent(String),
    /// The evidence does not tell, for this reason.
    Inconclusive(String),
    /// There is nothing to compare with.
    Alone,
}

impl Verdict {
    fn is_alone(&self) -> bool {
        *self == Self::Alone
    }
}

/// A table of its own.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// The heading of each column; the first column names the row.
    pub columns: Vec<String>,
    /// The rows; each as long as `columns`.
    pub rows: Vec<Row>,
}

/// A place in a drawing: x and y, in the units of the axes.
pub type Point = (i64, i64);

/// A drawing. Spans are nanoseconds, shares parts per million; the renderer chooses units.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Chart {
    /// What it shows; one line.
    pub caption: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn.
    pub series: Vec<Series>,
    /// Straight lines across it, such as limits and models: name, and two points.
    #[serde(serialize_with = "json::lines")]
    pub lines: Vec<(String, Point, Point)>,
}

/// An axis.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Axis {
    /// What it is, without the unit.
    pub label: String,
    /// Its unit.
    pub unit: Unit,
    /// Whether it is logarithmic; zeros are then drawn on the edge.
    pub logarithmic: bool,
    /// The range to draw; `None`: what the points need.
    pub range: Option<(i64, i64)>,
}

/// The unit of an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Unit {
    /// Nanoseconds, drawn as s, ms or µs by the range.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Parts per million, drawn in percent.
    #[serde(rename = "ppm")]
    PartsPerMillion,
    /// Plain numbers.
    #[serde(rename = "count")]
    Count,
}

/// Points that belong together.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// How it is drawn.
    #[serde(flatten)]
    pub mark: Mark,
    /// By rising x.
    pub points: Vec<Point>,
}

/// How a series is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "mark", rename_all = "snake_case")]
pub enum Mark {
    /// Small dots: thousands of single events.
    Dots,
    /// Bars from the axis, each from its x to x + `width` (in the unit of x): histograms.
    Bars {
        /// Width.
        #[serde(rename = "bar_width")]
        width: i64,
    },
    /// A line through the points.
    Line,
    /// Filled, half-filled and empty signs for a map: sufficient, marginal, insufficient.
    Filled,
    /// See [`Mark::Filled`].
    Half,
    /// See [`Mark::Filled`].
    Empty,
    /// A wider circle around a sign, which sets it apart.
    Ring,
    /// A cross: one that is no sign of the map.
    Cross,
}
