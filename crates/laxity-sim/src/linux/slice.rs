//! When the kernel looks at a slice of the fair class besides its ticks: whenever it brings its count of the thread up to date, because the
//! thread asks for its own processor time. One that burns does that every [`BURN_STRETCH`].

use laxity_model::Instant;
use laxity_model::enforce::host::BURN_STRETCH;
use laxity_model::policy::classes::Scheduling;

use super::kernel::System;
use super::task::{Role, Task};
use crate::core::later;

/// When a thread that burns reads its own processor time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Readings {
    /// The next time, if it has the processor then; a stretch later the one after.
    next: Instant,
}

impl Readings {
    /// It begins to burn, and reads first of all.
    pub(super) const fn from(at: Instant) -> Self {
        Self { next: at }
    }

    /// It has the processor again: what it should have read meanwhile it reads at once.
    pub(super) fn resume(&mut self, at: Instant) {
        self.next = self.next.max(at);
    }

    /// It has it no more: the stretch under way ends when it would have.
    pub(super) fn put_off(&mut self, at: Instant) {
        self.next = self.first_from(at);
    }

    /// The first reading at an instant or after it, if it keeps the processor.
    fn first_from(self, at: Instant) -> Instant {
        let stretch = BURN_STRETCH.as_nanos();
        let ahead = at.saturating_since(self.next).as_nanos();
        later(self.next, BURN_STRETCH * ahead.div_ceil(stretch))
    }
}

impl Task {
    /// Whether it keeps the processor busy for nothing, and so looks how long it has had it, in a class whose slices may end so.
    fn burns_in_slices(&self) -> bool {
        let burns = self.own.role == Role::Activity && !self.charging && !self.work.is_zero();
        let is_fair = |scheduling: Scheduling| scheduling.real_time().is_none();
        burns && self.scheduling().is_some_and(is_fair)
    }
}

impl System {
    /// Who has begun a step that burns has read its own processor time.
    pub(super) fn begin_burning(&mut self, processor: usize, task: u32) {
        let now = self.now;
        let entry = &mut self.activities[task as usize];
        let place = &mut self.processors[processor];
        if place.executing == Some(task) && entry.burns_in_slices() {
            entry.own.readings = Readings::from(now);
            place.undecided = true;
        }
    }

    /// Has the slice of who runs, which is used up at `until`, looked at when it first reads its own processor time after that.
    pub(super) fn watch_slice(&mut self, processor: usize, until: Instant) {
        let place = &mut self.processors[processor];
        let running = place.executing.filter(|_| until < Instant::MAX);
        let running = running.map(|running| &self.activities[running as usize]);
        let burning = running.filter(|running| running.burns_in_slices());
        let reads_at = burning.map(|burning| burning.own.readings.first_from(until));
        place.own.slice_looked_at = reads_at.unwrap_or(Instant::MAX);
        place.set_due();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_are_a_stretch_apart_and_none_is_made_up_for() {
        let us = Instant::from_micros;
        let mut readings = Readings::from(us(40));
        let firsts = [0, 40, 41, 140, 141].map(|at| readings.first_from(us(at)));
        assert_eq!(firsts, [40, 40, 140, 140, 240].map(us));
        // Put off for less than what was left of a stretch, and for longer.
        readings.put_off(us(150));
        readings.resume(us(160));
        assert_eq!(readings.first_from(us(160)), us(240));
        readings.put_off(us(250));
        readings.resume(us(1_000));
        assert_eq!(readings.first_from(us(1_001)), us(1_100));
        assert_eq!(readings.first_from(Instant::MAX), Instant::MAX);
    }
}
