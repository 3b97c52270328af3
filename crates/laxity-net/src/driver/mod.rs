//! The driver (§2.2): one interface between many clients.
//!
//! A driver belongs to one thread, its interrupt level; in virtual time, to one body. That thread calls [`Driver::poll`], which does a
//! bounded amount of work: what has left is told, what arrived is handed over, what waits is sent. Other threads have a [`Handle`],
//! whose questions wait in a list until the next poll, and [pools](crate::Pool), which share no lock with the driver. A poll looks at
//! no client for which nothing happened, however many there are.

mod end;
mod entry;
mod handle;
mod looks;
mod receive;
mod register;
mod send;
mod tap;

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use laxity_model::Instant;
use laxity_model::nif::exchange::{Account, Census};
use laxity_model::nif::link::{Facts, Link, LinkError, Losses};
use laxity_model::nif::registry::{ClientId, Demultiplex, Fallback};
use laxity_model::nif::transmit::{FirstCome, NotWaiting, Order, Transmit};

use crate::buffers::{Lent, Line, Shared, Sleeper};
use crate::client::{Context, Effects, News};
use crate::questions::Questions;
pub use crate::questions::{Answer, NoAnswer};
use entry::Entry;
pub use handle::Handle;
use looks::Looks;
pub use register::{Interest, RegisterError, Registered, RegisteredOwn};
pub use tap::{Scope, TapId};

/// How much a driver may have, and do in one [`poll`](Driver::poll).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Clients at a time, fewer than 2²⁴.
    pub clients: u32,
    /// Its own buffers, which are posted to the interface: so many packets may arrive between two polls.
    pub posted: usize,
    /// Frames that wait or are below; one more is refused as [`LinkError::Full`].
    pub queue: u32,
    /// Of these, how many may be below, out of reach of a more urgent one: at least 1. The interface may have less room.
    pub reach: usize,
    /// Packets that are taken in one poll: what bounds it.
    pub per_poll: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            clients: 64,
            posted: 64,
            queue: 256,
            reach: 2,
            per_poll: 32,
        }
    }
}

/// What a driver needs of where it runs.
#[derive(Clone, Debug)]
pub struct Host {
    /// Puts threads to sleep that wait for buffers and for frames.
    pub sleeper: Sleeper,
    /// Woken when the driver has something to do that did not come from its interface. May be called by any thread.
    pub waker: Waker,
}

/// Of the standard library, for a driver that is polled anyway. Its clock stands still: who waits with a limit of time does not wait.
impl Default for Host {
    fn default() -> Self {
        Self {
            sleeper: Sleeper::portable(|| Instant::MAX),
            waker: Waker::noop().clone(),
        }
    }
}

/// Why a driver cannot go on.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DriverError {
    /// Its interface.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Its order of frames is none.
    #[error(transparent)]
    Order(#[from] NotWaiting),
    /// More clients than there are numbers for.
    #[error("more clients than a driver can have")]
    TooManyClients,
}

/// What came of a [`poll`](Driver::poll).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Polled {
    /// Packets that were taken from the interface.
    pub arrived: usize,
    /// Packets that the interface threw away when it was asked for one.
    pub discarded: usize,
    /// Frames that were handed to it.
    pub sent: usize,
    /// Bytes of these packets and frames.
    pub bytes: u64,
    /// Frames that it refused, or for which there was no room, and whose senders were told.
    pub refused: usize,
    /// Whether as many arrived as one poll takes, or as many left or were refused as may, or any left that are not told of: there may be more.
    pub is_more: bool,
    /// When to poll again, though nothing happens until then: the order of frames wants to be asked, or an interface does not tell what has left.
    pub again: Option<Instant>,
}

/// Frames that an interface took to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Handed {
    /// All.
    pub frames: u64,
    /// Those of them that were sent [from several places](crate::buffers::Buffer::send_gathered).
    pub gathered: u64,
    /// How often the bytes of one were copied within this process, from where its client had them to where the system takes them: by an interface that
    /// [copies](Facts::copies) each, and to have together what was gathered where the interface cannot gather it.
    pub copies: u64,
}

/// A frame from when it is collected until it is done.
struct Queued<M: laxity_model::nif::link::Memory> {
    client: ClientId,
    lent: Lent<M>,
    /// Where it comes home, once its client has ended; `None`: to its client's.
    home: Option<Arc<Shared<M>>>,
    /// Whoever peeks has seen it, however often it is handed over until it is taken.
    is_shown: bool,
}

impl Polled {
    /// Packets that arrived, frames that were sent, and those that were refused.
    #[must_use]
    pub const fn all(&self) -> usize {
        self.arrived + self.discarded + self.sent + self.refused
    }
}

impl<M: laxity_model::nif::link::Memory> Queued<M> {
    /// As events name it.
    fn named(&self) -> [u64; 2] {
        [u64::from(self.client.0), self.lent.frame().sending.tag]
    }
}

/// A driver of interface `L`, whose key is `D`.
pub struct Driver<L: Link, D: Demultiplex> {
    link: L,
    demultiplex: D,
    fallback: Fallback,
    limits: Limits,
    sleeper: Sleeper,
    line: Arc<Line>,
    clients: Vec<Option<Entry<L::Memory>>>,
    unused: Vec<ClientId>,
    taps: Vec<tap::Tap<D::Filter>>,
    taps_made: u32,
    questions: Arc<Questions<Self>>,
    /// How many of its buffers the interface has to receive into; the others are spare.
    posted: usize,
    spare: Vec<L::Memory>,
    transmit: Transmit,
    frames: Vec<Option<Queued<L::Memory>>>,
    /// How many frames clients can send: the most buffers of their pools.
    sendable: usize,
    /// Empty between calls, with room for all of these.
    collected: Vec<Queued<L::Memory>>,
    /// Frames for which the queue had no room, in the order in which they were sent: they are refused, or have a place that becomes free before.
    left_over: VecDeque<Queued<L::Memory>>,
    account: Account,
    handed: Handed,
    malformed: Option<&'static str>,
    /// Nothing that was handed over waits to be flushed.
    is_flushed: bool,
    looks: Looks,
    /// Of what is bounded, frames were given the larger half last.
    is_frames_turn: bool,
    state: State,
}

/// What clients know of the interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Up,
    Down,
    Gone,
}

impl<L: Link, D: Demultiplex> Driver<L, D> {
    /// A driver that sends first come, first served, and drops what is nobody's.
    ///
    /// # Errors
    ///
    /// The interface has not so much memory, or there are more clients than numbers.
    pub fn new(link: L, demultiplex: D, limits: Limits, host: Host) -> Result<Self, DriverError> {
        let order = Box::new(FirstCome::new(limits.queue));
        Self::with_order(link, demultiplex, limits, host, order)
    }

    /// A driver that sends in this order, which must be for as many frames as its queue.
    ///
    /// # Errors
    ///
    /// The interface has not so much memory, or there are more clients than numbers.
    pub fn with_order(
        mut link: L,
        demultiplex: D,
        limits: Limits,
        host: Host,
        order: Box<dyn Order>,
    ) -> Result<Self, DriverError> {
        let line = Line::new(limits.clients, host.waker).ok_or(DriverError::TooManyClients)?;
        let mut spare = link.allocate(limits.posted)?;
        // A frame's memory may come back as another's.
        spare.reserve(limits.queue as usize);
        let reach = limits.reach.min(link.facts().reach);
        let mut driver = Self {
            link,
            demultiplex,
            fallback: Fallback::Nobody,
            limits,
            sleeper: host.sleeper,
            line: Arc::new(line),
            clients: (0..limits.clients).map(|_| None).collect(),
            unused: (0..limits.clients).rev().map(ClientId).collect(),
            taps: Vec::new(),
            taps_made: 0,
            questions: Arc::default(),
            posted: 0,
            spare,
            transmit: Transmit::new(order, limits.queue, reach),
            frames: (0..limits.queue).map(|_| None).collect(),
            sendable: 0,
            collected: Vec::new(),
            left_over: VecDeque::new(),
            account: Account::default(),
            handed: Handed::default(),
            malformed: None,
            is_flushed: true,
            looks: Looks::new(),
            is_frames_turn: false,
            state: State::Up,
        };
        driver.post_spare();
        Ok(driver)
    }

    /// Does what is to be done now, a bounded amount: answers one question of another thread, tells of frames that have left, hands
    /// over at most [`Limits::per_poll`] packets, and sends what waits and may go. Neither waits nor, but for questions, allocates.
    ///
    /// # Errors
    ///
    /// [`LinkError::Gone`], each time: only questions are answered then. What the interface says else, or that the order of frames
    /// is none; whoever polls may go on.
    pub fn poll(&mut self, now: Instant, effects: &mut dyn Effects) -> Result<Polled, DriverError> {
        self.poll_at_most(now, effects, usize::MAX)
    }

    /// The same, which takes no more than so many packets and frames together. Where both ways want more than that, each has half.
    ///
    /// # Errors
    ///
    /// As of [`poll`](Self::poll).
    pub fn poll_at_most(
        &mut self,
        now: Instant,
        effects: &mut dyn Effects,
        most: usize,
    ) -> Result<Polled, DriverError> {
        self.answer(now);
        if self.state == State::Gone {
            return Err(LinkError::Gone.into());
        }
        self.tell_sent(now, effects);
        self.post_spare();
        let mut polled = Polled::default();
        let for_frames = self.kept_for_frames(now, most);
        let per_poll = self.limits.per_poll.min(most - for_frames);
        let received = self.take_arrivals(now, effects, per_poll, &mut polled);
        if let Err(LinkError::Gone) = received {
            self.end_all(now, effects);
        }
        received?;
        self.collect(now);
        self.send_waiting(now, effects, most, &mut polled)?;
        self.refuse_rest(now, effects, most, &mut polled);
        if !self.is_flushed {
            self.flush(now, effects, &mut polled)?;
        }
        if self.link.is_silent() {
            let open = self.transmit.below() + usize::from(self.transmit.is_put_back());
            let look = self.looks.next(now, polled.sent, open);
            polled.is_more |= look == Some(now);
            polled.again = look.into_iter().chain(polled.again).min();
        }
        Ok(polled)
    }

    /// What of so much is kept for frames that wait: half of it, and of what is odd the greater part every second time.
    fn kept_for_frames(&mut self, now: Instant, most: usize) -> usize {
        if most == usize::MAX {
            return 0;
        }
        self.collect(now);
        let waiting = self.transmit.waiting() + self.left_over.len();
        if waiting == 0 {
            return 0;
        }
        self.is_frames_turn ^= most % 2 == 1;
        let half = if self.is_frames_turn {
            most.div_ceil(2)
        } else {
            most / 2
        };
        waiting.min(half)
    }

    /// Its interface, to wait for, and for what it tells besides.
    pub const fn link(&self) -> &L {
        &self.link
    }

    /// What its interface is.
    pub fn facts(&self) -> &Facts {
        self.link.facts()
    }

    /// What its interface lost so far, below the driver.
    pub fn losses(&self) -> Losses {
        self.link.losses()
    }

    /// What became of all packets that arrived.
    pub const fn account(&self) -> &Account {
        &self.account
    }

    /// What became of a client's packets; `None` if there is no such client.
    pub fn account_of(&self, client: ClientId) -> Option<&Account> {
        let entry = self.clients.get(client.index())?.as_ref()?;
        Some(&entry.account)
    }

    /// Why the last packet whose key could not be read was one.
    pub const fn malformed(&self) -> Option<&'static str> {
        self.malformed
    }

    /// Where its own buffers are. Peeking clients borrow these.
    pub fn census(&self) -> Census {
        Census {
            free: count(self.spare.len()),
            in_driver: count(self.posted),
            ..Census::default()
        }
    }

    /// Who gets what nobody registered for.
    pub const fn fallback(&self) -> Fallback {
        self.fallback
    }

    /// A handle, by which other threads register while packets flow.
    pub fn handle(&self) -> Handle<L, D> {
        Handle::new(Arc::clone(&self.questions), Arc::clone(&self.line))
    }

    /// Posts what could not be posted before. One look where nothing is spare.
    fn post_spare(&mut self) {
        while let Some(memory) = self.spare.pop() {
            if let Err(memory) = self.link.post(memory) {
                self.spare.push(memory);
                return;
            }
            self.posted += 1;
        }
    }

    fn post(&mut self, memory: L::Memory) {
        match self.link.post(memory) {
            Ok(()) => self.posted += 1,
            Err(memory) => self.spare.push(memory),
        }
    }

    /// Tells all clients and taps.
    fn tell(&mut self, news: News, now: Instant, effects: &mut dyn Effects) {
        for index in 0..self.clients.len() {
            let Some(entry) = &mut self.clients[index] else {
                continue;
            };
            let mut context = Context::new(now, effects);
            if entry::caught(|| entry.receiver.told(news, &mut context)).is_none() {
                self.unregister(ClientId(count(index)));
            }
        }
        self.look_at_taps(|tap| tap.peek.told(news, &mut Context::new(now, effects)));
    }
}

/// A number of things that was bounded by a number of 32 bits.
fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
