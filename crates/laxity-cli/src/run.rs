//! `laxity run`: from a scenario file to a table, a verdict, a report and a trace.

use laxity::can_run_live;
use laxity_lab::evidence::results::VariantResults;
use laxity_lab::evidence::subjects::Figures;
use laxity_lab::evidence::{perfetto, trace::Trace};
use laxity_lab::report::{Timeline, page, run as shown};
use laxity_lab::runner::{self, Finished, On as Host, RunError};
use laxity_lab::scenario::{Length, Resolved, Scenario};
use laxity_model::{ActivityId, EventKind, Span};

use crate::arguments::Run;
use crate::exit::{CANNOT_RUN, ERROR, Failure, REFUSED, USAGE, failed};
use crate::on::On;
use crate::progress::Reporter;
use crate::{files, scenario};

/// So much of a run is drawn in the report.
const TIMELINE: Span = Span::from_millis(60);

/// Runs the command; the exit code is the verdict.
pub(crate) fn run(arguments: &Run) -> Result<u8, Failure> {
    let scenario = scenario::read(&arguments.scenario)?;
    let notes = scenario.notes.clone();
    let resolved = resolve(scenario, arguments)?;
    let (on, notices) = choose(arguments.on, arguments.threads)?;
    if !arguments.quiet {
        scenario::print_notes(&notes);
    }
    let progress = &mut Reporter::new(arguments.quiet);
    let finished = runner::run(&resolved, on, notices, progress);
    let finished = finished.map_err(|error| failure(&error))?;
    write(arguments, &finished)?;
    Ok(finished.results.exit_code)
}

/// The scenario at the length asked for, with the seed and the variants asked for.
fn resolve(scenario: Scenario, arguments: &Run) -> Result<Resolved, Failure> {
    let mut resolved = scenario.resolve(if arguments.full {
        Length::Full
    } else {
        Length::Quick
    });
    if let Some(seed) = arguments.seed {
        resolved.seed = u64::from(seed);
    }
    if arguments.variants.is_empty() {
        return Ok(resolved);
    }
    let names: Vec<String> = resolved
        .variants
        .iter()
        .map(|variant| variant.name.clone())
        .collect();
    if let Some(unknown) = arguments.variants.iter().find(|name| !names.contains(name)) {
        let there = names.join(", ");
        let message = format!(
            "`{unknown}` is no variant of {}; there are {there}",
            resolved.file
        );
        return Err(Failure::new(USAGE, message));
    }
    resolved.keep(|variant| arguments.variants.contains(&variant.name));
    Ok(resolved)
}

/// The host, and what the reader should know about the choice, which is told at once.
pub(crate) fn choose(on: On, threads: usize) -> Result<(Host, Vec<String>), Failure> {
    let twin = Host::Twin { threads };
    if on == On::Twin {
        return Ok((twin, Vec::new()));
    }
    match (can_run_live(), on) {
        (Ok(()), _) => Ok((Host::Linux, Vec::new())),
        (Err(why), On::Linux) => {
            let message = format!("cannot run on Linux here: {}; {}", why.what, why.remedy);
            Err(Failure::new(CANNOT_RUN, message))
        }
        (Err(why), _) => {
            let notice = format!(
                "This runs in the twin, in virtual time: on Linux it cannot run here, because {}. Remedy: {}",
                why.what, why.remedy
            );
            eprintln!("{notice}");
            Ok((twin, vec![notice]))
        }
    }
}

pub(crate) fn failure(error: &RunError) -> Failure {
    let code = match error {
        RunError::Refused { .. } => REFUSED,
        RunError::CannotRun(_) | RunError::Nothing(_) => CANNOT_RUN,
        RunError::Interrupted(_) | RunError::Failed { .. } => ERROR,
    };
    Failure::new(code, error.to_string())
}

fn write(arguments: &Run, finished: &Finished) -> Result<(), Failure> {
    let results = &finished.results;
    let page = page::render(&shown::report(results, timelines(finished)));
    let page = page.map_err(failed("the report"))?;
    let encoded = perfetto::encode(&finished.traces);
    files::write(&arguments.html, page.as_bytes())?;
    files::write(&arguments.trace, &encoded.bytes)?;
    if let Some(path) = &arguments.trace_summary {
        let summary = serde_json::to_vec_pretty(&encoded.contents);
        files::write(path, &summary.map_err(failed("the trace's summary"))?)?;
    }
    if let Some(path) = &arguments.json {
        files::write(path, &results.to_json())?;
    }
    let is_taken = arguments.json.as_deref().is_some_and(files::is_output);
    if !(arguments.quiet || is_taken) {
        let mut text = shown::table(results);
        let (html, trace) = (arguments.html.display(), arguments.trace.display());
        text.push_str(&format!(
            "\nReport: {html}\nTrace:  {trace} (open it at https://ui.perfetto.dev)\n"
        ));
        files::print(&text)?;
    }
    Ok(())
}

/// The pictures of the report: one of each kind of placement of modems, with the lanes of all that is neither a spinner nor a far end.
fn timelines(finished: &Finished) -> Vec<Timeline> {
    let mut shown = Vec::new();
    let mut views = Vec::new();
    for trace in &finished.traces {
        let Some(variant) = finished.results.variant(&trace.name) else {
            continue;
        };
        if variant.modems().next().is_none() {
            continue;
        }
        let kind = (
            has_activity(trace, "modem deferred"),
            has_activity(trace, "modem thread"),
            has_event(trace, EventKind::ReservationBegin),
            has_event(trace, EventKind::SlotBegin),
        );
        if !shown.contains(&kind) {
            shown.push(kind);
            let lanes = lanes(trace, variant);
            views.push(Timeline::representative(trace, TIMELINE, &lanes));
        }
    }
    views
}

fn has_activity(trace: &Trace, name: &str) -> bool {
    let mut all = trace.activities.iter();
    all.any(|activity| activity.name.contains(name))
}

fn has_event(trace: &Trace, kind: EventKind) -> bool {
    trace.events.iter().any(|event| event.kind == kind)
}

fn lanes(trace: &Trace, variant: &VariantResults) -> Vec<ActivityId> {
    let is_spinner = |name: &str| {
        let mut subjects = variant.subjects.iter();
        let mut spinners = subjects.by_ref().filter(|s| s.figures == Figures::Spinner);
        spinners.any(|spinner| {
            let number = name.strip_prefix(spinner.name.as_str());
            number.is_some_and(|number| number.starts_with(' '))
        })
    };
    let lanes =
        trace.activities.iter().enumerate().filter(|(_, activity)| {
            !is_spinner(&activity.name) && !activity.name.ends_with("far end")
        });
    lanes.map(|(index, _)| ActivityId(index as u16)).collect()
}
