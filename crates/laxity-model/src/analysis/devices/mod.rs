//! Which reservation serves a device that fills and empties rings of samples at a constant rate.
//!
//! The question that Jones and Saroiu ask in §6.6 of "Predictability Requirements of a Soft Modem", and that they expect other soft
//! devices (DSL, audio) to pose "with different parameters as dictated by the particular buffer size and rate values".
//!
//! * [`two_line_model`]: the study's own answer, from share and gap alone.
//! * [`serves`]: the exact answer, from a supply and the rings; with the margins, or the block that comes too late.
//! * [`least_reservation`], [`least_reservations`], [`cheapest`]: what to ask for.
//! * [`propose`]: the same of a device whose calls were measured, with a margin.
//! * [`fit`]: several devices on one processor, with the slot table that serves them.

mod blocks;
mod choose;
mod fit;
mod propose;
mod serve;

pub use choose::{cheapest, least_reservation, least_reservations};
pub use fit::{Fit, Unfit, fit};
pub use propose::{MARGIN_PPM, Open, options, propose, with_margin};
pub use serve::{Answer, Late, Limit, Margins, serves};

use crate::analysis::Fraction;
use crate::{Reservation, Service, Span};

/// A device that moves samples at a constant rate and interrupts after every block of them.
///
/// At time kT the k-th block of B samples is complete and its work C is released; blocks are worked on in order, each as it comes or as
/// soon as those before it are done. When the work of a block completes, its B samples leave the input ring, and B samples are
/// appended to the output. Meanwhile:
///
/// * *Input*: a sample arrives every T/B. A ring of n samples *overflows* when n of them are unread, for then what is to be written
///   next overwrites the oldest ("this value … will wrap around to zero (indicating loss of data) should it ever reach 512", §6.1). So
///   a block's work must complete (n − B)·T/B after its interrupt.
/// * *Output*: a sample is sent every T/B. At a block's interrupt, all before it done, the driver is m samples ahead, its *lead*; the
///   output *underflows* when a sample is due that has not been appended: m·T/B after the interrupt, unless the work is
///   complete by then.
/// * *Calls*: while a block waits or is worked on, no stretch of more than g may pass without service.
///
/// What happens at the very instant of a limit is in time. Blocks need not be [alike](Self::uneven), and may be delivered [in pieces](Self::in_pieces).
///
/// ```
/// use laxity_model::analysis::devices::{Device, serves};
/// use laxity_model::analysis::supply::ExplicitDeadline;
/// use laxity_model::{Reservation, Service, Span};
///
/// // 1.84 ms of work every 12.5 ms for blocks of 90 samples; a ring of 512, and the output 104 samples ahead.
/// let modem = Device::duplex(Service::from_micros(1_840), Span::from_micros(12_500), 90, 512, 104)?;
/// let served = |x, y| {
///     let reservation = Reservation::new(Service::from_millis(x), Span::from_millis(y)).unwrap();
///     serves(&modem, &ExplicitDeadline::continuous(reservation)).map(|answer| answer.is_served())
/// };
/// assert_eq!(served(4, 16), Ok(true));
/// // Enough of the processor, but too seldom.
/// assert_eq!(served(7, 20), Ok(false));
/// # Ok::<(), laxity_model::analysis::devices::DeviceError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Device {
    work: Service,
    period: Span,
    block: u64,
    /// Samples from interrupt to interrupt, again and again in this order.
    blocks: [u64; 3],
    pieces: u64,
    ring: Option<u64>,
    lead: Option<u64>,
    longest_pause: Option<Span>,
}

/// Why numbers are no device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DeviceError {
    /// C is zero.
    #[error("the work for a block must be more than zero")]
    NoWork,
    /// T is zero.
    #[error("the time of a block must be more than zero")]
    NoPeriod,
    /// B is zero.
    #[error("a block must have a sample at least")]
    NoBlock,
    /// The ring is full, and so overflows, as soon as a block has arrived.
    #[error("an input ring of {ring} samples overflows with the first block of {block}")]
    Ring {
        /// n.
        ring: u64,
        /// B.
        block: u64,
    },
    /// m is zero.
    #[error("the output must be a sample ahead at least")]
    NoLead,
    /// Pieces must have a sample at least.
    #[error("a block of {block} samples cannot be delivered in {pieces} pieces")]
    Pieces {
        /// The shortest block.
        block: u64,
        /// How many.
        pieces: u64,
    },
    /// Uneven blocks have another mean.
    #[error("blocks of {} samples have not {block} on average", Listed(*blocks))]
    Blocks {
        /// The blocks.
        blocks: [u64; 3],
        /// B.
        block: u64,
    },
}

/// Writes "210, 210 and 180".
struct Listed([u64; 3]);

impl core::fmt::Display for Listed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let [first, second, third] = self.0;
        write!(f, "{first}, {second} and {third}")
    }
}

/// What making a device comes to.
type Result<T, E = DeviceError> = core::result::Result<T, E>;

impl Device {
    /// A device that is read: so much work for every block of `block` samples, which arrive in `period`, from a ring of `ring`.
    pub fn capture(work: Service, period: Span, block: u64, ring: u64) -> Result<Self> {
        Self::new(work, period, block, Some(ring), None)
    }

    /// A device that is written: so much work for every block of `block` samples, which are sent in `period`, `lead` ahead.
    pub fn playback(work: Service, period: Span, block: u64, lead: u64) -> Result<Self> {
        Self::new(work, period, block, None, Some(lead))
    }

    /// A device that is read and written, a block of each by the same work.
    pub fn duplex(work: Service, period: Span, block: u64, ring: u64, lead: u64) -> Result<Self> {
        Self::new(work, period, block, Some(ring), Some(lead))
    }

    fn new(
        work: Service,
        period: Span,
        block: u64,
        ring: Option<u64>,
        lead: Option<u64>,
    ) -> Result<Self> {
        if work.is_zero() {
            return Err(DeviceError::NoWork);
        }
        if period.is_zero() {
            return Err(DeviceError::NoPeriod);
        }
        if block == 0 {
            return Err(DeviceError::NoBlock);
        }
        if let Some(ring) = ring.filter(|ring| *ring <= block) {
            return Err(DeviceError::Ring { ring, block });
        }
        if lead == Some(0) {
            return Err(DeviceError::NoLead);
        }
        Ok(Self {
            work,
            period,
            block,
            blocks: [block; 3],
            pieces: 1,
            ring,
            lead,
            longest_pause: None,
        })
    }

    /// The same device, which besides must not be without service for more than this while it has work.
    #[must_use]
    pub const fn called_every(mut self, longest_pause: Span) -> Self {
        self.longest_pause = Some(longest_pause);
        self
    }

    /// The same device, whose blocks have so many samples, again and again in this order, and B on average. Samples come at the same rate, so that interrupts
    /// are as far apart as the block between them is long; the work for each block is the same.
    ///
    /// The lead of m samples is that behind the longest block; behind a shorter one the output is ahead by so many samples more. Which of the blocks
    /// is the first of a stretch of work is as unknown as its phase, so a block is due at the earliest time that any of the three makes it due.
    ///
    /// ```
    /// use laxity_model::analysis::devices::{Device, serves};
    /// use laxity_model::analysis::supply::ExplicitDeadline;
    /// use laxity_model::{Reservation, Service, Span};
    ///
    /// let even = Device::duplex(Service::from_micros(7_200), Span::from_micros(12_500), 200, 512, 200)?;
    /// let uneven = even.uneven([210, 210, 180])?;
    /// let reservation = Reservation::new(Service::from_millis(15), Span::from_millis(26)).unwrap();
    /// let served = |device: Device| {
    ///     let answer = serves(&device.in_pieces(8)?, &ExplicitDeadline::continuous(reservation));
    ///     Ok::<_, laxity_model::analysis::devices::DeviceError>(answer.unwrap().is_served())
    /// };
    /// assert!(served(even)?);
    /// // Behind one of 210 and one of 180, the third is due 10 samples sooner.
    /// assert!(!served(uneven)?);
    /// # Ok::<(), laxity_model::analysis::devices::DeviceError>(())
    /// ```
    pub fn uneven(self, blocks: [u64; 3]) -> Result<Self> {
        let (block, longest) = (self.block, blocks.into_iter().max().unwrap_or(0));
        if blocks.contains(&0) {
            return Err(DeviceError::NoBlock);
        }
        if blocks.into_iter().map(u128::from).sum::<u128>() != u128::from(block) * 3 {
            return Err(DeviceError::Blocks { blocks, block });
        }
        if let Some(ring) = self.ring.filter(|ring| *ring <= longest) {
            let block = longest;
            return Err(DeviceError::Ring { ring, block });
        }
        Self { blocks, ..self }.in_pieces(self.pieces)
    }

    /// The same device by another clock, by which a block takes so long on average.
    pub fn paced(self, period: Span) -> Result<Self> {
        if period.is_zero() {
            return Err(DeviceError::NoPeriod);
        }
        Ok(Self { period, ..self })
    }

    /// The same device, whose work delivers its output in so many equal pieces while it goes on, each as soon as it is computed.
    ///
    /// A piece of B/n samples, rounded so that all of a block are B, takes C/n of work, and is due by as many samples after the one before it as that has.
    /// *Its turn* comes by as many samples after the interrupt of its block as its block has before it. The samples of a block are taken to leave the input
    /// ring piece by piece too; where the work takes all of them when it begins, that is on the safe side.
    ///
    /// With a reservation X/Y and X/Y ≥ C/T, no piece of an even device is done later than Y − X + T/n after its turn: it waits for the longest gap, and its first
    /// sample for the rest of the piece. As n grows, [`serves`] and [`two_line_model`] become one.
    ///
    /// ```
    /// use laxity_model::analysis::devices::{Device, serves};
    /// use laxity_model::analysis::supply::ExplicitDeadline;
    /// use laxity_model::{Reservation, Service, Span};
    ///
    /// let modem = Device::duplex(Service::from_micros(1_840), Span::from_micros(12_500), 200, 512, 200)?;
    /// let two_of_thirteen = Reservation::new(Service::from_millis(2), Span::from_millis(13)).unwrap();
    /// let supply = ExplicitDeadline::continuous(two_of_thirteen);
    /// // Delivered whole, at the end of its work, a block is too late; in eight pieces none of them is.
    /// assert!(!serves(&modem, &supply).unwrap().is_served());
    /// assert!(serves(&modem.in_pieces(8)?, &supply).unwrap().is_served());
    /// # Ok::<(), laxity_model::analysis::devices::DeviceError>(())
    /// ```
    pub fn in_pieces(self, pieces: u64) -> Result<Self> {
        let block = self.blocks.into_iter().min().unwrap_or(0);
        if pieces == 0 || pieces > block {
            return Err(DeviceError::Pieces { block, pieces });
        }
        Ok(Self { pieces, ..self })
    }

    /// C: the most work for a block.
    pub const fn work(&self) -> Service {
        self.work
    }

    /// T: from interrupt to interrupt, on average of uneven blocks.
    pub const fn period(&self) -> Span {
        self.period
    }

    /// B: samples from interrupt to interrupt, on average of uneven blocks.
    pub const fn block(&self) -> u64 {
        self.block
    }

    /// Samples from interrupt to interrupt, again and again in this order.
    pub const fn blocks(&self) -> [u64; 3] {
        self.blocks
    }

    /// In how many pieces the work for a block delivers its output.
    pub const fn pieces(&self) -> u64 {
        self.pieces
    }

    /// n, if the device is read.
    pub const fn ring(&self) -> Option<u64> {
        self.ring
    }

    /// m, if the device is written.
    pub const fn lead(&self) -> Option<u64> {
        self.lead
    }

    /// g, if the device must be called so often.
    pub const fn longest_pause(&self) -> Option<Span> {
        self.longest_pause
    }

    /// C/T: the share of a processor that its work takes.
    pub fn share(&self) -> Fraction {
        let share = Fraction::new(self.work.as_nanos(), self.period.as_nanos());
        share.unwrap_or(Fraction::ONE)
    }

    /// A block's work must be complete this long after its interrupt, or the input ring overflows: (n − B)·T/B, in whole ticks; B of the longest block. Of
    /// a device in pieces that is so of the first of a block, and of the others after their turns.
    pub fn input_limit(&self) -> Option<Span> {
        let room = self.ring.map(|ring| ring - self.longest_block());
        room.map(|room| self.limit_of(room))
    }

    /// A block's work must be complete this long after its interrupt, or the output underflows: m·T/B, in whole ticks. Of a device in pieces that is so of
    /// the first of a block, and of the others after their turns.
    pub fn output_limit(&self) -> Option<Span> {
        self.lead.map(|lead| self.limit_of(lead))
    }

    /// Whether a block that is ever later makes the input overflow before the output underflows.
    fn overflows_first(&self) -> bool {
        let room = self.ring.map(|ring| ring - self.longest_block());
        room.is_some_and(|room| self.lead.is_none_or(|lead| room < lead))
    }

    fn longest_block(&self) -> u64 {
        self.blocks.into_iter().max().unwrap_or(self.block)
    }

    /// What takes longer than 584 years is no limit.
    fn limit_of(&self, samples: u64) -> Span {
        self.time_of(u128::from(samples)).unwrap_or(Span::MAX)
    }
}

/// The study's model of its modem, by the two lines of its figure 17.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TwoLines {
    /// X/Y ≥ C/T: on or above the line from the origin.
    pub is_enough: bool,
    /// Y − X ≤ g: on or left of the line of equal gaps.
    pub is_often_enough: bool,
}

impl TwoLines {
    /// Whether the model predicts that the device works.
    pub const fn is_served(&self) -> bool {
        self.is_enough && self.is_often_enough
    }
}

/// What the study's model (Jones, Saroiu §6.6, figure 17) predicts for a device with a reservation and nothing besides: it works if and
/// only if its share is no less than that of the work and its gap no longer than g, which is the time of a block unless
/// [`Device::called_every`] says otherwise.
///
/// An observation, not a proof: it knows no rings, and takes no account of the time that the work itself needs. Exact arithmetic, O(1).
///
/// ```
/// use laxity_model::analysis::devices::{Device, two_line_model};
/// use laxity_model::{Reservation, Service, Span};
///
/// let modem = Device::capture(Service::from_micros(1_840), Span::from_micros(12_500), 90, 512)?;
/// let two_of_fourteen = Reservation::new(Service::from_millis(2), Span::from_millis(14)).unwrap();
/// let lines = two_line_model(&modem, two_of_fourteen);
/// assert!(!lines.is_enough && lines.is_often_enough);
/// # Ok::<(), laxity_model::analysis::devices::DeviceError>(())
/// ```
pub fn two_line_model(device: &Device, reservation: Reservation) -> TwoLines {
    let longest_gap = device.longest_pause.unwrap_or(device.period);
    TwoLines {
        is_enough: Fraction::of(reservation.service(), reservation.period()) >= device.share(),
        is_often_enough: reservation.longest_gap() <= longest_gap,
    }
}
