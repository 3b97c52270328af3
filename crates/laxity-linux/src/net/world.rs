//! A small network in namespaces of its own: two hosts that talk, and what lies between them.
//!
//! ```text
//! Wire        near right──left far
//! Relays(1)   near right──left relay right──left far
//! Switch      near right──near switch far──left far
//! ```
//!
//! Hosts know each other by `10.0.LINK.1` and `10.0.LINK.2`, and what is further away by their neighbours, who forward it. Like every [`Namespace`] these have no names: they are there as long as their
//! [`World`] is, and whatever was opened or started in them; so nothing of them is left however their maker ends.

use std::fs;
use std::net::Ipv4Addr;

use super::egress::{Bottleneck, ClassId, Egress, Owned};
use super::pair::{Namespace, PairError, ip, said};

/// What lies between the two hosts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Between {
    /// One link.
    Wire,
    /// So many hosts that forward, with a link between any two neighbours.
    Relays(u8),
    /// A switch, of which each port has the link's rate and one queue; what leads there is faster.
    Switch,
}

impl Between {
    /// How many links there are from the near host to the far one, a switch's two taken for one.
    #[must_use]
    pub const fn links(self) -> usize {
        match self {
            Self::Wire | Self::Switch => 1,
            Self::Relays(relays) => relays as usize + 1,
        }
    }
}

/// How frames wait for a link on the way to the far host. On the way back they wait in one queue, but for [`Node`](Self::Node).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Queues {
    /// One queue of 1,000 packets.
    Fifo,
    /// A queue for each flow, which take turns (`fq`).
    Fair,
    /// The host of each link owns it: what goes to [`World::IN_CLASS`] is in the class of channels.
    Class,
    /// Nobody has put any there, on the way back neither: each host's node takes its links itself. Behind a switch's ports frames wait in one queue.
    Node,
}

/// Each of its hosts, and what waits between them.
#[derive(Debug)]
pub struct World {
    /// They are put back while their namespaces are there.
    #[expect(dead_code, reason = "each is owned for as long as it is here")]
    owned: Vec<Owned>,
    hosts: Vec<Namespace>,
    #[expect(dead_code, reason = "it is there for as long as it is here")]
    switch: Option<Namespace>,
}

impl World {
    /// The far host's further address: what goes there is in the class of channels where links are owned, fragments too, and elsewhere as everything.
    pub const IN_CLASS: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);

    /// Makes one of links that carry so many bits a second (8,000 or more), counted without what Ethernet takes beside a frame, and leaves segments and checksums to no interface.
    ///
    /// # Errors
    ///
    /// [`PairError`], as where the kernel has no such queue: nothing is left.
    pub fn new(between: Between, rate: u64, queues: Queues) -> Result<Self, PairError> {
        let count = between.links() + 1;
        let hosts: Vec<Namespace> = (0..count)
            .map(|_| Namespace::new())
            .collect::<Result<_, _>>()?;
        let switch = match between {
            Between::Switch => Some(switch(&hosts, rate, queues)?),
            _ => None,
        };
        let mut owned = Vec::new();
        for (link, pair) in hosts.windows(2).enumerate() {
            let [here, next] = pair else { continue };
            if switch.is_none() {
                join((here, "right"), (next, "left"))?;
                if queues != Queues::Node {
                    shape(next, "left", rate, FIFO)?;
                }
            }
            address(here, "right", link, 1)?;
            address(next, "left", link, 2)?;
            match queues {
                Queues::Class => owned.push(here.within(None, || own(rate, between))??),
                Queues::Fifo | Queues::Fair if switch.is_none() => {
                    shape(here, "right", rate, leaf(queues))?;
                }
                Queues::Fifo | Queues::Fair | Queues::Node => {}
            }
        }
        let world = Self {
            owned,
            hosts,
            switch,
        };
        world.route()?;
        Ok(world)
    }

    /// The near host first, the far one last.
    #[must_use]
    pub fn hosts(&self) -> &[Namespace] {
        &self.hosts
    }

    /// By which address a host of these is known to the one before it, and to all before that; the near host by the one after it.
    #[must_use]
    pub const fn address(host: u8) -> Ipv4Addr {
        match host.checked_sub(1) {
            Some(link) => Ipv4Addr::new(10, 0, link, 2),
            None => Ipv4Addr::new(10, 0, 0, 1),
        }
    }

    /// Each host knows its neighbours; of what is further away it knows which of them is on the way there.
    fn route(&self) -> Result<(), PairError> {
        let last = self.hosts.len() - 1;
        for (at, host) in self.hosts.iter().enumerate() {
            host.within(None, || {
                forward();
                for before in 0..at.saturating_sub(1) {
                    let back = at - 1;
                    ip(&format!("route add 10.0.{before}.0/24 via 10.0.{back}.1"))?;
                }
                match at == last {
                    true => ip(&format!("address add {}/32 dev left", Self::IN_CLASS)),
                    false => ip(&format!("route add default via 10.0.{at}.2")),
                }
            })??;
        }
        Ok(())
    }
}

const FIFO: &str = "pfifo limit 1000";

/// As `tc` calls it.
const fn leaf(queues: Queues) -> &'static str {
    match queues {
        Queues::Fifo | Queues::Class | Queues::Node => FIFO,
        Queues::Fair => "fq",
    }
}

/// A bridge, with both hosts at it.
fn switch(hosts: &[Namespace], rate: u64, queues: Queues) -> Result<Namespace, PairError> {
    let switch = Namespace::new()?;
    switch.within(None, || {
        ip("link add bridge type bridge forward_delay 0")?;
        ip("link set bridge up")
    })??;
    let [near, far] = hosts else {
        return Ok(switch);
    };
    join((near, "right"), (&switch, "near"))?;
    join((far, "left"), (&switch, "far"))?;
    for (port, leaf) in [("near", FIFO), ("far", leaf(queues))] {
        switch.within(None, || ip(&format!("link set {port} master bridge")))??;
        shape(&switch, port, rate, leaf)?;
    }
    Ok(switch)
}

/// Two interfaces that send frames as they are.
fn join(one: (&Namespace, &str), other: (&Namespace, &str)) -> Result<(), PairError> {
    one.0.join(one.1, other)?;
    one.0.set_offloads(one.1, false)?;
    other.0.set_offloads(other.1, false)
}

/// Has an interface send so many bits a second, and wait in such a queue.
fn shape(host: &Namespace, name: &str, rate: u64, leaf: &str) -> Result<(), PairError> {
    // A timer may be late by a twenty-thousandth of a second, as of a link that is owned.
    let burst = (rate / 160_000).max(1_600);
    host.within(None, || {
        said(
            "tc",
            &format!("qdisc add dev {name} root handle 1: htb default 1"),
        )?;
        let shape = format!("rate {rate}bit burst {burst} cburst {burst}");
        let class = format!("class add dev {name} parent 1: classid 1:1 htb {shape}");
        said("tc", &class)?;
        said("tc", &format!("qdisc add dev {name} parent 1:1 {leaf}"))
    })??;
    Ok(())
}

/// Owns this thread's way out, as a node does.
fn own(rate: u64, between: Between) -> Result<Owned, PairError> {
    let egress = Egress {
        rate,
        overhead: 0,
        bottleneck: match between {
            Between::Switch => Bottleneck::Below,
            Between::Wire | Between::Relays(_) => Bottleneck::Class,
        },
        single_segments: true,
    };
    let owned = Owned::take("right", egress)?;
    let class = ClassId::CHANNELS.to_string();
    let (root, _) = class.split_once(':').unwrap_or_default();
    let to = World::IN_CLASS;
    said(
        "tc",
        &format!(
            "filter add dev right parent {root}: protocol ip u32 match ip dst {to}/32 flowid {class}"
        ),
    )?;
    Ok(owned)
}

fn address(host: &Namespace, name: &str, link: usize, last: u8) -> Result<(), PairError> {
    host.set_address(name, &format!("10.0.{link}.{last}/24"), true)
}

/// Where that cannot be written no packet of others goes on, which whoever sends them sees.
fn forward() {
    let _ = fs::write("/proc/sys/net/ipv4/ip_forward", "1");
}
