//! From what an application needs of a stream to what its upcalls are, and what they need of the link and of memory.
//!
//! Gopalakrishnan, Parulkar, "Real-time Upcalls", WUCS-95-06, 1995: §2 has four classes of applications (*specification*) and asks that bandwidth, pacing, processing and memory be
//! derived from them (*mapping*); §2.1 derives them for continuous media. How the other classes are mapped it leaves to a report that we do not have; that is ours.
//!
//! §2.1: a PDU of S bytes on a connection of W bytes a second is drained in S / W. Processing keeps up if it makes a *batch* of B_p PDUs in each period T = B_p · S / W, due when the next one begins; it
//! takes C = B_p · c, where c is what a PDU [costs](Cost). The same holds where they are received. From that follows what a delay allows. A frame of k PDUs that comes into being just after a release waits up to T
//! for the next, and takes n = ⌈k / B_p⌉ of them, the last of which is over when it is due; if n · T is no more than the time between two frames, none waits for the one before. The link drains what a call has made within a period
//! after that call was due, and as that is never more than B_p in T, each release of the receiver finds no more than one call can do: up to T until it, and T until that is due. From end to end, with a link that takes up to L,
//!
//! > delay ≤ (n + 4) · T + L,
//!
//! whatever the phases of both to each other and to the frames, once the receiver's runs. How many wait at the receiver, just before the end of one of its calls: those that came since the release of the call before, by which that one may have begun, 2 · T ago.
//! What had come by then lacks at the most what the link, at its slowest, has left of the sender's last two calls; what has come now is at the most all of the calls released until J before, if the link has been fast since. Both together, of a link that sends a PDU each S / W or sooner, now this and now that:
//!
//! > 4 · B_p + ⌈J · W / S⌉
//!
//! PDUs, or one less. Of all (n, B_p, T) that keep to the delay, [`map`] takes the one that needs the least of the processor.

mod cost;
mod map;

use alloc::vec::Vec;
use core::num::{NonZeroU32, NonZeroU64};

pub use cost::Cost;
pub use map::map;

use super::Overhead;
use crate::executor::pacing::OnOverrun;
use crate::program::upcall::{First, Timing};
use crate::{Service, Span};

/// What an application needs of a stream (§2, "QoS specification").
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Frames at a rate of their own, as of video or sound.
    ContinuousMedia {
        /// The largest frame that is to arrive: for compressed frames what a [tolerated loss](provisioned) leaves.
        frame_bytes: NonZeroU32,
        /// From frame to frame, at the least.
        every: Span,
        /// From when a frame is there at its source until it is there whole where it is shown, at the most.
        delay: Span,
    },
    /// A large amount, as of a file: it may take its time.
    Bulk {
        /// At the least.
        bytes_per_second: NonZeroU64,
    },
    /// Small requests, each to be answered soon.
    Transactions {
        /// A request, or its answer if that is larger.
        bytes: NonZeroU32,
        /// From request to request, at the least; those that come sooner wait.
        every: Span,
        /// From when a request arrives until it is answered, both here, at the most.
        response: Span,
    },
    /// Messages at a high rate.
    Messages {
        /// The largest.
        bytes: NonZeroU32,
        /// At the most.
        per_second: NonZeroU32,
        /// From when a message is sent until the receiver has it, at the most.
        delay: Span,
    },
}

/// What PDUs are sent over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Path {
    /// The most that a PDU carries.
    pub pdu_bytes: NonZeroU32,
    /// What it has besides, which the connection carries and nobody works on.
    pub header_bytes: u32,
    /// From when its last byte has left until it is at the receiver, at the most.
    pub latency: Span,
    /// By how much less that may be.
    pub jitter: Span,
}

/// Within what upcalls are to be, for the sake of the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The longest without a look for a yield: so long may others wait.
    pub quantum: Service,
    /// The shortest period.
    pub shortest: Span,
    /// The longest, which needs the largest buffers.
    pub longest: Span,
    /// What a call takes besides its PDUs.
    pub call: Service,
}

impl Default for Limits {
    /// A look every 0.2 ms, periods of 1 to 40 ms, and what admission charges a call.
    fn default() -> Self {
        Self {
            quantum: Service::from_micros(200),
            shortest: Span::from_millis(1),
            longest: Span::from_millis(40),
            call: Overhead::default().each,
        }
    }
}

/// So many PDUs must have room, if all are in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buffers {
    /// That the sender's upcall has not worked on.
    pub send: u64,
    /// That the sender's link has not sent, if that sends one each [`Mapping::spacing`].
    pub link: u64,
    /// That the receiver's upcall has not worked on, whether the link keeps to that, is faster, or now this and now that.
    pub receive: u64,
}

/// What releases a mapped upcall.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Release {
    /// Time: every period.
    Timer,
    /// What arrives: no sooner than a period after the release before.
    Arrivals,
}

/// What a stream needs of the processor, the link and of memory: the same at both of its ends, each with its own costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// T, from release to release.
    pub period: Span,
    /// From a release until its call is due.
    pub deadline: Span,
    /// B_p, PDUs a period.
    pub batch: NonZeroU32,
    /// b_p, PDUs between two looks for a yield.
    pub quantum: NonZeroU32,
    /// c, what a PDU takes at the most.
    pub service: Service,
    /// What releases it.
    pub release: Release,
    /// S, the most that a PDU carries.
    pub pdu_bytes: NonZeroU32,
    /// PDUs of a frame, a message or a request.
    pub unit_pdus: NonZeroU32,
    /// From PDU to PDU on the link.
    pub spacing: Span,
    /// W, of the connection, headers and all.
    pub bytes_per_second: u64,
    /// In PDUs of this size.
    pub buffers: Buffers,
    /// What a delay, or a response, comes to at the most; `None` where none is asked for.
    pub delay: Option<Span>,
}

/// A late call is followed by so many more at most. What they were to do waits in a buffer, where it would stay if releases were skipped: there is hardly more capacity than is needed.
const CATCH_UP: u32 = 8;

impl Mapping {
    /// When its upcall is called, and how much it does then; the first release is a period after it begins.
    pub const fn timing(&self) -> Timing {
        Timing {
            first: First::AfterAPeriod,
            period: self.period,
            batch: self.batch,
            quantum: self.quantum,
            on_overrun: OnOverrun::CatchUp { at_most: CATCH_UP },
            pauses: false,
        }
    }

    /// What it carries at the most, without headers, rounded down.
    pub fn throughput(&self) -> u64 {
        let bytes = u128::from(self.batch.get()) * u128::from(self.pdu_bytes.get());
        (bytes * 1_000_000_000 / u128::from(self.period.as_nanos())) as u64
    }
}

/// Why a class cannot be mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unmappable {
    /// Something is no time at all, or no cost.
    #[error("{0} must be more than zero")]
    Zero(&'static str),
    /// The limits contradict each other.
    #[error("the shortest period, {shortest}, is longer than the longest, {longest}")]
    Limits {
        /// The shortest.
        shortest: Span,
        /// The longest.
        longest: Span,
    },
    /// A PDU without a byte in it takes longer than a quantum may.
    #[error(
        "a PDU takes {each} and more, whatever it carries, and a quantum may take {quantum}: say more, or make the work on a PDU shorter"
    )]
    PduTooDear {
        /// What a PDU takes, without its bytes.
        each: Service,
        /// What a quantum may take.
        quantum: Service,
    },
    /// Nothing arrives as soon as that.
    #[error(
        "a delay of {delay} cannot be kept: with calls no more often than every {shortest} it is up to {least}"
    )]
    TooSoon {
        /// What is asked for.
        delay: Span,
        /// The shortest period.
        shortest: Span,
        /// The least that could be asked for.
        least: Span,
    },
    /// Requests come more often than upcalls may be called.
    #[error(
        "requests every {every} are more often than the shortest period, {shortest}: many at once are messages"
    )]
    TooOften {
        /// From request to request.
        every: Span,
        /// The shortest period.
        shortest: Span,
    },
    /// There is no such processor.
    #[error("it takes {needs} of every {of}, which is more than there is")]
    TooMuch {
        /// What its PDUs take.
        needs: Service,
        /// Until they are due.
        of: Span,
    },
    /// A number is beyond what can be counted.
    #[error("{0} is more than can be counted")]
    TooLarge(&'static str),
    /// Samples of one size tell nothing of others; and there must be one at least.
    #[error("PDUs of two sizes at least must be measured")]
    TooFewSizes,
}

/// The size that no more than `loss_ppm` parts per million of these frames exceed: what is to be provided for where so many may be lost, as those of compressed video, where the largest is
/// many times the usual one (§2.1, "the estimate of compressed frame sizes"). `None` if there is no frame, or all of those that may not be lost are empty.
#[must_use]
pub fn provisioned(frame_bytes: &[u32], loss_ppm: u32) -> Option<NonZeroU32> {
    let mut sizes = Vec::from(frame_bytes);
    sizes.sort_unstable();
    let lost = frame_bytes.len() as u128 * u128::from(loss_ppm.min(1_000_000)) / 1_000_000;
    let kept = sizes.len().checked_sub(1 + lost as usize)?;
    NonZeroU32::new(sizes[kept])
}
