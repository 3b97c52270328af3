//! `laxity lab`: experiments that need no scenario.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fs, io};

use laxity_lab::bench::{self, Request, Text};
use laxity_lab::evidence::written_to;
use laxity_lab::machine_file::{Elsewhere, Known};
use laxity_lab::plain;
use laxity_lab::report::{Report, json, page, svg, text};
use laxity_lab::runner::{On as Host, Progress};
use laxity_model::enforce::machine::Machine;
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
    let is_taken = wanted.iter().any(|(_, path)| files::is_stream(path));
    let on = where_to_run(text, arguments.on)?;
    // Who may not run on Linux is told so wherever its outputs are to go.
    let (host, _) = run::choose(on, arguments.threads, text.networks)?;
    let drawings = drawings(experiment, &wanted)?;
    wanted.extend(drawings.iter().map(|path| ("--svg", path.as_path())));
    outputs::check(experiment.machine.as_deref(), &wanted)?;
    let (machine, elsewhere) = measured(experiment, host)?.unzip();
    let request = Request {
        figures: experiment.figures.clone(),
        live: host == Host::Linux,
        threads: arguments.threads,
        seed: arguments.seed,
        full: experiment.full,
        repeats: experiment.repeats,
        machine,
        elsewhere: elsewhere.flatten(),
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

/// Where it is run: what measures nothing, in the twin.
fn where_to_run(text: &Text, on: On) -> Result<On, Failure> {
    match (text.measures, on) {
        (true, on) => Ok(on),
        (false, On::Linux) => {
            let message = format!(
                "nothing of {} is measured, so --on linux says nothing; see --help",
                text.name
            );
            Err(Failure::new(USAGE, message))
        }
        (false, _) => Ok(On::Twin),
    }
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

/// Where drawings may go: the first of each figure, and those further ones whose names are there already, or are another output's.
fn drawings(experiment: &Experiment, others: &[Output<'_>]) -> Result<BTreeSet<PathBuf>, Failure> {
    let Some(directory) = &experiment.arguments.svg else {
        return Ok(BTreeSet::new());
    };
    let shown = directory.display().to_string();
    let there = names(directory).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            let shown = plain(&shown);
            let message =
                format!("--svg: there is no directory {shown}; remedy: `mkdir -p {shown}`");
            Failure::new(exit::ERROR, message)
        }
        _ => failed(format!("--svg: cannot read {}", plain(&shown)))(error),
    })?;
    let others = others.iter().filter_map(|(_, path)| {
        let target = written_to(path).ok()?;
        Some(target.file_name()?.to_owned())
    });
    let (text, asked) = (experiment.study.text(), &experiment.figures);
    let keys = text.figures.iter().map(|figure| &figure.key);
    let keys = keys.filter(|key| asked.is_empty() || asked.contains(key));
    let stems: Vec<String> = keys.map(|key| svg::stem(&text.name, key)).collect();
    let is_one = |name: &OsString| {
        let name = name.to_str().and_then(|name| name.strip_suffix(".svg"));
        name.is_some_and(|name| stems.iter().any(|stem| name.starts_with(stem.as_str())))
    };
    let further = there.into_iter().chain(others).filter(is_one);
    let firsts = stems
        .iter()
        .map(|stem| OsString::from(format!("{stem}.svg")));
    let all = firsts.chain(further);
    Ok(all.map(|name| directory.join(name)).collect())
}

/// The names of all that is in a directory.
fn names(directory: &Path) -> io::Result<Vec<OsString>> {
    let entries = fs::read_dir(directory)?;
    entries.map(|entry| Ok(entry?.file_name())).collect()
}

/// What this machine costs, and in what it is another one than was measured, for a study that predicts from it; no other asks.
fn measured(
    experiment: &Experiment,
    on: Host,
) -> Result<Option<(Machine, Option<Elsewhere>)>, Failure> {
    if !experiment.study.text().predicts {
        return Ok(None);
    }
    let live = on == Host::Linux;
    let missing = match machine::known(experiment.machine.as_deref(), on)? {
        Known::Measured(known) => {
            // The twin alone is of the machine that the file is of, wherever it runs.
            let elsewhere = known.elsewhere.filter(|_| live);
            return Ok(Some((known.machine, elsewhere)));
        }
        Known::Nothing if live => "`laxity calibrate` measures what they need".to_owned(),
        Known::Unreadable(why) => why,
        Known::Nothing | Known::LeftOut => return Ok(None),
    };
    files::say(&format!("Without predictions: {missing}."));
    Ok(None)
}
