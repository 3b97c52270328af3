//! `laxity lab`: experiments that need no scenario.

use std::path::{Path, PathBuf};

use laxity_lab::bench::{self, Request};
use laxity_lab::machine_file::{self, Known, Measured};
use laxity_lab::plain;
use laxity_lab::report::{Report, json, page, svg, text};
use laxity_lab::runner::{On as Host, Progress};
use laxity_studies::STUDIES;

use crate::arguments::Lab;
use crate::exit::{self, Failure, USAGE, failed};
use crate::experiments::{Experiment, Study};
use crate::on::On;
use crate::outputs::{self, Output, Written};
use crate::progress::Reporter;
use crate::{files, machine, run};

/// Runs an experiment; without one, lists them.
pub(crate) fn run(lab: &Lab) -> Result<u8, Failure> {
    match &lab.experiment {
        Some(experiment) => perform(experiment),
        None => list(),
    }
}

fn list() -> Result<u8, Failure> {
    let mut text = String::from("Experiments:\n");
    for study in STUDIES.map(bench::Experiment::text) {
        text.push_str(&study.listed(files::width()));
    }
    text.push_str("\n`laxity lab <EXPERIMENT> --help` says more.\n");
    files::print(&text)?;
    Ok(0)
}

/// One of the processes that an experiment starts.
pub(crate) fn peer(experiment: &str, part: &str) -> Result<u8, Failure> {
    let done = laxity_studies::peer(experiment, part);
    done.map_err(failed("a process of the experiment"))?;
    Ok(0)
}

/// A study, from what is asked to the exit code.
fn perform(experiment: &Experiment) -> Result<u8, Failure> {
    let arguments = &experiment.arguments;
    let text = experiment.study.text();
    let name = PathBuf::from(format!("laxity-{}.html", text.name));
    let page = arguments.html.as_deref().unwrap_or(&name);
    let mut wanted: Vec<Output<'_>> = vec![("--html", page)];
    wanted.extend(arguments.json.output());
    // One of the drawings stands for all: what matters is the directory.
    let drawing = arguments
        .svg
        .as_ref()
        .map(|directory| directory.join(".svg"));
    wanted.extend(drawing.as_deref().map(|path| ("--svg", path)));
    let is_taken = wanted.iter().any(|(_, path)| files::is_stream(path));
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
    // Who may not run on Linux is told so wherever its outputs are to go.
    let (host, _) = run::choose(on, arguments.threads)?;
    outputs::check(arguments.machine.as_deref(), &wanted)?;
    let live = host == Host::Linux;
    let known = known(arguments.machine.as_deref(), live)?;
    let (machine, elsewhere) =
        known.map_or((None, None), |known| (Some(known.machine), known.elsewhere));
    let request = Request {
        figures: experiment.figures.clone(),
        live,
        threads: arguments.threads,
        seed: arguments.seed,
        repeats: arguments.repeats,
        machine,
        elsewhere,
        options: experiment.options.clone(),
    };
    let mut reporter = Reporter::patient(arguments.quiet);
    let report = experiment.study.perform(&request, &mut reporter);
    reporter.end();
    let report = report.map_err(|error| run::failure(&error))?;
    let mut written = Written::default();
    let has_page = leave(&report, page, arguments, &mut written);
    if !(arguments.quiet || is_taken) {
        let mut shown = text::render(&report, files::width());
        if has_page {
            let page = page.display().to_string();
            shown.push_str(&format!("Drawings: {}\n", plain(&page)));
        }
        written.print(&shown);
    }
    written.done()?;
    Ok(exit::of(report.outcome()))
}

/// The files that are asked for; tells whether the page is there.
fn leave(report: &Report, page: &Path, arguments: &Study, written: &mut Written) -> bool {
    let html = page::render(report).map(String::into_bytes);
    let has_page = written.put(page, html.map_err(failed("the page")));
    if let Some(path) = arguments.json.path() {
        written.put(path, Ok(json::render(report)));
    }
    if let Some(directory) = &arguments.svg {
        for (name, drawing) in svg::files(report) {
            written.put(&directory.join(name), Ok(drawing.into_bytes()));
        }
    }
    has_page
}

/// What this machine costs, for predictions of what is measured. The twin alone reads none that is not named: its reports are the same on
/// every machine.
fn known(named: Option<&Path>, live: bool) -> Result<Option<Measured>, Failure> {
    let default = || live.then(machine_file::default_path).flatten();
    let Some(path) = named.map(Path::to_owned).or_else(default) else {
        return Ok(None);
    };
    if named.is_none() && matches!(path.try_exists(), Ok(false)) {
        files::say("Without predictions: `laxity calibrate` measures what they need.");
        return Ok(None);
    }
    match machine::read(&path)? {
        Known::Measured(known) if live => Ok(Some(*known)),
        // The twin alone is of the machine that the file is of, wherever it runs.
        Known::Measured(known) => Ok(Some(Measured {
            elsewhere: None,
            ..*known
        })),
        Known::Nothing | Known::LeftOut | Known::Unreadable(_) => Ok(None),
    }
}
