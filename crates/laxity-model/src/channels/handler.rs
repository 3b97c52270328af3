//! A channel's handler, as a state machine: from the messages that wait to packets in the channel's packet queue (§3.1, figure 3b).
//!
//! It takes one message after the other and cuts it into packets of S bytes. What each costs is told as work before the packet is queued; the packet queue is bounded, and a handler that finds it full is *blocked* until a packet has
//! left (§3.1). After every P packets it looks whether somebody more urgent is to have the processor (§3.1: cooperative preemption). Each part of a message is a job of its own for whoever schedules handlers: it has the part's deadline and
//! is current from its logical arrival on. So a message that is too large decays here as its [source](super::source) has it.
//!
//! A handler of best effort is the same, and its parts are never due.
//!
//! Whoever runs the handler calls [`Handler::next`] when it has the processor, does what that says, and tells of packets that have left.

use alloc::collections::VecDeque;
use core::num::NonZeroU32;

use super::source::{Part, Source};
use crate::nif::urgency::Due;
use crate::policy::multiclass::Early;
use crate::{Instant, Service};

/// What is cut into packets.
pub trait Message {
    /// How many bytes it has. One of none is a packet without any.
    fn bytes(&self) -> u32;
}

/// When a handler looks whether somebody else is to go first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Looks {
    /// After every so many packets, P, and before each message.
    After(NonZeroU32),
    /// Before each message, and never within one.
    BetweenMessages,
    /// Not while a message waits: what not to do (§5.3).
    Never,
}

/// What becomes of what is left of a message when the part under way is due.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Late {
    /// It is sent all the same.
    Deliver,
    /// It is not sent.
    Discard,
}

/// What work a handler has of messages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Costs {
    /// Each message, beside its packets: the paper's first packet, less a further one.
    pub message: Service,
    /// Each packet.
    pub packet: Service,
    /// Each 1,024 bytes, to the nanosecond below.
    pub kilobyte: Service,
}

impl Costs {
    /// What a packet of so many bytes takes; of a message's first one with what the message takes.
    #[must_use]
    pub fn of(self, bytes: u32, is_first: bool) -> Service {
        let copied = u128::from(self.kilobyte.as_nanos()) * u128::from(bytes) / 1_024;
        let copied = Service::from_nanos(u64::try_from(copied).unwrap_or(u64::MAX));
        let message = if is_first {
            self.message
        } else {
            Service::ZERO
        };
        let packet = self.packet.checked_add(copied);
        packet
            .and_then(|packet| packet.checked_add(message))
            .unwrap_or(Service::MAX)
    }
}

/// How a channel's messages are processed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of a packet at the most: S.
    pub packet_bytes: NonZeroU32,
    /// Packets of a part, but of a message's last one, which may have fewer: N_max. As its source has it.
    pub packets: NonZeroU32,
    /// Packets that may wait or be on their way: the buffers of the packet queue.
    pub room: NonZeroU32,
    /// When it looks.
    pub looks: Looks,
    /// When it goes with what is early: held, it waits until that is current; else it competes as an early one does.
    pub early: Early,
    /// What becomes of what is late.
    pub late: Late,
    /// What that takes.
    pub costs: Costs,
}

/// A packet that is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Which message of the channel it is of: how many were taken before.
    pub message: u64,
    /// Which part of that, from 0.
    pub part: u32,
    /// Its bytes.
    pub bytes: u32,
    /// When it is current, and due; [`Instant::MAX`]: never, as it is best effort.
    pub due: Due,
    /// Whether the message ends with it.
    pub is_last: bool,
}

/// What a handler does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Nothing, until a message is offered.
    Idle,
    /// It begins a part of a message, or goes on with it after it was blocked: it inherits the part's deadline, and goes no sooner than this instant, which is past where nothing holds it.
    Inherits {
        /// When the part is current, and due.
        due: Due,
        /// From here on it goes.
        from: Instant,
    },
    /// Nothing, until a packet has left: the packet queue is full.
    Blocked,
    /// It makes this packet, which takes so much work, and then queues it. It has a buffer from here on.
    Packet(Packet, Service),
    /// It looks whether somebody more urgent is to go first, and lets him.
    Look,
    /// What is left of a message is late, and given up: so many packets.
    Discards(u32),
}

/// How many of what a handler did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Messages taken.
    pub messages: u64,
    /// Packets made.
    pub packets: u64,
    /// Packets given up as they were late.
    pub discarded: u64,
    /// How often it was blocked.
    pub blocked: u64,
}

/// The message that is being processed.
#[derive(Clone, Copy, Debug)]
struct Current {
    number: u64,
    bytes: u32,
    packets: u32,
    /// How many of them are made.
    made: u32,
    part: u32,
    /// Packets left of this part.
    left: u32,
}

/// The handler of one channel. Nothing is allocated after it is made.
#[derive(Clone, Debug)]
pub struct Handler {
    limits: Limits,
    current: Option<Current>,
    /// Of the current message, the parts that are not done, the first of them under way.
    parts: VecDeque<Due>,
    /// The part under way is not yet the job that it has.
    is_new: bool,
    /// Packets made since the last look.
    unseen: u32,
    /// Buffers with packets that have not left.
    below: u32,
    is_blocked: bool,
    counts: Counts,
}

impl Handler {
    /// With nothing under way, of a source that has room for so many messages of the stated size.
    #[must_use]
    pub fn new(limits: Limits, messages: NonZeroU32) -> Self {
        Self {
            limits,
            current: None,
            parts: VecDeque::with_capacity(messages.get() as usize),
            is_new: false,
            unseen: 0,
            below: 0,
            is_blocked: false,
            counts: Counts::default(),
        }
    }

    /// What it does now that it has the processor. O(1), but for a message that is taken: O(its parts).
    pub fn next<M: Message>(&mut self, source: &mut Source<M>, now: Instant) -> Next {
        self.next_of(source, now, drop)
    }

    /// The same, and a message that it takes from its queue is handed out: the packets until the next one are of that.
    pub fn next_of<M: Message>(
        &mut self,
        source: &mut Source<M>,
        now: Instant,
        taken: impl FnOnce(M),
    ) -> Next {
        if self.current.is_none() && !self.take(source, taken) {
            return Next::Idle;
        }
        let (Some(current), Some(due)) = (self.current, self.parts.front().copied()) else {
            return Next::Idle;
        };
        if self.limits.late == Late::Discard && due.deadline < now {
            return Next::Discards(self.give_up(current));
        }
        if self.below >= self.limits.room.get() {
            self.counts.blocked += u64::from(!self.is_blocked);
            self.is_blocked = true;
            self.paused();
            return Next::Blocked;
        }
        if core::mem::take(&mut self.is_new) && self.inherits() {
            self.unseen = 0;
            return Next::Inherits {
                due,
                from: self.from(due, now),
            };
        }
        if let Looks::After(packets) = self.limits.looks
            && self.unseen >= packets.get()
        {
            self.unseen = 0;
            return Next::Look;
        }
        self.make(current, due)
    }

    /// A packet of the channel has left, so that its buffer is free. Tells whether the handler was blocked, and is to be woken.
    pub fn left(&mut self) -> bool {
        self.below = self.below.saturating_sub(1);
        core::mem::take(&mut self.is_blocked)
    }

    /// Other limits hold from now on; of a message that is being cut the parts are as they were.
    pub const fn settle(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Packets that were made and have not left.
    #[must_use]
    pub const fn below(&self) -> u32 {
        self.below
    }

    /// How many of what it did.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// The deadline of what it has under way; [`Instant::MAX`] of best effort, `None` if there is nothing.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.parts.front().map(|due| due.deadline)
    }

    /// Whether a part is a job of its own: not where it goes on whoever waits, but for the first behind a pause.
    fn inherits(&self) -> bool {
        self.limits.looks != Looks::Never || self.unseen == 0
    }

    /// From when on a part goes.
    fn from(&self, due: Due, now: Instant) -> Instant {
        match self.limits.early {
            Early::Held { horizon } => due.logical.saturating_sub(horizon),
            Early::Last | Early::BeforeBestEffort => now,
        }
    }

    /// It waits: what it goes on with is a new job.
    const fn paused(&mut self) {
        self.is_new = true;
        self.unseen = 0;
    }

    /// Takes the next message; `false` if none waits.
    fn take<M: Message>(&mut self, source: &mut Source<M>, taken: impl FnOnce(M)) -> bool {
        let parts = &mut self.parts;
        let Some(message) = source.take(|Part { due, .. }| parts.push_back(due)) else {
            self.paused();
            return false;
        };
        let bytes = message.bytes();
        let packets = bytes.div_ceil(self.limits.packet_bytes.get()).max(1);
        self.current = Some(Current {
            number: self.counts.messages,
            bytes,
            packets,
            made: 0,
            part: 0,
            left: self.limits.packets.get(),
        });
        self.counts.messages += 1;
        self.is_new = true;
        taken(message);
        true
    }

    fn make(&mut self, mut current: Current, due: Due) -> Next {
        let is_first = current.made == 0;
        let is_last = current.made + 1 == current.packets;
        let size = self.limits.packet_bytes.get();
        let bytes = size.min(current.bytes - current.made * size);
        let packet = Packet {
            message: current.number,
            part: current.part,
            bytes,
            due,
            is_last,
        };
        current.made += 1;
        current.left = current.left.saturating_sub(1);
        if is_last {
            self.parts.clear();
        } else if current.left == 0 && self.parts.len() > 1 {
            self.parts.pop_front();
            self.is_new = true;
            current.part += 1;
            current.left = self.limits.packets.get();
        }
        self.current = (!is_last).then_some(current);
        self.unseen = self.unseen.saturating_add(1);
        self.below += 1;
        self.counts.packets += 1;
        Next::Packet(packet, self.limits.costs.of(bytes, is_first))
    }

    /// The rest of a message is not sent.
    fn give_up(&mut self, current: Current) -> u32 {
        let left = current.packets - current.made;
        self.parts.clear();
        self.current = None;
        self.counts.discarded += u64::from(left);
        left
    }
}
