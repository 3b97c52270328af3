//! The report: one HTML page with everything in it. Opens offline, needs no script, follows the reader's light or dark setting.

use askama::Template;
use laxity_model::verify::contract::Outcome;

use super::{TimelineView, chart, format, timeline};
use crate::evidence::results::{HistogramJson, Provenance, RunResults, VariantResults};

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
        let limit = |of: fn(&VariantResults) -> Option<u64>| {
            chart::shared_limit(results.variants.iter().filter_map(of))
        };
        Self {
            gap: limit(|v| v.cothread_gap_ns.as_ref().and_then(|g| g.all.max)),
            processing: limit(|v| v.processing_ns.max),
            pending: limit(|v| v.samples_pending.max),
        }
    }
}

struct VariantView<'a> {
    results: &'a VariantResults,
    anchor: String,
    chip: Chip,
    expected: &'static str,
    transfer: String,
    processing: String,
    cpu: String,
    /// p99, p99.9 and undisturbed maximum in milliseconds.
    gaps: [String; 3],
    ratio: String,
    figures: Vec<Figure>,
    facts: Vec<(&'static str, String)>,
}

struct Figure {
    title: String,
    svg: String,
    caption: String,
}

fn view<'a>(variant: &'a VariantResults, limits: &Limits) -> VariantView<'a> {
    let dash = || "–".to_string();
    let gap = variant.cothread_gap_ns.as_ref();
    let gaps = [
        gap.and_then(|g| g.all.p99),
        gap.and_then(|g| g.all.p999),
        gap.and_then(|g| g.undisturbed_max),
    ];
    let worst = variant.gap_ratios_ppm().and_then(|r| r.into_iter().max());
    let processing = &variant.processing_ns;
    VariantView {
        results: variant,
        anchor: anchor(&variant.name),
        chip: chip(variant.verdict.result),
        expected: format::expectation(variant.expected),
        transfer: format::transfer(&variant.transfer),
        processing: processing
            .p50
            .zip(processing.max)
            .map_or_else(dash, |(p50, max)| {
                format!("{:.2} / {:.2}", p50 as f64 / 1e6, max as f64 / 1e6)
            }),
        cpu: format::percent(variant.cpu_share),
        gaps: gaps.map(|gap| gap.map_or_else(dash, format::millis)),
        ratio: worst.map_or_else(dash, format::ratio),
        figures: figures(variant, limits),
        facts: facts(variant),
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
    if let Some(gap) = &variant.cothread_gap_ns {
        let control = variant.control_gap_ns.as_ref().map(|c| &c.all);
        add("Co-thread gap", &gap.all, control, limits.gap);
    }
    add(
        "Processing time",
        &variant.processing_ns,
        None,
        limits.processing,
    );
    add(
        "Samples pending",
        &variant.samples_pending,
        None,
        limits.pending,
    );
    figures
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

fn facts(variant: &VariantResults) -> Vec<(&'static str, String)> {
    let transfer = &variant.transfer;
    let disturbed = &variant.disturbed;
    let mut facts = vec![
        (
            "transfer",
            match (transfer.completed, transfer.checksum_ok) {
                (true, true) => format!("{} bytes, checksum right", format::count(transfer.bytes)),
                (true, false) => format!("{} bytes, checksum wrong", format::count(transfer.bytes)),
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
        ("receivers", variant.receivers.to_string()),
        (
            "context switches",
            format!(
                "{}, {} involuntary",
                format::count(variant.context_switches),
                format::count(variant.context_switches_involuntary)
            ),
        ),
        ("page faults", format::count(variant.page_faults)),
    ];
    if let Some(steal) = variant.steal_ns {
        facts.push(("steal time", format::nanos(steal)));
    }
    if disturbed.witness_wakeups > 0 {
        facts.push((
            "disturbed",
            format!(
                "{} of {} witness wake-ups, {}",
                disturbed.count,
                format::count(disturbed.witness_wakeups),
                format::nanos(disturbed.total_ns)
            ),
        ));
    }
    facts.push((
        "events",
        format!(
            "{} recorded, {} lost",
            format::count(variant.events_recorded),
            format::count(variant.events_lost)
        ),
    ));
    if !variant.phases.is_empty() {
        let phases = variant.phases.iter();
        let phases: Vec<_> = phases
            .map(|p| format!("{} {}", p.name, format::nanos(p.duration_ns)))
            .collect();
        facts.push(("phases", phases.join(" · ")));
    }
    facts
}
