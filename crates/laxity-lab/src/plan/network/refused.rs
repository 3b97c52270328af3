//! Why a channel is not granted, and what would be, in the words of a network's file.

use laxity_model::Span;
use laxity_model::analysis::supply::SupplyBound;
use laxity_model::channels::admission::{Give, Host, Lack, Nearest, Reason, Refusal};
use serde::Serialize;

use crate::scenario::channels::Network;
use crate::scenario::units::format_span;

/// A channel that is refused.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RefusedPlan {
    /// The host that is short of something, or where that is which takes longest.
    pub host: String,
    /// Of what.
    pub resource: Resource,
    /// The link, where that is short.
    pub link: Option<String>,
    /// How much of it is missing.
    pub reason: String,
    /// Each of these would be granted, all else being as it is; in the words of the file.
    pub nearest: Vec<String>,
}

/// What a host may have too little of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Resource {
    /// Its processor's time.
    Processor,
    /// A link's.
    Link,
    /// Room for packets.
    Buffers,
}

impl RefusedPlan {
    /// Of what, and where.
    pub(super) fn place(&self) -> String {
        let host = &self.host;
        match (self.resource, &self.link) {
            (Resource::Link, Some(link)) => format!("the link `{link}` at `{host}`"),
            (Resource::Processor | Resource::Link, _) => format!("the processor of `{host}`"),
            (Resource::Buffers, _) => format!("the buffers of `{host}`"),
        }
    }
}

/// What a refusal says.
pub(super) fn told<S: SupplyBound>(
    network: &Network,
    hosts: &[Host<S>],
    refusal: &Refusal,
    wires: Span,
) -> RefusedPlan {
    let host = network.hosts[refusal.hop].name.clone();
    let stages = hosts[refusal.hop].stages();
    let link = refusal.stage.and_then(|stage| stages[stage].link());
    let link = link.map(|link| network.links[link.index()].name.clone());
    let resource = match (&refusal.reason, &link) {
        (Reason::Lack(Lack::Buffers { .. }), _) => Resource::Buffers,
        (_, Some(_)) => Resource::Link,
        (_, None) => Resource::Processor,
    };
    let reason = match &refusal.reason {
        // Which stage that is, is said before.
        Reason::Lack(Lack::Stage { short, .. }) => short.to_string(),
        Reason::Time { .. } if wires.is_zero() => format!("it takes longest: {}", refusal.reason),
        Reason::Time { .. } => {
            let wires = format_span(wires);
            format!(
                "it takes longest, beside {wires} of the wires: {}",
                refusal.reason
            )
        }
        other => other.to_string(),
    };
    let mut refused = RefusedPlan {
        host,
        resource,
        link,
        reason,
        nearest: Vec::new(),
    };
    let place = refused.place();
    let nearest = refusal.nearest.iter();
    let nearest = nearest.map(|nearest| offered(network, &place, *nearest));
    refused.nearest = nearest.collect();
    refused
}

/// What would be granted, exactly, as a file has it.
fn offered(network: &Network, place: &str, nearest: Nearest) -> String {
    let each = |interval: Span| format!("rate = \"1 every {}\"", format_span(interval));
    match nearest {
        Nearest::Within(within) => format!("within = \"{}\"", format_span(within)),
        Nearest::Each(interval) => each(interval),
        Nearest::Largest(bytes) => format!("max = \"{bytes} B\""),
        Nearest::Give { channel, give } => {
            let name = &network.channels[channel.number as usize].name;
            match give {
                Give::Delay(delay) => {
                    let delay = format_span(delay);
                    format!("as it is, if `{name}` were content with {delay} on {place}")
                }
                Give::Each(interval) => format!("as it is, if `{name}` had {}", each(interval)),
            }
        }
    }
}
