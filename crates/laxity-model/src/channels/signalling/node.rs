//! The signalling of one host: a state machine that is told of frames and of the time, and says what is to be done.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::labels::Labels;
use super::link::{Broke, End, Frame};
use super::soft::Soft;
use super::steady::Steady;
use super::{
    Admits, Cause, ChannelId, Delays, Hold, HostId, Label, LinkId, Message, Place, Refusal,
    Reserved, Terms,
};
use crate::{Instant, Span};

/// A frame between two nodes.
pub type Said<A> = Frame<Message<<A as Admits>::Asked, <A as Admits>::Short>>;

/// What is to be done for a node, in this order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect<S, R> {
    /// This frame goes out on that link.
    Send(LinkId, Frame<Message<S, R>>),
    /// At the origin, once: the channel is open, or as its last change asked.
    Opened {
        /// Which version.
        hold: Hold,
        /// The bound of each hop, the origin first.
        bounds: Vec<Span>,
        /// Of the links between.
        propagation: Span,
    },
    /// At the origin, once: it is not opened, or it is not changed and stays as it was.
    Refused(Hold, Refusal<R>),
    /// At the far end: its application is to [answer](Node::answer).
    Asked(Hold, S),
    /// At either end, once, where the channel was open there or its application asked: it has ended.
    Ended(ChannelId, Cause),
    /// At each hop: a message may take so long from now on.
    Holds {
        /// Of which channel.
        channel: ChannelId,
        /// What it may take.
        delays: Delays,
        /// Data frames with this label are the channel's here.
        label: Label,
        /// With this one they go on; `None` at the far end.
        next: Option<Label>,
    },
    /// At each hop that held something: it does no more.
    Frees(ChannelId),
    /// The neighbour is there.
    Up(LinkId),
    /// It is not any more.
    Down(LinkId, Broke),
}

/// What is to be done for a node with that admission.
pub type EffectOf<A> = Effect<<A as Admits>::Asked, <A as Admits>::Short>;

/// What is done of it.
pub type Effects<A> = Vec<EffectOf<A>>;

/// Nothing was begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotNow {
    /// There is no such channel that is open and begins here.
    #[error("no such channel is open that begins at this host")]
    NotOpen,
    /// The last change is not settled.
    #[error("the change before is not settled yet")]
    Changing,
}

/// A link of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Neighbour {
    /// Who is there.
    pub host: HostId,
    /// How long the last bit of a frame is on its way.
    pub propagation: Span,
}

/// A version that all hops have agreed to.
#[derive(Clone, Debug)]
pub(super) struct Agreed<S> {
    pub(super) version: u32,
    pub(super) asked: S,
    pub(super) within: Span,
    pub(super) delays: Delays,
}

/// One that is asked.
#[derive(Clone, Debug)]
pub(super) struct Pending<S> {
    pub(super) agreed: Agreed<S>,
    pub(super) propagation: Span,
    /// At the far end, of all hops.
    pub(super) least: Vec<Span>,
}

/// What a node knows of a channel.
#[derive(Clone, Debug)]
pub(super) struct Hop<S> {
    pub(super) route: Arc<[HostId]>,
    pub(super) position: u8,
    pub(super) place: Place,
    pub(super) label: Label,
    /// The next hop's, once that has confirmed.
    pub(super) next: Option<Label>,
    /// The last version that was asked, whatever became of it.
    pub(super) newest: u32,
    pub(super) now: Option<Agreed<S>>,
    pub(super) pending: Option<Box<Pending<S>>>,
    /// What was before the version of now, until nobody sends so any more.
    pub(super) before: Option<Box<Agreed<S>>>,
    /// When something becomes of it by itself.
    pub(super) timer: Option<Instant>,
}

impl<S> Hop<S> {
    /// All that is reserved, the oldest first.
    pub(super) fn holds(&self) -> impl Iterator<Item = &Agreed<S>> {
        let before = self.before.as_deref();
        let pending = self.pending.as_deref().map(|pending| &pending.agreed);
        before.into_iter().chain(&self.now).chain(pending)
    }

    /// What one of them has here.
    fn reserved<'a>(&self, channel: ChannelId, agreed: &'a Agreed<S>) -> Reserved<'a, S> {
        Reserved {
            hold: Hold {
                channel,
                version: agreed.version,
            },
            place: self.place,
            asked: &agreed.asked,
            delays: agreed.delays,
        }
    }

    /// What this hop is to know of a channel that is open.
    pub(super) fn told<R>(&self, channel: ChannelId) -> Option<Effect<S, R>> {
        Some(Effect::Holds {
            channel,
            delays: self.delays()?,
            label: self.label,
            next: self.next,
        })
    }

    /// What a message may take, of whichever version.
    pub(super) fn delays(&self) -> Option<Delays> {
        let now = self.now.as_ref()?.delays;
        let before = self.before.as_ref().map_or(now, |before| before.delays);
        Some(Delays {
            before: now.before.max(before.before),
            own: now.own.min(before.own),
        })
    }
}

/// A channel as its node tells of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    /// Which.
    pub channel: ChannelId,
    /// All hosts, the origin first.
    pub route: Arc<[HostId]>,
    /// Which of them this is.
    pub position: u8,
    /// Whether all hops have agreed to it.
    pub is_open: bool,
    /// What a message may take here, once they have.
    pub delays: Option<Delays>,
    /// By which its data frames are known here.
    pub label: Label,
    /// By which they are at the next hop, once that has confirmed.
    pub next: Option<Label>,
}

/// The signalling of one host. A host delivers the frames that have come before it [wakes](Self::wake) the node.
#[derive(Clone, Debug)]
pub struct Node<A: Admits> {
    pub(super) host: HostId,
    pub(super) incarnation: u32,
    pub(super) terms: Terms,
    pub(super) neighbours: Vec<Neighbour>,
    pub(super) ends: Vec<End<Message<A::Asked, A::Short>>>,
    pub(super) softs: Vec<Soft>,
    pub(super) links: BTreeMap<HostId, LinkId>,
    pub(super) admission: A,
    pub(super) channels: BTreeMap<ChannelId, Hop<A::Asked>>,
    pub(super) labels: Labels,
    /// When something may become of a channel by itself.
    pub(super) timers: BTreeSet<(Instant, ChannelId)>,
    opened: u32,
    pub(super) steady: Steady,
    pub(super) due: Instant,
}

impl<A: Admits> Node<A> {
    /// A host's node begins. Its incarnation is more than it was in any life before, on every link; of two links to one neighbour the last is taken.
    #[must_use]
    pub fn new(
        (host, incarnation): (HostId, u32),
        neighbours: Vec<Neighbour>,
        admission: A,
        terms: Terms,
        now: Instant,
    ) -> Self {
        let hosts = (0..).zip(&neighbours);
        let links = hosts.map(|(number, neighbour)| (neighbour.host, LinkId(number)));
        Self {
            host,
            incarnation,
            labels: Labels::new(terms.channels),
            terms,
            ends: neighbours
                .iter()
                .map(|_| End::new(incarnation, now))
                .collect(),
            softs: neighbours.iter().map(|_| Soft::new(now)).collect(),
            links: links.collect(),
            neighbours,
            admission,
            channels: BTreeMap::new(),
            timers: BTreeSet::new(),
            opened: 0,
            steady: Steady::new(now),
            due: now,
        }
    }

    /// A channel is to be opened over these hosts, of which the first is this one; its messages are to be there within so long of their logical arrivals. What becomes of it is told once: [`Effect::Opened`] or [`Effect::Refused`].
    pub fn open(
        &mut self,
        now: Instant,
        asked: A::Asked,
        route: Arc<[HostId]>,
        within: Span,
        out: &mut Effects<A>,
    ) -> ChannelId {
        let time = self.enter(now);
        let channel = ChannelId {
            origin: self.host,
            generation: self.incarnation,
            number: self.opened,
        };
        self.opened = self.opened.wrapping_add(1);
        let hold = Hold {
            channel,
            version: 0,
        };
        self.begins(time, hold, asked, (route, within), out);
        self.leave(time, out);
        channel
    }

    /// A channel that begins here is to carry something else, and may ask for another bound. What becomes of that is told once, like that of an opening. Until then, and for the bound before after that, messages may be of either kind.
    ///
    /// # Errors
    ///
    /// [`NotNow`].
    pub fn change(
        &mut self,
        now: Instant,
        channel: ChannelId,
        asked: A::Asked,
        within: Span,
        out: &mut Effects<A>,
    ) -> Result<Hold, NotNow> {
        let hop = self.channels.get(&channel).ok_or(NotNow::NotOpen)?;
        if hop.now.is_none() || hop.place.from.is_some() {
            return Err(NotNow::NotOpen);
        }
        if hop.pending.is_some() || hop.before.is_some() {
            return Err(NotNow::Changing);
        }
        let version = hop.newest.checked_add(1).ok_or(NotNow::NotOpen)?;
        let hold = Hold { channel, version };
        let route = hop.route.clone();
        let time = self.enter(now);
        self.begins(time, hold, asked, (route, within), out);
        if let Some(hop) = self.channels.get_mut(&channel) {
            hop.newest = version;
        }
        self.leave(time, out);
        Ok(hold)
    }

    /// The far end's application agrees, or refuses with a number of its own. Nothing happens where nothing was asked, or not any more.
    pub fn answer(
        &mut self,
        now: Instant,
        hold: Hold,
        answer: Result<(), u32>,
        out: &mut Effects<A>,
    ) {
        let time = self.enter(now);
        match answer {
            Ok(()) => self.agrees_to(hold, out),
            Err(reason) => self.declines(hold, Refusal::Declined(reason), out),
        }
        self.leave(time, out);
    }

    /// An application at either end has done with a channel, or has died. Both ends are told [`Effect::Ended`]; an origin whose channel is not open yet, that it is refused.
    pub fn close(
        &mut self,
        now: Instant,
        channel: ChannelId,
        has_died: bool,
        out: &mut Effects<A>,
    ) {
        let time = self.enter(now);
        let cause = [Cause::Closed, Cause::Died][usize::from(has_died)](self.host);
        let is_end = |hop: &Hop<A::Asked>| hop.place.from.is_none() || hop.place.to.is_none();
        if self.channels.get(&channel).is_some_and(is_end) {
            self.ends(channel, cause, out);
        }
        self.leave(time, out);
    }

    /// This host cannot do for a channel what it has agreed to: it ends.
    pub fn fails(&mut self, now: Instant, channel: ChannelId, out: &mut Effects<A>) {
        let time = self.enter(now);
        self.ends(channel, Cause::Nonsense(self.host), out);
        self.leave(time, out);
    }

    /// A heartbeat goes over a link as soon as the node is [woken](Self::wake), which it is to be at once.
    pub fn beats(&mut self, now: Instant, link: LinkId, out: &mut Effects<A>) {
        let time = self.enter(now);
        if let Some(end) = self.ends.get_mut(link.index()) {
            end.beats(time);
        }
        self.leave(time, out);
    }

    /// When the node is to be [woken](Self::wake), by the host's clock.
    #[must_use]
    pub fn next(&self) -> Instant {
        self.steady.clock(self.due)
    }

    /// The links that it was made with.
    #[must_use]
    pub fn neighbours(&self) -> &[Neighbour] {
        &self.neighbours
    }

    /// How this clock stands to that at the other end of a link.
    #[must_use]
    pub fn clocks(&self, link: LinkId) -> Option<&crate::channels::clocks::Relation> {
        self.ends.get(link.index()).map(|end| &end.clocks)
    }

    /// Whether the neighbour there is known to live.
    #[must_use]
    pub fn is_up(&self, link: LinkId) -> bool {
        self.ends.get(link.index()).is_some_and(End::is_up)
    }

    /// How often a neighbour's summary was not what is here. Between nodes that do what they should it never is, so that this tells of an error of one of them.
    #[must_use]
    pub fn differed(&self) -> u64 {
        self.softs.iter().map(|soft| soft.differed).sum()
    }

    /// Which host of a channel's way this is, from 0 at the origin; `None` if it does not go through here.
    #[must_use]
    pub fn position(&self, channel: ChannelId) -> Option<u8> {
        self.channels.get(&channel).map(|hop| hop.position)
    }

    /// All channels that go through here, in the order of their names.
    pub fn channels(&self) -> impl Iterator<Item = Listed> {
        self.channels.iter().map(|(channel, hop)| Listed {
            channel: *channel,
            route: hop.route.clone(),
            position: hop.position,
            is_open: hop.now.is_some(),
            delays: hop.delays(),
            label: hop.label,
            next: hop.next,
        })
    }

    /// What all hops have agreed to of a channel, with the bound: its messages may be as any of these says, and the last is what it is now. Nothing, where it is not open.
    pub fn agreed(
        &self,
        channel: ChannelId,
    ) -> impl Iterator<Item = (Reserved<'_, A::Asked>, Span)> {
        let hop = self.channels.get(&channel);
        hop.into_iter().flat_map(move |hop| {
            let agreed = hop.before.as_deref().into_iter().chain(&hop.now);
            agreed.map(move |agreed| (hop.reserved(channel, agreed), agreed.within))
        })
    }

    /// What admission keeps.
    pub const fn admission(&self) -> &A {
        &self.admission
    }

    /// Whether what is reserved, reckoned from nothing, is what the channels here have, and fits; and each has a label of its own.
    #[must_use]
    pub fn agrees(&self) -> bool {
        let labels = self.channels.values().map(|hop| hop.label);
        let all = self.channels.iter();
        self.labels.agrees(labels)
            && self.admission.agrees(all.flat_map(|(channel, hop)| {
                let holds = hop.holds();
                holds.map(|agreed| hop.reserved(*channel, agreed))
            }))
    }
}
