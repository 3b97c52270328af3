//! The node's side of a channel that ends here.

use std::collections::VecDeque;
use std::sync::Arc;

use laxity_linux::host::ring::Ring;
use laxity_model::analysis::supply::Dedicated;
use laxity_model::channels::asked::Asked;
use laxity_model::channels::ring::{self, Refused, Tag};
use laxity_model::channels::signalling::Cause;
use laxity_net::channels::node::{Listens, Node};
use laxity_net::channels::path::{Event, Label};
use laxity_net::channels::told::{LENGTH, Told};

use super::ends::{Life, end};
use super::outward::Bytes;

/// So many misses may wait for an application that takes nothing; of what is beyond, the node's counts alone tell.
const MOST_MISSED: usize = 64;

/// The node's side of a channel that ends here.
pub(super) struct Inward {
    ring: ring::Sender<Ring>,
    pub(super) life: Arc<Life>,
    listens: Listens,
    largest: u32,
    /// What is told before the next message.
    missed: VecDeque<Told>,
    is_full: bool,
}

impl Inward {
    pub(super) fn new(
        ring: ring::Sender<Ring>,
        life: Arc<Life>,
        (listens, largest): (Listens, u32),
    ) -> Self {
        Self {
            ring,
            life,
            listens,
            largest,
            missed: VecDeque::with_capacity(MOST_MISSED),
            is_full: false,
        }
    }

    /// Whether a change of it is agreed to.
    pub(super) fn answers(&self, asked: &Asked) -> Result<Listens, u32> {
        match asked.traffic.largest().get() <= self.largest {
            true => Ok(self.listens),
            false => Err(super::DECLINED_LARGE),
        }
    }

    /// Something was missed, which is told in its turn.
    pub(super) fn missed(&mut self, missed: Event) {
        if self.missed.len() < MOST_MISSED {
            self.missed.push_back(Told::missed(missed));
        }
    }

    /// Hands over what there is room for.
    ///
    /// # Errors
    ///
    /// The channel is to be closed: whether as one whose application has died.
    pub(super) fn deliver(
        &mut self,
        node: &mut Node<Bytes, Dedicated>,
        end: Label,
    ) -> Result<(), bool> {
        self.is_full = false;
        loop {
            let mut loan = match self.ring.loan() {
                Ok(loan) => loan,
                Err(Refused::Full | Refused::Held) => {
                    self.is_full = true;
                    return Ok(());
                }
                Err(refused) => return Err(refused != Refused::Ended),
            };
            if let Some(told) = self.missed.pop_front() {
                loan.write(0, &told.bytes());
                loan.commit(LENGTH as u32, Tag::default());
                continue;
            }
            let Some(message) = node.receive(end) else {
                return Ok(());
            };
            let bytes = node.bytes(end, &message).unwrap_or_default();
            loan.write(0, &Told::received(&message).bytes());
            loan.write(LENGTH, bytes);
            loan.commit((LENGTH + bytes.len()) as u32, Tag::default());
            node.give_back(end, message);
        }
    }

    pub(super) fn clear(&self) {
        self.ring.memory().clear();
    }

    /// Whether it is woken from now on by the room that it wants, if it wants any.
    pub(super) fn rests(&mut self) -> bool {
        !self.is_full || self.ring.rests()
    }

    /// Whether it waits for room.
    pub(super) const fn is_full(&self) -> bool {
        self.is_full
    }

    /// The channel is over: whoever listens is told why, behind all that was delivered.
    pub(super) fn end(self, cause: Cause) {
        // It is said once.
        let _ = self.life.cause.set(cause);
    }
}

/// Nobody waits for a node that is gone.
impl Drop for Inward {
    fn drop(&mut self) {
        end(self.ring.memory());
    }
}
