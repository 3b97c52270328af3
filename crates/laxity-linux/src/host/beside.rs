//! Programs that a caller runs beside a program of a host's: whatever they do there, they are no strangers, and go by their own names.

use laxity_model::enforce::ranks;
use laxity_model::{Reservation, Scheduling};

use super::command::RunningCommand;
use super::command::family::parent_of;
use crate::os::proc::RealTimeThread;
use crate::os::sched::Policy;

/// A program that runs beside the next run of a host, with all that it starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Beside {
    name: String,
    /// All that it starts comes of this process, whatever becomes of those between.
    keeper: u32,
    right: Right,
}

/// With what right such a program runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Right {
    /// In a reservation by `SCHED_DEADLINE`, which keeps to no processor.
    Reserved(Reservation),
    /// As a thread of this policy, on the processor that has this number in the kernel.
    Scheduled(Scheduling, usize),
}

impl Beside {
    /// This program, which goes by this name.
    pub fn new(name: &str, program: &RunningCommand, right: Right) -> Self {
        Self {
            name: name.to_owned(),
            keeper: program.keeper(),
            right,
        }
    }

    /// What it has reserved.
    pub(super) const fn reservation(&self) -> Option<Reservation> {
        match self.right {
            Right::Reserved(reservation) => Some(reservation),
            Right::Scheduled(..) => None,
        }
    }

    /// Whether its threads were given as high a rank as this.
    fn was_given(&self, rank: Policy) -> bool {
        match self.right {
            Right::Reserved(_) => matches!(rank, Policy::Deadline(_)),
            Right::Scheduled(scheduling, _) => match Policy::from(scheduling) {
                Policy::Fifo(given) | Policy::RoundRobin(given) => !rank.outranks(given),
                _ => !rank.is_real_time(),
            },
        }
    }

    /// Whether the dispatcher of a processor does not outrank it, however long it works.
    pub(super) fn crowds(&self, cpu: usize) -> bool {
        match self.right {
            Right::Reserved(_) => false,
            Right::Scheduled(scheduling, on) => {
                on == cpu && Policy::from(scheduling).outranks(ranks::DISPATCHER - 1)
            }
        }
    }
}

/// As what a thread is known that belongs to a program beside the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct KnownAs {
    /// In the words of an admission.
    pub(super) name: String,
    /// It has a higher rank than the caller gave its program, and has that from itself.
    pub(super) raised: bool,
}

/// As what a thread is known that belongs to one of these programs; `None` of a stranger, and where those between have gone.
pub(super) fn known_as(thread: &RealTimeThread, all: &[Beside]) -> Option<KnownAs> {
    // It may have gone since it was seen.
    let mut process = thread.parent;
    while !all.is_empty() && process > 1 {
        if let Some(own) = all.iter().find(|own| own.keeper == process) {
            let policy = match thread.at_work() {
                Policy::Deadline(_) => "SCHED_DEADLINE".to_owned(),
                policy => policy.to_string(),
            };
            let raised = !own.was_given(thread.at_work());
            let by_itself = if raised { ", which it gave itself" } else { "" };
            return Some(KnownAs {
                name: format!("{} ({policy}{by_itself})", own.name),
                raised,
            });
        }
        process = parent_of(process).ok().flatten()?;
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, pipe};
    use std::process::Command;

    use laxity_model::{Service, Span};

    use super::*;
    use crate::host::command::ProcessGroup;
    use crate::os::cpuset::CpuSet;
    use crate::os::sched::Tid;

    fn thread_of(pid: u32, policy: Policy) -> RealTimeThread {
        RealTimeThread {
            pid,
            parent: parent_of(pid).ok().flatten().unwrap_or(0),
            tid: Tid(pid.cast_signed()),
            name: "sleep".to_owned(),
            policy,
            boosted: None,
            affinity: Ok(CpuSet::single(0)),
            processor: 0,
            of_kernel: false,
            of_laxity: false,
        }
    }

    #[test]
    fn whatever_comes_of_a_program_is_known_by_its_name() {
        let (reader, writer) = pipe().expect("a pipe");
        let mut command = Command::new("sh");
        // The second one loses its parent.
        let script = "(sleep 1000 & echo $!); exec sleep 1000";
        command.args(["-c", script]).stdout(writer);
        let running = RunningCommand::start(command, ProcessGroup::Own, |_| Ok(()));
        let running = running.expect("it runs");
        let mut orphan = String::new();
        let read = BufReader::new(reader).read_line(&mut orphan);
        read.expect("its number");
        let orphan = orphan.trim().parse().expect("a number");
        let fifo = Scheduling::Fifo(90);
        let all = [Beside::new("rogue", &running, Right::Scheduled(fifo, 0))];
        let named = |pid, policy| known_as(&thread_of(pid, policy), &all);
        let own = |name: &str, raised| {
            let name = name.to_owned();
            Some(KnownAs { name, raised })
        };
        for process in [running.id().0.cast_unsigned(), orphan] {
            let given = own("rogue (SCHED_FIFO priority 90)", false);
            assert_eq!(named(process, fifo.into()), given);
            let raised = own("rogue (SCHED_FIFO priority 91, which it gave itself)", true);
            assert_eq!(named(process, Policy::Fifo(91)), raised);
        }
        assert_eq!(named(std::process::id(), fifo.into()), None);
        assert_eq!(named(1, fifo.into()), None);
    }

    #[test]
    fn a_dispatcher_is_held_up_by_who_outranks_it_there_or_has_a_budget() {
        let running = |right| Beside {
            name: "it".to_owned(),
            keeper: 1,
            right,
        };
        let fifo = |rank, cpu| running(Right::Scheduled(Scheduling::Fifo(rank), cpu));
        let reserved = Reservation::new(Service::from_millis(1), Span::from_millis(8));
        let reserved = running(Right::Reserved(reserved.expect("valid")));
        let all = [fifo(97, 0), fifo(98, 0), fifo(98, 1), reserved];
        let crowds = all.each_ref().map(|one| one.crowds(0));
        assert_eq!(crowds, [false, true, false, false]);
        assert!(all[3].reservation().is_some());
    }
}
