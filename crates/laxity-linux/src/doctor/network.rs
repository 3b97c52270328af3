//! The ways to a network interface: which of them this process may have, and what comes through an interface unfinished.

use super::checks::{Judgement, limited, ok};
use super::machine::{Fact, Machine, Network};
use crate::net::{self, OpenCause, tried};

/// So many packets are tried to be kept in memory that the kernel shares, as an interface has unless it is asked for others.
const PACKETS: usize = 1_024;

impl Network {
    /// Tries each way as far as that goes without an interface, and gives all back.
    pub(super) fn probe() -> Self {
        Self {
            packet: tried::packet(),
            xdp: tried::xdp(PACKETS),
            tap: tried::tap(),
            unfinished: net::interface_names().map(|names| {
                let pairs = names.into_iter().filter(|name| tried::is_pair(name));
                pairs.collect()
            }),
        }
    }
}

fn tell(tried: &Result<(), OpenCause>, good: &str) -> Fact<Judgement> {
    match tried {
        Ok(()) => ok(good),
        Err(cause) => limited(cause.to_string(), cause.remedy()),
    }
}

pub(super) fn check_packet(machine: &Machine) -> Fact<Judgement> {
    let good = "packet sockets may be opened (`packet:NAME`)";
    tell(&machine.network.packet, good)
}

pub(super) fn check_xdp(machine: &Machine) -> Fact<Judgement> {
    let good = "AF_XDP and programs for it may be had (`xdp:NAME`)";
    tell(&machine.network.xdp, good)
}

pub(super) fn check_tap(machine: &Machine) -> Fact<Judgement> {
    tell(
        &machine.network.tap,
        "TAP and TUN interfaces may be made (`tap:NAME`, `tun:NAME`)",
    )
}

pub(super) fn check_unfinished(machine: &Machine) -> Fact<Judgement> {
    let names = machine.network.unfinished.as_ref()?;
    if names.is_empty() {
        return ok("no interface has its other end on this machine");
    }
    limited(
        format!(
            "through {} checksums come that the kernel at the other end has only begun, and packets of 64 KiB that are still to be cut",
            names.join(", ")
        ),
        "nothing, where laxity receives: it is said of each packet, or counted; else `ethtool -K NAME tx off tso off gso off` for the other end",
    )
}
