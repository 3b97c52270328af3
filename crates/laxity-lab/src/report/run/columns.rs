//! The columns of a run's table: a heading, a unit, and how to get the cell. The terminal and the page show the same.

mod commands;
mod flows;

use laxity_model::Span;
use laxity_model::verify::contract::Quantity;

use super::apart::{
    as_told, frames_lost, lost_besides, missed, quantity, some, undisturbed_misses,
};
use crate::evidence::histogram::{GapJson, HistogramJson};
use crate::evidence::results::VariantResults;
use crate::evidence::subjects::{
    CommandFigures, DeviceFigures, ModemFigures, PeriodicFigures, StreamFigures, SubjectResults,
    WindowFigures,
};
use crate::layout::{Align, fixed};
use crate::report::Value;
use crate::report::value;
use commands::{COMMAND, COMMAND_GAP, OF_COMMANDS};
pub(super) use commands::{ended, processor_time, service_gap};
use flows::{FLOW, OF_FLOWS};

/// What a line of a table is about: the first one of a variant, and one for each further component of a kind.
pub(super) struct Line<'a> {
    variant: &'a VariantResults,
    is_first: bool,
    modem: Option<(&'a str, &'a ModemFigures)>,
    stream: Option<(&'a SubjectResults, &'a StreamFigures)>,
    task: Option<(&'a SubjectResults, &'a PeriodicFigures)>,
    command: Option<(&'a SubjectResults, &'a CommandFigures)>,
    flow: Option<&'a SubjectResults>,
}

/// A column.
#[derive(Clone, Copy)]
pub(super) struct Column {
    /// Its heading in the page, where values have their units with them.
    pub(super) name: &'static str,
    /// Its heading on the terminal, with the unit, in two lines.
    heading: &'static str,
    /// On the terminal: the unit, in the unit of its values, and how many decimals; none for words.
    unit: Option<Unit>,
    cell: Cell,
    /// What else was seen that is not judged, if anything: it stands in brackets.
    besides: Option<Cell>,
}

/// So much of a value's own unit, and how many decimals are shown.
type Unit = (u64, u32);

const COUNT: Option<Unit> = Some((1, 0));
const SECONDS: Unit = (1_000_000_000, 2);
const MILLISECONDS: Option<Unit> = Some((1_000_000, 3));
const PERCENT: Option<Unit> = Some((10_000, 1));

type Cell = fn(&Line<'_>) -> Option<Value>;

const fn column(
    name: &'static str,
    heading: &'static str,
    unit: Option<Unit>,
    cell: Cell,
) -> Column {
    Column {
        name,
        heading,
        unit,
        cell,
        besides: None,
    }
}

/// The same, with what was seen besides and is not judged, since the machine stood still.
const fn with(column: Column, besides: Cell) -> Column {
    Column {
        besides: Some(besides),
        ..column
    }
}

/// Stands behind a verdict that is not as the scenario expects.
pub(super) const SURPRISE: &str = "!";

const VARIANT: Column = column("variant", "variant", None, |line| {
    Some(line.once(|variant| variant.name.clone()))
});
const VERDICT: Column = column("verdict", "verdict", None, |line| {
    Some(line.once(|variant| {
        // What is not as expected must be seen at a glance.
        let mark = if variant.as_expected { "" } else { SURPRISE };
        format!("{}{mark}", super::judgement(variant, "-"))
    }))
});
const MODEM: Column = column("modem", "modem", None, |line| Some(line.modem?.0.into()));
const STREAM: Column = column("device", "device", None, |line| {
    Some(line.stream?.0.name.as_str().into())
});
const TASK: Column = column("task", "task", None, |line| {
    Some(line.task?.0.name.as_str().into())
});

/// What is shown of a modem.
const OF_MODEMS: [Column; 5] = [
    column("transfer", "transfer\ns", Some(SECONDS), |line| {
        line.transfer()
    }),
    with(
        column("lost or underrun", "lost or\nunderrun", COUNT, |line| {
            Some(line.modem()?.samples_lost_undisturbed.into())
        }),
        |line| lost_besides(line.modem()?),
    ),
    with(
        column("pending, max", "pend.\nmax", COUNT, |line| {
            Some(line.modem()?.samples_pending.told_max().unwrap_or(0).into())
        }),
        |line| Some(line.modem()?.samples_pending.disturbed_max()?.into()),
    ),
    column(PROCESSING, PROCESSING_HEAD, TENTHS, |line| {
        processing(line.modem()?)
    }),
    column(SHARE, SHARE_HEAD, PERCENT, |line| share(line.modem()?)),
];

/// What is shown of a device that is only received or only played.
const OF_STREAMS: [Column; 5] = [
    with(
        column("frames lost", "frames\nlost", COUNT, |line| {
            Some(frames_lost(line.stream?)[0].into())
        }),
        |line| some(frames_lost(line.stream?)[1]),
    ),
    with(
        column("samples lost or underrun", "samples\nlost", COUNT, |line| {
            Some(line.stream()?.samples_lost_undisturbed.into())
        }),
        |line| lost_besides(line.stream()?),
    ),
    with(
        column(
            "response, wall time, max",
            "response,\nwall max ms",
            MILLISECONDS,
            |line| time(quantity(line.stream?.0, Quantity::RESPONSE_TIME)?.told_max()),
        ),
        |line| time(quantity(line.stream?.0, Quantity::RESPONSE_TIME)?.disturbed_max()),
    ),
    column(PROCESSING, PROCESSING_HEAD, TENTHS, |line| {
        processing(line.stream()?)
    }),
    column(SHARE, SHARE_HEAD, PERCENT, |line| share(line.stream()?)),
];

const PROCESSING: &str = "processing, wall time, p50/max ms";
const PROCESSING_HEAD: &str = "call, wall\np50/max ms";
const TENTHS: Option<Unit> = Some((1_000_000, 2));

fn processing(device: &DeviceFigures) -> Option<Value> {
    let took = &device.processing_ns;
    let [p50, max] = [took.told_p50()?, took.told_max()?].map(|ns| rounded(ns, (1_000_000, 2)));
    Some(format!("{p50}/{max}").into())
}

const SHARE: &str = "share of a processor, service";
const SHARE_HEAD: &str = "cpu\n%";

fn share(device: &DeviceFigures) -> Option<Value> {
    let ppm = libm::round(device.cpu_share? * 1e6);
    Some(Value::share(ppm as u64))
}

/// What is shown of the jobs of a periodic task.
const OF_JOBS: [Column; 4] = [
    column(
        "response, wall time, p99",
        "response,\np99 ms",
        MILLISECONDS,
        |line| time(line.of_job(Quantity::RESPONSE_TIME)?.told_p99()),
    ),
    with(
        column(
            "response, wall time, max",
            "wall\nmax ms",
            MILLISECONDS,
            |line| time(line.of_job(Quantity::RESPONSE_TIME)?.told_max()),
        ),
        |line| time(line.of_job(Quantity::RESPONSE_TIME)?.disturbed_max()),
    ),
    with(
        column(
            "service gap, max",
            "service\ngap ms",
            MILLISECONDS,
            |line| time(line.of_job(Quantity::SERVICE_GAP)?.told_max()),
        ),
        |line| time(line.of_job(Quantity::SERVICE_GAP)?.disturbed_max()),
    ),
    with(
        column("jobs missed", "missed\n/jobs", COUNT, |line| {
            let jobs = line.of_job(Quantity::DEADLINE_MISSES)?;
            let missed = undisturbed_misses(jobs);
            Some(format!("{missed}/{}", jobs.judged()).into())
        }),
        |line| {
            let jobs = line.of_job(Quantity::DEADLINE_MISSES)?;
            some(missed(jobs)[0].saturating_sub(undisturbed_misses(jobs)))
        },
    ),
];

/// What there was in every window: `9-10 jobs done/100ms`.
fn window(figures: &WindowFigures) -> String {
    let (what, window) = (
        figures.quantity.replace('_', " "),
        Span::from_nanos(figures.window_ns),
    );
    match figures.least.zip(figures.most) {
        Some((least, most)) => format!("{least}-{most} {what}/{window}"),
        None => format!("no {what}/{window} undisturbed"),
    }
}

/// What is shown of the wake-ups of a periodic task.
const OF_GAPS: [Column; 4] = [
    column("gap, p99", "gap ms\np99", MILLISECONDS, |line| {
        time(line.gap()?.all.told_p99())
    }),
    column("gap, p99.9", "\np99.9", MILLISECONDS, |line| {
        time(line.gap()?.all.told_p999())
    }),
    with(
        column("gap, max", "\nmax", MILLISECONDS, |line| {
            time(line.gap()?.all.told_max())
        }),
        |line| time(line.gap()?.all.disturbed_max()),
    ),
    column("× control", "x con-\ntrol", Some((1_000, 2)), |line| {
        let worst = line.task?.1.gap_ratios_ppm()?.into_iter().max()?;
        Some(Value::Ratio(worst / 1_000))
    }),
];

/// What there was in every window, of a component that contracts limit so.
const WINDOWS_HEAD: &str = "in windows,\nleast-most";

const MODEM_WINDOWS: Column = column("modem, in windows", WINDOWS_HEAD, None, |line| {
    line.windows(line.modem?.0)
});
const STREAM_WINDOWS: Column = column("device, in windows", WINDOWS_HEAD, None, |line| {
    line.windows(&line.stream?.0.name)
});
const FLOW_WINDOWS: Column = column("flow, in windows", WINDOWS_HEAD, None, |line| {
    line.windows(&line.flow?.name)
});
const TASK_WINDOWS: Column = column("task, in windows", WINDOWS_HEAD, None, |line| {
    line.windows(&line.task?.0.name)
});

/// A number of units, ties to even.
fn rounded(number: u64, (unit, decimals): Unit) -> String {
    let decimals = decimals as usize;
    format!("{:.decimals$}", number as f64 / unit as f64)
}

fn time(ns: Option<u64>) -> Option<Value> {
    Some(Value::Span(Span::from_nanos(as_told(ns?))))
}

/// The tables of these variants: what their components have, side by side as far as lines are `width` long; where there are several of a
/// kind, with their names.
pub(super) fn tables(variants: &[VariantResults], width: usize) -> Vec<Vec<Column>> {
    let most = |count: fn(&VariantResults) -> usize| variants.iter().map(count).max().unwrap_or(0);
    let devices = most(|variant| variant.each_device().count());
    let group = |count: usize, name: Column, columns: &[Column]| -> Vec<Column> {
        // Of one modem and one player both have names: of whom a figure is must be seen.
        let is_device = [MODEM.name, STREAM.name].contains(&name.name);
        let named = (count > 1 || is_device && count > 0 && devices > 1).then_some(name);
        // Names and headings alone say nothing.
        match has_cells(variants, columns) {
            true => named.into_iter().chain(columns.iter().copied()).collect(),
            false => Vec::new(),
        }
    };
    let modems = most(|variant| variant.modems().count());
    let streams = most(|variant| variant.streams().count());
    let tasks = most(|variant| variant.periodic().count());
    let commands = most(|variant| variant.commands().count());
    let flows = most(|variant| variant.flows().count());
    let groups = [
        group(modems, MODEM, &OF_MODEMS),
        // Groups of their own, so that they have the name too where they do not fit beside the others.
        group(modems, MODEM, &[MODEM_WINDOWS]),
        group(streams, STREAM, &OF_STREAMS),
        group(streams, STREAM, &[STREAM_WINDOWS]),
        group(tasks, TASK, &OF_JOBS),
        group(tasks, TASK, &OF_GAPS),
        group(tasks, TASK, &[TASK_WINDOWS]),
        group(flows, FLOW, &OF_FLOWS),
        group(flows, FLOW, &[FLOW_WINDOWS]),
        group(commands, COMMAND, &OF_COMMANDS),
        group(commands, COMMAND, &[COMMAND_GAP]),
    ];
    let mut tables = vec![vec![VARIANT, VERDICT]];
    for group in groups.into_iter().filter(|group| !group.is_empty()) {
        let last = tables.last().map_or(&[][..], Vec::as_slice);
        // The name of a task is told once a line.
        let is_new = |own: &&Column| last.iter().all(|one| one.name != own.name);
        let own: Vec<Column> = group.iter().filter(is_new).copied().collect();
        let end = last.len() - usize::from(tables.len() == 1);
        let joined = [&last[..end], &own, &last[end..]].concat();
        if last.len() <= 2 || wide(variants, &joined) <= width {
            tables.pop();
            tables.push(joined);
        } else {
            tables.push([&[VARIANT], &group[..]].concat());
        }
    }
    tables
}

/// Whether any of these columns has anything in it.
fn has_cells(variants: &[VariantResults], columns: &[Column]) -> bool {
    let mut lines = variants.iter().flat_map(Line::of);
    lines.any(|line| columns.iter().any(|column| column.has_cell(&line)))
}

/// Whether the gaps between wake-ups of any task are shown.
pub(super) fn shows_gaps(variants: &[VariantResults]) -> bool {
    has_cells(variants, &OF_GAPS)
}

/// Names of variants are cut to so many characters rather than that a table is divided.
const NAME: usize = 24;

/// How long the lines of a table are on the terminal, with the names of variants as short as they may be cut.
fn wide(variants: &[VariantResults], columns: &[Column]) -> usize {
    let grid = super::grid(variants, columns, usize::MAX).render();
    let lines = grid.lines().map(|line| line.chars().count());
    let names = variants.iter().map(|one| one.name.chars().count());
    let cut = names.max().unwrap_or(0).saturating_sub(NAME);
    lines.max().unwrap_or(0).saturating_sub(cut)
}

impl Column {
    /// Its heading on the terminal; numbers stand at the right.
    pub(super) fn head(&self) -> (String, Align) {
        let align = match self.unit {
            None => Align::Left,
            Some(_) => Align::Right,
        };
        (self.heading.to_owned(), align)
    }

    fn has_cell(&self, line: &Line<'_>) -> bool {
        (self.cell)(line).is_some() || self.besides(line).is_some()
    }

    fn besides(&self, line: &Line<'_>) -> Option<Value> {
        self.besides.and_then(|besides| besides(line))
    }

    /// Its cell in the page.
    pub(super) fn value(&self, line: &Line<'_>) -> Option<Value> {
        let judged = (self.cell)(line);
        let Some(besides) = self.besides(line) else {
            return judged;
        };
        let judged = judged.map_or_else(|| "-".to_owned(), |judged| value::lines(&judged).concat());
        let besides = value::lines(&besides).concat();
        Some(format!("{judged} (and {besides})").into())
    }

    /// Its cell on the terminal.
    pub(super) fn text(&self, line: &Line<'_>) -> String {
        let judged = (self.cell)(line).map_or_else(|| "-".into(), |cell| self.shown(&cell));
        match self.besides(line) {
            Some(besides) => format!("{judged} (and {})", self.shown(&besides)),
            None => judged,
        }
    }

    fn shown(&self, cell: &Value) -> String {
        match (cell, cell.number().zip(self.unit)) {
            // It has been rounded down to its unit.
            (Value::Ratio(ratio), Some((_, (unit, decimals)))) => fixed(*ratio, unit, decimals),
            (_, Some((number, unit))) => rounded(number, unit),
            _ => value::lines(cell).concat(),
        }
    }
}

impl<'a> Line<'a> {
    /// The lines of a variant: components of different kinds side by side, as far as there are any.
    fn of(variant: &'a VariantResults) -> Vec<Self> {
        let (modems, streams) = (variant.modems().count(), variant.streams().count());
        let several = modems.max(streams).max(variant.periodic().count());
        let several = several.max(variant.commands().count());
        let several = several.max(variant.flows().count());
        let line = |number: usize| Self {
            variant,
            is_first: number == 0,
            modem: variant.modems().nth(number),
            stream: variant.streams().nth(number),
            task: variant.tasks().nth(number),
            command: variant.commands().nth(number),
            flow: variant.flows().nth(number),
        };
        (0..several.max(1)).map(line).collect()
    }

    /// The lines of a table with these columns: those in which there is something besides what is told once a variant, and the first of each
    /// variant where its verdict stands.
    pub(super) fn all<'c>(
        variants: &'a [VariantResults],
        columns: &'c [Column],
    ) -> impl Iterator<Item = Self> + use<'a, 'c> {
        let has_verdict = columns.iter().any(|column| column.name == VERDICT.name);
        let own = |column: &&Column| ![VARIANT.name, VERDICT.name].contains(&column.name);
        variants.iter().flat_map(Line::of).filter(move |line| {
            let mut own = columns.iter().filter(own);
            has_verdict && line.is_first || own.any(|column| column.has_cell(line))
        })
    }

    /// What stands on the variant's first line alone.
    fn once(&self, text: impl FnOnce(&VariantResults) -> String) -> Value {
        let text = self.is_first.then(|| text(self.variant));
        Value::Text(text.unwrap_or_default())
    }

    fn modem(&self) -> Option<&DeviceFigures> {
        Some(&self.modem?.1.device)
    }

    fn stream(&self) -> Option<&DeviceFigures> {
        Some(&self.stream?.1.device)
    }

    /// A quantity of a task whose jobs take something.
    fn of_job(&self, wanted: Quantity) -> Option<&HistogramJson> {
        let (subject, task) = self.task?;
        task.has_jobs().then(|| quantity(subject, wanted)).flatten()
    }

    /// What a component had in every window.
    fn windows(&self, name: &str) -> Option<Value> {
        let mut subjects = self.variant.subjects.iter();
        let subject = subjects.find(|subject| subject.name == name)?;
        let words = subject.windows.iter().map(window);
        let words = words.collect::<Vec<_>>().join(", ");
        (!words.is_empty()).then(|| words.into())
    }

    fn gap(&self) -> Option<&GapJson> {
        self.task?.1.cothread_gap_ns.as_ref()
    }

    /// How a transfer ended: its time, `dead` for a line that was given up, `slow` for one whose time was over; none where there was none.
    fn transfer(&self) -> Option<Value> {
        let transfer = &self.modem?.1.transfer;
        match (transfer.duration_ns, &transfer.failure) {
            (Some(took), _) if transfer.completed && transfer.checksum_ok => time(Some(took)),
            (Some(took), _) if transfer.completed => {
                Some(format!("{} bad", rounded(took, SECONDS)).into())
            }
            (_, Some(why)) if why.starts_with("NO ") || why.starts_with("BUSY") => {
                Some("dead".into())
            }
            (_, Some(_)) => Some("slow".into()),
            _ => None,
        }
    }
}
