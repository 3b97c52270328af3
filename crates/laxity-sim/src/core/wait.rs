//! What activities wait for, time and ports, and how their waits end.

use laxity_model::base::port::{self, Arrival, PortKind};
use laxity_model::policy::queue::Queue;
use laxity_model::{EventKind, Instant};

use super::{Class, Core, Fault, Machinery, Parts, Waiting};

#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) state: port::Port,
    pub(crate) waiters: Queue,
    /// Every arrival is put there too.
    doorbell: Option<u32>,
}

impl Port {
    pub(crate) fn new(kind: PortKind) -> Self {
        Self {
            state: port::Port::new(kind),
            waiters: Queue::EMPTY,
            doorbell: None,
        }
    }
}

impl<P: Parts> Core<P> {
    /// The activity's timer is due: if it waits for a port too, it waits no longer. Who is outside the machine and was served an arrival has it.
    pub(crate) fn time_is_up(&mut self, who: u32) {
        let activity = &mut self.activities[who as usize];
        if let Waiting::No = activity.waiting {
            return;
        }
        activity.timed_out = false;
        activity.arrival = None;
        if let Waiting::ForEither(port) = activity.waiting {
            activity.timed_out = true;
            let waiters = &mut self.ports[port as usize].waiters;
            waiters.remove(&mut self.links, who);
        }
    }
}

impl<P: Parts> Core<P>
where
    Self: Machinery,
{
    #[inline(always)]
    pub(super) fn sleep(&mut self, who: u32, at: Instant) {
        let class = self.activity(who).class;
        match class {
            Class::Deferred => return self.fail(who, Fault::DeferredWaitsForTime),
            _ if at > self.now => return self.wait_for_time((who, class), at, Waiting::ForTime),
            Class::Interrupt(_) => return self.raise_again(who, at),
            Class::Thread => self.record(EventKind::Wake, who, [at.as_nanos(), 0]),
            Class::External => {}
        }
        self.next_step_at_once(who);
    }

    pub(super) fn wait_until(&mut self, who: u32, port: u32, at: Instant) {
        let class = self.activity(who).class;
        if class == Class::Deferred {
            return self.fail(who, Fault::DeferredWaitsForTime);
        }
        self.activity_mut(who).timed_out = false;
        if !self.must_wait(who, port) {
            return;
        }
        if at <= self.now {
            self.activity_mut(who).timed_out = true;
            self.next_step_at_once(who);
        } else {
            self.wait_for_time((who, class), at, Waiting::ForEither(port));
        }
    }

    /// Whether the activity has to wait for the port; if not, it has taken the first arrival and goes on.
    pub(super) fn must_wait(&mut self, who: u32, port: u32) -> bool {
        if port as usize >= self.ports.len() {
            self.fail(who, Fault::NoSuchPort(port));
            return false;
        }
        let arrival = self.take(port, who);
        self.activity_mut(who).arrival = arrival;
        if arrival.is_none() {
            return true;
        }
        let activity = self.activity_mut(who);
        activity.further += u32::from(activity.class == Class::Deferred);
        self.next_step_at_once(who);
        false
    }

    /// The first arrival at a port.
    pub(super) fn take(&mut self, port: u32, who: u32) -> Option<Arrival> {
        match self.ports.get_mut(port as usize) {
            Some(found) => found.state.take(),
            None => {
                self.fail(who, Fault::NoSuchPort(port));
                None
            }
        }
    }

    /// Every arrival at the port is put into the doorbell too.
    pub(super) fn set_doorbell(&mut self, port: u32, doorbell: u32, who: u32) {
        let ports = self.ports.len();
        if let Some(missing) = [port, doorbell]
            .into_iter()
            .find(|id| *id as usize >= ports)
        {
            return self.fail(who, Fault::NoSuchPort(missing));
        }
        self.ports[port as usize].doorbell = Some(doorbell);
    }

    #[inline(always)]
    fn wait_for_time(&mut self, (who, class): (u32, Class), at: Instant, waiting: Waiting) {
        self.activity_mut(who).meant_at = at;
        if class == Class::External {
            self.timers.set(who, at);
        } else {
            self.set_timer(who, at);
        }
        self.wait((who, class), waiting);
    }

    #[inline(always)]
    pub(super) fn wait(&mut self, (who, class): (u32, Class), waiting: Waiting) {
        debug_assert!(self.activity(who).is_ready(), "nobody waits for two things");
        if let Waiting::ForSignal(port) | Waiting::ForEither(port) = waiting {
            let waiters = &mut self.ports[port as usize].waiters;
            waiters.push(&mut self.links, who);
        }
        if class == Class::External {
            self.activity_mut(who).waiting = waiting;
            return;
        }
        self.leave(who, waiting);
        if class == Class::Thread {
            self.end_raise(who);
            self.record(EventKind::Block, who, [0; 2]);
        }
    }

    /// Something arrives at a port; `false` if it is full.
    pub(super) fn put(&mut self, port: u32, payload: [u64; 2], by: u32) -> bool {
        if port as usize >= self.ports.len() {
            self.fail(by, Fault::NoSuchPort(port));
            return false;
        }
        let found = &mut self.ports[port as usize];
        let room = found.state.put(Arrival {
            at: self.now,
            payload,
        });
        let doorbell = found.doorbell.filter(|_| room);
        self.record(EventKind::Signal, by, [port.into(), u64::from(!room)]);
        self.serve_waiter(port, by);
        if let Some(doorbell) = doorbell {
            let rung = Arrival {
                at: self.now,
                payload: [0; 2],
            };
            self.ports[doorbell as usize].state.put(rung);
            self.serve_waiter(doorbell, by);
        }
        room
    }

    /// Hands the first arrival at a port to who is first of those who wait for it.
    fn serve_waiter(&mut self, port: u32, by: u32) {
        let Some(waiter) = self.first_waiter(port) else {
            return;
        };
        let served = &mut self.ports[port as usize];
        let arrival = served.state.take();
        if arrival.is_none() {
            return;
        }
        served.waiters.remove(&mut self.links, waiter);
        let now = self.now;
        let activity = &mut self.activities[waiter as usize];
        activity.arrival = arrival;
        activity.timed_out = false;
        activity.meant_at = now;
        if let Waiting::ForEither(_) = activity.waiting {
            self.timers.clear(waiter);
            self.clear_timer(waiter);
        }
        if self.activity(waiter).class == Class::External {
            self.activity_mut(waiter).waiting = Waiting::No;
            self.timers.set(waiter, now);
        } else {
            self.signalled(waiter, by);
        }
    }
}
