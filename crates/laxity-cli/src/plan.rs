//! `laxity plan`: what would be admitted, by whom and how well. Of a scenario, a task set, or a network of hosts.

use std::path::Path;

use laxity_lab::import::{self, Format};
use laxity_lab::plan::network as networks;
use laxity_lab::plan::scenario as scenarios;
use laxity_lab::plan::set::{self as sets, Options, PlanError, Supply};
use laxity_lab::runner::On as Host;
use laxity_lab::scenario::{Length, is_network, parse_network, units};
use laxity_model::Span;
use serde::Serialize;

use crate::arguments::{Plan, Scheduler};
use crate::enforcer::Enforcer;
use crate::exit::{ERROR, Failure, INCONCLUSIVE, MET, REFUSED, USAGE, failed};
use crate::on::On;
use crate::progress::Reporter;
use crate::run::{choose, failure};
use crate::{files, machine, outputs, scenario};

/// Prints the plan. Exit code 3 if something would be refused, 5 if that cannot be told; 1 if the twin showed what a bound rules out.
pub(crate) fn run(arguments: &Plan) -> Result<u8, Failure> {
    for input in [&arguments.file].into_iter().chain(&arguments.machine) {
        outputs::check(Some(input), arguments.json.output().as_slice())?;
    }
    let is_stream = |path: &Path| files::is_stream(path);
    if is_stream(&arguments.file) && arguments.machine.as_deref().is_some_and(is_stream) {
        let message = "standard input can be the file or the machine file, and not both";
        return Err(Failure::new(USAGE, message));
    }
    let (name, text) = files::read(&arguments.file)?;
    match Format::of(&name, &text) {
        Some(format) => of_set(arguments, &text, &name, format),
        None if is_network(&text) => of_network(arguments, &text, &name),
        None => of_scenario(arguments, &text, &name),
    }
}

fn of_scenario(arguments: &Plan, text: &str, name: &str) -> Result<u8, Failure> {
    let of_sets = [
        ("--scheduler", arguments.scheduler.is_some()),
        ("--supply", arguments.supply.is_some()),
        ("--processors", arguments.processors.is_some()),
    ];
    if let Some((option, _)) = of_sets.into_iter().find(|(_, given)| *given) {
        let message = format!("{option} is for task sets (.csv, .json); a scenario says it itself");
        return Err(Failure::new(USAGE, message));
    }
    let scenario = scenario::parse(text, name)?;
    let (on, _) = choose(arguments.on, 0, false)?;
    scenario::print_notes(&scenario.notes);
    let mut resolved = scenario.resolve(Length::Quick);
    if arguments.machine.is_some() && on != Host::Linux && !resolved.has_network() {
        let message = "--machine is for plans of this machine (--on linux): the twin has costs of its own, but for what packets take of an interface, and there is none";
        return Err(Failure::new(USAGE, message));
    }
    let known = machine::known(arguments.machine.as_deref(), on)?;
    let charged = resolved.charge_packets(&known, on == Host::Linux);
    let progress = &mut Reporter::patient(false);
    let how = (on, !arguments.no_observe);
    let plan = scenarios::plan(&resolved, how, &known, progress);
    let mut plan = plan.map_err(|error| failure(&error))?;
    plan.notes.extend(charged);
    print(arguments, &plan, || {
        scenarios::render(&plan, files::width())
    })?;
    let answer = if plan.admitted() { MET } else { REFUSED };
    Ok(code(answer, plan.is_contradicted()))
}

fn of_network(arguments: &Plan, text: &str, name: &str) -> Result<u8, Failure> {
    let of_others = [
        ("--scheduler", arguments.scheduler.is_some()),
        ("--supply", arguments.supply.is_some()),
        ("--processors", arguments.processors.is_some()),
        ("--on", arguments.on != On::Auto),
        ("--no-observe", arguments.no_observe),
    ];
    if let Some((option, _)) = of_others.into_iter().find(|(_, given)| *given) {
        let message = format!("{option} is not for networks of hosts");
        return Err(Failure::new(USAGE, message));
    }
    let network = parse_network(text, name).map_err(|errors| scenario::wrong(name, &errors))?;
    let known = machine::known(arguments.machine.as_deref(), Host::Linux)?;
    let plan = networks::plan(&network, name, &known);
    let plan = plan.map_err(|error| Failure::new(ERROR, format!("{name}: {error}")))?;
    print(arguments, &plan, || networks::render(&plan, files::width()))?;
    Ok(if plan.admitted { MET } else { REFUSED })
}

fn of_set(arguments: &Plan, text: &str, name: &str, format: Format) -> Result<u8, Failure> {
    if arguments.machine.is_some() {
        let message = "--machine is for scenarios: the bounds of a task set are of no machine";
        return Err(Failure::new(USAGE, message));
    }
    if arguments.on != On::Auto {
        let message = "--on is for scenarios: the bounds of a task set are of no host";
        return Err(Failure::new(USAGE, message));
    }
    let options = options(arguments)?;
    let set = import::read(text, name, format);
    let set = set.map_err(|errors| scenario::wrong(name, &errors))?;
    let plan = sets::plan(&set, &options).map_err(|error| {
        // The numbers are the file's, or those of an option.
        let code = match error {
            PlanError::NoSuchProcessor { .. } | PlanError::Overflow(_) => USAGE,
        };
        Failure::new(code, format!("{name}: {error}"))
    })?;
    print(arguments, &plan, || sets::render(&plan, files::width()))?;
    let answer = match (plan.admitted, plan.unknown) {
        (true, _) => MET,
        (false, true) => INCONCLUSIVE,
        (false, false) => REFUSED,
    };
    Ok(code(answer, plan.is_contradicted()))
}

/// The exit code of a plan with this answer. One that contradicts itself answers nothing: laxity is wrong, in its bounds or in its twin.
const fn code(answer: u8, is_contradicted: bool) -> u8 {
    if is_contradicted { ERROR } else { answer }
}

fn options(arguments: &Plan) -> Result<Options, Failure> {
    let wrong =
        |option: &str, error: &units::UnitError| Failure::new(USAGE, format!("{option}: {error}"));
    let tick = match &arguments.tick {
        Some(tick) => units::span(tick).map_err(|error| wrong("--tick", &error))?,
        None => Span::ZERO,
    };
    let reserved = arguments.supply.as_deref().map(units::reservation);
    let reserved = reserved.transpose();
    let supply = match reserved.map_err(|error| wrong("--supply", &error))? {
        None => Supply::Dedicated,
        Some(asked) if arguments.enforcer == Some(Enforcer::Deadline) => {
            Supply::Deadline(asked, tick)
        }
        Some(_) if arguments.tick.is_some() => {
            let message = "--tick is for --enforcer deadline: slots have no tick";
            return Err(Failure::new(USAGE, message));
        }
        Some(asked) => Supply::Slots(asked),
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

/// For people, and as JSON where that is wanted.
fn print<P: Serialize>(
    arguments: &Plan,
    plan: &P,
    render: impl FnOnce() -> String,
) -> Result<(), Failure> {
    outputs::tell(&arguments.json, render, || {
        let mut bytes = serde_json::to_vec_pretty(plan).map_err(failed("the plan"))?;
        bytes.push(b'\n');
        Ok(bytes)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use laxity_lab::plan::Line;
    use laxity_lab::plan::scenario::{Plan, VariantPlan};

    #[test]
    fn a_plan_that_contradicts_itself_is_an_error_whatever_it_answers() {
        let line = |seen, bound| Line {
            observed_max_ns: seen,
            bound_ns: bound,
            ..Line::default()
        };
        let plan = |lines| Plan {
            file_version: 0,
            scenario: String::new(),
            host: String::new(),
            machine: None,
            notes: Vec::new(),
            variants: vec![VariantPlan {
                lines,
                ..VariantPlan::default()
            }],
        };
        let within = [(Some(2), Some(2)), (None, Some(2)), (Some(2), None)];
        let within = Vec::from(within.map(|(seen, bound)| line(seen, bound)));
        let beyond = within.iter().cloned().chain([line(Some(3), Some(2))]);
        let beyond = plan(beyond.collect()).is_contradicted();
        let within = plan(within).is_contradicted();
        for answer in [MET, REFUSED, INCONCLUSIVE] {
            assert_eq!(code(answer, within), answer);
            assert_eq!(code(answer, beyond), ERROR);
        }
    }
}
