//! The messages of a lane that are put together, and which of them never will be.

use core::num::NonZeroU32;
use std::collections::VecDeque;

use laxity_model::channels::clocks::{Delivered, Logical, Place, Timeliness};
use laxity_model::channels::handler::Late;
use laxity_model::channels::reassembly::{Arrived, GivenUp, Reassembly};
use laxity_model::{Instant, Span};

use super::{Ends, Event, Lost, Received, Stored};
use crate::channels::frame::Data;
use crate::channels::path::{Ended, Lane};

/// A buffer in which a message is put together, or waits.
#[derive(Clone, Copy, Debug)]
struct Buffer {
    /// [`NOBODYS`]: it is free, or whoever took the message has it.
    message: u64,
    logical: Instant,
    /// It was current no sooner, as far as is known.
    least: Instant,
    late: Option<Place>,
    length: usize,
}

const NOBODYS: u64 = u64::MAX;

const EMPTY: Buffer = Buffer {
    message: NOBODYS,
    logical: Instant::MAX,
    least: Instant::ZERO,
    late: None,
    length: 0,
};

/// A lane, with its own messages.
#[derive(Debug)]
pub(super) struct Assembly {
    pub(super) reassembly: Reassembly,
    buffers: Box<[Buffer]>,
    bytes: Box<[u8]>,
    /// Complete, in order.
    pub(super) ready: VecDeque<Received>,
    /// Of all below, what became of them is told or will be by a buffer.
    pub(super) told: u64,
    /// One above the last that was complete.
    behind: u64,
    /// Scratch: of which messages not to say that nothing came.
    others: Vec<u64>,
    pub(super) ended: Ended,
}

/// What a frame says of its message's times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) came: Instant,
    pub(super) logical: Instant,
    pub(super) error: Span,
    pub(super) late: Option<Place>,
    pub(super) left_late: bool,
    pub(super) is_believed: bool,
}

/// Who is told what became of messages.
pub(super) struct Telling<F> {
    pub(super) lane: Lane,
    pub(super) event: F,
    /// No message below is waited for any more.
    pub(super) next: u64,
}

impl<F: FnMut(Event)> Telling<F> {
    fn lost(&mut self, first: u64, count: u64, why: Lost) {
        let lane = self.lane;
        (self.event)(Event::Lost {
            lane,
            first,
            count,
            why,
        });
    }
}

/// A message is given up, and its buffer free.
fn gives_up<F: FnMut(Event)>(
    given_up: GivenUp,
    (buffers, others, ended): (&mut [Buffer], &mut Vec<u64>, &mut Ended),
    telling: &mut Telling<F>,
) {
    let GivenUp { message, came, why } = given_up;
    if let Some(buffer) = buffers.iter_mut().find(|one| one.message == message) {
        *buffer = EMPTY;
    }
    others.push(message);
    ended.given_up(why);
    telling.next = telling.next.max(message + 1);
    telling.lost(message, 1, Lost::Incomplete { came, why });
}

impl Assembly {
    /// With so many buffers, for messages of at most so many parts, each with room for so many bytes.
    pub(super) fn new(buffers: NonZeroU32, most: NonZeroU32, room: usize) -> Self {
        let places = buffers.get() as usize;
        Self {
            reassembly: Reassembly::new(buffers, most),
            buffers: vec![EMPTY; places].into(),
            bytes: vec![0; places * room].into(),
            ready: VecDeque::with_capacity(places),
            told: 0,
            behind: 0,
            others: Vec::with_capacity(2 * places + 1),
            ended: Ended::default(),
        }
    }

    pub(super) fn places(&self) -> NonZeroU32 {
        NonZeroU32::new(self.buffers.len() as u32).unwrap_or(NonZeroU32::MIN)
    }

    /// There are so many buffers, for messages of so many parts, where that is more; each has room for so many bytes, and had before.
    pub(super) fn grow(&mut self, buffers: NonZeroU32, most: NonZeroU32, room: (usize, usize)) {
        let (before, room) = room;
        let places = self.buffers.len().max(buffers.get() as usize);
        let mut bytes = vec![0; places * room];
        for (new, old) in bytes.chunks_mut(room).zip(self.bytes.chunks(before)) {
            new[..before].copy_from_slice(old);
        }
        self.bytes = bytes.into();
        let mut there = std::mem::take(&mut self.buffers).into_vec();
        there.resize(places, EMPTY);
        self.buffers = there.into();
        self.reassembly.grow(buffers, most);
        self.ready.reserve(places - self.ready.len());
        self.others.reserve(2 * places + 1);
    }

    /// The bytes of a message that is complete.
    pub(super) fn bytes(&self, buffer: u32, length: usize, room: usize) -> &[u8] {
        &self.bytes[buffer as usize * room..][..length]
    }

    pub(super) fn arrived<F: FnMut(Event)>(
        &mut self,
        data: &Data<'_>,
        due: Instant,
        telling: &mut Telling<F>,
    ) -> Arrived {
        let Self {
            reassembly,
            buffers,
            others,
            ended,
            ..
        } = self;
        others.clear();
        let arrived = reassembly.arrived(data.fragment(), due, |one| {
            gives_up(one, (buffers, others, ended), telling);
        });
        if let Arrived::Complete(_) = arrived {
            others.push(data.message);
            telling.next = data.message + 1;
        }
        self.tell(telling);
        arrived
    }

    pub(super) fn expire<F: FnMut(Event)>(&mut self, now: Instant, telling: &mut Telling<F>) {
        let Self {
            reassembly,
            buffers,
            others,
            ended,
            ..
        } = self;
        others.clear();
        reassembly.expire(now, |one| {
            gives_up(one, (buffers, others, ended), telling);
        });
        self.tell(telling);
    }

    /// Of those that are not waited for any more, and of which nothing is there, it is told that they are lost.
    fn tell<F: FnMut(Event)>(&mut self, telling: &mut Telling<F>) {
        if telling.next <= self.told {
            return;
        }
        let buffers = self.buffers.iter().map(|buffer| buffer.message);
        self.others
            .extend(buffers.filter(|message| *message != NOBODYS));
        self.others.sort_unstable();
        let mut from = self.told;
        let until = telling.next;
        let others = self.others.iter().copied();
        for other in others.filter(|other| *other < until).chain([until]) {
            if let Some(count @ 1..) = other.checked_sub(from) {
                self.ended.missing = self.ended.missing.saturating_add(count);
                telling.lost(from, count, Lost::Missing);
            }
            from = from.max(other.saturating_add(1));
        }
        self.told = until;
    }

    /// A part goes into its message's buffer.
    pub(super) fn store(
        &mut self,
        buffer: usize,
        data: &Data<'_>,
        frame: &Frame,
        (size, room): (usize, usize),
    ) {
        let of = &mut self.buffers[buffer];
        if of.message != data.message {
            *of = Buffer {
                message: data.message,
                ..EMPTY
            };
        }
        of.length += data.payload.len();
        // What a link took unseen makes a frame look later, never earlier.
        of.logical = of.logical.min(frame.logical);
        of.least = of.least.max(frame.logical.saturating_sub(frame.error));
        of.late = of.late.or(frame.late);
        let from = buffer * room + usize::from(data.part) * size;
        self.bytes[from..][..data.payload.len()].copy_from_slice(data.payload);
    }

    /// All of a message is there.
    pub(super) fn complete<F: FnMut(Event)>(
        &mut self,
        buffer: u32,
        (now, frame): (Instant, Frame),
        ends: &Ends,
        telling: &mut Telling<F>,
    ) -> Stored {
        let of = std::mem::replace(&mut self.buffers[buffer as usize], EMPTY);
        let gap = of.message - self.behind;
        self.behind = of.message + 1;
        self.ended.complete += 1;
        let delivered = match telling.lane {
            Lane::RealTime => Some(delivered(&of, now, frame, ends)),
            Lane::BestEffort => None,
        };
        match delivered.map(|delivered| delivered.timeliness) {
            None | Some(Timeliness::InTime) => self.ended.in_time += 1,
            Some(Timeliness::WithinError) => self.ended.within_error += 1,
            Some(Timeliness::Late) => self.ended.late += 1,
        }
        if let Some(Delivered {
            timeliness: Timeliness::Late,
            laxity,
            late: guilty,
            ..
        }) = delivered
        {
            (telling.event)(Event::Late {
                message: of.message,
                by: laxity.unsigned_abs(),
                guilty,
            });
            if ends.late == Late::Discard {
                self.ended.discarded += 1;
                self.reassembly.give_back(buffer);
                return Stored::Discarded;
            }
        }
        self.ready.push_back(Received {
            lane: telling.lane,
            message: of.message,
            gap,
            delivered,
            buffer,
            length: of.length,
        });
        Stored::Complete
    }
}

/// Whether a message was in time that was current then, and who took too long.
fn delivered(of: &Buffer, now: Instant, frame: Frame, ends: &Ends) -> Delivered {
    let known = Logical {
        at: of.logical,
        error: match of.least {
            Instant::ZERO => ends.unseen,
            least => ends.unseen.min(of.logical.saturating_since(least)),
        },
        came: frame.came,
        late: None,
    };
    let delivered = known.delivered(ends.delay, now, ends.host);
    let late = match (frame.left_late, delivered.late) {
        (_, Some(_)) if of.late.is_some() => of.late,
        (false, here @ Some(Place::Host(_))) => here,
        // It came late: over the one way that there is, or by whoever.
        (false, link) if ends.host == 1 => link,
        (true, Some(_)) if ends.host == 1 => Some(Place::Host(0)),
        _ => None,
    };
    Delivered { late, ..delivered }
}
