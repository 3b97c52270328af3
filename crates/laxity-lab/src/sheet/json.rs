//! A sheet for programs: integers with their units in the names, the origin beside each value, keys in a fixed order.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

use super::{
    Axis, Cell, Chart, Check, Compared, Figure, Mark, Series, Sheet, Table, Unit, Value, Verdict,
};

/// What changes when a reader of the file must change.
pub const FILE_VERSION: u32 = 1;

/// The bytes of the file: a table's row, a curve or a check a line, ending in a newline. The same sheet gives the same bytes.
#[must_use]
pub fn render(sheet: &Sheet) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, Lines::new());
    SheetJson::from(sheet)
        .serialize(&mut serializer)
        .expect("numbers and strings go into memory");
    bytes.push(b'\n');
    bytes
}

#[derive(Serialize)]
struct SheetJson<'a> {
    file_version: u32,
    laxity_version: &'static str,
    experiment: &'a str,
    title: &'a str,
    holds: bool,
    summary: &'a [String],
    circumstances: Vec<Circumstance<'a>>,
    checks: Vec<CheckJson<'a>>,
    figures: Vec<FigureJson<'a>>,
}

#[derive(Serialize)]
struct Circumstance<'a> {
    name: &'a str,
    value: &'a str,
}

#[derive(Serialize)]
struct CheckJson<'a> {
    claim: &'a str,
    held: bool,
    seen: &'a str,
}

#[derive(Serialize)]
struct FigureJson<'a> {
    key: &'a str,
    title: &'a str,
    about: &'a str,
    compared: Vec<ComparedJson<'a>>,
    tables: Vec<TableJson<'a>>,
    remarks: &'a [String],
    charts: Vec<ChartJson<'a>>,
}

#[derive(Serialize)]
struct ComparedJson<'a> {
    quantity: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    paper: Option<CellJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    twin: Option<CellJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    predicted: Option<CellJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<CellJson<'a>>,
    verdict: VerdictJson<'a>,
}

#[derive(Serialize)]
struct VerdictJson<'a> {
    result: &'static str,
    why: &'a str,
}

#[derive(Serialize)]
struct CellJson<'a> {
    origin: &'static str,
    #[serde(flatten)]
    value: ValueJson<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum ValueJson<'a> {
    SpanNs(u64),
    Count(u64),
    SharePpm(u32),
    RatioThousandths(u64),
    BitRateBitS(u64),
    Attempts(AttemptsJson),
    Text(&'a str),
}

#[derive(Serialize)]
struct AttemptsJson {
    made: u32,
    succeeded: u32,
    #[serde(flatten)]
    times: Option<TimesJson>,
}

#[derive(Serialize)]
struct TimesJson {
    min_ns: u64,
    max_ns: u64,
    mean_ns: u64,
    deviation_ns: u64,
}

#[derive(Serialize)]
struct TableJson<'a> {
    caption: &'a str,
    columns: &'a [String],
    rows: Vec<Vec<Option<CellJson<'a>>>>,
}

#[derive(Serialize)]
struct ChartJson<'a> {
    caption: &'a str,
    x: AxisJson<'a>,
    y: AxisJson<'a>,
    series: Vec<SeriesJson<'a>>,
    lines: Vec<LineJson<'a>>,
}

#[derive(Serialize)]
struct AxisJson<'a> {
    label: &'a str,
    unit: &'static str,
    logarithmic: bool,
    range: Option<(i64, i64)>,
}

#[derive(Serialize)]
struct SeriesJson<'a> {
    name: &'a str,
    mark: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bar_width: Option<i64>,
    points: &'a [(i64, i64)],
}

#[derive(Serialize)]
struct LineJson<'a> {
    name: &'a str,
    from: (i64, i64),
    to: (i64, i64),
}

impl<'a> From<&'a Sheet> for SheetJson<'a> {
    fn from(sheet: &'a Sheet) -> Self {
        let circumstances = sheet.circumstances.iter();
        Self {
            file_version: FILE_VERSION,
            laxity_version: env!("CARGO_PKG_VERSION"),
            experiment: sheet.experiment,
            title: &sheet.title,
            holds: sheet.holds(),
            summary: &sheet.summary,
            circumstances: circumstances
                .map(|(name, value)| Circumstance { name, value })
                .collect(),
            checks: sheet.checks.iter().map(CheckJson::from).collect(),
            figures: sheet.figures.iter().map(FigureJson::from).collect(),
        }
    }
}

impl<'a> From<&'a Check> for CheckJson<'a> {
    fn from(check: &'a Check) -> Self {
        Self {
            claim: &check.claim,
            held: check.held,
            seen: &check.seen,
        }
    }
}

impl<'a> From<&'a Figure> for FigureJson<'a> {
    fn from(figure: &'a Figure) -> Self {
        Self {
            key: &figure.key,
            title: &figure.title,
            about: &figure.about,
            compared: figure.compared.iter().map(ComparedJson::from).collect(),
            tables: figure.tables.iter().map(TableJson::from).collect(),
            remarks: &figure.remarks,
            charts: figure.charts.iter().map(ChartJson::from).collect(),
        }
    }
}

impl<'a> From<&'a Compared> for ComparedJson<'a> {
    fn from(row: &'a Compared) -> Self {
        let cell = |cell: &'a Option<Cell>| cell.as_ref().map(CellJson::from);
        Self {
            quantity: &row.quantity,
            paper: cell(&row.paper),
            twin: cell(&row.twin),
            predicted: cell(&row.predicted),
            live: cell(&row.live),
            verdict: VerdictJson::from(&row.verdict),
        }
    }
}

impl<'a> From<&'a Verdict> for VerdictJson<'a> {
    fn from(verdict: &'a Verdict) -> Self {
        let (result, why) = verdict.parts();
        Self { result, why }
    }
}

impl<'a> From<&'a Cell> for CellJson<'a> {
    fn from(cell: &'a Cell) -> Self {
        let value = match &cell.value {
            Value::Span(span) => ValueJson::SpanNs(span.as_nanos()),
            Value::Count(count) => ValueJson::Count(*count),
            Value::Share(ppm) => ValueJson::SharePpm(*ppm),
            Value::Ratio(thousandths) => ValueJson::RatioThousandths(*thousandths),
            Value::BitRate(rate) => ValueJson::BitRateBitS(*rate),
            Value::Attempts(attempts) => ValueJson::Attempts(AttemptsJson {
                made: attempts.made,
                succeeded: attempts.succeeded,
                times: attempts.times.map(|times| TimesJson {
                    min_ns: times.min.as_nanos(),
                    max_ns: times.max.as_nanos(),
                    mean_ns: times.mean.as_nanos(),
                    deviation_ns: times.deviation.as_nanos(),
                }),
            }),
            Value::Text(text) => ValueJson::Text(text),
        };
        Self {
            origin: cell.origin.name(),
            value,
        }
    }
}

impl<'a> From<&'a Table> for TableJson<'a> {
    fn from(table: &'a Table) -> Self {
        let row = |row: &'a Vec<Option<Cell>>| {
            let cells = row.iter();
            cells
                .map(|cell| cell.as_ref().map(CellJson::from))
                .collect()
        };
        Self {
            caption: &table.caption,
            columns: &table.columns,
            rows: table.rows.iter().map(row).collect(),
        }
    }
}

impl<'a> From<&'a Chart> for ChartJson<'a> {
    fn from(chart: &'a Chart) -> Self {
        let lines = chart.lines.iter();
        Self {
            caption: &chart.caption,
            x: AxisJson::from(&chart.x),
            y: AxisJson::from(&chart.y),
            series: chart.series.iter().map(SeriesJson::from).collect(),
            lines: lines
                .map(|(name, from, to)| LineJson {
                    name,
                    from: *from,
                    to: *to,
                })
                .collect(),
        }
    }
}

impl<'a> From<&'a Axis> for AxisJson<'a> {
    fn from(axis: &'a Axis) -> Self {
        Self {
            label: &axis.label,
            unit: match axis.unit {
                Unit::Nanoseconds => "ns",
                Unit::PartsPerMillion => "ppm",
                Unit::Count => "count",
            },
            logarithmic: axis.logarithmic,
            range: axis.range,
        }
    }
}

impl<'a> From<&'a Series> for SeriesJson<'a> {
    fn from(series: &'a Series) -> Self {
        let (mark, bar_width) = match series.mark {
            Mark::Dots => ("dots", None),
            Mark::Bars { width } => ("bars", Some(width)),
            Mark::Line => ("line", None),
            Mark::Filled => ("filled", None),
            Mark::Half => ("half", None),
            Mark::Empty => ("empty", None),
        };
        Self {
            name: &series.name,
            mark,
            bar_width,
            points: &series.points,
        }
    }
}

/// Lines down to this depth, so that a difference between two files is a difference of lines; no line a number.
const DEEPEST_LINES: usize = 5;

/// Line breaks and indents in the outer levels, and in lists one level deeper; everything inside is on one line.
struct Lines {
    pretty: PrettyFormatter<'static>,
    /// Of everything that is open, outermost first: whether it has lines of its own.
    open: Vec<bool>,
}

impl Lines {
    fn new() -> Self {
        Self {
            pretty: PrettyFormatter::with_indent(b" "),
            open: Vec::new(),
        }
    }

    fn in_lines(&self) -> bool {
        self.open.last().copied().unwrap_or(true)
    }

    fn begin(&mut self, deepest: usize) -> bool {
        let in_lines = self.open.len() < deepest;
        self.open.push(in_lines);
        in_lines
    }
}

impl Formatter for Lines {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.begin(DEEPEST_LINES + 1) {
            self.pretty.begin_array(writer)
        } else {
            writer.write_all(b"[")
        }
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        match self.open.pop() {
            Some(false) => writer.write_all(b"]"),
            _ => self.pretty.end_array(writer),
        }
    }

    fn begin_array_value<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        match (self.in_lines(), first) {
            (true, _) => self.pretty.begin_array_value(writer, first),
            (false, true) => Ok(()),
            (false, false) => writer.write_all(b","),
        }
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.in_lines() {
            self.pretty.end_array_value(writer)
        } else {
            Ok(())
        }
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.begin(DEEPEST_LINES) {
            self.pretty.begin_object(writer)
        } else {
            writer.write_all(b"{")
        }
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        match self.open.pop() {
            Some(false) => writer.write_all(b"}"),
            _ => self.pretty.end_object(writer),
        }
    }

    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        match (self.in_lines(), first) {
            (true, _) => self.pretty.begin_object_key(writer, first),
            (false, true) => Ok(()),
            (false, false) => writer.write_all(b","),
        }
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.in_lines() {
            self.pretty.begin_object_value(writer)
        } else {
            writer.write_all(b":")
        }
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.in_lines() {
            self.pretty.end_object_value(writer)
        } else {
            Ok(())
        }
    }
}
