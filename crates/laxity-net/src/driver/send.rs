//! Frames that are sent (§2.2): collected from clients, put in order, handed over, told of.

use std::sync::Arc;

use laxity_model::nif::link::{Link, LinkError, Memory};
use laxity_model::nif::registry::{ClientId, Demultiplex};
use laxity_model::nif::transmit::{Next, NotWaiting, Outgoing};
use laxity_model::{EventKind, Instant};

use super::entry::caught;
use super::tap;
use super::{Driver, Polled, Queued};
use crate::client::{Context, Direction, Effects, Loan};

impl<L: Link, D: Demultiplex> Driver<L, D> {
    /// Takes what clients have sent since, in the order in which they did. One look where nobody has.
    pub(super) fn collect(&mut self, now: Instant, effects: &mut dyn Effects) {
        for client in self.line.announced() {
            if let Some(Some(entry)) = self.clients.get(client as usize) {
                let outgoing = entry.pool.outgoing().map(|(frame, held)| Queued {
                    client: ClientId(client),
                    frame,
                    held,
                });
                self.collected.extend(outgoing);
            }
        }
        self.collected
            .sort_unstable_by_key(|queued| queued.frame.number);
        let mut collected = std::mem::take(&mut self.collected);
        for queued in collected.drain(..) {
            let sending = queued.frame.sending;
            let outgoing = Outgoing {
                client: queued.client,
                length: queued.frame.length,
                priority: sending.priority,
                due: sending.due,
            };
            match self.transmit.offer(&outgoing, now) {
                Some(frame) => self.frames[frame.index()] = Some(queued),
                None => {
                    self.refused += 1;
                    self.done(queued, Err(LinkError::Full), now, effects);
                }
            }
        }
        self.collected = collected;
    }

    /// Hands over what may go, no more than so many.
    pub(super) fn send_waiting(
        &mut self,
        now: Instant,
        effects: &mut dyn Effects,
        most: usize,
        polled: &mut Polled,
    ) -> Result<(), NotWaiting> {
        loop {
            if polled.sent + polled.refused >= most {
                polled.is_more |= self.transmit.waiting() > 0;
                return Ok(());
            }
            let frame = match self.transmit.next(now)? {
                Next::Frame(frame) => frame,
                Next::NotBefore(at) => {
                    polled.again = Some(at);
                    return Ok(());
                }
                Next::Nothing => return Ok(()),
            };
            let Some(mut queued) = self.frames[frame.index()].take() else {
                self.transmit.refused();
                continue;
            };
            let Some(memory) = queued.held.lend() else {
                self.transmit.refused();
                continue;
            };
            let length = queued.frame.length;
            if !self.taps.is_empty() {
                let loan = Loan {
                    bytes: &memory.bytes()[..length],
                    direction: Direction::Out,
                    arrived: None,
                };
                tap::show(&mut self.taps, &self.demultiplex, loan, now, effects);
            }
            match self
                .link
                .queue(memory, length, queued.frame.sending.left, now)
            {
                Ok(()) => {
                    polled.sent += 1;
                    self.is_flushed = false;
                    effects.record(EventKind::Transmit, queued.named());
                    self.frames[frame.index()] = Some(queued);
                }
                Err((memory, LinkError::Full)) => {
                    queued.held.restore(memory);
                    self.frames[frame.index()] = Some(queued);
                    self.transmit.put_back();
                    return Ok(());
                }
                Err((memory, error)) => {
                    queued.held.restore(memory);
                    self.transmit.refused();
                    polled.refused += 1;
                    if error == LinkError::Down {
                        self.is_down(now, effects);
                    }
                    self.done(queued, Err(error), now, effects);
                }
            }
        }
    }

    /// Has what was handed over leave, now or as soon as the interface can.
    pub(super) fn flush(
        &mut self,
        now: Instant,
        effects: &mut dyn Effects,
    ) -> Result<(), LinkError> {
        match self.link.flush(now) {
            Ok(()) => {
                self.is_flushed = true;
                // That a frame was put into a ring does not tell.
                self.is_up(now, effects);
            }
            Err(LinkError::Down) => self.is_down(now, effects),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Tells of what has left, at most as much as was below.
    pub(super) fn tell_sent(&mut self, now: Instant, effects: &mut dyn Effects) {
        for _ in 0..self.transmit.below() {
            let Some(memory) = self.link.sent(now) else {
                return;
            };
            let sent = self.transmit.sent();
            let queued = sent.and_then(|frame| self.frames[frame.index()].take());
            if let Some(mut queued) = queued {
                queued.held.restore(memory);
                effects.record(EventKind::Complete, queued.named());
                self.done(queued, Ok(()), now, effects);
            }
        }
    }

    /// A frame is done: its buffer comes home, or goes back to who waits for it, and then its client is told.
    pub(super) fn done(
        &mut self,
        queued: Queued<L::Memory>,
        outcome: Result<(), LinkError>,
        now: Instant,
        effects: &mut dyn Effects,
    ) {
        let Queued {
            client,
            frame,
            held,
        } = queued;
        let entry = self
            .clients
            .get_mut(client.index())
            .and_then(Option::as_mut);
        // Its number may be another's meanwhile.
        let entry = entry.filter(|entry| Arc::ptr_eq(&entry.pool, held.pool()));
        held.end(frame.is_awaited, outcome.clone());
        let Some(entry) = entry.filter(|_| !frame.is_awaited) else {
            return;
        };
        let mut context = Context::new(now, effects);
        let tag = frame.sending.tag;
        if caught(|| entry.receiver.sent(tag, outcome, &mut context)).is_none() {
            self.unregister(client);
        }
    }
}
