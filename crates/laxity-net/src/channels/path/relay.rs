//! A channel that passes a host: frames that come, until they leave by the next link.

use core::num::NonZeroU32;

use laxity_model::channels::admission::Traffic;
use laxity_model::channels::clocks::Logical;
use laxity_model::channels::handler::Late;
use laxity_model::{Instant, Span};

use super::{Arrival, Lane, Pace, Passed, PerLane};
use crate::channels::frame::Data;

/// What became of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Forwarded {
    /// It waits for the next link.
    Queued,
    /// It has more bytes than a packet, and is dropped.
    Malformed,
    /// The channel was not granted so many, and it is dropped.
    Excess,
    /// It was late, and is dropped.
    Late,
    /// The channel's buffers are full, and it is dropped.
    NoBuffer,
}

/// A frame that is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    /// Which buffer.
    pub(super) place: u32,
    /// When it is current here.
    pub(super) logical: Logical,
    /// It had left the hop before after it was due there.
    pub(super) was_late: bool,
}

/// What a channel that passes was granted beside its delay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passes {
    /// What it may send; where it may be as several say, the one with the shortest interval.
    pub traffic: Traffic,
    /// Packets of its largest message, of all of these.
    pub packets: NonZeroU32,
    /// So many buffers for frames of each lane.
    pub buffers: PerLane<u32>,
    /// No frame comes earlier before it is current here: the delay of the hop before, and its horizon.
    pub earliest: Span,
    /// The link before takes no more than this of a frame that no hop sees.
    pub unseen: Span,
    /// In all, messages may come so much closer behind those of before.
    pub closer: Span,
}

/// How frames of a channel are let in, and kept.
#[derive(Clone, Debug)]
pub struct Relay {
    pub(super) packet_bytes: NonZeroU32,
    /// No frame comes earlier before it is current here.
    earliest: Span,
    pace: Pace,
    buffers: PerLane<Buffers>,
    passed: PerLane<Passed>,
}

/// The buffers of a lane, and which of them are free.
#[derive(Clone, Debug)]
struct Buffers {
    bytes: Box<[u8]>,
    free: Vec<u32>,
    /// So many may be taken at once.
    most: u32,
}

impl Buffers {
    fn are_full(&self, size: usize) -> bool {
        self.bytes.len() / size - self.free.len() >= self.most as usize
    }
}

impl Relay {
    /// With so many buffers for frames of each lane, of so many bytes; none comes earlier than `earliest` before it is current here: the delay of the hop before, and its horizon.
    #[must_use]
    pub fn new(
        packet_bytes: NonZeroU32,
        buffers: PerLane<u32>,
        earliest: Span,
        pace: Pace,
    ) -> Self {
        let buffers = buffers.map(|buffers| Buffers {
            bytes: vec![0; buffers as usize * packet_bytes.get() as usize].into(),
            free: (0..buffers).rev().collect(),
            most: buffers,
        });
        Self {
            packet_bytes,
            earliest,
            pace,
            buffers,
            passed: PerLane::default(),
        }
    }

    /// Something else is granted. Buffers that are no more the channel's stay allocated.
    pub(super) fn settle(&mut self, passes: &Passes) {
        let size = self.packet_bytes.get() as usize;
        for (of, more) in self.buffers.iter_mut().zip(passes.buffers) {
            let there = (of.bytes.len() / size) as u32;
            of.most = more;
            let mut bytes = std::mem::take(&mut of.bytes).into_vec();
            bytes.resize(size * there.max(more) as usize, 0);
            of.bytes = bytes.into();
            of.free.extend((there..more).rev());
        }
        self.earliest = passes.earliest;
        self.pace.settle(passes);
    }

    /// How many buffers each lane has.
    pub(super) fn room(&self) -> PerLane<u32> {
        self.buffers.each_ref().map(|buffers| buffers.most)
    }

    pub(super) const fn passed(&self, lane: Lane) -> Passed {
        self.passed[lane as usize]
    }

    /// A frame came then, and is to be kept until it leaves; or the reason why it is not.
    pub(super) fn comes(
        &mut self,
        now: Instant,
        came: &Arrival,
        data: &Data<'_>,
        (delay, late): (Span, Late),
    ) -> Result<Kept, Forwarded> {
        let lane = Lane::of(data.best_effort);
        let passed = &mut self.passed[lane as usize];
        passed.came += 1;
        let size = self.packet_bytes.get() as usize;
        if data.payload.len() > size {
            passed.malformed += 1;
            return Err(Forwarded::Malformed);
        }
        let (logical, is_believed) = came.logical(data, self.earliest);
        passed.disbelieved += u64::from(!is_believed);
        let buffers = &mut self.buffers[lane as usize];
        let is_full = buffers.are_full(size);
        if lane == Lane::RealTime {
            let due = logical.at.checked_add(delay);
            if late == Late::Discard && due.is_some_and(|due| due < now) {
                passed.late += 1;
                return Err(Forwarded::Late);
            }
            // What finds no buffer takes nothing of the grant.
            if !is_full && !self.pace.admits(logical.at) {
                passed.excess += 1;
                return Err(Forwarded::Excess);
            }
        }
        let place = if is_full { None } else { buffers.free.pop() };
        let Some(place) = place else {
            passed.no_buffer += 1;
            return Err(Forwarded::NoBuffer);
        };
        buffers.bytes[place as usize * size..][..data.payload.len()].copy_from_slice(data.payload);
        Ok(Kept {
            place,
            logical,
            was_late: data.earliness < 0,
        })
    }

    /// What is in a buffer, of which so many bytes count.
    pub(super) fn payload(&self, lane: Lane, place: u32, length: u32) -> &[u8] {
        let from = place as usize * self.packet_bytes.get() as usize;
        &self.buffers[lane as usize].bytes[from..][..length as usize]
    }

    /// The frame in a buffer has gone.
    pub(super) fn gone(&mut self, lane: Lane, place: u32) {
        self.buffers[lane as usize].free.push(place);
    }
}
