//! How a channel is opened and changed.

use alloc::boxed::Box;
use alloc::sync::Arc;

use alloc::vec::Vec;

use super::message::{LONGEST, MOST_HOSTS};
use super::node::{Agreed, Effect, Effects, Hop, Node, Pending};
use super::{
    Admits, Cause, ChannelId, Confirm, Delays, Hold, HostId, Label, LinkId, Message, Open, Place,
    Refusal,
};
use crate::channels::admission::spread;
use crate::{Instant, Span};

/// Whether these can be a route.
fn is_route(route: &[HostId]) -> bool {
    let mut hosts = route.iter().enumerate();
    (2..=MOST_HOSTS).contains(&route.len())
        && hosts.all(|(place, host)| !route[..place].contains(host))
}

impl<A: Admits> Node<A> {
    /// The origin asks.
    pub(super) fn begins(
        &mut self,
        time: Instant,
        hold: Hold,
        asked: A::Asked,
        (route, within): (Arc<[HostId]>, Span),
        out: &mut Effects<A>,
    ) {
        let open = Open {
            hold,
            route,
            asked,
            within,
            propagation: Span::ZERO,
            least: Vec::new(),
        };
        match self.takes(time, open, None, out) {
            Ok(()) => self.sets_timer(hold.channel, time + self.terms.patience),
            Err(refusal) => out.push(Effect::Refused(hold, refusal)),
        }
    }

    /// A neighbour asks.
    pub(super) fn asks(
        &mut self,
        time: Instant,
        link: LinkId,
        open: Open<A::Asked>,
        out: &mut Effects<A>,
    ) {
        let hold = open.hold;
        let newest = self.channels.get(&hold.channel).map(|hop| hop.newest);
        if newest.is_some_and(|newest| hold.version <= newest) {
            // It has been said before.
            return;
        }
        let is_new = newest.is_none();
        if let Err(refusal) = self.takes(time, open, Some(link), out) {
            let refusal = Message::Refuse(hold, Box::new(refusal));
            let said = self.ends[link.index()].say(refusal);
            if let (Some(number), true) = (said, is_new) {
                self.softs[link.index()].leaves(number, hold.channel);
            }
        }
    }

    /// Reserves the smallest delay, and asks the next hop.
    fn takes(
        &mut self,
        time: Instant,
        mut open: Open<A::Asked>,
        from: Option<LinkId>,
        out: &mut Effects<A>,
    ) -> Result<(), Refusal<A::Short>> {
        let (at, hold) = (self.host, open.hold);
        self.makes_sense(&open, from)?;
        self.fits(&open)?;
        let position = open.least.len();
        let to = self.onward(&open)?;
        let place = Place { from, to };
        let before = open.least.last().copied().unwrap_or(Span::ZERO);
        let own = self
            .admission
            .reserve(hold, place, &open.asked, before)
            .map_err(|short| Refusal::Short { at, short })?;
        open.least.push(own);
        if let Some(to) = to {
            let propagation = self.neighbours[to.index()].propagation;
            open.propagation = open
                .propagation
                .checked_add(propagation)
                .unwrap_or(Span::MAX);
        }
        let pending = Pending {
            agreed: Agreed {
                version: hold.version,
                asked: open.asked.clone(),
                within: open.within,
                delays: Delays { before, own },
            },
            propagation: open.propagation,
            least: to.map_or_else(|| open.least.clone(), |_| Vec::new()),
        };
        let fits = self.fits(&open);
        let kept = fits.and_then(|()| self.keeps(time, &open, place, position as u8, pending));
        if let Err(refusal) = kept {
            self.admission.release(hold);
            return Err(refusal);
        }
        match to {
            Some(to) => {
                self.ends[to.index()].say(Message::Open(Box::new(open)));
            }
            None => {
                self.sets_timer(hold.channel, time + self.terms.answer);
                out.push(Effect::Asked(hold, open.asked));
            }
        }
        Ok(())
    }

    /// Whether the hops and links so far are within the bound.
    fn fits(&self, open: &Open<A::Asked>) -> Result<(), Refusal<A::Short>> {
        let lacks = sum(&open.least, open.propagation).saturating_sub(open.within);
        let at = self.host;
        match lacks.is_zero() {
            true => Ok(()),
            false => Err(Refusal::Time { at, lacks }),
        }
    }

    /// Whether what is asked can be: a neighbour may say anything.
    fn makes_sense(
        &self,
        open: &Open<A::Asked>,
        from: Option<LinkId>,
    ) -> Result<(), Refusal<A::Short>> {
        let route = &open.route;
        let position = open.least.len();
        let before = position.checked_sub(1).and_then(|before| route.get(before));
        let is_from = from.map(|from| &self.neighbours[from.index()].host) == before;
        let is_there = route.get(position) == Some(&self.host);
        let is_origins = route.first() == Some(&open.hold.channel.origin);
        let follows = match self.channels.get(&open.hold.channel) {
            None => open.hold.version == 0,
            Some(hop) => {
                let is_free = hop.now.is_some() && hop.pending.is_none() && hop.before.is_none();
                let is_next = open.hold.version > hop.newest;
                is_free && is_next && hop.place.from == from && hop.route == *route
            }
        };
        let is_bound = open.within <= LONGEST;
        match is_bound && is_route(route) && is_from && is_there && is_origins && follows {
            true => Ok(()),
            false => Err(Refusal::Nonsense { at: self.host }),
        }
    }

    /// Over which link it goes on; `None` at the far end.
    fn onward(&self, open: &Open<A::Asked>) -> Result<Option<LinkId>, Refusal<A::Short>> {
        let at = self.host;
        let Some(next) = open.route.get(open.least.len() + 1) else {
            return Ok(None);
        };
        let link = self.links.get(next).filter(|link| self.is_up(**link));
        let link = *link.ok_or(Refusal::NoLink { at, to: *next })?;
        match self.ends[link.index()].backlog() < self.terms.backlog {
            true => Ok(Some(link)),
            false => Err(Refusal::Busy { at }),
        }
    }

    fn keeps(
        &mut self,
        time: Instant,
        open: &Open<A::Asked>,
        place: Place,
        position: u8,
        pending: Pending<A::Asked>,
    ) -> Result<(), Refusal<A::Short>> {
        let channel = open.hold.channel;
        if let Some(hop) = self.channels.get_mut(&channel) {
            hop.newest = open.hold.version;
            hop.pending = Some(Box::new(pending));
            return Ok(());
        }
        let label = self.labels.give().ok_or(Refusal::Busy { at: self.host })?;
        if let Some(from) = place.from {
            self.softs[from.index()].comes(channel, time);
        }
        if let Some(to) = place.to {
            self.softs[to.index()].away.add(channel);
        }
        let hop = Hop {
            route: open.route.clone(),
            position,
            place,
            label,
            next: None,
            newest: 0,
            now: None,
            pending: Some(Box::new(pending)),
            before: None,
            timer: None,
        };
        self.channels.insert(channel, hop);
        Ok(())
    }

    /// The far end's application agrees.
    pub(super) fn agrees_to(&mut self, hold: Hold, out: &mut Effects<A>) {
        let Some(hop) = self.channels.get(&hold.channel) else {
            return;
        };
        let Some(pending) = hop.pending.as_ref().filter(|_| hop.place.to.is_none()) else {
            return;
        };
        let least = sum(&pending.least, pending.propagation);
        let left = pending.agreed.within.saturating_sub(least);
        let shares = spread(left, pending.least.len());
        let all = pending.least.iter().zip(shares);
        let confirm = Confirm {
            hold,
            label: hop.label,
            delays: all.map(|(least, share)| *least + share).collect(),
            propagation: pending.propagation,
        };
        self.confirms(confirm, None, out);
    }

    /// A neighbour says that all hops from it on have agreed.
    pub(super) fn confirmed(&mut self, link: LinkId, confirm: Confirm, out: &mut Effects<A>) {
        let hop = self.channels.get(&confirm.hold.channel);
        let Some(hop) = hop.filter(|hop| hop.place.to == Some(link)) else {
            return;
        };
        // What is on its way has the label that was said first.
        let is_same = hop.next.is_none_or(|next| next == confirm.label);
        if is_same && confirm.delays.len() == hop.route.len() {
            let next = Some(confirm.label);
            self.confirms(confirm, next, out);
        } else {
            let cause = Cause::Nonsense(self.host);
            self.ends(confirm.hold.channel, cause, out);
        }
    }

    /// This hop takes its share, and tells the hop before.
    fn confirms(&mut self, mut confirm: Confirm, next: Option<Label>, out: &mut Effects<A>) {
        let (hold, delays) = (confirm.hold, &mut confirm.delays);
        let Some(hop) = self.channels.get_mut(&hold.channel) else {
            return;
        };
        let is_asked = |pending: &mut Box<Pending<_>>| pending.agreed.version == hold.version;
        let Some(mut pending) = hop.pending.take_if(is_asked) else {
            return;
        };
        let place = usize::from(hop.position);
        let before = place.checked_sub(1).map(|before| delays[before]);
        let least = pending.agreed.delays;
        // Whatever a neighbour says, no delay is longer than the bound.
        let most = |said: Span, least: Span| said.min(pending.agreed.within).max(least);
        let offered = Delays {
            before: most(before.unwrap_or(Span::ZERO), least.before),
            own: most(delays[place], least.own),
        };
        let granted = self.admission.relax(hold, offered);
        delays[place] = granted.own;
        if let Some(before) = place.checked_sub(1) {
            delays[before] = granted.before;
        }
        pending.agreed.delays = granted;
        if hop.place.from.is_none() && sum(delays, confirm.propagation) > pending.agreed.within {
            // Somebody took more than it was offered.
            hop.pending = Some(pending);
            return self.ends(hold.channel, Cause::Nonsense(self.host), out);
        }
        hop.before = hop.now.replace(pending.agreed).map(Box::new);
        hop.timer = None;
        hop.next = next;
        confirm.label = hop.label;
        out.extend(hop.told(hold.channel));
        match hop.place.from {
            Some(from) => {
                self.ends[from.index()].say(Message::Confirm(Box::new(confirm)));
            }
            None => self.opens(confirm, out),
        }
    }

    /// The origin's channel is open, or changed: what was before lasts for as long as a message may take.
    fn opens(&mut self, confirm: Confirm, out: &mut Effects<A>) {
        let hold = confirm.hold;
        out.push(Effect::Opened {
            hold,
            bounds: confirm.delays,
            propagation: confirm.propagation,
        });
        let hop = self.channels.get(&hold.channel);
        if let Some(before) = hop.and_then(|hop| hop.before.as_ref()) {
            let now = self.steady.now();
            let until = now.checked_add(before.within).unwrap_or(Instant::MAX);
            self.sets_timer(hold.channel, until);
        }
    }

    /// Nobody sends as before this version any more.
    pub(super) fn settles(&mut self, hold: Hold, out: &mut Effects<A>) {
        let Some(hop) = self.channels.get_mut(&hold.channel) else {
            return;
        };
        if hop.now.as_ref().map(|now| now.version) != Some(hold.version) {
            return;
        }
        let Some(before) = hop.before.take() else {
            return;
        };
        let Hold { channel, .. } = hold;
        self.admission.release(Hold {
            channel,
            version: before.version,
        });
        out.extend(hop.told(channel));
        if let Some(to) = hop.place.to {
            self.ends[to.index()].say(Message::Settle(hold));
        }
    }

    /// The far end does not want it.
    pub(super) fn declines(
        &mut self,
        hold: Hold,
        refusal: Refusal<A::Short>,
        out: &mut Effects<A>,
    ) {
        let hop = self.channels.get(&hold.channel);
        if hop.is_some_and(|hop| hop.place.to.is_none()) {
            self.refuses(hold, refusal, out);
        }
    }

    /// A neighbour says that somebody behind it has refused.
    pub(super) fn refused(
        &mut self,
        link: LinkId,
        hold: Hold,
        refusal: Refusal<A::Short>,
        out: &mut Effects<A>,
    ) {
        let hop = self.channels.get(&hold.channel);
        if hop.is_some_and(|hop| hop.place.to == Some(link)) {
            self.refuses(hold, refusal, out);
        }
    }

    /// What was asked is given back, and the hop before is told.
    fn refuses(&mut self, hold: Hold, refusal: Refusal<A::Short>, out: &mut Effects<A>) {
        let Some(hop) = self.channels.get_mut(&hold.channel) else {
            return;
        };
        let is_asked = |pending: &mut Box<Pending<_>>| pending.agreed.version == hold.version;
        if hop.pending.take_if(is_asked).is_none() {
            return;
        }
        hop.timer = None;
        self.admission.release(hold);
        let (is_gone, place) = (hop.now.is_none(), hop.place);
        let said = place.from.map(|from| {
            let refuse = Message::Refuse(hold, Box::new(refusal.clone()));
            (from, self.ends[from.index()].say(refuse))
        });
        if is_gone {
            self.forgets(hold.channel, said);
        }
        if place.from.is_none() {
            out.push(Effect::Refused(hold, refusal));
        }
    }

    /// The channel is not here any more; who is before was told so, in the message of that number.
    pub(super) fn forgets(
        &mut self,
        channel: ChannelId,
        said: Option<(LinkId, Option<u64>)>,
    ) -> Option<Hop<A::Asked>> {
        let hop = self.channels.remove(&channel)?;
        self.labels.take_back(hop.label);
        if let Some(from) = hop.place.from {
            self.softs[from.index()].coming.remove(channel);
        }
        if let Some(to) = hop.place.to {
            self.softs[to.index()].away.remove(channel);
        }
        if let Some((link, Some(number))) = said {
            self.softs[link.index()].leaves(number, channel);
        }
        Some(hop)
    }
}

/// All of these; of what cannot be, more than anything.
fn sum(delays: &[Span], propagation: Span) -> Span {
    let mut all = delays.iter();
    let sum = all.try_fold(propagation, |sum, delay| sum.checked_add(*delay));
    sum.unwrap_or(Span::MAX)
}
