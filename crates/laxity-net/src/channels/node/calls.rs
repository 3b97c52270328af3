//! What applications ask of a node, and what becomes of it.

use laxity_model::analysis::supply::SupplyBound;
use laxity_model::channels::admission::Host;
use laxity_model::channels::asked::Asked;
use laxity_model::channels::signalling::node::{self, Effects};
use laxity_model::channels::signalling::{ChannelId, Effect, Hold, NotNow};
use laxity_model::{Instant, Span};

use super::super::path::{Label, Lane, Offer, Received};
use super::event::{Event, Handler, NotOpen, Sent};
use super::setup::{Listens, Opening};
use super::{Here, Node, Wants};

impl<B: AsRef<[u8]>, S: SupplyBound> Node<B, S> {
    /// An application opens a channel. What becomes of it is told once: [`Event::Opened`], with the channel's end here, or [`Event::Refused`].
    pub fn open(&mut self, now: Instant, opening: Opening) -> ChannelId {
        let Opening {
            asked,
            route,
            within,
            sends,
        } = opening;
        let mut effects = std::mem::take(&mut self.effects);
        let channel = (self.signalling).open(now, asked, route, within, &mut effects);
        self.wants.insert(channel, Wants::Sends(sends));
        self.does(now, effects);
        channel
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
        self.signals(now, |node, out| {
            node.change(now, channel, asked, within, out)
        })
    }

    /// The application for which [`Event::Asked`] was agrees, or refuses with a number of its own. Nothing happens where nothing was asked, or not any more. An agreement to a change says anew how it listens.
    pub fn answer(&mut self, now: Instant, hold: Hold, answer: Result<Listens, u32>) {
        let answer = answer.map(|listens| {
            let wants = Wants::Listens(listens);
            let before = self.wants.insert(hold.channel, wants);
            if let Some(begins @ Wants::Sends(_)) = before {
                self.wants.insert(hold.channel, begins);
            }
        });
        self.signals(now, |node, out| node.answer(now, hold, answer, out));
        if self.signalling.position(hold.channel).is_none() {
            self.wants.remove(&hold.channel);
        }
    }

    /// An application at either end has done with a channel, or has died. Both ends are told [`Event::Ended`]; of one that is not open yet, its origin that it is refused.
    pub fn close(&mut self, now: Instant, channel: ChannelId, has_died: bool) {
        self.signals(now, |node, out| node.close(now, channel, has_died, out));
    }

    /// An application sends a message by the end of a channel that begins here. O(1), but for those that are dropped for it. The bytes come back by [`Event::Back`], or at once where they are not taken.
    ///
    /// # Errors
    ///
    /// No such end is open.
    pub fn send(&mut self, now: Instant, end: Label, message: B) -> Result<Offer<B>, NotOpen<B>> {
        let Ok(Here::Begins { link, number }) = self.table.get(end) else {
            return Err(NotOpen(message));
        };
        let (way, events) = (&mut self.links[link.index()], &mut self.events);
        let tell = |sent: Sent<B>| events.push_back(sent.into());
        let offer = way.sends(tell, |out, effect| out.offer(*number, now, message, effect));
        if matches!(offer, Offer::Waits | Offer::Demoted) {
            let is_due = way.out.is_due(*number) && matches!(offer, Offer::Waits);
            let lane = if is_due {
                Lane::RealTime
            } else {
                Lane::BestEffort
            };
            self.works(now, Handler { end, lane });
        }
        Ok(offer)
    }

    /// The next message that is complete at the end of a channel that ends here, of which [`Event::Received`] told. `None` too where no such end is open.
    pub fn receive(&mut self, end: Label) -> Option<Received> {
        match self.table.get_mut(end) {
            Ok(Here::Ends { far, .. }) => far.take(),
            _ => None,
        }
    }

    /// The bytes of a message that was received; `None` if the channel has ended meanwhile.
    #[must_use]
    pub fn bytes(&self, end: Label, message: &Received) -> Option<&[u8]> {
        match self.table.get(end) {
            Ok(Here::Ends { far, .. }) => Some(far.bytes(message)),
            _ => None,
        }
    }

    /// The application has done with a message, and its buffer is the channel's again.
    pub fn give_back(&mut self, end: Label, message: Received) {
        if let Ok(Here::Ends { far, .. }) = self.table.get_mut(end) {
            far.give_back(message);
        }
    }

    /// Signalling is asked, and what it wants is done.
    pub(super) fn signals<R>(
        &mut self,
        now: Instant,
        ask: impl FnOnce(&mut node::Node<Host<S>>, &mut Effects<Host<S>>) -> R,
    ) -> R {
        let mut effects = std::mem::take(&mut self.effects);
        let answer = ask(&mut self.signalling, &mut effects);
        self.does(now, effects);
        answer
    }

    /// What signalling wants is done, and whatever comes of that.
    fn does(&mut self, now: Instant, mut effects: Effects<Host<S>>) {
        while !effects.is_empty() {
            for effect in effects.drain(..) {
                self.effect(now, effect);
            }
            std::mem::swap(&mut effects, &mut self.effects);
        }
        self.effects = effects;
    }

    fn effect(&mut self, now: Instant, effect: node::EffectOf<Host<S>>) {
        let event = match effect {
            Effect::Send(link, signal) => return self.links[link.index()].says(now, signal),
            Effect::Holds {
                channel,
                delays,
                label,
                next,
            } => return self.holds(now, (channel, delays), (label, next)),
            Effect::Frees(channel) => return self.frees(channel),
            Effect::Opened {
                hold,
                bounds,
                propagation,
            } => match self.labels.get(&hold.channel) {
                Some(end) => Event::Opened {
                    hold,
                    end: *end,
                    bounds,
                    propagation,
                },
                // It has ended meanwhile, which is told behind this.
                None => return,
            },
            Effect::Refused(hold, refusal) => {
                if hold.version == 0 {
                    self.wants.remove(&hold.channel);
                }
                Event::Refused(hold, refusal)
            }
            Effect::Asked(hold, asked) => Event::Asked(hold, asked),
            Effect::Ended(channel, cause) => Event::Ended(channel, cause),
            Effect::Up(link) => Event::Up(link),
            Effect::Down(link, broke) => Event::Down(link, broke),
        };
        self.events.push_back(event);
    }
}
