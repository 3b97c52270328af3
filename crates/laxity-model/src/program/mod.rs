//! What a host runs: activities whose bodies are state machines. The same program runs live on Linux and in the twin.
//!
//! A [`Body`] is called when its activity has the processor. It does a bounded piece of work, tells the [`Context`] what is to be
//! signalled or recorded, and returns a [`Step`]: what the host is to do before it calls again. A body never blocks and reads no clock,
//! so it cannot tell which host it runs on; only what serves a network of Linux makes system calls.

pub mod coordinator;
mod executor;
mod executors;
mod host_error;
mod hosted;
mod links;
mod raises;
pub mod together;
pub mod upcall;
pub mod upcalls;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

pub use host_error::HostError;
pub use links::{Group, Links};

use self::together::Others;

use crate::analysis::Task;
use crate::base::port::{Arrival, PortKind};
use crate::executor::{ExecutorError, HandlerId};
use crate::policy::Rank;
use crate::policy::classes::Scheduling;
use crate::request::{Enforcer, Refused, Reservation, ReservationRequest, TimeConstraint, Work};
use crate::{
    ActivityId, EventKind, ExecutorId, Instant, InterruptLevel, Mark, PortId, Priority,
    ProcessorId, SemaphoreId, Service, Span,
};

/// What the host is to do before it calls a body again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Account for the work the body has just really done. The twin charges this much service; live it has taken its own time.
    Charge(Service),
    /// Keep the processor busy for exactly this much service, preemption not counted: spinners, rogues, test loads.
    Burn(Service),
    /// Wait until this instant (at once if it is past). For an interrupt handler: until its device raises the line then.
    SleepUntil(Instant),
    /// Wait until there is an arrival at the port, and take the first: [`Context::arrival`] tells the next step which.
    Wait(PortId),
    /// The same, but no longer than until the instant.
    WaitUntil(PortId, Instant),
    /// Let others of the same priority go first; on an executor, also those that are more urgent.
    Yield,
    /// Have the activity's declared reservation enforced from now on.
    BeginReservation,
    /// Give the reservation back.
    EndReservation,
    /// Ask for this in place of the X and Y of the activity's own reservation; enforcer and all else stay. Decided at once:
    /// [`Context::answer`] tells the next step from when it holds, or why nothing has changed. Until then the old one holds.
    /// Begun or not; by `deadline` only once begun, and from the first budget on that is sure to be the new one: the kernel tells no
    /// sooner.
    ChangeReservation(Reservation),
    /// Ask for a time constraint. Decided at once: [`Context::answer`] tells the next step. One at a time for each activity, which
    /// either has its reservation by slots in force, or is one of [`Program::constrained`].
    BeginConstraint(TimeConstraint),
    /// What the time constraint was for is done: what is left of its time is given back. Without one, nothing happens.
    EndConstraint,
    /// The activity is done.
    Finish,
    /// The whole run is done.
    EndRun,
}

/// What a body may do to the world while it has the processor.
pub trait Context {
    /// The time now. Costs one clock reading live (about 20 ns).
    fn now(&self) -> Instant;

    /// Puts an arrival into the port's queue, which may wake its waiter; `false` if the port is full: then the arrival is dropped, and
    /// counted. Never waits.
    fn put(&mut self, port: PortId, payload: [u64; 2]) -> bool;

    /// Adds one to the semaphore's count, which may wake its waiter.
    fn signal(&mut self, semaphore: SemaphoreId) {
        self.put(semaphore, [0; 2]);
    }

    /// Takes the first arrival at the port, if there is one, without waiting. Where there is none it costs one relaxed load live.
    fn take(&mut self, port: PortId) -> Option<Arrival>;

    /// What the last [`Step::Wait`] or [`Step::WaitUntil`] took; `None` if time was up.
    fn arrival(&self) -> Option<Arrival>;

    /// From now on, every arrival at the port is also put into `doorbell`, which has no payload. So one may wait for any of several ports.
    /// What has arrived before rings nothing. Tells whether something outside the machine feeds the port that is looked at only while
    /// somebody waits, with a time that may be past.
    fn ring(&mut self, port: PortId, doorbell: SemaphoreId) -> bool;

    /// Who had every arrival there [ring](Self::ring) is gone and waits for none, so that no other process is to let it go first for one.
    fn awaits_no_more(&mut self, _port: PortId) {}

    /// From `at` on, or now if that is past, an activity is so urgent until it waits again: what that means, and when it is over, says
    /// [`crate::policy::raise`]. Only what is [declared](Program::declare_raise) to be raised can be, and no further: else the program is wrong, and the run over.
    /// Live it costs a system call (about 2 µs). Who wakes somebody for what he raises him for raises him first, unless he says himself how urgent he is.
    fn raise(&mut self, activity: ActivityId, rank: Rank, at: Instant) {
        let _ = (activity, rank, at);
        self.fail("no activity can be raised here");
    }

    /// Whether somebody more urgent waits for this job to yield: to be asked after every piece of work that is done on an executor. Live
    /// it costs a clock reading and one relaxed load where nothing has happened. A body that is on no executor need never yield.
    fn should_yield(&mut self) -> bool {
        false
    }

    /// Makes another handler on the executor that this body is on; its first job is released now, and each of its jobs is due
    /// `deadline` after its release, or never. What it records is this activity's. It is admitted by nobody: keep what is made this way
    /// within what was declared for the activity.
    ///
    /// # Errors
    ///
    /// [`ExecutorError::Full`], or the body is on no executor.
    fn make_handler(
        &mut self,
        deadline: Option<Span>,
        body: Box<dyn Body>,
    ) -> Result<HandlerId, ExecutorError> {
        let _ = (deadline, body);
        Err(ExecutorError::NoExecutor)
    }

    /// Ends a handler of the executor that this body is on: one that was made, or itself.
    ///
    /// # Errors
    ///
    /// It has ended before, or the body is on no executor.
    fn end_handler(&mut self, handler: HandlerId) -> Result<(), ExecutorError> {
        let _ = handler;
        Err(ExecutorError::NoExecutor)
    }

    /// The handler that this body is; `None` if it is on no executor.
    fn handler(&self) -> Option<HandlerId> {
        None
    }

    /// The other processes whose handlers take turns with those of the executor that this body is; `None` where it has its processor alone.
    fn others(&mut self) -> Option<&mut dyn Others> {
        None
    }

    /// Records an event of an activity that is on the executor which this body is.
    fn record_of(&mut self, hosted: ActivityId, kind: EventKind, args: [u64; 2]);

    /// Ends the run: the program is wrong, and this is what is wrong with it.
    fn fail(&mut self, what: &'static str);

    /// Records an event of this activity, as it happens to a packet. Never blocks, never allocates live.
    fn record(&mut self, kind: EventKind, args: [u64; 2]);

    /// The same of one of the application's own.
    fn mark(&mut self, mark: Mark, args: [u64; 2]) {
        self.record(EventKind::Mark(mark), args);
    }

    /// Whether the last [`Step::WaitUntil`] ended because time was up.
    fn timed_out(&self) -> bool;

    /// What became of the last [`Step::ChangeReservation`] or [`Step::BeginConstraint`]: from when what was granted holds, or why
    /// it was refused. A later instant of a change means that what was held before is held until then.
    fn answer(&self) -> Result<Instant, Refused>;

    /// Whether the last [`Step::ChangeReservation`] or [`Step::BeginConstraint`] was granted.
    fn granted(&self) -> bool {
        self.answer().is_ok()
    }

    /// Processor time this activity has received so far; 0 for one outside the machine, and all that its executor has received for one
    /// that is on an executor. Costs a system call live (about 150 ns).
    fn service(&self) -> Service;

    /// A handler of an executor goes behind all others that have anything to do from its next yield or wait on, also those of other processes; or goes in its turn as before.
    fn go_behind(&mut self, _behind: bool) {}

    /// The job of a handler of an executor inherits when it is current, which may be to come, and when it is due ([`Instant::MAX`]: never) from what it works on, until it waits. Whether somebody else is to go first is to be asked then.
    fn inherit(&mut self, _logical: Instant, _deadline: Instant) {}

    /// How long the machine was seen to stand still since some moment before, by whoever guards the activity's turns: that is no service, though it may be counted as that.
    fn stood(&self) -> Span {
        Span::ZERO
    }
}

/// An activity's code, as a state machine.
pub trait Body: Send {
    /// Does the next piece of work.
    fn step(&mut self, context: &mut dyn Context) -> Step;
}

impl<F: FnMut(&mut dyn Context) -> Step + Send> Body for F {
    fn step(&mut self, context: &mut dyn Context) -> Step {
        self(context)
    }
}

/// Where an activity runs: as Linux schedules threads, or after the modem study's placements (§5), of which `Interrupt`, `Deferred` and
/// the 32 priorities of `Thread` are emulated on Linux.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// In an interrupt handler: above everything of lower level, to completion.
    Interrupt(InterruptLevel),
    /// In a deferred procedure call: queued once at most, run after all interrupts and before any thread. Waits on semaphores only.
    Deferred,
    /// In a thread of this priority, of the study's 32.
    Thread(Priority),
    /// In a thread that Linux schedules like this. On Linux and the twin of a Linux machine only.
    Linux(Scheduling),
    /// Outside the machine: hardware and far ends. Takes no time of the program's processors.
    External,
    /// On an executor, where it takes turns with others; each of its jobs runs until it yields, waits or ends. It is where its executor
    /// is. What its body asks of a reservation, it asks of its executor's.
    On {
        /// Which.
        executor: ExecutorId,
        /// What its jobs are: the deadline that they have from their release on, and what the executor's policy admits them by; none
        /// of the two without it.
        task: Option<Task>,
    },
}

impl Placement {
    /// Whether it is a thread: only threads hold reservations.
    pub const fn is_thread(&self) -> bool {
        matches!(self, Self::Thread(_) | Self::Linux(_))
    }
}

/// One activity of a program.
pub struct Activity {
    /// Its name in tables and traces.
    pub name: String,
    /// Where it runs. A reservation by `deadline` does not keep to one processor.
    pub processor: ProcessorId,
    /// How it runs.
    pub placement: Placement,
    /// The reservation it holds or may ask for; threads only.
    pub reservation: Option<ReservationRequest>,
    /// What it does.
    pub body: Box<dyn Body>,
}

/// A semaphore counts no further.
const MOST_COUNTED: u32 = (1 << 31) - 1;
impl fmt::Debug for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Activity")
            .field("name", &self.name)
            .field("processor", &self.processor)
            .field("placement", &self.placement)
            .field("reservation", &self.reservation)
            .finish_non_exhaustive()
    }
}

/// What a host runs.
#[derive(Debug, Default)]
pub struct Program {
    /// How many processors it is written for; activities name them 0 to this − 1.
    pub processors: u16,
    /// The activities; an [`ActivityId`] is an index into this list.
    pub activities: Vec<Activity>,
    /// What each port keeps; a [`PortId`] is an index into this list.
    pub ports: Vec<PortKind>,
    /// The executors, until the program is launched.
    executors: Vec<executors::Declared>,
    /// The names of the application's own events; a [`Mark`] is an index into this list.
    pub marks: Vec<String>,
    /// From when the first releases of its upcalls are counted.
    pub epoch: upcall::Epoch,
    /// Threads without a reservation that may ask for time constraints.
    pub constrained: Vec<ActivityId>,
    /// What those on executors have to do with others there.
    links: Vec<(ActivityId, Links)>,
    /// Who may be raised.
    raises: Vec<raises::Declared>,
    /// What is known of the work of activities before they run; see [`Self::declare_work`].
    pub work: Vec<(ActivityId, Work)>,
    /// Handlers that may do any amount of work; see [`Self::declare_unbounded`].
    pub unbounded: Vec<ActivityId>,
}

impl Program {
    /// An empty program for this many processors.
    #[must_use]
    pub fn new(processors: u16) -> Self {
        Self {
            processors,
            ..Self::default()
        }
    }

    /// Adds an activity without a reservation.
    pub fn add(
        &mut self,
        name: &str,
        processor: ProcessorId,
        placement: Placement,
        body: impl Body + 'static,
    ) -> ActivityId {
        self.push(Activity {
            name: name.into(),
            processor,
            placement,
            reservation: None,
            body: Box::new(body),
        })
    }

    /// Adds an activity.
    pub fn push(&mut self, activity: Activity) -> ActivityId {
        self.activities.push(activity);
        ActivityId((self.activities.len() - 1) as u16)
    }

    /// Says what work an activity will have, in place of what was said before. Admission charges it to the slots below it; what it is not
    /// told of, it can only name.
    pub fn declare_work(&mut self, activity: ActivityId, work: Work) {
        self.work.retain(|(known, _)| *known != activity);
        self.declare_more_work(activity, work);
    }

    /// Says what work an activity will have beside what was said before.
    pub fn declare_more_work(&mut self, activity: ActivityId, work: Work) {
        self.work.push((activity, work));
    }

    /// Says of a handler that it does not keep its work short, as admission takes for granted of others: slots below it are `unenforced`, by its name.
    pub fn declare_unbounded(&mut self, activity: ActivityId) {
        self.unbounded.push(activity);
    }

    /// The activities with their ids, in order.
    pub fn numbered(&self) -> impl Iterator<Item = (ActivityId, &Activity)> {
        (0..=u16::MAX).map(ActivityId).zip(&self.activities)
    }

    /// The activities that ask this enforcer for a reservation, in order.
    pub fn askers(
        &self,
        enforcer: Enforcer,
    ) -> impl Iterator<Item = (ActivityId, &Activity, Reservation)> {
        self.numbered().filter_map(move |(id, activity)| {
            let request = activity.reservation?;
            (request.enforcer == enforcer).then_some((id, activity, request.reservation))
        })
    }

    /// Adds a semaphore with this count: a port that only counts.
    pub fn semaphore(&mut self, count: u32) -> SemaphoreId {
        self.add_port(PortKind::Count {
            initial: count,
            most: MOST_COUNTED,
        })
    }

    /// Adds a port that keeps so many arrivals, each with its instant and its payload.
    pub fn port(&mut self, capacity: u32) -> PortId {
        self.add_port(PortKind::Queue { capacity })
    }

    fn add_port(&mut self, kind: PortKind) -> PortId {
        self.ports.push(kind);
        PortId((self.ports.len() - 1) as u16)
    }

    /// Names an event of the application's own.
    pub fn mark(&mut self, name: &str) -> Mark {
        self.marks.push(name.into());
        Mark((self.marks.len() - 1) as u16)
    }
}
