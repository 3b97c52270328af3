//! How a node is called: by frames, and by the time.

use super::node::{Effect, Effects, Node, Said};
use super::{Admits, Cause, ChannelId, Hold, LinkId, Message, Refusal};
use crate::Instant;

impl<A: Admits> Node<A> {
    /// A frame has come over this link.
    pub fn receive(&mut self, now: Instant, link: LinkId, frame: Said<A>, out: &mut Effects<A>) {
        let time = self.enter(now);
        let Some(end) = self.ends.get_mut(link.index()) else {
            return;
        };
        let was_up = end.is_up();
        let broke = end.receive(time, now, frame, &self.terms);
        let is_up = end.is_up();
        if let Some(broke) = broke {
            self.loses(link, broke, out);
        }
        if is_up && !was_up {
            self.softs[link.index()].begins(time, &self.terms);
            out.push(Effect::Up(link));
        }
        while let Some(message) = self.ends[link.index()].take() {
            self.hears(time, link, message, out);
        }
        self.leave(time, out);
    }

    fn hears(
        &mut self,
        time: Instant,
        link: LinkId,
        message: Message<A::Asked, A::Short>,
        out: &mut Effects<A>,
    ) {
        match message {
            Message::Open(open) => self.asks(time, link, *open, out),
            Message::Confirm(confirm) => self.confirmed(link, *confirm, out),
            Message::Refuse(hold, refusal) => self.refused(link, hold, *refusal, out),
            Message::Settle(hold) => {
                let hop = self.channels.get(&hold.channel);
                if hop.is_some_and(|hop| hop.place.from == Some(link)) {
                    self.settles(hold, out);
                }
            }
            Message::Tear(channel, cause) => self.torn(link, channel, cause, out),
            Message::Ended(channel, cause) => self.ended(link, channel, cause, out),
            Message::Summary(summary) => {
                if !self.softs[link.index()].hears(summary, time) {
                    self.ends[link.index()].say(Message::Differs);
                }
            }
            Message::Differs => self.lists(link),
            Message::List(list) => self.listed(link, list, time, out),
        }
    }

    /// What is due by now is done.
    pub fn wake(&mut self, now: Instant, out: &mut Effects<A>) {
        let time = self.enter(now);
        for number in 0..self.ends.len() {
            let link = LinkId(number as u16);
            let end = &mut self.ends[number];
            let mut send = |frame| out.push(Effect::Send(link, frame));
            if let Some(broke) = end.wake(time, now, &self.terms, &mut send) {
                self.loses(link, broke, out);
            }
            if self.is_up(link) {
                self.refreshes(link, time, out);
            }
        }
        while let Some((at, channel)) = self.timers.first().copied()
            && at <= time
        {
            self.timers.pop_first();
            let is_set = |hop: &super::node::Hop<A::Asked>| hop.timer == Some(at);
            if self.channels.get(&channel).is_some_and(is_set) {
                self.expires(channel, out);
            }
        }
        self.leave(time, out);
    }

    /// A channel's own time has come.
    fn expires(&mut self, channel: ChannelId, out: &mut Effects<A>) {
        let Some(hop) = self.channels.get_mut(&channel) else {
            return;
        };
        hop.timer = None;
        let cause = Cause::Unanswered(self.host);
        let pending = hop.pending.as_ref().map(|pending| pending.agreed.version);
        let now = hop.now.as_ref().map(|now| now.version);
        match (pending, now) {
            // The far end's application has not answered a change.
            (Some(version), Some(_)) if hop.place.to.is_none() => {
                let hold = Hold { channel, version };
                self.declines(hold, Refusal::Ended(cause), out);
            }
            (Some(_), _) => self.ends(channel, cause, out),
            (None, Some(version)) => self.settles(Hold { channel, version }, out),
            (None, None) => {}
        }
    }

    pub(super) fn sets_timer(&mut self, channel: ChannelId, at: Instant) {
        if let Some(hop) = self.channels.get_mut(&channel) {
            hop.timer = Some(at);
            self.timers.insert((at, channel));
        }
    }

    /// The time now. What passes while the node itself is late is no time, so that nobody is to blame for what it has not heard then.
    pub(super) fn enter(&mut self, now: Instant) -> Instant {
        self.steady.at(now, self.due, self.terms.tolerance)
    }

    /// What there is to say is said, and it is known when there is something to be done again.
    pub(super) fn leave(&mut self, time: Instant, out: &mut Effects<A>) {
        let mut due = self.timers.first().map_or(Instant::MAX, |(at, _)| *at);
        for (number, (end, soft)) in (0..).zip(self.ends.iter_mut().zip(&self.softs)) {
            let mut send = |frame| out.push(Effect::Send(LinkId(number), frame));
            end.flush(time, &self.terms, &mut send);
            due = due.min(end.next(&self.terms));
            if end.is_up() {
                due = due.min(soft.next(&self.terms));
            }
        }
        self.due = due;
    }
}
