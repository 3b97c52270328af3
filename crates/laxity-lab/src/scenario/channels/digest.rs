//! Whether two hosts go by the same description of their network, and where theirs differ.
//!
//! What counts is what a file means: comments, spaces, the order of its parts and whether a default is written make no difference. Each part has a number of 64 bits (CRC-64), which tells
//! slips and old copies from the same; it is no proof against somebody who wants two files to look alike, whom the hosts' keys keep out.

use std::collections::BTreeMap;
use std::fmt;

use crc::{CRC_64_XZ, Crc};
use laxity_model::channels::fit::Rate;
use laxity_model::channels::source::Excess;

use super::types::{Channel, Host, Late, Link, Network, Own, User};

static SUM: Crc<u64> = Crc::<u64>::new(&CRC_64_XZ);

/// A kind of parts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Part {
    /// `[hosts.*]`
    Hosts,
    /// `[links.*]`
    Links,
    /// `[channels.*]`
    Channels,
    /// `[users.*]`
    Users,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hosts => "hosts",
            Self::Links => "links",
            Self::Channels => "channels",
            Self::Users => "users",
        })
    }
}

/// A number for each part of a description.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Digest(BTreeMap<(Part, String), u64>);

/// Where two descriptions differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Difference {
    /// Both have this, and not the same.
    Differs(Part, String),
    /// Only the first has it.
    OnlyFirst(Part, String),
    /// Only the second has it.
    OnlySecond(Part, String),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Differs(part, name) => write!(f, "[{part}.{name}] is not the same in both"),
            Self::OnlyFirst(part, name) => write!(f, "[{part}.{name}] is in the first alone"),
            Self::OnlySecond(part, name) => write!(f, "[{part}.{name}] is in the second alone"),
        }
    }
}

impl Digest {
    /// Of a description.
    #[must_use]
    pub fn of(network: &Network) -> Self {
        let mut all = BTreeMap::new();
        let mut put = |part, name: &str, says: String| {
            all.insert((part, name.to_owned()), SUM.checksum(says.as_bytes()));
        };
        for host in &network.hosts {
            put(Part::Hosts, &host.name, of_host(host));
        }
        for link in &network.links {
            put(Part::Links, &link.name, of_link(link, network));
        }
        for channel in &network.channels {
            put(Part::Channels, &channel.name, of_channel(channel, network));
        }
        for user in &network.users {
            put(Part::Users, &user.name, of_user(user, network));
        }
        Self(all)
    }

    /// What another host has told of its own: a number for each part.
    #[must_use]
    pub fn told(parts: impl IntoIterator<Item = (Part, String, u64)>) -> Self {
        let parts = parts.into_iter();
        Self(parts.map(|(part, name, sum)| ((part, name), sum)).collect())
    }

    /// Each part with its number, as it can be told.
    pub fn parts(&self) -> impl Iterator<Item = (Part, &str, u64)> {
        let parts = self.0.iter();
        parts.map(|((part, name), sum)| (*part, name.as_str(), *sum))
    }

    /// One number of all, by which two are first compared.
    #[must_use]
    pub fn whole(&self) -> u64 {
        let mut digest = SUM.digest();
        for ((part, name), sum) in &self.0 {
            digest.update(format!("{part}.{name}={sum:016x}\n").as_bytes());
        }
        digest.finalize()
    }

    /// Where this one, the first, and another differ, by kinds of parts and their names; nowhere, if they are the same.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let mut found = Vec::new();
        for (key, sum) in &self.0 {
            let (part, name) = (key.0, key.1.clone());
            match other.0.get(key) {
                Some(same) if same == sum => {}
                Some(_) => found.push(Difference::Differs(part, name)),
                None => found.push(Difference::OnlyFirst(part, name)),
            }
        }
        let more = other.0.keys().filter(|key| !self.0.contains_key(*key));
        found.extend(more.map(|(part, name)| Difference::OnlySecond(*part, name.clone())));
        found
    }
}

fn of_host(host: &Host) -> String {
    format!("key={}", host.key)
}

fn of_link(link: &Link, network: &Network) -> String {
    let end = |end: usize| {
        let name = network.hosts[link.between[end]].name.as_str();
        (name, link.at.map(|at| at[end]))
    };
    let mut ends = [0, 1].map(end);
    ends.sort_unstable();
    let own = match link.own {
        Own::Class => "class",
        Own::All => "all",
        Own::None => "none",
    };
    let Link {
        rate,
        overhead,
        seal,
        mtu,
        ..
    } = link;
    let propagation = link.propagation.as_nanos();
    format!(
        "between={ends:?} rate={rate} own={own} overhead={overhead} seal={seal} mtu={mtu} propagation={propagation}"
    )
}

fn of_channel(channel: &Channel, network: &Network) -> String {
    let [from, to] = [channel.from, channel.to].map(|host| &network.hosts[host].name);
    let route = channel.route.iter().map(|link| &network.links[*link].name);
    let route: Vec<_> = route.collect();
    let rate = Rate::new(channel.rate.0.into(), channel.rate.1).unwrap_or(Rate::NONE);
    let rate = rate.reduced();
    let (amount, period) = (rate.amount(), rate.period().as_nanos());
    let over = match channel.over {
        Excess::Shape => "shape",
        Excess::Block => "block",
        Excess::Demote => "demote",
        Excess::DropNewest => "drop-newest",
        Excess::DropOldest => "drop-oldest",
    };
    let late = match channel.late {
        Late::Deliver => "deliver",
        Late::Discard => "discard",
    };
    let Channel { max, burst, .. } = channel;
    let within = channel.within.as_nanos();
    format!(
        "from={from} to={to} route={route:?} max={max} rate={amount}/{period} burst={burst} within={within} over={over} late={late}"
    )
}

fn of_user(user: &User, network: &Network) -> String {
    let names = |places: &[usize]| {
        let names = places
            .iter()
            .map(|place| network.channels[*place].name.as_str());
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        names.join(",")
    };
    let host = user.host.map(|host| &network.hosts[host].name);
    let User {
        uid,
        channels,
        rate,
        open,
        listen,
        ..
    } = user;
    let (open, listen) = (names(open), names(listen));
    format!(
        "uid={uid} host={host:?} channels={channels:?} rate={rate:?} open={open} listen={listen}"
    )
}
