//! What packets take of a driver's thread, by each way to an interface: what a scenario's interface, and admission, are charged where nobody states it.

use std::collections::BTreeMap;
use std::os::fd::AsFd;

use laxity_model::nif::most::Costs;
use laxity_model::program::upcalls::qos::Cost;
use laxity_model::{Instant, Service, Span};
use rustix::event::{PollFd, PollFlags, poll};

use crate::os::clock;

/// The ways of which it is measured, as names of interfaces begin.
pub const WAYS: [&str; 4] = ["packet", "tap", "udp", "xdp"];

/// What packets take by one way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketCost {
    /// To look for them, each time that the driver is called, whether there are any or not.
    pub wake: Service,
    /// Each that arrives, until its client has given its buffer again: by its bytes with the Ethernet header.
    pub receive: Cost,
    /// Each that is sent, until its client knows that it has left. Between two interfaces of one machine that is also what the kernel does at the other end, at once.
    pub send: Cost,
}

impl PacketCost {
    /// What a driver is charged by that: of each kind what the dearer direction takes, since its bound counts both alike.
    #[must_use]
    pub fn costs(&self) -> Costs {
        Costs {
            interrupt: self.wake,
            packet: self.receive.each.max(self.send.each),
            byte_ps: self.receive.byte_ps.max(self.send.byte_ps),
        }
    }
}

/// By way; or why it is not known, with the remedy.
pub type Packets = BTreeMap<&'static str, Result<PacketCost, String>>;

/// Measures what packets take by a way, in the calling thread, which is of a rank above ordinary work: for some tenths of a second.
pub type Measure = fn(way: &str) -> Result<PacketCost, String>;

/// Waits until an interface can be read, no longer than so long, as its driver's thread does.
pub fn wait(interface: &impl AsFd, most: Span) {
    let timeout = clock::timespec(Instant::ZERO + most);
    // Whatever it says, who waits looks.
    let _ = poll(&mut [PollFd::new(interface, PollFlags::IN)], Some(&timeout));
}
