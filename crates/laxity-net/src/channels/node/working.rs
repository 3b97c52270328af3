//! How a node is called by links, by the time, and by whoever has the processor.

use laxity_model::analysis::supply::SupplyBound;
use laxity_model::channels::admission::Host;
use laxity_model::channels::clocks::Crossing;
use laxity_model::channels::handler;
use laxity_model::channels::signalling::{LinkId, node};
use laxity_model::{Instant, Span};

use super::super::frame::Data;
use super::super::path::{Arrival, Forwarded, Handed, Label, Next, Stored};
use super::super::session::Came;
use super::event::{Event, Filled, Handler, Sent};
use super::link::Way;
use super::setup::Handlers;
use super::{Here, Node};

impl<B: AsRef<[u8]>, S: SupplyBound> Node<B, S> {
    /// When [`wake`](Self::wake) is to be called, at the latest; it changes with each call. O(links).
    #[must_use]
    pub fn next(&self) -> Instant {
        let links = self.links.iter().map(Way::due).min();
        let timer = self.timers.least().map(Instant::from_nanos);
        let all = [links, timer].into_iter().flatten();
        all.fold(self.signalling.next(), Instant::min)
    }

    /// What is due by now is done.
    pub fn wake(&mut self, now: Instant) {
        for way in &mut self.links {
            way.polls(now);
            way.asks.take_if(|asks| *asks <= now);
        }
        if self.signalling.next() <= now {
            self.signals(now, |node, out| node.wake(now, out));
        }
        while let (Some(place), Some(at)) = (self.timers.first(), self.timers.least())
            && at <= now.as_nanos()
        {
            self.timers.leave(place);
            self.turns(now, place);
        }
    }

    /// The time of a channel has come.
    fn turns(&mut self, now: Instant, place: u32) {
        let Some((end, here)) = self.table.at(place) else {
            return;
        };
        match here {
            Here::Ends { far, .. } => {
                let events = &mut self.events;
                far.expire(now, |event| events.push_back(Event::Missed(end, event)));
                let expires = far.expires();
                self.sets(place, expires);
            }
            Here::Begins { .. } => self.runs(now, end),
            Here::Passes { .. } => {}
        }
    }

    /// A channel's time is then, if that is sooner than it was.
    fn sets(&mut self, place: u32, at: Option<Instant>) {
        let Some(at) = at.map(Instant::as_nanos) else {
            return;
        };
        if self.timers.rank(place).is_none_or(|before| at < before) {
            self.timers.leave(place);
            self.timers.enter(place, at);
        }
    }

    /// A frame came over a link at an instant that is not after now: all of these bytes are it, and it is opened where it lies. What is none, or nobody's, is counted and no more. Whether it is of what a channel was granted here: all else, signals too, a caller may take in as seldom as it likes.
    pub fn came(&mut self, now: Instant, link: LinkId, at: Instant, frame: &mut [u8]) -> bool {
        let Some(way) = self.links.get_mut(link.index()) else {
            return false;
        };
        match way.opens(now, frame, &mut self.budget) {
            Some(Came::Data(data)) => return self.data((now, at), link, &data),
            Some(Came::Signal(signal)) => {
                self.signals(now, |node, out| node.receive(now, link, signal, out));
            }
            // The other side uses the session as soon as it hears in it.
            Some(Came::Agreed) => self.signals(now, |node, out| node.beats(now, link, out)),
            Some(Came::Answered | Came::Again) | None => {}
        }
        false
    }

    /// A part of a message came; whether it is of what was granted.
    fn data(&mut self, (now, at): (Instant, Instant), link: LinkId, data: &Data<'_>) -> bool {
        let end = data.channel;
        let counts = &mut self.links[link.index()].counts;
        match self.table.get_mut(end) {
            Ok(Here::Passes { from, .. } | Here::Ends { from, .. }) if *from != link => {
                counts.misdirected += 1;
                false
            }
            Ok(Here::Passes {
                host,
                link: to,
                number,
                ..
            }) => {
                let (to, number) = (to.index(), *number);
                let came = arrival(&self.signalling, (link, *host), at);
                let forwarded = self.links[to].out.forward(number, now, came, data);
                forwarded == Forwarded::Queued && !data.best_effort
            }
            Ok(Here::Ends { far, host, .. }) => {
                let came = arrival(&self.signalling, (link, *host), at);
                let events = &mut self.events;
                let tell = |event| events.push_back(Event::Missed(end, event));
                let stored = far.arrived(now, came, data, tell);
                if stored == Stored::Complete {
                    events.push_back(Event::Received(end));
                }
                let expires = far.expires();
                self.sets(end.index, expires);
                matches!(stored, Stored::Stored | Stored::Complete) && !data.best_effort
            }
            Ok(Here::Begins { .. }) | Err(_) => {
                counts.nobodys += 1;
                false
            }
        }
    }

    /// A link has room for a frame. If one leaves now it is written to the buffer, which has room for [the longest](super::super::frame::LONGEST) that the link takes, and its bytes are handed over: once, or again for another one where that was refused. To be asked again until it hands over none.
    pub fn fill(
        &mut self,
        now: Instant,
        link: LinkId,
        buffer: &mut [u8],
        hand: impl FnMut(&[u8]) -> Handed,
    ) -> Filled {
        let Some(way) = self.links.get_mut(link.index()) else {
            return Filled::Nothing;
        };
        let events = &mut self.events;
        let tell = |sent: Sent<B>| events.push_back(sent.into());
        let next = way.fill(now, buffer, hand, tell);
        self.goes_on(now, link);
        match next {
            Next::Handed(..) => Filled::Handed,
            Next::NoRoom => Filled::NoRoom,
            Next::NotBefore(at) => Filled::NotBefore(at),
            Next::Nothing => Filled::Nothing,
        }
    }

    /// The frame that was handed over first, of those of which this was not said yet, has left a link by now. Whether there was one.
    pub fn left(&mut self, now: Instant, link: LinkId) -> bool {
        let Some(way) = self.links.get_mut(link.index()) else {
            return false;
        };
        let events = &mut self.events;
        let tell = |sent: Sent<B>| events.push_back(sent.into());
        let was_there = way.sends(tell, |out, effect| out.sent(now, effect));
        self.goes_on(now, link);
        was_there
    }

    /// Handlers of a link that were blocked go on.
    fn goes_on(&mut self, now: Instant, link: LinkId) {
        while let Some((end, lane)) = self.links[link.index()].woken.pop() {
            self.works(now, Handler { end, lane });
        }
    }

    /// A handler has something to do.
    pub(super) fn works(&mut self, now: Instant, handler: Handler) {
        match self.handlers {
            Handlers::AtOnce => self.runs(now, handler.end),
            Handlers::Called => self.events.push_back(Event::Handler(handler)),
        }
    }

    /// The handlers of a channel do all that they can now.
    fn runs(&mut self, now: Instant, end: Label) {
        let Ok(Here::Begins { link, number }) = self.table.get(end) else {
            return;
        };
        let (way, events) = (&mut self.links[link.index()], &mut self.events);
        let tell = |sent: Sent<B>| events.push_back(sent.into());
        let resumes = way.sends(tell, |out, effect| out.run(*number, now, effect));
        self.sets(end.index, resumes);
    }

    /// With [`Handlers::Called`]: what a handler does now that it has the processor. Nothing, where its channel has ended.
    pub fn handle(&mut self, now: Instant, handler: Handler) -> handler::Next {
        let Handler { end, lane } = handler;
        let Ok(Here::Begins { link, number }) = self.table.get(end) else {
            return handler::Next::Idle;
        };
        let (way, events) = (&mut self.links[link.index()], &mut self.events);
        let tell = |sent: Sent<B>| events.push_back(sent.into());
        way.sends(tell, |out, effect| out.next((*number, lane), now, effect))
    }

    /// The work of the packet that a handler makes is done: it begins to wait for the link. Whether there was one.
    pub fn made(&mut self, now: Instant, handler: Handler) -> bool {
        let Handler { end, lane } = handler;
        let Ok(Here::Begins { link, number }) = self.table.get(end) else {
            return false;
        };
        let way = &mut self.links[link.index()];
        way.out.queue((*number, lane), now)
    }
}

/// How a frame of a channel came of whose way this is that host.
fn arrival<S: SupplyBound>(
    signalling: &node::Node<Host<S>>,
    (link, host): (LinkId, u8),
    at: Instant,
) -> Arrival {
    let neighbour = signalling.neighbours().get(link.index());
    let propagation = neighbour.map_or(Span::ZERO, |neighbour| neighbour.propagation);
    let clocks = signalling.clocks(link);
    Arrival {
        at,
        clocks: clocks.and_then(|clocks| clocks.offset(at)),
        link: Crossing {
            number: host.saturating_sub(1),
            propagation,
            longest: propagation,
        },
    }
}
