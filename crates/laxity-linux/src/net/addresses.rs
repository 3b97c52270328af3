//! Which addresses are the kernel's own.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// All addresses that the kernel answers for in the network namespace of this thread, but those of the loop as a whole.
///
/// # Errors
///
/// What keeps `/proc` from telling them.
pub fn kernels() -> io::Result<Vec<IpAddr>> {
    let read = |file| fs::read_to_string(format!("/proc/thread-self/net/{file}"));
    let v4 = read("fib_trie")?;
    let v6 = match read("if_inet6") {
        // A kernel without IPv6 has no addresses of it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        v6 => v6?,
    };
    Ok(of_ipv4(&v4).chain(of_ipv6(&v6)).collect())
}

/// Each address stands in a line of its own, before those that say what it is.
fn of_ipv4(trie: &str) -> impl Iterator<Item = IpAddr> {
    let mut last = None;
    trie.lines().filter_map(move |line| {
        if let Some((_, address)) = line.split_once("|-- ") {
            last = address.trim().parse::<Ipv4Addr>().ok();
        }
        line.ends_with("/32 host LOCAL").then_some(last?.into())
    })
}

/// Each line begins with an address, in 32 digits.
fn of_ipv6(table: &str) -> impl Iterator<Item = IpAddr> {
    let address = |line: &str| u128::from_str_radix(line.get(..32)?, 16).ok();
    table
        .lines()
        .filter_map(address)
        .map(|bits| Ipv6Addr::from_bits(bits).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_networks_are_none() {
        let trie = "Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 10.0.0.0
        /24 link UNICAST
     |-- 10.0.0.2
        /32 host LOCAL
     |-- 10.0.0.255
        /32 link BROADCAST
     |-- 127.0.0.0
        /8 host LOCAL
";
        let own: IpAddr = [10, 0, 0, 2].into();
        assert_eq!(of_ipv4(trie).collect::<Vec<_>>(), [own]);
        assert_eq!(of_ipv4("        /32 host LOCAL").count(), 0);
        let table = "fd000000000000000000000000000002 02 40 00 80     near\nshort\n";
        let own: IpAddr = "fd00::2".parse().unwrap();
        assert_eq!(of_ipv6(table).collect::<Vec<_>>(), [own]);
    }
}
