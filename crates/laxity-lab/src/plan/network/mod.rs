//! What of a network that a file describes would be admitted: each channel in the order of the file, over all links on its way.
//!
//! Each direction of a link is a resource, shared by earliest deadline, with q = 2 frames in the kernel beside the one on the wire. What is charged of the processors of hosts and relays comes
//! from what each machine was measured to take, which is in no such file: they are left out, and so is what light takes from end to end.

mod render;

use core::num::{NonZeroU32, NonZeroU64};

use laxity_model::analysis::Overflow;
use laxity_model::analysis::supply::Dedicated;
use laxity_model::channels::admission::{
    Costs, Give, Host, Lack, LinkCosts, Nearest, Path, Reason, Refusal, Request, Traffic,
    TrafficError,
};
use laxity_model::channels::signalling::{ChannelId, HostId, LinkId, Place};
use laxity_model::policy::multiclass::By;
use laxity_model::{Service, Span};
use laxity_net::channels::frame::Carrier;
use serde::Serialize;

use super::FILE_VERSION;
use crate::scenario::channels::{Channel, Link, Network, Own};
use crate::scenario::units::format_span;

pub use render::render;

/// What frames travel in.
const CARRIER: Carrier = Carrier::UdpIpv4;
/// What every link carries of a packet, behind the header of Ethernet.
const MTU: usize = 1_500;
/// S: bytes of a message in a packet, the same on all links.
const PAYLOAD: NonZeroU32 = match CARRIER.largest_payload(MTU, true) {
    Some(payload) => NonZeroU32::new(payload as u32).expect("an MTU holds more than headers"),
    None => panic!("an MTU holds the headers"),
};
/// q: frames in kernel and card beside the one on the wire.
const QUEUED: u32 = 2;
/// The largest frame of other traffic: segments are not left to a card that a node has a part of.
const FRAME: u32 = 1_514;
/// There are as many buffers as are asked for: a file does not say how many.
const BUFFERS: u64 = u64::MAX / 2;

/// Why nothing can be told of a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NetworkPlanError {
    /// A number does not fit.
    #[error(transparent)]
    Overflow(#[from] Overflow),
    /// What a channel states is none.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
}

/// What would be admitted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct NetworkPlan {
    /// The version of this format.
    pub file_version: u32,
    /// The file's name.
    pub file: String,
    /// Whether all channels are granted.
    pub admitted: bool,
    /// In the order of the file.
    pub channels: Vec<ChannelPlan>,
    /// Each direction of each link that channels go over.
    pub links: Vec<LinkPlan>,
    /// What is to be known of all that.
    pub notes: Vec<String>,
}

/// What becomes of one channel.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ChannelPlan {
    /// Its name.
    pub name: String,
    /// The host that sends.
    pub from: String,
    /// The host that receives.
    pub to: String,
    /// Within what time its messages are to be there, in nanoseconds.
    pub within_ns: u64,
    /// What each hop grants; empty where it is refused.
    pub hops: Vec<HopPlan>,
    /// Why its bound is not enforced, where it is not.
    pub unenforced: Option<String>,
    /// Why it is refused, if it is.
    pub refused: Option<RefusedPlan>,
}

/// What one hop grants.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct HopPlan {
    /// The host that sends there.
    pub host: String,
    /// The link that it sends over.
    pub link: String,
    /// The least delay that there is, in nanoseconds.
    pub least_ns: u64,
    /// That and its share of what is left of the time, in nanoseconds.
    pub delay_ns: u64,
    /// Packets that may be there at once.
    pub buffers: u64,
}

/// A channel that is refused.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RefusedPlan {
    /// The host that is short, or that takes longest.
    pub host: String,
    /// The link that it sends over.
    pub link: String,
    /// Of what, and how much of it.
    pub reason: String,
    /// Each of these would be granted, all else being as it is; in the words of the file.
    pub nearest: Vec<String>,
}

/// What channels take of a link in one direction.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LinkPlan {
    /// Its name.
    pub name: String,
    /// The host that sends.
    pub from: String,
    /// The host that receives.
    pub to: String,
    /// The share of it that was granted, in parts per million, rounded up.
    pub share_ppm: u64,
}

/// What would be admitted of a network, channel by channel in the order of its file, whose name is only repeated.
///
/// # Errors
///
/// [`NetworkPlanError`].
pub fn plan(network: &Network, file: &str) -> Result<NetworkPlan, NetworkPlanError> {
    let hosts = (0..network.hosts.len()).map(|host| admission(network, host));
    let mut hosts = hosts.collect::<Result<Vec<_>, Overflow>>()?;
    let mut channels = Vec::with_capacity(network.channels.len());
    for (number, channel) in network.channels.iter().enumerate() {
        channels.push(admit(network, &mut hosts, (number, channel))?);
    }
    Ok(NetworkPlan {
        file_version: FILE_VERSION,
        file: file.to_owned(),
        admitted: channels.iter().all(|channel| channel.refused.is_none()),
        links: links(network, &hosts),
        channels,
        notes: vec![
            "what processors take of a message's time is not in it: that is measured on each host; neither is how long a wire is".to_owned(),
        ],
    })
}

/// A link by its place in the file: at both ends.
fn number(place: usize) -> Result<LinkId, Overflow> {
    let number = u16::try_from(place);
    number.map(LinkId).map_err(|_| Overflow("a link's number"))
}

/// What a host has to give: its links, in the direction away from it.
fn admission(network: &Network, host: usize) -> Result<Host<Dedicated>, Overflow> {
    let links = network.links.iter().enumerate();
    let mut links = links.filter(|(_, link)| link.between.contains(&host));
    let none = Host::new(PAYLOAD, BUFFERS, Span::ZERO);
    links.try_fold(none, |all, (place, link)| {
        all.over(number(place)?, costs(link)?, Dedicated, By::Deadline)
    })
}

/// What one direction of a link takes.
fn costs(link: &Link) -> Result<Costs, Overflow> {
    let overhead = u32::from(link.overhead);
    let headers = CARRIER.overhead(link.seal) as u32;
    Ok(Costs::Link(LinkCosts {
        rate: NonZeroU64::new(link.rate).ok_or(Overflow("a rate of nothing"))?,
        overhead: headers + overhead,
        queued: QUEUED,
        best_effort: FRAME + overhead,
    }))
}

/// The hosts that send a channel's messages on, and over which link. Where it ends nothing is charged.
fn way(network: &Network, channel: &Channel) -> Result<Vec<(usize, Place)>, Overflow> {
    let (mut at, mut from) = (channel.from, None);
    let step = |place: &usize| {
        let [one, other] = network.links[*place].between;
        let next = if at == one { other } else { one };
        let to = Some(number(*place)?);
        let host = std::mem::replace(&mut at, next);
        let from = std::mem::replace(&mut from, to);
        Ok((host, Place { from, to }))
    };
    channel.route.iter().map(step).collect()
}

fn admit(
    network: &Network,
    hosts: &mut [Host<Dedicated>],
    (number, channel): (usize, &Channel),
) -> Result<ChannelPlan, NetworkPlanError> {
    let way = way(network, channel)?;
    let request = Request {
        channel: ChannelId {
            origin: HostId(channel.from as u32),
            generation: 0,
            number: number as u32,
        },
        traffic: Traffic::new(channel.max, channel.rate, channel.burst)?,
        within: channel.within,
        propagation: Span::ZERO,
    };
    let mut path = Path {
        network: hosts,
        way: &way,
    };
    let least = path.quote(&request).map(|quote| quote.hops);
    let opened = path.open(&request);
    let name = |host: usize| network.hosts[host].name.clone();
    let mut plan = ChannelPlan {
        name: channel.name.clone(),
        from: name(channel.from),
        to: name(channel.to),
        within_ns: channel.within.as_nanos(),
        hops: Vec::new(),
        unenforced: unenforced(network, channel),
        refused: None,
    };
    match opened {
        Err(refusal) => plan.refused = Some(refused(network, (channel, &way), &refusal)),
        Ok(held) => {
            let least = least.unwrap_or_default();
            let over = way.iter().zip(&channel.route);
            for ((held, least), ((host, _), link)) in held.iter().zip(least).zip(over) {
                plan.hops.push(HopPlan {
                    host: name(*host),
                    link: network.links[*link].name.clone(),
                    least_ns: least.delays.own.as_nanos(),
                    delay_ns: held.delays.own.as_nanos(),
                    buffers: held.buffers,
                });
            }
        }
    }
    Ok(plan)
}

fn refused(
    network: &Network,
    (channel, way): (&Channel, &[(usize, Place)]),
    refusal: &Refusal,
) -> RefusedPlan {
    let mut over = way.iter().zip(&channel.route);
    let hop = over.find(|((host, _), _)| *host == refusal.hop);
    let link = hop.map_or(String::new(), |(_, link)| network.links[*link].name.clone());
    let nearest = refusal.nearest.iter();
    let nearest = nearest.map(|nearest| offered(network, *nearest));
    let reason = match &refusal.reason {
        // A link is one stage.
        Reason::Lack(Lack::Stage { short, .. }) => short.to_string(),
        other => other.to_string(),
    };
    RefusedPlan {
        host: network.hosts[refusal.hop].name.clone(),
        link,
        reason,
        nearest: nearest.collect(),
    }
}

/// What would be granted, exactly, as a file has it.
fn offered(network: &Network, nearest: Nearest) -> String {
    let each = |interval| format!("rate = \"1 every {}\"", format_span(interval));
    match nearest {
        Nearest::Within(within) => format!("within = \"{}\"", format_span(within)),
        Nearest::Each(interval) => each(interval),
        Nearest::Largest(bytes) => format!("max = \"{bytes} B\""),
        Nearest::Give { channel, give } => {
            let name = &network.channels[channel.number as usize].name;
            match give {
                Give::Delay(delay) => {
                    let delay = format_span(delay);
                    format!("as it is, if `{name}` were content with {delay} on that link")
                }
                Give::Each(interval) => {
                    format!("as it is, if `{name}` had {}", each(interval))
                }
            }
        }
    }
}

/// Which link on the way nobody has a part of.
fn unenforced(network: &Network, channel: &Channel) -> Option<String> {
    let mut links = channel.route.iter().map(|place| &network.links[*place]);
    let link = links.find(|link| link.own == Own::None)?;
    Some(format!(
        "of the link `{}` no node has a part (own = \"none\"): this holds only while nobody else sends over it",
        link.name
    ))
}

/// What is granted of each direction over which there is a channel.
fn links(network: &Network, hosts: &[Host<Dedicated>]) -> Vec<LinkPlan> {
    let mut all = Vec::new();
    for (number, link) in network.links.iter().enumerate() {
        let [one, other] = link.between;
        for (from, to) in [(one, other), (other, one)] {
            let stages = hosts[from].stages().iter();
            let stages = stages.filter(|stage| stage.link().is_some_and(|of| of.index() == number));
            let members = stages.flat_map(|stage| stage.resource().members());
            let shares =
                members.map(|member| share(member.demand.need.cost, member.demand.interval));
            let share_ppm: u64 = shares.sum();
            if share_ppm > 0 {
                all.push(LinkPlan {
                    name: link.name.clone(),
                    from: network.hosts[from].name.clone(),
                    to: network.hosts[to].name.clone(),
                    share_ppm,
                });
            }
        }
    }
    all
}

/// In parts per million, rounded up.
fn share(cost: Service, interval: Span) -> u64 {
    let parts = u128::from(cost.as_nanos()) * 1_000_000;
    let share = parts.div_ceil(u128::from(interval.as_nanos().max(1)));
    u64::try_from(share).unwrap_or(u64::MAX)
}
