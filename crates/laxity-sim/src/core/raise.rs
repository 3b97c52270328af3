//! Who is raised, and for how long. [`Raises`](laxity_model::policy::raise::Raises) says so.

use laxity_model::policy::Rank;
use laxity_model::policy::raise::Effect;
use laxity_model::{ActivityId, Instant};

use super::{Core, Fault, Machinery, Parts};

impl<P: Parts> Core<P>
where
    Self: Machinery,
{
    /// A body raises somebody, or arranges that for later.
    pub(super) fn raise(&mut self, by: u32, (who, rank): (ActivityId, Rank), at: Instant) {
        match self.raises.raise(who, rank, at, self.now) {
            Ok(Effect::Nothing) => {}
            Ok(Effect::Becomes(priority)) => self.become_urgent(who.0.into(), priority),
            Ok(Effect::Tell(port, payload)) => {
                self.put(port.0.into(), payload, by);
            }
            Err(why) => self.fail(by, Fault::NotRaised(who, why)),
        }
        self.wait_to_raise();
    }

    /// The time of somebody has come for whom it was arranged. The kernel does that at once, and it costs nothing.
    pub(super) fn raise_in_time(&mut self) {
        while let Some((who, priority)) = self.raises.pass(self.now) {
            self.become_urgent(who.0.into(), priority);
        }
        self.wait_to_raise();
    }

    /// A thread waits, or has ended, and is what it was placed as.
    #[inline]
    pub(super) fn end_raise(&mut self, who: u32) {
        if !self.raises.is_empty() {
            self.lower(who);
        }
    }

    #[inline(never)]
    fn lower(&mut self, who: u32) {
        let id = self.activity(who).id;
        if let Some(own) = self.raises.over(id) {
            self.become_urgent(who, own);
        }
        self.wait_to_raise();
    }

    /// Sets the timer of those who are raised when their time has come.
    fn wait_to_raise(&mut self) {
        let number = self.activities.len() as u32;
        self.timers.clear(number);
        let next = self.raises.next();
        if next < Instant::MAX {
            self.timers.set(number, next);
        }
    }
}
