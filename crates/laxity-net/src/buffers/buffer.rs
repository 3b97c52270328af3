//! One linear buffer, by its state.

use std::fmt;
use std::sync::Arc;

use laxity_model::nif::link::{Left, LinkError, MOST_PIECES, Memory, Received, Stamp};
use laxity_model::nif::urgency::Due;
use laxity_model::{Instant, Priority};

use super::message::{Gathered, Message};
#[cfg(doc)]
use super::pool::Pool;
use super::shared::{Frame, Held};

/// Why there is no buffer, or why one cannot go where it was to go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unavailable {
    /// Nothing is free in the pool.
    #[error("no buffer is free")]
    NoneFree,
    /// The client has ended, or its driver.
    #[error("the client has ended")]
    Closed,
    /// The buffer's memory is of its client's own kind, which no interface sends from.
    #[error("a buffer of the client's own kind cannot be sent")]
    NoInterface,
    /// More pieces than a frame may have.
    #[error("{0} pieces, where {MOST_PIECES} are the most")]
    TooManyPieces(usize),
    /// More than fits.
    #[error("{length} bytes, where {room} fit")]
    TooLong {
        /// So many bytes.
        length: usize,
        /// Of so many.
        room: usize,
    },
}

/// A buffer that comes back, as it did not go where it was to go.
pub struct Back<B> {
    /// As it was.
    pub buffer: B,
    /// Why.
    pub why: Unavailable,
}

impl<B> fmt::Debug for Back<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Back")
            .field("why", &self.why)
            .finish_non_exhaustive()
    }
}

/// Nothing is in it.
#[derive(Clone, Copy, Debug)]
pub struct Empty(());

/// A packet is in it.
#[derive(Clone, Copy, Debug)]
pub struct Filled {
    length: usize,
    arrived: Option<Arrived>,
    due: Option<Due>,
}

/// When a packet arrived, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrived {
    /// On the clock of all instants.
    pub at: Instant,
    /// Who says so.
    pub stamp: Stamp,
    /// What is not in the packet yet.
    pub left: Left,
}

impl<M> From<&Received<M>> for Arrived {
    fn from(packet: &Received<M>) -> Self {
        Self {
            at: packet.at,
            stamp: packet.stamp,
            left: packet.left,
        }
    }
}

/// How a frame is to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sending {
    /// How urgent it is among others, where the driver sends by priority.
    pub priority: Priority,
    /// When it should have left; [`Instant::MAX`]: whenever.
    pub due: Instant,
    /// By what its client knows it when it is [told](crate::Client::sent) that it has left.
    pub tag: u64,
    /// What its interface is to finish, if it can: its checksum is begun, and it may be as long as a buffer is.
    pub left: Left,
}

impl Default for Sending {
    fn default() -> Self {
        Self {
            priority: Priority::NORMAL,
            due: Instant::MAX,
            tag: 0,
            left: Left::default(),
        }
    }
}

/// A linear buffer (§2.3): contiguous memory of a pool, in one pair of hands. Let go of, it comes home, and wakes whoever waits for one.
/// That costs some atomic operations, and never waits.
pub struct Buffer<M: Memory, S> {
    held: Held<M>,
    state: S,
}

impl<M: Memory, S> Buffer<M, S> {
    /// The most bytes that fit.
    pub fn room(&self) -> usize {
        self.held.bytes().len()
    }
}

impl<M: Memory> Buffer<M, Empty> {
    pub(crate) const fn empty(held: Held<M>) -> Self {
        Self {
            held,
            state: Empty(()),
        }
    }

    /// Its memory, to write a packet into before it is [filled](Self::filled). What is there is left over from its own client, or zeros: those are written here where another
    /// client's memory has come with a packet since.
    pub fn space(&mut self) -> &mut [u8] {
        let room = self.room();
        self.held.wiped(room)
    }

    /// So much of its memory, for one of us who writes all of it; `None`: it has not so much.
    pub(crate) fn room_for(&mut self, length: usize) -> Option<&mut [u8]> {
        if length <= self.room() {
            self.held.knows(length);
        }
        self.held.bytes_mut().get_mut(..length)
    }

    /// Gives it to the driver that its pool was made at, which hands one over with a packet for it. Never waits.
    ///
    /// # Errors
    ///
    /// [`Unavailable::Closed`], with the buffer.
    pub fn give(self) -> Result<(), Back<Self>> {
        self.held.give().map_err(|held| Back {
            buffer: Self::empty(held),
            why: Unavailable::Closed,
        })
    }

    /// The first `length` bytes of it are a packet, as they are in [`space`](Self::space).
    ///
    /// # Errors
    ///
    /// [`Unavailable::TooLong`], with the buffer.
    pub fn filled(mut self, length: usize) -> Result<Buffer<M, Filled>, Back<Self>> {
        let room = self.room();
        if length > room {
            let why = Unavailable::TooLong { length, room };
            return Err(Back { buffer: self, why });
        }
        self.held.wiped(length);
        Ok(Buffer {
            held: self.held,
            state: Filled {
                length,
                arrived: None,
                due: None,
            },
        })
    }

    /// With a copy of these bytes.
    ///
    /// # Errors
    ///
    /// [`Unavailable::TooLong`], with the buffer.
    pub fn fill(mut self, bytes: &[u8]) -> Result<Buffer<M, Filled>, Back<Self>> {
        if let Some(space) = self.room_for(bytes.len()) {
            space.copy_from_slice(bytes);
        }
        self.filled(bytes.len())
    }

    /// With a copy of all pieces of a message, one behind the other.
    ///
    /// # Errors
    ///
    /// [`Unavailable::TooLong`], with the buffer.
    pub fn fill_with(
        mut self,
        message: &(impl Message + ?Sized),
    ) -> Result<Buffer<M, Filled>, Back<Self>> {
        match message.copy_to(self.space()) {
            Ok(length) => self.filled(length),
            Err(why) => Err(Back { buffer: self, why }),
        }
    }
}

impl<M: Memory> Buffer<M, Filled> {
    pub(crate) fn received(mut held: Held<M>, length: usize, arrived: Arrived) -> Self {
        held.is_held();
        held.knows(length);
        Self {
            held,
            state: Filled {
                length,
                arrived: Some(arrived),
                due: None,
            },
        }
    }

    /// The packet.
    pub fn bytes(&self) -> &[u8] {
        &self.held.bytes()[..self.state.length]
    }

    /// The packet, to change.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.held.bytes_mut()[..self.state.length]
    }

    /// When it arrived, and how; `None` if it never did.
    pub const fn arrived(&self) -> Option<Arrived> {
        self.state.arrived
    }

    /// When it is due, where its client [says so](crate::clients::due).
    pub const fn due(&self) -> Option<Due> {
        self.state.due
    }

    pub(crate) const fn set_due(&mut self, due: Due) {
        self.state.due = Some(due);
    }

    /// What the event of [its delivery](laxity_model::EventKind::Deliver) says of it: when it arrived, and its bytes.
    pub fn as_delivered(&self, now: Instant) -> [u64; 2] {
        let arrived = self.arrived().map_or(now, |arrived| arrived.at);
        [arrived.as_nanos(), self.bytes().len() as u64]
    }

    /// Cuts it, or takes in what is behind it: what its own client left there, or zeros.
    ///
    /// # Errors
    ///
    /// [`Unavailable::TooLong`]: nothing has changed.
    pub fn set_length(&mut self, length: usize) -> Result<(), Unavailable> {
        let room = self.room();
        if length > room {
            return Err(Unavailable::TooLong { length, room });
        }
        self.held.wiped(length);
        self.state.length = length;
        Ok(())
    }

    /// Nothing in it is needed any more.
    pub fn emptied(self) -> Buffer<M, Empty> {
        Buffer::empty(self.held)
    }

    /// Sends it, and goes on: its client is [told](crate::Client::sent) when it has left, and the buffer is home then. Never waits.
    ///
    /// # Errors
    ///
    /// [`Unavailable::Closed`] or [`Unavailable::NoInterface`], with the buffer.
    pub fn send(self, sending: Sending) -> Result<(), Back<Self>> {
        self.send_as(sending, false, false).map(drop)
    }

    /// Sends it with these pieces behind it, at most [`MOST_PIECES`], as one frame, which fits into it. An interface that
    /// [gathers](laxity_model::nif::link::Facts::gathers) takes them from where they are; for another the driver has them copied behind what is in the buffer,
    /// and [counts](crate::Driver::handed) that. Who takes or gives the buffer next lets go of them.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use laxity_net::buffers::{Gathered, Sending};
    /// # use laxity_model::{Instant, nif::registry::Circuits};
    /// # use laxity_net::{buffers::PoolSize, clients::late, emulated::Null};
    /// # use laxity_net::driver::{Driver, Host, Interest, Limits};
    /// # let mut driver = Driver::new(Null::new(0), Circuits::default(), Limits::default(), Host::default())?;
    /// # let client = late::client(0, &Host::default().sleeper).0;
    /// # let pool = driver.register(Interest::Nothing, PoolSize::fixed(1), client)?.pool;
    /// let image: Arc<[u8]> = Arc::new([7; 1_000]); // others may send it, too
    /// let header = pool.take()?.fill(&[0; 14]).map_err(|back| back.why)?;
    /// let behind = Gathered::default().with(Arc::clone(&image));
    /// header.send_gathered(behind, Sending::default()).map_err(|back| back.why)?;
    /// driver.poll(Instant::ZERO, &mut ())?;
    /// assert_eq!(driver.handed().gathered, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As of [`send`](Self::send), [`Unavailable::TooManyPieces`] and [`Unavailable::TooLong`], with both.
    pub fn send_gathered(
        self,
        behind: Gathered<'static>,
        sending: Sending,
    ) -> Result<(), Back<(Self, Gathered<'static>)>> {
        let (pieces, room) = (behind.pieces().count(), self.room());
        let length = behind.length().saturating_add(self.state.length);
        let may = match self.held.may_send() {
            Ok(()) if pieces > MOST_PIECES => Err(Unavailable::TooManyPieces(pieces)),
            Ok(()) if length > room => Err(Unavailable::TooLong { length, room }),
            may => may,
        };
        if let Err(why) = may {
            let buffer = (self, behind);
            return Err(Back { buffer, why });
        }
        let Self { mut held, .. } = self;
        held.put_behind(behind);
        held.send(Frame {
            length,
            sending,
            is_gathered: true,
            ..Frame::default()
        });
        Ok(())
    }

    /// Sends it, of which the driver learns when [that is said](Pool::announce).
    pub(crate) fn send_quietly(self, sending: Sending) -> Result<(), Back<Self>> {
        self.send_as(sending, false, true).map(drop)
    }

    /// Sends it, and waits until it has left, or will not. The driver must be served by another thread.
    ///
    /// ```
    /// use laxity_net::buffers::Sending;
    /// # use laxity_model::{Instant, nif::registry::Circuits};
    /// # use laxity_net::{buffers::PoolSize, clients::late, emulated::Null};
    /// # use laxity_net::driver::{Driver, Host, Interest, Limits};
    /// # let mut driver = Driver::new(Null::new(0), Circuits::default(), Limits::default(), Host::default())?;
    /// # let client = late::client(0, &Host::default().sleeper).0;
    /// # let pool = driver.register(Interest::Nothing, PoolSize::fixed(1), client)?.pool;
    /// let filled = pool.take()?.fill(&[0; 60]).map_err(|back| back.why)?;
    /// let waits = std::thread::spawn(|| filled.send_and_wait(Sending::default()).map_err(|back| back.why));
    /// while !waits.is_finished() {
    ///     driver.poll(Instant::ZERO, &mut ())?;
    /// }
    /// let sent = waits.join().expect("it does not panic")?;
    /// sent.outcome?;
    /// sent.buffer.give().map_err(|back| back.why)?; // or it is filled and sent again
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Unavailable::Closed`] or [`Unavailable::NoInterface`], with the buffer.
    pub fn send_and_wait(self, sending: Sending) -> Result<Sent<M>, Back<Self>> {
        let pool = Arc::clone(self.held.pool());
        let index = self.send_as(sending, true, false)?;
        let (held, outcome) = pool.wait_sent(index);
        let buffer = Buffer::empty(held);
        Ok(Sent { buffer, outcome })
    }

    fn send_as(
        self,
        sending: Sending,
        is_awaited: bool,
        is_quiet: bool,
    ) -> Result<u32, Back<Self>> {
        if let Err(why) = self.held.may_send() {
            return Err(Back { buffer: self, why });
        }
        Ok(self.held.send(Frame {
            length: self.state.length,
            sending,
            is_awaited,
            is_quiet,
            ..Frame::default()
        }))
    }
}

/// A frame that somebody waited for is done.
pub struct Sent<M: Memory> {
    /// What it was sent from.
    pub buffer: Buffer<M, Empty>,
    /// Whether it has left.
    pub outcome: Result<(), LinkError>,
}

impl<M: Memory> Message for Buffer<M, Filled> {
    fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(self.bytes())
    }
}
