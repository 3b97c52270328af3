//! Any text is a network whose channels lead where they are to, whose links' ends are apart, and which has a digest, or has diagnostics that point into it.
#![no_main]

#[path = "support/diagnostic.rs"]
mod diagnostic;

use diagnostic::check;
use laxity_lab::scenario::channels::digest::Digest;
use laxity_lab::scenario::parse_network;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match parse_network(text, "fuzz.toml") {
        Ok(network) => {
            for channel in &network.channels {
                let end = channel.route.iter().fold(channel.from, |at, link| {
                    let between = network.links[*link].between;
                    assert!(between.contains(&at));
                    if between[0] == at { between[1] } else { between[0] }
                });
                assert_eq!(end, channel.to);
            }
            for link in &network.links {
                let [one, other] = link.between;
                let ends = [one, other].map(|host| link.ends(host));
                assert_eq!(ends[0].map(|[own, theirs]| [theirs, own]), ends[1]);
                assert!(ends[0].is_none_or(|[own, theirs]| own != theirs && own.is_ipv4() == theirs.is_ipv4()));
                assert!(link.carrier().largest_payload(link.mtu.into(), link.seal) >= Some(network.payload().get() as usize));
            }
            let again = parse_network(text, "fuzz.toml").expect("refused when read again");
            assert_eq!(again, network);
            assert_eq!(Digest::of(&network).differences(&Digest::of(&again)), []);
        }
        Err(diagnostics) => {
            assert!(!diagnostics.is_empty(), "refused without a reason");
            diagnostics.iter().for_each(|found| check(found, text));
        }
    }
});
