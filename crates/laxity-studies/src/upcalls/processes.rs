//! A set whose upcalls are in several processes, on this machine: each is started, they begin at one instant, and what came of all is put together.

use std::io::{self, PipeWriter, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::process;

use laxity::command::Policy;
use laxity::observe::Disturbances;
use laxity::upcalls::{Guard, Region, Watch, guard};
use laxity::{now, sleep_until};
use laxity_lab::bench::Runner;
use laxity_model::{HostError, Service, Span};
use serde::Serialize;

use super::jobs::{self, When};
use super::process::{Part, Told};
use super::trial::{LEAD, Outcome, Serving, Setup};
use crate::peers::{PRIORITY, Peer, Used, failed, watch};

/// From when they are told to the first release: what they have to make takes its time where something runs beside.
const AHEAD: Span = Span::from_millis(300);
/// What is waited for after the last release, by the witness too.
const REST: Span = Span::from_millis(40);
/// No handler fails to come back here; and what the machine stands still is charged to whoever it meets, who is not to lose his seat for it.
pub(super) const LONGEST: Service = Service::from_millis(50);
/// Those threads of this process that see to it that the baton goes on.
const GUARDS: [&str; 2] = ["sentinel", "watchdog"];

/// Memory for executors, guarded.
struct House {
    region: Region,
    guard: Guard,
}

impl House {
    fn open(processor: usize) -> Result<Self, HostError> {
        let region = Region::create().map_err(failed("processes"))?;
        let watch = Watch {
            executors: PRIORITY,
            longest: LONGEST,
            ..Watch::default()
        };
        let guard = guard(&region, processor, watch).map_err(failed("the guards"))?;
        Ok(Self { region, guard })
    }

    /// Where others find it.
    fn file(&self) -> String {
        let file = self.region.as_fd().as_raw_fd();
        format!("/proc/{}/fd/{file}", process::id())
    }
}

/// A process that was started, and what it reads.
struct Other {
    peer: Peer,
    reads: PipeWriter,
}

impl Other {
    fn start(number: usize, part: &Part) -> Result<Self, HostError> {
        let name = format!("process {}", number + 1);
        let (input, reads) = io::pipe().map_err(failed(&name))?;
        let policy = match part.serving {
            Serving::Intervals => Some(Policy::Fifo(PRIORITY)),
            // The kernel lets it be on all processors only.
            Serving::Kernel => None,
            _ => Some(Policy::Other { nice: 0 }),
        };
        let place = policy.map(|policy| (policy, part.processor));
        let peer = Peer::start(("upcalls", part), &name, input, place)?;
        Ok(Self { peer, reads })
    }

    fn hears(&mut self, what: &impl Serialize) -> Result<(), HostError> {
        let line = serde_json::to_string(what);
        let line = line.map_err(failed("what a process is told"))?;
        writeln!(self.reads, "{line}").map_err(failed("a process"))
    }
}

/// Runs a set: what its guards switch counts with what its processes do.
pub(super) fn run(setup: &Setup, host: &mut Runner<'_>) -> Result<Outcome, HostError> {
    let Runner::Live(live, _) = host else {
        return Err(HostError::BadProgram("the twin has no processes".into()));
    };
    let processor = live.config().processors[0];
    let is_shared = setup.way.0 == Serving::ByRate;
    let house = is_shared.then(|| House::open(processor)).transpose()?;
    let file = house.as_ref().map(House::file);
    let parts = parts(setup, processor, file.as_deref());
    let all = parts.iter().enumerate();
    let all = all.map(|(number, part)| Other::start(number, part));
    let mut all = all.collect::<Result<Vec<Other>, _>>()?;
    let when = begin(setup, house.as_ref(), &mut all)?;
    let guards = || match is_shared {
        true => Used::by_named(&GUARDS).map_err(failed("the guards")),
        false => Ok(Used::default()),
    };
    let before = guards()?;
    let halts = match setup.is_watched {
        true => watch(host, when.until() + REST)?,
        false => {
            sleep_until(when.until() + REST);
            Disturbances::default()
        }
    };
    let told = all.into_iter().map(|other| other.peer.told::<Told>());
    let told = told.collect::<Result<Vec<Told>, _>>()?;
    let used = [guards()?.since(before)];
    let used = used
        .into_iter()
        .chain(told.iter().map(|one| one.used))
        .sum();
    let overshoot = told.iter().map(|one| one.overshoot_ns).max();
    let jobs: Vec<_> = told.into_iter().flat_map(|one| one.jobs).collect();
    let each = jobs::each(setup, (&jobs, when), &halts)?;
    Ok(setup.outcome(each, used, overshoot.map(Service::from_nanos)))
}

/// What each process is to do.
fn parts(setup: &Setup, processor: usize, file: Option<&str>) -> Vec<Part> {
    let tasks = setup.tasks();
    let parts = setup.processes().into_iter().map(|process| {
        let all = setup.members.iter().zip(&tasks);
        let own = all.filter(|(member, _)| member.process == process);
        Part {
            serving: setup.way.0,
            tasks: own.map(|(_, task)| *task).collect(),
            processor,
            region: file.map(str::to_owned),
        }
    });
    parts.collect()
}

/// They are told from when to when, and have all made ready for it before.
fn begin(setup: &Setup, house: Option<&House>, all: &mut [Other]) -> Result<When, HostError> {
    for (other, house) in all.iter_mut().zip(house.into_iter().cycle()) {
        let seat = house.guard.give(other.peer.id());
        let seat = seat.ok_or_else(|| HostError::Failed("there is no seat left".into()))?;
        other.hears(&seat.number)?;
    }
    for other in all.iter_mut() {
        other.peer.line()?;
    }
    let from = now() + AHEAD;
    let when = When::new(from, from + setup.length.saturating_sub(LEAD));
    for other in all.iter_mut() {
        other.hears(&when)?;
    }
    for other in all.iter_mut() {
        other.peer.line()?;
    }
    match now() < from {
        true => Ok(when),
        false => Err(HostError::Failed(format!(
            "processes were not ready within {AHEAD}: something else keeps this machine"
        ))),
    }
}
