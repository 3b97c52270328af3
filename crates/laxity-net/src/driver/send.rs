//! Frames that are sent (§2.2): collected from clients, put in order, handed over, told of.

use std::cmp::Reverse;

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
                let outgoing = entry.pool.outgoing().map(|lent| Queued {
                    client: ClientId(client),
                    lent,
                    home: None,
                });
                self.collected.extend(outgoing);
            }
        }
        // The last that was sent comes first, as from each client.
        self.collected
            .sort_unstable_by_key(|queued| Reverse(queued.lent.frame().number));
        while let Some(queued) = self.collected.pop() {
            let frame = queued.lent.frame();
            let outgoing = Outgoing {
                client: queued.client,
                length: frame.length,
                priority: frame.sending.priority,
                due: frame.sending.due,
            };
            match self.transmit.offer(&outgoing, now) {
                Some(frame) => self.frames[frame.index()] = Some(queued),
                None => {
                    self.refused += 1;
                    self.done(queued, Err(LinkError::Full), now, effects);
                }
            }
        }
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
            let waiting = &mut self.frames[frame.index()];
            let Some(queued) = waiting else {
                self.transmit.refused();
                continue;
            };
            let (length, left) = (queued.lent.frame().length, queued.lent.frame().sending.left);
            let Some(memory) = queued.lent.lend() else {
                *waiting = None;
                self.transmit.refused();
                continue;
            };
            if !self.taps.is_empty() {
                let loan = Loan {
                    bytes: &memory.bytes()[..length],
                    direction: Direction::Out,
                    arrived: None,
                };
                tap::show(&mut self.taps, &self.demultiplex, loan, now, effects);
            }
            match self.link.queue(memory, length, left, now) {
                Ok(()) => {
                    polled.sent += 1;
                    polled.bytes += length as u64;
                    self.is_flushed = false;
                    effects.record(EventKind::Transmit, queued.named());
                }
                Err((memory, LinkError::Full)) => {
                    queued.lent.restore(memory);
                    self.transmit.put_back();
                    return Ok(());
                }
                Err((memory, error)) => {
                    queued.lent.restore(memory);
                    self.transmit.refused();
                    polled.refused += 1;
                    if error == LinkError::Down {
                        self.is_down(now, effects);
                    }
                    if let Some(queued) = self.frames[frame.index()].take() {
                        self.done(queued, Err(error), now, effects);
                    }
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
                queued.lent.restore(memory);
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
        let Queued { client, lent, home } = queued;
        if let Some(home) = home {
            return home.end(lent, outcome);
        }
        let Some(Some(entry)) = self.clients.get_mut(client.index()) else {
            return;
        };
        if lent.frame().is_awaited {
            return entry.pool.end(lent, outcome);
        }
        let tag = lent.frame().sending.tag;
        entry.pool.end(lent, outcome.clone());
        let mut context = Context::new(now, effects);
        if caught(|| entry.receiver.sent(tag, outcome, &mut context)).is_none() {
            self.unregister(client);
        }
    }
}
