//! A host's node of channels, without I/O: what a live node's thread and the twin's node both call.
//!
//! Frames that came, requests of applications and the time go in; frames that leave, what applications are to be told, and when to call again come out. There are no sockets here, no threads and no clock. What stands by itself elsewhere is joined here: [signalling] with a host's
//! [admission](laxity_model::channels::admission::Host), [sessions](super::session) with each neighbour, [frames](super::frame), and the [data path](super::path).
//!
//! # How a node is called
//!
//! 1. Something happened: a frame came over a link ([`Node::came`]), a frame that was handed over has left ([`Node::left`]), an application asks something ([`Node::open`], [`Node::send`] and so on), or it is [`Node::next`] ([`Node::wake`]). Where several happened at once, frames that came are told before the node is woken.
//! 2. [`Node::event`] is asked until it has nothing: that is what applications are told. What is not asked for stays there, and takes memory.
//! 3. Each link that has room for a frame is asked by [`Node::fill`] until it says that nothing leaves now. So which frame leaves is decided when it does, and no sooner.
//! 4. The caller waits until [`Node::next`], or for whatever happens before.
//!
//! A live thread polls the sockets of its links, a timer and its applications; word that a socket may be written again says that a frame may have left, and the memory that is still out how many have. The twin's calendar has an entry for each frame on a wire, for the end of its transmission, and for [`Node::next`]. `now` is one clock's, the host's own, and never goes back but where that is set.
//! No message of a channel that is open allocates, and its bytes are copied once, into the frame.
//!
//! # Handlers
//!
//! A channel that begins here has a [handler](laxity_model::channels::handler) of each lane, which cuts its messages into packets and can be interrupted between any two of them. Who gives it the processor is said in [`Handlers`]:
//!
//! * [`Handlers::AtOnce`], for a caller without an executor: each call of the node does all that handlers can do then, in no order but that of the calls. Their work is short, as it copies nothing; on the link the order is that of deadlines all the same.
//! * [`Handlers::Called`], for a caller with an executor (`multiclass_edf`): [`Event::Handler`] says that a handler has something to do, and the caller releases its job. When that has the processor, the caller asks [`Node::handle`]. *Inherits* tells the deadline and since when the part is current, with which the job goes on;
//!   *look* is the place to yield to whoever is more urgent; a *packet* comes with the work that it costs, after which [`Node::made`] queues it. *Idle* and *blocked* end the job: there will be another event.
//!
//! # What a node takes on
//!
//! Signals and handshakes travel in a small channel of each link's own, which is [admitted](Signals) before all others, so that a link which is full still opens and ends channels; what does not fit that is dropped, as a wire might. A frame counts only where it comes over the link from which its channel comes.

mod calls;
mod counts;
mod event;
mod hops;
mod link;
mod setup;
mod working;

pub use counts::{EndCounts, LinkCounts};
pub use event::{Event, Filled, Handler, NotOpen};
pub use setup::{Handlers, Link, Listens, Opening, Sends, Setup, SetupError, Trust};

use std::collections::{BTreeMap, VecDeque};

use laxity_model::Instant;
use laxity_model::analysis::supply::SupplyBound;
use laxity_model::base::ready::ReadyOf;
use laxity_model::channels::admission::{Host, Signals};
use laxity_model::channels::handler::{Costs, Looks};
use laxity_model::channels::signalling::node::Effects;
use laxity_model::channels::signalling::{self, ChannelId, LinkId};

use super::frame::SIGNAL_PAYLOAD;
use super::path::{FarEnd, Label, Lane, Table};
use super::session::Budget;
use link::Way;

/// A host's node. `B` are the bytes of messages, as applications hand them over: they are lent until all of the message has left. `S` is what there is of the host's processor and links.
pub struct Node<B, S: SupplyBound> {
    signalling: signalling::Node<Host<S>>,
    /// What signalling wants done, while it is done.
    effects: Effects<Host<S>>,
    links: Vec<Way<B>>,
    table: Table<Here>,
    /// Of the channels that are in the table.
    labels: BTreeMap<ChannelId, Label>,
    /// Of those that begin or end here.
    wants: BTreeMap<ChannelId, Wants>,
    /// When something becomes of a channel by itself, by the place of its label.
    timers: ReadyOf,
    events: VecDeque<Event<B>>,
    budget: Budget,
    handlers: Handlers,
    looks: Looks,
    costs: Costs,
    best_effort: u32,
}

/// What a channel is here.
#[derive(Debug)]
enum Here {
    Begins {
        link: LinkId,
        number: u32,
    },
    Passes {
        from: LinkId,
        /// Which host of its way this is.
        host: u8,
        link: LinkId,
        number: u32,
    },
    Ends {
        from: LinkId,
        host: u8,
        far: Box<FarEnd>,
        version: u32,
    },
}

/// What an application wants of a channel.
#[derive(Clone, Copy, Debug)]
enum Wants {
    Sends(Sends),
    Listens(Listens),
}

impl<B: AsRef<[u8]>, S: SupplyBound> Node<B, S> {
    /// A host's node begins, with these links, of which the first is [`LinkId`] 0. `admission` has a stage for each of them, and nobody admitted.
    ///
    /// # Errors
    ///
    /// [`SetupError`].
    pub fn new(
        setup: Setup,
        links: Vec<Link>,
        mut admission: Host<S>,
        now: Instant,
    ) -> Result<Self, SetupError> {
        let buffers = admission.buffers().1;
        let payload = admission.payload().get();
        if payload < SIGNAL_PAYLOAD.get() {
            return Err(SetupError::Small);
        }
        let signals = Signals::new(&setup.terms, SIGNAL_PAYLOAD).map_err(SetupError::Terms)?;
        let neighbours = links.iter().map(|link| link.neighbour).collect();
        let mut ways = Vec::with_capacity(links.len());
        for (number, link) in links.into_iter().enumerate() {
            let number = u16::try_from(number).map_err(|_| SetupError::TooMany)?;
            let id = LinkId(number);
            let granted = admission.signals(id, &signals);
            let [out, _] = granted.map_err(|lack| SetupError::Signals(id, lack))?;
            let stated = signals.traffic.stated(out).map_err(SetupError::Stated)?;
            ways.push(Way::new(link, (&setup, buffers), (out, stated))?);
        }
        let terms = signalling::Terms {
            channels: setup.channels,
            ..setup.terms
        };
        let places = setup.channels as usize;
        if places >= 1 << 24 {
            return Err(SetupError::TooMany);
        }
        let who = (setup.host, setup.incarnation);
        Ok(Self {
            signalling: signalling::Node::new(who, neighbours, admission, terms, now),
            effects: Effects::<Host<S>>::new(),
            links: ways,
            table: Table::new(places),
            labels: BTreeMap::new(),
            wants: BTreeMap::new(),
            timers: ReadyOf::new(places),
            events: VecDeque::new(),
            budget: setup.budget,
            handlers: setup.handlers,
            looks: setup.looks,
            costs: setup.costs,
            best_effort: setup.best_effort,
        })
    }

    /// What an application, or the caller, is to be told next.
    pub fn event(&mut self) -> Option<Event<B>> {
        self.events.pop_front()
    }

    /// What the node knows of its channels, links and reservations.
    #[must_use]
    pub const fn signalling(&self) -> &signalling::Node<Host<S>> {
        &self.signalling
    }

    /// Whether nothing is here of any channel.
    #[must_use]
    pub fn holds_nothing(&self) -> bool {
        self.labels.is_empty() && self.wants.is_empty() && self.timers.first().is_none()
    }

    /// What came to what on a link; `None` if there is no such one.
    #[must_use]
    pub fn link_counts(&self, link: LinkId) -> Option<LinkCounts> {
        self.links.get(link.index()).map(|way| way.counts)
    }

    /// What came of a lane of a channel at this host; `None` if no such end, or host on its way, is here.
    #[must_use]
    pub fn counts(&self, end: Label, lane: Lane) -> Option<EndCounts> {
        match self.table.get(end).ok()? {
            Here::Begins { link, number } => {
                let out = &self.links[link.index()].out;
                let packets = out.packets(*number, lane)?;
                Some(EndCounts::Begins(out.began(*number, lane), packets))
            }
            Here::Passes { link, number, .. } => {
                let out = &self.links[link.index()].out;
                let packets = out.packets(*number, lane)?;
                Some(EndCounts::Passes(out.passed(*number, lane)?, packets))
            }
            Here::Ends { far, .. } => {
                let (came, ended) = far.counts(lane);
                Some(EndCounts::Ends(came, ended))
            }
        }
    }
}
