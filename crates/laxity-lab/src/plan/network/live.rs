//! What a host's node is started with: what the network's file says, and the costs by which it is [planned](super::plan).

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::sync::Arc;

use laxity::channels::{self, Book, HostId, Identity, Known as Named, SecretKey, Setup, Wanted};
use laxity_model::Span;
use laxity_model::channels::admission::TrafficError;
use laxity_model::channels::asked::{Name, NameError};

use super::{BUFFERS, costs};
use crate::machine_file::Known;
use crate::scenario::channels::route::{beyond, fewest};
use crate::scenario::channels::{Channel, Late, Link, Network, Own, PublicKey, User};

/// Why a host's node is not started.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The private key is not this host's.
    #[error(
        "the key that is here is not that of [hosts.{host}]: its public one is \"{here}\"; write that to the network's file on all hosts, or name the right one by --key"
    )]
    Key {
        /// The host.
        host: String,
        /// The public key to the one that is here.
        here: PublicKey,
    },
    /// It has no link.
    #[error("no link of the network is at `{0}`: it has nobody to talk to")]
    Alone(String),
    /// It is not said where the ends of a link are.
    #[error(
        "[links.{0}] does not say where its ends are: write `at`, the address of each host on it"
    )]
    Nowhere(String),
    /// A link is to be owned wholly.
    #[error(
        "[links.{0}] is to be owned whole, which no node does yet: write own = \"class\", or \"none\""
    )]
    Whole(String),
    /// Two links lead to the same neighbour.
    #[error(
        "[links.{0}] and [links.{1}] lead to the same host, and a node has one link to each of its neighbours: leave one of them out"
    )]
    Twice(String, String),
    /// A channel states no traffic.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// A channel's name is none.
    #[error(transparent)]
    Name(#[from] NameError),
}

/// A host's node, before it is started.
#[derive(Debug)]
pub struct Live {
    /// What it is started with.
    pub setup: Setup,
    /// What its applications are granted by.
    pub book: Book,
    /// The places of its links, in the order of its neighbours.
    pub links: Vec<usize>,
}

/// The number by which the node of each host is known, in the order of the file: the place of its name among all, so that the order is not part of what a file means.
#[must_use]
pub fn numbers(network: &Network) -> Vec<HostId> {
    let before = |name: &str| network.hosts.iter().filter(|one| *one.name < *name).count();
    let hosts = network.hosts.iter();
    hosts
        .map(|host| HostId(before(&host.name) as u32))
        .collect()
}

/// The node of the host at this place of the file, with its private key. What is known of this machine says what its processor takes.
///
/// # Errors
///
/// [`LiveError`]: what the file or the host lacks, and what mends that.
pub fn live(
    network: &Network,
    host: usize,
    secret: SecretKey,
    known: &Known,
) -> Result<Live, LiveError> {
    let here = PublicKey(*secret.public().bytes());
    let name = || network.hosts[host].name.clone();
    if here != network.hosts[host].key {
        return Err(LiveError::Key { host: name(), here });
    }
    let numbers = numbers(network);
    let (mut neighbours, mut links) = (Vec::new(), Vec::<usize>::new());
    for (place, link) in network.links.iter().enumerate() {
        let Some(other) = beyond(link, host) else {
            continue;
        };
        let is_same = |known: &&usize| beyond(&network.links[**known], host) == Some(other);
        if let Some(known) = links.iter().find(is_same) {
            let known = network.links[*known].name.clone();
            return Err(LiveError::Twice(known, link.name.clone()));
        }
        let key = network.hosts[other].key;
        neighbours.push(neighbour(link, host, (numbers[other], key))?);
        links.push(place);
    }
    if links.is_empty() {
        return Err(LiveError::Alone(name()));
    }
    let identity = Arc::new(Identity::new(secret));
    let setup = Setup {
        costs: costs::charged(known).0,
        payload: Some(network.payload()),
        buffers: BUFFERS,
        ..Setup::new(numbers[host], identity, neighbours)
    };
    let book = book(network, host, &numbers)?;
    Ok(Live { setup, book, links })
}

fn neighbour(
    link: &Link,
    host: usize,
    (other, key): (HostId, PublicKey),
) -> Result<channels::Neighbour, LiveError> {
    let nowhere = || LiveError::Nowhere(link.name.clone());
    let [local, at] = link.ends(host).ok_or_else(nowhere)?;
    Ok(channels::Neighbour {
        host: other,
        local,
        at,
        key: channels::PublicKey::new(key.0),
        seal: link.seal,
        // No file has a rate of nothing.
        rate: NonZeroU64::new(link.rate).unwrap_or(NonZeroU64::MIN),
        overhead: link.overhead,
        propagation: link.propagation,
        unseen: Span::ZERO,
        own: match link.own {
            Own::Class => channels::Own::Class,
            Own::None => channels::Own::None,
            Own::All => return Err(LiveError::Whole(link.name.clone())),
        },
        // Every medium has something beside each frame; only where the class itself keeps the rate there is nothing.
        is_shaped: link.overhead == 0,
    })
}

/// The hosts behind this one, over these links.
fn over(network: &Network, host: usize, route: &[usize], numbers: &[HostId]) -> Vec<HostId> {
    let behind = route.iter().scan(host, |at, link| {
        *at = beyond(&network.links[*link], *at)?;
        Some(numbers[*at])
    });
    behind.collect()
}

fn book(network: &Network, host: usize, numbers: &[HostId]) -> Result<Book, LiveError> {
    let mut routes = BTreeMap::new();
    for (other, number) in numbers.iter().enumerate() {
        // Where there is no way, or none that is the only shortest, only the file's own channels go.
        let route = fewest(&network.links, network.hosts.len(), (host, other));
        if let Some(route) = route.ok().filter(|route| !route.is_empty()) {
            routes.insert(*number, over(network, host, &route, numbers));
        }
    }
    let mut channels = BTreeMap::new();
    for channel in network.channels.iter().filter(|one| one.from == host) {
        let known = Named {
            wanted: wanted(channel, numbers)?,
            over: over(network, host, &channel.route, numbers),
        };
        channels.insert(Name::new(&channel.name)?, known);
    }
    let here = network.users.iter();
    let here = here.filter(|user| user.host.is_none_or(|at| at == host));
    let users = here.map(|user| Ok((user.uid, may(network, user)?)));
    Ok(Book {
        routes,
        channels,
        users: users.collect::<Result<_, LiveError>>()?,
    })
}

fn wanted(channel: &Channel, numbers: &[HostId]) -> Result<Wanted, LiveError> {
    Ok(Wanted {
        to: numbers[channel.to],
        traffic: channel.traffic()?,
        discard: channel.late == Late::Discard,
        within: channel.within,
        over: channel.over,
    })
}

/// What a user may do, as a node has it.
fn may(network: &Network, user: &User) -> Result<channels::User, NameError> {
    let names = |places: &[usize]| -> Result<BTreeSet<Name>, NameError> {
        let names = places.iter().map(|place| &network.channels[*place].name);
        names.map(|name| Name::new(name)).collect()
    };
    let bits = user
        .open
        .iter()
        .map(|place| network.channels[*place].bits());
    Ok(channels::User {
        channels: user.channels.map_or(user.open.len() as u32, u32::from),
        bits: (user.rate).unwrap_or_else(|| bits.fold(0, u64::saturating_add)),
        open: names(&user.open)?,
        listen: names(&user.listen)?,
    })
}
