//! What is shown of a program of the user's own.

use laxity_model::base::number::median;
use laxity_model::verify::contract::Quantity;

use super::{Column, MILLISECONDS, SECONDS, column, time, with};
use crate::each_once::each_once;
use crate::evidence::subjects::{CommandFigures, CommandRun, SubjectResults};
use crate::report::Value;
use crate::report::run::apart::quantity;

pub(super) const COMMAND: Column = column("command", "command", None, |line| {
    Some(line.command?.0.name.as_str().into())
});

/// What is shown of a program of the user's own.
pub(super) const OF_COMMANDS: [Column; 2] = [
    column("processor time", "cpu\ntime s", Some(SECONDS), |line| {
        processor_time(line.command?.1)
    }),
    column("exit", "exit", None, |line| Some(ended(line.command?.1))),
];
pub(super) const COMMAND_GAP: Column = with(
    column(
        "service gap of the command's first thread alone, max",
        "1st thread\ngap ms",
        MILLISECONDS,
        |line| service_gap(line.command?.0),
    ),
    |line| time(quantity(line.command?.0, Quantity::SERVICE_GAP)?.disturbed_max()),
);

/// What a program took, in half of the runs at most.
pub(in crate::report::run) fn processor_time(command: &CommandFigures) -> Option<Value> {
    let runs = command.command_runs.iter();
    time(median(runs.filter_map(|run| run.processor_time_ns)))
}

/// How it ended, in each way that it did.
pub(in crate::report::run) fn ended(command: &CommandFigures) -> Value {
    let runs = command.command_runs.iter();
    each_once(runs.map(CommandRun::ended)).join(", ").into()
}

/// The longest for which it, or a task, had work and not the processor.
pub(in crate::report::run) fn service_gap(subject: &SubjectResults) -> Option<Value> {
    time(quantity(subject, Quantity::SERVICE_GAP)?.told_max())
}
