//! Programs of the user's own, run beside a scenario's variant: started before it, placed as it says, killed after it.

use std::process::{Command, Stdio};

use laxity_linux::LiveConfig;
use laxity_linux::enforce::deadline;
use laxity_linux::host::command::RunningCommand;
use laxity_linux::os::cpuset::CpuSet;
use laxity_linux::os::proc;
use laxity_linux::os::sched::{self, Policy, Tid};
use laxity_model::enforce::ranks;
use laxity_model::{Enforcer, HostError};

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
    let failed = |what: &str, error: &dyn std::fmt::Display| {
        HostError::Failed(format!(
            "the command of `{}` cannot be {what}: {error}",
            task.name
        ))
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
    let process = running.id().0.unsigned_abs();
    for thread in proc::threads_of(process).map_err(|error| failed("placed", &error))? {
        place(task, thread, cpu).map_err(|error| match error {
            Placement::Refused(why) => HostError::Refused(format!("`{}`: {why}", task.name)),
            Placement::Failed(why) => failed("placed", &why),
        })?;
    }
    Ok(running)
}

/// Why a command could not be placed.
enum Placement {
    Refused(&'static str),
    Failed(String),
}

fn place(task: &ResolvedTask, thread: Tid, cpu: usize) -> Result<(), Placement> {
    let failed = |error: &dyn std::fmt::Display| Placement::Failed(error.to_string());
    let policy = match task.placing {
        Some(Placing::Thread(priority)) => ranks::of_thread(priority).into(),
        Some(Placing::Reserved(request, _)) if request.enforcer == Enforcer::Deadline => {
            // A deadline thread keeps to no processor.
            return deadline::reserve(thread, request.reservation).map_err(|error| failed(&error));
        }
        Some(Placing::Reserved(..)) => {
            return Err(Placement::Refused(
                "`slots` confine threads of laxity's own process only; write enforcer = \"deadline\"",
            ));
        }
        Some(Placing::Interrupt | Placing::Deferred) | None => Policy::Other { nice: 0 },
    };
    // First the policy, then the processor: the other way round it might starve before it has its policy.
    sched::set_policy_inherited(thread, policy).map_err(|error| failed(&error))?;
    sched::set_affinity(thread, &CpuSet::single(cpu)).map_err(|error| failed(&error))
}
