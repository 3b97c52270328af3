//! An application's end of a channel.

use std::num::NonZeroU32;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{self, sync_channel};
use std::sync::{Arc, OnceLock};

use laxity_linux::host::ring::Ring;
use laxity_model::channels::admission::Traffic;
use laxity_model::channels::asked::{Asked, Name};
use laxity_model::channels::ring::{self, Refused, Shape, Side, Tag};
use laxity_model::channels::signalling::{Cause, ChannelId};
use laxity_model::{Grade, Instant, Span};
use laxity_net::channels::node::EndCounts;
use laxity_net::channels::path::{Began, Came, Ended, Lane, Packets};
use laxity_net::channels::told::{LENGTH, Told};

use super::client::Shared;
use super::core::{Core, Settled, Settles};
use super::error::Error;
use super::{Asks, Granted};

/// Both sides of a ring: the application's and the node's.
pub(super) fn rings(shape: Shape, application: Side) -> Result<[Ring; 2], Error> {
    let other = match application {
        Side::Sender => Side::Receiver,
        Side::Receiver => Side::Sender,
    };
    let (own, descriptors) = Ring::create(shape, application)?;
    let nodes = Ring::attach(shape, other, descriptors)?;
    Ok([own, nodes])
}

/// What a channel's ends and its node know of each other, beside the ring.
#[derive(Debug)]
pub(super) struct Life {
    pub(super) channel: ChannelId,
    pub(super) cause: OnceLock<Cause>,
    reach: Reach,
}

/// How an application reaches its node.
#[derive(Debug)]
pub(super) enum Reach {
    /// In its own process.
    Node(Arc<Asks>),
    /// By a socket, where the channel has this number.
    Line(Arc<Shared>, u32),
}

impl Life {
    pub(super) const fn new(channel: ChannelId, asks: Arc<Asks>) -> Self {
        Self::reached(channel, Reach::Node(asks))
    }

    pub(super) const fn reached(channel: ChannelId, reach: Reach) -> Self {
        Self {
            channel,
            cause: OnceLock::new(),
            reach,
        }
    }

    fn error(&self) -> Error {
        match &self.reach {
            Reach::Node(_) => (self.cause.get()).map_or(Error::Broken, |one| Error::Over(*one)),
            Reach::Line(shared, _) => shared.error(self),
        }
    }

    fn counts(&self, lane: Lane) -> Result<EndCounts, Error> {
        let Reach::Node(asks) = &self.reach else {
            return Err(Error::NoCounts);
        };
        let channel = self.channel;
        let asked = asks.ask(move |core: &mut Core| core.counts(channel, lane));
        asked.wait()?.ok_or_else(|| self.error())
    }

    pub(super) fn close(&self) {
        match &self.reach {
            Reach::Node(asks) => {
                let channel = self.channel;
                // Nobody waits for that.
                drop(asks.ask(move |core: &mut Core| core.close(channel, false)));
            }
            Reach::Line(shared, number) => shared.close(*number),
        }
    }
}

/// The end by which messages are sent. Dropped, the channel is closed.
#[derive(Debug)]
pub struct Sender {
    ring: ring::Sender<Ring>,
    life: Arc<Life>,
    /// `None`: its node knows.
    asked: Option<Asked>,
    granted: Granted,
    grade: Grade,
}

/// Why a message was not sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The node has taken none of those before yet: it waits, or it has to.
    #[error("as many messages wait as may")]
    Full,
    /// It has more bytes than any message of the channel.
    #[error("a message of {0} bytes is longer than any of the channel")]
    TooLong(usize),
    /// The channel is over, and why.
    #[error(transparent)]
    Over(Error),
}

/// A message that is written where it is sent from.
#[derive(Debug)]
pub struct Loan<'a>(ring::Loan<'a, Ring>);

impl Loan<'_> {
    /// Writes bytes from the `at`-th on.
    ///
    /// # Panics
    ///
    /// They reach beyond the longest message of the channel.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        self.0.write(at, bytes);
    }

    /// Sends its first `length` bytes.
    ///
    /// # Panics
    ///
    /// No message of the channel is so long.
    pub fn send(self, length: u32) {
        self.0.commit(length, Tag::default());
    }
}

impl Sender {
    pub(super) fn new(
        ring: ring::Sender<Ring>,
        life: Arc<Life>,
        asked: Option<Asked>,
        (granted, grade): (Granted, Grade),
    ) -> Self {
        Self {
            ring,
            life,
            asked,
            granted,
            grade,
        }
    }

    /// Whether its node enforced that when it was granted; else why not.
    #[must_use]
    pub const fn grade(&self) -> &Grade {
        &self.grade
    }

    /// What was granted.
    #[must_use]
    pub const fn granted(&self) -> &Granted {
        &self.granted
    }

    /// By which name all hosts know the channel.
    #[must_use]
    pub fn channel(&self) -> ChannelId {
        self.life.channel
    }

    /// Sends a message. No system call while the node is awake. O(bytes).
    ///
    /// # Errors
    ///
    /// [`SendError`]: it was not sent.
    pub fn send(&mut self, message: &[u8]) -> Result<(), SendError> {
        let sent = self.ring.send(message, Tag::default());
        sent.map_err(|refused| Self::error(&self.life, refused))
    }

    /// Sends a message, and waits until there is room for it, no longer than until then.
    ///
    /// # Errors
    ///
    /// [`SendError`]: it was not sent.
    pub fn send_until(&mut self, message: &[u8], until: Option<Instant>) -> Result<(), SendError> {
        let room = self.ring.wait(until);
        room.map_err(|refused| Self::error(&self.life, refused))?;
        self.send(message)
    }

    /// A message that is to be written in place.
    ///
    /// # Errors
    ///
    /// [`SendError`].
    pub fn loan(&mut self) -> Result<Loan<'_>, SendError> {
        let life = &self.life;
        let loan = self.ring.loan();
        loan.map(Loan).map_err(|refused| Self::error(life, refused))
    }

    fn error(life: &Life, refused: Refused) -> SendError {
        match refused {
            Refused::Full | Refused::Held => SendError::Full,
            Refused::TooLong(bytes) => SendError::TooLong(bytes),
            Refused::Broken | Refused::Ended => SendError::Over(life.error()),
        }
    }

    /// The channel is to carry something else, of no longer messages, or to be there within another time. Waits for what becomes of that; where it is refused all stays as it was.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`], [`Error::NotNow`], or the channel or the node has ended.
    pub fn change(&mut self, traffic: Traffic, within: Span) -> Result<&Granted, Error> {
        match &self.life.reach {
            Reach::Line(shared, number) => {
                (self.granted, self.grade) = shared.change(*number, traffic, within)?;
            }
            Reach::Node(asks) => {
                let asked = self.asked.as_mut().ok_or(Error::Broken)?;
                let wanted = Asked {
                    traffic,
                    ..asked.clone()
                };
                let channel = self.life.channel;
                let (settles, settled) = waits();
                let changes = wanted.clone();
                let begun =
                    asks.ask(move |core: &mut Core| core.change(channel, changes, within, settles));
                begun.wait()??;
                self.granted = settled.recv().map_err(|_| Error::Ended)??;
                *asked = wanted;
            }
        }
        Ok(&self.granted)
    }

    /// What came of its messages here by one of the lanes, and of their packets: `None` where it has no such one. Messages that are longer than any of the channel it has refused itself.
    ///
    /// # Errors
    ///
    /// The channel has ended, and its counts with it, or the node; [`Error::NoCounts`] where the node is in another process.
    pub fn counts(&self, lane: Lane) -> Result<(Option<Began>, Packets), Error> {
        match self.life.counts(lane)? {
            EndCounts::Begins(began, packets) => Ok((began, packets)),
            EndCounts::Passes(..) | EndCounts::Ends(..) => Err(Error::Broken),
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.life.close();
    }
}

/// The end at which messages are received. Dropped, the channel is closed.
#[derive(Debug)]
pub struct Receiver {
    ring: ring::Receiver<Ring>,
    life: Arc<Life>,
    asked: Asked,
}

impl Receiver {
    pub(super) const fn new(ring: ring::Receiver<Ring>, life: Arc<Life>, asked: Asked) -> Self {
        Self { ring, life, asked }
    }

    /// What it was opened with.
    #[must_use]
    pub const fn asked(&self) -> &Asked {
        &self.asked
    }

    /// The name that is listened to.
    #[must_use]
    pub const fn name(&self) -> &Name {
        &self.asked.name
    }

    /// By which name all hosts know the channel.
    #[must_use]
    pub fn channel(&self) -> ChannelId {
        self.life.channel
    }

    /// Waits for what comes next, no longer than until then: a message, of which the first bytes of `into` are its as many as are told, or what became of one that did not come. `None`: time is up.
    ///
    /// # Errors
    ///
    /// The channel has ended, and all that came before was taken.
    pub fn receive(
        &mut self,
        into: &mut [u8],
        until: Option<Instant>,
    ) -> Result<Option<(Told, usize)>, Error> {
        let taken = match self.ring.wait(until) {
            Ok(Some(taken)) => taken,
            Ok(None) => return Ok(None),
            Err(_) => return Err(self.life.error()),
        };
        let mut front = [0; LENGTH];
        let body = taken.length().checked_sub(LENGTH);
        let told = body.map(|body| {
            self.ring.copy(&taken, 0, &mut front);
            let length = body.min(into.len());
            self.ring.copy(&taken, LENGTH, &mut into[..length]);
            (Told::read(&front), length)
        });
        self.ring.give_back(taken);
        match told {
            Some((Some(told), length)) => Ok(Some((told, length))),
            _ => Err(Error::Broken),
        }
    }

    /// What came by one of the lanes: frames, and messages.
    ///
    /// # Errors
    ///
    /// The channel has ended, and its counts with it, or the node; [`Error::NoCounts`] where the node is in another process.
    pub fn counts(&self, lane: Lane) -> Result<(Came, Ended), Error> {
        match self.life.counts(lane)? {
            EndCounts::Ends(came, ended) => Ok((came, ended)),
            EndCounts::Begins(..) | EndCounts::Passes(..) => Err(Error::Broken),
        }
    }

    /// Whether the [descriptor](AsFd) may be polled now: it can be read as soon as something comes. Otherwise something is there.
    pub fn rests(&mut self) -> bool {
        self.ring.memory().clear();
        self.ring.rests()
    }
}

impl AsFd for Receiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.memory().as_fd()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.life.close();
    }
}

/// Who is told what becomes of an opening or a change, and where that is waited for.
pub(super) fn waits() -> (Settles, mpsc::Receiver<Settled>) {
    let (tell, told) = sync_channel(1);
    // There is room for it.
    let tells: Settles = Box::new(move |_, settled| tell.try_send(settled).is_ok());
    (tells, told)
}

/// How long the rings of messages of so many bytes are, beside what is told of each.
pub(super) fn shape(room: u32, largest: NonZeroU32, in_front: usize) -> Result<Shape, Error> {
    let bytes = largest.get().saturating_add(in_front as u32);
    Ok(Shape::new(room, bytes)?)
}

/// Ends a ring, so that whoever waits there is told.
pub(super) fn end(ring: &Ring) {
    ring::end(ring);
}
