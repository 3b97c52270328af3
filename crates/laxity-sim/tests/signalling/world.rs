//! Hosts with applications that keep a book of what they are told.

use std::collections::BTreeMap;
use std::sync::Arc;

use laxity_model::channels::asked::{Asked, Shortage};
use laxity_model::channels::signalling::{
    Cause, ChannelId, Effect, Hold, HostId, Label, Listed, Node, Refusal, Terms,
};
use laxity_model::nif::wire::Faults;
use laxity_model::{Instant, Span};
use laxity_sim::nodes::{Network, Told};

use super::admission::{self, Admission};

/// What an application at the far end does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Manner {
    Agrees,
    Declines,
    Sleeps,
}

/// What an end was told of a channel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Book {
    pub(crate) opened: Vec<(Hold, Vec<Span>, Span)>,
    pub(crate) refused: Vec<(Hold, Refusal<Shortage>)>,
    pub(crate) asked: Vec<Hold>,
    pub(crate) ended: Vec<(Instant, Cause)>,
}

pub(crate) struct World {
    pub(crate) network: Network<Admission>,
    pub(crate) hosts: u32,
    pub(crate) size: [u64; 3],
    pub(crate) manner: Manner,
    /// Of each life of a host.
    pub(crate) books: BTreeMap<(HostId, u32, ChannelId), Book>,
    pub(crate) lives: Vec<u32>,
    pub(crate) alive: Vec<bool>,
    /// Whose a label was in that life of a host.
    pub(crate) labels: BTreeMap<(HostId, u32, Label), ChannelId>,
    /// What was asked, and within which time, by version.
    pub(crate) asked: BTreeMap<Hold, Span>,
    pub(crate) routes: BTreeMap<ChannelId, Arc<[HostId]>>,
    pub(crate) parents: Vec<u32>,
}

/// What most channels ask for.
pub(crate) const SHARE: u32 = 10_000;

impl World {
    /// Hosts that live, each but the first with a link to an earlier one.
    pub(crate) fn new(parents: &[u32], size: [u64; 3], faults: Faults, seed: u64) -> Self {
        let hosts = parents.len() as u32;
        let network = Network::new(hosts, Terms::default(), faults, seed);
        Self::on(network, parents, size)
    }

    /// The same, of a network's hosts.
    pub(crate) fn on(mut network: Network<Admission>, parents: &[u32], size: [u64; 3]) -> Self {
        let hosts = parents.len() as u32;
        for (host, parent) in (0..).zip(parents).skip(1) {
            network.link(HostId(*parent), HostId(host), Span::from_micros(50));
        }
        let mut world = Self {
            network,
            hosts,
            size,
            manner: Manner::Agrees,
            books: BTreeMap::new(),
            labels: BTreeMap::new(),
            lives: vec![0; parents.len()],
            alive: vec![false; parents.len()],
            asked: BTreeMap::new(),
            routes: BTreeMap::new(),
            parents: parents.into(),
        };
        for host in 0..hosts {
            world.start(HostId(host));
        }
        world
    }

    /// A line of so many hosts.
    pub(crate) fn line(hosts: u32) -> Self {
        let parents: Vec<u32> = (0..hosts).map(|host| host.saturating_sub(1)).collect();
        Self::new(&parents, [1_000_000; 3], Faults::default(), 1)
    }

    pub(crate) fn start(&mut self, host: HostId) {
        // No host has more links.
        let links = self.hosts as u16;
        self.lives[host.0 as usize] += 1;
        self.alive[host.0 as usize] = true;
        self.network.start(host, admission::host(self.size, links));
    }

    pub(crate) fn kill(&mut self, host: HostId) {
        self.alive[host.0 as usize] = false;
        self.network.kill(host);
    }

    fn up(&self, mut host: u32) -> Vec<u32> {
        let mut all = vec![host];
        while host != 0 {
            host = self.parents[host as usize];
            all.push(host);
        }
        all
    }

    /// The only way there is.
    pub(crate) fn route(&self, from: u32, to: u32) -> Arc<[HostId]> {
        let (mut up, mut down) = (self.up(from), self.up(to));
        while up.len() > 1 && down.len() > 1 && up[up.len() - 2] == down[down.len() - 2] {
            up.pop();
            down.pop();
        }
        down.pop();
        up.into_iter()
            .chain(down.into_iter().rev())
            .map(HostId)
            .collect()
    }

    pub(crate) fn open(
        &mut self,
        from: u32,
        to: u32,
        asked: Asked,
        within: Span,
    ) -> Option<ChannelId> {
        let route = self.route(from, to);
        let taken = route.clone();
        let channel = self.network.call(HostId(from), |node, now, out| {
            node.open(now, asked, taken, within, out)
        })?;
        self.asked.insert(
            Hold {
                channel,
                version: 0,
            },
            within,
        );
        self.routes.insert(channel, route);
        self.listen();
        Some(channel)
    }

    pub(crate) fn change(
        &mut self,
        channel: ChannelId,
        asked: Asked,
        within: Span,
    ) -> Option<Hold> {
        let hold = self.network.call(channel.origin, |node, now, out| {
            node.change(now, channel, asked, within, out)
        })?;
        let hold = hold.ok()?;
        self.asked.insert(hold, within);
        self.listen();
        Some(hold)
    }

    pub(crate) fn close(&mut self, host: HostId, channel: ChannelId, has_died: bool) {
        self.network.call(host, |node, now, out| {
            node.close(now, channel, has_died, out);
        });
        self.listen();
    }

    /// Applications are told what there is to tell, and answer.
    pub(crate) fn listen(&mut self) {
        loop {
            let told = self.network.told();
            if told.is_empty() {
                return;
            }
            told.into_iter().for_each(|told| self.tell(told));
        }
    }

    fn book(&mut self, host: HostId, channel: ChannelId) -> &mut Book {
        let life = self.lives[host.0 as usize];
        self.books.entry((host, life, channel)).or_default()
    }

    fn tell(&mut self, Told { at, host, effect }: Told<Admission>) {
        match effect {
            Effect::Opened {
                hold,
                bounds,
                propagation,
            } => {
                let book = self.book(host, hold.channel);
                book.opened.push((hold, bounds, propagation));
            }
            Effect::Refused(hold, refusal) => {
                self.book(host, hold.channel).refused.push((hold, refusal));
            }
            Effect::Ended(channel, cause) => self.book(host, channel).ended.push((at, cause)),
            Effect::Asked(hold, _) => {
                self.book(host, hold.channel).asked.push(hold);
                let answer = match self.manner {
                    Manner::Agrees => Ok(()),
                    Manner::Declines => Err(7),
                    Manner::Sleeps => return,
                };
                self.network
                    .call(host, |node, now, out| node.answer(now, hold, answer, out));
            }
            Effect::Holds {
                channel,
                label,
                next,
                ..
            } => {
                let life = self.lives[host.0 as usize];
                let before = self.labels.insert((host, life, label), channel);
                assert!(before.is_none_or(|before| before == channel), "{label:?}");
                let node = self.network.node(host).into_iter().flat_map(Node::channels);
                for one in node.filter(|one| one.channel == channel) {
                    assert_eq!((one.label, one.next), (label, next));
                }
            }
            Effect::Send(..) | Effect::Frees(_) | Effect::Up(_) | Effect::Down(..) => {}
        }
    }

    /// Everything happens up to then.
    pub(crate) fn run(&mut self, length: Span) {
        let until = self.network.now() + length;
        while self.network.step(until) {
            self.listen();
        }
    }

    /// Nobody has reserved what his channels do not have, or more than there is, and no summary was ever wrong.
    pub(crate) fn agrees(&self) -> bool {
        let hosts = (0..self.hosts).map(HostId);
        hosts
            .filter_map(|host| self.network.node(host))
            .all(|node| node.agrees() && node.differed() == 0)
    }

    /// What both ends know of a channel that is there at all is the same as what each hop has; and each end was told what became of it once.
    pub(crate) fn settled(&self) {
        assert!(self.agrees(), "what is reserved is not what is there");
        let mut there: BTreeMap<ChannelId, Vec<Listed>> = BTreeMap::new();
        for host in (0..self.hosts).map(HostId) {
            for one in self.network.node(host).into_iter().flat_map(Node::channels) {
                there.entry(one.channel).or_default().push(one);
            }
        }
        for (channel, hops) in &mut there {
            hops.sort_by_key(|hop| hop.position);
            let route = &self.routes[channel];
            let places: Vec<u8> = hops.iter().map(|hop| hop.position).collect();
            let all: Vec<u8> = (0..route.len() as u8).collect();
            assert_eq!(places, all, "{channel} is not at all of its hops");
            assert!(hops.iter().all(|hop| hop.is_open), "{channel} is half open");
            let onward = hops.iter().map(|hop| hop.next);
            let behind = hops.iter().skip(1).map(|hop| Some(hop.label));
            assert!(onward.eq(behind.chain([None])), "{hops:?}");
        }
        for ((host, life, channel), book) in &self.books {
            let lives = self.alive[host.0 as usize] && self.lives[host.0 as usize] == *life;
            let is_there = there.contains_key(channel);
            self.told_once(*host, lives, *channel, is_there, book);
        }
    }

    fn told_once(
        &self,
        host: HostId,
        lives: bool,
        channel: ChannelId,
        is_there: bool,
        book: &Book,
    ) {
        let route = &self.routes[&channel];
        let ended = book.ended.len();
        assert!(ended <= 1, "{channel} ended twice at {host}: {book:?}");
        if channel.origin == host {
            for hold in self.asked.keys().filter(|hold| hold.channel == channel) {
                let opened = book.opened.iter().filter(|one| one.0 == *hold).count();
                let refused = book.refused.iter().filter(|one| one.0 == *hold).count();
                let told = opened + refused;
                assert!(told <= 1, "{hold:?} was told twice: {book:?}");
                assert!(told == 1 || !lives, "{hold:?} was never told");
            }
            for (hold, bounds, propagation) in &book.opened {
                let all = bounds.iter().copied().sum::<Span>() + *propagation;
                assert!(all <= self.asked[hold], "{hold:?} has a bound of {all}");
            }
            let was_open = book.opened.iter().any(|one| one.0.version == 0);
            if lives {
                let is_over = ended == usize::from(was_open && !is_there);
                assert!(is_over, "{channel} at {host}: there {is_there}, {book:?}");
                assert!(was_open || !is_there, "{channel} is there, and not open");
            }
        } else {
            assert_eq!(route.last(), Some(&host), "a relay's application was told");
            let asked = book.asked.iter().filter(|hold| hold.version == 0).count();
            assert_eq!(asked, 1, "{channel} at {host}: {book:?}");
            if lives && self.manner == Manner::Agrees {
                let is_over = ended == usize::from(!is_there);
                assert!(is_over, "{channel} at {host}: there {is_there}, {book:?}");
            }
        }
    }

    /// Nobody has anything.
    pub(crate) fn is_empty(&self) -> bool {
        let hosts = (0..self.hosts).map(HostId);
        hosts
            .filter_map(|host| self.network.node(host))
            .all(|node| {
                let admission = node.admission();
                let has_nothing = admission.channels().next().is_none() && node.agrees();
                node.channels().next().is_none() && has_nothing
            })
    }

    pub(crate) fn book_of(&self, host: u32, channel: ChannelId) -> Book {
        let life = self.lives[host as usize];
        let book = self.books.get(&(HostId(host), life, channel));
        book.cloned().unwrap_or_default()
    }
}
