//! What a host runs: activities whose bodies are state machines. The same program runs live on Linux and in the twin.
//!
//! A [`Body`] is called when its activity has the processor. It does a bounded piece of work, tells the [`Context`] what is to be
//! signalled or recorded, and returns a [`Step`]: what the host is to do before it calls again. A body never blocks, reads no clock
//! and makes no system call, so it cannot tell which host it runs on.

mod constraint;
mod reservation;
mod shortage;
mod work;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

pub use constraint::{Refused, TimeConstraint, TimeConstraintError};
pub(crate) use reservation::outranks;
pub use reservation::{
    Enforcer, Grade, Grant, Outside, Reservation, ReservationError, ReservationRequest,
};
pub(crate) use shortage::Share;
pub use shortage::Shortage;
pub use work::Work;

use crate::{Instant, InterruptLevel, Mark, Priority, ProcessorId, SemaphoreId, Service};

/// What the host is to do before it calls a body again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Account for the work the body has just really done. The twin charges this much service; live it has taken its own time.
    Charge(Service),
    /// Keep the processor busy for exactly this much service, preemption not counted: spinners, rogues, test loads.
    Burn(Service),
    /// Wait until this instant (at once if it is past). For an interrupt handler: until its device raises the line then.
    SleepUntil(Instant),
    /// Wait until the semaphore's count is above zero, and take one.
    Wait(SemaphoreId),
    /// The same, but no longer than until the instant.
    WaitUntil(SemaphoreId, Instant),
    /// Let others of the same priority go first.
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

    /// Adds one to the semaphore's count, which may wake its waiter.
    fn signal(&mut self, semaphore: SemaphoreId);

    /// Records an event of the application's own. Never blocks, never allocates live.
    fn mark(&mut self, mark: Mark, args: [u64; 2]);

    /// Whether the last [`Step::WaitUntil`] ended because time was up.
    fn timed_out(&self) -> bool;

    /// What became of the last [`Step::ChangeReservation`] or [`Step::BeginConstraint`]: from when what was granted holds, or why
    /// it was refused. A later instant of a change means that what was held before is held until then.
    fn answer(&self) -> Result<Instant, Refused>;

    /// Whether the last [`Step::ChangeReservation`] or [`Step::BeginConstraint`] was granted.
    fn granted(&self) -> bool {
        self.answer().is_ok()
    }

    /// Processor time this activity has received so far; 0 for one outside the machine. Costs a system call live (about 150 ns).
    fn service(&self) -> Service;
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

/// Where an activity runs, after the modem study's four placements (§5). Live, `Interrupt` and `Deferred` are emulations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// In an interrupt handler: above everything of lower level, to completion.
    Interrupt(InterruptLevel),
    /// In a deferred procedure call: queued once at most, run after all interrupts and before any thread. Waits on semaphores only.
    Deferred,
    /// In a thread of this priority.
    Thread(Priority),
    /// In a thread to which somebody outside gave this `SCHED_FIFO` priority (1–99). Linux only.
    Foreign {
        /// The `SCHED_FIFO` priority.
        fifo: u8,
    },
    /// Outside the machine: hardware and far ends. Takes no time of the program's processors.
    External,
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
    /// The activities; an [`ActivityId`](crate::ActivityId) is an index into this list.
    pub activities: Vec<Activity>,
    /// The initial count of each semaphore.
    pub semaphores: Vec<u32>,
    /// The names of the application's own events; a [`Mark`] is an index into this list.
    pub marks: Vec<String>,
    /// Threads without a reservation that may ask for time constraints.
    pub constrained: Vec<crate::ActivityId>,
    /// What is known of the work of activities before they run; see [`Self::declare_work`].
    pub work: Vec<(crate::ActivityId, Work)>,
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
    ) -> crate::ActivityId {
        self.push(Activity {
            name: name.into(),
            processor,
            placement,
            reservation: None,
            body: Box::new(body),
        })
    }

    /// Adds an activity.
    pub fn push(&mut self, activity: Activity) -> crate::ActivityId {
        self.activities.push(activity);
        crate::ActivityId((self.activities.len() - 1) as u16)
    }

    /// Says what work an activity will have, in place of what was said before. Admission charges it to the slots below it; what it is not
    /// told of, it can only name.
    pub fn declare_work(&mut self, activity: crate::ActivityId, work: Work) {
        self.work.retain(|(known, _)| *known != activity);
        self.work.push((activity, work));
    }

    /// The activities with their ids, in order.
    pub fn numbered(&self) -> impl Iterator<Item = (crate::ActivityId, &Activity)> {
        (0..=u16::MAX).map(crate::ActivityId).zip(&self.activities)
    }

    /// The activities that ask this enforcer for a reservation, in order.
    pub fn askers(
        &self,
        enforcer: Enforcer,
    ) -> impl Iterator<Item = (crate::ActivityId, &Activity, Reservation)> {
        self.numbered().filter_map(move |(id, activity)| {
            let request = activity.reservation?;
            (request.enforcer == enforcer).then_some((id, activity, request.reservation))
        })
    }

    /// Adds a semaphore with this count.
    pub fn semaphore(&mut self, count: u32) -> SemaphoreId {
        self.semaphores.push(count);
        SemaphoreId((self.semaphores.len() - 1) as u16)
    }

    /// Names an event of the application's own.
    pub fn mark(&mut self, name: &str) -> Mark {
        self.marks.push(name.into());
        Mark((self.marks.len() - 1) as u16)
    }
}
