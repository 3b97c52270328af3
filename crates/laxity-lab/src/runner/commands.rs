//! Programs of the user's own, run beside a scenario's variant: started before it, placed as it says, ended with it.

mod end;

use std::process::{Command, Stdio};

use super::RunError;
use super::admit::{Answer, answer};
use laxity::LiveConfig;
use laxity::Whereabouts;
use laxity::command::{self, Beside, CpuSet, Held, ProcessGroup, Right, RunningCommand};
use laxity::hold::CloseHold;
use laxity_model::admission::{ProcessorSupply, Supply};
use laxity_model::analysis::multiprocessor::Bandwidth;
use laxity_model::enforce::ranks;
use laxity_model::verify::contract::{Limit, Subject};
use laxity_model::{
    Activity, Context, Enforcer, HostError, Placement, Program, RunRecord, Scheduling, Step,
};

use crate::scenario::{Placing, ResolvedTask, ResolvedVariant, TaskKind};

pub use end::CommandEnd;

/// A variant's commands while it runs. They end when this is dropped, or this process is.
#[derive(Debug)]
pub struct Running {
    commands: Vec<OneRunning>,
}

#[derive(Debug)]
struct OneRunning {
    name: String,
    /// The code with which it may end before the run does.
    expected: u8,
    /// What contracts say of it.
    limits: Vec<Limit>,
    right: Right,
    command: RunningCommand,
    /// Given back after it has ended.
    hold: Option<CloseHold>,
    /// By `deadline` it keeps to no processor.
    ran: Whereabouts,
}

/// Looks for all programs that these variants are to execute.
///
/// # Errors
///
/// [`RunError::Failed`], which names the first that cannot be.
pub fn look_for_all<'a>(
    variants: impl IntoIterator<Item = &'a ResolvedVariant>,
) -> Result<(), RunError> {
    for variant in variants {
        for task in &variant.tasks {
            let TaskKind::Command { argv, .. } = &task.kind else {
                continue;
            };
            let program = argv.first().map_or("", String::as_str);
            let found = command::look_for(program.as_ref());
            found.map_err(|error| RunError::Failed {
                variant: variant.name.clone(),
                reason: format!("the command of `{}` cannot be started: {error}", task.name),
            })?;
        }
    }
    Ok(())
}

/// Starts the commands of a variant.
///
/// # Errors
///
/// [`HostError::Failed`] if a program cannot be started or placed.
pub fn start(variant: &ResolvedVariant, config: &LiveConfig) -> Result<Running, HostError> {
    let mut commands = Vec::new();
    for task in &variant.tasks {
        if let TaskKind::Command { argv, exit } = &task.kind {
            let right = right(task, config.processors[task.processor.index()]);
            let (command, hold) = start_one((task, right), argv)?;
            commands.push(OneRunning {
                name: task.name.clone(),
                expected: *exit,
                limits: limits(variant, task),
                right,
                command,
                ran: match hold {
                    Some(_) => Whereabouts::Anywhere,
                    None => Whereabouts::On(task.processor),
                },
                hold,
            });
        }
    }
    Ok(Running { commands })
}

/// What the contracts of the variant say of its command.
fn limits(variant: &ResolvedVariant, task: &ResolvedTask) -> Vec<Limit> {
    let subject = Subject {
        name: task.name.clone(),
        kind: task.kind.kind(),
    };
    let contracts = variant.judged_by().into_iter();
    let own = contracts
        .filter(|contract| contract.subjects.include(&subject))
        .flat_map(|contract| &contract.limits);
    own.cloned().collect()
}

fn start_one(
    (task, right): (&ResolvedTask, Right),
    argv: &[String],
) -> Result<(RunningCommand, Option<CloseHold>), HostError> {
    let name = &task.name;
    let failed = |error: &dyn std::fmt::Display| {
        HostError::Failed(format!("the command of `{name}` {error}"))
    };
    let Some((program, arguments)) = argv.split_first() else {
        return Err(failed(&"cannot be started: `argv` is empty"));
    };
    let mut command = Command::new(program);
    // Its output would mix with ours.
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let mut hold = None;
    let place = |held: &Held| {
        hold = place(held, task, right)?;
        Ok(())
    };
    let command = RunningCommand::start(command, ProcessGroup::Own, place);
    Ok((command.map_err(|error| failed(&error))?, hold))
}

fn place(held: &Held, task: &ResolvedTask, right: Right) -> Result<Option<CloseHold>, HostError> {
    match right {
        Right::Reserved(reservation) => {
            let hold = CloseHold::of_held(&task.name, reservation, held)?;
            Ok(Some(hold))
        }
        Right::Scheduled(scheduling, cpu) => {
            held.schedule(scheduling, &CpuSet::single(cpu))?;
            Ok(None)
        }
    }
}

/// With what right a command runs where its processor has this number: a file asks for no reservation but by `deadline`.
const fn right(task: &ResolvedTask, cpu: usize) -> Right {
    match task.placing {
        Some(Placing::Reserved(request, _)) => Right::Reserved(request.reservation),
        Some(Placing::Thread(priority)) => Right::Scheduled(ranks::of_thread(priority), cpu),
        Some(Placing::Interrupt | Placing::Deferred) | None => {
            Right::Scheduled(Scheduling::Fair { nice: 0 }, cpu)
        }
    }
}

/// What a machine has for a variant's program beside its commands: what they reserve is taken, and as nobody says how much they do, those whom a
/// slot's occupant does not preempt are held against slots by name.
pub fn supply_beside(variant: &ResolvedVariant, supply: &Supply) -> Supply {
    let mut left = supply.clone();
    let is_command = |task: &&ResolvedTask| matches!(task.kind, TaskKind::Command { .. });
    for task in variant.tasks.iter().filter(is_command) {
        let right = right(task, task.processor.index());
        if let (Right::Reserved(reservation), Ok(deadline)) = (&right, &mut left.deadline) {
            let own = Bandwidth::of(reservation.service(), reservation.period());
            deadline.granted = [deadline.granted, own].into_iter().sum();
        }
        for here in &mut left.processors {
            hold_against(here, task, &right);
        }
    }
    left
}

/// What the kernel makes of the reservations that a variant's commands ask for, beside those of its program; `None` if they ask for none.
///
/// # Errors
///
/// [`HostError`] if this supply's machine cannot run it.
pub(super) fn admission(
    variant: &ResolvedVariant,
    program: &Program,
    supply: &Supply,
) -> Result<Option<Answer>, HostError> {
    let mut left = supply.clone();
    if let Ok(deadline) = &mut left.deadline {
        let own = program.askers(Enforcer::Deadline);
        let own = own.map(|(_, _, held)| Bandwidth::of(held.service(), held.period()));
        deadline.granted = own.chain([deadline.granted]).sum();
    }
    let mut commands = Program::new(program.processors);
    for task in &variant.tasks {
        if let (TaskKind::Command { .. }, Some(Placing::Reserved(request, before))) =
            (&task.kind, task.placing)
        {
            commands.push(Activity {
                name: task.name.clone(),
                processor: task.processor,
                placement: Placement::Thread(before),
                reservation: Some(request),
                body: Box::new(|_: &mut dyn Context| Step::Finish),
            });
        }
    }
    let asks = !commands.activities.is_empty();
    asks.then(|| answer(commands, &left)).transpose()
}

/// Holds a command against the slots of a processor, if it ranks above them there.
fn hold_against(here: &mut ProcessorSupply, task: &ResolvedTask, right: &Right) {
    let how = match right {
        // It keeps to no processor, so each must have room for it.
        Right::Reserved(reservation) => {
            let share = u32::try_from(reservation.share_ppm()).unwrap_or(u32::MAX);
            if let Ok(slots) = &mut here.slots {
                slots.used_ppm = slots.used_ppm.saturating_add(share);
            }
            "SCHED_DEADLINE".to_owned()
        }
        Right::Scheduled(scheduling, _)
            if here.processor == task.processor && scheduling.outranks_slots() =>
        {
            scheduling.to_string()
        }
        Right::Scheduled(..) => return,
    };
    let named = format!("{} ({how})", task.name);
    here.outranking.started.push(named);
}

impl Running {
    /// What a run is told of them.
    pub fn beside(&self) -> Vec<Beside> {
        let all = self.commands.iter();
        all.map(|one| Beside::new(&one.name, &one.command, one.right))
            .collect()
    }

    /// Ends them all with everything that they started, after this run.
    pub fn end(self, record: &RunRecord) -> Vec<CommandEnd> {
        let ends = self.commands.into_iter();
        ends.map(|one| one.end(record)).collect()
    }
}

impl OneRunning {
    fn end(self, record: &RunRecord) -> CommandEnd {
        let how = self.command.end();
        let (received, grade) = self.hold.map(CloseHold::end).unzip();
        CommandEnd {
            stood: end::stood_still(&how, self.ran, record),
            name: self.name,
            expected: self.expected,
            limits: self.limits,
            start: record.start,
            how,
            received,
            grade,
            ran: self.ran,
            reservation: match self.right {
                Right::Reserved(reservation) => Some(reservation),
                Right::Scheduled(..) => None,
            },
        }
    }
}
