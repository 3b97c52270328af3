//! Short ways to make the parts of a report.

use std::collections::BTreeMap;

use laxity_model::{Service, Span};

use super::{
    Axis, Cell, Chart, Compared, Figure, Mark, Origin, Point, Row, Series, Table, Unit, Value,
    Verdict,
};

impl From<Span> for Value {
    fn from(span: Span) -> Self {
        Self::Span(span)
    }
}

impl From<Service> for Value {
    fn from(service: Service) -> Self {
        Self::Span(service.as_dedicated_span())
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<usize> for Value {
    fn from(count: usize) -> Self {
        Self::Count(count as u64)
    }
}

impl From<String> for Value {
    fn from(words: String) -> Self {
        Self::Text(words)
    }
}

impl From<&str> for Value {
    fn from(words: &str) -> Self {
        Self::Text(words.into())
    }
}

impl Value {
    /// A share in parts per million; the most that can be told if there is more.
    #[must_use]
    pub fn share(ppm: u64) -> Self {
        Self::Share(u32::try_from(ppm).unwrap_or(u32::MAX))
    }
}

impl Origin {
    /// A value that comes from here.
    pub fn cell(self, value: impl Into<Value>) -> Option<Cell> {
        let value = value.into();
        Some(Cell {
            origin: self,
            value,
        })
    }

    /// Values that all come from here.
    pub fn row(self, values: impl IntoIterator<Item = Value>) -> Row {
        values.into_iter().map(|value| self.cell(value)).collect()
    }
}

impl Compared {
    /// A quantity of which nothing is known yet.
    pub fn new(quantity: impl Into<String>) -> Self {
        Self {
            quantity: quantity.into(),
            paper: None,
            twin: None,
            predicted: None,
            live: None,
            verdict: Verdict::Alone,
            live_verdict: Verdict::Alone,
        }
    }
}

impl Axis {
    /// An axis that shows what the points need.
    pub fn new(label: impl Into<String>, unit: Unit) -> Self {
        Self {
            label: label.into(),
            unit,
            logarithmic: false,
            range: None,
        }
    }

    /// An axis of time.
    pub fn time(label: impl Into<String>) -> Self {
        Self::new(label, Unit::Nanoseconds)
    }

    /// An axis of plain numbers.
    pub fn count(label: impl Into<String>) -> Self {
        Self::new(label, Unit::Count)
    }
}

impl Table {
    /// A table that needs no caption.
    pub(super) fn new<const N: usize>(
        columns: [&str; N],
        rows: impl IntoIterator<Item = Row>,
    ) -> Self {
        Self {
            caption: String::new(),
            columns: columns.map(Into::into).into(),
            rows: rows.into_iter().collect(),
        }
    }
}

impl Figure {
    /// A table alone.
    pub(super) fn of_table(key: &str, title: &str, table: Table) -> Self {
        Self {
            key: key.into(),
            title: title.into(),
            tables: vec![table],
            ..Self::default()
        }
    }
}

impl Chart {
    /// A drawing without limits or models across it.
    pub fn new(caption: impl Into<String>, (x, y): (Axis, Axis), series: Vec<Series>) -> Self {
        Self {
            caption: caption.into(),
            x,
            y,
            series,
            lines: Vec::new(),
        }
    }
}

impl Series {
    /// Points drawn in this way; their x must rise.
    pub fn new(name: impl Into<String>, mark: Mark, points: Vec<Point>) -> Self {
        let name = name.into();
        Self { name, mark, points }
    }

    /// A histogram of spans: how many lie in each bucket of this width, one of which begins at `edge`.
    pub fn histogram(
        name: impl Into<String>,
        (edge, width): (Span, Span),
        spans: impl IntoIterator<Item = Span>,
    ) -> Self {
        let [edge, width] = [edge, width].map(nanos);
        let mut buckets = BTreeMap::new();
        for span in spans {
            let bucket = (nanos(span) - edge).div_euclid(width) * width + edge;
            *buckets.entry(bucket).or_insert(0) += 1;
        }
        let mark = Mark::Bars { width };
        Self::new(name, mark, buckets.into_iter().collect())
    }

    /// A histogram of values that are counted already, each with how often it was seen: how many lie in each bucket of this width (at least 1).
    pub fn counted(
        name: impl Into<String>,
        width: u64,
        values: impl IntoIterator<Item = (u64, u64)>,
    ) -> Self {
        let mut buckets = BTreeMap::new();
        for (value, count) in values {
            let bucket = coordinate(value / width * width);
            *buckets.entry(bucket).or_insert(0) += coordinate(count);
        }
        let width = coordinate(width);
        Self::new(name, Mark::Bars { width }, buckets.into_iter().collect())
    }

    /// A line around its bars, which may be drawn over the bars of another.
    #[must_use]
    pub fn outlined(self) -> Self {
        let Mark::Bars { width } = self.mark else {
            return self;
        };
        let mut corners: Vec<Point> = Vec::new();
        for (from, count) in self.points {
            // From one bar to its neighbour the outline goes straight.
            if corners.last() == Some(&(from, 0)) {
                corners.pop();
            } else {
                corners.push((from, 0));
            }
            corners.extend([(from, count), (from + width, count), (from + width, 0)]);
        }
        Self::new(self.name, Mark::Line, corners)
    }
}

/// A span as a coordinate of a drawing.
pub fn nanos(span: Span) -> i64 {
    coordinate(span.as_nanos())
}

/// A number as a coordinate of a drawing.
pub(super) fn coordinate(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outline_of_bars_goes_round_them() {
        let bars = Series::counted("control", 10, [(5, 2), (9, 3), (10, 7), (30, 1)]);
        assert_eq!(bars.mark, Mark::Bars { width: 10 });
        assert_eq!(bars.points, [(0, 5), (10, 7), (30, 1)]);
        let outline = bars.outlined();
        let corners = [
            (0, 0),
            (0, 5),
            (10, 5),
            (10, 7),
            (20, 7),
            (20, 0),
            (30, 0),
            (30, 1),
            (40, 1),
            (40, 0),
        ];
        assert_eq!(
            (outline.mark, &outline.points[..]),
            (Mark::Line, &corners[..])
        );
        assert_eq!(outline.clone().outlined(), outline, "there are no bars");
    }
}
