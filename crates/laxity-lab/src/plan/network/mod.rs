//! What of a network that a file describes would be admitted: each channel in the order of the file, at all hosts on its way.
//!
//! A host's processor is a resource, and so is each direction of a link, both shared by earliest deadline; it has [`BUFFERS`] besides. Signalling is there before all channels, with one of its own on each link. Frames are those of the wire; with q = 2 of them in the kernel
//! beside the one that is sent.
//!
//! * `costs`: what processors are charged, and where that is from.
//! * `links`: what signalling and channels take of each link, and of each host.
//! * `live`: what a host's node is started with.
//! * `refused`: why a channel is not granted, and what would be.
//! * `render`: all that for people.

mod costs;
mod links;
mod live;
mod refused;
mod render;

use laxity_model::analysis::Overflow;
use laxity_model::analysis::supply::Dedicated;
use laxity_model::channels::admission::{Held, Host, Path, Request, TrafficError};
use laxity_model::channels::signalling::{ChannelId, HostId, LinkId, Place};
use laxity_model::{Service, Span};
use serde::Serialize;

use super::FILE_VERSION;
use crate::machine_file::Known;
use crate::scenario::channels::{Channel, Network, Own};

pub use costs::CostPlan;
pub use links::{HostPlan, LinkPlan};
pub use live::{Live, LiveError, live, numbers};
pub use refused::{RefusedPlan, Resource};
pub use render::render;

/// So many packets a node has room for: 46 MB of them, as they are on Ethernet.
pub const BUFFERS: u64 = 1 << 15;

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
    /// Whether all channels are granted, and each link has its signalling.
    pub admitted: bool,
    /// S: so many bytes of a message are in a packet.
    pub payload_bytes: u32,
    /// In the order of the file.
    pub channels: Vec<ChannelPlan>,
    /// Each direction of each link.
    pub links: Vec<LinkPlan>,
    /// In the order of the file.
    pub hosts: Vec<HostPlan>,
    /// What the processor of each host is charged.
    pub costs: Vec<CostPlan>,
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
    /// What of that the wires take, in nanoseconds.
    pub propagation_ns: u64,
    /// What each host grants; empty where it is refused.
    pub hops: Vec<HopPlan>,
    /// The bound: all that hosts and wires take, in nanoseconds; none where it is refused.
    pub sum_ns: Option<u64>,
    /// Why its bound is not enforced, where it is not.
    pub unenforced: Option<String>,
    /// Why it is refused, if it is.
    pub refused: Option<RefusedPlan>,
}

/// What one host grants.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct HopPlan {
    /// Which.
    pub host: String,
    /// d of its processor, in nanoseconds.
    pub processor_ns: u64,
    /// The link by which messages go on; none where they are delivered.
    pub link: Option<String>,
    /// d of that, in nanoseconds.
    pub link_ns: Option<u64>,
    /// The least that both could do it in, in nanoseconds.
    pub least_ns: u64,
    /// Packets that may be there at once.
    pub buffers: u64,
}

/// What would be admitted of a network, channel by channel in the order of its file, whose name is only repeated. What is known of a machine is taken for each host.
///
/// # Errors
///
/// [`NetworkPlanError`].
pub fn plan(network: &Network, file: &str, known: &Known) -> Result<NetworkPlan, NetworkPlanError> {
    let (processor, costs) = costs::charged(known);
    let (mut hosts, signals) = links::hosts(network, processor)?;
    let mut channels = Vec::with_capacity(network.channels.len());
    for (number, channel) in network.channels.iter().enumerate() {
        let silent = channel.route.iter().find_map(|link| signals.refused(*link));
        let mut plan = promised(network, channel);
        match silent {
            Some(mut refused) => {
                refused.reason += "; signalling needs it, without which no channel is opened";
                plan.refused = Some(refused);
            }
            None => admit(network, &mut hosts, (number, channel), &mut plan)?,
        }
        channels.push(plan);
    }
    let links = links::links(network, &hosts, &signals);
    let is_granted = channels.iter().all(|channel| channel.refused.is_none());
    Ok(NetworkPlan {
        file_version: FILE_VERSION,
        file: file.to_owned(),
        admitted: is_granted && links.iter().all(|link| link.refused.is_none()),
        payload_bytes: network.payload().get(),
        channels,
        hosts: links::shares(network, &hosts),
        links,
        notes: notes(network, &costs),
        costs,
    })
}

/// A link by its place in the file: at both ends.
fn number(place: usize) -> Result<LinkId, Overflow> {
    let number = u16::try_from(place);
    number.map(LinkId).map_err(|_| Overflow("a link's number"))
}

/// The hosts on a channel's way, and what each is of it.
fn way(network: &Network, channel: &Channel) -> Result<Vec<(usize, Place)>, Overflow> {
    let (mut at, mut from) = (channel.from, None);
    let mut way = Vec::with_capacity(channel.route.len() + 1);
    for place in &channel.route {
        let [one, other] = network.links[*place].between;
        let to = Some(number(*place)?);
        way.push((at, Place { from, to }));
        (at, from) = (if at == one { other } else { one }, to);
    }
    way.push((at, Place { from, to: None }));
    Ok(way)
}

/// What is known of a channel before it is asked for.
fn promised(network: &Network, channel: &Channel) -> ChannelPlan {
    let name = |host: usize| network.hosts[host].name.clone();
    let links = channel.route.iter().map(|place| &network.links[*place]);
    // No more than a second each.
    let propagation = links.fold(Span::ZERO, |sum, link| sum + link.propagation);
    ChannelPlan {
        name: channel.name.clone(),
        from: name(channel.from),
        to: name(channel.to),
        within_ns: channel.within.as_nanos(),
        propagation_ns: propagation.as_nanos(),
        hops: Vec::new(),
        sum_ns: None,
        unenforced: unenforced(network, channel),
        refused: None,
    }
}

fn admit(
    network: &Network,
    hosts: &mut [Host<Dedicated>],
    (number, channel): (usize, &Channel),
    plan: &mut ChannelPlan,
) -> Result<(), NetworkPlanError> {
    let way = way(network, channel)?;
    let request = Request {
        channel: ChannelId {
            origin: HostId(channel.from as u32),
            generation: 0,
            number: number as u32,
        },
        traffic: channel.traffic()?,
        within: channel.within,
        propagation: Span::from_nanos(plan.propagation_ns),
    };
    let mut path = Path {
        network: hosts,
        way: &way,
    };
    let least = path.quote(&request).map(|quote| quote.hops);
    match (path.open(&request), least) {
        (Ok(held), Ok(least)) => {
            let hops = way.iter().zip(held.iter().zip(&least));
            let hops = hops.map(|((host, _), held)| hop(network, &hosts[*host], *host, held));
            plan.hops = hops.collect();
            let own: u64 = held.iter().map(|held| held.delays.own.as_nanos()).sum();
            plan.sum_ns = Some(own + plan.propagation_ns);
        }
        (Err(refusal), _) | (_, Err(refusal)) => {
            plan.refused = Some(refused::told(network, hosts, &refusal, request.propagation));
        }
    }
    Ok(())
}

fn hop(
    network: &Network,
    of: &Host<Dedicated>,
    host: usize,
    (held, least): (&Held, &Held),
) -> HopPlan {
    let mut hop = HopPlan {
        host: network.hosts[host].name.clone(),
        processor_ns: 0,
        link: None,
        link_ns: None,
        least_ns: least.delays.own.as_nanos(),
        buffers: held.buffers,
    };
    for (stage, delay) in &held.stages {
        match of.stages()[*stage].link() {
            None => hop.processor_ns = delay.as_nanos(),
            Some(link) => {
                hop.link = Some(network.links[link.index()].name.clone());
                hop.link_ns = Some(delay.as_nanos());
            }
        }
    }
    hop
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

/// What is to be known of a plan.
fn notes(network: &Network, costs: &[CostPlan]) -> Vec<String> {
    let mut notes = Vec::new();
    if costs.iter().any(|cost| cost.calibrated) {
        notes.push("what was calibrated is of one machine, and is taken for every host".to_owned());
    }
    let unplaced = network.links.iter().filter(|link| link.at.is_none());
    let unplaced: Vec<String> = unplaced.map(|link| format!("`{}`", link.name)).collect();
    if !unplaced.is_empty() {
        notes.push(format!(
            "where its ends are (`at`) is not said of {}: that is needed to serve it, and meanwhile it is planned as if over IPv6, which takes more",
            unplaced.join(", ")
        ));
    }
    notes.push("a node is taken to have its processor whenever it needs it".to_owned());
    notes
}

/// In parts per million, rounded up.
fn share(cost: Service, interval: Span) -> u64 {
    let parts = u128::from(cost.as_nanos()) * 1_000_000;
    let share = parts.div_ceil(u128::from(interval.as_nanos().max(1)));
    u64::try_from(share).unwrap_or(u64::MAX)
}
