//! The node's side of a channel that begins here.

use std::sync::Arc;

use laxity_linux::host::ring::Ring;
use laxity_linux::os::clock;
use laxity_model::Instant;
use laxity_model::analysis::supply::Dedicated;
use laxity_model::channels::ring::{self, Refused};
use laxity_model::channels::signalling::Cause;
use laxity_net::channels::node::{EndCounts, Node, NotOpen};
use laxity_net::channels::path::{Label, Lane, Offer};

use super::ends::{Life, end};
use super::spare::Spare;

/// A message in memory of the node, which nobody else writes.
#[derive(Debug)]
pub(super) struct Bytes {
    /// Whose it is.
    pub(super) end: Label,
    memory: Box<[u8]>,
    length: usize,
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        &self.memory[..self.length]
    }
}

/// So many messages are taken in a look, and then others have their turn.
const AT_ONCE: usize = 16;

/// The node's side of a channel that begins here.
pub(super) struct Outward {
    ring: ring::Receiver<Ring>,
    pub(super) life: Arc<Life>,
    /// Memory that was used before.
    spare: Vec<Bytes>,
    /// One that has to wait, and until when; [`Instant::MAX`]: until there is room.
    waits: Option<(Bytes, Instant)>,
    /// So many were let go of for newer ones.
    displaced: u64,
    /// Until when nothing is taken, as more came than was granted.
    rests_until: Instant,
}

impl Outward {
    pub(super) const fn new(ring: ring::Receiver<Ring>, life: Arc<Life>) -> Self {
        Self {
            ring,
            life,
            spare: Vec::new(),
            waits: None,
            displaced: 0,
            rests_until: Instant::ZERO,
        }
    }

    /// The node has done with a message.
    pub(super) fn back(&mut self, bytes: Bytes) {
        self.spare.push(bytes);
    }

    /// What waits for room need not.
    pub(super) fn has_room(&mut self) {
        if let Some((_, until)) = &mut self.waits {
            *until = Instant::ZERO;
        }
    }

    /// From when on there is more to take, where something waits; nothing is taken before.
    pub(super) fn resumes(&self, now: Instant) -> Option<Instant> {
        let rests = (self.rests_until > now).then_some(self.rests_until);
        let waits = self.waits.as_ref().map(|(_, until)| *until);
        waits.max(rests)
    }

    /// Takes messages to the node; whether there may be more.
    ///
    /// # Errors
    ///
    /// The channel is to be closed: whether as one whose application has died.
    pub(super) fn take(
        &mut self,
        now: Instant,
        (node, end): (&mut Node<Bytes, Dedicated>, Label),
        spare: &mut Spare,
    ) -> Result<bool, bool> {
        if self.rests_until > now {
            return Ok(false);
        }
        let mut now = now;
        for _ in 0..AT_ONCE {
            let since = now;
            let bytes = match self.waits.take() {
                Some((bytes, until)) if until > now => {
                    self.waits = Some((bytes, until));
                    return Ok(false);
                }
                Some((bytes, _)) => bytes,
                None => match self.copied(end)? {
                    Some(bytes) => bytes,
                    None => return Ok(false),
                },
            };
            match node.send(now, end, bytes) {
                Ok(Offer::Waits) => {
                    let displaced = displaced(node, end);
                    if std::mem::replace(&mut self.displaced, displaced) == displaced {
                        now = clock::now();
                        continue;
                    }
                }
                Ok(Offer::Demoted) => {}
                Ok(Offer::Blocked(bytes, until)) => {
                    self.waits = Some((bytes, until.unwrap_or(Instant::MAX)));
                    return Ok(false);
                }
                Ok(Offer::Dropped(bytes) | Offer::TooLarge(bytes)) => self.spare.push(bytes),
                // It has ended, which is told next.
                Err(NotOpen(bytes)) => {
                    self.spare.push(bytes);
                    return Ok(false);
                }
            }
            now = clock::now();
            if let Some(until) = spare.spent(since, now) {
                self.rests_until = until;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The next message, in memory of the node: what its application writes to it later changes nothing.
    fn copied(&mut self, end: Label) -> Result<Option<Bytes>, bool> {
        let taken = match self.ring.take() {
            Ok(Some(taken)) => taken,
            Ok(None) => return Ok(None),
            Err(refused) => return Err(refused != Refused::Ended),
        };
        let longest = self.ring.shape().bytes() as usize;
        let mut bytes = self.spare.pop().unwrap_or_else(|| Bytes {
            end,
            memory: vec![0; longest].into(),
            length: 0,
        });
        bytes.length = taken.length();
        self.ring.copy(&taken, 0, &mut bytes.memory[..bytes.length]);
        self.ring.give_back(taken);
        Ok(Some(bytes))
    }

    pub(super) fn clear(&self) {
        self.ring.memory().clear();
    }

    /// Whether it is woken from now on by what is sent.
    pub(super) fn rests(&mut self) -> bool {
        self.ring.rests()
    }

    /// The channel is over: whoever sends is told why.
    pub(super) fn end(self, cause: Cause) {
        // It is said once.
        let _ = self.life.cause.set(cause);
    }
}

/// How many messages were let go of for newer ones.
fn displaced(node: &Node<Bytes, Dedicated>, end: Label) -> u64 {
    match node.counts(end, Lane::RealTime) {
        Some(EndCounts::Begins(Some(began), _)) => began.source.displaced,
        _ => 0,
    }
}

/// Nobody waits for a node that is gone.
impl Drop for Outward {
    fn drop(&mut self) {
        end(self.ring.memory());
    }
}
