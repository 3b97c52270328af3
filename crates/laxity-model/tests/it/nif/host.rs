//! Whose address is one host's.

use std::net::IpAddr;

use laxity_model::nif::host::check;

/// What is said of an address, on an interface of these networks.
fn said(address: &str, networks: &[(&str, u8)]) -> String {
    let networks = networks.iter();
    let networks: Vec<(IpAddr, u8)> = networks
        .map(|(own, bits)| (own.parse().unwrap(), *bits))
        .collect();
    let why = check(address.parse().unwrap(), &networks).err();
    why.map(|why| why.to_string()).unwrap_or_default()
}

#[test]
fn what_is_not_one_hosts_is_refused_with_what_would_be() {
    for (address, words) in [
        ("224.0.0.1", "multicast"),
        ("239.255.255.255", "10.0.0.2"),
        (
            "255.255.255.255",
            "255.255.255.255 is the broadcast address",
        ),
        ("0.0.0.0", "no address"),
        ("0.1.2.3", "all of 0.0.0.0/8"),
        ("127.0.0.1", "loopback"),
        ("127.255.255.255", "loopback"),
        ("ff02::1", "fd00::2"),
        ("::", "no address"),
        ("::1", "loopback"),
    ] {
        // Whatever the networks are.
        for networks in [&[][..], &[("10.0.0.9", 0), ("fd00::9", 0)]] {
            let said = said(address, networks);
            assert!(said.contains(words), "{address}: {said:?}");
        }
    }
}

/// Of each network of an interface, whichever of its addresses it is told by.
#[test]
fn what_no_host_of_a_network_has_is_refused_with_what_they_have() {
    for (address, network, words) in [
        ("10.0.0.0", ("10.0.0.9", 24), "10.0.0.1 to 10.0.0.254"),
        ("10.0.0.255", ("10.0.0.255", 24), "10.0.0.1 to 10.0.0.254"),
        ("10.0.0.7", ("10.0.0.5", 30), "10.0.0.5 to 10.0.0.6"),
        ("fd00::", ("fd00::9", 64), "fd00::1 to fd00::ffff:"),
        ("fd00::4", ("fd00::5", 126), "fd00::5 to fd00::7"),
    ] {
        for networks in [&[network][..], &[("192.0.2.1", 24), network]] {
            let said = said(address, networks);
            assert!(said.contains(words), "{address}: {said:?}");
        }
    }
}

#[test]
fn all_others_are_one_hosts() {
    for (address, network) in [
        ("10.0.0.0", ("10.0.0.0", 31)),
        ("10.0.0.255", ("10.0.0.255", 31)),
        ("10.0.0.0", ("10.0.0.0", 32)),
        ("10.0.0.255", ("10.0.0.255", 32)),
        ("10.0.0.255", ("10.0.0.1", 16)),
        ("10.0.1.0", ("10.0.0.1", 16)),
        // Of another network.
        ("10.0.1.0", ("10.0.0.1", 24)),
        ("9.0.0.255", ("10.0.0.1", 24)),
        ("10.0.1.255", ("10.0.0.1", 24)),
        ("10.0.0.1", ("10.0.0.1", 0)),
        ("fd00::", ("fd00::", 127)),
        ("fd00::", ("fd00::", 128)),
        ("fd00::1", ("fd00::", 0)),
        ("fe80::", ("fd00::", 64)),
        ("fd00::ffff:ffff:ffff:ffff", ("fd00::1", 64)),
    ] {
        assert_eq!(said(address, &[network]), "", "{address} in {network:?}");
    }
}
