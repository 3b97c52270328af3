//! Packets that arrive (§2.1, figure 2).

use laxity_model::nif::exchange::{Outcome, Reason};
use laxity_model::nif::link::{Link, LinkError, Memory, Received};
use laxity_model::nif::registry::{ClientId, Demultiplex, Fallback, Found};
use laxity_model::{EventKind, Instant};

use super::entry::caught;
use super::tap;
use super::{Driver, Polled, State, count};
use crate::client::{Context, Direction, Effects, Loan, News};

impl<L: Link, D: Demultiplex> Driver<L, D> {
    /// Takes what has arrived, no more than so much, with what the interface throws away.
    pub(super) fn take_arrivals(
        &mut self,
        now: Instant,
        effects: &mut dyn Effects,
        most: usize,
        polled: &mut Polled,
    ) -> Result<(), LinkError> {
        while polled.arrived + polled.discarded < most {
            match self.link.receive(now) {
                Ok(Some(packet)) => {
                    polled.arrived += 1;
                    polled.bytes += packet.length as u64;
                    self.is_up(now, effects);
                    self.arrived(packet, now, effects);
                }
                Ok(None) if self.link.has_discarded() => polled.discarded += 1,
                Ok(None) => return Ok(()),
                Err(LinkError::Down) => {
                    self.is_down(now, effects);
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        polled.is_more = true;
        Ok(())
    }

    fn arrived(
        &mut self,
        mut packet: Received<L::Memory>,
        now: Instant,
        effects: &mut dyn Effects,
    ) {
        self.posted -= 1;
        let what = packet.stamp.code() << 32 | u64::from(count(packet.length));
        effects.record(EventKind::Arrive, [packet.at.as_nanos(), what]);
        let mut whose = None;
        let outcome = self.deliver(&mut packet, &mut whose, now, effects);
        self.account.count(outcome);
        if !self.taps.is_empty() {
            tap::tell(&mut self.taps, whose, outcome);
        }
        self.post(packet.memory);
    }

    fn deliver(
        &mut self,
        packet: &mut Received<L::Memory>,
        whose: &mut Option<ClientId>,
        now: Instant,
        effects: &mut dyn Effects,
    ) -> Outcome {
        let Some(bytes) = packet.memory.bytes().get(..packet.length) else {
            self.malformed = Some("longer than its buffer");
            return Outcome::Dropped(Reason::Malformed);
        };
        if !self.taps.is_empty() {
            let loan = Loan {
                bytes,
                direction: Direction::In,
                arrived: Some((&*packet).into()),
            };
            tap::show(&mut self.taps, &self.demultiplex, loan, now, effects);
        }
        // Where the interface has found it, nobody looks again: it finds by the same rules, and no other client may want some of what is found so.
        let early = packet.early.map(|client| Found::Client(ClientId(client)));
        let client = match early.unwrap_or_else(|| self.demultiplex.find(bytes)) {
            Found::Client(client) => client,
            Found::Malformed(why) => {
                self.malformed = Some(why);
                return Outcome::Dropped(Reason::Malformed);
            }
            Found::Nobody => match self.fallback {
                Fallback::Client(client) => client,
                Fallback::Kernel => return Outcome::Kernels,
                Fallback::Nobody => return Outcome::Dropped(Reason::Nobodys),
            },
        };
        let Some(Some(entry)) = self.clients.get_mut(client.index()) else {
            return Outcome::Dropped(Reason::Nobodys);
        };
        *whose = Some(client);
        let mut context = Context::new(now, effects);
        let outcome = caught(|| entry.receiver.arrive(packet, &mut context));
        let kind = match outcome {
            Some(Outcome::Swapped | Outcome::Copied | Outcome::Peeked) => Some(EventKind::Receive),
            Some(Outcome::Dropped(Reason::NoBuffer)) => Some(EventKind::NoBuffer),
            _ => None,
        };
        if let Some(kind) = kind {
            let args = [u64::from(client.0), u64::from(count(packet.length))];
            effects.record(kind, args);
        }
        entry
            .account
            .count(outcome.unwrap_or(Outcome::Dropped(Reason::Panicked)));
        outcome.unwrap_or_else(|| {
            self.unregister(client);
            Outcome::Dropped(Reason::Panicked)
        })
    }

    /// Something came through: whoever was told that it is down is told otherwise.
    pub(super) fn is_up(&mut self, now: Instant, effects: &mut dyn Effects) {
        if self.state == State::Down {
            self.state = State::Up;
            self.tell(News::Up, now, effects);
        }
    }

    pub(super) fn is_down(&mut self, now: Instant, effects: &mut dyn Effects) {
        if self.state == State::Up {
            self.state = State::Down;
            self.tell(News::Down, now, effects);
        }
    }
}
