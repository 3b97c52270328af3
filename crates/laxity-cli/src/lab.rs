//! `laxity lab`: experiments that need no scenario.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use laxity_lab::bench::{self, Request};
use laxity_lab::machine_file::{self, ReadError};
use laxity_lab::report::{Report, json, page, svg, text};
use laxity_lab::runner::{On as Host, Progress};
use laxity_model::enforce::machine::Machine;
use laxity_studies::STUDIES;

use crate::arguments::Lab;
use crate::exit::{Failure, USAGE, VIOLATED, failed};
use crate::experiments::{Experiment, Study};
use crate::on::On;
use crate::progress::Reporter;
use crate::{files, run};

/// Runs an experiment; without one, lists them.
pub(crate) fn run(lab: &Lab) -> Result<u8, Failure> {
    match &lab.experiment {
        Some(experiment) => perform(experiment),
        None => list(),
    }
}

fn list() -> Result<u8, Failure> {
    let mut text = String::from("Experiments:\n");
    let mut line = |indent: &str, name: &str, about: &str| {
        text.push_str(&format!("{indent}{name:<13} {about}\n"));
    };
    for study in STUDIES.map(bench::Experiment::text) {
        line("  ", &study.name, &study.summary);
        for figure in &study.figures {
            line("    ", &figure.key, &figure.shows);
        }
    }
    text.push_str("\n`laxity lab <EXPERIMENT> --help` says more.\n");
    files::print(&text)?;
    Ok(0)
}

/// A study, from what is asked to the exit code.
fn perform(experiment: &Experiment) -> Result<u8, Failure> {
    let arguments = &experiment.arguments;
    let text = experiment.study.text();
    let name = PathBuf::from(format!("laxity-{}.html", text.name));
    let page = arguments.html.as_deref().unwrap_or(&name);
    let is_taken = files::taken(arguments.json.as_deref(), "--html", page)?;
    let on = match (text.measures, arguments.on) {
        (true, on) => on,
        (false, On::Linux) => {
            let message = format!(
                "nothing of {} is measured, so --on linux says nothing; see --help",
                text.name
            );
            return Err(Failure::new(USAGE, message));
        }
        (false, _) => On::Twin,
    };
    let (host, _) = run::choose(on, arguments.threads)?;
    let live = host == Host::Linux;
    let machine = machine(arguments.machine.as_deref(), live)?;
    let request = Request {
        figures: experiment.figures.clone(),
        live,
        threads: arguments.threads,
        seed: arguments.seed,
        repeats: arguments.repeats,
        machine,
        options: experiment.options.clone(),
    };
    let mut reporter = Reporter::patient(arguments.quiet);
    let report = experiment.study.perform(&request, &mut reporter);
    reporter.end();
    let report = report.map_err(|error| run::failure(&error))?;
    leave(&report, page, arguments)?;
    if !(arguments.quiet || is_taken) {
        let mut shown = text::render(&report);
        shown.push_str(&format!("Drawings: {}\n", page.display()));
        files::print(&shown)?;
    }
    Ok(if report.holds() { 0 } else { VIOLATED })
}

/// The files that are asked for.
fn leave(report: &Report, page: &Path, arguments: &Study) -> Result<(), Failure> {
    let html = page::render(report).map_err(failed("the page"))?;
    files::write(page, html.as_bytes())?;
    if let Some(path) = &arguments.json {
        files::write(path, &json::render(report))?;
    }
    if let Some(directory) = &arguments.svg {
        for (name, drawing) in svg::files(report) {
            files::write(&directory.join(name), drawing.as_bytes())?;
        }
    }
    Ok(())
}

/// What this machine costs, for predictions of what is measured. The twin alone reads none that is not named: its reports are the same on
/// every machine.
fn machine(named: Option<&Path>, live: bool) -> Result<Option<Machine>, Failure> {
    let default = || live.then(machine_file::default_path).flatten();
    let Some(path) = named.map(Path::to_owned).or_else(default) else {
        return Ok(None);
    };
    match machine_file::read(&path) {
        Ok(calibration) => Ok(Some(calibration.machine)),
        Err(ReadError::Io { cause, .. })
            if named.is_none() && cause.kind() == ErrorKind::NotFound =>
        {
            eprintln!("Without predictions: `laxity calibrate` measures what they need.");
            Ok(None)
        }
        Err(error) => Err(Failure::new(USAGE, error.to_string())),
    }
}
