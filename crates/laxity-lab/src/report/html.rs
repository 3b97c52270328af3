//! The report: one HTML page with everything in it. Opens offline, needs no script, follows the reader's light or dark setting.

use askama::Template;
use laxity_model::verify::contract::Outcome;

use super::{TimelineView, chart, format, timeline};
use crate::evidence::histogram::HistogramJson;
use crate::evidence::results::{Provenance, RunResults, VariantResults};
use crate::evidence::subjects::{ModemFigures, PeriodicFigures};

/// The page. Timelines come in the order given, one picture each; some 60 ms of one run is a good length.
///
/// # Errors
///
/// None are known: the template is compiled in, and writing to memory does not fail.
pub fn render(
    results: &RunResults,
    timelines: &[TimelineView<'_>],
) -> Result<String, askama::Error> {
    let limits = Limits::of(results);
    let page = Page {
        results,
        verdict: chip(results.verdict.result),
        summary: summary(results),
        variants: results.variants.iter().map(|v| view(v, &limits)).collect(),
        timelines: timelines
            .iter()
            .map(|t| (t.trace.name.as_str(), timeline::render(t)))
            .collect(),
        provenance: results
            .provenance
            .iter()
            .map(|(figure, from)| (figure.replace('_', " "), provenance(from)))
            .collect(),
        steal: results.machine.as_ref().map(|m| format::nanos(m.steal_ns)),
    };
    page.render()
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    results: &'a RunResults,
    verdict: Chip,
    summary: String,
    variants: Vec<VariantView<'a>>,
    /// The run's name, and the picture.
    timelines: Vec<(&'a str, String)>,
    provenance: Vec<(String, (&'static str, &'a str))>,
    steal: Option<String>,
}

/// A verdict as a coloured word.
#[derive(Clone, Copy)]
struct Chip {
    class: &'static str,
    word: &'static str,
}

const fn chip(outcome: Outcome) -> Chip {
    match outcome {
        Outcome::Met => Chip {
            class: "good",
            word: "met",
        },
        Outcome::Violated => Chip {
            class: "bad",
            word: "violated",
        },
        Outcome::Inconclusive => Chip {
            class: "open",
            word: "inconclusive",
        },
    }
}

fn summary(results: &RunResults) -> String {
    let (all, expected) = (
        results.variants.len(),
        results.variants.iter().filter(|v| v.as_expected).count(),
    );
    let mut summary = if all == expected {
        format!("All {all} variants came as expected")
    } else {
        format!("{expected} of {all} variants came as expected")
    };
    if !results.skipped.is_empty() {
        summary.push_str(&format!("; {} did not run", results.skipped.len()));
    }
    summary
}

const fn provenance(from: &Provenance) -> (&'static str, &str) {
    match from {
        Provenance::Measured { on } => ("measured", on.as_str()),
        Provenance::Simulated { profile } => ("simulated", profile.as_str()),
        Provenance::Calibrated { to } => ("calibrated to", to.as_str()),
        Provenance::Quoted { source } => ("quoted from", source.as_str()),
    }
}

/// The scales that all variants share, so that their pictures compare.
struct Limits {
    gap: u64,
    processing: u64,
    pending: u64,
}

impl Limits {
    fn of(results: &RunResults) -> Self {
        let variants = results.variants.iter();
        let modem = |of: fn(&ModemFigures) -> Option<u64>| {
            let modems = variants.clone().flat_map(VariantResults::modems);
            chart::shared_limit(modems.filter_map(|(_, modem)| of(modem)))
        };
        let tasks = variants.clone().flat_map(VariantResults::periodic);
        let gaps = tasks.filter_map(|(_, task)| task.cothread_gap_ns.as_ref()?.all.max);
        Self {
            gap: chart::shared_limit(gaps),
            processing: modem(|modem| modem.processing_ns.max),
            pending: modem(|modem| modem.samples_pending.max),
        }
    }
}

struct VariantView<'a> {
    results: &'a VariantResults,
    anchor: String,
    chip: Chip,
    expected: &'static str,
    /// Where the devices work, and by whom their reservations are kept.
    placed: String,
    /// A line of the table for each modem and the task beside it.
    rows: Vec<RowView>,
    figures: Vec<Figure>,
    facts: Vec<(String, String)>,
}

/// A line of the table: one modem, one periodic task.
struct RowView {
    /// Their names, where the variant has several of a kind.
    names: String,
    modem: ModemFigures,
    transfer: String,
    processing: String,
    cpu: String,
    /// p99, p99.9 and undisturbed maximum in milliseconds.
    gaps: [String; 3],
    ratio: String,
}

struct Figure {
    title: String,
    svg: String,
    caption: String,
}

fn view<'a>(variant: &'a VariantResults, limits: &Limits) -> VariantView<'a> {
    let several = variant.modems().count().max(variant.periodic().count());
    VariantView {
        results: variant,
        anchor: anchor(&variant.name),
        chip: chip(variant.verdict.result),
        expected: format::expectation(variant.expected),
        placed: placed(variant),
        rows: (0..several.max(1))
            .map(|number| row(variant, number))
            .collect(),
        figures: figures(variant, limits),
        facts: facts(variant),
    }
}

/// `name: ` where there are several of a kind, nothing where there is one.
fn label(name: &str, count: usize) -> String {
    if count > 1 {
        format!("{name}: ")
    } else {
        String::new()
    }
}

fn placed(variant: &VariantResults) -> String {
    let modems = variant.modems();
    let several = modems.clone().count();
    let each = modems.map(|(name, modem)| {
        let by = modem.enforcer.as_ref();
        let by = by.map_or_else(String::new, |enforcer| format!(" by {enforcer}"));
        format!("{}{}{by}", label(name, several), modem.placement)
    });
    let each: Vec<String> = each.collect();
    if each.is_empty() {
        return ModemFigures::absent().placement;
    }
    each.join(", ")
}

fn row(variant: &VariantResults, number: usize) -> RowView {
    let dash = || "–".to_string();
    let modem = variant.modems().nth(number);
    let task = variant.periodic().nth(number);
    let several = [variant.modems().count(), variant.periodic().count()];
    let name = |found: Option<&str>, count: usize| found.filter(|_| count > 1).map(str::to_owned);
    let names = [
        name(modem.map(|(name, _)| name), several[0]),
        name(task.map(|(name, _)| name), several[1]),
    ];
    let modem = modem.map_or_else(ModemFigures::absent, |(_, modem)| modem.clone());
    let task: Option<&PeriodicFigures> = task.map(|(_, task)| task);
    let gap = task.and_then(|task| task.cothread_gap_ns.as_ref());
    let gaps = [
        gap.and_then(|g| g.all.p99),
        gap.and_then(|g| g.all.p999),
        gap.and_then(|g| g.undisturbed_max),
    ];
    let ratios = task.and_then(PeriodicFigures::gap_ratios_ppm);
    let worst = ratios.and_then(|ratios| ratios.into_iter().max());
    let processing = &modem.processing_ns;
    RowView {
        names: names.into_iter().flatten().collect::<Vec<_>>().join(", "),
        transfer: format::transfer(&modem.transfer),
        processing: processing
            .p50
            .zip(processing.max)
            .map_or_else(dash, |(p50, max)| {
                format!("{:.2} / {:.2}", p50 as f64 / 1e6, max as f64 / 1e6)
            }),
        cpu: format::percent(modem.cpu_share),
        gaps: gaps.map(|gap| gap.map_or_else(dash, format::millis)),
        ratio: worst.map_or_else(dash, format::ratio),
        modem,
    }
}

/// The name as a link's target.
fn anchor(name: &str) -> String {
    name.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                '-'
            }
        })
        .collect()
}

fn figures(variant: &VariantResults, limits: &Limits) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut add = |title: &str, histogram: &HistogramJson, control, shared| {
        // Where most values are beyond the shared scale, the picture would show nothing.
        let (limit, note) = match (histogram.p50, histogram.max) {
            (Some(p50), Some(max)) if p50 >= shared => (
                chart::shared_limit([max].into_iter()),
                " (scale of its own)",
            ),
            _ => (shared, ""),
        };
        let label = format!("{title}, {}", variant.name);
        figures.push(Figure {
            title: format!("{title}{note}"),
            svg: chart::histogram(histogram, control, limit, &label),
            caption: caption(histogram),
        });
    };
    for (name, task) in variant.periodic() {
        if let Some(gap) = &task.cothread_gap_ns {
            let control = task.control_gap_ns.as_ref().map(|c| &c.all);
            let whose = label(name, variant.periodic().count());
            add(
                &format!("{whose}Co-thread gap"),
                &gap.all,
                control,
                limits.gap,
            );
        }
    }
    for (name, modem) in modems_or_absent(variant) {
        let whose = label(name, variant.modems().count());
        let (processing, pending) = (&modem.processing_ns, &modem.samples_pending);
        let title = format!("{whose}Processing time");
        add(&title, processing, None, limits.processing);
        let title = format!("{whose}Samples pending");
        add(&title, pending, None, limits.pending);
    }
    figures
}

/// The modems; one that is absent where there are none.
fn modems_or_absent(variant: &VariantResults) -> Vec<(&str, ModemFigures)> {
    let modems = variant.modems().map(|(name, modem)| (name, modem.clone()));
    let mut modems: Vec<_> = modems.collect();
    if modems.is_empty() {
        modems.push(("", ModemFigures::absent()));
    }
    modems
}

fn caption(histogram: &HistogramJson) -> String {
    let named = [
        ("p50", histogram.p50),
        ("p99", histogram.p99),
        ("p99.9", histogram.p999),
        ("max", histogram.max),
    ];
    let mut parts = vec![format!("n = {}", format::count(histogram.count))];
    for (name, value) in named {
        if let Some(value) = value {
            let text = match histogram.unit.as_str() {
                "ns" => format::nanos(value),
                _ => value.to_string(),
            };
            parts.push(format!("{name} {text}"));
        }
    }
    parts.join(" · ")
}

fn facts(variant: &VariantResults) -> Vec<(String, String)> {
    let several = variant.modems().count();
    let modems = modems_or_absent(variant);
    let mut facts: Vec<(String, String)> = Vec::new();
    for (name, modem) in &modems {
        let of_modem = modem_facts(modem).into_iter();
        facts.extend(of_modem.map(|(fact, value)| (label(name, several) + fact, value)));
    }
    let mut add = |fact: &str, value: String| facts.push((fact.to_owned(), value));
    if let Some(steal) = variant.steal_ns {
        add("steal time", format::nanos(steal));
    }
    let disturbed = &variant.disturbed;
    if disturbed.witness_wakeups > 0 {
        add(
            "disturbed",
            format!(
                "{} of {} witness wake-ups, {}",
                disturbed.count,
                format::count(disturbed.witness_wakeups),
                format::nanos(disturbed.total_ns)
            ),
        );
    }
    add(
        "events",
        format!(
            "{} recorded, {} lost",
            format::count(variant.events_recorded),
            format::count(variant.events_lost)
        ),
    );
    for (name, modem) in modems.iter().filter(|(_, modem)| !modem.phases.is_empty()) {
        let phases = modem.phases.iter();
        let phases: Vec<_> = phases
            .map(|p| format!("{} {}", p.name, format::nanos(p.duration_ns)))
            .collect();
        add(
            &format!("{}phases", label(name, several)),
            phases.join(" · "),
        );
    }
    facts
}

fn modem_facts(modem: &ModemFigures) -> [(&'static str, String); 5] {
    let transfer = &modem.transfer;
    let bytes = format::count(transfer.bytes);
    [
        (
            "transfer",
            match (transfer.completed, transfer.checksum_ok) {
                (true, true) => format!("{bytes} bytes, checksum right"),
                (true, false) => format!("{bytes} bytes, checksum wrong"),
                (false, _) => "not completed".into(),
            },
        ),
        (
            "sent again / retrained",
            format!(
                "{} frames / {} times",
                transfer.retransmissions, transfer.retrainings
            ),
        ),
        ("receivers", modem.receivers.to_string()),
        (
            "context switches",
            format!(
                "{}, {} involuntary",
                format::count(modem.context_switches),
                format::count(modem.context_switches_involuntary)
            ),
        ),
        ("page faults", format::count(modem.page_faults)),
    ]
}
