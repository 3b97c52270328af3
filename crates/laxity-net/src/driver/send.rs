//! Frames that are sent (§2.2): collected from clients, put in order, handed over, told of.

use std::cmp::Reverse;

use laxity_model::nif::link::{Link, LinkError, MOST_PIECES, Memory, copy_behind};
use laxity_model::nif::registry::{ClientId, Demultiplex};
use laxity_model::nif::transmit::{Next, NotWaiting, Outgoing};
use laxity_model::{EventKind, Instant};

use super::entry::caught;
use super::tap;
use super::{Driver, Handed, Polled, Queued};
use crate::buffers::{Frame, Message as _};
use crate::client::{Context, Direction, Effects, Loan};

impl<L: Link, D: Demultiplex> Driver<L, D> {
    /// Takes what clients have sent since, in the order in which they did. One look where nobody has.
    pub(super) fn collect(&mut self, now: Instant) {
        for client in self.line.announced() {
            if let Some(Some(entry)) = self.clients.get(client as usize) {
                let outgoing = entry.pool.outgoing().map(|lent| Queued {
                    client: ClientId(client),
                    lent,
                    home: None,
                    is_shown: false,
                });
                self.collected.extend(outgoing);
            }
        }
        // The last that was sent comes first, as from each client.
        self.collected
            .sort_unstable_by_key(|queued| Reverse(queued.lent.frame().number));
        self.offer_left_over(now);
        while let Some(queued) = self.collected.pop() {
            if let Err(queued) = self.offer(queued, now) {
                self.left_over.push_back(queued);
                break;
            }
        }
        self.left_over.extend(self.collected.drain(..).rev());
    }

    /// What was left over has the places in the queue that have become free.
    fn offer_left_over(&mut self, now: Instant) {
        while let Some(queued) = self.left_over.pop_front() {
            if let Err(queued) = self.offer(queued, now) {
                return self.left_over.push_front(queued);
            }
        }
    }

    fn offer(&mut self, queued: Queued<L::Memory>, now: Instant) -> Result<(), Queued<L::Memory>> {
        let frame = queued.lent.frame();
        let outgoing = Outgoing {
            client: queued.client,
            length: frame.length,
            priority: frame.sending.priority,
            due: frame.sending.due,
        };
        match self.transmit.offer(&outgoing, now) {
            Some(frame) => {
                self.frames[frame.index()] = Some(queued);
                Ok(())
            }
            None => Err(queued),
        }
    }

    /// Refuses what the queue has no room for, as much as is left of so much.
    pub(super) fn refuse_rest(
        &mut self,
        now: Instant,
        effects: &mut dyn Effects,
        most: usize,
        polled: &mut Polled,
    ) {
        if self.left_over.is_empty() {
            return;
        }
        let waiting = self.transmit.waiting();
        self.offer_left_over(now);
        // A place that has just become free: whoever has it now may leave.
        polled.is_more |= self.transmit.waiting() > waiting;
        while polled.all() < most {
            let Some(queued) = self.left_over.pop_front() else {
                return;
            };
            polled.refused += 1;
            self.done(queued, Err(LinkError::Full), now, effects);
        }
        polled.is_more |= !self.left_over.is_empty();
    }

    /// Hands over what may go, as much as is left of so much.
    pub(super) fn send_waiting(
        &mut self,
        now: Instant,
        effects: &mut dyn Effects,
        most: usize,
        polled: &mut Polled,
    ) -> Result<(), NotWaiting> {
        loop {
            if polled.all() >= most {
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
            let handed = self.hand_over(&mut queued, now, effects);
            if handed.is_ok() {
                polled.sent += 1;
                polled.bytes += queued.lent.frame().length as u64;
                self.is_flushed = false;
                effects.record(EventKind::Transmit, queued.named());
            }
            // It is found there where its client ends.
            self.frames[frame.index()] = Some(queued);
            match handed {
                Ok(()) => {}
                Err(LinkError::Full) => {
                    self.transmit.put_back();
                    return Ok(());
                }
                Err(error) => {
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

    /// Hands a frame over; what is not taken has its memory as before.
    fn hand_over(
        &mut self,
        queued: &mut Queued<L::Memory>,
        now: Instant,
        effects: &mut dyn Effects,
    ) -> Result<(), LinkError> {
        let Some(memory) = queued.lent.lend() else {
            return Err(LinkError::Gone);
        };
        let Frame {
            length,
            sending,
            is_gathered,
            ..
        } = *queued.lent.frame();
        let handed = if is_gathered {
            self.hand_over_pieces(queued, memory, now, effects)
        } else {
            if !std::mem::replace(&mut queued.is_shown, true) {
                self.show_sent(&memory.bytes()[..length], now, effects);
            }
            self.link.queue(memory, length, sending.left, now)
        };
        match handed {
            Ok(()) => self.handed.frames += 1,
            Err((memory, error)) => {
                queued.lent.restore(memory);
                return Err(error);
            }
        }
        Ok(())
    }

    /// The same of one whose end is elsewhere.
    fn hand_over_pieces(
        &mut self,
        queued: &mut Queued<L::Memory>,
        mut memory: L::Memory,
        now: Instant,
        effects: &mut dyn Effects,
    ) -> Result<(), (L::Memory, LinkError)> {
        let Frame {
            length, sending, ..
        } = *queued.lent.frame();
        let behind = queued.lent.behind();
        let mut pieces = [&[][..]; MOST_PIECES];
        let found = caught(|| {
            let mut found = 0;
            for (place, piece) in pieces.iter_mut().zip(behind.pieces()) {
                *place = piece;
                found += 1;
            }
            found
        });
        let Some(found) = found else {
            let why = "a piece of the frame panicked".to_owned();
            return Err((memory, LinkError::Failed(why)));
        };
        let pieces = &pieces[..found];
        let further: usize = pieces.iter().map(|piece| piece.len()).sum();
        let own = length.saturating_sub(further);
        let copied = if self.taps.is_empty() {
            (self.link).queue_gathered(memory, own, pieces, sending.left, now)?
        } else {
            // Who peeks is shown one piece.
            if let Err(error) = copy_behind(&mut memory, own, pieces) {
                return Err((memory, error));
            }
            if !std::mem::replace(&mut queued.is_shown, true) {
                self.show_sent(&memory.bytes()[..length], now, effects);
            }
            self.link.queue(memory, length, sending.left, now)?;
            true
        };
        self.handed.gathered += 1;
        self.handed.copies += u64::from(copied);
        Ok(())
    }

    /// Shows a frame that is sent to those who peek.
    fn show_sent(&mut self, bytes: &[u8], now: Instant, effects: &mut dyn Effects) {
        if self.taps.is_empty() {
            return;
        }
        let loan = Loan {
            bytes,
            direction: Direction::Out,
            arrived: None,
        };
        tap::show(&mut self.taps, &self.demultiplex, loan, now, effects);
    }

    /// What was handed over, and how often it was copied for that.
    pub fn handed(&self) -> Handed {
        let each = u64::from(self.link.facts().copies);
        Handed {
            copies: self.handed.copies + each * self.handed.frames,
            ..self.handed
        }
    }

    /// Has what was handed over leave, now or as soon as the interface can.
    pub(super) fn flush(
        &mut self,
        now: Instant,
        effects: &mut dyn Effects,
        polled: &mut Polled,
    ) -> Result<(), LinkError> {
        match self.link.flush(now) {
            Ok(()) => {
                self.is_flushed = true;
                // That a frame was put into a ring does not tell.
                self.is_up(now, effects);
            }
            Err(LinkError::Down) => self.is_down(now, effects),
            Err(LinkError::Gone) => {
                // The next look for a packet says so, too: by then its memory can come home, and everybody is told.
                self.is_flushed = true;
                polled.is_more = true;
            }
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
        let Queued {
            client, lent, home, ..
        } = queued;
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
