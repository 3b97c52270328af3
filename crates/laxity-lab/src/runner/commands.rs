//! Programs of the user's own, run beside a scenario's variant: started before it, placed as it says, ended with it.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use super::RunError;
use super::admit::{Answer, answer};
use laxity::LiveConfig;
use laxity::command::{
    self, Beside, CpuSet, End, EndError, Ended, Held, ProcessGroup, Right, RunningCommand,
};
use laxity::hold::{CloseHold, Stretch};
use laxity::observe::Disturbances;
use laxity::{Unknown, Whereabouts};
use laxity_model::admission::{ProcessorSupply, Supply};
use laxity_model::analysis::multiprocessor::Bandwidth;
use laxity_model::enforce::ranks;
use laxity_model::verify::contract::{Observations, Phase, Quantity, Subject};
use laxity_model::verify::delivery::UNCOUNTED;
use laxity_model::{
    Activity, Context, Disturbance, Enforcer, Grade, HostError, Instant, Placement, Program,
    Reservation, Scheduling, Service, Step,
};

use crate::evidence::subjects::CommandRun;
use crate::scenario::kinds;
use crate::scenario::units::format_span;
use crate::scenario::{Placing, ResolvedTask, ResolvedVariant, TaskKind};

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
    /// Unless a contract says that.
    is_judged: bool,
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
                is_judged: is_judged(variant, task),
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

/// Whether a contract of the variant is about the exit code of its command.
fn is_judged(variant: &ResolvedVariant, task: &ResolvedTask) -> bool {
    let subject = Subject {
        name: task.name.clone(),
        kind: task.kind.kind(),
    };
    let contracts = variant.judged_by().into_iter();
    let mut limits = contracts
        .filter(|contract| contract.subjects.include(&subject))
        .flat_map(|contract| &contract.limits);
    limits.any(|limit| limit.quantity == kinds::EXIT_CODE)
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

    /// Ends them all with everything that they started; `start` is when the run began.
    pub fn end(self, start: Instant) -> Vec<CommandEnd> {
        let ends = self.commands.into_iter();
        ends.map(|one| one.end(start)).collect()
    }
}

impl OneRunning {
    fn end(self, start: Instant) -> CommandEnd {
        let how = self.command.end();
        let (received, grade) = self.hold.map(CloseHold::end).unzip();
        CommandEnd {
            name: self.name,
            expected: self.expected,
            is_judged: self.is_judged,
            start,
            how,
            received: received.unwrap_or(Ok(Vec::new())),
            grade,
            ran: self.ran,
            reservation: match self.right {
                Right::Reserved(reservation) => Some(reservation),
                Right::Scheduled(..) => None,
            },
        }
    }
}

/// What became of a command.
#[derive(Debug)]
pub struct CommandEnd {
    /// Its name.
    pub name: String,
    expected: u8,
    /// A contract says what its exit code may be.
    is_judged: bool,
    start: Instant,
    how: Result<End, EndError>,
    /// What its reservation gave it, if it had one.
    received: Result<Vec<Stretch>, Unknown>,
    /// How firmly it was held.
    grade: Option<Grade>,
    /// Where it was placed.
    ran: Whereabouts,
    reservation: Option<Reservation>,
}

impl CommandEnd {
    /// Where it may have run.
    pub(super) const fn ran(&self) -> Whereabouts {
        self.ran
    }

    /// What it was granted, and how firmly that was held, if it had a reservation.
    pub(super) fn grade(&self) -> Option<(String, Grade)> {
        let (reservation, grade) = self.reservation.zip(self.grade.clone())?;
        Some((format!("{reservation} by {}", Enforcer::Deadline), grade))
    }

    fn ended(&self) -> Option<Ended> {
        self.how.as_ref().ok()?.by_itself
    }

    /// Its exit code, as a shell says it, if it ended by itself.
    fn exit_code(&self) -> Option<u64> {
        let status = self.ended()?.status;
        let code = status.code().or(status.signal().map(|signal| 128 + signal));
        u64::try_from(code?).ok()
    }

    /// Leaves what contracts judge by: of its reservation, what it gave between the run's begin and its end.
    pub(super) fn observe(
        &self,
        quantities: &mut Observations,
        [begin, end]: [Instant; 2],
        all: &[Disturbance],
    ) {
        let service = self.how.as_ref().ok().and_then(|end| end.service);
        let seen = [
            (kinds::EXIT_CODE, self.exit_code()),
            (kinds::PROCESSOR_TIME, service.map(Service::as_nanos)),
        ];
        for (quantity, value) in seen {
            if let Some(value) = value {
                quantities.record(quantity, &Phase::RUN, value, false);
            }
        }
        let disturbances = Disturbances::bearing_on(all, [self.ran]);
        let received = self.received.iter().flatten();
        let in_run = |stretch: &&Stretch| stretch.to > begin && stretch.from < end;
        for Stretch { from, to, gap } in received.filter(in_run) {
            let (gap, disturbed) = disturbances.told_apart(*gap, [*from, *to], self.reservation);
            // As `exec` tells it: the kernel does not count all of a wait.
            if !disturbed && !gap.is_zero() {
                let possible = (gap + UNCOUNTED).as_nanos();
                quantities.record_possible(Quantity::SERVICE_GAP, &Phase::RUN, possible);
            }
            quantities.record(
                Quantity::SERVICE_GAP,
                &Phase::RUN,
                gap.as_nanos(),
                disturbed,
            );
        }
    }

    /// In a sentence, if it did not run as declared: it ended by itself with another code than is expected of it, and no contract judges that,
    /// or nobody knows what became of it.
    pub fn failure(&self) -> Option<String> {
        let name = &self.name;
        let ended = match &self.how {
            Ok(End { by_itself, .. }) => (*by_itself)?,
            Err(error) => return Some(format!("the command of `{name}`: {error}")),
        };
        if self.is_judged || ended.status.code() == Some(self.expected.into()) {
            return None;
        }
        let how = how(&ended);
        let when = match ended.at > self.start {
            true => format!("{} after the start", format_span(ended.at - self.start)),
            false => "before the start".to_owned(),
        };
        Some(format!("the command of `{name}` {how} {when}"))
    }

    /// In a sentence, what else is to be known of it.
    pub(super) fn notice(&self) -> Option<String> {
        let end = self.how.as_ref().ok()?;
        end.keeper_was_stopped.then(|| {
            format!(
                "somebody had stopped the process that looks after the command of `{}`; it was let go on, and may have noticed the command's end late",
                self.name
            )
        })
    }

    /// The same as a program reads it.
    pub(super) fn figures(&self) -> CommandRun {
        let ended = self.ended();
        let service = self.how.as_ref().ok().and_then(|end| end.service);
        CommandRun {
            exit_code: ended.and_then(|ended| ended.status.code()),
            signal: ended.and_then(|ended| ended.status.signal()),
            ended_after_ns: ended.map(|ended| ended.at.saturating_since(self.start).as_nanos()),
            processor_time_ns: service.map(Service::as_nanos),
            problem: self.how.as_ref().err().map(ToString::to_string),
            service_gap_unknown: self.received.as_ref().err().map(ToString::to_string),
        }
    }
}

fn how(ended: &Ended) -> String {
    match (ended.status.code(), ended.status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => format!("ended: {}", ended.status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laxity_model::{ProcessorId, Span};

    #[test]
    fn of_a_reservation_what_it_gave_in_the_run_is_judged_where_the_machine_did_not_stand_still() {
        let at = Instant::from_millis;
        let stretch = |from_ms, gap_ms| Stretch {
            from: at(from_ms),
            to: at(from_ms + 8),
            gap: Span::from_millis(gap_ms),
        };
        let received = [
            stretch(2, 9),
            stretch(96, 6),
            stretch(104, 7),
            stretch(200, 5),
            stretch(301, 8),
        ];
        let end = CommandEnd {
            name: "it".to_owned(),
            expected: 0,
            is_judged: false,
            start: at(100),
            how: Err(EndError::Unwatched),
            received: Ok(received.to_vec()),
            grade: None,
            ran: Whereabouts::On(ProcessorId(1)),
            reservation: None,
        };
        let mut seen = Observations::new();
        let stood = |processor| Disturbance {
            processor: ProcessorId(processor),
            from: at(110),
            to: at(111),
        };
        // What was seen where it does not run excuses nothing.
        end.observe(&mut seen, [at(100), at(300)], &[stood(0)]);
        assert_eq!(seen.whole(Quantity::SERVICE_GAP).disturbed.count(), 0);
        let mut seen = Observations::new();
        end.observe(&mut seen, [at(100), at(300)], &[stood(1)]);
        let gaps = seen.whole(Quantity::SERVICE_GAP);
        let undisturbed = (gaps.undisturbed.count(), gaps.undisturbed.max());
        assert_eq!(undisturbed, (2, Some(6_000_000)));
        assert_eq!(gaps.disturbed.max(), Some(7_000_000));
        assert_eq!(end.figures().service_gap_unknown, None);
        let unseen = CommandEnd {
            received: Err(Unknown("no account".to_owned())),
            ..end
        };
        let why = unseen.figures().service_gap_unknown;
        assert_eq!(why.as_deref(), Some("no account"));
    }
}
