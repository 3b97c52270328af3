//! `laxity calibrate`: what this machine costs, into a file from which a twin of it is built.

use std::path::{Path, PathBuf};

use laxity::calibrate::{CalibrateError, Calibration, Evidence, Settings, calibrate};
use laxity::{HostError, LiveConfig};
use laxity_lab::machine_file::{self, meaning};
use laxity_lab::plain;
use laxity_lab::report::{calibration, page, text};
use laxity_lab::runner::Progress;
use laxity_model::Span;
use laxity_model::enforce::machine::{Figure, Machine};
use serde_json::{Value, json};

use crate::arguments::Calibrate;
use crate::exit::{CANNOT_RUN, ERROR, Failure, INCONCLUSIVE, USAGE, failed};
use crate::files;
use crate::outputs::{self, Output, Written};
use crate::progress::Reporter;

/// Only the so manieth part of the samples is taken for a first look.
const QUICK: usize = 10;

/// Measures, and writes the machine file only when all has been measured.
pub(crate) fn run(arguments: &Calibrate) -> Result<u8, Failure> {
    let path = output(arguments)?;
    let html = arguments.html.as_deref();
    let mut wanted: Vec<Output<'_>> = vec![("--output", &path)];
    wanted.extend(arguments.json.output());
    wanted.extend(html.map(|html| ("--html", html)));
    let is_taken = wanted.iter().any(|(_, path)| files::is_stream(path));
    if missing_directory(&path).is_some() {
        // It is made when there is something to be written.
        wanted.remove(0);
    }
    outputs::check(None, &wanted)?;
    let settings = Settings {
        processor: match arguments.processor {
            Some(processor) => processor,
            None => last_processor()?,
        },
        priority: arguments.priority,
        part: if arguments.quick { QUICK } else { 1 },
    };
    let mut reporter = Reporter::new(arguments.quiet);
    let found = calibrate(&settings, &mut |step| {
        reporter.tell(step.done, step.all, step.what);
    });
    reporter.end();
    let found = found.map_err(|error| failure(&error))?;
    let mut written = Written::default();
    let rendered = make_directory(&path).map(|()| machine_file::render(&found).into_bytes());
    let is_there = written.put(&path, rendered);
    if let Some(json) = arguments.json.path() {
        let text = format!("{:#}\n", to_json(&found));
        written.put(json, Ok(text.into_bytes()));
    }
    let report = calibration::report(&found);
    if let Some(html) = html {
        let page = page::render(&report).map(String::into_bytes);
        written.put(html, page.map_err(failed("the page")));
    }
    if !(arguments.quiet || is_taken) {
        let mut text = text::render(&report, files::width());
        if is_there {
            let path = path.display().to_string();
            text.push_str(&format!("\nMachine file: {}\n", plain(&path)));
        }
        written.print(&text);
    }
    written.done()?;
    Ok(0)
}

/// Where the machine file goes.
fn output(arguments: &Calibrate) -> Result<PathBuf, Failure> {
    let path = arguments.output.clone().or_else(machine_file::default_path);
    path.ok_or_else(|| {
        let message =
            "neither XDG_CONFIG_HOME nor HOME names a directory; name a file: --output FILE";
        Failure::new(USAGE, message)
    })
}

/// The last processor that may be used: the first ones have most of the interrupts.
fn last_processor() -> Result<usize, Failure> {
    let config = LiveConfig::detect(1);
    let config = config.map_err(|error| Failure::new(CANNOT_RUN, error.to_string()))?;
    Ok(config.external)
}

/// The directory of the default file, where it is not there yet.
fn missing_directory(path: &Path) -> Option<&Path> {
    let is_default = machine_file::default_path().as_deref() == Some(path);
    let directory = path.parent().filter(|_| is_default)?;
    (!directory.exists()).then_some(directory)
}

/// Makes the directory of the default file.
fn make_directory(path: &Path) -> Result<(), Failure> {
    let Some(directory) = missing_directory(path) else {
        return Ok(());
    };
    let what = format!("cannot make {}", plain(&directory.display().to_string()));
    std::fs::create_dir_all(directory).map_err(failed(what))
}

fn failure(error: &CalibrateError) -> Failure {
    let code = match error {
        CalibrateError::CannotRun { .. } => CANNOT_RUN,
        CalibrateError::Disturbed { .. } | CalibrateError::Slots(HostError::Disturbed(_)) => {
            INCONCLUSIVE
        }
        CalibrateError::Settings(_) => USAGE,
        _ => ERROR,
    };
    Failure::new(code, error.to_string())
}

/// For programs: integers, nanoseconds and parts per million.
fn to_json(found: &Calibration) -> Value {
    let Calibration {
        machine,
        evidence,
        udp_message,
        packets,
        circumstances: c,
    } = found;
    let udp_message = match udp_message {
        Ok(cost) => json!({ "each_ns": cost.each.as_nanos(), "byte_ps": cost.byte_ps }),
        Err(why) => json!({ "not_measured": why }),
    };
    let packets = packets.iter().map(|(way, cost)| {
        let value = match cost {
            Ok(cost) => json!({
                "wake_ns": cost.wake.as_nanos(),
                "receive_ns": cost.receive.each.as_nanos(),
                "receive_byte_ps": cost.receive.byte_ps,
                "send_ns": cost.send.each.as_nanos(),
                "send_byte_ps": cost.send.byte_ps,
            }),
            Err(why) => json!({ "not_measured": why }),
        };
        ((*way).to_owned(), value)
    });
    let packets: serde_json::Map<String, Value> = packets.collect();
    let figures = Figure::ALL.into_iter().map(|figure| {
        let value = figure_to_json(machine, figure, evidence.get(&figure));
        (figure.name().to_owned(), value)
    });
    let figures: serde_json::Map<String, Value> = figures.collect();
    json!({
        "file_version": 1,
        "description": machine.description,
        "provenance": machine.provenance,
        "tick_hz": machine.tick_hz,
        "slot_lead_ns": machine.slot_lead.as_nanos(),
        "circumstances": {
            "model": c.model,
            "processors": c.processors,
            "hypervisor": c.hypervisor,
            "kernel": c.kernel,
            "preemption": c.preemption,
            "clock_source": c.clock_source,
            "governor": c.governor,
            "processor": c.processor,
            "began": c.began,
            "took_ns": c.took.as_nanos(),
            "load_thousandths": c.load_thousandths,
            "steal_ns": c.steal.map(Span::as_nanos),
            "strangers": c.strangers,
        },
        "figures": figures,
        "udp_message": udp_message,
        "packets": packets,
    })
}

fn figure_to_json(machine: &Machine, figure: Figure, seen: Option<&Evidence>) -> Value {
    let points = machine.figure(figure).points().iter();
    let quantiles = points.map(|(ppm, span)| json!({ "ppm": ppm, "ns": span.as_nanos() }));
    let quantiles: Vec<Value> = quantiles.collect();
    json!({
        "meaning": meaning(figure),
        "samples": seen.map(|seen| seen.samples),
        "disturbed": seen.map(|seen| seen.disturbed),
        "medians_ns": seen.map(|seen| [seen.medians.0.as_nanos(), seen.medians.1.as_nanos()]),
        "quantiles": quantiles,
    })
}

#[cfg(test)]
mod tests {
    use laxity_lab::runner::RunError;

    use super::*;

    #[test]
    fn what_a_loaded_machine_makes_worthless_is_inconclusive_and_says_why() {
        let refused = failure(&CalibrateError::Disturbed {
            what: "tick",
            processor: 1,
            found: 40,
            disturbed: 21,
        });
        assert_eq!(refused.code, INCONCLUSIVE);
        for words in [
            "tick: processor 1 is disturbed",
            "40 undisturbed samples beside 21 disturbed",
            "try again when less runs there",
            "nothing was written",
        ] {
            assert!(refused.message.contains(words), "{}", refused.message);
        }
        // What slots cost is measured before every run that has any.
        let slots = || HostError::Disturbed("processor 1 is disturbed".to_owned());
        let run = crate::run::failure(&RunError::of(slots(), "reserved-slots"));
        for refused in [failure(&CalibrateError::Slots(slots())), run] {
            assert_eq!(refused.code, INCONCLUSIVE);
            assert!(refused.message.contains("processor 1 is disturbed"));
        }
    }
}
