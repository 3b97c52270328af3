//! A channel where it begins: from messages to packets that wait for a link.

use core::num::NonZeroU16;

use laxity_model::Instant;
use laxity_model::channels::handler::{self, Handler, Message, Next, Packet};
use laxity_model::channels::source::{self, Offered, Source};

use super::PerLane;
use super::way_out::Effect;

/// How messages of a lane are policed, and made packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queue {
    /// How they wait, and what becomes of what is too much or too large.
    pub source: source::Limits,
    /// How they are cut.
    pub handler: handler::Limits,
    /// Bytes of the largest message that the far end puts together, which may be more than is stated.
    pub largest: u32,
}

/// What became of a message that was offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offer<B> {
    /// It waits.
    Waits,
    /// It waits as best effort, as it broke the promise.
    Demoted,
    /// Its sender waits: until then, where it would keep the promise then, or until the handler has taken one.
    Blocked(B, Option<Instant>),
    /// It is dropped.
    Dropped(B),
    /// It is larger than the far end takes, and is dropped.
    TooLarge(B),
}

/// Whose bytes wait, as its source and its handler have it.
#[derive(Clone, Copy, Debug)]
struct Held {
    place: u32,
    bytes: u32,
}

impl Message for Held {
    fn bytes(&self) -> u32 {
        self.bytes
    }
}

/// The bytes of a message, until its last packet has left.
#[derive(Clone, Debug)]
struct Stored<B> {
    buffer: Option<B>,
    /// Packets of it that wait or are below.
    packets: u32,
    /// There will be no more.
    is_made: bool,
}

impl<B> Stored<B> {
    const fn nothing() -> Self {
        Self {
            buffer: None,
            packets: 0,
            is_made: false,
        }
    }
}

impl Queue {
    /// Of messages: those that wait, one that takes the place of others, one that is cut, and such of which a packet is left.
    const fn places(&self) -> u32 {
        self.source.room.get() + self.handler.room.get() + 2
    }

    /// Bytes of the largest message: a frame says of how many parts in 16 bits.
    fn most(&self) -> u32 {
        let parts = u32::from(u16::MAX);
        let most = self.handler.packet_bytes.get().saturating_mul(parts);
        self.largest.min(most)
    }
}

/// The message that is being cut.
#[derive(Clone, Copy, Debug)]
struct Current {
    place: u32,
    part: u16,
    parts: NonZeroU16,
}

/// A packet that is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    pub(super) packet: Packet,
    /// Where its message is.
    pub(super) place: u32,
    pub(super) part: u16,
    pub(super) parts: NonZeroU16,
}

/// One lane of a channel.
#[derive(Clone, Debug)]
pub(super) struct Begins<B> {
    source: Source<Held>,
    pub(super) handler: Handler,
    packet_bytes: u32,
    largest: u32,
    messages: Vec<Stored<B>>,
    free: Vec<u32>,
    current: Option<Current>,
    /// Made, and not queued.
    pub(super) made: Option<Made>,
    /// The handler goes on from here, if it waits for nothing else.
    pub(super) resumes: Instant,
    /// Somebody waits until a message is taken, and whether one was.
    is_awaited: bool,
    has_room: bool,
    too_large: u64,
}

/// How many messages of a lane came to what.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Began {
    /// Of its source: what was offered was taken, demoted, dropped or displaced, or waits.
    pub source: source::Counts,
    /// Of its handler: what was taken, and which packets were made.
    pub handler: handler::Counts,
    /// Dropped before they were offered, as larger than the far end takes.
    pub too_large: u64,
}

impl<B: AsRef<[u8]>> Begins<B> {
    pub(super) fn new(queue: Queue) -> Self {
        let Queue {
            source: limits,
            handler,
            ..
        } = queue;
        let most = queue.places();
        Self {
            source: Source::new(limits),
            handler: Handler::new(handler, limits.room),
            packet_bytes: handler.packet_bytes.get(),
            largest: queue.most(),
            messages: (0..most).map(|_| Stored::nothing()).collect(),
            free: (0..most).rev().collect(),
            current: None,
            made: None,
            resumes: Instant::ZERO,
            is_awaited: false,
            has_room: false,
            too_large: 0,
        }
    }

    /// Other limits hold from now on. What waits, or is being cut, goes on with the places that it has.
    pub(super) fn settle(&mut self, queue: Queue) {
        let size = self.packet_bytes;
        (self.source).settle(queue.source, |held| parts(held.bytes, size).into());
        self.handler.settle(queue.handler);
        self.largest = queue.most();
        let there = self.messages.len() as u32;
        self.free.extend((there..queue.places()).rev());
        let most = there.max(queue.places()) as usize;
        self.messages.resize_with(most, Stored::nothing);
    }

    /// A message is offered; those that are dropped for it are handed out.
    pub(super) fn offer(
        &mut self,
        now: Instant,
        buffer: B,
        mut effect: impl FnMut(Effect<B>),
    ) -> Offered<B> {
        let bytes = buffer.as_ref().len() as u32;
        let packets = parts(bytes, self.packet_bytes).into();
        let Some(place) = self.free.pop() else {
            unreachable!("there are places for all that wait or are made");
        };
        self.messages[place as usize].buffer = Some(buffer);
        self.messages[place as usize].is_made = false;
        let Self {
            source,
            messages,
            free,
            ..
        } = self;
        let mut back = |place: u32| {
            free.push(place);
            messages[place as usize].buffer.take()
        };
        let offered = source.offer(now, packets, Held { place, bytes }, |gone| {
            back(gone.place)
                .map(Effect::Back)
                .into_iter()
                .for_each(&mut effect);
        });
        let mut given = |held: Held| back(held.place).expect("it was put there");
        match offered {
            Offered::Waits => Offered::Waits,
            Offered::BestEffort(held) => Offered::BestEffort(given(held)),
            Offered::Blocked(held, until) => {
                self.is_awaited |= until.is_none();
                Offered::Blocked(given(held), until)
            }
            Offered::Dropped(held) => Offered::Dropped(given(held)),
        }
    }

    /// Whether the far end takes so many bytes; if not it is counted.
    pub(super) fn takes(&mut self, bytes: usize) -> bool {
        let fits = u32::try_from(bytes).is_ok_and(|bytes| bytes <= self.largest);
        self.too_large += u64::from(!fits);
        fits
    }

    /// What the handler does now; a packet that it makes is kept until it is queued.
    pub(super) fn next(&mut self, now: Instant, effect: impl FnMut(Effect<B>)) -> Next {
        let mut taken = None;
        let next = (self.handler).next_of(&mut self.source, now, |held| taken = Some(held));
        if let Some(Held { place, bytes }) = taken {
            self.has_room = std::mem::take(&mut self.is_awaited);
            self.current = Some(Current {
                place,
                part: 0,
                parts: parts(bytes, self.packet_bytes),
            });
        }
        match next {
            Next::Packet(packet, _) => self.make(packet),
            Next::Discards(_) => {
                if let Some(current) = self.current.take() {
                    self.messages[current.place as usize].is_made = true;
                    self.put_back(current.place).into_iter().for_each(effect);
                }
            }
            Next::Idle | Next::Inherits { .. } | Next::Blocked | Next::Look => {}
        }
        next
    }

    /// Whether somebody waited until a message was taken, and one was since it was asked last.
    pub(super) fn has_room_again(&mut self) -> bool {
        std::mem::take(&mut self.has_room)
    }

    fn make(&mut self, packet: Packet) {
        let Some(current) = &mut self.current else {
            unreachable!("a packet is of a message that was taken");
        };
        let Current { place, part, parts } = *current;
        self.made = Some(Made {
            packet,
            place,
            part,
            parts,
        });
        current.part = part.saturating_add(1);
        let message = &mut self.messages[place as usize];
        message.packets += 1;
        message.is_made = packet.is_last;
        if packet.is_last {
            self.current = None;
        }
    }

    /// The bytes of a part of a message.
    pub(super) fn payload(&self, place: u32, part: u16) -> &[u8] {
        let message = self.messages[place as usize].buffer.as_ref();
        let message = message.map_or(&[][..], AsRef::as_ref);
        let size = self.packet_bytes as usize;
        let from = (usize::from(part) * size).min(message.len());
        &message[from..(from + size).min(message.len())]
    }

    /// A packet has gone.
    pub(super) fn gone(&mut self, place: u32) -> Option<Effect<B>> {
        self.messages[place as usize].packets -= 1;
        self.put_back(place)
    }

    /// The bytes of a message are nobody's here any more, if it is so.
    fn put_back(&mut self, place: u32) -> Option<Effect<B>> {
        let message = &mut self.messages[place as usize];
        if message.packets > 0 || !message.is_made {
            return None;
        }
        self.free.push(place);
        message.buffer.take().map(Effect::Back)
    }

    /// No message is taken any more: all that wait or are being cut go back, and a packet that was made and not queued is none.
    pub(super) fn close(&mut self, mut effect: impl FnMut(Effect<B>)) {
        if let Some(made) = self.made.take() {
            self.handler.left();
            self.gone(made.place).into_iter().for_each(&mut effect);
        }
        if let Some(current) = self.current.take() {
            self.messages[current.place as usize].is_made = true;
            let back = self.put_back(current.place);
            back.into_iter().for_each(&mut effect);
        }
        while let Some(held) = self.source.take(|_| ()) {
            self.messages[held.place as usize].is_made = true;
            self.put_back(held.place).into_iter().for_each(&mut effect);
        }
    }

    pub(super) fn counts(&self) -> Began {
        Began {
            source: self.source.counts(),
            handler: self.handler.counts(),
            too_large: self.too_large,
        }
    }
}

/// Of how many parts a message of so many bytes is, of those that the far end takes, in packets of this size.
fn parts(bytes: u32, size: u32) -> NonZeroU16 {
    let parts = u16::try_from(bytes.div_ceil(size)).ok();
    parts.and_then(NonZeroU16::new).unwrap_or(NonZeroU16::MIN)
}

/// How many packets each lane may have.
pub(super) fn room(queues: &PerLane<Option<Queue>>) -> PerLane<u32> {
    queues.map(|queue| queue.map_or(0, |queue| queue.handler.room.get()))
}
