//! What no stack is made of.

use std::sync::Arc;

use laxity_model::Instant;
use laxity_net::buffers::Sleeper;
use laxity_net::emulated::{Faults, Wire};
use laxity_net::stack::{Config, Stack};

use super::{config, driver};
use crate::support::CountedEnd;

/// The driver is as it was: its next stack is made.
#[test]
fn an_address_that_no_host_has_is_refused_with_what_would_be_right() {
    let (_, end, _) = Wire::new(Faults::default(), 7);
    let mut driver = driver(CountedEnd::new(end), 4);
    let mut made = |config: Config| {
        let sleeper = Sleeper::portable(|| Instant::MAX);
        Stack::new(&mut driver, config, sleeper, Arc::new(|| Instant::ZERO))
    };
    for (address, bits, words) in [
        ("224.0.0.1", 24, "224.0.0.1/24 is the multicast address"),
        ("255.255.255.255", 24, "broadcast"),
        ("ff02::1", 64, "fd00::2/64"),
        ("10.0.0.255", 24, "10.0.0.1 to 10.0.0.254"),
    ] {
        let wrong = Config {
            addresses: vec![(address.parse().unwrap(), bits)],
            ..config(1)
        };
        let why = made(wrong).err().map(|why| why.to_string());
        let why = why.unwrap_or_default();
        assert!(why.contains(words), "{address}/{bits}: {why:?}");
    }
    assert!(made(config(1)).is_ok());
}
