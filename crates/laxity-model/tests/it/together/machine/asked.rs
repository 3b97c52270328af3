//! What comes to the machine from outside, and what it tells of itself.

use laxity_model::program::together::Standing;
use laxity_model::{Instant, PortId, Service};

use super::{EVENTS, Machine};
use crate::together::process::{Arrives, Ask, Fault};

impl Machine {
    /// Something arrives at this microsecond for the upcall that is at this place in its process.
    pub(crate) fn arrives(&mut self, at: u64, process: usize, place: u16) {
        self.comes(at, (process, PortId(EVENTS + place), [0; 2]));
    }

    /// This is asked of a process at this microsecond.
    pub(crate) fn asks(&mut self, at: u64, ask: &Ask) {
        self.comes(at, ask.arrives());
    }

    /// This is asked of a process before the step of this number, of whichever.
    pub(crate) fn asks_before(&mut self, step: u64, ask: &Ask) {
        self.between.push((step, ask.arrives()));
    }

    /// Whether what was asked is done, or refused.
    pub(crate) fn has_answered(&self, ask: &Ask) -> bool {
        let board = &self.processes[ask.process].boards[usize::from(ask.place)];
        board.answer(ask.ticket).is_some()
    }

    fn comes(&mut self, at: u64, what: Arrives) {
        let at = Instant::from_micros(at);
        let after = self.script.partition_point(|other| other.0 <= at);
        self.script.insert(after, (at, what));
    }

    /// This befalls a process after so many of its quanta.
    pub(crate) fn befalls(&mut self, process: usize, after: u64, fault: Fault) {
        self.processes[process].fault = Some((after, fault));
    }

    /// The watchdog knows how long this process may be at work without a look.
    pub(crate) fn limit(&mut self, process: usize, limit: Service) {
        let seat = self.processes[process].seat;
        if let Some(watchdog) = &mut self.watchdog {
            watchdog.hold(seat, limit);
        }
    }

    /// Nobody sees to it that the baton goes on.
    pub(crate) fn leave_unguarded(&mut self) {
        (self.sentinel, self.watchdog) = (None, None);
    }

    pub(crate) fn processes(&self) -> usize {
        self.processes.len()
    }

    /// What a process's seat is.
    pub(crate) fn standing(&self, process: usize) -> Option<Standing> {
        self.region.standing(self.processes[process].seat)
    }
}
