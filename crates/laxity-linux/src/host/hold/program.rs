//! Reservations of programs that are not ours: started for it, or running already.

use std::fmt;
use std::sync::Arc;

use laxity_model::{Enforcer, HostError, Outside, Reservation};

use super::super::command::family::{Family, parent_of};
use super::super::command::{Held, RunningCommand};
use super::follower::Follower;
use super::members::Members;
use super::places::{Passed, Reserving, Slotted};
use super::seen::Anew;
use super::slots::{self, SlotSession};
use super::watcher::IsHolders;
use super::{HoldError, HoldRequest, How, Observer, Watch};
use crate::doctor::{self, Machine, Operation};
use crate::enforce::confine::{ConfineError, FairQuota, Freezer};
use crate::enforce::guardian;
use crate::enforce::holding::{Bound, Place};
use crate::enforce::slots::Program;
use crate::os::clock;
use crate::os::cpuset::CpuSet;
use crate::os::fact::{Unknown, read_as};
use crate::os::proc::{has_gone, shows_own_numbers, thread_stat};
use crate::os::sched::{self, Attributes, Tid};

/// How a program is kept from running outside its slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Confinement {
    /// By a quota of the fair class: it leaks up to 0.1 % of a processor, in bursts of some milliseconds. What the program starts has no more than that until it is
    /// found: it may wait for 20 ms, and for the next slot then.
    Quota,
    /// By the freezer of cgroup v2: nothing runs, and a call that cannot be restarted (`epoll_wait`, …) returns `EINTR`. What the program starts has its slots at once.
    Freeze,
}

/// Which threads of a program hold a reservation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Choice {
    /// Those with one of these names; all, where none is given.
    pub names: Vec<String>,
    /// Only this one.
    pub only: Option<Tid>,
    /// Also threads that it starts later.
    pub new_threads: bool,
    /// Also the processes that it starts.
    pub children: bool,
}

impl Choice {
    /// Whether it means all threads of each process of the program that it means at all.
    fn means_all_threads(&self) -> bool {
        self.names.is_empty() && self.only.is_none() && self.new_threads
    }

    /// Whether it means this thread. Only where names are given it is asked whether the thread has one of them.
    pub(super) fn means(&self, thread: Tid, has_one: impl FnOnce(&[String]) -> bool) -> bool {
        let is_it = self.only.is_none_or(|only| only == thread);
        is_it && (self.names.is_empty() || has_one(&self.names))
    }
}

/// What is to be held for a program. By slots its threads have them together; by `deadline` each has a reservation of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramRequest {
    /// What; [`HoldRequest::outside`] follows from the confinement.
    pub hold: HoldRequest,
    /// For whom.
    pub choice: Choice,
    /// With slots only.
    pub confinement: Option<Confinement>,
    /// By `deadline`: whether a witness on each processor looks if that stands still; it takes one to three hundredths of each. By slots that is always known.
    pub witnessed: bool,
}

/// A reservation of a program. When this is dropped, what still runs of it has policies and processors as before.
pub struct ProgramHold {
    /// Dropped in this order: slots before the policies and processors from before.
    slots: Option<BySlots>,
    _watch: Option<Watch>,
    observer: Observer,
}

struct BySlots {
    bound: Bound,
    members: Arc<Members>,
    session: SlotSession,
    _quota: Option<FairQuota>,
}

impl BySlots {
    /// Its slots are the program's; returns when the dispatcher knows.
    fn bind(&self) {
        let program = Arc::clone(&self.members) as Arc<dyn Program>;
        self.bound.binding.bind_program(program);
    }

    /// The program has no slots, and nothing by them.
    fn unbind(&self) {
        self.bound.binding.unbind_program();
        if let Err(Unknown(why)) = self.members.clear() {
            let reason = format!("it may have kept the rank of its slots: {why}");
            self.session.seen.note_failed(reason);
        }
    }
}

impl Drop for BySlots {
    fn drop(&mut self) {
        // A dispatcher that somebody keeps from its processor answers nobody, but is helped to its end.
        self.session.end();
        self.unbind();
    }
}

impl Drop for ProgramHold {
    fn drop(&mut self) {
        self.observer.seen.end();
    }
}

impl fmt::Debug for ProgramHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgramHold")
            .field("observer", &self.observer)
            .finish_non_exhaustive()
    }
}

impl ProgramHold {
    /// Holds for a program before it executes.
    ///
    /// # Errors
    ///
    /// [`HoldError`]; nothing of the program was changed.
    pub fn of_held(request: &ProgramRequest, held: &Held) -> Result<Self, HoldError> {
        Self::begin(request, held.id(), family_of(request, held)?)
    }

    /// Holds for a program that was started and executes.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn of_started(
        request: &ProgramRequest,
        command: &RunningCommand,
    ) -> Result<Self, HoldError> {
        let process = command.id();
        let keeper = Some(command.keeper());
        let family = Family::new(process.0 as u32, keeper, request.choice.children);
        Self::begin(request, process, family)
    }

    /// Holds for a program that runs already: its process.
    ///
    /// # Errors
    ///
    /// As above; also where there is no such process, or it is the first of all, or the kernel's.
    pub fn of_running(request: &ProgramRequest, process: u32) -> Result<Self, HoldError> {
        may_be_held(process)?;
        if request.hold.enforcer == Enforcer::Slots {
            may_be_fifo(process)?;
        }
        let family = Family::new(process, None, request.choice.children);
        Self::begin(request, Tid(process as i32), family)
    }

    fn begin(request: &ProgramRequest, process: Tid, family: Family) -> Result<Self, HoldError> {
        match request.hold.enforcer {
            Enforcer::Slots => Self::by_slots(request, process, family),
            Enforcer::Deadline => Self::by_deadline(request, process, family, false),
        }
    }

    /// Holds by `deadline` for a program before it executes, and keeps what is seen of it.
    pub(super) fn closely(request: &ProgramRequest, held: &Held) -> Result<Self, HoldError> {
        Self::by_deadline(request, held.id(), family_of(request, held)?, true)
    }

    /// Tells what is received.
    pub fn observer(&self) -> &Observer {
        &self.observer
    }

    /// The program is as it was, and has no slots until [`Self::resume`]: for a holder that is about to stand still itself, and so its dispatcher. By
    /// `deadline` nothing changes, since nobody but the kernel is needed.
    pub fn pause(&self) {
        if let Some(slots) = &self.slots {
            slots.unbind();
        }
    }

    /// It has its slots again.
    pub fn resume(&self) {
        if let Some(slots) = &self.slots {
            slots.bind();
        }
    }

    /// What is told of it begins anew, and what was seen until now is forgotten. For the program nothing changes.
    pub fn tell_anew(&self, request: &ProgramRequest) {
        self.observer.seen.begin_anew(Anew {
            reservation: request.hold.reservation,
            looks: None,
            from: clock::now(),
        });
    }

    /// Changes what its slots are, without a moment in which it has none; what is told begins anew with that. `false`: nothing was changed, since nobody
    /// answered in time, and it is to be asked for again.
    ///
    /// # Errors
    ///
    /// [`HostError`]: that cannot be had, or it holds no slots. It has what it had.
    pub fn change(&self, asked: Reservation) -> Result<bool, HostError> {
        let by_slots = self.slots.as_ref().ok_or_else(|| {
            HostError::CannotRun("only slots can be changed while they are held".to_owned())
        })?;
        by_slots.session.change(asked)
    }

    /// Gives it back. What is told afterwards is all.
    pub fn end(self) -> Observer {
        let observer = self.observer.clone();
        drop(self);
        observer
    }

    fn by_slots(
        request: &ProgramRequest,
        process: Tid,
        mut family: Family,
    ) -> Result<Self, HoldError> {
        let mut hold = request.hold.clone();
        if request.confinement.is_some() {
            hold.outside = Outside::Confined;
        }
        if request.confinement.is_some() || family.is_adopted() {
            // A fork makes all threads of a process wait for their memory. Whoever gives slots does not wait yet.
            let started = guardian::start();
            started
                .map_err(|error| HostError::CannotRun(format!("no guardian process: {error}")))?;
        }
        let before = (Attributes::of(process)?, sched::affinity(process)?);
        let placed = slots::placed(before.0.policy());
        let stops = request.confinement == Some(Confinement::Freeze);
        let is_holders = is_holders(request, &family);
        let session = SlotSession::begin(&hold, placed, (stops, is_holders))?;
        let Place::Slots(bound) = session.place.clone() else {
            return Err(HostError::Failed("no slots were granted".to_owned()).into());
        };
        family.refresh().map_err(|why| unseen(&why))?;
        let (freezer, quota) = confine(request, &family)?;
        let are_all = request.choice.means_all_threads();
        let members = Members::new(freezer, before, are_all).map_err(|why| unseen(&why))?;
        let members = Arc::new(members);
        let by = BySlots {
            bound,
            members: Arc::clone(&members),
            session,
            _quota: quota,
        };
        // What stops it begins to before anybody has a rank.
        by.bind();
        let cpu = by.session.cpu;
        // What it starts has the processor of the slots from it.
        let passed = (!request.choice.children).then(|| Passed::new(family.with_children()));
        let places = Box::new(Slotted {
            members,
            cpu,
            passed,
        });
        let mut follower = Follower::new(request, family, Arc::clone(&by.session.seen), places);
        follower.first()?;
        by.session.seen.observe(Ok(Box::new(follower)));
        Ok(Self {
            observer: by.session.observer(process, true),
            slots: Some(by),
            _watch: None,
        })
    }

    fn by_deadline(
        request: &ProgramRequest,
        process: Tid,
        family: Family,
        closely: bool,
    ) -> Result<Self, HoldError> {
        let reservation = request.hold.reservation;
        let witnessed = if request.witnessed {
            may_witness(reservation)?;
            sched::affinity(process)?
        } else {
            CpuSet::default()
        };
        let watch = Watch::start(&request.hold, closely, &witnessed)?;
        let seen = Arc::clone(&watch.seen);
        let places = Box::new(Reserving(reservation));
        let mut follower = Follower::new(request, family, Arc::clone(&seen), places);
        follower.first().map_err(|error| match error {
            HoldError::Deadline(source) => HoldError::of_kernel(reservation, source),
            error => error,
        })?;
        if follower.awaits() {
            // What can be refused is before the program begins, and not only to the thread that comes later.
            may_reserve(reservation)?;
        }
        seen.observe(Ok(Box::new(follower)));
        watch.run.begin(clock::now());
        Ok(Self {
            observer: Observer {
                holder: process,
                is_watched: true,
                seen,
                how: How::Threads,
            },
            slots: None,
            _watch: Some(watch),
        })
    }
}

/// Before a witness starts, which would be refused for less than what it is to stand beside, whose remedies do not help with that.
fn may_witness(reservation: Reservation) -> Result<(), HostError> {
    may_reserve(reservation)?;
    doctor::try_fifo().map_err(|why| why.as_of_host(format!("no witness: {why}")))
}

/// Whether the kernel would give a thread this by `deadline` here, as far as that can be foreseen.
///
/// # Errors
///
/// The cause and the remedy.
pub fn may_reserve(reservation: Reservation) -> Result<(), HostError> {
    let reserving = Operation::SetDeadline(reservation.into());
    doctor::foresee(&reserving, &Machine::as_reserving()).map_or(Ok(()), |why| {
        Err(why.as_of_host(format!("{reservation} cannot be reserved: {why}")))
    })
}

/// Whoever holds these takes from all what they depend on.
fn may_be_held(process: u32) -> Result<(), HostError> {
    shows_own_numbers().map_err(|why| HostError::CannotRun(why.to_string()))?;
    let of_kernel = read_as(format!("/proc/{process}/stat"), |stat| {
        Some(thread_stat(stat)?.of_kernel)
    });
    let whose = match (process, of_kernel) {
        (1, _) => "the first process, of which all others come",
        (_, Ok(true)) => "a thread of the kernel",
        _ => return Ok(()),
    };
    Err(HostError::Refused(format!(
        "process {process} is {whose}: nothing was changed"
    )))
}

/// In its slots it is FIFO, for as long as it likes, and what it takes is its own group's: of another's program no limit is changed.
fn may_be_fifo(process: u32) -> Result<(), HoldError> {
    let limited = doctor::time_limit_of(process).map_err(|why| unseen(&why))?;
    let limited = limited.or_else(|| doctor::group_limit_of(process));
    limited.map_or(Ok(()), |why| {
        let text = format!("process {process} cannot have slots: {why}");
        Err(HoldError::Host(why.as_of_host(text)))
    })
}

/// The program before it executes, and its keeper.
fn family_of(request: &ProgramRequest, held: &Held) -> Result<Family, HoldError> {
    let process = held.id().0 as u32;
    let keeper = parent_of(process).map_err(|why| unseen(&why))?;
    Ok(Family::new(process, keeper, request.choice.children))
}

/// Who is of the program before anybody looks at it, as the first look will have it: who is meant; and what has the rank of the slots from one of these, where
/// that is followed, or stopped with it.
pub(super) fn is_holders(request: &ProgramRequest, family: &Family) -> IsHolders {
    let stops = request.confinement == Some(Confinement::Freeze);
    let choice = request.choice.clone();
    let (root, family) = (family.root(), family.with_children());
    Box::new(move |thread| {
        let is_of_root = thread.pid == root;
        let is_meant = choice.means(thread.tid, |names| names.contains(&thread.name));
        // Where nothing is stopped, what it starts is ordinary until it is found; what it had started before has its place by then.
        let has_from_it = stops || (choice.children && !is_of_root);
        (is_of_root && is_meant)
            || (has_from_it
                && thread.at_work() == Members::INSIDE
                && family.has(thread.pid, thread.parent))
    })
}

fn unseen(why: &Unknown) -> HoldError {
    HostError::CannotRun(why.to_string()).into()
}

/// A group of our own in which the program is kept from running outside its slots.
fn confine(
    request: &ProgramRequest,
    family: &Family,
) -> Result<(Option<Freezer>, Option<FairQuota>), HoldError> {
    let cannot = |error: ConfineError| HoldError::Host(HostError::CannotRun(error.to_string()));
    // Of one that ended meanwhile nothing is to be confined.
    let all = |add: &dyn Fn(i32) -> Result<(), ConfineError>| {
        family
            .processes()
            .try_for_each(|process| match add(process as i32) {
                Err(_) if has_gone(format!("/proc/{process}")) => Ok(()),
                added => added.map_err(cannot),
            })
    };
    match request.confinement {
        None => Ok((None, None)),
        Some(Confinement::Freeze) => {
            let freezer = Freezer::create("exec").map_err(cannot)?;
            all(&|process| freezer.add(process))?;
            Ok((Some(freezer), None))
        }
        Some(Confinement::Quota) => {
            let share_ppm = request.hold.reservation.share_ppm();
            let share_ppm = u32::try_from(share_ppm).unwrap_or(u32::MAX);
            let quota = FairQuota::create("exec", share_ppm).map_err(cannot)?;
            all(&|process| quota.add(process))?;
            Ok((None, Some(quota)))
        }
    }
}
