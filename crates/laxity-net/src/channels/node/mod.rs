//! A host's node of channels, without I/O: what a live node's thread and the twin's node both call.
//!
//! Frames that came, requests of applications and the time go in; frames that leave, what applications are to be told, and when to call again come out. There are no sockets here, no threads and no clock. What stands by itself elsewhere is joined here: [signalling](laxity_model::channels::signalling) with a host's
//! [admission](laxity_model::channels::admission::Host), [sessions](super::session) with each neighbour, [frames](super::frame), and the [data path](super::path).
//!
//! # How a node is called
//!
//! 1. Something happened: a frame came over a link ([`Node::came`]), a frame that was handed over has left ([`Node::left`]), an application asks something ([`Node::open`], [`Node::send`] and so on), or it is [`Node::next`] ([`Node::wake`]). Where several happened at once, frames that came are told before the node is woken.
//! 2. [`Node::event`] is asked until it has nothing: that is what applications are told. What is not asked for stays there, and takes memory.
//! 3. Each link that has room for a frame is asked by [`Node::fill`] until it says that nothing leaves now. So which frame leaves is decided when it does, and no sooner.
//! 4. The caller waits until [`Node::next`], or for whatever happens before.
//!
//! A live thread polls the sockets of its links, a timer and its applications; a socket's becoming writable is both its room and the completion of what it had. The twin's calendar has an entry for each frame on a wire, for the end of its transmission, and for [`Node::next`]. `now` is one clock's, the host's own, and never goes back but where that is set.
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
//! Signals and handshakes travel in a small channel of each link's own, which is admitted before all others, so that a link which is full still opens and ends channels; what does not fit that is dropped, as a wire might. A frame counts only where it comes over the link from which its channel comes.

mod admission;
mod event;
mod setup;

pub use admission::Admission;
pub use event::{Event, Filled, Handler, NotOpen};
pub use setup::{Handlers, Link, Listens, MOST_SIGNAL, Opening, Sends, Setup, SetupError, Trust};

use laxity_model::Instant;
use laxity_model::Span;
use laxity_model::analysis::supply::SupplyBound;
use laxity_model::channels::admission::Host;
use laxity_model::channels::asked::Asked;
use laxity_model::channels::handler;
use laxity_model::channels::signalling::{self, ChannelId, Hold, LinkId, NotNow};

use super::path::{Handed, Label, Offer, Received};

/// A host's node. `B` are the bytes of messages, as applications hand them over: they are lent until all of the message has left. `S` is what there is of the host's processor and links.
pub struct Node<B, S: SupplyBound> {
    signalling: signalling::Node<Admission<S>>,
    events: std::collections::VecDeque<Event<B>>,
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
        admission: Host<S>,
        now: Instant,
    ) -> Result<Self, SetupError> {
        let _ = (setup, links, admission, now);
        todo!()
    }

    /// When [`wake`](Self::wake) is to be called, at the latest; it changes with each call.
    #[must_use]
    pub fn next(&self) -> Instant {
        todo!()
    }

    /// What is due by now is done.
    pub fn wake(&mut self, now: Instant) {
        let _ = now;
        todo!()
    }

    /// A frame came over a link at an instant that is not after now: all of these bytes are it, and it is opened where it lies. What is none, or nobody's, is counted and no more.
    pub fn came(&mut self, now: Instant, link: LinkId, at: Instant, frame: &mut [u8]) {
        let _ = (now, link, at, frame);
        todo!()
    }

    /// A link has room for a frame. If one leaves now it is written to the buffer, which has room for [the longest](super::frame::LONGEST) that the link takes, and its bytes are handed over: once, or again for another one where that was refused. To be asked again until it hands over none.
    pub fn fill(
        &mut self,
        now: Instant,
        link: LinkId,
        buffer: &mut [u8],
        hand: impl FnMut(&[u8]) -> Handed,
    ) -> Filled {
        let _ = (now, link, buffer, hand);
        todo!()
    }

    /// The frame that was handed over first, of those of which this was not said yet, has left a link by now. Whether there was one.
    pub fn left(&mut self, now: Instant, link: LinkId) -> bool {
        let _ = (now, link);
        todo!()
    }

    /// An application opens a channel. What becomes of it is told once: [`Event::Opened`], with the channel's end here, or [`Event::Refused`].
    pub fn open(&mut self, now: Instant, opening: Opening) -> ChannelId {
        let _ = (now, opening);
        todo!()
    }

    /// A channel that begins here is to carry something else, or to be there within another time. What becomes of that is told once, like that of an opening: until then it is as it was.
    ///
    /// # Errors
    ///
    /// [`NotNow`].
    pub fn change(
        &mut self,
        now: Instant,
        channel: ChannelId,
        asked: Asked,
        within: Span,
    ) -> Result<Hold, NotNow> {
        let _ = (now, channel, asked, within);
        todo!()
    }

    /// The application for which [`Event::Asked`] was agrees, or refuses with a number of its own. Nothing happens where nothing was asked, or not any more. An agreement to a change says anew how it listens.
    pub fn answer(&mut self, now: Instant, hold: Hold, answer: Result<Listens, u32>) {
        let _ = (now, hold, answer);
        todo!()
    }

    /// An application at either end has done with a channel, or has died. Both ends are told [`Event::Ended`]; of one that is not open yet, its origin that it is refused.
    pub fn close(&mut self, now: Instant, channel: ChannelId, has_died: bool) {
        let _ = (now, channel, has_died);
        todo!()
    }

    /// An application sends a message by the end of a channel that begins here. O(1), but for those that are dropped for it. The bytes come back by [`Event::Back`], or at once where they are not taken.
    ///
    /// # Errors
    ///
    /// No such end is open.
    pub fn send(&mut self, now: Instant, end: Label, message: B) -> Result<Offer<B>, NotOpen<B>> {
        let _ = now;
        let _ = end;
        Err(NotOpen(message))
    }

    /// The next message that is complete at the end of a channel that ends here, of which [`Event::Received`] told. `None` too where no such end is open.
    pub fn receive(&mut self, end: Label) -> Option<Received> {
        let _ = end;
        todo!()
    }

    /// The bytes of a message that was received; `None` if the channel has ended meanwhile.
    #[must_use]
    pub fn bytes(&self, end: Label, message: &Received) -> Option<&[u8]> {
        let _ = (end, message);
        todo!()
    }

    /// The application has done with a message, and its buffer is the channel's again.
    pub fn give_back(&mut self, end: Label, message: Received) {
        let _ = (end, message);
        todo!()
    }

    /// With [`Handlers::Called`]: what a handler does now that it has the processor. Nothing, where its channel has ended.
    pub fn handle(&mut self, now: Instant, handler: Handler) -> handler::Next {
        let _ = (now, handler);
        todo!()
    }

    /// The work of the packet that a handler makes is done: it begins to wait for the link. Whether there was one.
    pub fn made(&mut self, now: Instant, handler: Handler) -> bool {
        let _ = (now, handler);
        todo!()
    }

    /// What an application, or the caller, is to be told next.
    pub fn event(&mut self) -> Option<Event<B>> {
        self.events.pop_front()
    }

    /// What the node knows of its channels, links and reservations.
    #[must_use]
    pub const fn signalling(&self) -> &signalling::Node<Admission<S>> {
        &self.signalling
    }
}
