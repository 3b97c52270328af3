//! A task a line, as comma-separated values. The header names the columns, each time with its unit:
//!
//! ```text
//! name,cost_us,period_ms,deadline_ms,jitter_us,region_us,last_region_us,priority,processor
//! video,2500,40,40,0,626,624,12,0
//! ```
//!
//! Only a cost and a period are needed. A line that begins with `#` says nothing. What a number bounds, and from which side:
//!
//! | column | a job … | the analysis is safe if it is |
//! |---|---|---|
//! | `cost` | needs at most this much processor time | rounded up |
//! | `period` | arrives at least this long after the one before | rounded down |
//! | `deadline` | is due this long after it arrived; the period if empty | rounded down |
//! | `jitter` | is released at most this long after it arrived | rounded up |
//! | `region` | cannot be preempted for at most this long at a time | rounded up |
//! | `last_region` | cannot be preempted at its end for at least this long | rounded **down** |
//! | `priority` | is the more urgent the larger this is, equals in the order in which they come; by deadline if none has one | as it is |
//!
//! `region` without `last_region`: the regions may be anywhere in the job. Nothing or 0 in either means that there is none, or that nothing is
//! known of it.

mod row;

use csv::{ReaderBuilder, Trim};
use laxity_model::Span;
use laxity_model::analysis::{Preemption, Task, TaskError};

use super::Wrong;
use super::{Format, MOST_ERRORS, MOST_TASKS, Policy, SetTask, TaskSet};
use crate::plain::{plain, unfit};
use crate::scenario::diagnostic::{Source, nearest};
use crate::scenario::{MOST_PROCESSORS, units};
use row::Row;

/// What a column tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Name,
    Cost,
    Period,
    Deadline,
    Jitter,
    Region,
    LastRegion,
    Priority,
    Processor,
}

/// All columns, and whether their names end in a unit.
const KINDS: [(&str, Kind, bool); 9] = [
    ("name", Kind::Name, false),
    ("cost", Kind::Cost, true),
    ("period", Kind::Period, true),
    ("deadline", Kind::Deadline, true),
    ("jitter", Kind::Jitter, true),
    ("region", Kind::Region, true),
    ("last_region", Kind::LastRegion, true),
    ("priority", Kind::Priority, false),
    ("processor", Kind::Processor, false),
];
const UNITS: [&str; 4] = ["ns", "us", "ms", "s"];
const COLUMNS: &str = "the columns are name, cost_us, period_us, deadline_us, jitter_us, region_us, last_region_us, priority and \
                       processor; a time's column ends in _ns, _us, _ms or _s";
/// What others call a column of ours, in small letters.
const ALSO_CALLED: [(&str, &str); 11] = [
    ("c", "cost_us"),
    ("wcet", "cost_us"),
    ("runtime", "cost_us"),
    ("execution_time", "cost_us"),
    ("t", "period_us"),
    ("d", "deadline_us"),
    ("j", "jitter_us"),
    ("prio", "priority"),
    ("cpu", "processor"),
    ("core", "processor"),
    ("task", "name"),
];
/// So many columns that there are not are named.
const MOST_UNKNOWN: usize = 5;
const COMMAS: &str =
    "separate the columns by commas; what a number has behind its point, by a point";

/// A column of the file.
#[derive(Clone, Copy)]
struct Column {
    kind: Kind,
    /// The unit's name; empty where there is none.
    unit: &'static str,
}

/// Reads a whole file.
pub(super) fn read(source: Source<'_>) -> Result<TaskSet, Vec<Wrong>> {
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(Trim::All)
        .comment(Some(b'#'))
        .from_reader(source.text.as_bytes());
    let mut rows = reader.records().map(|record| {
        // The text is UTF-8, and lengths may differ: nothing is left that could be wrong with a record.
        record.map_err(|error| vec![source.error(0..0, error.to_string(), COLUMNS)])
    });
    let Some(header) = rows.next().transpose()? else {
        let cause = "the file is empty";
        let remedy = "begin with a header such as: name,cost_us,period_us; then a task a line: video,2500,40000";
        return Err(vec![source.error(0..0, cause, remedy)]);
    };
    let header = Row::new(source, header);
    let columns = columns(&header)?;
    let mut table = Table {
        columns,
        header,
        tasks: Vec::new(),
        rows: Vec::new(),
        errors: Vec::new(),
    };
    for record in rows {
        table.take(Row::new(source, record?));
        if table.errors.len() >= MOST_ERRORS {
            break;
        }
    }
    table.finish(source)
}

/// What the columns of the header are.
fn columns(header: &Row<'_>) -> Result<Vec<Column>, Vec<Wrong>> {
    let mut columns: Vec<Column> = Vec::new();
    let mut errors = Vec::new();
    if let Some(separator) = other_separator(header) {
        let cause = format!("the columns are separated by {separator}");
        return Err(vec![header.error(0, cause, COMMAS)]);
    }
    let mut unknown = 0;
    for (field, name) in header.record.iter().enumerate() {
        match column(name.trim_start_matches('\u{feff}')) {
            Ok(found) => {
                let before = columns.iter().position(|column| column.kind == found.kind);
                if let Some(before) = before {
                    let cause = format!("`{name}` says the same as column {}", before + 1);
                    errors.push(header.error(field, cause, "leave one of them out"));
                }
                columns.push(found);
            }
            Err((cause, remedy)) => {
                unknown += 1;
                if unknown <= MOST_UNKNOWN {
                    errors.push(header.error(field, cause, remedy));
                }
            }
        }
        if errors.len() >= MOST_ERRORS {
            break;
        }
    }
    if unknown > MOST_UNKNOWN {
        let cause = format!("there are {unknown} columns that are none of these in all");
        errors.push(header.error(0, cause, COLUMNS));
    }
    let has = |kind: Kind| columns.iter().any(|column| column.kind == kind);
    if errors.is_empty() {
        for (kind, name) in [(Kind::Cost, "cost"), (Kind::Period, "period")] {
            if !has(kind) {
                let cause = format!("there is no column for the {name}");
                errors.push(header.error(0, cause, format!("add `{name}_us`; {COLUMNS}")));
            }
        }
    }
    if errors.is_empty() {
        Ok(columns)
    } else {
        Err(errors)
    }
}

/// What a line of a single field is separated by, if that is not a comma: what spreadsheets write where the comma is the decimal point.
fn other_separator(row: &Row<'_>) -> Option<&'static str> {
    let [only] = row.record.iter().collect::<Vec<_>>()[..] else {
        return None;
    };
    let known = [(';', "semicolons"), ('\t', "tabs"), ('|', "bars")];
    let found = known.into_iter().find(|(mark, _)| only.contains(*mark));
    found.map(|(_, name)| name)
}

/// The column of this name, or cause and remedy.
fn column(name: &str) -> Result<Column, (String, String)> {
    let known = |name: &str| KINDS.into_iter().find(|(known, ..)| *known == name);
    match known(name) {
        Some((_, kind, false)) => return Ok(Column { kind, unit: "" }),
        Some((_, _, true)) => {
            let cause = format!("column `{name}` has no unit");
            let remedy = format!("write `{name}_ns`, `{name}_us`, `{name}_ms` or `{name}_s`");
            return Err((cause, remedy));
        }
        None => {}
    }
    let split = name.rsplit_once('_');
    let found = split.and_then(|(stem, unit)| {
        let unit = UNITS.into_iter().find(|known| *known == unit)?;
        let (_, kind, _) = known(stem).filter(|(.., has_unit)| *has_unit)?;
        Some(Column { kind, unit })
    });
    found.ok_or_else(|| {
        let cause = if name.is_empty() {
            "a column has no name".to_owned()
        } else {
            format!("there is no column `{}`", plain(name))
        };
        (cause, suggestion(name))
    })
}

/// What was meant by a column's name, else all that there are.
fn suggestion(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let split = lower.rsplit_once('_');
    let (stem, unit) = split
        .and_then(|(stem, unit)| Some((stem, UNITS.into_iter().find(|known| *known == unit)?)))
        .unwrap_or((&lower, "us"));
    let also = ALSO_CALLED.iter().find(|(other, _)| *other == stem);
    let meant = also.map(|(_, ours)| ours.replace("_us", &format!("_{unit}")));
    let near = || {
        let known = KINDS.map(|(known, _, has_unit)| match has_unit {
            true => format!("{known}_{unit}"),
            false => known.to_owned(),
        });
        nearest(&lower, known.iter().map(String::as_str)).map(str::to_owned)
    };
    match meant.or_else(near) {
        Some(ours) => format!("did you mean `{ours}`? A time's column ends in _ns, _us, _ms or _s"),
        None => COLUMNS.to_owned(),
    }
}

/// The lines read so far.
struct Table<'s> {
    columns: Vec<Column>,
    header: Row<'s>,
    tasks: Vec<SetTask>,
    rows: Vec<Row<'s>>,
    errors: Vec<Wrong>,
}

impl<'s> Table<'s> {
    fn take(&mut self, row: Row<'s>) {
        let (fields, wanted) = (row.record.len(), self.columns.len());
        if fields != wanted {
            let cause = format!("this line has {fields} fields, and the header {wanted}");
            let remedy = if other_separator(&row).is_some() {
                COMMAS
            } else {
                "give every column a field; one that may be left out may be empty"
            };
            let wrong = row.error(fields.min(wanted), cause, remedy);
            return self.errors.push(wrong);
        }
        if self.tasks.len() == MOST_TASKS {
            if self.rows.len() == MOST_TASKS {
                let cause = format!("the set has more than {MOST_TASKS} tasks");
                let wrong = row.error(0, cause, "split it, by processor perhaps");
                self.errors.push(wrong);
                self.rows.push(row);
            }
            return;
        }
        let cells = Cells {
            columns: &self.columns,
            row: &row,
        };
        match cells.task(self.tasks.len() + 1) {
            Ok(task) => {
                if let Some(before) = self.tasks.iter().position(|known| known.name == task.name) {
                    let line = self.rows[before].line();
                    let cause = format!("`{}` is the name of the task in line {line}", task.name);
                    self.errors
                        .push(cells.error(Kind::Name, cause, "give each task its own name"));
                }
                self.tasks.push(task);
                self.rows.push(row);
            }
            Err(errors) => self.errors.extend(errors),
        }
    }

    fn finish(mut self, source: Source<'_>) -> Result<TaskSet, Vec<Wrong>> {
        let is_ranked = |task: &SetTask| task.policy != Policy::Unsaid;
        let some = self.tasks.iter().any(is_ranked);
        if let (true, Some(without)) = (some, self.tasks.iter().position(|task| !is_ranked(task))) {
            let cells = Cells {
                columns: &self.columns,
                row: &self.rows[without],
            };
            let cause = "this task has no priority, and others have";
            let remedy = "give all tasks a priority, or none: then they are ranked by deadline";
            self.errors.push(cells.error(Kind::Priority, cause, remedy));
        }
        if self.tasks.is_empty() && self.errors.is_empty() {
            let cause = "there is a header and no task";
            let remedy = "add a line for each task, in the order of the columns";
            self.errors.push(self.header.error(0, cause, remedy));
        }
        if !self.errors.is_empty() {
            return Err(self.errors);
        }
        Ok(TaskSet {
            file: source.file.to_owned(),
            format: Format::Csv,
            tasks: self.tasks,
            notes: Vec::new(),
        })
    }
}

/// One line by its columns.
struct Cells<'a, 's> {
    columns: &'a [Column],
    row: &'a Row<'s>,
}

impl Cells<'_, '_> {
    fn field(&self, kind: Kind) -> Option<usize> {
        self.columns.iter().position(|column| column.kind == kind)
    }

    /// The text of a field that is there and not empty.
    fn text(&self, kind: Kind) -> Option<&str> {
        let text = self.row.record.get(self.field(kind)?)?;
        (!text.is_empty()).then_some(text)
    }

    fn error(&self, kind: Kind, cause: impl Into<String>, remedy: impl Into<String>) -> Wrong {
        self.row.error(self.field(kind).unwrap_or(0), cause, remedy)
    }

    fn time(&self, kind: Kind) -> Result<Option<Span>, Wrong> {
        let Some(text) = self.text(kind) else {
            return Ok(None);
        };
        let unit = self.field(kind).map(|field| self.columns[field].unit);
        let unit = unit.unwrap_or_default();
        if !text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
            let cause = format!("`{}` is not a number of {unit}", plain(text));
            let remedy = format!(
                "write a number from 0 alone, such as 2500; its unit, {unit}, is in the column's name"
            );
            return Err(self.error(kind, cause, remedy));
        }
        let span = units::span(&format!("{text}{unit}"));
        span.map(Some)
            .map_err(|error| self.error(kind, error.cause, error.remedy))
    }

    fn required(&self, kind: Kind, name: &str) -> Result<Option<Span>, Wrong> {
        let cause = format!("this task has no {name}");
        let missing = || self.error(kind, cause, format!("write its {name}"));
        self.time(kind)?.map(Some).ok_or_else(missing)
    }

    fn number(&self, kind: Kind, most: u16) -> Result<Option<u16>, Wrong> {
        let Some(text) = self.text(kind) else {
            return Ok(None);
        };
        match text.parse::<u16>() {
            Ok(number) if number <= most => Ok(Some(number)),
            _ => {
                let cause = format!("`{}` is not a whole number from 0 to {most}", plain(text));
                let remedy = match kind {
                    Kind::Priority => "write a priority; a larger number is more urgent",
                    _ => "write the number of a processor, the first is 0",
                };
                Err(self.error(kind, cause, remedy))
            }
        }
    }

    fn task(&self, number: usize) -> Result<SetTask, Vec<Wrong>> {
        let mut errors = Vec::new();
        let cost = keep(&mut errors, self.required(Kind::Cost, "cost"));
        let period = keep(&mut errors, self.required(Kind::Period, "period"));
        let [deadline, jitter, region, last] =
            [Kind::Deadline, Kind::Jitter, Kind::Region, Kind::LastRegion]
                .map(|kind| keep(&mut errors, self.time(kind)));
        let priority = keep(&mut errors, self.number(Kind::Priority, 99));
        let last_processor = MOST_PROCESSORS - 1;
        let processor = keep(&mut errors, self.number(Kind::Processor, last_processor));
        let (Some(cost), Some(period), true) = (cost, period, errors.is_empty()) else {
            return Err(errors);
        };
        let name = self.text(Kind::Name);
        if let Some((cause, remedy)) = name.and_then(unfit) {
            return Err(vec![self.error(Kind::Name, cause, remedy)]);
        }
        let task = self.assemble(cost, period, (deadline, jitter), (region, last));
        let task = task.map_err(|error| vec![error])?;
        Ok(SetTask {
            name: name.map_or_else(|| format!("task {number}"), str::to_owned),
            policy: priority.map_or(Policy::Unsaid, |level| Policy::Priority(level as u8)),
            processors: processor.into_iter().collect(),
            work: Ok(task),
            asks_less: false,
            sleeps: false,
            takes_turns: false,
            own_deadline: deadline.is_some(),
        })
    }

    fn assemble(
        &self,
        cost: Span,
        period: Span,
        (deadline, jitter): (Option<Span>, Option<Span>),
        (region, last): (Option<Span>, Option<Span>),
    ) -> Result<Task, Wrong> {
        let service = Span::as_full_service;
        // 0 is no region, or one of which nothing is known.
        let known = |span: Option<Span>| span.filter(|span| !span.is_zero()).map(service);
        let preemption = match (known(region), known(last)) {
            (None, None) => Preemption::Anywhere,
            (Some(longest), None) => Preemption::Floating { longest },
            (Some(longest), Some(last)) => Preemption::Fixed { longest, last },
            (None, Some(_)) => {
                let cause = "this task has a last region, and no longest one";
                let remedy = "say in `region_us` how long its non-preemptive regions are at most, the last included";
                return Err(self.error(Kind::LastRegion, cause, remedy));
            }
        };
        let wrong = |error: TaskError| self.wrong(error);
        let task = Task::new(service(cost), period).map_err(wrong)?;
        let task = task.with_deadline(deadline.unwrap_or(period));
        let task = task
            .map_err(wrong)?
            .with_jitter(jitter.unwrap_or(Span::ZERO));
        task.with_preemption(preemption).map_err(wrong)
    }

    fn wrong(&self, error: TaskError) -> Wrong {
        let longest = self.time(Kind::Region).ok().flatten();
        let (kind, remedy) = match error {
            TaskError::NoCost => (
                Kind::Cost,
                "write how much processor time a job needs at most",
            ),
            TaskError::NoPeriod => (Kind::Period, "write how far apart its jobs arrive at least"),
            TaskError::NoDeadline => (
                Kind::Deadline,
                "write when a job is due after it arrived, or nothing: then that is the period",
            ),
            TaskError::Region { region, .. } if longest == Some(region.as_dedicated_span()) => (
                Kind::Region,
                "write how long a non-preemptive region is at most, or nothing where there is none",
            ),
            TaskError::Region { .. } | TaskError::LastRegion { .. } => (
                Kind::LastRegion,
                "write how long the region after the last preemption point is at least; it is one of those that `region_us` bounds",
            ),
        };
        self.error(kind, error.to_string(), remedy)
    }
}

/// What was read, if anything was; an error goes to the others.
fn keep<T>(errors: &mut Vec<Wrong>, result: Result<Option<T>, Wrong>) -> Option<T> {
    result.unwrap_or_else(|error| {
        errors.push(error);
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import;
    use laxity_model::Service;

    fn set(text: &str) -> TaskSet {
        import::read(text, "x.csv", Format::Csv).expect("a task set")
    }

    #[test]
    fn units_are_the_columns_and_what_is_left_out_has_its_default() {
        let set = set(
            "# comment\nname, cost_us, period_ms, region_ns, last_region_us, processor\n\"a,b\",1.5,2,1000,0.5,1\n,2,1,,,\n",
        );
        let [first, second] = set.tasks.as_slice() else {
            panic!("{set:?}");
        };
        assert_eq!((first.name.as_str(), first.processor()), ("a,b", Some(1)));
        let task = first.work.clone().expect("analysable");
        assert_eq!(task.cost(), Service::from_nanos(1_500));
        assert_eq!(task.deadline(), Span::from_millis(2));
        let (longest, last) = (Service::from_micros(1), Service::from_nanos(500));
        assert_eq!(task.preemption(), Preemption::Fixed { longest, last });
        assert_eq!((second.name.as_str(), second.processor()), ("task 2", None));
        assert_eq!(second.policy, Policy::Unsaid);
    }
}
