//! Programs of the user's own, run beside a scenario's variant: started before it, placed as it says, killed after it.

use std::process::{Command, Stdio};

use laxity::{LiveConfig, RunningCommand};
use laxity_model::enforce::ranks;
use laxity_model::{Enforcer, HostError, Scheduling};

use crate::scenario::{Placing, ResolvedTask, ResolvedVariant, TaskKind};

/// Starts the commands of a variant. They end when the returned value is dropped, and if this process is killed.
///
/// # Errors
///
/// [`HostError::Refused`] for a reservation by `slots`, which confine threads of this process only; [`HostError::Failed`] if a program
/// cannot be started or placed.
pub fn start(
    variant: &ResolvedVariant,
    config: &LiveConfig,
) -> Result<Vec<RunningCommand>, HostError> {
    let mut running = Vec::new();
    for task in &variant.tasks {
        if let TaskKind::Command { argv } = &task.kind {
            running.push(start_one(task, argv, config)?);
        }
    }
    Ok(running)
}

fn start_one(
    task: &ResolvedTask,
    argv: &[String],
    config: &LiveConfig,
) -> Result<RunningCommand, HostError> {
    let name = &task.name;
    let failed = |what: &str, error: &dyn std::fmt::Display| {
        HostError::Failed(format!("the command of `{name}` cannot be {what}: {error}"))
    };
    let Some((program, arguments)) = argv.split_first() else {
        return Err(failed("started", &"`argv` is empty"));
    };
    let mut command = Command::new(program);
    // Its output would mix with ours.
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let running = RunningCommand::start(&mut command).map_err(|error| failed("started", &error))?;
    let cpu = config.processors[task.processor.index()];
    let placed = match task.placing {
        Some(Placing::Thread(priority)) => running.schedule(ranks::of_thread(priority), cpu),
        Some(Placing::Reserved(request, _)) if request.enforcer == Enforcer::Deadline => {
            running.reserve(request.reservation)
        }
        Some(Placing::Reserved(..)) => {
            return Err(HostError::Refused(format!(
                "`{name}`: `slots` confine threads of laxity's own process only; write enforcer = \"deadline\""
            )));
        }
        Some(Placing::Interrupt | Placing::Deferred) | None => {
            running.schedule(Scheduling::Fair { nice: 0 }, cpu)
        }
    };
    placed.map_err(|error| failed("placed", &error))?;
    Ok(running)
}
