//! The live host: each activity a thread of its own, with the policy that stands for its placement.

pub(crate) mod admit;
pub mod alone;
pub mod beside;
mod callers;
mod collector;
pub mod command;
mod conclude;
mod context;
pub mod coordinator;
pub mod hold;
pub mod local;
mod lookout;
pub mod ring;
mod sighting;
mod supervise;
pub(crate) mod supply;
mod switching;
pub(crate) mod thread;
pub mod together;
mod unready;

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use laxity_model::admission::{Admitted, Launch, Supply};
use laxity_model::enforce::{Switching, Witness};
use laxity_model::{
    Enforcer, Host, HostError, Outside, Placement, PortId, Priority, Program, RunRecord, Span,
};
use rustix::system::uname;

use self::beside::Beside;
use self::supervise::Prepared;
use self::supply::supply;
use crate::enforce::slots::SlotReport;
use crate::os::memory::Room;
use crate::os::sched::{self, Tid};
use crate::os::slot_lock::{SlotLock, SlotLockError};

/// Where a live host runs a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LiveConfig {
    /// The kernel's number of each of the program's processors.
    pub processors: Vec<usize>,
    /// The kernel's numbers of the other processors that this process may use: numbered on from the program's, they are where its threads of
    /// `SCHED_DEADLINE` may be too.
    pub others: Vec<usize>,
    /// The kernel's number of the processor for external activities, the start and end of a run, and the collector of events.
    /// Best one that no program processor shares.
    pub external: usize,
    /// The witnesses that are asked for. In a run with `SCHED_DEADLINE` reservations all other processors have one too
    /// ([`Witness::all`]); and as such reservations outrank them, they only count what is longer than those can keep them from their processors.
    pub witnesses: Vec<Witness>,
    /// Lock the process's memory during a run where that is permitted.
    pub lock_memory: bool,
    /// Events that fit each thread's ring, which is emptied every 10 ms; 32 bytes each.
    pub ring_capacity: usize,
}

/// Events that a ring holds unless configured otherwise: 10 ms at more than a million events a second.
const RING_CAPACITY: usize = 1 << 14;

impl LiveConfig {
    /// The kernel's numbers of all processors on which something of a program may be, those of the program first.
    pub fn all_processors(&self) -> impl Iterator<Item = usize> {
        self.processors.iter().chain(&self.others).copied()
    }

    /// How many those are: no more than can be numbered.
    fn count(&self) -> u16 {
        u16::try_from(self.all_processors().count()).unwrap_or(u16::MAX)
    }

    /// The program's processors from the processors that this process may use, in their order, and the last of all for what is
    /// external: its own where there is one more than the program needs. No witness.
    pub fn detect(program_processors: u16) -> Result<Self, HostError> {
        let mut usable: Vec<usize> = sched::affinity(Tid::current())
            .map_err(|error| HostError::CannotRun(error.to_string()))?
            .iter()
            .collect();
        let wanted = usize::from(program_processors);
        let Some(&external) = usable.last().filter(|_| usable.len() >= wanted) else {
            return Err(HostError::CannotRun(format!(
                "{wanted} processors are needed, {} may be used",
                usable.len()
            )));
        };
        let others = usable.split_off(wanted);
        Ok(Self {
            processors: usable,
            others,
            external,
            witnesses: Vec::new(),
            lock_memory: true,
            ring_capacity: RING_CAPACITY,
        })
    }
}

/// Runs programs on this machine's Linux.
///
/// From the first run with slots on a processor until the host is dropped no other process gives any there; where one does already, such a run is [`HostError::Disturbed`].
///
/// A body must return from each step in bounded time: a run waits for the step that each thread is in before it ends.
#[derive(Debug)]
pub struct LiveHost {
    config: LiveConfig,
    /// Measured once for each processor and kind of confinement.
    switching: BTreeMap<(usize, bool), Switching>,
    slot_reports: Vec<SlotReport>,
    /// What feeds ports in the next run.
    feeds: Vec<(PortId, OwnedFd)>,
    /// What runs beside the next run.
    beside: Vec<Beside>,
    /// Of the processors on which there were slots, where they are to be had.
    locks: BTreeMap<usize, SlotLock>,
}

impl LiveHost {
    /// A host with this configuration. Changes nothing yet.
    #[must_use]
    pub fn new(config: LiveConfig) -> Self {
        Self {
            config,
            switching: BTreeMap::new(),
            slot_reports: Vec::new(),
            feeds: Vec::new(),
            beside: Vec::new(),
            locks: BTreeMap::new(),
        }
    }

    /// In the next run, this descriptor feeds a port of the program: whenever it can be read, or has come to its end, something arrives,
    /// whose payload is what `poll` says. There is one such arrival at a time: the next comes when that one was taken and there is still, or
    /// again, something to be read. The host only looks at it; to read is the body's, from a duplicate.
    ///
    /// It is looked at by whoever waits for the port, or by the executor whose handler does; there also between any two jobs.
    pub fn feed(&mut self, port: PortId, descriptor: OwnedFd) {
        self.feeds.push((port, descriptor));
    }

    /// These programs run beside the next run, started by the caller. What they do there is told under their own names; who ranks above slots makes them
    /// `unenforced` all the same.
    pub fn run_beside(&mut self, programs: Vec<Beside>) {
        self.beside = programs;
    }

    /// How it is configured.
    pub fn config(&self) -> &LiveConfig {
        &self.config
    }

    /// What the dispatchers of the last run did, by processor.
    pub fn slot_reports(&self) -> &[SlotReport] {
        &self.slot_reports
    }

    /// Whether there is memory for a program: its threads' stacks, and the rings of their events, which a run locks where it may.
    ///
    /// # Errors
    ///
    /// [`HostError::Refused`], with what is needed and what there is.
    pub fn has_memory_for(&self, program: &Program) -> Result<(), HostError> {
        self.fits(program, &Room::now(self.config.lock_memory))
    }

    /// Whether so much room is enough for a program.
    fn fits(&self, program: &Program, room: &Room) -> Result<(), HostError> {
        let activities = program.activities.iter();
        let own = activities.filter(|activity| !matches!(activity.placement, Placement::On { .. }));
        // A dispatcher on each processor, the witnesses, the collector and the lookout, and who raises others.
        let wanders = program.askers(Enforcer::Deadline).next().is_some();
        let witnesses = Witness::all(&self.config.witnesses, self.config.count(), wanders);
        let raiser = usize::from(program.raises().has_threads());
        let threads = own.count() + self.config.processors.len() + witnesses.len() + 2 + raiser;
        let refusal = room.refusal(threads, self.config.ring_capacity);
        refusal.map_or(Ok(()), |why| Err(HostError::Refused(why)))
    }

    /// Nobody else gives slots on these processors from now on: each admits its own, as if there were no others. Where no lock is to be had, the lookout names
    /// who comes. On an error nothing is locked that was not before.
    fn lock(&mut self, cpus: impl Iterator<Item = usize>) -> Result<(), HostError> {
        let lock = |cpu| match SlotLock::of(cpu) {
            Ok(lock) => Some(Ok((cpu, lock))),
            Err(SlotLockError::Held(other)) => Some(Err(HostError::Disturbed(format!(
                "there are slots already, of {other} on processor {cpu}, and each laxity admits its own alone; nothing was run: let that end first"
            )))),
            Err(SlotLockError::Unknown) => None,
        };
        let locks: Vec<(usize, SlotLock)> = cpus.filter_map(lock).collect::<Result<_, _>>()?;
        self.locks.extend(locks);
        Ok(())
    }

    /// What switching costs on a processor; measured the first time (0.1 s), and followed in each run.
    fn switching(&mut self, cpu: usize, outside: Outside) -> Result<Switching, HostError> {
        let key = (cpu, outside == Outside::Confined);
        if let Some(measured) = self.switching.get(&key) {
            return Ok(*measured);
        }
        let measured = switching::measure(cpu, outside, "nothing was run")?;
        self.switching.insert(key, measured);
        Ok(measured)
    }
}

impl LiveHost {
    /// The machine as this host uses it: what was admitted for other processors of it says nothing of these.
    fn identity(&self) -> String {
        let (own, external) = (&self.config.processors, self.config.external);
        format!(
            "{} (processors {own:?}, {external} beside them)",
            self.describe()
        )
    }
}

impl Host for LiveHost {
    fn describe(&self) -> String {
        format!("linux {}", uname().release().to_string_lossy())
    }

    fn supply(&mut self, _processors: u16) -> Result<Supply, HostError> {
        let usable = sched::affinity(Tid::current())
            .map_err(|error| HostError::CannotRun(error.to_string()))?;
        let config = &self.config;
        let mut all = config.processors.iter().chain([&config.external]);
        match all.find(|cpu| !usable.contains(**cpu)) {
            Some(cpu) => Err(HostError::NoProcessor {
                missing: cpu.to_string(),
                usable: usable.to_string(),
            }),
            None => Ok(supply(self.identity(), config)),
        }
    }

    fn run(&mut self, admitted: Admitted, length: Span) -> Result<RunRecord, HostError> {
        self.slot_reports.clear();
        let beside = std::mem::take(&mut self.beside);
        let Launch {
            program,
            slots,
            deadline,
            grades,
        } = admitted.launch(&self.identity())?;
        self.has_memory_for(&program)?;
        let (places, slots) = admit::prepare(&program, (slots, deadline), &self.config);
        self.lock(slots.iter().map(|slots| slots.cpu))?;
        let mut switching = Vec::new();
        for slots in &slots {
            let outside = if slots.confined {
                Outside::Confined
            } else {
                Outside::Timesharing(Priority::NORMAL)
            };
            switching.push(self.switching(slots.cpu, outside)?);
        }
        let slots = slots.into_iter().zip(switching).collect();
        let prepared = Prepared {
            program,
            feeds: std::mem::take(&mut self.feeds),
            beside,
            places,
            slots,
            grades,
        };
        let (record, reports) = supervise::run(&self.config, prepared, length)?;
        self.slot_reports = reports;
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use laxity_model::{Context, ProcessorId, Service, Step};

    use super::*;

    /// What a run with so many spinners is told where so much memory is available.
    fn told(spinners: usize, available_mib: u64) -> Result<(), String> {
        let here = ProcessorId(0);
        let host = LiveHost::new(LiveConfig {
            processors: vec![0],
            others: Vec::new(),
            external: 1,
            witnesses: vec![Witness::new(here)],
            lock_memory: true,
            ring_capacity: RING_CAPACITY,
        });
        let mut program = Program::new(1);
        for _ in 0..spinners {
            let spins = |_: &mut dyn Context| Step::Burn(Service::from_millis(1));
            let place = Placement::Thread(Priority::NORMAL);
            program.add("spinner", here, place, spins);
        }
        let fits = host.fits(&program, &Room::of_available(available_mib << 20));
        fits.map_err(|error| error.to_string())
    }

    /// Each thread has 1 MiB of stack and half of events, and four are the host's own.
    #[test]
    fn two_thousand_spinners_are_refused_where_there_are_not_three_gibibytes() {
        assert_eq!(told(2_000, 3_006), Ok(()));
        for short in [3_005, 2_048, 0] {
            let why = told(2_000, short).expect_err("there is too little");
            let both = format!(
                "memory: 2004 threads with their stacks and rings of events take 3006 MiB, and {short} MiB are available"
            );
            assert!(why.contains(&both), "{why}");
        }
        assert_eq!(told(12, 2_048), Ok(()));
    }
}
