//! The columns of a run's table: a heading, a unit, and how to get the cell. The terminal and the page show the same.

use laxity_model::Span;

use crate::evidence::histogram::GapJson;
use crate::evidence::results::VariantResults;
use crate::evidence::subjects::{ModemFigures, PeriodicFigures};
use crate::layout::{Align, fixed};
use crate::report::Value;
use crate::report::value;

/// What a line of the table is about: the first one of a variant, and one for each further component of a kind.
pub(super) struct Line<'a> {
    variant: &'a VariantResults,
    is_first: bool,
    modem: Option<(&'a str, &'a ModemFigures)>,
    task: Option<(&'a str, &'a PeriodicFigures)>,
}

/// A column.
pub(super) struct Column {
    /// Its heading in the page, where values have their units with them.
    pub(super) name: &'static str,
    /// Its heading on the terminal, with the unit, in two lines.
    heading: &'static str,
    /// On the terminal: the unit, in the unit of its values, and how many decimals; none for words.
    unit: Option<Unit>,
    pub(super) cell: fn(&Line<'_>) -> Option<Value>,
}

/// So much of a value's own unit, and how many decimals are shown.
type Unit = (u64, u32);

const COUNT: Option<Unit> = Some((1, 0));
const SECONDS: Unit = (1_000_000_000, 2);
const MILLISECONDS: Option<Unit> = Some((1_000_000, 3));

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
    }
}

const VARIANT: Column = column("variant", "variant", None, |line| {
    Some(line.once(|variant| variant.name.clone()))
});
const VERDICT: Column = column("verdict", "verdict", None, |line| {
    Some(line.once(|variant| {
        // What is not as expected must be seen at a glance.
        let mark = if variant.as_expected { "" } else { "!" };
        format!("{}{mark}", super::judgement(variant, "-"))
    }))
});
const MODEM: Column = column("modem", "modem", None, |line| Some(line.modem?.0.into()));
const TASK: Column = column("task", "task", None, |line| Some(line.task?.0.into()));

/// What is shown of a modem.
const OF_MODEMS: [Column; 5] = [
    column("transfer", "transfer\ns", Some(SECONDS), |line| {
        line.transfer()
    }),
    column("lost or underrun", "lost or\nunderrun", COUNT, |line| {
        Some(line.modem()?.lost().into())
    }),
    column("pending, max", "pend.\nmax", COUNT, |line| {
        Some(line.modem()?.samples_pending_max.into())
    }),
    column(
        "processing, p50/max ms",
        "processing\np50/max ms",
        Some((1_000_000, 2)),
        |line| {
            let took = &line.modem()?.processing_ns;
            let [p50, max] = [took.p50?, took.max?].map(|ns| rounded(ns, (1_000_000, 2)));
            Some(format!("{p50}/{max}").into())
        },
    ),
    column(
        "share of a processor",
        "cpu\n%",
        Some((10_000, 1)),
        |line| {
            let ppm = libm::round(line.modem()?.cpu_share * 1e6);
            Some(Value::share(ppm as u64))
        },
    ),
];

/// What is shown of a periodic task.
const OF_TASKS: [Column; 4] = [
    column("gap, p99", "gap ms\np99", MILLISECONDS, |line| {
        time(line.gap()?.all.p99)
    }),
    column("gap, p99.9", "\np99.9", MILLISECONDS, |line| {
        time(line.gap()?.all.p999)
    }),
    column("gap, max", "\nmax*", MILLISECONDS, |line| {
        time(line.gap()?.undisturbed_max)
    }),
    column("× control", "x con-\ntrol", Some((1_000, 2)), |line| {
        let worst = line.task?.1.gap_ratios_ppm()?.into_iter().max()?;
        Some(Value::Ratio(worst / 1_000))
    }),
];

/// A number of units, ties to even.
fn rounded(number: u64, (unit, decimals): Unit) -> String {
    let decimals = decimals as usize;
    format!("{:.decimals$}", number as f64 / unit as f64)
}

fn time(ns: Option<u64>) -> Option<Value> {
    Some(Value::Span(Span::from_nanos(ns?)))
}

/// The columns that the components of these variants have.
pub(super) fn columns(variants: &[VariantResults]) -> Vec<Column> {
    let most = |count: fn(&VariantResults) -> usize| variants.iter().map(count).max().unwrap_or(0);
    let modems = most(|variant| variant.modems().count());
    let tasks = most(|variant| variant.periodic().count());
    let mut columns = vec![VARIANT];
    columns.extend((modems > 1).then_some(MODEM));
    columns.extend((modems > 0).then_some(OF_MODEMS).into_iter().flatten());
    columns.extend((tasks > 1).then_some(TASK));
    columns.extend((tasks > 0).then_some(OF_TASKS).into_iter().flatten());
    columns.push(VERDICT);
    columns
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

    /// Its cell on the terminal.
    pub(super) fn text(&self, line: &Line<'_>) -> String {
        let Some(cell) = (self.cell)(line) else {
            return "-".into();
        };
        match (&cell, cell.number().zip(self.unit)) {
            // It has been rounded down to its unit.
            (Value::Ratio(ratio), Some((_, (unit, decimals)))) => fixed(*ratio, unit, decimals),
            (_, Some((number, unit))) => rounded(number, unit),
            _ => value::lines(&cell).concat(),
        }
    }
}

impl<'a> Line<'a> {
    /// The lines of a variant: modems and tasks side by side, as far as there are any.
    pub(super) fn of(variant: &'a VariantResults) -> Vec<Self> {
        let several = variant.modems().count().max(variant.periodic().count());
        let line = |number: usize| Self {
            variant,
            is_first: number == 0,
            modem: variant.modems().nth(number),
            task: variant.periodic().nth(number),
        };
        (0..several.max(1)).map(line).collect()
    }

    /// What stands on the variant's first line alone.
    fn once(&self, text: impl FnOnce(&VariantResults) -> String) -> Value {
        let text = self.is_first.then(|| text(self.variant));
        Value::Text(text.unwrap_or_default())
    }

    fn modem(&self) -> Option<&ModemFigures> {
        Some(self.modem?.1)
    }

    fn gap(&self) -> Option<&GapJson> {
        self.task?.1.cothread_gap_ns.as_ref()
    }

    /// How a transfer ended: its time, `dead` for a line that was given up, `slow` for one whose time was over; none where there was none.
    fn transfer(&self) -> Option<Value> {
        let transfer = &self.modem()?.transfer;
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
