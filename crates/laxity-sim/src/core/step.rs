//! Calling a body, what it may do meanwhile, and doing what its step asks for.

use laxity_model::base::port::Arrival;
use laxity_model::policy::Rank;
use laxity_model::{
    ActivityId, Context, EventKind, Instant, PortId, Refused, SemaphoreId, Service, Step,
};

use super::{Bodies, Class, Core, Fault, Machinery, Parts, Waiting, later};

/// So many steps at one instant are taken for a program that never lets time pass.
pub(super) const MAX_STEPS_AT_AN_INSTANT: u32 = 1_000_000;

struct StepContext<'a, P: Parts> {
    core: &'a mut Core<P>,
    who: u32,
}

impl<P: Parts> Context for StepContext<'_, P>
where
    Core<P>: Machinery,
{
    fn now(&self) -> Instant {
        self.core.now
    }

    fn put(&mut self, port: PortId, payload: [u64; 2]) -> bool {
        self.core.put(port.0.into(), payload, self.who)
    }

    fn take(&mut self, port: PortId) -> Option<Arrival> {
        self.core.take(port.0.into(), self.who)
    }

    fn arrival(&self) -> Option<Arrival> {
        self.core.activity(self.who).arrival
    }

    fn ring(&mut self, port: PortId, doorbell: SemaphoreId) -> bool {
        self.core
            .set_doorbell(port.0.into(), doorbell.0.into(), self.who);
        false
    }

    fn raise(&mut self, activity: ActivityId, rank: Rank, at: Instant) {
        self.core.raise(self.who, (activity, rank), at);
    }

    fn record(&mut self, kind: EventKind, args: [u64; 2]) {
        self.core.record_for(self.who, self.who, kind, args);
    }

    fn record_of(&mut self, hosted: ActivityId, kind: EventKind, args: [u64; 2]) {
        self.core.record_for(self.who, hosted.0.into(), kind, args);
    }

    fn fail(&mut self, what: &'static str) {
        self.core.fail(self.who, Fault::Body(what));
    }

    fn timed_out(&self) -> bool {
        self.core.activity(self.who).timed_out
    }

    fn answer(&self) -> Result<Instant, Refused> {
        self.core.activity(self.who).answer
    }

    fn service(&self) -> Service {
        self.core.activity(self.who).received
    }
}

impl<P: Parts> Core<P>
where
    Self: Machinery,
{
    /// A body records something of itself or of one that it hosts.
    fn record_for(&mut self, who: u32, whose: u32, kind: EventKind, args: [u64; 2]) {
        match kind {
            EventKind::Mark(mark) if usize::from(mark.0) >= self.marks => {
                self.fail(who, Fault::NoSuchMark(mark.0));
            }
            _ if whose as usize >= self.activities.len() => {
                self.fail(who, Fault::NoSuchActivity(whose as u16));
            }
            _ => self.record(kind, whose, args),
        }
    }

    /// Calls the activity's body once and does what it asks for.
    #[inline(never)]
    pub(crate) fn step(&mut self, who: u32, bodies: &mut Bodies) {
        let Some(steps_left) = self.steps_left.checked_sub(1) else {
            let (steps, at_ns) = (MAX_STEPS_AT_AN_INSTANT + 1, self.now.as_nanos());
            return self.fail(who, Fault::Livelock { steps, at_ns });
        };
        self.steps_left = steps_left;
        let step = bodies[who as usize].step(&mut StepContext { core: self, who });
        match step {
            Step::Charge(service) => self.work(who, service, true),
            Step::Burn(service) => self.work(who, service, false),
            Step::SleepUntil(at) => self.sleep(who, at),
            Step::Wait(port) => {
                if self.must_wait(who, port.0.into()) {
                    let class = self.activity(who).class;
                    self.wait((who, class), Waiting::ForSignal(port.0.into()));
                }
            }
            Step::WaitUntil(port, at) => self.wait_until(who, port.0.into(), at),
            Step::Yield => {
                self.next_step_at_once(who);
                if self.activity(who).class == Class::Thread {
                    self.yield_now(who);
                }
            }
            Step::BeginReservation => self.begin_reservation(who),
            Step::EndReservation => self.end_reservation(who),
            Step::ChangeReservation(asked) => self.change_reservation(who, asked),
            Step::BeginConstraint(asked) => self.begin_constraint(who, asked),
            Step::EndConstraint => {
                self.release_constraint(who);
                self.next_step_at_once(who);
            }
            Step::Finish => {
                self.release_constraint(who);
                self.alive -= 1;
                self.record(EventKind::Finish, who, [0; 2]);
                match self.activity(who).class {
                    Class::External => self.activity_mut(who).waiting = Waiting::ForEver,
                    _ => {
                        self.leave(who, Waiting::ForEver);
                        self.end_raise(who);
                    }
                }
            }
            Step::EndRun => self.ended = true,
        }
    }

    /// The activity has this much to do before its next step. What executes on its processor has been credited with its service until now.
    #[inline(always)]
    pub(crate) fn work(&mut self, who: u32, service: Service, charging: bool) {
        let activity = &mut self.activities[who as usize];
        if activity.class == Class::External {
            let at = later(self.now, service.as_dedicated_span());
            return self.timers.set(who, at);
        }
        activity.work = service;
        activity.charging = charging;
        let place = &mut self.processors[usize::from(activity.processor)];
        if place.executing == Some(who) {
            place.go_on_with(service, self.now);
        } else {
            place.go_on(&self.activities, self.now);
        }
    }

    /// Nothing to wait for: the next step is due at once.
    #[inline(never)]
    pub(crate) fn next_step_at_once(&mut self, who: u32) {
        self.work(who, Service::ZERO, false);
    }
}
