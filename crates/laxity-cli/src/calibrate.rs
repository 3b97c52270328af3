//! `laxity calibrate`: what this machine costs, into a file from which a twin of it is built.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use laxity::LiveConfig;
use laxity::calibrate::{CalibrateError, Calibration, Evidence, Settings, calibrate};
use laxity_lab::machine_file::{self, meaning};
use laxity_lab::runner::Progress;
use laxity_lab::scenario::units::format_span;
use laxity_model::Span;
use laxity_model::enforce::machine::{Figure, Machine};
use serde_json::{Value, json};

use crate::arguments::Calibrate;
use crate::exit::{CANNOT_RUN, ERROR, Failure, USAGE, failed};
use crate::files;
use crate::progress::Reporter;

/// Only the so manieth part of the samples is taken for a first look.
const QUICK: usize = 10;
/// The shares that the table shows, in parts per million, with their names.
const SHOWN: [(u32, &str); 4] = [
    (10_000, "1 %"),
    (500_000, "median"),
    (990_000, "99 %"),
    (1_000_000, "most"),
];

/// Measures, and writes the machine file only when all has been measured.
pub(crate) fn run(arguments: &Calibrate) -> Result<u8, Failure> {
    let path = output(arguments)?;
    let is_taken = files::taken(arguments.json.as_deref(), "--output", &path)?;
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
    write(&path, &found)?;
    if let Some(json) = &arguments.json {
        let text = format!("{:#}\n", to_json(&found));
        files::write(json, text.as_bytes())?;
    }
    if !(arguments.quiet || is_taken) {
        let text = format!("{}\nMachine file: {}\n", table(&found), path.display());
        files::print(&text)?;
    }
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

/// Makes the directory of the default file; the file is there whole or not at all.
fn write(path: &Path, found: &Calibration) -> Result<(), Failure> {
    if machine_file::default_path().as_deref() == Some(path)
        && let Some(directory) = path.parent()
    {
        let what = format!("cannot make {}", directory.display());
        std::fs::create_dir_all(directory).map_err(failed(what))?;
    }
    files::write(path, machine_file::render(found).as_bytes())
}

fn failure(error: &CalibrateError) -> Failure {
    let code = match error {
        CalibrateError::CannotRun { .. } => CANNOT_RUN,
        CalibrateError::Settings(_) => USAGE,
        _ => ERROR,
    };
    Failure::new(code, error.to_string())
}

/// For people: a line a figure.
fn table(found: &Calibration) -> String {
    let Calibration {
        machine,
        evidence,
        circumstances,
    } = found;
    let mut text = format!("{}\n{}\n", machine.description, machine.provenance);
    let load = f64::from(circumstances.load_thousandths) / 1_000.0;
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "load {load:.2}, steal {}, {}\n",
        format_span(circumstances.steal),
        match machine.tick_hz {
            0 => "no tick".to_owned(),
            hz => format!("tick {hz} Hz"),
        }
    );
    let _ = write!(text, "{:<18}", "");
    for (_, name) in SHOWN {
        let _ = write!(text, "{name:>10}");
    }
    let _ = writeln!(
        text,
        "  {:>16}  {:>7} {:>9}",
        "medians", "samples", "disturbed"
    );
    for figure in Figure::ALL {
        let _ = write!(text, "{:<18}", figure.name());
        for (ppm, _) in SHOWN {
            let _ = write!(text, "{:>10}", short(machine.figure(figure).at(ppm)));
        }
        match evidence.get(&figure) {
            Some(seen) => {
                let (least, most) = seen.medians;
                let medians = format!("{} to {}", short(least), short(most));
                let (samples, disturbed) = (seen.samples, seen.disturbed);
                let _ = writeln!(text, "  {medians:>16}  {samples:>7} {disturbed:>9}");
            }
            None if figure == Figure::Tick && machine.tick_hz == 0 => {
                text.push_str("  no tick came on this processor\n");
            }
            None => text.push_str("  not measured, but what theory allows\n"),
        }
    }
    text
}

/// Three digits, without trailing zeros' noise: `1.23us`, `45.6us`, `789us`.
fn short(span: Span) -> String {
    let nanos = span.as_nanos();
    let (unit, name) = match nanos {
        0..1_000 => return format!("{nanos}ns"),
        1_000..1_000_000 => (1_000, "us"),
        _ => (1_000_000, "ms"),
    };
    let (whole, thousandths) = (nanos / unit, nanos % unit / (unit / 1_000));
    match whole {
        0..10 => format!("{whole}.{:02}{name}", thousandths / 10),
        10..100 => format!("{whole}.{}{name}", thousandths / 100),
        _ => format!("{whole}{name}"),
    }
}

/// For programs: integers, nanoseconds and parts per million.
fn to_json(found: &Calibration) -> Value {
    let Calibration {
        machine,
        evidence,
        circumstances: c,
    } = found;
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
            "steal_ns": c.steal.as_nanos(),
            "strangers": c.strangers,
        },
        "figures": figures,
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
    use super::*;

    #[test]
    fn spans_are_shown_with_three_digits() {
        let shown = [0, 999, 1_000, 1_239, 45_678, 789_999, 4_012_345]
            .map(|nanos| short(Span::from_nanos(nanos)));
        let expected = [
            "0ns", "999ns", "1.00us", "1.23us", "45.6us", "789us", "4.01ms",
        ];
        assert_eq!(shown, expected);
    }
}
