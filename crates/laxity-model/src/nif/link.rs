//! What a driver asks of an interface: memory to receive into, what arrived and when, frames to send, and word when they are gone.
//!
//! Memory is owned: what was [posted](Link::post) or [sent](Link::send) is the interface's until it comes back with a packet or as
//! sent, and nobody else can touch it. An interface that the kernel fills itself receives straight into it (`AF_XDP`); others copy
//! once, from where the kernel keeps packets (`AF_PACKET`, TAP, UDP), into what was posted.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::registry::ClientId;
use crate::Instant;

/// Contiguous memory for one packet, in nobody else's hands.
pub trait Memory: Send {
    /// All of it, whatever is in use: its length is the most that fits.
    fn bytes(&self) -> &[u8];

    /// All of it, to write.
    fn bytes_mut(&mut self) -> &mut [u8];
}

impl Memory for Box<[u8]> {
    fn bytes(&self) -> &[u8] {
        self
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }
}

/// Where the instant of an arrival comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Stamp {
    /// A program at the interface's hook took it, before anything was queued.
    Hook,
    /// The kernel's stamp of a packet socket, which tells the time of day: converted, and so no better than that clock was steady meanwhile.
    PacketSocket,
    /// It was read then: it may have waited before.
    Read,
    /// The wire is emulated, and knows.
    Wire,
}

impl Stamp {
    /// Its number in a recorded [event](crate::EventKind::Arrive): 0 hook, 1 packet socket, 2 read, 3 wire.
    pub const fn code(self) -> u64 {
        match self {
            Self::Hook => 0,
            Self::PacketSocket => 1,
            Self::Read => 2,
            Self::Wire => 3,
        }
    }
}

/// A packet that arrived, in memory that was posted.
#[derive(Debug)]
pub struct Received<M> {
    /// It begins with the Ethernet header.
    pub memory: M,
    /// So many bytes of it are the packet.
    pub length: usize,
    /// On the clock of all instants.
    pub at: Instant,
    /// Who says so.
    pub stamp: Stamp,
    /// What is not in the packet yet, and whoever checks it has to know.
    pub left: Left,
    /// The client that the interface itself found for it, before anything was queued, and whose credit it took; `None`: it did not look.
    pub early: Option<u32>,
}

/// What the sender's kernel left to an interface that is none: such a packet never was on a wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Left {
    /// The checksum of its transport header is only begun.
    pub checksum: bool,
    /// It is longer than a packet may be, and would have been cut into segments with so many bytes of payload; 0: it would not.
    pub segment: u16,
}

/// What an interface carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Medium {
    /// Frames of Ethernet.
    Ethernet,
    /// Packets of IP, alone, from one end to the other: nobody has a hardware address, and nobody asks for one. Here each stands behind an Ethernet header all the same, so
    /// that keys, filters and captures need not know: the interface makes it up where a packet arrives, from its own address and another, and leaves it out where
    /// one is sent.
    Ip,
}

/// What an interface is and can do. What differs from run to run is not in here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    /// As the user may name it: `tap:lax0`.
    pub name: String,
    /// Its own address.
    pub address: [u8; 6],
    /// The longest packet behind an Ethernet header, in bytes.
    pub mtu: usize,
    /// Frames that may be below it after [`Link::send`], out of the driver's reach, until they are told as [sent](Link::sent); at least 1. One more
    /// is refused as [too many](LinkError::Full).
    pub reach: usize,
    /// What it carries.
    pub medium: Medium,
    /// Whether the kernel gets what arrives here too, and answers it.
    pub is_shared_with_kernel: bool,
    /// Whether a frame in [several pieces](Link::queue_gathered) costs no copy more than one in one piece.
    pub gathers: bool,
    /// Whether each frame that it sends is copied within this process, once, before the system has it.
    pub copies: bool,
}

/// The most pieces behind a frame's own memory.
pub const MOST_PIECES: usize = 8;

/// What an interface lost or refused below the driver, since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Losses {
    /// Packets that arrived and found none of the memory that was posted, or no room in the kernel.
    pub no_room: u64,
    /// Packets longer than the memory posted for them.
    pub too_long: u64,
    /// Whether a counter of the system's could not be read, so that there may be more.
    pub is_partial: bool,
}

/// An interface does not do what it was asked to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LinkError {
    /// It is down for now, and goes on by itself when it is up again. Nothing was sent.
    Down,
    /// It does not exist any more: all memory comes home.
    Gone,
    /// Nothing fits there now: try again when something was [sent](Link::sent).
    Full,
    /// Longer than it carries: so many bytes, of so many.
    TooLong(usize, usize),
    /// Shorter than an Ethernet header: so many bytes.
    TooShort(usize),
    /// What the system says.
    Failed(String),
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Down => write!(f, "the interface is down"),
            Self::Gone => write!(f, "the interface was deleted"),
            Self::Full => write!(f, "the interface takes no more frames now"),
            Self::TooLong(length, most) => {
                write!(f, "a frame of {length} bytes, where {most} is the most")
            }
            Self::TooShort(length) => {
                write!(f, "a frame of {length} bytes, which has no Ethernet header")
            }
            Self::Failed(why) => write!(f, "{why}"),
        }
    }
}

impl core::error::Error for LinkError {}

/// Copies pieces behind the first `length` bytes of this memory, and tells how many bytes those are together.
///
/// # Errors
///
/// [`LinkError::TooLong`]: nothing was copied.
pub fn copy_behind(
    memory: &mut impl Memory,
    length: usize,
    behind: &[&[u8]],
) -> Result<usize, LinkError> {
    let pieces = behind.iter().map(|piece| piece.len());
    let (whole, room) = (length.saturating_add(pieces.sum()), memory.bytes().len());
    if whole > room {
        return Err(LinkError::TooLong(whole, room));
    }
    let mut rest = &mut memory.bytes_mut()[length..];
    for piece in behind {
        let (here, further) = rest.split_at_mut(piece.len());
        here.copy_from_slice(piece);
        rest = further;
    }
    Ok(whole)
}

/// An interface, as its driver sees it. Nothing here waits.
///
/// A default is there only where it is made of the rest and promises no more than that does. What an interface says of itself it says by itself, so that one that stands in front of another
/// does not compile where it forgets to ask that.
pub trait Link {
    /// The memory that it receives into and sends from without another copy.
    type Memory: Memory;

    /// What it is.
    fn facts(&self) -> &Facts;

    /// Memory of its own kind for so many packets, or an error: never for fewer.
    ///
    /// # Errors
    ///
    /// [`LinkError::Failed`] where there is not so much; [`LinkError::Gone`].
    fn allocate(&mut self, packets: usize) -> Result<Vec<Self::Memory>, LinkError>;

    /// Gives memory to receive into.
    ///
    /// # Errors
    ///
    /// The memory itself, if no more can be posted now, or it is another interface's.
    fn post(&mut self, memory: Self::Memory) -> Result<(), Self::Memory>;

    /// The packet that arrived first of those that were not taken yet; `None` if there is none now.
    ///
    /// # Errors
    ///
    /// [`LinkError::Down`], told once each time it goes down; [`LinkError::Gone`]; [`LinkError::Failed`].
    fn receive(&mut self, now: Instant) -> Result<Option<Received<Self::Memory>>, LinkError>;

    /// Whether the last look for a packet took one, and threw it away, since there was no memory for it, or too little: it was counted as [lost](Self::losses), and there may be more.
    /// Such a look takes no more than one, so that who bounds how many packets are taken can count it.
    fn has_discarded(&self) -> bool;

    /// Sends the first `length` bytes of this.
    ///
    /// # Errors
    ///
    /// The memory, and why it was not taken.
    fn send(
        &mut self,
        memory: Self::Memory,
        length: usize,
        now: Instant,
    ) -> Result<(), (Self::Memory, LinkError)>;

    /// Sends as [`send`](Self::send) does, but it need not leave before the next [`flush`](Self::flush): many frames then take one call of the system. What
    /// is `left` of it the interface finishes, if it is one that [does](Self::finishes).
    ///
    /// # Errors
    ///
    /// As of [`send`](Self::send); [`LinkError::Failed`] of what would leave unfinished.
    fn queue(
        &mut self,
        memory: Self::Memory,
        length: usize,
        left: Left,
        now: Instant,
    ) -> Result<(), (Self::Memory, LinkError)> {
        if left == Left::default() {
            return self.send(memory, length, now);
        }
        let why = "this interface finishes neither checksums nor segments";
        Err((memory, LinkError::Failed(String::from(why))))
    }

    /// Queues one frame: the first `length` bytes of this memory, and behind them what lies elsewhere, in at most [`MOST_PIECES`], which are needed no more when
    /// this returns. Tells whether they were copied together for that, in this memory; an interface that [gathers](Facts::gathers) does so only where it is to
    /// finish what is `left`, or where the memory does not hold the Ethernet header.
    ///
    /// # Errors
    ///
    /// As of [`queue`](Self::queue).
    fn queue_gathered(
        &mut self,
        mut memory: Self::Memory,
        length: usize,
        behind: &[&[u8]],
        left: Left,
        now: Instant,
    ) -> Result<bool, (Self::Memory, LinkError)> {
        match copy_behind(&mut memory, length, behind) {
            Ok(whole) => self.queue(memory, whole, left, now).map(|()| true),
            Err(error) => Err((memory, error)),
        }
    }

    /// Has what was [queued](Self::queue) leave.
    ///
    /// # Errors
    ///
    /// [`LinkError::Down`]: what has not left leaves when it is up again; [`LinkError::Gone`]; [`LinkError::Failed`].
    fn flush(&mut self, now: Instant) -> Result<(), LinkError>;

    /// Whether checksums and segments may be [left](Left) to it, of what is [queued](Self::queue).
    fn finishes(&self) -> bool {
        false
    }

    /// Whether nobody is told when a frame has left: who wants to know looks, by [`sent`](Self::sent).
    fn is_silent(&self) -> bool;

    /// Memory of a frame that has left, the oldest first; `None` if there is none now. What was lost with a link that went down comes back too.
    fn sent(&mut self, now: Instant) -> Option<Self::Memory>;

    /// Whether the frame that was told last as [sent](Self::sent) was thrown away below instead, as far as the system tells: as there was no carrier, or no room in the device.
    fn has_thrown_away(&self) -> bool;

    /// The driver has unregistered a client: packets that the interface [finds](Received::early) by itself are not that client's any more.
    fn ended(&mut self, client: ClientId);

    /// Memory that it still holds after it is [gone](LinkError::Gone), one by one.
    fn reclaim(&mut self) -> Option<Self::Memory>;

    /// What it lost so far.
    fn losses(&self) -> Losses;
}
