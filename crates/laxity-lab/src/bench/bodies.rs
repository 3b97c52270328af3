//! What runs in studies: devices that interrupt at known times, their deferred calls, and holders of reservations. The same bodies run in
//! the twin and live.

use std::sync::Arc;

use laxity_devices::card::Overheads;
use laxity_model::{
    Activity, ActivityId, Body, Context, Enforcer, InterruptLevel, Outside, Placement, Priority,
    ProcessorId, Program, Reservation, ReservationRequest, SemaphoreId, Service, Step,
};

use crate::runner::tasks::{Began, Times, at_times};

/// A thread of normal priority on processor 0 that runs in the slots of its reservation and at no other time.
pub fn confined(name: &str, reservation: Reservation, body: impl Body + 'static) -> Activity {
    Activity {
        name: name.into(),
        processor: ProcessorId(0),
        placement: Placement::Thread(Priority::NORMAL),
        reservation: Some(slots(reservation, Outside::Confined)),
        body: Box::new(body),
    }
}

/// A request for slots that are kept from the start of the run on.
pub const fn slots(reservation: Reservation, outside: Outside) -> ReservationRequest {
    ReservationRequest {
        reservation,
        enforcer: Enforcer::Slots,
        outside,
        begins_at_start: true,
    }
}

/// Does a job for each signal: `begin` says what it takes and `end` comes after it, both with its number, counted from 0.
pub fn on_signal(
    signal: SemaphoreId,
    mut begin: impl FnMut(&mut dyn Context, u64) -> Service + Send + 'static,
    mut end: impl FnMut(&mut dyn Context, u64) + Send + 'static,
) -> impl Body + 'static {
    let mut steps = 0;
    move |context: &mut dyn Context| {
        steps += 1;
        if steps % 2 == 0 {
            return Step::Burn(begin(context, steps / 2 - 1));
        }
        if steps > 1 {
            end(context, steps / 2 - 1);
        }
        Step::Wait(signal)
    }
}

/// A device in a program, as the modem of the study is: at its level, with a handler and a deferred call that only hand on (Jones, Saroiu
/// §5.1, §6.2.4).
pub struct HandsOn {
    /// The activity that is its interrupt handler.
    pub interrupt: ActivityId,
    /// What its deferred call signals: the thread that does its work waits for this.
    pub signal: SemaphoreId,
    /// When it began.
    pub began: Began,
}

impl HandsOn {
    /// Puts one that interrupts at these times on processor 0.
    pub fn install(program: &mut Program, times: Times) -> Self {
        const LEVEL: InterruptLevel = InterruptLevel(5);
        let (on, short) = (ProcessorId(0), Overheads::STUDY);
        let (queue, signal) = (program.semaphore(0), program.semaphore(0));
        let began = Began::default();
        let handler = at_times(times, short.interrupt, Some(queue), Arc::clone(&began));
        let interrupt = program.add("modem interrupt", on, Placement::Interrupt(LEVEL), handler);
        let call = on_signal(
            queue,
            move |_, _| short.deferred,
            move |context, _| context.signal(signal),
        );
        program.add("modem deferred call", on, Placement::Deferred, call);
        Self {
            interrupt,
            signal,
            began,
        }
    }
}
