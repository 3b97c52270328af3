//! Every figure and table of the soft-modem study (Jones, Saroiu, "Predictability Requirements of a Soft Modem", SIGMETRICS 2001), in the
//! twin and live.
//!
//! * `figures`: figures 1 to 16 and the stress run, in the twin and on this machine.
//! * [`transfers`]: tables 1 to 3; [`map`]: figure 17, and reservations beyond those of the study; `sensitivity`: what they depend on.
//! * [`calibration`]: every constant that was put in or chosen, with its reason. `verdicts`, `quoted_tables`: what transfers are compared with.

pub mod calibration;
mod figures;
pub mod map;
mod quoted_tables;
mod sensitivity;
pub mod transfers;
mod verdicts;

use std::sync::LazyLock;

use laxity_lab::bench::{Experiment, Request, Text};
use laxity_lab::report::{Check, Compared, Figure, Report, Verdict};
use laxity_lab::runner::{Progress, RunError};

static TEXT: LazyLock<Text> = LazyLock::new(|| Text::parse(include_str!("../../data/modem.toml")));

/// The experiment.
pub struct Modem;

impl Experiment for Modem {
    fn text(&self) -> &'static Text {
        &TEXT
    }

    fn perform(&self, request: &Request, progress: &mut dyn Progress) -> Result<Report, RunError> {
        run(request, progress)
    }
}

const KEYS: [(&str, &str); 22] = [
    (
        "figure-1",
        "the interrupt rate by phase, with its outliers (INT)",
    ),
    ("figure-2", "elapsed times in the interrupt handler (INT)"),
    ("figure-3", "the processor's share in every 12.5 ms (INT)"),
    (
        "figure-4",
        "elapsed times in the handler and in the deferred call (DPC)",
    ),
    ("figure-5", "samples pending (INT)"),
    ("figure-6", "samples pending (THR 24)"),
    (
        "figure-7",
        "samples pending, and a call that never gets through (THR 8)",
    ),
    ("figure-8", "elapsed times in the thread (THR 24)"),
    ("figure-9", "elapsed times in the thread (THR 8)"),
    ("figure-10", "gaps of a 1 ms callback, no modem"),
    ("figure-11", "gaps of a 1 ms callback (INT)"),
    ("figure-12", "gaps of a 1 ms callback (DPC)"),
    ("figure-13", "gaps of a 1 ms callback (THR 24)"),
    ("figure-14", "samples pending (RES 2/8)"),
    ("figure-15", "elapsed times in the thread (RES 2/8)"),
    ("figure-16", "gaps of a 1 ms callback (RES 2/8)"),
    (
        "figure-17",
        "which reservations suffice, and the model's two lines",
    ),
    ("table-1", "transfers through a network"),
    ("table-2", "transfers from the dedicated server"),
    ("table-3", "transfers confined to their reservations"),
    (
        "stress",
        "a spinner and a search of the whole disk (section 6.1)",
    ),
    ("constants", "what was put into the twin or chosen, and why"),
];

/// A part that is made by itself, and what is claimed of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Made {
    /// What is shown.
    pub figure: Figure,
    /// What is claimed.
    pub checks: Vec<Check>,
}

type Part = fn(&Request, &mut dyn Progress) -> Result<Made, RunError>;

/// The parts that are not drawn from the runs of `figures`.
const PARTS: [(&str, Part); 5] = [
    ("figure-17", map::figure_17),
    ("table-1", transfers::table_1),
    ("table-2", transfers::table_2),
    ("table-3", transfers::table_3),
    ("constants", constants),
];

fn run(request: &Request, progress: &mut dyn Progress) -> Result<Report, RunError> {
    let mut drawn = figures::figures(request, progress)?;
    for (key, part) in PARTS {
        if request.wants(key) {
            let made = part(request, progress)?;
            drawn.figures.insert(key, made.figure);
            drawn.checks.extend(made.checks);
        }
    }
    progress.end();
    let ordered = KEYS.iter().filter_map(|(key, _)| drawn.figures.remove(key));
    let figures: Vec<Figure> = ordered.collect();
    let mut circumstances = vec![
        (
            "twin",
            "win2000-pii450: Windows 2000 on a 450 MHz Pentium II".to_string(),
        ),
        ("seed", request.seed.to_string()),
    ];
    circumstances.extend(drawn.circumstances);
    Ok(Report {
        experiment: &TEXT.name,
        title: "Predictability requirements of a soft modem: the study, redrawn".into(),
        summary: summary(&figures),
        circumstances,
        figures,
        checks: drawn.checks,
    })
}

/// The register of constants as a part of the report.
fn constants(_: &Request, _: &mut dyn Progress) -> Result<Made, RunError> {
    let figure = Figure {
        key: "constants".into(),
        title: "What was put into the twin or chosen".into(),
        about: "Every constant of the twin of the study's host, device, line and servers: its \
             value, whether it was quoted, assumed or chosen, and why."
            .into(),
        charts: Vec::new(),
        compared: Vec::new(),
        tables: vec![calibration::table()],
        remarks: Vec::new(),
    };
    Ok(Made {
        figure,
        checks: Vec::new(),
    })
}

/// What came of it, for a reader who reads nothing else.
fn summary(figures: &[Figure]) -> Vec<String> {
    let rows = || figures.iter().flat_map(rows_of);
    let how_many = |of: fn(&Verdict) -> bool| rows().filter(|(_, row)| of(&row.verdict)).count();
    let agree = how_many(|verdict| matches!(verdict, Verdict::Agrees(_)));
    let consistent = how_many(|verdict| matches!(verdict, Verdict::Consistent(_)));
    let disagree: Vec<String> = rows().filter_map(disagreement).collect();
    let mut summary = vec![
        "Jones and Saroiu moved a soft modem's signal processing from its interrupt handler to \
             a deferred call, a thread, and a thread with a CPU \
         reservation, and measured what each does to the modem and to everybody else. Here is \
              what the twin of their host makes of it."
            .to_string(),
        format!(
            "Of the study's statements, {agree} come out of the twin, by the criterion beside each; \
                 {consistent} more were put in or chosen, and only show that the \
             parts fit; {} do not agree.",
            disagree.len()
        ),
    ];
    summary.extend(disagree);
    summary
}

fn rows_of(figure: &Figure) -> impl Iterator<Item = (&Figure, &Compared)> {
    figure.compared.iter().map(move |row| (figure, row))
}

fn disagreement((figure, row): (&Figure, &Compared)) -> Option<String> {
    match &row.verdict {
        Verdict::Disagrees(how) => Some(format!("{}, {}: {how}", figure.key, row.quantity)),
        _ => None,
    }
}
