//! Whose address is one host's: who may have it, may be connected to, is answered, or is an end of a flow.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address that is not one host's, and what it is instead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotAHosts {
    address: IpAddr,
    what: &'static str,
    /// The first and the last that are, in its network.
    hosts: Option<[IpAddr; 2]>,
}

impl fmt::Display for NotAHosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}; ", self.address, self.what)?;
        match (self.hosts, self.address) {
            (Some([first, last]), _) => write!(f, "its hosts have {first} to {last}"),
            (None, IpAddr::V4(_)) => write!(f, "a host has a unicast address, such as 10.0.0.2"),
            (None, IpAddr::V6(_)) => write!(f, "a host has a unicast address, such as fd00::2"),
        }
    }
}

impl core::error::Error for NotAHosts {}

/// Whether an address may be one host's, on an interface of these networks, each told by an address in it and the bits that all of it have.
///
/// In a network the lowest address is no host's, but that network's own or that of any router in it, nor is the highest one of IPv4, which is that of all. A network of one or two addresses has none such (RFC 3021, RFC 6164).
///
/// # Errors
///
/// What it is instead, and what would be right.
pub fn check(address: IpAddr, networks: &[(IpAddr, u8)]) -> Result<(), NotAHosts> {
    let what = match address {
        IpAddr::V4(Ipv4Addr::BROADCAST) => Some("is the broadcast address"),
        IpAddr::V4(address) if address.octets()[0] == 0 => {
            Some("is no address, as all of 0.0.0.0/8 is none")
        }
        _ if address.is_unspecified() => Some("is no address"),
        _ if address.is_multicast() => Some("is the multicast address of a group"),
        _ if address.is_loopback() => Some("is a loopback address, which no interface carries"),
        _ => None,
    };
    let nowhere = what.map(|what| (what, None));
    let mut networks = networks.iter();
    let found = nowhere.or_else(|| networks.find_map(|network| reserved(address, *network)));
    match found {
        None => Ok(()),
        Some((what, hosts)) => Err(NotAHosts {
            address,
            what,
            hosts,
        }),
    }
}

/// What an address is in a network where it is no host's, and which are.
fn reserved(address: IpAddr, network: (IpAddr, u8)) -> Option<(&'static str, Option<[IpAddr; 2]>)> {
    match (address, network) {
        (IpAddr::V4(address), (IpAddr::V4(own), bits)) if bits < 31 => {
            let (address, hosts) = (address.to_bits(), u32::MAX >> bits);
            let lowest = own.to_bits() & !hosts;
            let what = match address.checked_sub(lowest)? {
                0 => "is the address of that network itself",
                place if place == hosts => "is the broadcast address of that network",
                _ => return None,
            };
            let of = |place| Ipv4Addr::from_bits(lowest | place).into();
            Some((what, Some([of(1), of(hosts - 1)])))
        }
        (IpAddr::V6(address), (IpAddr::V6(own), bits)) if bits < 127 => {
            let hosts = u128::MAX >> bits;
            let lowest = own.to_bits() & !hosts;
            let of = |place| Ipv6Addr::from_bits(lowest | place).into();
            let what = "is the address of any router in that network";
            (address.to_bits() == lowest).then_some((what, Some([of(1), of(hosts)])))
        }
        _ => None,
    }
}
