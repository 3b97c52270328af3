//! How a driver ends: its interface is gone, or it is dropped. Every buffer comes home, and clients are told.

use laxity_model::Instant;
use laxity_model::nif::link::{Link, LinkError};
use laxity_model::nif::registry::{ClientId, Demultiplex};

use super::{Driver, State, count};
use crate::client::{Effects, News};

impl<L: Link, D: Demultiplex> Driver<L, D> {
    /// Ends everything but the driver itself.
    pub(super) fn end_all(&mut self, now: Instant, effects: &mut dyn Effects) {
        self.collect(now);
        self.tell_sent(now, effects);
        self.state = State::Gone;
        // First, as buffers may come home whose memory the interface keeps.
        for entry in self.clients.iter().flatten() {
            entry.pool.close();
            entry.receiver.close();
        }
        // What was below comes home first, in memory of its kind, whosever that was.
        while let Some(memory) = self.link.reclaim() {
            let sent = self.transmit.sent();
            match sent.and_then(|frame| self.frames[frame.index()].take()) {
                Some(mut queued) => {
                    queued.lent.restore(memory);
                    self.done(queued, Err(LinkError::Gone), now, effects);
                }
                None => {
                    self.posted = self.posted.saturating_sub(1);
                    self.spare.push(memory);
                }
            }
        }
        self.transmit.clear();
        for index in 0..self.frames.len() {
            if let Some(queued) = self.frames[index].take() {
                self.done(queued, Err(LinkError::Gone), now, effects);
            }
        }
        while let Some(queued) = self.left_over.pop_front() {
            self.done(queued, Err(LinkError::Gone), now, effects);
        }
        self.tell(News::Gone, now, effects);
        for index in 0..self.clients.len() {
            self.unregister(ClientId(count(index)));
        }
        self.taps.clear();
    }
}

impl<L: Link, D: Demultiplex> Drop for Driver<L, D> {
    fn drop(&mut self) {
        self.questions.end();
        if self.state != State::Gone {
            self.end_all(Instant::ZERO, &mut ());
        }
    }
}
