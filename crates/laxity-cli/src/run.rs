//! `laxity run`: from a scenario file to a table, a verdict, a report and a trace.

use std::path::PathBuf;

use laxity::can_run_live;
use laxity::command::look_for;
use laxity::net::{PairError, enter_user_namespace, may_pair};
use laxity_lab::evidence::results::VariantResults;
use laxity_lab::evidence::{perfetto, trace::Trace};
use laxity_lab::plain;
use laxity_lab::report::{Timeline, page, run as shown};
use laxity_lab::runner::{self, Finished, On as Host, RunError};
use laxity_lab::scenario::kinds::SPINNER;
use laxity_lab::scenario::{Length, Resolved, Scenario};
use laxity_model::{ActivityId, EventKind, Span};

use crate::arguments::Run;
use crate::exit::{CANNOT_RUN, ERROR, Failure, INCONCLUSIVE, REFUSED, USAGE, failed};
use crate::on::On;
use crate::outputs::{self, Output, Written};
use crate::progress::Reporter;
use crate::{files, machine, permission, scenario};

/// So much of a run is drawn in the report.
const TIMELINE: Span = Span::from_millis(60);

/// Runs the command; the exit code is the verdict.
pub(crate) fn run(arguments: &Run) -> Result<u8, Failure> {
    let mut wanted: Vec<Output<'_>> =
        vec![("--html", &arguments.html), ("--trace", &arguments.trace)];
    let summary = arguments.trace_summary.as_deref();
    wanted.extend(summary.map(|path| ("--trace-summary", path)));
    wanted.extend(arguments.json.output());
    let scenario = scenario::read(&arguments.scenario)?;
    let notes = scenario.notes.clone();
    let mut resolved = resolve(scenario, arguments)?;
    // Who may not run on Linux is told so wherever its outputs are to go.
    let (on, mut notices) = choose(arguments.on, arguments.threads, resolved.makes_network())?;
    outputs::check(Some(&arguments.scenario), &wanted)?;
    let instead = notices.clone();
    if arguments.machine.is_some() && !resolved.has_network() {
        let message = "--machine tells what packets take of an interface, and there is none";
        return Err(Failure::new(USAGE, message));
    }
    let known = machine::known(arguments.machine.as_deref(), on)?;
    notices.extend(resolved.charge_packets(&known, on == Host::Linux));
    if !arguments.quiet {
        scenario::print_notes(&notes);
    }
    if on == Host::Linux {
        let programs = resolved.programs();
        let programs = programs.filter_map(|program| look_for(program.as_ref()).ok());
        let programs: Vec<PathBuf> = programs.collect();
        outputs::check_beside(Some(&arguments.scenario), &programs, &wanted)?;
        permission::to_execute(&resolved, arguments)?;
    }
    let progress = &mut Reporter::new(arguments.quiet);
    let finished = runner::run(&resolved, on, notices, progress);
    let finished = finished.map_err(|error| failure(&error))?;
    write(arguments, &finished, &instead)?;
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
    let names = resolved.variants.iter().map(|variant| &*variant.name);
    let names: Vec<&str> = names.collect();
    let mut asked = arguments.variants.iter();
    if let Some(unknown) = asked.find(|name| !names.contains(&name.as_str())) {
        let (file, there) = (&resolved.file, names.join(", "));
        let unknown = plain(unknown);
        let message = format!("`{unknown}` is no variant of {file}; there are {there}");
        return Err(Failure::new(USAGE, message));
    }
    resolved.keep(|variant| arguments.variants.contains(&variant.name));
    Ok(resolved)
}

/// The host, and what the reader should know about the choice, which is told at once; `networks`: for one on which networks are to be made.
pub(crate) fn choose(
    on: On,
    threads: usize,
    networks: bool,
) -> Result<(Host, Vec<String>), Failure> {
    let twin = Host::Twin { threads };
    if on == On::Twin {
        return Ok((twin, Vec::new()));
    }
    let can_run = can_run_live().map_err(|why| [why.what, why.remedy]);
    let can_run = can_run.and_then(|()| match networks.then(may_make_networks) {
        Some(Err(why)) => Err([why.to_string(), why.remedy()]),
        _ => Ok(()),
    });
    match (can_run, on) {
        (Ok(()), _) => Ok((Host::Linux, Vec::new())),
        (Err([what, remedy]), On::Linux) => {
            let message = format!("cannot run on Linux here: {what}; {remedy}");
            Err(Failure::new(CANNOT_RUN, message))
        }
        (Err([what, remedy]), _) => {
            let notice = format!(
                "This runs in the twin, in virtual time: on Linux it cannot run here, because {what}. Remedy: {remedy}"
            );
            files::say(&notice);
            Ok((twin, vec![notice]))
        }
    }
}

/// Who has no right to make networks has it in a user namespace of its own, where that is allowed, and where real-time priority is not lost by it: a limit is kept there, a capability is not.
fn may_make_networks() -> Result<(), PairError> {
    may_pair().or_else(|why| match enter_user_namespace() {
        Ok(()) if can_run_live().is_ok() => may_pair(),
        _ => Err(why),
    })
}

pub(crate) fn failure(error: &RunError) -> Failure {
    let code = match error {
        RunError::Refused { .. } => REFUSED,
        RunError::CannotRun(_) | RunError::Nothing(_) => CANNOT_RUN,
        RunError::Inconclusive(_) => INCONCLUSIVE,
        RunError::Interrupted(_) | RunError::Failed { .. } => ERROR,
    };
    Failure::new(code, error.to_string())
}

/// Everything that is asked for, each whatever became of the others; then the table, which is never lost, and last of all what it was run in
/// instead of Linux.
fn write(arguments: &Run, finished: &Finished, instead: &[String]) -> Result<(), Failure> {
    let results = &finished.results;
    let mut written = Written::default();
    let page = page::render(&shown::report(results, timelines(finished)));
    let page = page.map(String::into_bytes).map_err(failed("the report"));
    let encoded = perfetto::encode(&finished.traces);
    let has_page = written.put(&arguments.html, page);
    let has_trace = written.put(&arguments.trace, Ok(encoded.bytes));
    if let Some(path) = &arguments.trace_summary {
        let summary = serde_json::to_vec_pretty(&encoded.contents);
        written.put(path, summary.map_err(failed("the trace's summary")));
    }
    if let Some(path) = arguments.json.path() {
        written.put(path, Ok(results.to_json()));
    }
    let streams = [
        Some(&*arguments.html),
        Some(&*arguments.trace),
        arguments.trace_summary.as_deref(),
        arguments.json.path(),
    ];
    let is_taken = streams.into_iter().flatten().any(files::is_stream);
    if !(arguments.quiet || is_taken) {
        let mut text = shown::table(results, files::width(), written.code());
        text.push('\n');
        let html = arguments.html.display().to_string();
        if has_page {
            text.push_str(&format!("Report: {}\n", plain(&html)));
        }
        let trace = arguments.trace.display().to_string();
        if has_trace {
            let open = "open it at https://ui.perfetto.dev";
            text.push_str(&format!("Trace:  {} ({open})\n", plain(&trace)));
        }
        for notice in instead {
            text.push_str(&format!("{notice}\n"));
        }
        written.print(&text);
    }
    written.done()
}

/// The pictures of the report: one of each kind of placement of devices, with the lanes of all that is neither a spinner nor a far end.
fn timelines(finished: &Finished) -> Vec<Timeline> {
    let mut shown = Vec::new();
    let mut views = Vec::new();
    for trace in &finished.traces {
        let Some(variant) = finished.results.variant(&trace.name) else {
            continue;
        };
        let mut subjects = variant.subjects.iter();
        if !subjects.any(|subject| subject.figures.device().is_some()) {
            continue;
        }
        let kind = (
            has_activity(trace, " deferred call"),
            has_activity(trace, " thread"),
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
        let mut spinners = subjects.by_ref().filter(|s| s.kind == SPINNER.name);
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
