//! How a channel ends, and how its ends are told.

use alloc::vec::Vec;

use super::link::Broke;
use super::message::LISTED;
use super::node::{Effect, Effects, Node};
use super::{Admits, Cause, ChannelId, Hold, LinkId, List, Message, Place, Refusal, Summary};
use crate::Instant;

impl<A: Admits> Node<A> {
    /// A channel ends for a reason that is known here, or that a neighbour told: the other neighbour is told, or both, and of those that are here the end.
    pub(super) fn ends(&mut self, channel: ChannelId, cause: Cause, out: &mut Effects<A>) {
        let Some(place) = self.channels.get(&channel).map(|hop| hop.place) else {
            return;
        };
        self.passes(channel, place, cause, out);
    }

    /// The same, where only these neighbours do not know.
    fn passes(
        &mut self,
        channel: ChannelId,
        Place { from, to }: Place,
        cause: Cause,
        out: &mut Effects<A>,
    ) {
        if let Some(to) = to {
            self.ends[to.index()].say(Message::Tear(channel, cause));
        }
        let said = from.map(|from| {
            let ended = Message::Ended(channel, cause);
            (from, self.ends[from.index()].say(ended))
        });
        let Some(hop) = self.forgets(channel, said) else {
            return;
        };
        for agreed in hop.holds() {
            self.admission.release(Hold {
                channel,
                version: agreed.version,
            });
        }
        if hop.now.is_some() {
            out.push(Effect::Frees(channel));
        }
        if hop.place.from.is_none() && hop.now.is_none() {
            let hold = Hold {
                channel,
                version: 0,
            };
            out.push(Effect::Refused(hold, Refusal::Ended(cause)));
            return;
        }
        if hop.place.from.is_none()
            && let Some(pending) = &hop.pending
        {
            let version = pending.agreed.version;
            let refusal = Refusal::Ended(cause);
            out.push(Effect::Refused(Hold { channel, version }, refusal));
        }
        if hop.place.from.is_none() || hop.place.to.is_none() {
            out.push(Effect::Ended(channel, cause));
        }
    }

    /// Who is before says that it has ended.
    pub(super) fn torn(
        &mut self,
        link: LinkId,
        channel: ChannelId,
        cause: Cause,
        out: &mut Effects<A>,
    ) {
        self.softs[link.index()].torn(channel);
        let place = self.channels.get(&channel).map(|hop| hop.place);
        if let Some(place) = place.filter(|place| place.from == Some(link)) {
            self.passes(
                channel,
                Place {
                    from: None,
                    ..place
                },
                cause,
                out,
            );
        }
    }

    /// Who is behind says that it has ended.
    pub(super) fn ended(
        &mut self,
        link: LinkId,
        channel: ChannelId,
        cause: Cause,
        out: &mut Effects<A>,
    ) {
        let place = self.channels.get(&channel).map(|hop| hop.place);
        if let Some(place) = place.filter(|place| place.to == Some(link)) {
            self.passes(channel, Place { to: None, ..place }, cause, out);
        }
    }

    /// A neighbour is lost, and with it all channels over that link.
    pub(super) fn loses(&mut self, link: LinkId, broke: Broke, out: &mut Effects<A>) {
        let (here, there) = (self.host, self.neighbours[link.index()].host);
        let (by, silent) = match broke {
            Broke::Dropped => (there, here),
            Broke::Silent | Broke::Restarted => (here, there),
        };
        let cause = match broke {
            Broke::Restarted => Cause::Restarted(there),
            Broke::Silent | Broke::Dropped => Cause::Lost { by, silent },
        };
        out.push(Effect::Down(link, broke));
        for channel in self.through(|place| place.from == Some(link) || place.to == Some(link)) {
            self.ends(channel, cause, out);
        }
    }

    /// Channels of such places.
    fn through(&self, is_meant: impl Fn(Place) -> bool) -> Vec<ChannelId> {
        let all = self.channels.iter();
        let meant = all.filter(|(_, hop)| is_meant(hop.place));
        meant.map(|(channel, _)| *channel).collect()
    }

    fn coming(&self, link: LinkId) -> Vec<ChannelId> {
        self.through(|place| place.from == Some(link))
    }

    /// A summary is said, and what has not been confirmed for too long ends.
    pub(super) fn refreshes(&mut self, link: LinkId, time: Instant, out: &mut Effects<A>) {
        let (soft, end) = (&mut self.softs[link.index()], &mut self.ends[link.index()]);
        if soft.is_due(time, &self.terms) {
            let summary = Summary {
                digest: soft.away,
                heard: end.heard(),
            };
            end.say(Message::Summary(summary));
        }
        if soft.is_over(time, &self.terms) {
            for channel in self.coming(link) {
                self.ends(channel, Cause::Unrefreshed(self.host), out);
            }
        }
    }

    /// What goes over a link does not agree with what the other end knows: it is told one by one.
    pub(super) fn lists(&mut self, link: LinkId) {
        let away = self.through(|place| place.to == Some(link));
        let mut parts: Vec<List> = away
            .chunks(LISTED)
            .map(|channels| List {
                channels: channels.into(),
                last: false,
            })
            .collect();
        match parts.last_mut() {
            Some(part) => part.last = true,
            None => parts.push(List {
                channels: Vec::new(),
                last: true,
            }),
        }
        for part in parts {
            self.ends[link.index()].say(Message::List(part));
        }
    }

    /// Who is before has told them one by one.
    pub(super) fn listed(&mut self, link: LinkId, list: List, time: Instant, out: &mut Effects<A>) {
        let mut here = Vec::new();
        if list.last {
            here = self.coming(link);
        }
        let settled = self.softs[link.index()].lists(list, || here, time);
        for channel in settled.ends {
            self.ends(channel, Cause::Unrefreshed(self.host), out);
        }
        for channel in settled.unknown {
            let ended = Message::Ended(channel, Cause::Unknown(self.host));
            self.ends[link.index()].say(ended);
        }
    }
}
