//! `laxity lab`: experiments that need no scenario.

use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use laxity_lab::lab::acceptance::{self, Results, Settings, Step, StudyError, table};
use laxity_lab::lab::{ACCEPTANCE, STUDIES};

use crate::arguments::{Acceptance, Experiment, Lab};
use crate::exit::{ERROR, Failure, USAGE};
use crate::files;

/// Nobody needs to be told how far something is that takes less than this.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs an experiment; without one, lists them.
pub(crate) fn run(lab: &Lab) -> Result<u8, Failure> {
    match &lab.experiment {
        Some(Experiment::Acceptance(arguments)) => accept(arguments),
        None => list(),
    }
}

fn list() -> Result<u8, Failure> {
    let mut text = String::from("Experiments:\n");
    let others = STUDIES.iter().map(|study| (study.name, study.summary));
    for (name, summary) in [(ACCEPTANCE.name, ACCEPTANCE.summary)]
        .into_iter()
        .chain(others)
    {
        text.push_str(&format!("  {name:<12} {summary}\n"));
    }
    text.push_str("\n`laxity lab <EXPERIMENT> --help` says more.\n");
    files::write(Path::new("-"), text.as_bytes())?;
    Ok(0)
}

/// The acceptance-ratio study.
fn accept(arguments: &Acceptance) -> Result<u8, Failure> {
    let is_output = |path: &Path| path == Path::new("-");
    let json_is_output = arguments.json.as_deref().is_some_and(is_output);
    let html_is_output = is_output(&arguments.html);
    if json_is_output && html_is_output {
        let message = "both --json and --html name standard output; name a file for one of them";
        return Err(Failure::new(USAGE, message));
    }
    let settings = Settings {
        sets: arguments.sets,
        tasks: usize::from(arguments.tasks),
        seed: arguments.seed,
        threads: arguments.threads,
    };
    let mut progress = Progress::new(arguments.quiet);
    let results = acceptance::run(&settings, &mut |step| progress.tell(step));
    progress.end();
    let results = results.map_err(|error| failure(&error))?;
    write(arguments, &results)?;
    if !(arguments.quiet || json_is_output || html_is_output) {
        let mut text = table::render(&results);
        text.push_str(&format!("\nCurves: {}\n", arguments.html.display()));
        files::write(Path::new("-"), text.as_bytes())?;
    }
    match results.counterexamples() {
        0 => Ok(0),
        count => Err(Failure::new(
            ERROR,
            format!(
                "{count} times a test accepted what a stronger one rejected: one of them is wrong"
            ),
        )),
    }
}

fn write(arguments: &Acceptance, results: &Results) -> Result<(), Failure> {
    let page = acceptance::page::render(results)
        .map_err(|error| Failure::new(ERROR, format!("the page: {error}")))?;
    files::write(&arguments.html, page.as_bytes())?;
    if let Some(path) = &arguments.json {
        let bytes = results
            .to_json()
            .map_err(|error| Failure::new(ERROR, format!("the results: {error}")))?;
        files::write(path, &bytes)?;
    }
    Ok(())
}

fn failure(error: &StudyError) -> Failure {
    let code = match error {
        StudyError::Settings { .. } | StudyError::Recipe(_) => USAGE,
        StudyError::Threads(_) => ERROR,
    };
    Failure::new(code, error.to_string())
}

/// On standard error, if it takes long: a bar on a terminal, elsewhere a line for each parameter that varies.
struct Progress {
    quiet: bool,
    began: Instant,
    bar: Option<ProgressBar>,
    told: &'static str,
}

impl Progress {
    fn new(quiet: bool) -> Self {
        Self {
            quiet,
            began: Instant::now(),
            bar: None,
            told: "",
        }
    }

    fn tell(&mut self, step: Step) {
        if self.quiet || self.began.elapsed() < PATIENCE {
            return;
        }
        if std::io::stderr().is_terminal() {
            let bar = self.bar.get_or_insert_with(|| bar(step.points));
            bar.set_position(step.done as u64);
            bar.set_message(step.what);
        } else if step.what != self.told {
            self.told = step.what;
            let seconds = self.began.elapsed().as_secs();
            eprintln!(
                "{seconds:4} s  {}/{}  {}",
                step.done, step.points, step.what
            );
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(points: usize) -> ProgressBar {
    let bar = ProgressBar::new(points as u64);
    match ProgressStyle::with_template("{elapsed_precise} [{bar:30}] {pos}/{len} {msg}") {
        Ok(style) => bar.with_style(style.progress_chars("=> ")),
        Err(_) => bar,
    }
}
