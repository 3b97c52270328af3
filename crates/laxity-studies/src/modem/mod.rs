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

use laxity_lab::bench::{Experiment, Holes, Request, Text};
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
    let keys = TEXT.figures.iter().map(|figure| figure.key.as_str());
    let figures: Vec<Figure> = keys.filter_map(|key| drawn.figures.remove(key)).collect();
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
        title: TEXT.title.clone(),
        summary: summary(&figures),
        circumstances,
        figures,
        checks: drawn.checks,
    })
}

/// The register of constants as a part of the report.
fn constants(_: &Request, _: &mut dyn Progress) -> Result<Made, RunError> {
    let figure = Figure {
        tables: vec![calibration::table()],
        ..TEXT.blank("constants")
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
    let counts: Holes<'_> = &[
        ("agree", &agree),
        ("consistent", &consistent),
        ("disagree", &disagree.len()),
    ];
    let mut summary = vec![TEXT.say("question", &[]), TEXT.say("counted", counts)];
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
