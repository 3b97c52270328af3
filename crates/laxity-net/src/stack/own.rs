//! Which addresses a host may have.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The highest bits of an address that are those of its network; none where it has no bits.
fn mask(bits: u8) -> (u32, u128) {
    let all = |width: u32, bits: u8| width.saturating_sub(bits.into());
    (
        u32::MAX.checked_shl(all(32, bits)).unwrap_or(0),
        u128::MAX.checked_shl(all(128, bits)).unwrap_or(0),
    )
}

/// The addresses of a network that are no host's: the lowest, which is the network's own or that of any router, and of IPv4 the highest, which is that of all. A network of one or two has none such (RFC 3021, RFC 6164).
pub(super) fn reserved(own: IpAddr, bits: u8) -> [Option<IpAddr>; 2] {
    let (short, long) = mask(bits);
    match own {
        IpAddr::V4(own) if bits < 31 => {
            let lowest = own.to_bits() & short;
            let both = [lowest, lowest | !short];
            both.map(|address| Some(Ipv4Addr::from_bits(address).into()))
        }
        IpAddr::V6(own) if bits < 127 => {
            let lowest = Ipv6Addr::from_bits(own.to_bits() & long);
            [Some(lowest.into()), None]
        }
        _ => [None, None],
    }
}

/// What an address is that is not one host's, wherever that is.
pub(crate) fn not_a_hosts(address: IpAddr) -> Option<&'static str> {
    let is_broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    match address {
        _ if is_broadcast => Some("is the broadcast address"),
        _ if address.is_multicast() => Some("is the multicast address of a group"),
        _ if address.is_unspecified() => Some("is no address"),
        _ if address.is_loopback() => Some("is a loopback address, which no interface carries"),
        _ => None,
    }
}

/// Whether a host may have this address in a network of so many bits, no more than it has itself; else what it is, and which it may.
pub(super) fn check(address: IpAddr, bits: u8) -> Result<(), String> {
    if let Some(what) = not_a_hosts(address) {
        let such = if address.is_ipv4() {
            "10.0.0.2/24"
        } else {
            "fd00::2/64"
        };
        return Err(format!(
            "{what}; a host has a unicast address, such as {such}"
        ));
    }
    let reserved = reserved(address, bits);
    let Some(place) = reserved.iter().position(|other| *other == Some(address)) else {
        return Ok(());
    };
    let what = match (place, address) {
        (0, IpAddr::V4(_)) => "is the address of that network itself",
        (0, IpAddr::V6(_)) => "is the address of any router in that network",
        _ => "is the broadcast address of that network",
    };
    let free = match (reserved, address) {
        ([Some(IpAddr::V4(lowest)), Some(IpAddr::V4(highest))], _) => format!(
            "{} to {}",
            Ipv4Addr::from_bits(lowest.to_bits() + 1),
            Ipv4Addr::from_bits(highest.to_bits() - 1)
        ),
        (_, IpAddr::V6(lowest)) => {
            format!("{} and above", Ipv6Addr::from_bits(lowest.to_bits() + 1))
        }
        _ => "all others".to_owned(),
    };
    Err(format!("{what}; its hosts have {free}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(address: &str, bits: u8) -> String {
        let why = check(address.parse().unwrap(), bits);
        why.err().unwrap_or_default()
    }

    #[test]
    fn what_is_not_one_hosts_is_refused_with_what_would_be() {
        for (address, bits, words) in [
            ("224.0.0.1", 24, "multicast"),
            ("255.255.255.255", 24, "broadcast"),
            ("0.0.0.0", 24, "no address"),
            ("127.0.0.1", 8, "loopback"),
            ("10.0.0.0", 24, "10.0.0.1 to 10.0.0.254"),
            ("10.0.0.255", 24, "10.0.0.1 to 10.0.0.254"),
            ("10.0.0.7", 30, "10.0.0.5 to 10.0.0.6"),
            ("127.255.255.255", 0, "loopback"),
            ("ff02::1", 64, "fd00::2/64"),
            ("::", 64, "no address"),
            ("::1", 128, "loopback"),
            ("fd00::", 64, "fd00::1 and above"),
        ] {
            let said = said(address, bits);
            assert!(said.contains(words), "{address}/{bits}: {said:?}");
        }
    }

    #[test]
    fn in_a_network_of_one_or_two_every_address_is_a_hosts() {
        for (address, bits) in [
            ("10.0.0.0", 31),
            ("10.0.0.255", 31),
            ("10.0.0.0", 32),
            ("10.0.0.255", 32),
            ("10.0.0.255", 16),
            ("10.0.1.0", 16),
            ("10.0.0.1", 0),
            ("fd00::", 127),
            ("fd00::", 128),
            ("fd00::1", 0),
            ("fe80::1", 64),
        ] {
            assert_eq!(said(address, bits), "", "{address}/{bits}");
        }
    }
}
