//! Hosts with [nodes of channels](crate::channels::node), cables between them, and one calendar.
//!
//! The nodes are those of live hosts, called in the same order by a thread each. A host has its own clock, which may be wrong or be set; its thread does one thing after the other, which takes as much as admission charges it, or nothing. A cable is a
//! [wire](laxity_model::nif::wire) each way, with its rate, propagation and faults; in front of it a host may have other traffic of its kernel that never ends, in a class below the node's. Hosts die, begin new lives and stand still; cables are cut.
//!
//! Same seed, same run. A step is O(hosts + cables).

mod line;
mod thread;

use std::collections::BTreeMap;

use laxity_model::analysis::supply::SupplyBound;
use laxity_model::base::clock::Clock;
use laxity_model::channels::admission::ProcessorCosts;
use laxity_model::channels::signalling::LinkId;
use laxity_model::nif::wire::Faults;
use laxity_model::{Instant, Span};

use self::line::Line;
use self::thread::{Thread, Unit};
use crate::channels::frame::LONGEST;
use crate::channels::node::{Event, Filled, Node, NotOpen};
use crate::channels::path::{Handed, Label, Offer};

/// A node in a calendar: messages are bytes that it owns.
pub type TwinNode<S> = Node<Vec<u8>, S>;

/// When something happened, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct When {
    /// At which host, from 0.
    pub host: usize,
    /// By the calendar.
    pub at: Instant,
    /// By the host's clock, which its node goes by.
    pub local: Instant,
}

/// The applications of all hosts.
pub trait Applications<S: SupplyBound> {
    /// A node tells something; what it is to be answered may be said to it at once.
    fn told(&mut self, when: When, node: &mut TwinNode<S>, event: Event<Vec<u8>>);

    /// What became of a message that was [sent](Hosts::sends).
    fn offered(&mut self, when: When, end: Label, offer: Result<Offer<Vec<u8>>, NotOpen<Vec<u8>>>);
}

struct Host<S: SupplyBound> {
    node: Option<TwinNode<S>>,
    clock: Clock,
    thread: Thread,
    /// The cable of each of its links, and which of that cable's two ways is the one out.
    links: Vec<(usize, usize)>,
}

impl<S: SupplyBound> Host<S> {
    /// When its node is due, by the calendar; never, if it does not live.
    fn due(&self) -> Instant {
        let node = self.node.as_ref();
        node.map_or(Instant::MAX, |node| self.clock.reaches(node.next()))
    }
}

struct Cable {
    lines: [Line; 2],
    /// At which host, and over which of its links, each way ends.
    ends: [(usize, LinkId); 2],
    faults: Faults,
    is_cut: bool,
}

/// Hosts, cables, and what is going to happen.
pub struct Hosts<S: SupplyBound> {
    now: Instant,
    hosts: Vec<Host<S>>,
    cables: Vec<Cable>,
    sends: BTreeMap<(Instant, u64), (usize, Label, Vec<u8>)>,
    sent: u64,
}

impl<S: SupplyBound> Hosts<S> {
    /// So many hosts, none of which lives, and no cables. The calendar begins at one second, and clocks are right.
    #[must_use]
    pub fn new(hosts: usize) -> Self {
        let host = |_| Host {
            node: None,
            clock: Clock::right(),
            thread: Thread::default(),
            links: Vec::new(),
        };
        Self {
            now: Instant::from_secs(1),
            hosts: (0..hosts).map(host).collect(),
            cables: Vec::new(),
            sends: BTreeMap::new(),
            sent: 0,
        }
    }

    /// A cable between two hosts, which is the next link of each, carries so many bytes around each frame of a node, and does this to frames as the seed has it. Which cable it is, from 0. To be said before its hosts live.
    pub fn connect(
        &mut self,
        between: [usize; 2],
        around: usize,
        faults: Faults,
        seed: u64,
    ) -> usize {
        let cable = self.cables.len();
        let [one, other] = between.map(|host| (host, LinkId(self.hosts[host].links.len() as u16)));
        for (way, host) in between.into_iter().enumerate() {
            self.hosts[host].links.push((cable, way));
        }
        self.cables.push(Cable {
            lines: [0, 1].map(|way| Line::new(around, seed ^ way)),
            ends: [other, one],
            faults,
            is_cut: false,
        });
        cable
    }

    /// The time now, by the calendar.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// What a host's clock says now.
    #[must_use]
    pub fn local(&self, host: usize) -> Instant {
        self.hosts[host].clock.says(self.now)
    }

    /// A host's clock is set to this, and gains so many billionths from here on.
    pub fn set_clock(&mut self, host: usize, says: Instant, ppb: i32) {
        self.hosts[host].clock = Clock::set(says, self.now, ppb);
    }

    /// What the work of a host's thread takes from here on; before that it takes no time.
    pub fn set_costs(&mut self, host: usize, costs: ProcessorCosts) {
        self.hosts[host].thread.costs = Some(costs);
    }

    /// A host begins a life, with this node, whose links are in the order of its cables.
    pub fn start(&mut self, host: usize, node: TwinNode<S>) {
        self.kill(host);
        self.hosts[host].node = Some(node);
    }

    /// A host dies, and all that it knew.
    pub fn kill(&mut self, host: usize) {
        let host = &mut self.hosts[host];
        host.node = None;
        host.thread.clear();
        for (cable, way) in &host.links {
            self.cables[*cable].lines[*way].clear();
        }
    }

    /// The thread of a host does nothing for so long, once it has done what it is at.
    pub fn stand_still(&mut self, host: usize, length: Span) {
        self.hosts[host].thread.first(Unit::Pause(length));
    }

    /// A cable carries nothing from now on.
    pub fn cut(&mut self, cable: usize) {
        self.cables[cable].is_cut = true;
    }

    /// What a cable does to frames from now on, and how fast it is.
    pub fn faults(&mut self, cable: usize) -> &mut Faults {
        &mut self.cables[cable].faults
    }

    /// From now on a host sends other traffic over one of its links without end, in frames that take so many bytes of the wire with all that is around them; of 0, none.
    pub fn bulk(&mut self, host: usize, link: LinkId, bytes: usize) {
        let (cable, way) = self.hosts[host].links[link.index()];
        self.cables[cable].lines[way].bulk(self.now, bytes);
    }

    /// So many frames of that have left since it was said.
    #[must_use]
    pub fn bulk_frames(&self, host: usize, link: LinkId) -> u64 {
        let (cable, way) = self.hosts[host].links[link.index()];
        let cable = &self.cables[cable];
        cable.lines[way].bulk_frames(self.now, cable.faults.rate)
    }

    /// For how long the thread of a host was at work, waking up and standing still left out.
    #[must_use]
    pub fn worked(&self, host: usize) -> Span {
        self.hosts[host].thread.worked
    }

    /// The node of a host, if it lives.
    #[must_use]
    pub fn node(&self, host: usize) -> Option<&TwinNode<S>> {
        self.hosts[host].node.as_ref()
    }

    /// The same, for an application to ask something of it at what the host's clock says: its thread looks after that in the next step.
    pub fn node_mut(&mut self, host: usize) -> Option<&mut TwinNode<S>> {
        let host = &mut self.hosts[host];
        host.thread.is_stirred = host.node.is_some();
        host.node.as_mut()
    }

    /// An application of a host will send a message then, or now if that has passed.
    pub fn sends(&mut self, at: Instant, host: usize, end: Label, bytes: Vec<u8>) {
        self.sends.insert((at, self.sent), (host, end, bytes));
        self.sent += 1;
    }

    /// Everything happens that does until then.
    pub fn run(&mut self, until: Instant, applications: &mut impl Applications<S>) {
        while self.step(until, applications) {}
    }

    /// The next thing happens, with all that does at the same instant, if that is not after this one; whether it did. Else it is this instant.
    pub fn step(&mut self, until: Instant, applications: &mut impl Applications<S>) -> bool {
        let Some(next) = self.next().filter(|next| *next <= until) else {
            self.now = self.now.max(until);
            return false;
        };
        self.now = self.now.max(next);
        for cable in 0..self.cables.len() {
            self.moves(cable);
        }
        while let Some(first) = self.sends.first_entry()
            && first.key().0 <= self.now
        {
            let (host, end, bytes) = first.remove();
            let host = &mut self.hosts[host];
            if host.node.is_some() {
                host.thread.happens(Unit::Send(end, bytes));
            }
        }
        for host in 0..self.hosts.len() {
            self.works(host, applications);
        }
        true
    }

    fn next(&self) -> Option<Instant> {
        let lines = self.cables.iter().flat_map(|cable| &cable.lines);
        let hosts = self.hosts.iter().filter(|host| host.node.is_some());
        let hosts = hosts.map(|host| host.thread.next(self.now, host.due()));
        let sends = self.sends.keys().next().map(|(at, _)| *at);
        let hosts = hosts.filter(|next| *next < Instant::MAX);
        (lines.filter_map(Line::next))
            .chain(hosts)
            .chain(sends)
            .min()
    }

    /// What has left a cable's wires, and what is at their ends.
    fn moves(&mut self, cable: usize) {
        let Cable {
            lines,
            ends,
            faults,
            is_cut,
        } = &mut self.cables[cable];
        for way in [0, 1] {
            let (to, link) = ends[way];
            let (from, out) = ends[1 - way];
            while lines[way].has_left(self.now, faults) {
                self.hosts[from].thread.happens(Unit::Left(out));
            }
            let host = &mut self.hosts[to];
            let local = host.clock.says(self.now);
            while let Some(flying) = lines[way].land(self.now) {
                if host.node.is_some() && !*is_cut {
                    let came = Unit::Came(link, local, flying.bytes);
                    host.thread.happens(came);
                }
            }
        }
    }

    /// The thread of a host does what it can now.
    fn works(&mut self, number: usize, applications: &mut impl Applications<S>) {
        loop {
            let host = &mut self.hosts[number];
            let due = host.due();
            let links = host.links.len() as u16;
            if host.node.is_none() || !host.thread.begins(self.now, due, links) {
                return;
            }
            let Some(done) = host.thread.done(self.now) else {
                if host.thread.doing.is_some() {
                    return;
                }
                continue;
            };
            self.does(number, done, applications);
        }
    }

    fn does(&mut self, number: usize, unit: Unit, applications: &mut impl Applications<S>) {
        let (hosts, now) = (&mut self.hosts, self.now);
        let Host {
            node: Some(node),
            clock,
            thread,
            links,
        } = &mut hosts[number]
        else {
            return;
        };
        let local = clock.says(now);
        let when = When {
            host: number,
            at: now,
            local,
        };
        match unit {
            Unit::Pause(_) | Unit::Handed(_) => {}
            Unit::Came(link, at, mut frame) => {
                node.came(local, link, at.min(local), &mut frame);
            }
            Unit::Left(link) => {
                node.left(local, link);
            }
            Unit::Send(end, bytes) => {
                let offer = node.send(local, end, bytes);
                applications.offered(when, end, offer);
            }
            Unit::Wake if node.next() <= local => node.wake(local),
            Unit::Wake => {}
            Unit::Fill(link) => {
                let (cable, way) = links[link.index()];
                fills(node, when, link, (&mut self.cables[cable], way), thread);
            }
            Unit::Tell => {
                thread.is_stirred |= !thread.events.is_empty();
                for event in std::mem::take(&mut thread.events) {
                    applications.told(when, node, event);
                }
            }
        }
        let before = thread.events.len();
        thread.events.extend(std::iter::from_fn(|| node.event()));
        if thread.events.len() > before {
            thread.first(Unit::Tell);
        }
    }
}

/// A link that has room is given a frame; then it is asked again.
fn fills<S: SupplyBound>(
    node: &mut TwinNode<S>,
    when: When,
    link: LinkId,
    (cable, way): (&mut Cable, usize),
    thread: &mut Thread,
) {
    let mut buffer = [0; LONGEST];
    let mut length = 0;
    let filled = node.fill(when.local, link, &mut buffer, |frame| {
        length = frame.len();
        cable.lines[way].take(when.at, frame, &cable.faults);
        Handed::Taken
    });
    if filled == Filled::Handed {
        thread.first(Unit::Fill(link));
        thread.first(Unit::Handed(length));
    }
}
