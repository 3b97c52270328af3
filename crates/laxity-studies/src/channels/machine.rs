//! The paper's machine: a 68040 at 25 MHz under the x-kernel, and its null device, which takes the time of a packet and then interrupts (table 1, §§3.3, 4.3).

use std::num::NonZeroU32;

use laxity::study::{Costs as MachineCosts, Profile};
use laxity_model::channels::handler::Costs;
use laxity_model::{Service, Span};

/// S, the most of a packet.
pub const PACKET_BYTES: NonZeroU32 = NonZeroU32::new(4_096).expect("it is not zero");
/// P, packets from look to look.
pub const PACKETS: NonZeroU32 = NonZeroU32::new(4).expect("it is not zero");
/// What the first packet of a message takes.
pub const FIRST_PACKET: Service = Service::from_micros(420);
/// And a further one.
pub const FURTHER_PACKET: Service = Service::from_micros(170);
/// What it takes to choose a packet for the link, of whoever chooses.
pub const LINK_SCHEDULING: Service = Service::from_micros(160);
/// What it takes to switch from one handler or thread to another, whose figure is lost and chosen here.
pub const CONTEXT_SWITCH: Service = Service::from_micros(55);
/// And what a handler that takes over misses of the cache.
pub const CACHE_MISS: Service = Service::from_micros(90);
/// What it takes to offer a message, dropped or not: the call and its policing, of which the paper tells no figure.
pub const OFFER: Service = Service::from_micros(50);
/// What it takes the link to start a packet.
pub const START: Span = Span::from_micros(40);
/// And each byte of it.
pub const BYTE: Span = Span::from_nanos(50);

/// What a handler has of messages.
pub const COSTS: Costs = Costs {
    message: FIRST_PACKET.saturating_sub(FURTHER_PACKET),
    packet: FURTHER_PACKET,
    kilobyte: Service::ZERO,
};

/// The machine. All that it takes is in what handlers and link take, which the paper measured as a whole: so its interrupts cost nothing besides.
pub const XKERNEL_68040: Profile = Profile {
    name: "xkernel-68040",
    costs: MachineCosts {
        context_switch: CONTEXT_SWITCH.as_dedicated_span(),
        ..MachineCosts::NONE
    },
    ..Profile::IDEAL
};

/// How long a packet of so many bytes takes the link.
pub fn on_link(bytes: u64) -> Span {
    START + BYTE * bytes
}
