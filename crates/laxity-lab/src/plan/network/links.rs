//! The hosts of a network with their links, what signalling has of these, and what of all is taken.

use core::num::NonZeroU64;
use std::collections::BTreeMap;

use laxity_model::analysis::Overflow;
use laxity_model::analysis::supply::Dedicated;
use laxity_model::channels::admission::{
    Costs, Host, Lack, LinkCosts, ProcessorCosts, Signals, Stage,
};
use laxity_model::channels::signalling::Terms;
use laxity_model::policy::multiclass::By;
use laxity_model::{Service, Span};
use laxity_net::channels::frame::SIGNAL_PAYLOAD;
use serde::Serialize;

use super::refused::{RefusedPlan, Resource};
use super::{BUFFERS, NetworkPlanError, number, share};
use crate::scenario::channels::{Link, Network};
use crate::scenario::units::format_rate;

/// q: frames in kernel and card beside the one on the wire.
const QUEUED: u32 = 2;
/// The largest frame of other traffic, in front of its packet: segments are not left to a card that a node has a part of.
const ETHERNET: u32 = 14;

/// What channels and signalling take of a link in one direction.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LinkPlan {
    /// Its name.
    pub name: String,
    /// The host that sends.
    pub from: String,
    /// The host that receives.
    pub to: String,
    /// The share of it that was granted, signalling's with it, in parts per million, rounded up.
    pub share_ppm: u64,
    /// In which time what signalling says is heard at the other end, in nanoseconds; none where it has no room.
    pub signalling_ns: Option<u64>,
    /// Why it has none: no channel goes over the link then.
    pub refused: Option<RefusedPlan>,
}

/// What channels and signalling take of a host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct HostPlan {
    /// Its name.
    pub name: String,
    /// The share of its processor that was granted, in parts per million, rounded up.
    pub share_ppm: u64,
    /// Packet buffers that were granted,
    pub buffers: u64,
    /// of so many.
    pub buffers_of: u64,
}

/// What signalling has of each direction of a link: from the first of its hosts, and back. Or who refuses it.
pub(super) struct Granted(BTreeMap<usize, Result<[Span; 2], RefusedPlan>>);

impl Granted {
    /// Why nothing goes over a link, if nothing does.
    pub(super) fn refused(&self, link: usize) -> Option<RefusedPlan> {
        self.0.get(&link)?.as_ref().err().cloned()
    }
}

/// All hosts, with signalling and no channel.
pub(super) fn hosts(
    network: &Network,
    processor: ProcessorCosts,
) -> Result<(Vec<Host<Dedicated>>, Granted), NetworkPlanError> {
    let host = |host: usize| {
        let links = network.links.iter().enumerate();
        let mut links = links.filter(|(_, link)| link.between.contains(&host));
        let payload = network.payload();
        let all = Host::new(payload, BUFFERS, Span::ZERO);
        let all = all.through(Costs::Processor(processor), Dedicated, By::Deadline)?;
        links.try_fold(all, |all, (place, link)| {
            all.over(number(place)?, costs(link)?, Dedicated, By::Deadline)
        })
    };
    let hosts = (0..network.hosts.len()).map(host);
    let mut hosts = hosts.collect::<Result<Vec<_>, Overflow>>()?;
    let signals = Signals::new(&Terms::default(), SIGNAL_PAYLOAD)?;
    let mut granted = BTreeMap::new();
    for place in 0..network.links.len() {
        let signalling = signalling(network, &mut hosts, place, &signals)?;
        let refused = signalling.map_err(|(host, lack)| {
            let (network, hosts) = ((network, processor), hosts.as_slice());
            silent(network, hosts, (place, host), (&lack, &signals))
        });
        granted.insert(place, refused);
    }
    Ok((hosts, Granted(granted)))
}

/// What one direction of a link takes.
fn costs(link: &Link) -> Result<Costs, Overflow> {
    Ok(Costs::Link(LinkCosts {
        rate: NonZeroU64::new(link.rate).ok_or(Overflow("a rate of nothing"))?,
        overhead: link.beside(),
        queued: QUEUED,
        best_effort: u32::from(link.mtu) + ETHERNET + u32::from(link.overhead),
    }))
}

/// Reserves what signalling has of a link at both of its hosts; or says which of them has nothing, and why.
fn signalling(
    network: &Network,
    hosts: &mut [Host<Dedicated>],
    place: usize,
    signals: &Signals,
) -> Result<Result<[Span; 2], (usize, Lack)>, Overflow> {
    let (link, wire) = (number(place)?, network.links[place].propagation);
    let mut times = [[Span::ZERO; 2]; 2];
    for (times, host) in times.iter_mut().zip(network.links[place].between) {
        match hosts[host].signals(link, signals) {
            Ok(granted) => *times = granted,
            Err(lack) => return Ok(Err((host, lack))),
        }
    }
    let [[out, into], [back, home]] = times;
    // No link takes a second, and no part of this is longer.
    Ok(Ok([out + wire + home, back + wire + into]))
}

/// Why nothing goes over a link, and from which rate on something would.
fn silent(
    (network, processor): (&Network, ProcessorCosts),
    hosts: &[Host<Dedicated>],
    (place, host): (usize, usize),
    (lack, signals): (&Lack, &Signals),
) -> RefusedPlan {
    let link = &network.links[place];
    let stage = match lack {
        Lack::Stage { stage, .. } => hosts[host].stages().get(*stage),
        Lack::Buffers { .. } | Lack::Link(_) | Lack::Overflow(_) => None,
    };
    let (resource, words) = match lack {
        Lack::Buffers { .. } => (Resource::Buffers, lack.to_string()),
        Lack::Stage { short, .. } if stage.is_some_and(|stage| stage.link().is_some()) => {
            (Resource::Link, short.to_string())
        }
        Lack::Stage { short, .. } => (Resource::Processor, short.to_string()),
        Lack::Link(_) | Lack::Overflow(_) => (Resource::Link, lack.to_string()),
    };
    let is_enough = |rate: u64| {
        let faster = Link {
            rate,
            ..link.clone()
        };
        let alone = Host::new(network.payload(), BUFFERS, Span::ZERO)
            .through(Costs::Processor(processor), Dedicated, By::Deadline)
            .and_then(|host| host.over(number(place)?, costs(&faster)?, Dedicated, By::Deadline));
        let link = number(place).map_err(Lack::from);
        alone.is_ok_and(|mut host| link.is_ok_and(|link| host.signals(link, signals).is_ok()))
    };
    RefusedPlan {
        host: network.hosts[host].name.clone(),
        resource,
        link: Some(link.name.clone()),
        reason: words,
        nearest: enough(link.rate, is_enough)
            .map(|rate| format!("[links.{}] rate = \"{}\"", link.name, format_rate(rate)))
            .into_iter()
            .collect(),
    }
}

/// The least rate that is enough, to the next kbit/s, where one is that is no more than 2²⁰ times what it is now.
fn enough(rate: u64, is_enough: impl Fn(u64) -> bool) -> Option<u64> {
    let mut above = (0..=20).map(|doublings| rate.saturating_mul(1 << doublings));
    let mut high = above.find(|rate| is_enough(*rate))?;
    let mut low = rate;
    while high - low > 1_000 {
        let middle = low + (high - low) / 2;
        match is_enough(middle) {
            true => high = middle,
            false => low = middle,
        }
    }
    Some(high.next_multiple_of(1_000))
}

/// What is granted of a stage.
fn granted(stage: &Stage<Dedicated>) -> u64 {
    let members = stage.resource().members();
    let of = |cost: Service, interval: Span| share(cost, interval);
    members
        .map(|member| of(member.demand.need.cost, member.demand.interval))
        .sum()
}

/// What is granted of each direction of each link.
pub(super) fn links(
    network: &Network,
    hosts: &[Host<Dedicated>],
    signals: &Granted,
) -> Vec<LinkPlan> {
    let mut all = Vec::new();
    for (number, link) in network.links.iter().enumerate() {
        let [one, other] = link.between;
        for (way, (from, to)) in [(one, other), (other, one)].into_iter().enumerate() {
            let stages = hosts[from].stages().iter();
            let stages = stages.filter(|stage| stage.link().is_some_and(|of| of.index() == number));
            let signalling = signals.0.get(&number);
            let [name, from, to] = [
                &link.name,
                &network.hosts[from].name,
                &network.hosts[to].name,
            ];
            all.push(LinkPlan {
                name: name.clone(),
                from: from.clone(),
                to: to.clone(),
                share_ppm: stages.map(granted).sum(),
                signalling_ns: signalling
                    .and_then(|found| found.as_ref().ok())
                    .map(|times| times[way].as_nanos()),
                refused: signals.refused(number),
            });
        }
    }
    all
}

/// What is granted of each host.
pub(super) fn shares(network: &Network, hosts: &[Host<Dedicated>]) -> Vec<HostPlan> {
    let host = |(of, host): (&crate::scenario::channels::Host, &Host<Dedicated>)| {
        let processor = host.stages().iter().filter(|stage| stage.link().is_none());
        let (buffers, buffers_of) = host.buffers();
        HostPlan {
            name: of.name.clone(),
            share_ppm: processor.map(granted).sum(),
            buffers,
            buffers_of,
        }
    };
    network.hosts.iter().zip(hosts).map(host).collect()
}
