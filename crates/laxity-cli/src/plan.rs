//! `laxity plan`: what would be admitted, by whom and how well. Of a scenario, or of a task set.

use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

use laxity_lab::import::{self, Format};
use laxity_lab::plan::scenario::{self as scenarios, Depth};
use laxity_lab::plan::set::{self as sets, Kind, Options, PlanError, Supply};
use laxity_lab::runner::Progress;
use laxity_lab::scenario::{Length, Style, units};
use laxity_model::Span;
use serde::Serialize;

use crate::arguments::{Enforcer, Plan, Scheduler};
use crate::exit::{ERROR, Failure, REFUSED, USAGE};
use crate::on::On;
use crate::progress::Reporter;
use crate::run::{choose, failure};
use crate::{files, scenario};

/// Prints the plan. Exit code 3 if something would be refused.
pub(crate) fn run(arguments: &Plan) -> Result<u8, Failure> {
    let name = arguments.file.display().to_string();
    let text = std::fs::read_to_string(&arguments.file)
        .map_err(|error| Failure::new(ERROR, format!("{name}: {error}")))?;
    match Format::of(&name, &text) {
        Some(format) => of_set(arguments, &text, &name, format),
        None => of_scenario(arguments),
    }
}

fn of_scenario(arguments: &Plan) -> Result<u8, Failure> {
    let of_sets = [
        ("--scheduler", arguments.scheduler.is_some()),
        ("--supply", arguments.supply.is_some()),
        ("--processors", arguments.processors.is_some()),
    ];
    if let Some((option, _)) = of_sets.into_iter().find(|(_, given)| *given) {
        let message = format!("{option} is for task sets (.csv, .json); a scenario says it itself");
        return Err(Failure::new(USAGE, message));
    }
    let scenario = scenario::read(&arguments.file)?;
    let (on, notices) = choose(arguments.on, 0)?;
    for notice in &notices {
        eprintln!("{notice}");
    }
    scenario::print_notes(&scenario.notes);
    let resolved = scenario.resolve(Length::Quick);
    let depth = if arguments.no_observe {
        Depth::Bounded
    } else {
        Depth::Observed
    };
    let plan = scenarios::plan(&resolved, on, depth, &mut Patient::new());
    let plan = plan.map_err(|error| failure(&error))?;
    print(arguments, &plan, || scenarios::render(&plan))?;
    Ok(if plan.admitted() { 0 } else { REFUSED })
}

fn of_set(arguments: &Plan, text: &str, name: &str, format: Format) -> Result<u8, Failure> {
    if arguments.on != On::Auto {
        let message = "--on is for scenarios: the bounds of a task set are of no host";
        return Err(Failure::new(USAGE, message));
    }
    let options = options(arguments)?;
    let set = import::read(text, name, format).map_err(|errors| {
        let style = if std::io::stderr().is_terminal() {
            Style::Coloured
        } else {
            Style::Plain
        };
        for error in &errors {
            eprintln!("{}\n", error.render(style));
        }
        let plural = if errors.len() == 1 { "" } else { "s" };
        Failure::new(USAGE, format!("{name}: {} error{plural}", errors.len()))
    })?;
    let plan = sets::plan(&set, &options).map_err(|error| {
        let code = match error {
            PlanError::NoSuchProcessor { .. } => USAGE,
            PlanError::Overflow(_) => ERROR,
        };
        Failure::new(code, format!("{name}: {error}"))
    })?;
    print(arguments, &plan, || sets::render(&plan))?;
    Ok(if plan.admitted { 0 } else { REFUSED })
}

fn options(arguments: &Plan) -> Result<Options, Failure> {
    let wrong = |option: &str, error: &units::UnitError| {
        Failure::new(
            USAGE,
            format!("{option}: {}; {}", error.cause, error.remedy),
        )
    };
    let tick = match &arguments.tick {
        Some(tick) => units::span(tick).map_err(|error| wrong("--tick", &error))?,
        None => Span::ZERO,
    };
    let kind = match arguments.enforcer {
        Some(Enforcer::Deadline) => Kind::Deadline { tick },
        Some(Enforcer::Slots) if arguments.tick.is_some() => {
            let message = "--tick is for --enforcer deadline: slots have no tick";
            return Err(Failure::new(USAGE, message));
        }
        Some(Enforcer::Slots) | None => Kind::Slots,
    };
    let supply = match &arguments.supply {
        Some(supply) => {
            let reservation =
                units::reservation(supply).map_err(|error| wrong("--supply", &error))?;
            Supply::Reserved(reservation, kind)
        }
        None => Supply::Dedicated,
    };
    Ok(Options {
        scheduler: match arguments.scheduler {
            None | Some(Scheduler::Auto) => sets::Scheduler::Auto,
            Some(Scheduler::Fp) => sets::Scheduler::FixedPriority,
            Some(Scheduler::Edf) => sets::Scheduler::Edf,
            Some(Scheduler::Rmdp) => sets::Scheduler::Rmdp,
        },
        supply,
        processors: arguments.processors,
        observe: !arguments.no_observe,
    })
}

/// To standard output for people, or as JSON to where it is wanted.
fn print<P: Serialize>(
    arguments: &Plan,
    plan: &P,
    render: impl FnOnce() -> String,
) -> Result<(), Failure> {
    match &arguments.json {
        Some(path) => {
            let mut bytes = serde_json::to_vec_pretty(plan)
                .map_err(|error| Failure::new(ERROR, format!("the plan: {error}")))?;
            bytes.push(b'\n');
            files::write(path, &bytes)
        }
        None => files::write(Path::new("-"), render().as_bytes()),
    }
}

/// Says how it goes on only where that takes a while.
struct Patient {
    began: Instant,
    runs: usize,
    reporter: Option<Reporter>,
}

/// A while.
const PATIENCE: Duration = Duration::from_secs(2);

impl Patient {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            runs: 0,
            reporter: None,
        }
    }
}

impl Progress for Patient {
    fn begin(&mut self, runs: usize) {
        self.runs = runs;
    }

    fn prepare(&mut self, _: &str) {}

    fn run(&mut self, variant: &str, repeat: u32) {
        if self.reporter.is_none() && self.began.elapsed() > PATIENCE {
            let mut reporter = Reporter::new();
            reporter.begin(self.runs);
            self.reporter = Some(reporter);
        }
        if let Some(reporter) = &mut self.reporter {
            reporter.run(variant, repeat);
        }
    }

    fn end(&mut self) {
        if let Some(reporter) = &mut self.reporter {
            reporter.end();
        }
    }
}
