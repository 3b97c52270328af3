//! By which interface packets to an address leave.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;

use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use rustix::net::netdevice::index_to_name;

use super::call;
use crate::os::route;

/// The header of a route in its message, in bytes.
const OWN_HEADER: usize = 12;
/// Of `<linux/rtnetlink.h>`: which interface it leaves by.
const OUT: u16 = 4;

/// The interface of this thread's network namespace by which packets to this address leave now, by its name.
///
/// # Errors
///
/// There is no way there, or the kernel does not tell.
pub fn to(address: IpAddr) -> io::Result<String> {
    let mut message = RouteMessage::default();
    (
        message.header.address_family,
        message.header.destination_prefix_length,
    ) = match address {
        IpAddr::V4(_) => (AddressFamily::Inet, Ipv4Addr::BITS as u8),
        IpAddr::V6(_) => (AddressFamily::Inet6, Ipv6Addr::BITS as u8),
    };
    let destination = RouteAttribute::Destination(RouteAddress::from(address));
    message.attributes.push(destination);
    let socket = route::open()?;
    let mut found = None;
    let question = route::question(RouteNetlinkMessage::GetRoute(message), 0);
    route::request(socket.as_fd(), &question, |answer| {
        let out = route::attribute(answer, OWN_HEADER, OUT);
        found = out.and_then(|value| route::word(value, 0)).or(found);
    })?;
    let index = found.ok_or_else(|| io::Error::other("the kernel names no interface"))?;
    let socket = call::socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    Ok(index_to_name(socket, index)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_here_is_reached_by_the_loop() {
        for here in ["127.0.0.1", "127.3.2.1"] {
            assert_eq!(to(here.parse().unwrap()).unwrap(), "lo");
        }
    }
}
