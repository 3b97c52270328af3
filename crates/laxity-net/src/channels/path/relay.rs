//! A channel that passes a host: frames that come, until they leave by the next link.

use core::num::NonZeroU32;

use laxity_model::channels::handler::Late;
use laxity_model::{Instant, Span};

use super::{Lane, Pace, Passed, PerLane, logical};
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
    pub(super) logical: Instant,
    /// It had left the hop before after it was due there.
    pub(super) was_late: bool,
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
        });
        Self {
            packet_bytes,
            earliest,
            pace,
            buffers,
            passed: PerLane::default(),
        }
    }

    /// How many buffers each lane has.
    pub(super) fn room(&self) -> PerLane<u32> {
        let size = self.packet_bytes.get() as usize;
        // As many as it was made with, which is a number of 32 bits.
        self.buffers
            .each_ref()
            .map(|buffers| (buffers.bytes.len() / size) as u32)
    }

    pub(super) const fn passed(&self, lane: Lane) -> Passed {
        self.passed[lane as usize]
    }

    /// A frame came then, and is to be kept until it leaves; or the reason why it is not.
    pub(super) fn comes(
        &mut self,
        now: Instant,
        came: Instant,
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
        let (logical, is_believed) = logical(came, data.earliness, self.earliest);
        passed.disbelieved += u64::from(!is_believed);
        let buffers = &mut self.buffers[lane as usize];
        if lane == Lane::RealTime {
            let due = logical.checked_add(delay);
            if late == Late::Discard && due.is_some_and(|due| due < now) {
                passed.late += 1;
                return Err(Forwarded::Late);
            }
            // What finds no buffer takes nothing of the grant.
            if !buffers.free.is_empty() && !self.pace.admits(logical) {
                passed.excess += 1;
                return Err(Forwarded::Excess);
            }
        }
        let Some(place) = buffers.free.pop() else {
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
