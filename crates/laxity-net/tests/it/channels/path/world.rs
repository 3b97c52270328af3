//! A line of hosts, a link from each to the next, and one calendar. What is between a frame's bytes and the data path is done here as a node would: frames with a checksum, a label for each channel and host.

use core::num::NonZeroU32;
use std::collections::BTreeMap;

use laxity_model::base::random::SplitMix64;
use laxity_model::channels::admission::Traffic;
use laxity_model::channels::clocks::Crossing;
use laxity_model::channels::handler::{self, Costs, Late, Looks};
use laxity_model::channels::signalling::Label;
use laxity_model::channels::source::{self, Excess};
use laxity_model::nif::urgency::Stated;
use laxity_model::nif::wire::{Faults, Framing, WHOLE, Way};
use laxity_model::policy::multiclass::{By, Early};
use laxity_model::{Instant, Span};
use laxity_net::channels::frame::{Body, Frame, LONGEST, check, checked};
use laxity_net::channels::path::{
    Arrival, Effect, Ends, Event, FarEnd, Granted, Handed, Lane, Limits, Next, Offer, Pace, Queue,
    Relay, Table, WayOut,
};

/// S.
pub(super) const PACKET: u32 = 1_000;
/// H.
pub(super) const OVERHEAD: u32 = 66;
const HELD: Early = Early::Held {
    horizon: Span::ZERO,
};

pub(super) fn nonzero(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).expect("not 0")
}

/// A channel from one host to another.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) traffic: Traffic,
    /// d of each host by whose link it leaves, and its packet buffers there.
    pub(super) hops: Vec<(Span, u32)>,
    pub(super) excess: Excess,
    pub(super) late: Late,
    /// Messages that may wait at the source.
    pub(super) room: u32,
    pub(super) largest: u32,
    /// Buffers for messages at the far end.
    pub(super) buffers: u32,
    /// Whether it is due at all, and packets of it that may go as best effort.
    pub(super) is_due: bool,
    pub(super) best_effort: u32,
    /// What each link may take unseen.
    pub(super) unseen: Span,
}

impl Channel {
    fn lane(&self, lane: Lane) -> Option<Queue> {
        let packets = nonzero(self.traffic.largest().get().div_ceil(PACKET));
        let (own, hop) = self.hops[0];
        let (stated, room, excess) = match lane {
            Lane::RealTime if self.is_due => {
                let stated = self.traffic.stated(own).expect("traffic");
                (stated, hop, self.excess)
            }
            Lane::BestEffort if self.best_effort > 0 => {
                (Stated::ANYTHING, self.best_effort, Excess::DropNewest)
            }
            _ => return None,
        };
        Some(Queue {
            source: source::Limits {
                stated,
                packets,
                room: nonzero(self.room),
                excess,
            },
            handler: handler::Limits {
                packet_bytes: nonzero(PACKET),
                packets,
                room: nonzero(room),
                looks: Looks::After(nonzero(4)),
                early: HELD,
                late: self.late,
                costs: Costs::default(),
            },
            largest: self.largest,
        })
    }

    fn earliest(&self, host: usize) -> Span {
        self.hops[host - self.from - 1].0
    }

    fn relay(&self, host: usize) -> Relay {
        let packets = nonzero(self.traffic.largest().get().div_ceil(PACKET));
        let pace = Pace::new(&self.traffic, packets, self.unseen);
        let real_time = if self.is_due {
            self.hops[host - self.from].1
        } else {
            0
        };
        let buffers = [real_time, self.best_effort];
        Relay::new(nonzero(PACKET), buffers, self.earliest(host), pace)
    }

    fn ends(&self) -> Ends {
        let links = (self.to - self.from) as u64;
        Ends {
            traffic: self.traffic,
            packet_bytes: nonzero(PACKET),
            largest: nonzero(self.largest),
            buffers: [
                if self.is_due { self.buffers } else { 0 },
                if self.best_effort > 0 {
                    self.buffers
                } else {
                    0
                },
            ],
            delay: Span::ZERO,
            earliest: self.earliest(self.to),
            unseen: self.unseen * links,
            host: links as u8,
            late: self.late,
            patience: Span::from_millis(50),
        }
    }
}

/// A message that was delivered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Delivered {
    pub(super) at: Instant,
    pub(super) lane: Lane,
    pub(super) message: u64,
    pub(super) gap: u64,
    pub(super) bytes: Vec<u8>,
    pub(super) verdict: Option<laxity_model::channels::clocks::Delivered>,
}

/// Whose a frame is.
enum To {
    /// A channel that passes, by its number at the link.
    Passes(u32),
    /// One that ends here, by its place among all.
    Ends(usize),
}

pub(super) struct Host {
    table: Table<To>,
    pub(super) way_out: WayOut<Vec<u8>>,
    /// When the frame on the wire has left.
    busy: Option<Instant>,
    /// When to look again at what is early.
    asks: Option<Instant>,
    way: Way,
    pub(super) nobodys: u64,
    pub(super) damaged: u64,
}

/// What is seen of a channel.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) delivered: Vec<Delivered>,
    pub(super) events: Vec<Event>,
    /// Offers that were answered so.
    pub(super) dropped: u64,
    pub(super) blocked: Vec<Vec<u8>>,
}

pub(super) struct World {
    pub(super) now: Instant,
    pub(super) hosts: Vec<Host>,
    pub(super) channels: Vec<Channel>,
    /// By which number each link knows a channel.
    pub(super) numbers: Vec<Vec<u32>>,
    pub(super) ends: Vec<FarEnd>,
    pub(super) seen: Vec<Seen>,
    /// Messages whose bytes came back to who offered them.
    pub(super) back: u64,
    offers: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    resumes: Vec<Option<Instant>>,
    faults: Faults,
}

/// What a message of a channel is made of.
pub(in crate::channels) fn message(channel: usize, number: u64, bytes: u32) -> Vec<u8> {
    let mut random = SplitMix64::new(((channel as u64) << 32) ^ number);
    let words = (0..bytes.div_ceil(8)).flat_map(|_| random.draw().to_le_bytes());
    words.take(bytes as usize).collect()
}

fn label(channel: usize) -> Label {
    Label {
        index: channel as u32,
        generation: 1,
    }
}

impl World {
    /// So many hosts, with links that do this to frames, and these channels.
    pub(super) fn new(hosts: usize, faults: Faults, channels: Vec<Channel>, seed: u64) -> Self {
        let room = |channel: &Channel| channel.hops.iter().map(|hop| hop.1).max().unwrap_or(0);
        let packets = channels
            .iter()
            .map(|channel| room(channel) + channel.best_effort);
        let link = Limits {
            channels: channels.len() as u32,
            packets: packets.sum(),
            reach: 1,
            early: HELD,
            by: By::Deadline,
            rate: faults.rate,
            overhead: OVERHEAD,
        };
        let host = |number: usize| Host {
            table: Table::new(channels.len()),
            way_out: WayOut::new(link),
            busy: None,
            asks: None,
            way: Way::new(seed ^ number as u64),
            nobodys: 0,
            damaged: 0,
        };
        let mut world = Self {
            now: Instant::ZERO,
            hosts: (0..hosts).map(host).collect(),
            numbers: vec![vec![u32::MAX; hosts]; channels.len()],
            ends: channels.iter().map(|of| FarEnd::new(of.ends())).collect(),
            seen: channels.iter().map(|_| Seen::default()).collect(),
            resumes: vec![None; channels.len()],
            channels,
            back: 0,
            offers: BTreeMap::new(),
            faults,
        };
        for channel in 0..world.channels.len() {
            world.open(channel);
        }
        world
    }

    fn open(&mut self, channel: usize) {
        let of = &self.channels[channel];
        for host in of.from..of.to {
            let Host { way_out, table, .. } = &mut self.hosts[host];
            let hop = Granted {
                next: label(channel),
                delay: of.hops[host - of.from].0,
                late: of.late,
            };
            let number = if host == of.from {
                way_out.begin(hop, Lane::ALL.map(|lane| of.lane(lane)))
            } else {
                way_out.pass(hop, of.relay(host))
            };
            let number = number.expect("there is room");
            self.numbers[channel][host] = number;
            if host > of.from {
                let before = table.insert(label(channel), To::Passes(number));
                assert!(matches!(before, Ok(None)));
            }
        }
        let table = &mut self.hosts[of.to].table;
        let before = table.insert(label(channel), To::Ends(channel));
        assert!(matches!(before, Ok(None)));
    }

    /// A message will be offered then.
    pub(super) fn offers(&mut self, at: Instant, channel: usize, bytes: Vec<u8>) {
        let number = self.offers.len() as u64;
        self.offers.insert((at, number), (channel, bytes));
    }

    /// Until nothing is left to do.
    pub(super) fn run(&mut self) {
        while let Some(now) = self.next() {
            assert!(now >= self.now, "{now:?} is over");
            self.now = now;
            for host in 0..self.hosts.len() {
                self.completes(host);
                self.lands(host);
            }
            self.begins();
            for host in 0..self.hosts.len() {
                self.leaves(host);
            }
            self.receives();
        }
    }

    fn next(&self) -> Option<Instant> {
        let hosts = self.hosts.iter();
        let hosts = hosts.flat_map(|host| [host.busy, host.asks, host.way.next()]);
        let ends = self.ends.iter().map(FarEnd::expires);
        let offers = self.offers.keys().next().map(|(at, _)| *at);
        let all = hosts.chain(ends).chain(self.resumes.iter().copied());
        all.chain([offers]).flatten().min()
    }

    /// The frame on the wire of a host's link has left.
    fn completes(&mut self, host: usize) {
        let now = self.now;
        let of = &mut self.hosts[host];
        if of.busy.take_if(|busy| *busy <= now).is_some() {
            let mut back = 0;
            assert!(
                of.way_out
                    .sent(now, |effect| back += u64::from(is_back(&effect)))
            );
            self.back += back;
        }
    }

    /// Frames come to the host behind a host's link.
    fn lands(&mut self, host: usize) {
        while let Some(flying) = self.hosts[host].way.land(self.now) {
            let now = self.now;
            let came = Arrival {
                link: Crossing {
                    number: host as u8,
                    propagation: Span::ZERO,
                    longest: Span::ZERO,
                },
                ..now.into()
            };
            let frame = Frame::of_datagram(&flying.bytes);
            let body = frame.and_then(|frame| check(&frame));
            let next = &mut self.hosts[host + 1];
            let Ok(Body::Data(data)) = body else {
                next.damaged += 1;
                continue;
            };
            match next.table.get_mut(data.channel) {
                Ok(To::Passes(number)) => {
                    next.way_out.forward(*number, now, came, &data);
                }
                Ok(To::Ends(channel)) => {
                    let events = &mut self.seen[*channel].events;
                    self.ends[*channel].arrived(now, came, &data, |event| events.push(event));
                }
                Err(_) => next.nobodys += 1,
            }
        }
    }

    /// What applications offer, and what handlers make of it.
    fn begins(&mut self) {
        while let Some(first) = self.offers.first_entry() {
            if first.key().0 > self.now {
                break;
            }
            let (channel, bytes) = first.remove();
            let of = &self.channels[channel];
            let (number, way_out) = (
                self.numbers[channel][of.from],
                &mut self.hosts[of.from].way_out,
            );
            let seen = &mut self.seen[channel];
            let mut displaced = 0;
            match way_out.offer(number, self.now, bytes, |_| displaced += 1) {
                Offer::Waits | Offer::Demoted => {}
                Offer::Blocked(bytes, _) => seen.blocked.push(bytes),
                Offer::Dropped(_) | Offer::TooLarge(_) => seen.dropped += 1,
            }
            self.back += displaced;
        }
        for channel in 0..self.channels.len() {
            let host = self.channels[channel].from;
            let number = self.numbers[channel][host];
            let mut back = 0;
            self.resumes[channel] = self.hosts[host].way_out.run(number, self.now, |effect| {
                back += u64::from(is_back(&effect));
            });
            self.back += back;
        }
    }

    /// The link of a host takes a frame if it is idle.
    fn leaves(&mut self, host: usize) {
        let (now, faults) = (self.now, self.faults);
        let Host {
            way_out,
            way,
            busy,
            asks,
            ..
        } = &mut self.hosts[host];
        *asks = None;
        if busy.is_some() {
            return;
        }
        let mut bytes = [0; LONGEST];
        let mut back = 0;
        let next = way_out.take(
            now,
            |data| {
                let length = checked(&Body::Data(*data), &mut bytes).expect("there is room");
                let takes =
                    Framing::Bare.takes(data.payload.len() + OVERHEAD as usize, faults.rate);
                *busy = Some(now + takes);
                way.fly(&bytes[..length], now + takes, WHOLE, &faults);
                Handed::Taken
            },
            |effect| back += u64::from(is_back(&effect)),
        );
        match next {
            Next::NotBefore(at) => *asks = Some(at),
            Next::Handed(..) | Next::Nothing => {}
            Next::NoRoom => unreachable!("the wire has room"),
        }
        self.back += back;
    }

    /// Applications take what is complete.
    fn receives(&mut self) {
        for (end, seen) in self.ends.iter_mut().zip(&mut self.seen) {
            end.expire(self.now, |event| seen.events.push(event));
            while let Some(received) = end.take() {
                seen.delivered.push(Delivered {
                    at: self.now,
                    lane: received.lane,
                    message: received.message,
                    gap: received.gap,
                    bytes: end.bytes(&received).to_vec(),
                    verdict: received.delivered,
                });
                end.give_back(received);
            }
        }
    }
}

const fn is_back(effect: &Effect<Vec<u8>>) -> bool {
    matches!(effect, Effect::Back(_))
}
