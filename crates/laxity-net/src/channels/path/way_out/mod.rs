//! A link, and all channels that leave by it.

mod frames;
mod messages;

use frames::{Waiting, Wire};
use laxity_model::channels::handler::{self, Late};
use laxity_model::channels::link::LinkScheduler;
use laxity_model::nif::transmit::Transmit;
use laxity_model::policy::multiclass::{By, Early};
use laxity_model::{Instant, Span};

use super::origin::{self, Began, Begins, Queue};
use super::relay::{Passes, Relay};
use super::{Label, Lane, Packets, Passed, PerLane};
use crate::channels::frame::Data;

/// What a link is to those who leave by it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// So many channels at once.
    pub channels: u32,
    /// So many packets of all of them together.
    pub packets: u32,
    /// q: so many frames may be out of reach, at least 1: in the interface, and not told to have left.
    pub reach: usize,
    /// When a packet goes that is early.
    pub early: Early,
    /// In which order those go that are current.
    pub by: By,
    /// In bits a second; 0: a frame takes no time, or it is not known how much.
    pub rate: u64,
    /// H: what a frame has beside its payload on this link, in bytes.
    pub overhead: u32,
}

/// What a channel was granted at a host by whose link it leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Granted {
    /// By which the next hop knows its frames.
    pub next: Label,
    /// d: so long after its logical arrival here a message has left.
    pub delay: Span,
    /// What becomes of what is late.
    pub late: Late,
}

/// The link has no room for another channel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum Full {
    /// As many channels are there as may be.
    #[error("as many channels leave by the link as may")]
    Channels,
    /// So many packets are not there.
    #[error("{needed} packets are needed, and {free} are free")]
    Packets {
        /// So many are needed.
        needed: u64,
        /// So many are nobody's.
        free: u32,
    },
}

/// What is to be done beside what was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect<B> {
    /// These bytes are whoever's offered them again: all of the message has left, or is given up.
    Back(B),
    /// This channel's handler of this lane was blocked, and goes on.
    Wakes(u32, Lane),
    /// Who was told to wait until a message of this channel has left its queue may offer his again.
    Room(u32),
}

/// What the interface did with a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Handed {
    /// It has it.
    Taken,
    /// It has no room now: the frame goes first later, with what its earliness is then.
    NoRoom,
    /// It will never take it.
    Refused,
}

/// What leaves next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Next {
    /// A frame of this channel and lane was handed over.
    Handed(u32, Lane),
    /// The interface has no room.
    NoRoom,
    /// All that wait are early: to be asked again then.
    NotBefore(Instant),
    /// None waits, or as many are out of reach as may be.
    Nothing,
}

#[derive(Clone, Debug)]
enum Kind<B> {
    Begins(Box<PerLane<Option<Begins<B>>>>),
    Passes(Box<Relay>),
    /// Frames that are no channel's, whose bytes whoever queued them has.
    Own,
}

/// What leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leaves<'a> {
    /// A part of a message.
    Data(Data<'a>),
    /// The next one of those that were queued by [`WayOut::say`] for this number.
    Own(u32),
}

#[derive(Clone, Debug)]
struct Channel<B> {
    granted: Granted,
    kind: Kind<B>,
    packets: PerLane<Packets>,
    /// Packets that may be there, and that are.
    room: u32,
    there: u32,
    is_closed: bool,
}

/// A link, and all channels that leave by it. Nothing is allocated after a channel is opened. A channel has the number that it was given when it was opened, until it is closed.
///
/// `B` are the bytes of messages, as applications hand them over: they are lent until all of the message has left.
pub struct WayOut<B> {
    transmit: Transmit<LinkScheduler>,
    waiting: Box<[Option<Waiting>]>,
    channels: Box<[Option<Channel<B>>]>,
    free: u32,
    wire: Wire,
}

/// A lane as its hop has it.
fn of_hop(queue: Queue, late: Late) -> Queue {
    let handler = handler::Limits {
        late,
        ..queue.handler
    };
    Queue { handler, ..queue }
}

const NOT_OPEN: &str = "no channel of this number and kind is open";

impl<B: AsRef<[u8]>> WayOut<B> {
    /// With no channel.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let (lanes, packets) = (2 * limits.channels as usize, limits.packets);
        let order = LinkScheduler::new(lanes, packets, limits.early, limits.by);
        Self {
            transmit: Transmit::new(Box::new(order), packets, limits.reach),
            waiting: vec![None; packets as usize].into(),
            channels: (0..limits.channels).map(|_| None).collect(),
            free: packets,
            wire: Wire {
                rate: limits.rate,
                overhead: limits.overhead as usize,
                idle_from: Instant::ZERO,
            },
        }
    }

    /// A channel begins here, with these lanes; where it has no lane of best effort, what would go there is dropped.
    ///
    /// # Errors
    ///
    /// [`Full`].
    pub fn begin(&mut self, granted: Granted, lanes: PerLane<Option<Queue>>) -> Result<u32, Full> {
        let room = origin::room(&lanes);
        let lanes = lanes.map(|lane| lane.map(|queue| of_hop(queue, granted.late)));
        self.open(granted, room, || {
            Kind::Begins(Box::new(lanes.map(|lane| lane.map(Begins::new))))
        })
    }

    /// A channel passes here, with these buffers.
    ///
    /// # Errors
    ///
    /// [`Full`].
    pub fn pass(&mut self, granted: Granted, relay: Relay) -> Result<u32, Full> {
        self.open(granted, relay.room(), || Kind::Passes(Box::new(relay)))
    }

    /// What is sent by [`say`](Self::say) has a place of its own, each within this delay of when it is current, and so many at once.
    ///
    /// # Errors
    ///
    /// [`Full`].
    pub fn own(&mut self, delay: Span, room: u32) -> Result<u32, Full> {
        let granted = Granted {
            next: Label {
                index: 0,
                generation: 0,
            },
            delay,
            late: Late::Deliver,
        };
        self.open(granted, [room, 0], || Kind::Own)
    }

    fn open(
        &mut self,
        granted: Granted,
        room: PerLane<u32>,
        kind: impl FnOnce() -> Kind<B>,
    ) -> Result<u32, Full> {
        let place = self.channels.iter().position(Option::is_none);
        let place = place.ok_or(Full::Channels)?;
        let needed = u64::from(room[0]) + u64::from(room[1]);
        let Some(room) = u32::try_from(needed).ok().filter(|room| *room <= self.free) else {
            let free = self.free;
            return Err(Full::Packets { needed, free });
        };
        self.free -= room;
        self.channels[place] = Some(Channel {
            granted,
            kind: kind(),
            packets: PerLane::default(),
            room,
            there: 0,
            is_closed: false,
        });
        let channel = place as u32;
        self.transmit.order().delay(2 * channel, granted.delay);
        Ok(channel)
    }

    /// A channel that begins here was granted something else, and has these lanes, each of which it had before; what waits keeps its place, and numbers go on.
    ///
    /// # Errors
    ///
    /// [`Full`]; all is as it was then.
    ///
    /// # Panics
    ///
    /// No such channel is open.
    pub fn settle_begin(
        &mut self,
        channel: u32,
        granted: Granted,
        lanes: PerLane<Option<Queue>>,
    ) -> Result<(), Full> {
        self.resize(channel, origin::room(&lanes))?;
        for (of, queue) in self.begins(channel).iter_mut().zip(lanes) {
            if let (Some(of), Some(queue)) = (of, queue) {
                of.settle(of_hop(queue, granted.late));
            }
        }
        self.settle(channel, granted);
        Ok(())
    }

    /// A channel that passes here was granted something else; what waits keeps its place.
    ///
    /// # Errors
    ///
    /// [`Full`]; all is as it was then.
    ///
    /// # Panics
    ///
    /// No such channel is open.
    pub fn settle_pass(
        &mut self,
        channel: u32,
        granted: Granted,
        passes: &Passes,
    ) -> Result<(), Full> {
        self.resize(channel, passes.buffers)?;
        if let Kind::Passes(relay) = &mut self.channel(channel).kind {
            relay.settle(passes);
        }
        self.settle(channel, granted);
        Ok(())
    }

    fn settle(&mut self, channel: u32, granted: Granted) {
        self.channel(channel).granted = granted;
        self.transmit.order().delay(2 * channel, granted.delay);
    }

    /// A channel has room for so many packets, and for those that are there.
    fn resize(&mut self, channel: u32, room: PerLane<u32>) -> Result<(), Full> {
        let of = self.channel(channel);
        let needed = (u64::from(room[0]) + u64::from(room[1])).max(of.there.into());
        let before = of.room;
        let free = self.free + before;
        let Some(room) = u32::try_from(needed).ok().filter(|room| *room <= free) else {
            return Err(Full::Packets { needed, free });
        };
        self.channel(channel).room = room;
        self.free = free - room;
        Ok(())
    }

    /// The channel is no more: its messages go back, and what waits of it does not leave. Its number is another's when that has left which is out of reach.
    ///
    /// # Panics
    ///
    /// The channel is not open.
    pub fn close(&mut self, channel: u32, mut effect: impl FnMut(Effect<B>)) {
        let of = self.channel(channel);
        of.is_closed = true;
        if let Kind::Begins(lanes) = &mut of.kind {
            for lane in lanes.iter_mut().flatten() {
                lane.close(&mut effect);
            }
        }
        for lane in Lane::ALL {
            let mut waited = Vec::new();
            let order = self.transmit.order();
            order.withdraw(2 * channel + lane as u32, |frame| waited.push(frame));
            for frame in waited {
                let (_, of) = self.waiting(frame);
                of.packets[lane as usize].closed += 1;
                self.transmit.withdrawn(frame);
                self.gone(frame, &mut effect);
            }
        }
        if let Some(of) = &mut self.channels[channel as usize] {
            self.free += of.room - of.there;
            of.room = of.there;
        }
        self.vacate(channel);
    }

    /// How many packets wait, and how many are out of reach.
    #[must_use]
    pub fn depth(&self) -> (usize, usize) {
        (self.transmit.waiting(), self.transmit.below())
    }

    /// How many packets of a channel are there; 0 of one that is not open.
    #[must_use]
    pub fn there(&self, channel: u32) -> u32 {
        let of = self.channels.get(channel as usize);
        of.and_then(Option::as_ref).map_or(0, |of| of.there)
    }

    /// What came of the packets of a channel's lane; `None` if it is not open.
    #[must_use]
    pub fn packets(&self, channel: u32, lane: Lane) -> Option<Packets> {
        Some(self.find(channel)?.packets[lane as usize])
    }

    /// What came of the messages of a lane of a channel that begins here; `None` if there is none.
    #[must_use]
    pub fn began(&self, channel: u32, lane: Lane) -> Option<Began> {
        match &self.find(channel)?.kind {
            Kind::Begins(lanes) => lanes[lane as usize].as_ref().map(Begins::counts),
            Kind::Passes(_) | Kind::Own => None,
        }
    }

    /// What came of the frames of a lane of a channel that passes here; `None` if there is none.
    #[must_use]
    pub fn passed(&self, channel: u32, lane: Lane) -> Option<Passed> {
        match &self.find(channel)?.kind {
            Kind::Begins(_) | Kind::Own => None,
            Kind::Passes(relay) => Some(relay.passed(lane)),
        }
    }

    /// Whether a channel begins here, and has a lane for what keeps its promise.
    #[must_use]
    pub fn is_due(&self, channel: u32) -> bool {
        self.began(channel, Lane::RealTime).is_some()
    }

    fn find(&self, channel: u32) -> Option<&Channel<B>> {
        self.channels.get(channel as usize)?.as_ref()
    }

    fn channel(&mut self, channel: u32) -> &mut Channel<B> {
        let of = self.channels.get_mut(channel as usize);
        let of = of.and_then(Option::as_mut).filter(|of| !of.is_closed);
        of.expect(NOT_OPEN)
    }

    fn begins(&mut self, channel: u32) -> &mut PerLane<Option<Begins<B>>> {
        match &mut self.channel(channel).kind {
            Kind::Begins(lanes) => lanes,
            Kind::Passes(_) | Kind::Own => panic!("{NOT_OPEN}"),
        }
    }

    /// Of a channel that is closed, and all of whose packets are gone, the number is free.
    fn vacate(&mut self, channel: u32) {
        let place = &mut self.channels[channel as usize];
        if let Some(of) = place
            && of.is_closed
            && of.there == 0
        {
            self.free += of.room;
            *place = None;
        }
    }
}
